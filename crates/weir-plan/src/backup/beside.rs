//! Backups beside databases: the slowdown of the databases and the duration of the backup.
//!
//! The databases run for their own duration, once alone and once for each choice. The backup is rarely
//! complete by then; its duration follows from its rate in the second half.

use super::answer::Slowdown;
use super::question::Beside;
use super::settings::Settings;
use super::trial::{Bench, Built, Measured, binding, seconds};
use crate::error::PlanError;
use weir_report::oltp::OltpReport;
use weir_sim::{OltpOptions, OltpSimulation};
use weir_units::{Instant, Span};

/// Number of steps of a run; after each one, the backup may be complete.
const STEPS: u64 = 40;

/// Databases without a backup.
#[derive(Debug, Clone)]
pub(super) struct Alone {
    /// The end of the run.
    end: Instant,
    /// Transactions per minute and the mean response time of each.
    each: Vec<(f64, f64)>,
}

/// Returns throughput and response time of each database.
fn figures(report: &OltpReport) -> Vec<(f64, f64)> {
    let own =
        |load: &weir_report::oltp::LoadReport| (load.transactions_per_min, load.response_mean_ns);
    report.databases.iter().map(|database| own(&database.load)).collect()
}

impl Alone {
    /// Returns the slowdown of the databases by a backup.
    fn slowdown(&self, report: &OltpReport) -> Slowdown {
        let part = |own: f64| if own.is_finite() { own.max(0.0) } else { 0.0 };
        let mut worst = Slowdown::default();
        for ((rate, response), (rate_then, response_then)) in self.each.iter().zip(figures(report))
        {
            worst.throughput = worst.throughput.max(part(1.0 - rate_then / rate));
            worst.response = worst.response.max(part(response_then / response - 1.0));
        }
        worst
    }
}

impl Bench<'_, '_> {
    /// Simulates the databases alone.
    pub(super) fn alone(&self, beside: Beside<'_>) -> Result<Alone, PlanError> {
        let layout = &self.ground.layout;
        let options =
            OltpOptions { edition: Some(self.ground.edition), seed: 1, ..OltpOptions::default() };
        let mut simulation = OltpSimulation::new(layout, beside.databases, &options)?;
        while simulation.run_until(Instant::FAR).is_some() {}
        let each = figures(&simulation.report());
        if each.iter().any(|(rate, _)| *rate <= 0.0) {
            let reason = "complete no transaction without the backup; give them a longer duration";
            return Err(PlanError::need("the databases beside it", reason));
        }
        Ok(Alone { end: simulation.now(), each })
    }

    /// Simulates a choice beside the databases; `None` if the targets have no room.
    pub(super) fn measure_beside(
        &mut self,
        built: &Built,
        own: Settings,
        alone: &Alone,
    ) -> Result<Option<(Measured, Slowdown)>, PlanError> {
        let Some(beside) = self.question.beside else { return Ok(None) };
        let Some((description, plan)) = self.describe(built, own, self.question.size)? else {
            return Ok(None);
        };
        self.simulated += 1;
        let backups = [description];
        let options = OltpOptions {
            edition: Some(self.ground.edition),
            seed: 1,
            every: None,
            backups: &backups,
        };
        let mut simulation = OltpSimulation::new(&built.layout, beside.databases, &options)?;
        let mut half = (Span::ZERO, 0);
        for step in 1..=STEPS {
            let until = Instant::from_nanos(alone.end.nanos() / STEPS * step);
            simulation.run_until(until);
            let report = simulation.report();
            let backup = report.backups.first();
            let has_counted = report.databases.iter().all(|own| own.elapsed_s > 0.0);
            if backup.is_some_and(|own| own.is_complete) && has_counted {
                break;
            }
            if step == STEPS / 2 {
                half = (until.since(Instant::ZERO), backup.map_or(0, |own| own.bytes_read));
            }
        }
        let report = simulation.report();
        let Some(backup) = report.backups.first() else { return Ok(None) };
        let now = Instant::from_nanos(simulation.now().nanos().min(alone.end.nanos()));
        let passed = now.since(Instant::ZERO);
        let (duration, is_extrapolated) = match backup.is_complete {
            true => (seconds(backup.elapsed_s), false),
            false => {
                let read = backup.bytes_read.saturating_sub(half.1);
                let rest = plan.bytes().saturating_sub(backup.bytes_read);
                let span = passed.saturating_sub(half.0);
                let nanos = u128::from(span.nanos()) * u128::from(rest) / u128::from(read.max(1));
                let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
                (passed + Span::from_nanos(nanos), true)
            }
        };
        let elapsed = if backup.is_complete { duration } else { passed };
        let binding = binding(backup, &plan, elapsed.saturating_sub(self.question.setup));
        let buffer_count = plan.buffers.count;
        let measured = Measured { duration, is_extrapolated, binding, buffer_count };
        Ok(Some((measured, alone.slowdown(&report))))
    }
}
