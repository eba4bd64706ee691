//! `weir observe percentiles`: IOPS, throughput and latency over time.

use super::import::offset;
use super::requirements::{ASKED, Rows, wanted};
use super::source::{Source, offset_in};
use crate::cli::ObservePercentilesArgs;
use crate::error::CliError;
use crate::output;
use std::collections::BTreeMap;
use weir_observe::load::Loads;
use weir_observe::when::Extent;
use weir_observe::{Contents, EntityId};
use weir_report::percentiles::{PercentilesReport, PercentilesRow};
use weir_units::{Instant, Span};

/// Maximum number of intervals in the table.
const MOST: u64 = 10_000;
/// Metrics shown by default.
const SHOWN: [&str; 3] = ["IOPS", "throughput", "latency"];

/// Intervals that begin at whole multiples of their length by the clock.
struct Stretches {
    each: i128,
    /// Time of the clock past such a multiple at the start of the observation.
    past: i128,
}

impl Stretches {
    fn new(extent: &Extent, each: Span, ahead: i64) -> Self {
        let each = i128::from(each.nanos());
        let start =
            extent.start_unix_ns.map(|start| i128::from(start) + i128::from(ahead) * 1_000_000_000);
        Self { each, past: start.map_or(0, |start| start.rem_euclid(each)) }
    }

    /// Returns the interval in which a sample ends. A sample that ends at a boundary belongs to the
    /// earlier interval.
    fn of_end(&self, at: Instant) -> i128 {
        (i128::from(at.nanos()) + self.past - 1).div_euclid(self.each)
    }

    /// Returns the start of an interval. The first one starts with the observation.
    fn begin(&self, stretch: i128) -> Instant {
        let nanos = (stretch * self.each - self.past).max(0);
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

pub(super) fn run(args: &ObservePercentilesArgs) -> Result<u8, CliError> {
    let source = Source::observation(&args.file)?;
    let (header, extent) = source.survey()?;
    let file = args.file.display();
    let extent = extent.ok_or_else(|| CliError::Refused(format!("{file}: it has no samples")))?;
    let places = places(&args.of)?;
    let contents = &header.contents;
    let wanted = wanted(contents, &args.only)?;
    let said = offset(args.utc_offset.as_ref())?;
    let ahead = said.or_else(|| offset_in(&header)).unwrap_or(0);
    let stretches = Stretches::new(&extent, args.each, ahead);
    let count = stretches.of_end(extent.last) - stretches.of_end(extent.first);
    if count > i128::from(MOST) {
        return Err(CliError::Refused(format!(
            "--each {}: this gives {count} intervals, and at most {MOST} are shown; give a longer \
             time",
            args.each
        )));
    }
    let mut report = PercentilesReport::default();
    let mut at_hand: Option<i128> = None;
    let mut each: BTreeMap<EntityId, Rows> = BTreeMap::new();
    let mut put = |stretch: i128, each: &mut BTreeMap<EntityId, Rows>| {
        let begin = stretches.begin(stretch);
        for (id, rows) in std::mem::take(each) {
            report.rows.extend(rows.some(&places).into_iter().map(|of| PercentilesRow {
                from: extent.written(begin, ahead),
                from_s: weir_report::number::float(begin.nanos()) / 1e9,
                name: name(contents, id),
                of,
            }));
        }
    };
    let mut loads = Loads::new(contents);
    source.each(|at, row| {
        let stretch = stretches.of_end(at);
        if let Some(before) = at_hand.replace(stretch).filter(|before| *before != stretch) {
            put(before, &mut each);
        }
        loads.sample(at, row, |entity, load| {
            if wanted.contains(&entity) {
                each.entry(entity).or_default().add(&load);
            }
        });
    })?;
    if let Some(last) = at_hand {
        put(last, &mut each);
    }
    if loads.restarts() > 0 {
        report.notes.push(format!(
            "counters decreased {} times, as after a restart; the time between two such values is \
             left out",
            loads.restarts()
        ));
    }
    if report.rows.is_empty() {
        report
            .notes
            .push("it has no rates over time: the rate of a counter needs two samples".to_owned());
    }
    output::print(&report, args.output.format())?;
    Ok(0)
}

/// Returns the indices in [`ASKED`] of the metrics to show.
fn places(of: &[String]) -> Result<Vec<usize>, CliError> {
    let key = |name: &str| name.to_lowercase().replace(' ', "-");
    let place = |wanted: &str| ASKED.iter().position(|(name, ..)| key(name) == key(wanted));
    if of.is_empty() {
        return Ok(SHOWN.iter().filter_map(|name| place(name)).collect());
    }
    let known = |wanted: &String| {
        let names = ASKED.iter().map(|(name, ..)| key(name)).collect::<Vec<_>>().join(", ");
        let refused = || format!("--of {wanted}: there is no such figure; there are: {names}");
        place(wanted).ok_or_else(|| CliError::Refused(refused()))
    };
    of.iter().map(known).collect()
}

/// Returns the name of an entity. A file is qualified by its database, since several databases can
/// have a file of the same name.
fn name(contents: &Contents, id: EntityId) -> String {
    let Some(own) = contents.entity(id) else { return String::new() };
    let parent = own.parent.and_then(|parent| contents.entity(parent));
    match parent.filter(|parent| parent.kind == weir_observe::EntityKind::Database) {
        Some(database) => format!("{}/{}", database.name, own.name),
        None => own.name.clone(),
    }
}
