//! Entities that are missing from some samples of an input.
//!
//! A rate holds for the sampling interval that ends at its sample. As long as an entity is in every
//! sample, that is the time since its last one. Where it is not, the difference is said:
//!
//! ```text
//!  report          1      2      3      4      5
//!  sda           100    100      -      -    100     interval_ns at 5: one interval, not three
//!  sda, -z       100    100      0      0    100     idle devices are left out: zeros
//!  sdb, -z         -      -      -    300      -     idle_since_ns: the start of report 1
//! ```
//!
//! Reports leave out idle devices (`iostat -z`) if none of their devices ever is idle: without the
//! option an idle device is reported with zeros. Then a device that is missing was removed, and
//! what it did is unknown.

use super::measure::{BUSY, INTERVAL_NS, QUEUE_DEPTH};
use super::sheet::{At, Sheet};
use crate::header::{Contents, EntityId, EntityKind, SeriesId};
use crate::metric;

/// Which entities an input reports in each sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reports {
    /// Some at one time, others at another.
    #[default]
    Some,
    /// All of them.
    All,
    /// All of them, or all that were not idle.
    AllButIdle,
}

/// A sampling interval shorter than this part of the time since the sample before leaves a gap.
const SHORTER: f64 = 0.9;

/// Follows which entities of an input are in its samples.
#[derive(Debug, Default)]
pub(super) struct Presence {
    samples: u64,
    last: Option<At>,
    entities: Vec<Followed>,
    /// How many series are known.
    series: usize,
    /// A device was reported idle.
    has_idle: bool,
    /// Entities that were idle until now, whose first sample is at hand.
    pub(super) idle_until_now: Vec<EntityId>,
}

#[derive(Debug, Clone, Default)]
struct Followed {
    /// The number of the last sample that it was in, from 1.
    seen: u64,
    is_device: bool,
    series: Vec<SeriesId>,
}

impl Presence {
    /// Completes the sample on `sheet`, which was taken at `at`.
    pub(super) fn complete(&mut self, sheet: &mut Sheet, at: At) {
        let said_ns = sheet.interval_ns.take();
        if sheet.reports == Reports::Some {
            return;
        }
        let between_ns = self.last.replace(at).and_then(|last| nanos_between(last, at));
        let short_ns = said_ns.zip(between_ns).and_then(|(said, between)| {
            #[expect(clippy::cast_precision_loss, reason = "only compared")]
            let is_short = (said as f64) < SHORTER * between as f64;
            is_short.then_some(said)
        });
        self.samples += 1;
        self.learn(&sheet.contents);
        self.has_idle |= self.entities.iter().any(|own| own.is_device && is_idle(sheet, own));
        let leaves_out_idle = sheet.reports == Reports::AllButIdle && !self.has_idle;
        for (own, id) in self.entities.iter_mut().zip(0..) {
            let is_missing = own.series.iter().all(|id| sheet.row[id.0 as usize].is_none());
            let is_idle = leaves_out_idle && own.is_device;
            if is_missing && (!is_idle || own.seen == 0) {
                continue;
            }
            if is_missing {
                put_idle(sheet, own);
            }
            let was_missing = own.seen + 1 < self.samples;
            if let Some(interval_ns) = short_ns.or(between_ns.filter(|_| was_missing)) {
                #[expect(clippy::cast_precision_loss, reason = "intervals are far below 2^53 ns")]
                sheet.set(EntityId(id), &INTERVAL_NS, interval_ns as f64);
            }
            if is_idle && was_missing && own.seen == 0 {
                self.idle_until_now.push(EntityId(id));
            }
            own.seen = self.samples;
        }
    }

    /// Takes in the entities and series that are new.
    fn learn(&mut self, contents: &Contents) {
        let known = self.entities.len();
        let new = contents.entities.iter().skip(known);
        self.entities.extend(new.map(|entity| Followed {
            is_device: entity.kind == EntityKind::Volume,
            ..Followed::default()
        }));
        for (series, id) in contents.series.iter().zip(0..).skip(self.series) {
            if series.metric != INTERVAL_NS.metric {
                self.entities[series.entity.0 as usize].series.push(SeriesId(id));
            }
        }
        self.series = contents.series.len();
    }
}

/// Whether an entity was reported, and did nothing.
fn is_idle(sheet: &Sheet, own: &Followed) -> bool {
    let mut rates = own.series.iter().filter(|id| is_rate(sheet, **id)).peekable();
    rates.peek().is_some() && rates.all(|id| sheet.row[id.0 as usize] == Some(0))
}

/// Puts zeros where an entity that does something has rates.
fn put_idle(sheet: &mut Sheet, own: &Followed) {
    for id in &own.series {
        if is_rate(sheet, *id) {
            sheet.row[id.0 as usize] = Some(0);
        }
    }
}

/// Whether a series is zero while its entity is idle. Means of idle devices are unknown.
fn is_rate(sheet: &Sheet, id: SeriesId) -> bool {
    let metric = sheet.contents.series[id.0 as usize].metric.as_str();
    metric::is_rate(metric) || [BUSY.metric, QUEUE_DEPTH.metric].contains(&metric)
}

fn nanos_between(earlier: At, later: At) -> Option<i64> {
    match (earlier, later) {
        (At::Wall(earlier), At::Wall(later)) => later.checked_sub(earlier),
        (At::Since(earlier), At::Since(later)) => i64::try_from(later.checked_sub(earlier)?).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::measure::READS_PER_S;

    /// What devices have in a sample: reads a second and the interval, in seconds, if it is said.
    type Told = (Option<i64>, Option<i64>);

    /// Completes samples of `sda` and `sdb`, ten seconds apart, and tells what they have then.
    fn completed(reports: Reports, samples: &[[Option<f64>; 2]]) -> (Vec<[Told; 2]>, Vec<String>) {
        let (mut presence, mut sheet) = (Presence::default(), Sheet::default());
        sheet.reports = reports;
        let host = sheet.entity(EntityKind::Host, "host", None);
        let mut all = Vec::new();
        for (sample, rates) in (1..).zip(samples) {
            sheet.clear();
            for (name, rate) in ["sda", "sdb"].iter().zip(rates) {
                if let Some(rate) = rate {
                    let disk = sheet.entity(EntityKind::Volume, name, Some(host));
                    sheet.set(disk, &READS_PER_S, *rate);
                }
            }
            presence.complete(&mut sheet, At::Wall(sample * 10_000_000_000));
            all.push(["sda", "sdb"].map(|name| {
                let disk = sheet.contents.entities.iter().position(|own| own.name == name);
                let value = |metric: &str| {
                    let id = EntityId(u32::try_from(disk?).ok()?);
                    sheet.row[sheet.contents.find(id, metric)?.0 as usize]
                };
                let rate = value(READS_PER_S.metric).map(|rate| rate / 1_000);
                (rate, value(INTERVAL_NS.metric).map(|ns| ns / 1_000_000_000))
            }));
        }
        let idle = presence.idle_until_now.iter();
        let idle = idle.map(|id| sheet.contents.entities[id.0 as usize].name.clone());
        (all, idle.collect())
    }

    const NOTHING: Told = (None, None);

    #[test]
    fn devices_that_reports_leave_out_are_idle() {
        let samples = [[Some(5.0), None], [None, None], [Some(7.0), Some(9.0)], [None, Some(9.0)]];
        let (told, idle) = completed(Reports::AllButIdle, &samples);
        let zero = (Some(0), None);
        assert_eq!(told[0], [(Some(5), None), NOTHING]);
        assert_eq!(told[1], [zero, NOTHING]);
        assert_eq!(told[2], [(Some(7), None), (Some(9), Some(10))]);
        assert_eq!(told[3], [zero, (Some(9), None)]);
        assert_eq!(idle, ["sdb"]);
    }

    #[test]
    fn a_device_that_is_missing_where_idle_ones_are_reported_leaves_a_gap() {
        let samples =
            [[Some(5.0), Some(0.0)], [None, Some(1.0)], [None, Some(0.0)], [Some(7.0), None]];
        for reports in [Reports::AllButIdle, Reports::All] {
            let (told, idle) = completed(reports, &samples);
            assert_eq!(told[1], [NOTHING, (Some(1), None)]);
            assert_eq!(told[3], [(Some(7), Some(10)), NOTHING]);
            assert_eq!(idle, [""; 0]);
        }
    }

    #[test]
    fn an_input_that_reports_some_at_a_time_is_left_alone() {
        let samples = [[Some(5.0), None], [None, Some(1.0)], [Some(7.0), None]];
        let (told, _) = completed(Reports::Some, &samples);
        assert_eq!(told[2], [(Some(7), None), NOTHING]);
    }

    #[test]
    fn a_sampling_interval_that_is_said_counts_if_it_leaves_a_gap() {
        let (mut presence, mut sheet) = (Presence::default(), Sheet::default());
        sheet.reports = Reports::All;
        let disk = sheet.entity(EntityKind::Volume, "sda", None);
        for (at_s, said_s, expect_s) in [(0, 10, None), (11, 10, None), (900, 10, Some(10))] {
            sheet.clear();
            sheet.set(disk, &READS_PER_S, 1.0);
            sheet.interval_ns = Some(said_s * 1_000_000_000);
            presence.complete(&mut sheet, At::Since(at_s * 1_000_000_000));
            let id = sheet.contents.find(disk, INTERVAL_NS.metric);
            let interval = id.and_then(|id| sheet.row[id.0 as usize]);
            assert_eq!(interval.map(|ns| ns / 1_000_000_000), expect_s, "at {at_s} s");
        }
    }
}
