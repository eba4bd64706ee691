//! The proof of a plan: the need simulated on it, and on what is there at present.
//!
//! The planner compares rates with limits and chooses media by their latency; it does not know how
//! long requests wait where a limit is used up. So where a latency is asked and missed, plans with
//! room are tried until one holds.

use crate::answer::{Answer, Cheaper, Plan, Reason};
use crate::error::PlanError;
use crate::need::Need;
use crate::planner::{Outcome, Question, plan};
use crate::promise::with_promises;
use crate::share::{WHOLE, in_percent};
use crate::verify::{Got, How, VerifyError, verify};
use std::fmt::Write as _;
use weir_layout::{Layout, ManagedInstance, Role};
use weir_report::number::{float, percent, time};

/// Extra capacity to try if a latency is missed, in millionths of the rates.
///
/// A low limit delays requests that arrive together by milliseconds. It must be a multiple of their rate before the median
/// request does not wait, so a small need with a short latency may take many times its rates.
const ROOM: [u64; 9] =
    [50_000, 100_000, 200_000, 300_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 9_000_000];

/// Number of bisection steps between extra capacity that misses and that is enough.
const HALVES: u32 = 3;

/// Requests wait at a limit that is used by this share.
const BUSY: f64 = 0.8;

/// A plan with extra capacity, its simulation, and that capacity in millionths.
type Roomy = (Answer, Vec<Got>, u64);

/// A proof that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// A plan with extra capacity could not be searched.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The need could not be simulated.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// A layout in use.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// The layout file.
    pub text: &'a str,
}

/// The results of simulations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proof {
    /// The simulated layouts, `plan`, `plan at its limits` or `at present`, each with a result for every role.
    pub layouts: Vec<(&'static str, Vec<Got>)>,
    /// Notes about misses.
    pub notes: Vec<String>,
    /// Whether the plan fails, so that there is none.
    pub is_failed: bool,
}

impl Proof {
    fn fail(&mut self, note: String) {
        self.is_failed = true;
        self.notes.push(note);
    }

    /// Adds the simulation of the highest rates.
    fn add_limits(&mut self, plan: &Plan, got: Option<Vec<Got>>) {
        let Some(got) = got else { return };
        if !self.is_failed && !got.iter().all(Got::has_rate) {
            self.fail(failing(plan));
        } else if !got.iter().all(Got::is_fast) {
            self.notes.push(format!("at the limits of the plan, {}", slow(&got)));
        }
        self.layouts.push(("plan at its limits", got));
    }
}

/// Simulates the need on the plan, and on the layout in use. If only a latency is missed and
/// `may_grow` is set, a plan with extra capacity replaces the plan if it meets the latency. A plan for
/// the highest rates is simulated with those rates too.
///
/// # Errors
///
/// [`ProofError`] if the layout in use is invalid, or the plan cannot be simulated.
pub fn prove(
    question: &Question<'_>,
    outcome: &mut Outcome,
    present: Option<Present<'_>>,
    may_grow: bool,
) -> Result<Proof, ProofError> {
    let how = How { seed: 1, bursts: question.wishes.peaks.is_some(), ..How::default() };
    let mut proof = Proof::default();
    if let Some(Present { name, text }) = present {
        match verify(name, text, question.need, question.catalog, how) {
            Ok(got) => proof.layouts.push(("at present", got)),
            // A layout that is too small for the need, or lacks a role, cannot be simulated.
            Err(error @ VerifyError::Layout(_)) => return Err(error.into()),
            Err(error) => proof.notes.push(format!("{name} cannot carry the need: {error}")),
        }
    }
    let Outcome::Met(answer) = outcome else { return Ok(proof) };
    let at_limits = at_limits(question, answer, how)?;
    if answer.carried < WHOLE {
        // A part of the need is planned, so the need itself would miss.
        proof.add_limits(&answer.plan, at_limits);
        return Ok(proof);
    }
    let mut got = simulated(question, &answer.plan, how)?;
    let is_slow = got.iter().all(Got::has_rate) && !got.iter().all(Got::is_fast);
    let mut tried = None;
    let roomy = match is_slow && may_grow {
        true => with_room(question, &answer.plan, how, &mut tried)?,
        false => None,
    };
    if let Some((mut other, own, room)) = roomy {
        let words = format!(
            "rates are planned {} % above the need, to shorten waits, and the limits below are for \
             these rates: on {} {}",
            in_percent(room),
            answer.plan.title,
            slow(&got)
        );
        other.plan.reasons.insert(0, Reason { text: words, is_key: true });
        // The limits that it exceeds with extra capacity do not matter for the need itself.
        proof.notes.extend(next_cheaper(question, other.cheaper.take(), how)?);
        (**answer, got) = (other, own);
    }
    if !got.iter().all(Got::has_rate) {
        proof.fail(failing(&answer.plan));
    } else if !got.iter().all(Got::is_fast) {
        proof.fail(too_slow(&answer.plan, &got, may_grow, tried));
    } else {
        let queues = queues(question, &answer.plan, &got, may_grow)?;
        answer.plan.reasons.splice(0..0, queues);
    }
    proof.layouts.push(("plan", got));
    proof.add_limits(&answer.plan, at_limits);
    Ok(proof)
}

/// Simulates a plan for the highest rates with these rates; `None` for other plans.
fn at_limits(
    question: &Question<'_>,
    answer: &Answer,
    how: How,
) -> Result<Option<Vec<Got>>, ProofError> {
    if answer.carried == WHOLE {
        return Ok(None);
    }
    let most = need_at_limits(question, answer)?;
    Ok(Some(verify("the plan", &answer.plan.layout, &most, question.catalog, how)?))
}

/// Returns the need with the rates that a plan for the highest rates carries. The limits of an instance's tempdb are not
/// published, other than on Business Critical, so it keeps the rate of the need.
pub(crate) fn need_at_limits(question: &Question<'_>, answer: &Answer) -> Result<Need, ProofError> {
    let layout = Layout::parse("the plan", &answer.plan.layout, question.catalog);
    let layout = layout.map_err(VerifyError::from)?;
    let mut instances = layout.hosts.iter().filter_map(|host| host.instance.as_ref());
    let keeps_tempdb = instances.any(|own| own.kind != ManagedInstance::Bc);
    let mut most = question.need.scaled(answer.carried);
    for (own, stated) in most.roles.iter_mut().zip(&question.need.roles) {
        if keeps_tempdb && own.role == Role::Tempdb {
            own.clone_from(stated);
        }
    }
    Ok(most)
}

/// Returns the note on a plan that misses its rates in simulation.
fn failing(plan: &Plan) -> String {
    format!(
        "{} fails its own simulation, so there is no plan: this is a defect of the planner",
        plan.title
    )
}

fn simulated(question: &Question<'_>, plan: &Plan, how: How) -> Result<Vec<Got>, ProofError> {
    Ok(verify("the plan", &plan.layout, question.need, question.catalog, how)?)
}

/// Returns the first plan with extra capacity that meets the original need, and that capacity. `tried` gets the largest
/// one of which a plan missed.
fn with_room(
    question: &Question<'_>,
    slow: &Plan,
    how: How,
    tried: &mut Option<u64>,
) -> Result<Option<Roomy>, ProofError> {
    let mut search = Search { question, how, layout: slow.layout.clone(), missed: 0, best: None };
    for room in ROOM {
        match search.attempt(room)? {
            Attempt::Missed => *tried = Some(room),
            Attempt::Enough | Attempt::NoPlan => {
                search.bisect(room)?;
                *tried = tried.map(|own| own.max(search.missed));
                return Ok(search.best);
            }
        }
    }
    Ok(None)
}

/// A search for extra capacity.
struct Search<'a> {
    question: &'a Question<'a>,
    how: How,
    /// The layout for the largest capacity that misses, and that capacity.
    layout: String,
    missed: u64,
    best: Option<Roomy>,
}

/// The result of planning with extra capacity.
enum Attempt {
    /// The plan misses the need, or it is one that did before.
    Missed,
    /// The plan meets the need.
    Enough,
    /// There is no plan for so much.
    NoPlan,
}

impl Search<'_> {
    fn attempt(&mut self, room: u64) -> Result<Attempt, ProofError> {
        let need: Need = self.question.need.scaled(WHOLE + room);
        let planned = plan(&Question { need: &need, ..*self.question })?;
        let Outcome::Met(answer) = planned else { return Ok(Attempt::NoPlan) };
        if self.best.as_ref().is_some_and(|(best, ..)| best.plan.layout == answer.plan.layout) {
            return Ok(Attempt::Enough);
        }
        if answer.plan.layout != self.layout {
            let got = simulated(self.question, &answer.plan, self.how)?;
            if got.iter().all(Got::is_met) {
                self.best = Some((*answer, got, room));
                return Ok(Attempt::Enough);
            }
            self.layout.clone_from(&answer.plan.layout);
        }
        self.missed = room;
        Ok(Attempt::Missed)
    }

    /// Bisects the extra capacity between the largest that misses and `high`, which is enough or too much for any plan.
    fn bisect(&mut self, mut high: u64) -> Result<(), ProofError> {
        for _ in 0..HALVES {
            let room = self.missed + (high - self.missed) / 2;
            match self.attempt(room)? {
                Attempt::Missed => {}
                Attempt::Enough | Attempt::NoPlan => high = room,
            }
        }
        Ok(())
    }
}

/// Returns the note about the next cheaper layout, simulated with the original need.
fn next_cheaper(
    question: &Question<'_>,
    cheaper: Option<Cheaper>,
    how: How,
) -> Result<Option<String>, ProofError> {
    let Some(Cheaper { what, cost, fails, layout }) = cheaper else { return Ok(None) };
    let cost = format!("{what}, at {} a month", cost.month);
    // A layout without enough room cannot be simulated.
    let small =
        fails.iter().filter(|cap| !cap.is_rate).map(|cap| format!("{} of {}", cap.cap, cap.of));
    let small = small.collect::<Vec<_>>().join(", ");
    let got = match layout.map(|text| verify(&what, &text, question.need, question.catalog, how)) {
        Some(Ok(got)) => got,
        Some(Err(error)) if small.is_empty() => return Err(error.into()),
        Some(Err(_)) | None => {
            return Ok(Some(format!("next cheaper: {cost}: too small: {small}")));
        }
    };
    let slow = slow(&got);
    Ok(Some(match () {
        () if got.iter().all(Got::is_met) => {
            format!(
                "{cost}, also meets the need in simulation and costs less: planning for higher \
                 rates does not find it"
            )
        }
        () if slow.is_empty() => format!("next cheaper: {cost}, misses a rate in the simulation"),
        () => format!("next cheaper: {cost}: {slow}"),
    }))
}

/// Lists the roles that miss their latency.
pub(crate) fn slow(got: &[Got]) -> String {
    let slow = got.iter().filter(|own| !own.is_fast()).map(|own| {
        let took = time(float(own.median)).to_string();
        let most = own.asked_latency.map(|most| most.to_string()).unwrap_or_default();
        let grows = if own.grows { " and rising" } else { "" };
        let role = own.role.name();
        format!("the median latency of {role} is {took}{grows} instead of {most}")
    });
    slow.collect::<Vec<_>>().join(", ")
}

/// Returns a reason for each role without a latency target whose requests queue on the plan. Requests that are larger
/// than those of the need have no target.
fn queues(
    question: &Question<'_>,
    plan: &Plan,
    got: &[Got],
    may_grow: bool,
) -> Result<Vec<Reason>, ProofError> {
    let layout = Layout::parse("the plan", &plan.layout, question.catalog);
    let layout = layout.map_err(VerifyError::from)?;
    let need = with_promises(question.need, &layout);
    let mut reasons: Vec<Reason> = Vec::new();
    for own in got {
        let (stated, promised) = (question.need.role(own.role), need.role(own.role));
        let (Some(stated), Some(promised)) = (stated, promised) else { continue };
        let own = Got { asked_latency: promised.latency, ..*own };
        let is_judged = stated.latency.is_none() && own.request == stated.request;
        let Some(most) = promised.latency.filter(|_| is_judged && !own.is_fast()) else { continue };
        let (role, took) = (own.role.name(), time(float(own.median)));
        let advice = match may_grow {
            true => "; a latency in the need makes --verify plan the capacity for it",
            false => "",
        };
        let text = format!(
            "requests of {role} queue at these rates: their simulated median latency is {took}, and an \
             idle disk completes 99 % of them within {}{advice}",
            time(float(most.nanos()))
        );
        reasons.push(Reason { text, is_key: true });
    }
    Ok(reasons)
}

/// Returns the reason why a plan that meets the rates is rejected.
fn too_slow(plan: &Plan, got: &[Got], may_grow: bool, tried: Option<u64>) -> String {
    let mut words = format!("{} was found, but in simulation {}", plan.title, slow(got));
    let busy =
        plan.binding().map(|cap| (cap, cap.utilisation())).filter(|(_, share)| *share >= BUSY);
    let written = match busy {
        Some((cap, share)) => write!(
            words,
            ": the limit {} of {} is {} used, so requests likely wait there",
            cap.cap,
            cap.of,
            percent(share)
        ),
        None => write!(words, ": the medium takes that long, or the stripe splits requests"),
    };
    // Writing to a string does not fail.
    debug_assert!(written.is_ok());
    words += &match (may_grow, tried) {
        (true, Some(room)) => format!(
            "; plans for up to {} % more miss it as well: allow more time, or other disks",
            in_percent(room)
        ),
        (true, None) => {
            "; there is no plan for higher rates: allow more time, or other disks".to_owned()
        }
        (false, _) => "; allow more time, or a larger budget or machine".to_owned(),
    };
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{CapUnit, CapUse};
    use crate::cost::Cost;
    use crate::need::{NeedFile, Wishes};
    use weir_catalog::Catalog;

    #[test]
    fn a_next_cheaper_without_room_for_the_data_is_told_and_no_error() {
        let catalog = Catalog::builtin();
        let file = NeedFile::read("need.toml", "[data]\nsize = \"900 GiB\"\niops = 100\n");
        let (need, _) = file.and_then(|file| file.need()).expect("a need");
        let (edition, wishes) = (catalog.edition("azure-premium-2015"), Wishes::default());
        let edition = edition.expect("an edition");
        let question =
            Question { catalog: &catalog, edition, prices: None, need: &need, wishes: &wishes };
        // A P20 has 512 GiB; the second case has no layout.
        let small = "edition = \"azure-premium-2015\"\nhost = { size = \"DS13\" }\n[[volume]]\n\
                     name = \"d\"\ntier = \"P20\"\n[[file]]\nname = \"f\"\nrole = \"data\"\n\
                     size = \"900 GiB\"\non = \"d\"\n";
        for layout in [Some(small.to_owned()), None] {
            let is_rate = false;
            let (of, cap, unit) = ("data".to_owned(), "size", CapUnit::Size);
            let fails = vec![CapUse { of, cap, unit, is_rate, used: 900 << 30, most: 512 << 30 }];
            let next = Cheaper { what: "1 x P20".to_owned(), cost: Cost::default(), fails, layout };
            let told = next_cheaper(&question, Some(next), How::default()).expect("no error");
            let words = "next cheaper: 1 x P20, at 0.00 a month: too small: size of data";
            assert_eq!(told.as_deref(), Some(words));
        }
    }
}
