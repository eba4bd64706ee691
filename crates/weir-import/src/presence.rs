//! Entities that are missing from some samples of an input.
//!
//! A rate holds for the sampling interval that ends at its sample. While an entity is in every
//! sample, this is the time since its last one. Otherwise the interval is recorded:
//!
//! ```text
//!  report          1      2      3      4      5
//!  sda           100    100      -      -    100     interval_ns at 5: one interval, not three
//!  sda, -z       100    100      0      0    100     idle devices are left out: zeros
//!  sdb, -z         -      -      -    300      -     idle_since_ns: the start of report 1
//! ```
//!
//! An input leaves out idle devices (`iostat -z`) if none of its devices is ever reported idle.
//! Without the option, an idle device is reported with zeros, so a missing device was removed and
//! its activity is unknown. Notes report both interpretations.
//!
//! A step several times as long as the step before, without a stated interval, is a gap too: the
//! collector was stopped. Such a sample is given the usual interval.

use crate::sheet::{At, Reports, Sheet};
use weir_observe::header::{Contents, Entity, EntityId, EntityKind, SeriesId};
use weir_observe::metric;
use weir_observe::metric::{BUSY, INTERVAL_NS, QUEUE_DEPTH};

/// An interval shorter than this fraction of the time since the sample before leaves a gap.
const SHORTER: f64 = 0.9;

/// A step longer than this multiple of the step before it has a gap, if no interval is stated.
pub(crate) const GAP: i64 = 3;

/// The name of an unnamed host.
const UNNAMED_HOST: &str = "host";

/// The presence of an input's entities in its samples.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    samples: u64,
    last: Option<At>,
    /// Time between the last two samples.
    step_ns: Option<i64>,
    /// Number of steps longer than the interval of their sample.
    gaps: u64,
    /// Number of samples in which a missing device was taken for idle.
    taken_for_idle: u64,
    entities: Vec<Followed>,
    /// Number of series known.
    series: usize,
    /// True if a device was ever reported idle.
    has_idle: bool,
    /// Hosts named by the input, up to two.
    hosts: Vec<String>,
    /// Entities that were idle until their first sample, which is the current one.
    pub(crate) idle_until_now: Vec<EntityId>,
}

#[derive(Debug, Clone, Default)]
struct Followed {
    /// Number of its last sample, from 1.
    seen: u64,
    is_device: bool,
    series: Vec<FollowedSeries>,
}

#[derive(Debug, Clone)]
struct FollowedSeries {
    id: SeriesId,
    is_rate: bool,
    /// True if it is zero while its entity is idle. Means of idle devices are unknown.
    is_zero_while_idle: bool,
    /// Number of the last sample with a value, from 1.
    seen: u64,
}

impl Presence {
    /// Completes the sample on `sheet`, which was taken at `at`.
    pub(crate) fn complete(&mut self, sheet: &mut Sheet, at: At) {
        let said_ns = sheet.interval_ns.take();
        if sheet.reports == Reports::Some {
            return;
        }
        let between_ns = self.last.replace(at).and_then(|last| nanos_between(last, at));
        let usual_ns = std::mem::replace(&mut self.step_ns, between_ns);
        // The rates of a run of iostat cover the whole step, however long it is.
        let may_stop = sheet.reports == Reports::All;
        let interval_ns = said_ns.or(usual_ns.filter(|usual| {
            may_stop
                && *usual > 0
                && between_ns.is_some_and(|step| step > usual.saturating_mul(GAP))
        }));
        let short_ns = interval_ns.zip(between_ns).and_then(|(said, between)| {
            #[expect(clippy::cast_precision_loss, reason = "only compared")]
            let is_short = (said as f64) < SHORTER * between as f64;
            is_short.then_some(said)
        });
        self.gaps += u64::from(short_ns.is_some());
        self.samples += 1;
        self.learn(&sheet.contents);
        self.has_idle |= self.entities.iter().any(|own| own.is_device && is_idle(sheet, own));
        let leaves_out_idle = sheet.reports == Reports::AllButIdle && !self.has_idle;
        let mut has_zeros = false;
        for (own, id) in self.entities.iter_mut().zip(0..) {
            let is_missing = own.series.iter().all(|own| sheet.row[own.id.0 as usize].is_none());
            let is_idle = leaves_out_idle && own.is_device;
            if is_missing && (!is_idle || own.seen == 0) {
                continue;
            }
            if is_missing {
                has_zeros = true;
                put_idle(sheet, own);
            }
            let was_missing = own.seen + 1 < self.samples;
            let misses_rates = own.take_rates(sheet, self.samples);
            let is_told = was_missing || misses_rates;
            if let Some(interval_ns) = short_ns.or(between_ns.filter(|_| is_told)) {
                #[expect(clippy::cast_precision_loss, reason = "intervals are far below 2^53 ns")]
                sheet.set(EntityId(id), &INTERVAL_NS, interval_ns as f64);
            }
            if is_idle && was_missing && own.seen == 0 {
                self.idle_until_now.push(EntityId(id));
            }
            own.seen = self.samples;
        }
        self.taken_for_idle += u64::from(has_zeros);
    }

    /// Returns two hosts, if an input that leaves out idle devices names more than one. Devices of
    /// one would be taken for idle in reports of the other.
    pub(crate) fn two_hosts(&self) -> Option<(&str, &str)> {
        match &self.hosts[..] {
            [one, other] => Some((one, other)),
            _ => None,
        }
    }

    /// Returns notes on gaps and on devices that were taken for idle.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.gaps > 0 {
            notes.push(format!(
                "{} gaps between its samples: rates do not extend over them",
                self.gaps
            ));
        }
        if self.taken_for_idle > 0 {
            let until = if self.has_idle {
                " until the first idle device was reported; a device that was missing later is \
                 unknown then"
            } else {
                ", as with iostat -z"
            };
            notes.push(format!(
                "devices that are missing from {} samples are assumed to be idle{until}",
                self.taken_for_idle
            ));
        }
        notes
    }

    /// Adds new entities and series.
    fn learn(&mut self, contents: &Contents) {
        let known = self.entities.len();
        let new = contents.entities.iter().skip(known);
        let is_named = |own: &&Entity| own.kind == EntityKind::Host && own.name != UNNAMED_HOST;
        let free = 2 - self.hosts.len();
        self.hosts.extend(new.clone().filter(is_named).map(|own| own.name.clone()).take(free));
        self.entities.extend(new.map(|entity| Followed {
            is_device: entity.kind == EntityKind::Volume,
            ..Followed::default()
        }));
        for (series, id) in contents.series.iter().zip(0..).skip(self.series) {
            if series.metric != INTERVAL_NS.name {
                let is_rate = metric::is_rate(&series.metric);
                let is_level = [BUSY.name, QUEUE_DEPTH.name].contains(&series.metric.as_str());
                let is_zero_while_idle = is_rate || is_level;
                let id = SeriesId(id);
                let own = FollowedSeries { id, is_rate, is_zero_while_idle, seen: 0 };
                self.entities[series.entity.0 as usize].series.push(own);
            }
        }
        self.series = contents.series.len();
    }
}

impl Followed {
    /// Marks the rates with a value in the sample of that number as seen, and returns whether one
    /// of them was missing from the sample before and seen earlier.
    fn take_rates(&mut self, sheet: &Sheet, sample: u64) -> bool {
        let mut misses = false;
        for own in self.series.iter_mut().filter(|own| own.is_rate) {
            if sheet.row[own.id.0 as usize].is_some() {
                misses |= own.seen > 0 && own.seen + 1 < sample;
                own.seen = sample;
            }
        }
        misses
    }
}

/// Returns whether an entity was reported without activity.
fn is_idle(sheet: &Sheet, own: &Followed) -> bool {
    let mut rates = own.series.iter().filter(|own| own.is_zero_while_idle).peekable();
    rates.peek().is_some() && rates.all(|own| sheet.row[own.id.0 as usize] == Some(0))
}

/// Writes zeros for the rates of an idle entity.
fn put_idle(sheet: &mut Sheet, own: &Followed) {
    for own in own.series.iter().filter(|own| own.is_zero_while_idle) {
        sheet.row[own.id.0 as usize] = Some(0);
    }
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
    use weir_observe::metric::READS_PER_S;

    /// A device in a sample: reads per second, and the interval in seconds if it is stated.
    type Told = (Option<i64>, Option<i64>);

    /// Completes samples of `sda` and `sdb`, ten seconds apart, and returns their values.
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
                let rate = value(READS_PER_S.name).map(|rate| rate / 1_000);
                (rate, value(INTERVAL_NS.name).map(|ns| ns / 1_000_000_000))
            }));
        }
        let idle = presence.idle_until_now.iter();
        let idle = idle.map(|id| sheet.contents.entities[id.0 as usize].name.clone());
        (all, idle.collect())
    }

    const NOTHING: Told = (None, None);

    #[test]
    fn devices_missing_from_reports_are_idle() {
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
    fn a_device_missing_from_reports_with_idle_ones_leaves_a_gap() {
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
    fn an_input_with_varying_devices_is_unchanged() {
        let samples = [[Some(5.0), None], [None, Some(1.0)], [Some(7.0), None]];
        let (told, _) = completed(Reports::Some, &samples);
        assert_eq!(told[2], [(Some(7), None), NOTHING]);
    }

    /// Completes samples of `sda`, and returns the stated intervals in seconds.
    fn intervals(samples: &[(u64, Option<f64>)]) -> (Vec<Option<i64>>, Vec<String>) {
        let (mut presence, mut sheet) = (Presence::default(), Sheet::default());
        sheet.reports = Reports::All;
        let disk = sheet.entity(EntityKind::Volume, "sda", None);
        let mut all = Vec::new();
        for (at_s, rate) in samples {
            sheet.clear();
            sheet.set(disk, &BUSY, 0.5);
            if let Some(rate) = rate {
                sheet.set(disk, &READS_PER_S, *rate);
            }
            presence.complete(&mut sheet, At::Since(at_s * 1_000_000_000));
            let id = sheet.contents.find(disk, INTERVAL_NS.name);
            all.push(id.and_then(|id| sheet.row[id.0 as usize]).map(|ns| ns / 1_000_000_000));
        }
        (all, presence.notes())
    }

    #[test]
    fn a_step_of_several_times_the_usual_one_is_a_gap() {
        let samples = [0, 10, 20, 920, 930, 2_000].map(|at_s| (at_s, Some(1.0)));
        let (told, notes) = intervals(&samples);
        assert_eq!(told, [None, None, None, Some(10), None, Some(10)]);
        assert_eq!(notes, ["2 gaps between its samples: rates do not extend over them"]);
        // A collector that continues at another pace has one gap at most.
        let (told, _) = intervals(&[0, 1, 2, 62, 122, 182].map(|at_s| (at_s, Some(1.0))));
        assert_eq!(told, [None, None, None, Some(1), None, None]);
    }

    #[test]
    fn a_rate_does_not_extend_over_samples_without_it() {
        let (told, _) = intervals(&[(0, Some(1.0)), (10, Some(1.0)), (25, None), (35, Some(9.0))]);
        assert_eq!(told, [None, None, None, Some(10)]);
    }

    #[test]
    fn a_stated_interval_counts_if_it_leaves_a_gap() {
        let (mut presence, mut sheet) = (Presence::default(), Sheet::default());
        sheet.reports = Reports::All;
        let disk = sheet.entity(EntityKind::Volume, "sda", None);
        for (at_s, said_s, expect_s) in [(0, 10, None), (11, 10, None), (900, 10, Some(10))] {
            sheet.clear();
            sheet.set(disk, &READS_PER_S, 1.0);
            sheet.interval_ns = Some(said_s * 1_000_000_000);
            presence.complete(&mut sheet, At::Since(at_s * 1_000_000_000));
            let id = sheet.contents.find(disk, INTERVAL_NS.name);
            let interval = id.and_then(|id| sheet.row[id.0 as usize]);
            assert_eq!(interval.map(|ns| ns / 1_000_000_000), expect_s, "at {at_s} s");
        }
    }
}
