//! How far a simulation has come, for who waits at a terminal. Elsewhere nothing is
//! said: a log does not want it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_report::number::{float, rate};
use weir_units::{Instant, Span};

/// A line on stderr, gone at the end.
pub(crate) struct Progress {
    bar: ProgressBar,
    total: Option<Span>,
}

impl Progress {
    /// `total` is how long the run takes in its own time, where that is known.
    pub(crate) fn start(total: Option<Span>, quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            // Draws on a terminal only.
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(total.map(Span::nanos), target);
        let template = if total.is_some() { "{bar:30} {msg}" } else { "{spinner} {msg}" };
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let progress = Self { bar, total };
        progress.at(Instant::ZERO, 0);
        progress
    }

    /// The run has come to `now` and done so many I/Os.
    pub(crate) fn at(&self, now: Instant, completed: u64) {
        let seconds = |nanos: u64| rate(float(nanos) / 1e9);
        let of = self.total.map(|total| format!(" of {}", seconds(total.nanos())));
        let speed = float(completed) / self.bar.elapsed().as_secs_f64().max(1e-3);
        self.bar.set_position(now.nanos());
        self.bar.set_message(format!(
            "{}{} s simulated, {} I/O per s",
            seconds(now.nanos()),
            of.unwrap_or_default(),
            rate(speed)
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
