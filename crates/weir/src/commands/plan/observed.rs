//! `weir plan --from`: what is needed, as an observation says it.

use crate::cli::{ImportArgs, PlanArgs};
use crate::commands::observe::Source;
use crate::error::CliError;
use std::path::PathBuf;
use weir_catalog::{Catalog, Edition};
use weir_diagnose::demand::{Demand, Estimate, estimate};
use weir_diagnose::system::Mapping;
use weir_diagnose::{Follow, Question};
use weir_layout::Layout;
use weir_observe::sizing::{Roles, Sized, Sizer};
use weir_observe::when::Hours;
use weir_observe::{Block, Header};
use weir_plan::need::NeedFile;
use weir_plan::share::in_percent;
use weir_report::number::{float, percent, rate, time, whole};
use weir_units::Span;

/// The default edition: offers of the present.
pub(crate) const EDITION: &str = "azure-now";

/// The default percentile: one sample in a hundred may ask for more.
const PERCENTILE: f64 = 99.0;

/// Shorter observations, in seconds, say little about hours and days.
const SHORT: f64 = 3_600.0;

/// Observations with fewer samples say little, too.
const FEW: u64 = 60;

/// Longer sampling intervals, in seconds, hide peaks.
const COARSE: f64 = 60.0;

/// A role is throttled if this share of its latency is waits at caps.
const THROTTLED: f64 = 0.1;

/// The way from an observation to a need.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Measure<'a> {
    percentile: f64,
    /// Growth in millionths of the observed rates and sizes.
    growth: u64,
    roles: &'a [(String, String)],
    /// True if the observed rates of a throttled system are used as they are.
    as_observed: bool,
    /// True if a size that neither the need nor the observation has is an error.
    is_size_asked: bool,
    /// The hours of the day to measure; all by default.
    hours: Option<Hours>,
}

impl<'a> Measure<'a> {
    pub(super) fn from_args(args: &'a PlanArgs) -> Self {
        let growth = args.growth.unwrap_or(0);
        let own = Self::new(args.percentile, growth, &args.role, args.as_observed);
        Self { is_size_asked: true, ..own }
    }

    pub(in crate::commands) fn new(
        percentile: Option<f64>,
        growth: u64,
        roles: &'a [(String, String)],
        as_observed: bool,
    ) -> Self {
        Self {
            percentile: percentile.unwrap_or(PERCENTILE),
            growth,
            roles,
            as_observed,
            is_size_asked: false,
            hours: None,
        }
    }

    /// Measures these hours of the day only, with the rates as observed.
    pub(in crate::commands) fn within(self, hours: Hours) -> Self {
        Self { hours: Some(hours), as_observed: true, ..self }
    }
}

/// Returns the layout of the observed system: the named one, or the one stored by a run of Weir.
/// Without a layout, the observation gives the limits.
fn layout_of(header: &Header, named: Option<Layout>, catalog: &Catalog) -> Option<Layout> {
    match (named, &header.layout) {
        (Some(layout), _) => Some(layout),
        (None, Some(kept)) => Layout::parse(&kept.name, &kept.text, catalog).ok(),
        (None, None) => None,
    }
}

/// Diagnoses an observation and estimates the demand of all throttled entities.
fn demands(
    source: &Source,
    header: &Header,
    layout: Option<&Layout>,
    (catalog, planned): (&Catalog, Option<&Edition>),
) -> Result<Vec<Demand>, CliError> {
    let mapping = Mapping::new();
    let contents = &header.contents;
    let edition = layout
        .and_then(|layout| layout.edition.as_deref())
        .and_then(|name| catalog.edition(name).ok());
    let question = |layout, edition| Question { layout, edition, catalog, mapping: &mapping };
    // A layout to keep may use other names for disks than the observation.
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

/// Raises the rates of a role to the demand of its throttled members; returns notes about that.
fn raise(own: &mut Sized, demands: &[Demand], as_observed: bool) -> Vec<String> {
    let mut notes = Vec::new();
    for demand in demands.iter().filter(|demand| own.entities.contains(&demand.entity)) {
        let (role, name) = (&own.role, &demand.name);
        let throttled = format!("{role}: {name} was throttled ({})", demand.because);
        let Some(estimate) = demand.estimate else {
            notes.push(format!(
                "{throttled}: its demand may exceed the observed rates by an unknown amount; \
                 allow for it with --growth"
            ));
            continue;
        };
        let Estimate { iops, in_flight, unloaded_ns, is_assumed, is_capped } = estimate;
        let how = format!(
            "with a queue depth of {}, it would reach {} IOPS at a latency of {}{}{}",
            rate(in_flight),
            rate(in_flight / (unloaded_ns / 1e9)),
            time(unloaded_ns),
            if is_assumed {
                ", the unloaded latency of the edition's medium, because every sample exceeded 1.5 \
                 times that"
            } else {
                ""
            },
            if is_capped { "; at most ten times the observed rate is assumed" } else { "" }
        );
        if as_observed {
            notes.push(format!("{throttled}; {how}: left out (--as-observed)"));
            continue;
        }
        let more = iops - demand.iops;
        own.iops += more;
        own.bytes = own.bytes.zip(own.request).map(|(bytes, request)| bytes + more * request);
        notes.push(format!(
            "{throttled}; {how}: planned for {} IOPS, an estimate of its demand, instead of the \
             observed {} (--as-observed plans for the observed rates)",
            rate(iops),
            rate(demand.iops)
        ));
    }
    notes
}

/// Fills `file` with the observed rates and sizes of each role; returns notes about them.
pub(in crate::commands) fn fill(
    file: &mut NeedFile,
    paths: &[PathBuf],
    measure: Measure<'_>,
    (present, catalog): (Option<Layout>, &Catalog),
) -> Result<Vec<String>, CliError> {
    let name = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let source = Source::any(paths, &ImportArgs::default())?;
    let (header, _) = source.survey()?;
    let contents = &header.contents;
    let said = Roles { said: measure.roles.iter().cloned().collect() };
    let mut sizer = Sizer::new(contents, &said).map_err(|(missing, known)| {
        let words = format!("{name}: has no {}; it has {}", missing.join(", "), known.join(", "));
        CliError::Refused(words)
    })?;
    if let Some(hours) = measure.hours {
        let start = header.start_unix_ns.ok_or_else(|| {
            CliError::Refused(format!("{name}: has no dates, so that it has no hours of the day"))
        })?;
        sizer = sizer.within(hours, start);
    }
    source.each(|at, row| sizer.sample(at, row))?;
    if measure.hours.is_some() && sizer.seconds() <= 0.0 {
        return Err(CliError::Refused(format!("{name}: has no samples of these hours of the day")));
    }
    let mut sized = sizer.finish(contents, measure.percentile / 100.0);
    if sized.is_empty() {
        return Err(CliError::Refused(format!(
            "{name}: has no rates to size from; it needs counters or rates of files or disks at \
             two times at least"
        )));
    }
    let mut notes = vec![format!(
        "{name}: {} observed; rates are the {} percentile of all samples{}",
        weir_report::number::time(sizer.seconds() * 1e9),
        ordinal(measure.percentile),
        match measure.growth {
            0 => String::new(),
            growth => format!(", plus {} % growth", in_percent(growth)),
        }
    )];
    let layout = layout_of(&header, present, catalog);
    let of_layout = layout.as_ref().and_then(|layout| layout.edition.as_deref());
    let planned = file.edition.as_deref().or(of_layout).unwrap_or(EDITION);
    let planned = catalog.edition(planned).ok();
    let demands = demands(&source, &header, layout.as_ref(), (catalog, planned))?;
    for own in &mut sized {
        // At a limit of 500 per second, a second may contain the end of the 501st request.
        own.iops = (own.iops - float(own.samples) / sizer.seconds().max(1.0)).max(0.0);
        let raised = raise(own, &demands, measure.as_observed);
        let keys = match own.role.as_str() {
            "data" => &mut file.data,
            "log" => &mut file.log,
            "tempdb" => &mut file.tempdb,
            _ => &mut file.backup,
        };
        let keys = keys.get_or_insert_default();
        keys.take_observed(own, measure.growth, &name)?;
        if measure.is_size_asked {
            keys.check_size(&own.role, &name)?;
        }
        notes.extend(said_of(own).filter(|_| raised.is_empty()));
        notes.extend(raised);
    }
    notes.extend(short(&sized, sizer.seconds()));
    if measure.roles.is_empty() && header.contents.entities.len() > 1 && sized.len() == 1 {
        notes.push(format!(
            "{} all count as {}; devices on top of each other count twice, so choose with --role \
             NAME=ROLE",
            sized[0].of.join(", "),
            sized[0].role
        ));
    }
    Ok(notes)
}

/// Returns the note about a role that was throttled.
fn said_of(own: &Sized) -> Option<String> {
    let waited = own.waited.filter(|part| *part > THROTTLED)?;
    Some(format!(
        "{}: {} of its latency were waits at caps, so it was throttled and its demand exceeds the \
         observed rates (weir diagnose names the cap); allow for it with --growth, or observe it \
         without the limit",
        own.role,
        percent(waited)
    ))
}

/// Returns notes about an observation that is short or coarse.
fn short(sized: &[Sized], seconds: f64) -> Vec<String> {
    let samples = sized.iter().map(|own| own.samples).max().unwrap_or(0);
    let mut notes = Vec::new();
    if seconds < SHORT || samples < FEW {
        notes.push(format!(
            "{samples} samples in {} miss the peaks of a day, a week and the end of a month; \
             observe for an hour at least, better a week",
            weir_report::number::time(seconds * 1e9)
        ));
    }
    if samples > 0 && seconds / float(samples) > COARSE {
        notes.push(format!(
            "the sampling interval is {}: shorter peaks are averaged out; sample every second",
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
