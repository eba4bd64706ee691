//! The cheapest changes that reach a goal.
//!
//! Layouts are simulated in the order of their price. If a layout misses the goal, some limit holds
//! its load back, and every layout that reaches the goal has that limit raised or relieved. So only
//! changes of the limits with waits lead on from it, and the first layout that reaches the goal is
//! the cheapest that these changes can build. A layout is not simulated if a limit at which the same
//! load failed before is no higher in it.

use crate::candidate::{Candidate, expand};
use crate::error::TuneError;
use crate::goal::Goal;
use crate::limit::{Place, Setting};
use crate::measure::{Bench, Effort, Measured};
use crate::price::Price;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use weir_diagnose::Change;
use weir_layout::Layout;
use weir_units::Money;

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
}

/// The order of layouts: the lower price, then fewer changes, then the earlier one.
type Rank = ((bool, Money), usize, usize);

struct Node {
    changes: Vec<Change>,
    text: String,
    layout: Layout,
    price: Price,
}

/// A limit at which the load failed.
struct Failure {
    name: String,
    place: Place,
    setting: Setting,
    rate: u64,
}

impl Failure {
    fn excludes(&self, layout: &Layout) -> bool {
        self.place.name(layout) == self.name
            && self.place.setting(layout) == self.setting
            && self.place.rate(layout).is_some_and(|rate| rate <= self.rate)
    }
}

/// A search in progress.
pub(crate) struct Search<'a> {
    bench: &'a Bench<'a>,
    goal: &'a Goal,
    bounds: Bounds,
    present: Price,
    nodes: Vec<Option<Node>>,
    queue: BinaryHeap<Reverse<(Rank, usize)>>,
    seen: BTreeSet<String>,
    failures: Vec<Failure>,
    /// Number of layouts simulated.
    pub(crate) simulations: usize,
}

impl<'a> Search<'a> {
    /// Begins at the layout in `text`, which was `measured`.
    pub(crate) fn from(
        bench: &'a Bench<'a>,
        goal: &'a Goal,
        bounds: Bounds,
        (text, measured): (&str, &Measured),
    ) -> Result<Self, TuneError> {
        let layout = Layout::parse("layout.toml", text, bench.catalog)?;
        let present = Price::of_layout(&layout, bench.catalog)?;
        let mut search = Self {
            bench,
            goal,
            bounds,
            present: present.clone(),
            nodes: Vec::new(),
            queue: BinaryHeap::new(),
            seen: BTreeSet::from([text.to_owned()]),
            failures: Vec::new(),
            simulations: 0,
        };
        let node = Node { changes: Vec::new(), text: text.to_owned(), layout, price: present };
        search.branch(&node, measured)?;
        Ok(search)
    }

    /// Runs the search to its end.
    pub(crate) fn run(&mut self) -> Result<Outcome, TuneError> {
        while let Some(Reverse((_, at))) = self.queue.pop() {
            let Some(node) = self.nodes.get_mut(at).and_then(Option::take) else { continue };
            if self.failures.iter().any(|own| own.excludes(&node.layout)) {
                continue;
            }
            if self.simulations >= self.bounds.simulations {
                return Ok(Outcome::Stopped);
            }
            let (is_met, measured) = self.try_out(&node)?;
            if !is_met {
                self.branch(&node, &measured)?;
                continue;
            }
            let is_dear = self.bounds.budget.is_some_and(|most| node.price.month() > most);
            let found = Found { changes: node.changes, text: node.text, price: node.price };
            return Ok(if is_dear {
                Outcome::BeyondBudget(found)
            } else {
                Outcome::Reached(found)
            });
        }
        Ok(Outcome::Exhausted)
    }

    /// Simulates a layout. One that reaches the goal in a short run has to reach it in a long one.
    fn try_out(&mut self, node: &Node) -> Result<(bool, Measured), TuneError> {
        self.simulations += 1;
        let quick = self.bench.measure("layout.toml", &node.text, Effort::Quick)?;
        if !self.goal.is_met(&quick) {
            return Ok((false, quick));
        }
        let full = self.bench.measure("layout.toml", &node.text, Effort::Full)?;
        Ok((self.goal.is_met(&full), full))
    }

    /// Notes the limit at which a layout failed, and queues the changes that relieve its limits.
    fn branch(&mut self, node: &Node, measured: &Measured) -> Result<(), TuneError> {
        if let Some((place, _)) = measured.binding()
            && let Some(rate) = place.rate(&node.layout)
        {
            let (name, setting) = (place.name(&node.layout), place.setting(&node.layout));
            self.failures.push(Failure { name, place, setting, rate });
        }
        if node.changes.len() >= self.bounds.changes {
            return Ok(());
        }
        for candidate in expand(&node.text, &node.layout, measured, self.bench.catalog)? {
            let Candidate { change, text, layout, price } = candidate;
            let is_excluded = self.failures.iter().any(|own| own.excludes(&layout));
            if is_excluded || !self.seen.insert(text.clone()) {
                continue;
            }
            let mut changes = node.changes.clone();
            changes.push(change);
            let rank = (price.rank(&self.present), changes.len(), self.nodes.len());
            self.queue.push(Reverse((rank, self.nodes.len())));
            self.nodes.push(Some(Node { changes, text, layout, price }));
        }
        Ok(())
    }
}
