//! `weir plan --from`: what is needed, as an observation says it.

use crate::cli::{ImportArgs, PlanArgs};
use crate::commands::observe::Source;
use crate::commands::plan::EDITION;
use crate::commands::read_layout_text;
use crate::error::CliError;
use std::path::{Path, PathBuf};
use weir_catalog::{Catalog, Edition};
use weir_diagnose::demand::{Demand, Estimate, estimate};
use weir_diagnose::system::Mapping;
use weir_diagnose::{Follow, Question};
use weir_layout::Layout;
use weir_observe::sizing::{Roles, Sized, Sizer};
use weir_observe::{Block, Header};
use weir_plan::need::{NeedFile, in_percent};
use weir_report::number::{float, percent, rate, time, whole};
use weir_units::Span;

/// Where nothing else is said, one sample in a hundred may ask for more.
const PERCENTILE: f64 = 99.0;

/// What is shorter says little of the hours and days that come.
const SHORT: f64 = 3_600.0;

/// And so do fewer samples.
const FEW: u64 = 60;

/// Samples that are longer hide peaks within them.
const COARSE: f64 = 60.0;

/// Latency of which so much is spent at caps is that of somebody who is throttled.
const THROTTLED: f64 = 0.1;

/// How an observation becomes a need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measure<'a> {
    percentile: f64,
    /// In millionths of what was observed.
    growth: u64,
    roles: &'a [(String, String)],
    /// Whether rates of a throttled system are planned for as they were observed.
    as_observed: bool,
}

impl<'a> Measure<'a> {
    pub(super) fn of(args: &'a PlanArgs) -> Self {
        let percentile = args.percentile.unwrap_or(PERCENTILE);
        let (growth, as_observed) = (args.growth.unwrap_or(0), args.as_observed);
        Self { percentile, growth, roles: &args.role, as_observed }
    }
}

/// Reads the layout of the system that was observed: the one that the caller names, else the one
/// that a run of Weir keeps. Without one, limits are what the observation says.
fn layout_of(
    header: &Header,
    named: Option<&Path>,
    catalog: &Catalog,
) -> Result<Option<Layout>, CliError> {
    match (named, &header.layout) {
        (Some(path), _) => Ok(Some(read_layout_text(path, catalog)?.1)),
        (None, Some(kept)) => Ok(Layout::parse(&kept.name, &kept.text, catalog).ok()),
        (None, None) => Ok(None),
    }
}

/// Diagnoses what was observed, and estimates the demand of everything that is throttled.
fn demands(
    source: &Source,
    header: &Header,
    layout: Option<&Layout>,
    (catalog, planned): (&Catalog, Option<&Edition>),
) -> Result<Vec<Demand>, CliError> {
    let mapping = Mapping::new();
    let contents = &header.contents;
    let edition = layout.and_then(|layout| layout.edition.as_deref());
    let edition = edition.and_then(|name| catalog.edition(name).ok());
    let question = |layout, edition| Question { layout, edition, catalog, mapping: &mapping };
    // A layout to keep may name its disks in another way than the observation.
    let (question, system) = match question(layout, edition).system(contents) {
        Ok((system, _)) => (question(layout, edition), system),
        Err(_) => match question(None, None).system(contents) {
            Ok((system, _)) => (question(None, None), system),
            Err(_) => return Ok(Vec::new()),
        },
    };
    let mut pass = Follow::new(&system, contents);
    let mut block = Block::new(contents.series.len());
    source.each(|at, row| {
        block.push(at, row.iter().copied());
        if block.len() == Block::MOST {
            pass.samples(&block);
            block.clear();
        }
    })?;
    pass.samples(&block);
    let facts = pass.finish();
    Ok(question.answer(contents, &system, &facts, |case, found| estimate(case, &found, planned)))
}

/// Raises the rates of a role to the demand of its throttled members, and tells so.
fn raise(own: &mut Sized, demands: &[Demand], as_observed: bool) -> Vec<String> {
    let mut notes = Vec::new();
    for demand in demands.iter().filter(|demand| own.entities.contains(&demand.entity)) {
        let (role, name) = (&own.role, &demand.name);
        let throttled = format!("{role}: {name} was throttled ({})", demand.because);
        let Some(estimate) = demand.estimate else {
            notes.push(format!(
                "{throttled}: it may ask for more than was observed, and how much cannot be told; \
                 plan with --headroom"
            ));
            continue;
        };
        let Estimate { iops, in_flight, unloaded_ns, is_assumed, is_capped } = estimate;
        let how = format!(
            "{} requests were always in flight, which would do {} IOPS if each took {}{}{}",
            rate(in_flight),
            rate(in_flight / (unloaded_ns / 1e9)),
            time(unloaded_ns),
            if is_assumed {
                ", the latency of the edition's medium, as every sample took more than 1.5 times that"
            } else {
                ""
            },
            if is_capped {
                "; ten times the observed rate is the most that is assumed"
            } else {
                ""
            }
        );
        if as_observed {
            notes.push(format!("{throttled}; {how}: not planned for (--as-observed)"));
            continue;
        }
        let more = iops - demand.iops;
        own.iops += more;
        own.bytes = own.bytes.zip(own.request).map(|(bytes, request)| bytes + more * request);
        notes.push(format!(
            "{throttled}; {how}: planned for {} IOPS of it in place of the {} that were observed, \
             which is an estimate of its demand (--as-observed plans for what was observed)",
            rate(iops),
            rate(demand.iops)
        ));
    }
    notes
}

/// Puts into `file` what the observation in `paths` says of each role, and returns what is to be
/// said of it.
pub(super) fn fill(
    file: &mut NeedFile,
    paths: &[PathBuf],
    measure: Measure<'_>,
    (present, catalog): (Option<&Path>, &Catalog),
) -> Result<Vec<String>, CliError> {
    let name = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let source = Source::any(paths, &ImportArgs::default())?;
    let (header, _) = source.survey()?;
    let contents = &header.contents;
    let said = Roles { said: measure.roles.iter().cloned().collect() };
    let sizer = Sizer::new(contents, &said);
    let mut sizer = sizer.map_err(|(missing, known)| {
        let words = format!(
            "{name}: nobody in it is called {}; it has {}",
            missing.join(", "),
            known.join(", ")
        );
        CliError::Refused(words)
    })?;
    source.each(|at, row| sizer.sample(at, row))?;
    let mut sized = sizer.finish(contents, measure.percentile / 100.0);
    if sized.is_empty() {
        return Err(CliError::Refused(format!(
            "{name}: it says nothing of operations from one sample to the next, so there is nothing \
             to size from; it needs counters or rates of files or disks at two times at least"
        )));
    }
    let mut notes = vec![format!(
        "{name}: {} were observed; rates are the {} percentile of all samples{}",
        weir_report::number::time(sizer.seconds() * 1e9),
        ordinal(measure.percentile),
        match measure.growth {
            0 => String::new(),
            growth => format!(", and what was observed grows by {} %", in_percent(growth)),
        }
    )];
    let layout = layout_of(&header, present, catalog)?;
    let of_layout = layout.as_ref().and_then(|layout| layout.edition.as_deref());
    let planned = file.edition.as_deref().or(of_layout).unwrap_or(EDITION);
    let planned = catalog.edition(planned).ok();
    let demands = demands(&source, &header, layout.as_ref(), (catalog, planned))?;
    for own in &mut sized {
        // Where a limit lets 500 through each second, a second may see the end of 501.
        own.iops = (own.iops - float(own.samples) / sizer.seconds().max(1.0)).max(0.0);
        let raised = raise(own, &demands, measure.as_observed);
        let keys = match own.role.as_str() {
            "data" => &mut file.data,
            "log" => &mut file.log,
            "tempdb" => &mut file.tempdb,
            _ => &mut file.backup,
        };
        keys.get_or_insert_default().take_observed(own, measure.growth, &name)?;
        notes.extend(said_of(own).filter(|_| raised.is_empty()));
        notes.extend(raised);
    }
    notes.extend(short(&sized, sizer.seconds()));
    if measure.roles.is_empty() && header.contents.entities.len() > 1 && sized.len() == 1 {
        notes.push(format!(
            "all of {} are taken for {}; where devices lie on each other they count twice: choose \
             with --role NAME=ROLE",
            sized[0].of.join(", "),
            sized[0].role
        ));
    }
    Ok(notes)
}

/// What is to be said of a role.
fn said_of(own: &Sized) -> Option<String> {
    let waited = own.waited.filter(|part| *part > THROTTLED)?;
    Some(format!(
        "{}: {} of its latency were spent waiting at caps: it was throttled, and asks for more than \
         was seen (weir diagnose says which cap); plan with --headroom, or observe where it is not",
        own.role,
        percent(waited)
    ))
}

/// What is lacking where an observation is short or coarse.
fn short(sized: &[Sized], seconds: f64) -> Vec<String> {
    let samples = sized.iter().map(|own| own.samples).max().unwrap_or(0);
    let mut notes = Vec::new();
    if seconds < SHORT || samples < FEW {
        notes.push(format!(
            "{samples} samples in {} are little to size from: peaks of a day, a week and the end of \
             the month are not in it; observe an hour at least, better a week",
            weir_report::number::time(seconds * 1e9)
        ));
    }
    if samples > 0 && seconds / float(samples) > COARSE {
        notes.push(format!(
            "a sample is {} long: what is shorter than that is averaged away; observe every second",
            Span::from_secs(whole((seconds / float(samples)).ceil()))
        ));
    }
    notes
}

fn ordinal(n: f64) -> String {
    let text = n.to_string();
    let is_teen = ["11", "12", "13"].iter().any(|teen| text.ends_with(teen));
    let end = match text.chars().last() {
        _ if is_teen || text.contains('.') => "th",
        Some('1') => "st",
        Some('2') => "nd",
        Some('3') => "rd",
        _ => "th",
    };
    format!("{text}{end}")
}
