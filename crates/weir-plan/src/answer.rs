//! Answers of the planner.

use crate::cost::Cost;
use crate::demand::{Flow, Limits};
use crate::share::WHOLE;
pub use weir_layout::bill::Line;
use weir_report::number::float;
use weir_units::Bytes;

/// A layout that meets a need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The family: `vm`, `gp`, `next-gen-gp`, `bc`, `rds` or `postgres`.
    pub family: String,
    /// One line that describes the layout.
    pub title: String,
    /// The layout file.
    pub layout: String,
    /// The bill, by line.
    pub lines: Vec<Line>,
    /// The price per month, and the number of missing prices.
    pub cost: Cost,
    /// The utilisation of every limit.
    pub caps: Vec<CapUse>,
    /// Reasons for this layout, and open questions about it.
    pub reasons: Vec<Reason>,
    /// Number of attached disks; 0 for instances and services.
    pub disks: u64,
    /// The cheapest layout, if it is another one with more disks.
    pub passed_over: Option<PassedOver>,
}

/// A reason for a plan, or an open question about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// One sentence.
    pub text: String,
    /// True if the plan should not be used without knowing it: a risk, an assumption, or a change
    /// of what is in use.
    pub is_key: bool,
}

impl Reason {
    /// Builds a reason that explains the plan.
    pub(crate) fn detail(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_key: false }
    }

    /// Builds a reason that has to be known before the plan is used.
    pub(crate) fn key(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_key: true }
    }
}

/// A layout that meets the need, costs less than the plan, and has more disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// One line that describes the layout.
    pub title: String,
    /// The price per month.
    pub cost: Cost,
    /// Number of disks.
    pub disks: u64,
}

impl Plan {
    /// Returns the limit with the highest utilisation, which binds.
    #[must_use]
    pub fn binding(&self) -> Option<&CapUse> {
        let rates = self.caps.iter().filter(|cap| cap.used > 0 && cap.is_rate);
        rates.max_by(|one, other| one.share().cmp(&other.share()))
    }

    /// Returns the share of the need that the plan carries, in millionths: the whole or more.
    #[must_use]
    pub fn carries(&self) -> Option<u64> {
        let binding = self.binding()?;
        let parts = u128::from(binding.most) * u128::from(WHOLE);
        u64::try_from(parts / u128::from(binding.used)).ok()
    }
}

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapUnit {
    /// Operations per second.
    Iops,
    /// Bytes per second.
    Rate,
    /// Bytes.
    Size,
    /// A number of things.
    Number,
    /// Thousandths of a thing.
    Thousandths,
}

/// The utilisation of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapUse {
    /// The owner of the limit: a disk, a stripe, a file, the machine.
    pub of: String,
    /// The name of the limit.
    pub cap: &'static str,
    /// The unit.
    pub unit: CapUnit,
    /// True if the limit is a rate rather than a size or a number.
    pub is_rate: bool,
    /// The demand.
    pub used: u64,
    /// The limit.
    pub most: u64,
}

impl CapUse {
    /// Returns the utilisation of the two rates of `count` equal limits, each at its highest peak.
    /// The names are those of the limits on operations and on bytes.
    pub(crate) fn rates(
        of: &str,
        peaks: &[&Flow],
        each: Limits,
        count: u64,
        [operations, bytes]: [&'static str; 2],
    ) -> Vec<Self> {
        let own = |cap, unit, used: u64, most: u64| Self {
            of: of.to_owned(),
            cap,
            unit,
            is_rate: true,
            used,
            most: most.saturating_mul(count),
        };
        let most = Flow::most(peaks.iter().copied());
        let mut all = vec![
            own(operations, CapUnit::Iops, most.operations, each.operations),
            own(bytes, CapUnit::Rate, most.bytes, each.bytes),
        ];
        all.retain(|cap| cap.most < u64::MAX);
        all
    }

    /// Returns the utilisation of a limit on a number.
    pub(crate) fn number(of: &str, cap: &'static str, used: u64, most: u64) -> Self {
        Self { of: of.to_owned(), cap, unit: CapUnit::Number, is_rate: false, used, most }
    }

    /// Returns the limit if demand exceeds it.
    pub(crate) fn lacking(self) -> Option<Self> {
        (self.used > self.most).then_some(self)
    }

    /// Returns the utilisation of a limit on a size.
    pub(crate) fn size(of: &str, cap: &'static str, used: Bytes, most: Bytes) -> Self {
        let (used, most) = (used.get(), most.get());
        Self { of: of.to_owned(), cap, unit: CapUnit::Size, is_rate: false, used, most }
    }

    /// Returns the utilisation in millionths.
    #[must_use]
    pub fn share(&self) -> u64 {
        let parts = u128::from(self.used) * u128::from(WHOLE);
        u64::try_from(parts.div_ceil(u128::from(self.most.max(1)))).unwrap_or(u64::MAX)
    }
}

impl CapUse {
    /// Returns the utilisation, from 0 to 1 and above.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        float(self.share()) / float(WHOLE)
    }
}

/// A layout that costs less than the plan, and the limits that it exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cheaper {
    /// One line that describes the layout.
    pub what: String,
    /// The price per month.
    pub cost: Cost,
    /// The limits that are exceeded.
    pub fails: Vec<CapUse>,
    /// The layout file, if the layout can be built.
    pub layout: Option<String>,
}

/// A machine without a price that carries the need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpriced {
    /// The name of the machine.
    pub host: String,
    /// One line that describes the layout on it.
    pub title: String,
    /// The price per month of everything but the machine: its lower bound.
    pub cost: Cost,
}

/// A change of the question that makes the need feasible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relaxation {
    /// The change.
    pub what: String,
    /// The price per month of the cheapest layout after the change.
    pub cost: Cost,
    /// One line that describes that layout.
    pub title: String,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The cheapest layout that meets the need.
    pub plan: Plan,
    /// The cheapest layout of each other family.
    pub others: Vec<Plan>,
    /// The next cheaper layout, and the limits that it exceeds.
    pub cheaper: Option<Cheaper>,
    /// The multiple of the need's rates that the plan carries, in millionths; `WHOLE` unless the highest rates were
    /// searched.
    pub carried: u64,
    /// The cheapest layout that carries more than the plan.
    pub better: Option<Plan>,
    /// Number of layouts compared.
    pub compared: u64,
    /// A note about missing prices, if none of the layouts has all of them.
    pub unranked: Option<String>,
    /// Machines without a price that may be cheaper than the plan, since the rest of their layout
    /// is. The one with the lowest known price is first.
    pub unpriced: Vec<Unpriced>,
    /// The cheapest layout on a family of disks without all prices, if it may be cheaper than the plan.
    pub incomplete: Option<Incomplete>,
    /// Notes about assumptions and omissions.
    pub notes: Vec<String>,
}

/// A layout on disks without all prices that may be cheaper than the plan, since its known prices are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomplete {
    /// One line that describes the layout.
    pub title: String,
    /// The known prices.
    pub cost: Cost,
    /// The items without a price.
    pub lacks: Vec<String>,
}

impl Incomplete {
    /// Says that it may be cheaper.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "may be cheaper: {}, at {} a month without the prices of {} (add them with --prices FILE)",
            self.title,
            self.cost.month,
            self.lacks.join("; ")
        )
    }
}
