//! Consecutive runs of `iostat` in one input.
//!
//! The first report of a run is an average since the start of the machine, unless iostat ran with
//! `-y`. The input does not state which, but its numbers show it: a count divided by the seconds
//! of its interval is a multiple of one over these seconds.
//!
//! ```text
//!  run 1:  average  interval  interval      first report left out
//!  run 2:  interval  interval  interval     iostat -y: kept
//!  run 3:  average                          a run of one report: left out
//! ```
//!
//! An input can consist of runs of one report each, as `cron` writes them. The module
//! [`super::singles`] determines which of them are of intervals.

use super::report::Report;
use super::singles::{Single, are_intervals};
use crate::error::ImportError;
use crate::sheet::Sheet;
use std::collections::{BTreeMap, VecDeque};
use weir_observe::metric::{self as m, Metric};
use weir_units::Span;

/// Returns whether a metric of devices is a count divided by seconds.
pub(super) fn is_count(measure: &Metric) -> bool {
    measure.unit == m::Quantity::Count && measure.decimals > 0 && *measure != m::QUEUE_DEPTH
}

/// The most single-report runs compared to distinguish averages from intervals.
const MOST_COMPARED: usize = 32;
/// A selection of the reports of intervals.
#[derive(Debug)]
pub(super) struct Runs<R> {
    /// Reports that were read ahead.
    ahead: VecDeque<R>,
    /// Interval stated by the user.
    every: Option<Span>,
    /// True if the current report is not the first of its run.
    inside: bool,
    /// True if single-report runs are of intervals, by the metrics of the report, since iostat may
    /// run with several options in turn.
    keeps: BTreeMap<Vec<&'static str>, bool>,
    /// True if a run of several reports was kept.
    has_longer: bool,
    kept: u64,
    /// Number of first reports left out of longer runs.
    first_left_out: u64,
    /// Number of single-report runs left out.
    single_left_out: u64,
}

impl<R: Report> Runs<R> {
    /// Creates the selection; `every` is the interval stated by the user.
    pub(super) const fn new(every: Option<Span>) -> Self {
        Self {
            ahead: VecDeque::new(),
            every,
            inside: false,
            keeps: BTreeMap::new(),
            has_longer: false,
            kept: 0,
            first_left_out: 0,
            single_left_out: 0,
        }
    }

    /// Returns the next report of an interval, or `None` at the end.
    ///
    /// # Errors
    ///
    /// The errors of `read`, which reads the next report.
    pub(super) fn next(
        &mut self,
        sheet: &mut Sheet,
        mut read: impl FnMut(&mut Sheet) -> Result<Option<R>, ImportError>,
    ) -> Result<Option<R>, ImportError> {
        loop {
            let Some(report) = self.take(sheet, &mut read)? else {
                self.note_left_out(sheet);
                return Ok(None);
            };
            if !report.begins_a_run() && self.inside {
                self.kept += 1;
                self.has_longer = true;
                return Ok(Some(report));
            }
            self.inside = false;
            self.fill(1, sheet, &mut read)?;
            let second = self.ahead.front().filter(|second| !second.begins_a_run());
            let is_kept = match second {
                Some(second) => {
                    let interval_ns = nanos_between(&report, second).filter(|nanos| *nanos > 0);
                    sheet.interval_ns = interval_ns;
                    if self.kept == 0 {
                        sheet.held = interval_ns;
                    }
                    let seconds = self.whole_seconds(interval_ns);
                    self.inside = true;
                    let is_kept =
                        seconds.is_some_and(|s| is_of_interval(report.counts().into_values(), s));
                    self.first_left_out += u64::from(!is_kept);
                    is_kept
                }
                None => {
                    let is_kept = self.keeps(&report, sheet, &mut read)?;
                    self.single_left_out += u64::from(!is_kept);
                    is_kept
                }
            };
            if is_kept {
                self.kept += 1;
                return Ok(Some(report));
            }
        }
    }

    /// Decides whether a single-report run is kept.
    fn keeps(
        &mut self,
        report: &R,
        sheet: &mut Sheet,
        read: &mut impl FnMut(&mut Sheet) -> Result<Option<R>, ImportError>,
    ) -> Result<bool, ImportError> {
        // A single report is better than none.
        let is_last = self.ahead.is_empty() && self.kept == 0;
        let single = Single::new(report);
        if let Some(keeps) = self.keeps.get(&single.metrics).filter(|_| !is_last) {
            return Ok(*keeps);
        }
        if self.has_longer {
            return Ok(false);
        }
        self.fill(MOST_COMPARED, sheet, read)?;
        let is_single = |at: usize| {
            let next = self.ahead.get(at + 1);
            self.ahead[at].begins_a_run() && next.is_none_or(Report::begins_a_run)
        };
        let singles = (0..self.ahead.len()).take_while(|at| is_single(*at)).count();
        let metrics = single.metrics.clone();
        let others = self.ahead.iter().take(singles).map(Single::new);
        let others = others.filter(|other| other.metrics == metrics);
        let all: Vec<Single> = std::iter::once(single).chain(others).collect();
        let keeps = are_intervals(&all);
        if keeps {
            sheet.note(
                "each of its runs has one report, and the rates rise and fall: each is assumed to \
                 cover the interval since the report before, as with iostat -y",
            );
        }
        if is_last {
            sheet.note(match self.single_left_out {
                0 => "its only report may be an average since boot",
                _ => {
                    "each of its runs has one report, which may be an average since boot: only the \
                     last is used"
                }
            });
        }
        // A decision from one or two reports is repeated with the next.
        if keeps || all.len() > 2 {
            self.keeps.insert(metrics, keeps);
        }
        Ok(keeps || is_last)
    }

    /// Returns the next report.
    fn take(
        &mut self,
        sheet: &mut Sheet,
        read: &mut impl FnMut(&mut Sheet) -> Result<Option<R>, ImportError>,
    ) -> Result<Option<R>, ImportError> {
        match self.ahead.pop_front() {
            Some(report) => Ok(Some(report)),
            None => read(sheet),
        }
    }

    /// Reads ahead until `count` reports are there, or the input ends.
    fn fill(
        &mut self,
        count: usize,
        sheet: &mut Sheet,
        read: &mut impl FnMut(&mut Sheet) -> Result<Option<R>, ImportError>,
    ) -> Result<(), ImportError> {
        while self.ahead.len() < count {
            let Some(report) = read(sheet)? else { return Ok(()) };
            self.ahead.push_back(report);
        }
        Ok(())
    }

    /// Returns the whole seconds of an interval, from times or from the user.
    fn whole_seconds(&self, interval_ns: Option<i64>) -> Option<f64> {
        let stated = || self.every.map(|every| every.nanos());
        let nanos = interval_ns.and_then(|nanos| u64::try_from(nanos).ok()).or_else(stated)?;
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let seconds = (nanos as f64 / 1e9).round();
        (seconds >= 1.0).then_some(seconds)
    }

    fn note_left_out(&mut self, sheet: &mut Sheet) {
        match std::mem::take(&mut self.first_left_out) {
            0 => {}
            1 => {
                sheet.note("the first report is an average since boot and is left out");
            }
            runs => sheet.note(format!(
                "the first reports of {runs} runs are averages since boot and are left out"
            )),
        }
        match std::mem::take(&mut self.single_left_out) {
            0 => {}
            runs => sheet.note(format!(
                "{runs} reports left out: each is the only one in its run of iostat and may be an \
                 average since boot"
            )),
        }
    }
}

/// Returns the nanoseconds from one report to another, if both have a time.
fn nanos_between(first: &impl Report, second: &impl Report) -> Option<i64> {
    second.at()?.checked_sub(first.at()?)
}

/// Returns whether the rates of a report are counts of an interval of `seconds`: each rate times
/// the seconds is near a whole number. Averages since the start rarely are.
fn is_of_interval(rates: impl Iterator<Item = f64>, seconds: f64) -> bool {
    // Rounding to two decimals moves a count by up to this.
    let slack = 0.006 * seconds;
    if slack > 0.15 {
        return false;
    }
    let counts: Vec<f64> = rates.map(|rate| rate * seconds).filter(|n| *n > slack).collect();
    counts.len() >= 3 && counts.iter().all(|count| (count - count.round()).abs() <= slack)
}

#[cfg(test)]
mod tests {
    use super::super::report::Beginning;
    use super::*;

    #[test]
    fn averages_since_the_start_differ_from_intervals() {
        let check = |rates: &[f64], seconds| is_of_interval(rates.iter().copied(), seconds);
        assert!(check(&[88.33, 89.67, 0.0, 99.67, 6791.0], 3.0));
        assert!(!check(&[0.03, 0.25, 0.21, 0.12], 5.0));
        assert!(!check(&[1.0, 2.0], 1.0), "too little to tell");
        assert!(!check(&[1.0, 2.0, 3.0], 60.0), "rounded too much to tell");
    }

    /// Second, whether a run begins, and a rate.
    type Told = (i64, bool, f64);

    struct Own(Told);

    impl Report for Own {
        fn beginning(&self) -> Beginning {
            Beginning { at: Some(self.0.0 * 1_000_000_000), begins_a_run: self.0.1 }
        }

        fn counts(&self) -> BTreeMap<(&str, &'static str), f64> {
            ["reads", "writes", "flushes"].map(|metric| (("sda", metric), self.0.2)).into()
        }
    }

    #[track_caller]
    fn check(reports: &[Told], expect: &[i64], notes: &[&str]) {
        let (mut runs, mut sheet) = (Runs::new(None), Sheet::default());
        let mut rest = reports.iter();
        let mut kept = Vec::new();
        while let Some(own) =
            runs.next(&mut sheet, |_| Ok(rest.next().map(|own| Own(*own)))).expect("no error")
        {
            kept.push(own.0.0);
        }
        assert_eq!(kept, expect);
        assert_eq!(sheet.notes.len(), notes.len(), "{:?}", sheet.notes);
        for (own, expect) in sheet.notes.iter().zip(notes) {
            assert!(own.contains(expect), "{own}");
        }
    }

    #[test]
    fn first_reports_are_left_out_and_counted() {
        let run = |at: i64| [(at, true, 0.123), (at + 5, false, 10.0), (at + 10, false, 11.0)];
        check(&run(0), &[5, 10], &["the first report is"]);
        check(&[run(0), run(100)].concat(), &[5, 10, 105, 110], &["first reports of 2 runs"]);
        check(
            &[&run(0)[..], &[(50, true, 0.1)], &run(100)].concat(),
            &[5, 10, 105, 110],
            &["first reports of 2 runs", "1 reports left out"],
        );
        // iostat -y.
        check(&[(0, true, 5.2), (5, false, 10.4), (10, false, 1.2)], &[0, 5, 10], &[]);
        check(&[(0, false, 0.123), (5, false, 10.4)], &[5], &["the first report is"]);
        check(&[], &[], &[]);
    }

    #[test]
    fn runs_of_one_report_are_kept_if_they_rise_and_fall() {
        let busy: Vec<Told> = (0..100).map(|at| (at * 60, true, (at * at % 7) as f64)).collect();
        let times: Vec<_> = busy.iter().map(|own| own.0).collect();
        check(&busy, &times, &["rise and fall"]);
        let averages: Vec<Told> =
            (0..100).map(|at| (at * 60, true, 5.0 + at as f64 / 100.0)).collect();
        check(&averages, &[5940], &["only the last is used", "99 reports left out"]);
        check(&[(0, true, 1.0)], &[0], &["its only report"]);
    }
}
