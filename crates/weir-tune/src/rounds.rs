//! Rounds on a real system: changes planned for one observation, and what the next one shows.
//!
//! A simulation can try each change alone. A person has to run scripts on a real system and observe it, so a
//! round has all changes that its load needs, and one observation afterwards.

use crate::system::ALIKE;
use weir_plan::Need;
use weir_plan::share::WHOLE;
use weir_plan::verify::TOLERANCE;
use weir_report::number::{Delta, float, percent};
use weir_report::tune::{TuneEnd, TuneMetric, TunePrice, TuneReport, TuneState};

/// Most rounds.
pub const MOST_ROUNDS: usize = 5;

/// The rates of an observation, and whether the system was throttled.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The rates, without growth or an estimate of the demand.
    pub need: Need,
    /// Set if the system was throttled by the limits of its layout.
    pub is_held_back: bool,
    /// Set if it was throttled by the limits of the layout before the last round, which it still has if
    /// nobody changed it.
    pub is_held_back_as_before: bool,
}

/// The record of the rounds.
#[derive(Debug, Default)]
pub struct Rounds {
    report: TuneReport,
    /// Number of rounds whose changes were planned.
    count: usize,
    /// The rates of the latest observation.
    seen: Vec<TuneMetric>,
}

impl Rounds {
    /// Adds what [`tune`](crate::tune()) planned for the load of an observation. Returns whether the
    /// system is to be changed and observed again.
    ///
    /// The latest observation decides: if storage no longer holds the load back, the goal is reached,
    /// even if the load is smaller than the observation before made it seem.
    pub fn add(&mut self, planned: TuneReport, observed: &Observed) -> bool {
        let seen = seen(&planned.before, &observed.need);
        let is_unchanged = observed.is_held_back_as_before && self.stands_still(&seen);
        let shortfall = self
            .compare(&seen)
            .filter(|_| observed.is_held_back || observed.is_held_back_as_before)
            .or_else(|| is_unchanged.then(|| "the rates are those of before".to_owned()));
        self.open(&planned, seen);
        let needs_nothing = planned.end == TuneEnd::Reached && planned.steps.is_empty();
        if let Some(words) = shortfall {
            let round = self.count;
            let verdict = format!(
                "round {round} did not bring what was predicted: {words}; the walk ends there"
            );
            self.end(TuneEnd::Unpredicted, verdict);
        } else if needs_nothing && observed.is_held_back && self.count == 0 {
            let verdict = "the layout carries the load in simulation, but the observed system was \
                           throttled: the layout is not that of the system";
            self.end(TuneEnd::Unpredicted, verdict.to_owned());
        } else if needs_nothing {
            self.report.is_met = true;
            let verdict = match self.count {
                0 => planned.verdict,
                1 => "the goal is reached in 1 round".to_owned(),
                n => format!("the goal is reached in {n} rounds"),
            };
            self.end(TuneEnd::Reached, verdict);
        } else if planned.end != TuneEnd::Reached {
            self.end(planned.end, planned.verdict);
        } else if self.count == MOST_ROUNDS {
            let verdict = format!(
                "the goal is not reached after {MOST_ROUNDS} rounds: each observation asked for more"
            );
            self.end(TuneEnd::Stopped, verdict);
        } else {
            self.take_steps(planned);
            return true;
        }
        false
    }

    /// Returns whether no rate is higher than at the observation before.
    fn stands_still(&self, seen: &TuneState) -> bool {
        let more = 1.0 + float(TOLERANCE) / float(WHOLE);
        let is_higher = |own: &TuneMetric| {
            let before = self.seen.iter().find(|before| before.name == own.name);
            before.is_none_or(|before| own.value > before.value * more)
        };
        self.count > 0 && !seen.metrics.iter().any(is_higher)
    }

    /// Makes the observed state the present one.
    fn open(&mut self, planned: &TuneReport, seen: TuneState) {
        let own = &mut self.report;
        if self.count == 0 {
            own.before = seen.clone();
            own.budget = planned.budget;
            own.layout.clone_from(&planned.layout);
            own.price.clone_from(&planned.price);
        }
        self.seen.clone_from(&seen.metrics);
        own.after = seen;
        own.goal.clone_from(&planned.goal);
        own.simulated += planned.simulated;
        for note in &planned.notes {
            if !own.notes.contains(note) {
                own.notes.push(note.clone());
            }
        }
    }

    /// Ends the record before the goal is reached.
    pub fn end(&mut self, end: TuneEnd, verdict: String) {
        (self.report.end, self.report.verdict) = (end, verdict);
    }

    /// Returns the number of rounds whose changes were planned.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the record, with the commands that undo the rounds.
    #[must_use]
    pub fn finish(mut self, undo: Vec<String>) -> TuneReport {
        self.report.undo = undo;
        self.report
    }

    /// Adds the planned changes. Each has its prediction; the last one's is that of the round.
    fn take_steps(&mut self, planned: TuneReport) {
        self.count += 1;
        let own = &mut self.report;
        own.steps.extend(planned.steps.into_iter().map(|mut step| {
            keep_rates(&mut step.predicted);
            step.measured.clear();
            step.deviation = None;
            step.state = TuneState { month: step.state.month, ..TuneState::default() };
            step
        }));
        own.layout = planned.layout;
        own.after = TuneState { month: planned.after.month, ..TuneState::default() };
        own.price = match (own.price.take(), planned.price) {
            (Some(old), Some(new)) => {
                let is_known = old.difference.is_some() && new.difference.is_some();
                let difference = is_known.then(|| Delta::between(old.before.0, new.after.0));
                Some(TunePrice { before: old.before, difference, ..new })
            }
            _ => None,
        };
    }

    /// Notes the measured effect of the last round. Returns in words what falls short of its
    /// prediction.
    fn compare(&mut self, seen: &TuneState) -> Option<String> {
        let step = self.report.steps.last_mut()?;
        step.measured.clone_from(&seen.metrics);
        step.state = TuneState { month: step.state.month, ..seen.clone() };
        let mut deviation: f64 = 0.0;
        let mut short = None;
        for predicted in &step.predicted {
            let Some(own) = seen.metrics.iter().find(|own| own.name == predicted.name) else {
                continue;
            };
            let apart = own.value / predicted.value.max(1e-9) - 1.0;
            deviation = deviation.max(apart.abs());
            if apart < -ALIKE && short.is_none() {
                short = Some(format!(
                    "{} is {} instead of {}, {} less",
                    own.words(),
                    own.shown(),
                    predicted.shown(),
                    percent(-apart)
                ));
            }
        }
        step.deviation = Some(deviation);
        short
    }
}

/// Keeps the rates, each once. Latencies of an observation are means over samples, and those of a
/// simulation are of requests; they are not compared. Neither are the operations of a role at the peak
/// of its throughput, since an observation has one peak of each.
fn keep_rates(metrics: &mut Vec<TuneMetric>) {
    let mut names: Vec<String> = Vec::new();
    metrics.retain(|own| {
        let is_new = !own.name.ends_with("_ns") && !names.contains(&own.name);
        if is_new {
            names.push(own.name.clone());
        }
        is_new
    });
}

/// Returns a simulated state with the rates that were observed, and without those of roles that were not.
fn seen(simulated: &TuneState, observed: &Need) -> TuneState {
    let mut state = simulated.clone();
    keep_rates(&mut state.metrics);
    let least = 1.0 - float(TOLERANCE) / float(WHOLE);
    state.metrics.retain_mut(|own| {
        let role = own.name.split_once(' ').and_then(|(role, rate)| {
            Some((observed.roles.iter().find(|of| of.role.name() == role)?, rate))
        });
        let Some((of, rate)) = role else { return false };
        own.value = float(if rate == "iops" { of.iops } else { of.throughput });
        own.is_met = own.target.is_none_or(|target| own.value >= target * least);
        true
    });
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_layout::Role;
    use weir_plan::RoleNeed;
    use weir_report::tune::TuneStep;
    use weir_units::Bytes;

    fn observed(iops: u64, is_held_back: bool, is_held_back_as_before: bool) -> Observed {
        let role = RoleNeed {
            role: Role::Data,
            size: Bytes::ZERO,
            iops,
            is_derived: false,
            request: 8192,
            throughput: 8192 * iops,
            reads: WHOLE,
            latency: None,
            working_set: None,
        };
        let need = Need { roles: vec![role], vcpus: 0, memory: Bytes::ZERO };
        Observed { need, is_held_back, is_held_back_as_before }
    }

    /// Returns a plan whose steps, if any, bring this rate.
    fn planned(steps: &[f64]) -> TuneReport {
        let metric = |value: f64| {
            vec![TuneMetric { name: "data iops".to_owned(), value, ..TuneMetric::default() }]
        };
        let step = |value: &f64| TuneStep { predicted: metric(*value), ..TuneStep::default() };
        TuneReport {
            before: TuneState { metrics: metric(0.0), ..TuneState::default() },
            steps: steps.iter().map(step).collect(),
            ..TuneReport::default()
        }
    }

    /// Returns the end of a walk whose round should bring 5,400 operations instead of 5,000.
    #[track_caller]
    fn check(second: &Observed, end: TuneEnd, words: &str) {
        let mut rounds = Rounds::default();
        assert!(rounds.add(planned(&[5_400.0]), &observed(5_000, true, true)));
        assert!(!rounds.add(planned(&[]), second));
        let report = rounds.finish(Vec::new());
        assert!(report.end == end && report.verdict.contains(words), "{report:#?}");
        assert_eq!(report.is_met, end == TuneEnd::Reached);
    }

    #[test]
    fn a_round_that_nobody_made_is_not_taken_for_success() {
        check(&observed(5_000, false, true), TuneEnd::Unpredicted, "the rates are those of before");
        check(&observed(5_390, false, true), TuneEnd::Reached, "in 1 round");
        // The load is smaller than it was.
        check(&observed(3_000, false, false), TuneEnd::Reached, "in 1 round");
        check(&observed(4_000, true, false), TuneEnd::Unpredicted, "data iops is 4,000 instead of");
    }

    #[test]
    fn a_throttled_system_whose_layout_carries_the_load_has_another_layout() {
        let mut rounds = Rounds::default();
        assert!(!rounds.add(planned(&[]), &observed(5_000, true, true)));
        assert_eq!(rounds.finish(Vec::new()).end, TuneEnd::Unpredicted);
    }
}
