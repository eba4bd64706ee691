//! Single-report runs of `iostat`: averages since the start of the machine, or rates of intervals.
//!
//! An average since the start falls slowly, because its count never decreases:
//!
//! ```text
//!  average after / average before >= uptime before / uptime after
//! ```
//!
//! The uptime at a report is at least the time since the first report, unless the machine
//! restarted in between. A rate that falls faster implies a restart. Reports that imply one every
//! few steps are of intervals. Reports that imply none are averages, or too few or too even to
//! tell. With an occasional restart, or with averages at every second or third report, the kind is
//! unknown. Rates that may be averages are left out.

use super::report::Report;
use std::collections::BTreeMap;

/// Rates per second below this are mostly rounding.
const LEAST: f64 = 0.2;
/// The rounding of a rate, and of a time in seconds.
const ROUNDING: f64 = 0.01;
const SECOND: f64 = 1e9;
/// The fewest steps per plausible restart of a machine.
const STEPS: usize = 4;
/// The number of evenly spaced reports without an implied restart that makes them averages.
const SOME: usize = 5;

/// The rates of the only report of a run.
#[derive(Debug)]
pub(super) struct Single {
    at: Option<i64>,
    /// Its metrics, which distinguish reports of different options.
    pub(super) metrics: Vec<&'static str>,
    rates: BTreeMap<(String, &'static str), f64>,
}

impl Single {
    pub(super) fn new(report: &impl Report) -> Self {
        let counts = report.counts();
        let mut metrics: Vec<_> = counts.keys().map(|(_, metric)| *metric).collect();
        metrics.sort_unstable();
        metrics.dedup();
        let owned = |((device, metric), rate): ((&str, _), _)| ((device.to_owned(), metric), rate);
        Self { at: report.at(), metrics, rates: counts.into_iter().map(owned).collect() }
    }
}

/// Returns whether reports with the same metrics are of intervals, as far as they show it.
pub(super) fn are_intervals(reports: &[Single]) -> bool {
    let starts = starts(reports.iter());
    if starts < 2 || starts * STEPS < reports.len() - 1 {
        return false;
    }
    let has_averages = |pace: usize, first: usize| {
        let own = || reports.iter().skip(first).step_by(pace);
        own().count() >= SOME && self::starts(own()) == 0
    };
    !(2..=3).any(|pace| (0..pace).any(|first| has_averages(pace, first)))
}

/// Returns the least number of restarts between reports, if they are averages.
fn starts<'a>(reports: impl Iterator<Item = &'a Single> + Clone) -> usize {
    let (mut starts, mut uptime) = (0, 0.0);
    for (before, after) in reports.clone().zip(reports.skip(1)) {
        // Without times, reports are assumed to be evenly spaced.
        let step = before.at.zip(after.at).and_then(|(one, other)| other.checked_sub(one));
        #[expect(clippy::cast_precision_loss, reason = "only compared")]
        let step = step.map_or(1.0, |nanos| (nanos as f64 / SECOND).max(0.0));
        let least = uptime / (uptime + step).max(f64::MIN_POSITIVE);
        let falls = |(key, rate): (&(String, &'static str), &f64)| {
            let now = after.rates.get(key);
            *rate >= LEAST && now.is_some_and(|now| now + ROUNDING < least * (rate - ROUNDING))
        };
        if before.rates.iter().any(falls) {
            starts += 1;
            uptime = 0.0;
        } else {
            uptime += step;
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks reports a minute apart, by their rates of reads and writes.
    #[track_caller]
    fn check(rates: &[[f64; 2]], expect: bool) {
        let single = |(minute, own): (i64, &[f64; 2])| {
            let metrics = vec!["reads", "writes"];
            let pairs = metrics.iter().zip(own);
            let rates = pairs.map(|(metric, rate)| (("sda".to_owned(), *metric), *rate));
            Single { at: Some(minute * 60_000_000_000), rates: rates.collect(), metrics }
        };
        let reports: Vec<_> = (0..).zip(rates).map(single).collect();
        assert_eq!(are_intervals(&reports), expect);
    }

    /// Returns averages at these minutes after a start, of a load that changes.
    fn averages(minutes: std::ops::Range<u32>) -> Vec<[f64; 2]> {
        let mut counts = [0.0, 0.0];
        let mut all = Vec::new();
        for minute in 0..minutes.end {
            let load = [f64::from(minute * 37 % 11) * 20.0, f64::from(minute * 53 % 7) * 30.0];
            counts = [counts[0] + 60.0 * load[0], counts[1] + 60.0 * load[1]];
            let uptime = f64::from(60 * (minute + 1));
            all.push(counts.map(|count| (count / uptime * 100.0).round() / 100.0));
        }
        all.split_off(minutes.start as usize)
    }

    #[test]
    fn intervals_rise_and_fall() {
        let rates = [[100.0, 3.0], [900.0, 2.0], [40.0, 1.0], [700.0, 9.0], [100.0, 0.0]];
        check(&rates, true);
        check(&rates[..1], false);
        check(&[], false);
    }

    #[test]
    fn averages_are_not_intervals_even_after_a_restart() {
        check(&averages(0..32), false);
        check(&averages(500..532), false);
        let rebooted = [averages(500..512), averages(0..10), averages(0..10)].concat();
        check(&rebooted, false);
    }

    #[test]
    fn averages_that_alternate_with_intervals_are_unknown() {
        let intervals = [[100.0, 3.0], [900.0, 2.0], [40.0, 1.0], [700.0, 9.0], [100.0, 0.0]];
        let others = intervals.iter().cycle();
        let mixed = averages(500..510).into_iter().zip(others).flat_map(|(one, two)| [one, *two]);
        check(&mixed.collect::<Vec<_>>(), false);
    }
}
