//! Progress of a run, on a terminal. Without a terminal there is a single line, for a run that
//! takes long.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use weir_plan::fleet::{self, Phase};
use weir_report::number::{float, percent, rate};
use weir_units::{Instant, Span};

/// Time before the duration is estimated, and the minimum duration of a long run.
const WATCHED_S: f64 = 10.0;
const LONG_S: f64 = 600.0;
/// Least time between two redraws of a run's line: a run may report thousands of times a second.
const REDRAW_S: f64 = 0.1;

/// A progress line on stderr, which is cleared at the end.
pub(crate) struct Progress {
    bar: ProgressBar,
    total: Option<Span>,
    /// True if the estimate was printed or is not wanted.
    is_said: Cell<bool>,
    /// Earliest time of the next redraw, in seconds since the start.
    due_s: Cell<f64>,
}

impl Progress {
    /// Starts a line; `total` is the duration in the time of the run, if known.
    pub(crate) fn start(total: Option<Span>, quiet: bool) -> Self {
        let progress = Self {
            bar: bar(total, quiet),
            total,
            is_said: Cell::new(quiet),
            due_s: Cell::new(0.0),
        };
        progress.at(Instant::ZERO, 0);
        progress
    }

    /// Shows the time and the I/Os of the run, if the line is due.
    pub(crate) fn at(&self, now: Instant, completed: u64) {
        let elapsed_s = self.bar.elapsed().as_secs_f64();
        if elapsed_s < self.due_s.get() {
            return;
        }
        self.due_s.set(elapsed_s + REDRAW_S);
        let seconds = |nanos: u64| rate(float(nanos) / 1e9);
        let of = self.total.map(|total| format!(" of {}", seconds(total.nanos())));
        let speed = float(completed) / elapsed_s.max(1e-3);
        if !self.is_said.get() && elapsed_s >= WATCHED_S {
            self.is_said.set(true);
            if let Some(left) = self.total.and_then(|total| long(elapsed_s, now, total)) {
                output::talk(&format!(
                    "weir: about {left} left; Ctrl-C ends the run and reports it up to then"
                ));
            }
        }
        self.bar.set_position(now.nanos());
        self.bar.set_message(format!(
            "{}{} s simulated, {} I/O per s",
            seconds(now.nanos()),
            of.unwrap_or_default(),
            rate(speed)
        ));
    }
}

fn bar(total: Option<Span>, quiet: bool) -> ProgressBar {
    let target = match quiet {
        true => ProgressDrawTarget::hidden(),
        // Drawn on a terminal only.
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(total.map(Span::nanos), target);
    let template = if total.is_some() { "{bar:30} {msg}, {eta} left" } else { "{spinner} {msg}" };
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// The progress line of a recording.
pub(crate) struct Live {
    bar: ProgressBar,
    total: Option<Span>,
}

impl Live {
    /// Starts a line; `total` is the duration, if given.
    pub(crate) fn start(total: Option<Span>, quiet: bool) -> Self {
        Self { bar: bar(None, quiet), total }
    }

    /// Shows the time, the samples and the missed samples.
    pub(crate) fn at(&self, now: Instant, samples: u64, missed: u64) {
        let seconds = |nanos: u64| format!("{:.0}", float(nanos) / 1e9);
        let of = self.total.map(|total| format!(" of {}", seconds(total.nanos())));
        let missed = if missed > 0 { format!(", missed: {missed}") } else { String::new() };
        self.bar.set_message(format!(
            "{}{} s, samples: {samples}{missed}; Ctrl-C ends it",
            seconds(now.nanos()),
            of.unwrap_or_default(),
        ));
        self.bar.tick();
    }

    /// Runs `say` with the line hidden, so that it can print.
    pub(crate) fn aside(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }
}

/// The progress line of a backup or restore.
pub(crate) struct Moving {
    bar: ProgressBar,
}

impl Moving {
    /// Starts a line for `total` bytes.
    pub(crate) fn start(total: u64, quiet: bool) -> Self {
        Self { bar: bar(Some(Span::from_nanos(total)), quiet) }
    }

    /// Shows the bytes that were moved in a time, and the limit that binds.
    pub(crate) fn at(&self, bytes: u64, total: u64, elapsed: Span, binding: Option<&str>) {
        let seconds = float(elapsed.nanos()) / 1e9;
        let speed = float(bytes) / 1e6 / seconds.max(1e-3);
        let done = float(bytes) / float(total.max(1));
        let limit = binding.map(|cap| format!(", bound by {cap}")).unwrap_or_default();
        self.bar.set_position(bytes);
        self.bar.set_message(format!("{}, {} MB/s{limit}", percent(done), rate(speed)));
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The progress line of simulations or diagnoses that run side by side.
pub(crate) struct Counting {
    bar: ProgressBar,
    what: &'static str,
    done: usize,
    total: usize,
}

impl Counting {
    /// Starts a line for `total` points or observations, of which some are complete.
    pub(crate) fn start(what: &'static str, total: usize, done: usize, quiet: bool) -> Self {
        let nanos = |n: usize| Span::from_nanos(n as u64);
        let counting = Self { bar: bar(Some(nanos(total)), quiet), what, done, total };
        // The time that is left is that of the others.
        counting.bar.reset_eta();
        counting.show();
        counting
    }

    /// Counts another one.
    pub(crate) fn count(&mut self) {
        self.done += 1;
        self.show();
    }

    fn show(&self) {
        self.bar.set_position(self.done as u64);
        let Self { what, done, total, .. } = self;
        self.bar.set_message(format!("{done} of {total} {what}; Ctrl-C keeps them"));
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The progress line of a fleet's plan.
pub(crate) struct Planning {
    bar: ProgressBar,
}

impl Planning {
    pub(crate) fn start(databases: usize, quiet: bool) -> Self {
        let bar = bar(None, quiet);
        bar.set_message(format!("{databases} databases"));
        bar.tick();
        Self { bar }
    }

    /// Shows the present state of the search.
    pub(crate) fn at(&self, now: fleet::Progress) {
        self.bar.set_message(planned(now));
        self.bar.tick();
    }
}

/// Describes the present state of the search.
fn planned(now: fleet::Progress) -> String {
    let doing = match now.phase {
        Phase::Filling => "filling instances",
        Phase::Relaxing => "looking for instances",
        Phase::Rounding => "choosing instances",
        Phase::Repacking => "repacking a few instances",
        Phase::Bounding => "proving that nothing is cheaper",
    };
    let gap = match now.bound {
        0 => String::new(),
        _ => format!(", at most {} above the best", percent(float(now.gap()) / 1e6)),
    };
    let candidates = match now.columns {
        0 => String::new(),
        n => format!(", candidates: {n}"),
    };
    format!("{doing}{candidates}{gap}")
}

impl Drop for Planning {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Formats the remaining time of a long run, in minutes or hours.
fn long(elapsed_s: f64, now: Instant, total: Span) -> Option<String> {
    let done = float(now.nanos()) / float(total.nanos().max(1));
    let left = elapsed_s / done.max(1e-9) - elapsed_s;
    match left / 3600.0 {
        hours if hours >= 2.0 => Some(format!("{hours:.0} h")),
        _ if left >= LONG_S => Some(format!("{:.0} min", left / 60.0)),
        _ => None,
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_what_it_does_and_how_near_it_is() {
        let now =
            fleet::Progress { phase: Phase::Repacking, columns: 2_100, cost: 1_000, bound: 0 };
        assert_eq!(planned(now), "repacking a few instances, candidates: 2100");
        let first = fleet::Progress { phase: Phase::Filling, columns: 0, ..now };
        assert_eq!(planned(first), "filling instances");
        let now = fleet::Progress { bound: 988, ..now };
        let words = planned(now);
        assert!(words.ends_with("candidates: 2100, at most 1.2 % above the best"), "{words}");
    }

    #[test]
    fn long_durations_are_printed_in_minutes_or_hours() {
        let at = |s| Instant::ZERO + Span::from_secs(s);
        let left = |now, total| long(10.0, at(now), Span::from_secs(total));
        assert_eq!(left(100, 5_000), None);
        assert_eq!(left(100, 12_100).as_deref(), Some("20 min"));
        assert_eq!(left(1, 3_601).as_deref(), Some("10 h"));
        assert!(left(0, 3_600).is_some());
    }
}
