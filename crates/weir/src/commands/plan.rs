//! `weir plan`: the cheapest layout that meets a need.

mod compare;
mod fleet;
mod observed;
mod present;
pub(super) mod prices;

pub(super) use crate::input::is_same;
pub(super) use observed::EDITION;

use crate::cli::PlanArgs;
use crate::error::{CliError, NO};
use crate::input::{edition_of, read_layout_text};
use crate::output;
use observed::Measure;
use std::fs;
use std::path::{Path, PathBuf};
use weir_catalog::{Catalog, Edition};
use weir_layout::Layout;
use weir_plan::keep::Kept;
use weir_plan::need::{NeedFile, RoleKeys, Vcpus, Wishes};
use weir_plan::proof::{Present, Proof, prove};
use weir_plan::{Outcome, Question, left_out, plan, report, within};

pub(crate) fn run(args: &PlanArgs, catalog: &Catalog) -> Result<u8, CliError> {
    if let Some(folder) = &args.fleet {
        return fleet::run(folder, args, catalog);
    }
    check(args)?;
    if !args.compare.is_empty() {
        return compare::run(args, catalog);
    }
    let (mut file, mut notes) = observed_need(args, catalog)?;
    let (need, assumed) = file.need()?;
    notes.extend(assumed);
    let mut wishes = file.wishes();
    let there = keep(&mut file, &mut wishes, catalog)?;
    notes.extend(wishes.keep.as_ref().and_then(Kept::note));
    let edition = edition(&file, there, catalog)?;
    let own = prices::own(args.prices.as_deref())?;
    let (book, of_prices) = prices::book(&file, edition, args.prices.as_deref(), &own)?;
    notes.splice(0..0, of_prices);
    let prices = book.as_ref();
    let question = Question { catalog, edition, prices, need: &need, wishes: &wishes };
    let mut outcome = match (args.budget, args.fastest) {
        (None, false) => plan(&question)?,
        (budget, _) => within(&question, budget)?,
    };
    let proof = match args.verify {
        true => Some(proof(args, &question, &mut outcome)?),
        false => None,
    };
    if matches!(outcome, Outcome::NotMet(_)) {
        notes.extend(left_out(&question)?);
    }
    let mut report = report::plan_report(edition, prices, &outcome, notes);
    let asks_latency = need.roles.iter().any(|own| own.latency.is_some());
    match proof {
        Some(proof) => report::add_proof(&mut report, proof),
        None if asks_latency && report.is_met => report.notes.push(
            "disks are chosen by latency without waits at limits; --verify simulates the plan with \
             them"
                .to_owned(),
        ),
        None => {}
    }
    let there = args.present.as_deref().or(file.keep.as_deref());
    if let Some(path) = there {
        present::price(&mut report, path, &question)?;
    }
    if let (Some(path), Some(plan)) = (&args.out, &report.plan) {
        let written = fs::write(path, &plan.layout);
        written.map_err(|source| CliError::write(path, source))?;
    }
    if let Some(path) = &args.html {
        fs::write(path, report.html()).map_err(|source| CliError::write(path, source))?;
    }
    output::print_detailed(&report, args.output.format(), args.verbose)?;
    Ok(if report.is_met { 0 } else { NO })
}

/// Simulates the need on the plan, and on the layout in use.
fn proof(
    args: &PlanArgs,
    question: &Question<'_>,
    outcome: &mut Outcome,
) -> Result<Proof, CliError> {
    let there = args.present.as_ref().map(|path| -> Result<(String, String), CliError> {
        let (text, _) = read_layout_text(path, question.catalog)?;
        Ok((path.display().to_string(), text))
    });
    let there = there.transpose()?;
    let present = there.as_ref().map(|(name, text)| Present { name, text });
    // The most that a budget or a machine allows leaves no extra capacity.
    let may_grow = args.budget.is_none() && !args.fastest;
    Ok(prove(question, outcome, present, may_grow)?)
}

/// Checks the options before anything is planned.
fn check(args: &PlanArgs) -> Result<(), CliError> {
    for (option, is_said) in [("--fewest", args.fewest), ("--quiet", args.quiet)] {
        if is_said {
            let words = format!("{option} needs --fleet DIR");
            return Err(CliError::Refused(words));
        }
    }
    let inputs = args
        .need
        .iter()
        .chain(&args.keep)
        .chain(&args.present)
        .chain(&args.prices)
        .chain(&args.from);
    for (option, path) in [("--out", &args.out), ("--html", &args.html)] {
        let Some(path) = path else { continue };
        if inputs.clone().any(|own| is_same(own, path)) {
            let words = format!("{option} {}: is an input file; use another name", path.display());
            return Err(CliError::Refused(words));
        }
        can_write(option, path)?;
    }
    if args.need.is_none() && args.from.is_empty() && args.size.is_none() {
        let words = "the stored size is missing: give --size SIZE with rates, or --need FILE, \
                     --from OBSERVATION or --fleet DIR";
        return Err(CliError::Refused(words.to_owned()));
    }
    Ok(())
}

/// Checks that a file can be written, before a plan is made.
pub(super) fn can_write(option: &str, out: &Path) -> Result<(), CliError> {
    if out.is_dir() {
        let words = format!("{option} {}: is a folder; give the name of a file", out.display());
        return Err(CliError::Refused(words));
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => {
            let (path, folder) = (out.to_owned(), folder.to_owned());
            Err(CliError::NoFolder { path, folder })
        }
        None => Ok(()),
    }
}

/// Reads the layout to keep, if there is one, into the constraints; returns its edition.
fn keep<'a>(
    file: &mut NeedFile,
    wishes: &mut Wishes,
    catalog: &'a Catalog,
) -> Result<Option<&'a Edition>, CliError> {
    let Some(path) = &file.keep else {
        if file.no_downtime {
            let words = "no_downtime needs keep, the layout in use";
            return Err(CliError::Refused(words.to_owned()));
        }
        return Ok(None);
    };
    let (_, layout) = read_layout_text(path, catalog)?;
    if file.region.is_none() {
        file.region.clone_from(&layout.region);
    }
    wishes.keep = Some(Kept::from_layout(&layout, file.no_downtime)?);
    Ok(Some(edition_there(path, &layout, catalog)?))
}

/// Returns the edition of a layout in use.
fn edition_there<'a>(
    path: &Path,
    layout: &Layout,
    catalog: &'a Catalog,
) -> Result<&'a Edition, CliError> {
    edition_of(layout, catalog)?.ok_or_else(|| {
        CliError::Refused(format!(
            "{}: the layout to keep has no edition, so the tiers of its disks are unknown; add \
             edition = \"NAME\" to it",
            path.display()
        ))
    })
}

/// Returns the edition to plan with: that of the layout in use, if there is one.
fn edition<'a>(
    file: &NeedFile,
    there: Option<&'a Edition>,
    catalog: &'a Catalog,
) -> Result<&'a Edition, CliError> {
    let said = file.edition.as_deref().map(|name| catalog.edition(name)).transpose()?;
    match (said, there) {
        (Some(said), Some(there)) if said.name() != there.name() => {
            Err(CliError::Refused(format!(
                "edition {}: the layout to keep has the edition {}; leave out one of the two",
                said.name(),
                there.name()
            )))
        }
        (Some(edition), _) | (None, Some(edition)) => Ok(edition),
        (None, None) => Ok(catalog.edition(EDITION)?),
    }
}

/// Reads the need file, the command line and the observation; returns the notes about them.
fn observed_need(args: &PlanArgs, catalog: &Catalog) -> Result<(NeedFile, Vec<String>), CliError> {
    let mut file = need_file(args)?;
    let notes = observed(&mut file, args, catalog)?;
    Ok((file, notes))
}

/// Fills the need from an observation, if there is one; returns the notes about it.
fn observed(
    file: &mut NeedFile,
    args: &PlanArgs,
    catalog: &Catalog,
) -> Result<Vec<String>, CliError> {
    let stray = [
        ("--as-observed", args.as_observed),
        ("--percentile", args.percentile.is_some()),
        ("--growth", args.growth.is_some()),
        ("--role", !args.role.is_empty()),
    ];
    if args.from.is_empty() {
        return match stray.into_iter().find(|(_, is_said)| *is_said) {
            Some((option, _)) => {
                let words = format!("{option} needs --from OBSERVATION");
                Err(CliError::Refused(words))
            }
            None => Ok(Vec::new()),
        };
    }
    let present = args.present.clone().or_else(|| file.keep.clone());
    observed::fill(file, &args.from, Measure::from_args(args), (present.as_deref(), catalog))
}

/// Reads the need file and applies the command line to it.
fn need_file(args: &PlanArgs) -> Result<NeedFile, CliError> {
    let mut file = match &args.need {
        Some(path) => {
            let text = fs::read_to_string(path)
                .map_err(|source| CliError::Read { path: path.clone(), source })?;
            NeedFile::read(&path.display().to_string(), &text)?
        }
        None => NeedFile::default(),
    };
    let data = RoleKeys {
        size: args.size,
        iops: args.iops,
        throughput: args.throughput,
        request: args.request,
        reads: args.reads.clone(),
        latency: args.latency,
        working_set: args.working_set,
        file: None,
    };
    let says_data = args.size.is_some()
        || args.iops.is_some()
        || args.throughput.is_some()
        || args.request.is_some()
        || args.reads.is_some()
        || args.latency.is_some()
        || args.working_set.is_some();
    if says_data && file.data.is_some() {
        let path = args.need.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let words = format!("both {path} and the command line describe [data]; leave out one");
        return Err(CliError::Refused(words));
    }
    if says_data {
        file.data = Some(data);
    }
    let set = |own: &mut Option<String>, said: &Option<String>| {
        if said.is_some() {
            own.clone_from(said);
        }
    };
    set(&mut file.edition, &args.edition);
    set(&mut file.region, &args.region);
    set(&mut file.currency, &args.currency);
    set(&mut file.os, &args.os);
    set(&mut file.headroom, &args.headroom);
    set(&mut file.host, &args.host);
    file.vcpus = args.vcpus.map(Vcpus::whole).or(file.vcpus);
    set(&mut file.engine, &args.engine);
    file.memory = args.memory.or(file.memory);
    file.max_disks = args.max_disks.or(file.max_disks);
    file.max_files = args.max_files.or(file.max_files);
    file.storage = args.storage.or(file.storage);
    file.apart = args.apart.or(file.apart);
    file.filesystem = args.filesystem.or(file.filesystem);
    file.keep = args.keep.clone().or_else(|| beside(args.need.as_deref(), file.keep.take()));
    file.no_downtime |= args.no_downtime;
    file.bursting = args.bursting.or(file.bursting);
    file.licence_owned |= args.licence_owned;
    if !args.family.is_empty() {
        file.families.clone_from(&args.family);
    }
    if !args.disks.is_empty() {
        file.disks.clone_from(&args.disks);
    }
    Ok(file)
}

/// Resolves a path of a need file against the folder of that file.
fn beside(file: Option<&Path>, path: Option<PathBuf>) -> Option<PathBuf> {
    let folder = file.and_then(Path::parent);
    path.map(|path| folder.map_or(path.clone(), |folder| folder.join(&path)))
}
