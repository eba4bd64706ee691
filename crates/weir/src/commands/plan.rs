//! `weir plan`: the cheapest layout that meets a need.

mod compare;
mod fleet;
mod need;
mod present;
pub(super) mod prices;

pub(super) use crate::input::is_same;

use super::page;
use crate::cli::PlanArgs;
use crate::error::{CliError, NO};
use crate::input::{edition_of, read_layout_text};
use crate::output;
use need::observed_need;
use std::fs;
use std::path::Path;
use weir_catalog::{Catalog, Edition};
use weir_layout::Layout;
use weir_plan::keep::Kept;
use weir_plan::need::{NeedFile, Wishes};
use weir_plan::proof::{Present, Proof, prove};
use weir_plan::{DEFAULT_EDITION, Outcome, Question, left_out, plan, report, within};

pub(crate) fn run(args: &PlanArgs, catalog: &Catalog) -> Result<u8, CliError> {
    if let Some(folder) = &args.fleet {
        return fleet::run(folder, args, catalog);
    }
    check(args)?;
    if !args.compare.is_empty() {
        return compare::run(args, catalog);
    }
    let (mut file, mut notes) = observed_need(args, catalog)?;
    let (mut need, assumed) = file.need()?;
    notes.extend(assumed);
    let mut wishes = file.wishes();
    let there = keep(&mut file, &mut wishes, catalog)?;
    notes.extend(wishes.keep.as_ref().and_then(Kept::note));
    wishes.needs_limits = args.budget.is_some() || args.fastest;
    let edition = edition(&file, there, catalog)?;
    let kept = wishes.keep.as_ref();
    notes.extend(kept.and_then(|kept| kept.no_smaller(&file, &mut need, edition)));
    if args.prices.is_some() {
        // A layout names only regions of the edition's own prices.
        wishes.region = None;
    }
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
    match proof {
        Some(proof) => report::add_proof(&mut report, proof),
        None => {
            let is_least = args.budget.is_none() && !args.fastest;
            let notes = report::notes_without_proof(&need, &report, is_least);
            report.notes.extend(notes);
        }
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
        page::write(path, &report.page()?)?;
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
    wishes.region.clone_from(&file.region);
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
        (None, None) => Ok(catalog.edition(DEFAULT_EDITION)?),
    }
}
