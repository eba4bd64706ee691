//! `weir backup plan`: the cheapest disks that a backup fits its window with.

use crate::cli::BackupPlanArgs;
use crate::commands::plan::{self as of_plan, prices};
use crate::error::{CliError, NO};
use crate::input::{edition_of, read, read_layout_text};
use crate::output;
use std::fs;
use std::path::PathBuf;
use weir_catalog::{Catalog, Edition};
use weir_export::backup_kinds;
use weir_layout::{Layout, Role};
use weir_oltp::Description;
use weir_plan::DEFAULT_EDITION;
use weir_plan::backup::ground::DefaultSources;
use weir_plan::backup::{Base, Beside, Compression, Question, backup_report, ground, plan};
use weir_plan::need::NeedFile;
use weir_plan::share::WHOLE;
use weir_report::backup_plan::{BackupChoice, BackupExport};
use weir_units::{Bytes, Span};

/// The slowdown of databases where none is stated, in millionths.
const SLOWDOWN: u64 = WHOLE / 10;
/// The rate of a processor that is never waited for.
const FAST: Bytes = Bytes::gib(1 << 10);
/// Processors where the machine's are not known.
const THREADS: u32 = 4;

pub(super) fn run(args: &BackupPlanArgs, catalog: &Catalog) -> Result<u8, CliError> {
    check(args)?;
    let there = there(args, catalog)?;
    let own_prices = prices::own(args.prices.as_deref())?;
    let keys = NeedFile {
        region: args.region.clone(),
        currency: args.currency.clone(),
        ..NeedFile::default()
    };
    let (book, left_out) = prices::book(&keys, there.edition, args.prices.as_deref(), &own_prices)?;
    let databases = databases(args)?;
    let beside =
        Beside { databases: &databases, max_slowdown: args.max_slowdown.unwrap_or(SLOWDOWN) };
    let compression = args.compress.map(|ratio| Compression {
        ratio,
        rate: args.compress_rate.unwrap_or(FAST),
        threads: args.compress_threads.or(there.processors).unwrap_or(THREADS),
    });
    let question = Question {
        catalog,
        edition: there.edition,
        prices: book.as_ref(),
        base: there.base,
        sources: there.sources,
        readers: args.readers,
        size: there.size,
        within: args.within,
        setup: args.setup.unwrap_or(Span::ZERO),
        compression,
        families: args.disks.clone(),
        max_disks: args.max_disks,
        limit: args.limit,
        latency: args.latency,
        beside: (!databases.is_empty()).then_some(beside),
    };
    let outcome = plan(&question)?;
    let mut notes = left_out;
    if compression.is_some() && args.compress_rate.is_none() {
        let words =
            "compression is assumed to keep up; --compress-rate plans with processors that do not";
        notes.push(words.to_owned());
    }
    notes.extend(there.note);
    let mut report = backup_report(&question, outcome, notes);
    if let Some(plan) = &mut report.plan {
        plan.exports = exports(plan);
    }
    if let Some(plan) = &report.plan {
        for (path, text) in [(&args.out, &plan.layout), (&args.out_backup, &plan.backup)] {
            if let Some(path) = path {
                fs::write(path, text).map_err(|source| CliError::write(path, source))?;
            }
        }
    }
    output::print(&report, args.output.format())?;
    Ok(if report.is_met { 0 } else { NO })
}

/// Returns the kinds of scripts for the backup of a plan, and those that cannot write it.
fn exports(plan: &BackupChoice) -> Vec<BackupExport> {
    let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let kinds = backup_kinds(count(plan.count), count(plan.stripes)).into_iter();
    kinds.map(|(kind, refused)| BackupExport { kind: kind.name().to_owned(), refused }).collect()
}

/// Checks the options before anything is planned.
fn check(args: &BackupPlanArgs) -> Result<(), CliError> {
    let inputs: Vec<&PathBuf> =
        args.layout.iter().chain(&args.beside).chain(&args.prices).collect();
    let outs = [("--out", &args.out), ("--out-backup", &args.out_backup)];
    for (option, out) in outs {
        let Some(out) = out else { continue };
        if inputs.iter().any(|own| of_plan::is_same(own, out)) {
            let words =
                format!("{option} {}: is one of the inputs; take another name", out.display());
            return Err(CliError::Refused(words));
        }
        of_plan::can_write(option, out)?;
    }
    if args.out.is_some() && args.out == args.out_backup {
        let words = "--out and --out-backup name one file; give two";
        return Err(CliError::Refused(words.to_owned()));
    }
    Ok(())
}

/// The sources that are there.
struct There<'a> {
    edition: &'a Edition,
    base: Base,
    sources: Vec<String>,
    size: Bytes,
    processors: Option<u32>,
    /// The sources that were chosen by default.
    note: Option<String>,
}

fn there<'a>(args: &BackupPlanArgs, catalog: &'a Catalog) -> Result<There<'a>, CliError> {
    let Some(path) = &args.layout else { return assumed(args, catalog) };
    let (text, layout) = read_layout_text(path, catalog)?;
    let edition = edition_of(&layout, catalog)?.ok_or_else(|| {
        CliError::Refused(format!(
            "{}: names no edition, so there are no disks to plan with; add edition = \"NAME\" to it",
            path.display()
        ))
    })?;
    let (sources, note) = match args.sources.is_empty() {
        true => {
            let usual = DefaultSources::new(&layout, &[Role::Data, Role::Log]);
            let note = usual.note();
            (usual.names, Some(note))
        }
        false => (args.sources.clone(), None),
    };
    let size = args.size.unwrap_or_else(|| in_use(&layout, &sources));
    let host = layout.hosts.first().and_then(|host| host.qualified_size());
    let processors = host.and_then(|name| edition.host(&name).ok()?.vcpus);
    let name = path.display().to_string();
    let base = Base { name, text, is_assumed: false };
    Ok(There { edition, base, sources, size, processors, note })
}

/// Returns the bytes of sources that are in use.
fn in_use(layout: &Layout, sources: &[String]) -> Bytes {
    let places = layout.places();
    let own = places.iter().filter(|place| sources.contains(&place.name));
    let sizes = own.map(|place| place.used.unwrap_or(place.size).get());
    Bytes::new(sizes.fold(0, u64::saturating_add))
}

/// Returns a machine with a source that is assumed.
fn assumed<'a>(args: &BackupPlanArgs, catalog: &'a Catalog) -> Result<There<'a>, CliError> {
    let edition = catalog.edition(args.edition.as_deref().unwrap_or(DEFAULT_EDITION))?;
    // The parser asks for both where there is no layout.
    let (Some(name), Some(size)) = (args.host.as_deref(), args.size) else {
        let words = "give --layout, or --host and --size";
        return Err(CliError::Refused(words.to_owned()));
    };
    let host = edition.host(name)?;
    let base = Base::assumed(edition, host, size);
    let sources = vec![ground::ASSUMED.to_owned()];
    Ok(There { edition, base, sources, size, processors: host.vcpus, note: None })
}

fn databases(args: &BackupPlanArgs) -> Result<Vec<Description>, CliError> {
    let own = |path: &PathBuf| {
        let text = read(path, "description of a database")?;
        Ok(Description::parse(&path.display().to_string(), &text)?)
    };
    args.beside.iter().map(own).collect()
}
