//! What is found.

use crate::cost::Cost;
use crate::demand::{Flow, Limits};
use crate::need::WHOLE;
pub use weir_layout::bill::Line;
use weir_units::Bytes;

/// A layout that meets a need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The family: `vm`, `gp`, `next-gen-gp`, `bc`, `rds` or `postgres`.
    pub family: String,
    /// One line that says what it is.
    pub title: String,
    /// The layout file.
    pub layout: String,
    /// What it costs, by line.
    pub lines: Vec<Line>,
    /// The sum of what is known, and what is not.
    pub cost: Cost,
    /// How much of every cap is used.
    pub caps: Vec<CapUse>,
    /// Why it is this one, and what is not known of it.
    pub reasons: Vec<String>,
    /// How many disks are attached to the machine; none to instances and services.
    pub disks: u64,
    /// The cheapest layout, if that is another one with more disks.
    pub passed_over: Option<PassedOver>,
}

/// A layout that meets the need, costs less than the plan, and has more disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// One line that says what it is.
    pub title: String,
    /// What it costs.
    pub cost: Cost,
    /// How many disks it has.
    pub disks: u64,
}

impl Plan {
    /// The cap of which most is used: the one that binds.
    #[must_use]
    pub fn binding(&self) -> Option<&CapUse> {
        let rates = self.caps.iter().filter(|cap| cap.used > 0 && cap.is_rate);
        rates.max_by(|one, other| one.share().cmp(&other.share()))
    }

    /// The part of the need that it carries, in millionths: the whole or more.
    #[must_use]
    pub fn carries(&self) -> Option<u64> {
        let binding = self.binding()?;
        let parts = u128::from(binding.most) * u128::from(WHOLE);
        u64::try_from(parts / u128::from(binding.used)).ok()
    }
}

/// How much of a cap is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapUse {
    /// Whose cap: a stripe, a file, the machine.
    pub of: String,
    /// What is capped.
    pub cap: &'static str,
    /// Its unit: `IOPS`, `B/s`, `B`, `thousandths`, or nothing for a number.
    pub unit: &'static str,
    /// Whether it is one of rates, and not of sizes.
    pub is_rate: bool,
    /// What is asked of it.
    pub used: u64,
    /// What it lets through.
    pub most: u64,
}

impl CapUse {
    /// The caps of rates of `count` alike, at the peak that takes most of each: of operations and
    /// of bytes, under their names.
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
            own(operations, "IOPS", most.operations, each.operations),
            own(bytes, "B/s", most.bytes, each.bytes),
        ];
        all.retain(|cap| cap.most < u64::MAX);
        all
    }

    /// A cap of a number.
    pub(crate) fn number(of: &str, cap: &'static str, used: u64, most: u64) -> Self {
        Self { of: of.to_owned(), cap, unit: "", is_rate: false, used, most }
    }

    /// What is asked at least and is not there, or not known to be.
    pub(crate) fn lacking(self) -> Option<Self> {
        (self.used > self.most).then_some(self)
    }

    /// A cap of a size.
    pub(crate) fn size(of: &str, cap: &'static str, used: Bytes, most: Bytes) -> Self {
        let (used, most) = (used.get(), most.get());
        Self { of: of.to_owned(), cap, unit: "B", is_rate: false, used, most }
    }

    /// The part that is used, in millionths.
    #[must_use]
    pub fn share(&self) -> u64 {
        let parts = u128::from(self.used) * u128::from(WHOLE);
        u64::try_from(parts.div_ceil(u128::from(self.most.max(1)))).unwrap_or(u64::MAX)
    }
}

/// A layout that costs less, and why it is not the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cheaper {
    /// What it is, beside the plan.
    pub what: String,
    /// What it costs, if all of it is known.
    pub cost: Cost,
    /// What it lacks.
    pub fails: Vec<CapUse>,
    /// The layout file, where it is one that can be made.
    pub layout: Option<String>,
}

/// Something that would have to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relaxation {
    /// What gives, and how far.
    pub what: String,
    /// What the cheapest would cost then.
    pub cost: Cost,
    /// What it would be.
    pub title: String,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The cheapest layout that meets the need.
    pub plan: Plan,
    /// The cheapest of the other families, each the best of its own.
    pub others: Vec<Plan>,
    /// The next cheaper, and why it fails.
    pub cheaper: Option<Cheaper>,
    /// The cheapest that carries more than this one.
    pub better: Option<Plan>,
    /// What can be said of the search: how much was compared.
    pub compared: u64,
    /// What has no price and could be cheaper, if anything.
    pub unranked: Option<String>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}
