//! `weir plan --fleet`: many databases onto managed instances.

use super::need::measure_of_plan;
use super::prices;
use crate::cli::PlanArgs;
use crate::commands::measured::fill;
use crate::commands::page;
use crate::error::{CliError, NO};
use crate::input::is_same;
use crate::output;
use crate::progress::Planning;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use weir_catalog::{Catalog, Edition};
use weir_layout::ManagedInstance;
use weir_plan::fleet::FleetInstance;
use weir_plan::need::{NeedFile, Wishes};
use weir_plan::verify::{Got, How, Load, verify_all};
use weir_plan::{FleetOutcome, FleetQuestion, Member, plan_fleet_watched, report};
use weir_report::fleet::FleetReport;

/// The default edition: managed instances of the present.
const EDITION: &str = "azure-mi-now";

/// Checks `--out` before a plan is made.
fn check_out(folder: &Path, args: &PlanArgs) -> Result<(), CliError> {
    if let Some(out) = args.out.as_ref().filter(|out| is_same(out, folder)) {
        let words = format!("--out {}: is the folder of the needs; use another", out.display());
        return Err(CliError::Refused(words));
    }
    if let Some(out) = args.out.as_ref().filter(|out| out.exists() && !out.is_dir()) {
        let words = format!(
            "--out {}: is a file; give a folder for the layouts of the instances",
            out.display()
        );
        return Err(CliError::Refused(words));
    }
    Ok(())
}

pub(super) fn run(folder: &Path, args: &PlanArgs, catalog: &Catalog) -> Result<u8, CliError> {
    check_out(folder, args)?;
    let (members, mut notes) = members(folder, args, catalog)?;
    let wishes = Wishes {
        families: args.family.clone(),
        host: args.host.clone(),
        max_files: args.max_files,
        storage: args.storage,
        has_licence: args.licence_owned,
        ..Wishes::default()
    };
    let edition = catalog.edition(args.edition.as_deref().unwrap_or(EDITION))?;
    check(args, edition)?;
    let own = prices::own(args.prices.as_deref())?;
    let keys = NeedFile {
        region: args.region.clone(),
        currency: args.currency.clone(),
        ..NeedFile::default()
    };
    let (book, left_out) = prices::book(&keys, edition, args.prices.as_deref(), &own)?;
    notes.splice(0..0, left_out);
    let question = FleetQuestion {
        catalog,
        edition,
        prices: book.as_ref(),
        members: &members,
        wishes: &wishes,
        is_fewest: args.fewest,
        effort: weir_plan::fleet::Effort::default(),
    };
    let progress = Planning::start(members.len(), args.quiet);
    let outcome = plan_fleet_watched(&question, &|now| progress.at(now));
    drop(progress);
    let outcome = outcome?;
    let mut report = report::fleet_report(edition, book.as_ref(), &members, &outcome, notes);
    if let (FleetOutcome::Met(plan), true) = (&outcome, args.verify) {
        verified(&mut report, &plan.instances, &members, catalog)?;
    }
    if let Some(path) = args.out.as_ref().filter(|_| report.is_met) {
        write(path, &report)?;
    }
    if let Some(path) = &args.html {
        page::write(path, &report.page())?;
    }
    output::print(&report, args.output.format())?;
    Ok(if report.is_met { 0 } else { NO })
}

/// Checks that the constraints apply to the families to use.
fn check(args: &PlanArgs, edition: &Edition) -> Result<(), CliError> {
    let is_used = |name: &str| args.family.is_empty() || args.family.iter().any(|own| own == name);
    let gp = ManagedInstance::Gp.name();
    if args.max_files.is_some() && !is_used(gp) {
        let families = args.family.join(", ");
        let words = format!("--max-files applies to {gp}, not to {families}; leave it out");
        return Err(CliError::Refused(words));
    }
    let Some(host) = &args.host else { return Ok(()) };
    let series = edition.series_of(edition.host(host)?);
    match series.is_some_and(|series| is_used(&series.name)) {
        true => Ok(()),
        false => {
            let families = args.family.join(", ");
            Err(CliError::Refused(format!("--host {host}: is not in the families {families}")))
        }
    }
}

/// The files of a database: its need, its observation, or both.
#[derive(Default)]
struct Said {
    need: Option<PathBuf>,
    observed: Option<PathBuf>,
}

/// Returns the files of a folder by database, and the names of all other files.
fn files(folder: &Path) -> Result<(BTreeMap<OsString, Said>, Vec<String>), CliError> {
    let read = |source| CliError::Read { path: folder.to_owned(), source };
    let (mut said, mut ignored): (BTreeMap<OsString, Said>, _) = (BTreeMap::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        let is = |end: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(end));
        let name = path.file_stem().map(OsString::from).unwrap_or_default();
        let place = if is(NEED) {
            &mut said.entry(name.clone()).or_default().need
        } else if is(OBSERVATION) {
            &mut said.entry(name.clone()).or_default().observed
        } else {
            ignored.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            continue;
        };
        if place.replace(path).is_some() {
            return Err(twice(&name.to_string_lossy()));
        }
    }
    ignored.sort();
    Ok((said, ignored))
}

fn twice(name: &str) -> CliError {
    let words = format!("{name} exists twice, in upper and lower case; rename one");
    CliError::Refused(words)
}

/// Reads the databases of a folder, by name: a need file or an observation for each.
fn members(
    folder: &Path,
    args: &PlanArgs,
    catalog: &Catalog,
) -> Result<(Vec<Member>, Vec<String>), CliError> {
    let (said, ignored) = files(folder)?;
    let has_observations = said.values().any(|own| own.observed.is_some());
    let is_said = args.percentile.is_some()
        || args.growth.is_some()
        || args.as_observed
        || !args.role.is_empty();
    if is_said && !has_observations {
        let words = format!(
            "--percentile, --growth, --role and --as-observed need observations; {} has no \
             DATABASE.{OBSERVATION}",
            folder.display()
        );
        return Err(CliError::Refused(words));
    }
    if said.is_empty() {
        let words = format!(
            "{} has no need files; add one for each database: DATABASE.{NEED} with [data], [log] \
             and vcpus, or DATABASE.{OBSERVATION}",
            folder.display()
        );
        return Err(CliError::Refused(words));
    }
    if !ignored.is_empty() {
        output::talk(&format!("weir: ignored: {}", some(&ignored)));
    }
    let (mut all, mut notes) = (Vec::new(), Vec::new());
    for (name, own) in &said {
        let Some(name) = name.to_str() else {
            let file = folder.join(name).display().to_string();
            return Err(CliError::Refused(format!(
                "{file}: its name is not valid UTF-8; rename it"
            )));
        };
        let mut keys = NeedFile::default();
        if let Some(path) = &own.need {
            let text = fs::read_to_string(path)
                .map_err(|source| CliError::Read { path: path.clone(), source })?;
            keys = NeedFile::read(&path.display().to_string(), &text)?;
        }
        if let Some(path) = &own.observed {
            let paths = std::slice::from_ref(path);
            notes.extend(fill(&mut keys, paths, &measure_of_plan(args), (None, catalog))?);
        }
        let (member, own) = keys.member(name)?;
        all.push(member);
        notes.extend(own.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
    }
    let mut names: Vec<String> = all.iter().map(|own: &Member| own.name.to_lowercase()).collect();
    names.sort();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(twice(&pair[0]));
    }
    let idle = all.iter().filter(|own| own.millicores == 0).count();
    if idle > 0 {
        notes.push(format!(
            "{idle} of {} databases have no vcpus and count as idle; instances are sized for the \
             rest",
            all.len()
        ));
    }
    Ok((all, notes))
}

/// Lists the first of many names.
fn some(names: &[String]) -> String {
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Number of ignored files that are named.
const NAMED: usize = 8;

/// The extensions of need files and observations, in upper or lower case.
const NEED: &str = "toml";
const OBSERVATION: &str = "weirobs";

/// Simulates the databases of each instance on its layout. If one fails, there is no plan.
fn verified(
    report: &mut FleetReport,
    instances: &[FleetInstance],
    members: &[Member],
    catalog: &Catalog,
) -> Result<(), CliError> {
    let mut defects = Vec::new();
    for (host, own) in report.instances.iter_mut().zip(instances) {
        let loads: Vec<Load<'_>> = own
            .members
            .iter()
            .map(|member: &usize| {
                let own = &members[*member];
                Load { database: Some(own.name.as_str()), need: &own.need }
            })
            .collect();
        let got = verify_all(&host.name, &host.plan.layout, &loads, catalog, How::default())?;
        let least = got.iter().map(|(_, got)| Got::part(got)).fold(1.0, f64::min);
        host.verified = Some(least);
        if !got.iter().all(|(_, got)| got.is_met()) {
            report.is_met = false;
            let slow = got.iter().find(|(_, got)| !got.is_fast());
            defects.push(match slow.filter(|_| got.iter().all(|(_, got)| got.has_rate())) {
                Some((member, got)) => format!(
                    "{}: the median latency of {} of {} is {}, above its target, because requests \
                     wait for those of other databases; plan it on an instance of its own, or \
                     allow more time",
                    host.name,
                    got.role.name(),
                    members[own.members[*member]].name,
                    weir_report::number::time(weir_report::number::float(got.median))
                ),
                None => format!(
                    "{} fails its own simulation, so there is no plan: this is a defect of the \
                     planner",
                    host.name
                ),
            });
        }
    }
    if !defects.is_empty() {
        // A failed plan is not printed.
        report.instances.clear();
        (report.month, report.bound, report.gap, report.goal) = (None, None, None, None);
        report.notes.extend(defects);
    }
    Ok(())
}

/// Writes a layout for each instance.
fn write(folder: &Path, report: &FleetReport) -> Result<(), CliError> {
    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |source| CliError::write(&path, source)
    };
    fs::create_dir_all(folder).map_err(wrong(folder))?;
    // Layouts of an older plan would be built together with this one.
    for entry in fs::read_dir(folder).map_err(wrong(folder))? {
        let name = entry.map_err(wrong(folder))?.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("instance").and_then(|name| name.strip_suffix(".toml"));
        let number: Option<usize> = number.and_then(|number| number.parse().ok());
        if number.is_some_and(|number| number == 0 || number > report.instances.len()) {
            let words = format!(
                "--out {}: {name} is not one of the {} instances of this plan; remove it, or use \
                 another folder",
                folder.display(),
                report.instances.len()
            );
            return Err(CliError::Refused(words));
        }
    }
    for own in &report.instances {
        let path = folder.join(format!("{}.toml", own.name));
        fs::write(&path, &own.plan.layout).map_err(wrong(&path))?;
    }
    Ok(())
}
