//! The plans of each cloud for one need.

use super::clouds::Cloud;
use crate::answer::{Answer, Relaxation};
use crate::disks::stated_latency;
use crate::error::PlanError;
use crate::need::{Need, Wishes};
use crate::planner::{Outcome, Question, fastest, left_out, plan};
use crate::proof::{ProofError, need_at_limits, prove, slow};
use crate::share::WHOLE;
use crate::verify::{Got, How, verify};
use std::panic::resume_unwind;
use std::thread;
use weir_catalog::{Catalog, PriceBook};
use weir_units::{Money, Span};

/// The question to all clouds.
#[derive(Debug, Clone, Copy)]
pub struct Contest<'a> {
    /// All editions.
    pub catalog: &'a Catalog,
    /// The need.
    pub need: &'a Need,
    /// The constraints.
    pub wishes: &'a Wishes,
    /// The most that the fastest layout may cost; without it, the fastest one at any price.
    pub budget: Option<Money>,
    /// The currency of the budget; by default that of the first cloud with prices.
    pub currency: Option<&'a str>,
    /// Whether plans with extra capacity are tried if a latency is missed.
    pub meets_latency: bool,
}

/// A layout with its simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Proven {
    /// The layout, its alternatives and notes.
    pub answer: Answer,
    /// The need that it carries.
    pub need: Need,
    /// The simulated results, one for each role.
    pub got: Vec<Got>,
    /// The latency that the catalog states for the disks of the first role: the median of reads or
    /// of writes, whichever is longer.
    pub latency: Option<Span>,
}

/// The answer of a cloud.
#[derive(Debug, Default)]
pub struct Contender {
    /// The cheapest layout that meets the need.
    pub cheapest: Option<Proven>,
    /// The fastest layout within the budget, if there is one, or at any price.
    pub fastest: Option<Proven>,
    /// Changes that make an infeasible need feasible.
    pub relaxations: Vec<Relaxation>,
    /// The largest need within the budget, if not even the sizes fit.
    pub beyond_budget: Vec<Relaxation>,
    /// The reason if the cloud does not have what is asked for.
    pub refused: Option<PlanError>,
    /// Notes about misses and omissions.
    pub notes: Vec<String>,
}

/// Plans a need on each cloud and simulates the plans.
///
/// # Errors
///
/// [`ProofError`] if no cloud has what is asked for, or a plan cannot be simulated.
pub fn compare(contest: &Contest<'_>, clouds: &[Cloud<'_>]) -> Result<Vec<Contender>, ProofError> {
    let contest = &Contest { currency: contest.currency(clouds), ..*contest };
    let all: Result<Vec<Contender>, ProofError> = thread::scope(|scope| {
        // Most of the time goes into the simulation of the fastest layouts, one thread each.
        let started: Vec<_> =
            clouds.iter().map(|cloud| scope.spawn(|| contest.contender(cloud))).collect();
        started
            .into_iter()
            .map(|own| own.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    let all = all?;
    // If no cloud has an item, the question is wrong.
    match all.iter().all(|own| own.refused.is_some()) {
        false => Ok(all),
        true => match all.into_iter().find_map(|own| own.refused) {
            Some(refused) => Err(refused.into()),
            None => Ok(Vec::new()),
        },
    }
}

impl<'a> Contest<'a> {
    /// Returns the currency of the budget.
    pub(super) fn currency(&self, clouds: &'a [Cloud<'_>]) -> Option<&'a str> {
        let first = clouds.iter().find_map(|cloud| cloud.prices.as_ref());
        self.currency.or(first.map(PriceBook::currency))
    }
}

impl Contest<'_> {
    fn contender(&self, cloud: &Cloud<'_>) -> Result<Contender, ProofError> {
        let Self { catalog, need, wishes, .. } = *self;
        let (edition, prices) = (cloud.edition, cloud.prices.as_ref());
        let question = Question { catalog, edition, prices, need, wishes };
        let mut own = Contender::default();
        let outcome = match plan(&question) {
            Ok(outcome) => outcome,
            // A cloud that lacks an item or a feature cannot meet the need.
            Err(error @ (PlanError::Nothing { .. } | PlanError::Need { .. })) => {
                own.refused = Some(error);
                return Ok(own);
            }
            Err(error) => return Err(error.into()),
        };
        own.cheapest = self.cheapest(&question, outcome, &mut own)?;
        if own.cheapest.is_none() {
            own.notes.extend(left_out(&question)?);
        }
        own.fastest = self.fastest(&question, &mut own)?;
        Ok(own)
    }

    /// Simulates the cheapest plan. One that misses its rates is no plan; a missed latency is
    /// noted, unless plans have to meet it.
    fn cheapest(
        &self,
        question: &Question<'_>,
        mut outcome: Outcome,
        own: &mut Contender,
    ) -> Result<Option<Proven>, ProofError> {
        if self.meets_latency {
            let proof = prove(question, &mut outcome, None, true)?;
            own.notes.extend(proof.notes);
            let got = proof.layouts.into_iter().flat_map(|(_, got)| got).collect();
            return Ok(match outcome {
                Outcome::Met(answer) if !proof.is_failed => {
                    Some(self.proven(question, *answer, question.need.clone(), got))
                }
                Outcome::Met(_) => None,
                Outcome::NotMet(relaxations) => {
                    own.relaxations = relaxations;
                    None
                }
            });
        }
        match outcome {
            Outcome::Met(answer) => {
                let proven = self.simulated(question, *answer, own)?;
                own.notes.extend(missed(proven.as_ref()).map(|missed| {
                    format!("in simulation, {missed}; --verify plans extra capacity for it")
                }));
                Ok(proven)
            }
            Outcome::NotMet(relaxations) => {
                own.relaxations = relaxations;
                Ok(None)
            }
        }
    }

    fn fastest(
        &self,
        question: &Question<'_>,
        own: &mut Contender,
    ) -> Result<Option<Proven>, ProofError> {
        let has_rates = question.need.roles.iter().any(|role| role.iops > 0);
        if !has_rates || (self.budget.is_some() && question.prices.is_none()) {
            return Ok(None);
        }
        let own_currency = question.prices.map(PriceBook::currency);
        if let (Some(_), Some(wanted), Some(there)) = (self.budget, self.currency, own_currency)
            && wanted != there
        {
            own.notes.push(format!(
                "its prices are in {there} and the budget is in {wanted}, so the fastest layout within \
                 the budget is not searched"
            ));
            return Ok(None);
        }
        let found = match fastest(question, self.budget) {
            Ok(found) => found,
            // Missing prices cannot be compared with a budget, nor rates with limits that are not published.
            Err(error @ PlanError::Need { .. }) => {
                own.notes.push(error.to_string());
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        match found {
            Outcome::Met(answer) => {
                let proven = self.simulated(question, *answer, own)?;
                let missed = missed(proven.as_ref());
                own.notes.extend(
                    missed.map(|missed| format!("at the limits of the fastest layout, {missed}")),
                );
                Ok(proven)
            }
            Outcome::NotMet(relaxations) => {
                if self.budget.is_some() {
                    own.beyond_budget = relaxations;
                }
                Ok(None)
            }
        }
    }

    /// Simulates a layout with the rates that it carries.
    fn simulated(
        &self,
        question: &Question<'_>,
        answer: Answer,
        own: &mut Contender,
    ) -> Result<Option<Proven>, ProofError> {
        let need = match answer.carried {
            WHOLE => question.need.clone(),
            // The simulation of a latency takes six times as long.
            _ if self.meets_latency => need_at_limits(question, &answer)?,
            _ => need_at_limits(question, &answer)?.without_latencies(),
        };
        let how = How { seed: 1, bursts: question.wishes.peaks.is_some(), ..How::default() };
        let got = verify("the plan", &answer.plan.layout, &need, question.catalog, how)?;
        if !got.iter().all(Got::has_rate) {
            own.notes.push(format!(
                "{} fails its own simulation, so it is left out: this is a defect of the planner",
                answer.plan.title
            ));
            return Ok(None);
        }
        Ok(Some(self.proven(question, answer, need, got)))
    }

    fn proven(&self, question: &Question<'_>, answer: Answer, need: Need, got: Vec<Got>) -> Proven {
        let first = need.roles.first();
        let latency = first.and_then(|own| {
            stated_latency((question.edition, self.catalog), &answer.plan.layout, own)
        });
        Proven { answer, need, got, latency }
    }
}

/// Lists the latencies that a layout misses, if it misses any.
fn missed(proven: Option<&Proven>) -> Option<String> {
    proven.map(|proven| slow(&proven.got)).filter(|missed| !missed.is_empty())
}
