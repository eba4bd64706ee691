//! The cheapest changes that reach a goal.
//!
//! Layouts are simulated in the order of their price. If a layout misses the goal, limits hold its load
//! back, and only changes that raise or relieve one of them lead on from it. So the first layout that
//! reaches the goal is the cheapest that these changes can build. Unless that one is free, tuning takes one
//! of nearly its price if fewer of its changes have downtime.
//!
//! A layout is not simulated if it has to fail: if a limit is below the rate of the need, or is no higher
//! than where the same load failed at it before. Its changes of that limit come next. A load fails at a
//! limit if a role misses its need there, or if jobs wait at no other limit: the goal of several jobs is
//! a sum, which the others may bring.

use crate::candidate::{
    Candidate, MINOR, Meets, Reason, expand, may_bind, out_of_reach, reasons, slow_media,
};
use crate::downtime::has_downtime;
use crate::error::TuneError;
use crate::goal::{Goal, WAITED, is_sure};
use crate::limit::{Place, Setting, words};
use crate::load::Load;
use crate::measure::{Bench, Credits, Effort, Measured};
use crate::price::{Price, PriceRank, Pricer};
use crate::tune::subjects;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use weir_core::Cap;
use weir_diagnose::Change;
use weir_layout::Layout;
use weir_plan::verify::Got;
use weir_report::number::float;
use weir_units::Money;

/// Most layouts to look at for each that may be simulated.
const VISITS: usize = 5;

/// A need is met if its rates fall short by at most one part in this many.
const SHORT: u64 = 50;

/// The least factor by which a rate grows after a simulation that missed it: a limit that is all but the rate of the
/// load is approached in few steps.
const LEAST_GROWTH: f64 = 1.005;

/// A layout that a search reached.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The changes from the start, in the order in which limits called for them.
    pub(crate) changes: Vec<Change>,
    /// The text of the layout.
    pub(crate) text: String,
    /// The price.
    pub(crate) price: Price,
}

/// The end of a search.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The cheapest layout that reaches the goal.
    Reached(Found),
    /// The cheapest layout that reaches the goal costs more than the budget.
    BeyondBudget(Found),
    /// No change raises the limits that hold the load back.
    Exhausted,
    /// The number of simulations reached its maximum.
    Stopped,
    /// The user asked to stop.
    Interrupted,
}

/// Bounds of a search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Highest price per month.
    pub(crate) budget: Option<Money>,
    /// Most changes one after the other.
    pub(crate) changes: usize,
    /// Most simulations.
    pub(crate) simulations: usize,
    /// True if a layout at the edge of the goal counts only where no other is found: a real system may be a little
    /// slower.
    pub(crate) must_be_sure: bool,
    /// True if changes with downtime are left out.
    pub(crate) no_downtime: bool,
    /// True if a layout of up to 1 % more than the cheapest counts if fewer of its changes have downtime.
    pub(crate) avoids_outages: bool,
}

/// The order of layouts: the lower price, then fewer outages, then fewer changes, then the earlier one.
type Rank = (PriceRank, usize, usize, usize);

struct Node {
    changes: Vec<Change>,
    /// Number of changes with downtime on the way.
    outages: usize,
    text: String,
    layout: Layout,
    price: Price,
}

/// How a simulated layout compares with the goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Misses,
    /// It reaches the goal by the tolerance, where it must be sure.
    AtTheEdge,
    Reaches,
}

/// A limit at which the load failed.
struct Failure {
    host: usize,
    /// The export, if it is not a limit of the host.
    export: Option<String>,
    cap: Cap,
    setting: Setting,
    /// A rate that is too low.
    rate: u64,
}

impl Failure {
    fn at(place: Place, layout: &Layout, rate: u64) -> Self {
        let export = place.export.map(|_| place.name(layout));
        let setting = place.setting(layout);
        Self { host: place.host, export, cap: place.cap, setting, rate }
    }

    /// Returns the place of the limit in another layout, if the load fails there as well.
    fn place_in(&self, layout: &Layout) -> Option<Place> {
        let host = layout.hosts.get(self.host)?;
        let export = match &self.export {
            Some(name) => Some(host.exports.iter().position(|own| own.name == *name)?),
            None => None,
        };
        let place = Place { host: self.host, export, cap: self.cap };
        let fails = place.setting(layout).is_no_better_than(&self.setting)
            && place.rate(layout).is_some_and(|rate| rate <= self.rate);
        fails.then_some(place)
    }
}

/// Says whether a change can be made to a layout.
pub(crate) type Allows<'a> = &'a dyn Fn(&Change, &Layout) -> bool;

/// Says whether the user asked to stop.
pub(crate) type Stop<'a> = &'a dyn Fn() -> bool;

/// Returns whether no load passes a limit that has waits without passing `place`.
fn is_alone(place: Place, measured: &Measured) -> bool {
    let mut others = measured.waits.iter().map(|(other, _)| other).filter(|other| **other != place);
    others.all(|other| {
        other.host == place.host
            && match place.export {
                // A limit of the host is passed by all, unless the other side has waits too.
                None => other.export.is_some(),
                Some(own) => other.export.is_none_or(|export| export == own),
            }
    })
}

fn adds_a_file(change: &Change) -> bool {
    match change {
        Change::File { .. } => true,
        Change::All(all) => all.iter().any(adds_a_file),
        _ => false,
    }
}

/// Returns the change that has the effect of two, one after the other, if there is one: a stripe is built once, with the
/// columns, the unit and the rates that it ends with.
fn merged(first: &Change, then: &Change) -> Option<Change> {
    let is_same_kind = |one: &Change| std::mem::discriminant(one) == std::mem::discriminant(then);
    if subjects(first).first() != subjects(then).first() {
        return None;
    }
    let mut first = first.clone();
    match (&mut first, then) {
        (Change::Stripe { unit, .. }, Change::Unit { bytes, .. }) => *unit = *bytes,
        (Change::Stripe { columns, .. }, Change::Columns { columns: then, .. }) => *columns = *then,
        (Change::Stripe { each: Some(each), .. }, Change::Bought { iops, throughput, .. }) => {
            (each.iops, each.throughput) = (*iops, *throughput);
        }
        (Change::Unit { .. }, Change::Columns { .. })
        | (Change::Columns { .. }, Change::Unit { .. }) => {
            return Some(Change::All(vec![first, then.clone()]));
        }
        (Change::All(parts), Change::Unit { .. } | Change::Columns { .. })
            if parts.iter().any(is_same_kind) =>
        {
            parts.retain(|part| !is_same_kind(part));
            parts.push(then.clone());
        }
        (first, then) if is_same_kind(first) && subjects(first) == subjects(then) => {
            return Some(then.clone());
        }
        _ => return None,
    }
    Some(first)
}

/// A search in progress.
pub(crate) struct Search<'a> {
    bench: &'a Bench<'a>,
    goal: &'a Goal,
    bounds: Bounds,
    allows: Allows<'a>,
    /// Says when to stop.
    stop: Stop<'a>,
    /// The text of the layout at the start.
    start: String,
    start_layout: Layout,
    present: Price,
    pricer: Pricer<'a>,
    nodes: Vec<Option<Node>>,
    queue: BinaryHeap<Reverse<(Rank, usize)>>,
    seen: BTreeSet<String>,
    failures: Vec<Failure>,
    /// The cheapest layout at the edge of the goal.
    edge: Option<Node>,
    /// Number of changes left out because they have downtime.
    pub(crate) left_out: usize,
    /// Why no change helps, if the media are too slow.
    pub(crate) out_of_reach: Option<String>,
    /// A limit below the need that no change raises far enough.
    pub(crate) too_low: Option<String>,
    /// Number of layouts simulated.
    pub(crate) simulations: usize,
    /// Number of layouts looked at, simulated or not.
    pub(crate) visits: usize,
}

impl<'a> Search<'a> {
    /// Begins at the layout in `text`, which was `measured`.
    pub(crate) fn from(
        bench: &'a Bench<'a>,
        goal: &'a Goal,
        (bounds, allows, stop): (Bounds, Allows<'a>, Stop<'a>),
        (text, measured): (&str, &Measured),
    ) -> Result<Self, TuneError> {
        let layout = Layout::parse("layout.toml", text, bench.catalog)?;
        let pricer = Pricer::new(&layout, bench.catalog)?;
        let present = pricer.price(&layout);
        let mut search = Self {
            bench,
            goal,
            bounds,
            allows,
            stop,
            start: text.to_owned(),
            start_layout: layout.clone(),
            present: present.clone(),
            pricer,
            nodes: Vec::new(),
            queue: BinaryHeap::new(),
            seen: BTreeSet::from([text.to_owned()]),
            failures: Vec::new(),
            edge: None,
            left_out: 0,
            out_of_reach: None,
            too_low: None,
            simulations: 0,
            visits: 0,
        };
        search.out_of_reach = out_of_reach(&layout, &bench.load, search.pricer.edition());
        if search.out_of_reach.is_some() {
            return Ok(search);
        }
        let node = search.node(Vec::new(), text.to_owned(), layout, present);
        search.note_failures(&node, measured);
        match search.short(&node.layout) {
            // Every layout that carries the need raises or relieves this limit, so no other change has to come first.
            Some((place, factor)) => {
                search.raise(&node, place, factor);
                // The demand is a lower bound, and the measurement may tell more.
                let lack = search.lack(place, &node.layout, measured);
                if let Some(lack) = lack.filter(|lack| *lack > factor) {
                    search.queue_changes(&node, (Reason::Limit(place), Some(lack)));
                }
            }
            None => search.branch(&node, measured),
        }
        Ok(search)
    }

    /// Runs the search to its end. If it must be sure and nothing is, the cheapest layout at the edge counts.
    pub(crate) fn run(&mut self) -> Result<Outcome, TuneError> {
        let outcome = self.walk()?;
        let is_found = matches!(outcome, Outcome::Reached(_) | Outcome::Interrupted);
        let Some(node) = self.edge.take().filter(|_| !is_found) else { return Ok(outcome) };
        self.bounds.must_be_sure = false;
        match self.found(node)? {
            reached @ Outcome::Reached(_) => Ok(reached),
            _ => Ok(outcome),
        }
    }

    fn walk(&mut self) -> Result<Outcome, TuneError> {
        // The layout that reaches the goal with the fewest outages, for nearly the price of the cheapest.
        let mut best: Option<(Price, Node)> = None;
        while let Some(Reverse((_, at))) = self.queue.pop() {
            if (self.stop)() {
                return Ok(Outcome::Interrupted);
            }
            let Some(node) = self.nodes.get_mut(at).and_then(Option::take) else { continue };
            match &best {
                Some((cheapest, _)) if !self.is_close(&node.price, cheapest) => break,
                Some((_, best)) if node.outages >= best.outages => continue,
                _ => {}
            }
            let most = self.bounds.simulations;
            if self.visits >= most.saturating_mul(VISITS) || self.simulations >= most {
                return best.map_or(Ok(Outcome::Stopped), |(_, best)| self.found(best));
            }
            self.visits += 1;
            // A layout that has to fail is not simulated.
            if let Some((place, factor)) = self.short(&node.layout) {
                self.raise(&node, place, factor);
                continue;
            }
            if let Some(place) = self.failures.iter().find_map(|own| own.place_in(&node.layout)) {
                self.queue_changes(&node, (Reason::Limit(place), None));
                continue;
            }
            let (fit, measured) = self.try_out(&node)?;
            if fit == Fit::Reaches {
                let month = node.price.month();
                let is_dear = self.bounds.budget.is_some_and(|most| month > most.largest_alike());
                let is_free = month <= self.present.month();
                if !self.bounds.avoids_outages || node.outages == 0 || is_free || is_dear {
                    return self.found(node);
                }
                let cheapest = best.map_or_else(|| node.price.clone(), |(cheapest, _)| cheapest);
                best = Some((cheapest, node));
                continue;
            }
            self.note_failures(&node, &measured);
            self.branch(&node, &measured);
            if fit == Fit::AtTheEdge {
                self.edge.get_or_insert(node);
            }
        }
        best.map_or(Ok(Outcome::Exhausted), |(_, best)| self.found(best))
    }

    /// Returns whether a price is within the budget and at most 1 % above the cheapest.
    fn is_close(&self, price: &Price, cheapest: &Price) -> bool {
        let (month, least) = (price.month().micros(), cheapest.month().micros());
        let budget = self.bounds.budget.map_or(u64::MAX, |most| most.largest_alike().micros());
        price.rank(&self.present).0 == cheapest.rank(&self.present).0
            && month <= least.saturating_add(least / 100).min(budget)
    }

    /// Queues the changes that raise a limit which is below the need by a factor.
    fn raise(&mut self, node: &Node, place: Place, factor: f64) {
        if !self.queue_changes(node, (Reason::Limit(place), Some(factor))) {
            let words = || format!("{} of {}", words(place.cap), place.name(&node.layout));
            self.too_low.get_or_insert_with(words);
        }
    }

    /// Returns a layout that reaches the goal, without useless changes.
    fn found(&mut self, node: Node) -> Result<Outcome, TuneError> {
        let node = self.pruned(node)?;
        let is_dear =
            self.bounds.budget.is_some_and(|most| node.price.month() > most.largest_alike());
        let found = Found { changes: node.changes, text: node.text, price: node.price };
        Ok(if is_dear { Outcome::BeyondBudget(found) } else { Outcome::Reached(found) })
    }

    /// Simulates a layout. One that reaches the goal in a short run has to reach it in a long one.
    fn try_out(&mut self, node: &Node) -> Result<(Fit, Measured), TuneError> {
        self.simulations += 1;
        let quick = self.bench.measure("layout.toml", &node.text, Effort::Quick)?;
        if !self.goal.is_met(&quick) {
            return Ok((Fit::Misses, quick));
        }
        let full = self.bench.measure("layout.toml", &node.text, Effort::Full)?;
        let is_sure = || self.goal.is_surely_met(&quick) && self.goal.is_surely_met(&full);
        let fit = match self.goal.is_met(&full) {
            false => Fit::Misses,
            true if self.bounds.must_be_sure && !is_sure() => Fit::AtTheEdge,
            true => Fit::Reaches,
        };
        Ok((fit, full))
    }

    /// Returns what decides whether a role meets its need.
    fn meets(&self) -> Meets {
        if self.bounds.must_be_sure { is_sure } else { Got::is_met }
    }

    /// Leaves out changes without which a layout still reaches the goal for no more money: a later
    /// change may have made an earlier one useless.
    fn pruned(&mut self, mut node: Node) -> Result<Node, TuneError> {
        let mut at = 0;
        while node.changes.len() > 1 && at < node.changes.len() {
            let mut fewer = node.changes.clone();
            fewer.remove(at);
            let fewer = self
                .build(fewer)
                .filter(|fewer| fewer.price.rank(&self.present) <= node.price.rank(&self.present));
            match fewer {
                Some(fewer) if self.try_out(&fewer)?.0 == Fit::Reaches => node = fewer,
                _ => at += 1,
            }
        }
        Ok(node)
    }

    /// Returns the layout that changes lead to from the start, if they can be made.
    fn build(&self, changes: Vec<Change>) -> Option<Node> {
        let text = changes.iter().try_fold(self.start.clone(), |text, own| own.apply(&text))?;
        let layout = Layout::parse("layout.toml", &text, self.bench.catalog).ok()?;
        let price = self.pricer.price(&layout);
        Some(self.node(changes, text, layout, price))
    }

    /// Returns a layout that changes lead to from the start, with the number of those that have downtime.
    fn node(&self, changes: Vec<Change>, text: String, layout: Layout, price: Price) -> Node {
        let layouts = (&self.start_layout, &layout);
        let stops = |change: &&Change| has_downtime(change, layouts, self.bench.catalog);
        let outages = changes.iter().filter(stops).count();
        Node { changes, outages, text, layout, price }
    }

    /// Returns the first limit of a layout that is below what a need asks of it, and the factor by which it has to grow:
    /// without bursts, the need fails there in any case.
    fn short(&self, layout: &Layout) -> Option<(Place, f64)> {
        Place::all(layout).find_map(|place| Some((place, self.shortfall(place, layout)?)))
    }

    /// Returns the factor by which a limit has to grow, if it is below what a need asks of it.
    fn shortfall(&self, place: Place, layout: &Layout) -> Option<f64> {
        let Load::Needs(needs) = &self.bench.load else { return None };
        if self.bench.credits == Credits::Given {
            return None;
        }
        let asked = needs.iter().map(|need| place.demand(layout, need)).max().unwrap_or(0);
        let least = asked - asked / SHORT - 1.min(asked);
        let rate = place.rate(layout)?;
        (rate < least).then(|| float(asked) / float(rate.max(1)))
    }

    /// Returns the factor by which the load at a limit has to grow, as measured, if it is known.
    fn lack(&self, place: Place, layout: &Layout, measured: &Measured) -> Option<f64> {
        let lack = self.goal.lack(measured, |role| place.limits(layout, role));
        lack.map(|own| own.max(LEAST_GROWTH))
    }

    /// Notes the limits at which a layout failed.
    fn note_failures(&mut self, node: &Node, measured: &Measured) {
        let mut is_first = true;
        let all: u64 = measured.waits.iter().map(|(_, ns)| *ns).sum();
        let slow = slow_media(&node.layout, &self.bench.load, measured, self.meets());
        for (place, ns) in &measured.waits {
            let Some(rate) = place.rate(&node.layout) else { continue };
            let has_failed = match self.bench.load {
                Load::Needs(_) => {
                    let is_binding = may_bind(*place, &node.layout, measured, self.meets());
                    is_binding
                        && std::mem::take(&mut is_first)
                        && slow.is_empty()
                        && measured.waited() > WAITED
                }
                Load::Jobs(_) | Load::Databases(..) => {
                    std::mem::take(&mut is_first)
                        && (is_alone(*place, measured) || float(*ns) >= (1.0 - MINOR) * float(all))
                }
            };
            if has_failed {
                self.failures.push(Failure::at(*place, &node.layout, rate));
            }
        }
    }

    /// Queues the changes that relieve the limits of a layout.
    fn branch(&mut self, node: &Node, measured: &Measured) {
        let mut has_faster = false;
        for reason in reasons(&node.layout, &self.bench.load, measured, self.meets()) {
            let lack = match reason {
                Reason::Limit(place) => self.lack(place, &node.layout, measured),
                Reason::Lack(_) | Reason::Media | Reason::SlowMedia(_) => None,
            };
            // A higher limit does not make a medium faster.
            if has_faster && matches!(reason, Reason::Limit(_)) {
                break;
            }
            let before = self.nodes.len();
            self.queue_changes(node, (reason, lack));
            has_faster |= matches!(reason, Reason::SlowMedia(_)) && self.nodes.len() > before;
        }
    }

    /// Returns changes with one more, which leads to the layout in `text`. If one change does what an earlier one and
    /// `more` do, it takes their place, as long as the layout is the same then.
    fn with(&self, changes: &[Change], more: Change, text: &str) -> Vec<Change> {
        let apply = |text: String, change: &Change| {
            let text = change.apply(&text)?;
            Layout::parse("layout.toml", &text, self.bench.catalog).ok().map(|_| text)
        };
        let mut earlier = changes.iter().enumerate();
        let one = earlier.find_map(|(at, own)| Some((at, merged(own, &more)?)));
        if let Some((at, one)) = one {
            // The changes between them may need the earlier one, or one like it.
            let mut early = changes.to_vec();
            early[at] = one.clone();
            let mut late = changes.to_vec();
            late.remove(at);
            late.push(one);
            let reaches = |all: &Vec<Change>| {
                all.iter().try_fold(self.start.clone(), apply).as_deref() == Some(text)
            };
            if let Some(fewer) = [early, late].into_iter().find(reaches) {
                return fewer;
            }
        }
        changes.iter().cloned().chain([more]).collect()
    }

    /// Returns whether the load fails at a limit of the layout before a change, and after it as well.
    fn still_fails(&self, place: Place, (before, after): (&Layout, &Layout)) -> bool {
        let is_it = |other: &Place| {
            (other.host, other.cap) == (place.host, place.cap)
                && other.name(after) == place.name(before)
        };
        let mut failed = self.failures.iter().filter_map(|own| own.place_in(after));
        failed.any(|other| is_it(&other))
            || Place::all(after).filter(is_it).any(|other| self.shortfall(other, after).is_some())
    }

    /// Queues the changes for a reason: those that bring a limit above the rate at which the load
    /// fails, or all if none does alone. Returns whether one does, or was left out.
    fn queue_changes(&mut self, node: &Node, (reason, lack): (Reason, Option<f64>)) -> bool {
        if node.changes.len() >= self.bounds.changes {
            return true;
        }
        let mut all =
            expand(&node.text, &node.layout, (reason, lack), (self.bench.catalog, &self.pricer));
        let offered = all.len();
        all.retain(|own| own.changes.iter().all(|change| (self.allows)(change, &node.layout)));
        if !matches!(self.bench.load, Load::Needs(_)) {
            // Jobs and databases name their files.
            all.retain(|own| !own.changes.iter().any(adds_a_file));
        }
        if self.bounds.no_downtime {
            let before = all.len();
            let stops = |own: &Candidate, change: &Change| {
                has_downtime(change, (&node.layout, &own.layout), self.bench.catalog)
            };
            all.retain(|own| !own.changes.iter().any(|change| stops(own, change)));
            self.left_out += before - all.len();
        }
        let still_fails = |own: &Candidate| match reason {
            Reason::Limit(place) => self.still_fails(place, (&node.layout, &own.layout)),
            Reason::Lack(_) | Reason::Media | Reason::SlowMedia(_) => false,
        };
        // Changes that were left out may raise it.
        let is_restricted = all.len() < offered;
        let is_raised = !all.iter().all(still_fails);
        if is_raised {
            all.retain(|own| !still_fails(own));
        }
        for Candidate { changes: more, text, layout, price } in all {
            if !self.seen.insert(text.clone()) {
                continue;
            }
            let start = node.changes.clone();
            let changes = more.into_iter().fold(start, |all, own| self.with(&all, own, &text));
            if changes.len() > self.bounds.changes {
                continue;
            }
            let node = self.node(changes, text, layout, price);
            let rank = node.price.rank(&self.present);
            let rank = (rank, node.outages, node.changes.len(), self.nodes.len());
            self.queue.push(Reverse((rank, self.nodes.len())));
            self.nodes.push(Some(node));
        }
        is_raised || is_restricted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_diagnose::StripeDisk;

    #[test]
    fn a_new_stripe_is_built_once() {
        let name = || "data".to_owned();
        let stripe = |columns, unit| {
            let tier = Some("P10".to_owned());
            Change::Stripe { name: name(), columns, tier, each: None, unit }
        };
        let unit = Change::Unit { name: name(), bytes: 4 };
        let columns = Change::Columns { name: name(), columns: 5 };
        assert_eq!(merged(&stripe(2, 1), &unit), Some(stripe(2, 4)));
        assert_eq!(merged(&stripe(2, 1), &columns), Some(stripe(5, 1)));
        assert_eq!(merged(&stripe(2, 1), &stripe(3, 3)), Some(stripe(3, 3)));
        let both = Change::All(vec![unit.clone(), columns.clone()]);
        assert_eq!(merged(&unit, &columns), Some(both.clone()));
        let wider = Change::Columns { name: name(), columns: 6 };
        assert_eq!(merged(&both, &wider), Some(Change::All(vec![unit, wider])));
        let other = Change::Unit { name: "log".to_owned(), bytes: 4 };
        assert_eq!(merged(&stripe(2, 1), &other), None);
        let disk = |iops| {
            let each = Some(StripeDisk { size: 8, iops, throughput: Some(9) });
            Change::Stripe { name: name(), columns: 2, tier: None, each, unit: 1 }
        };
        let bought = Change::Bought { name: name(), iops: 7, throughput: Some(9) };
        assert_eq!(merged(&disk(3), &bought), Some(disk(7)));
        assert_eq!(merged(&stripe(2, 1), &bought), None);
    }
}
