//! Cuts: valid inequalities over the numbers of bins per kind, which every packing satisfies.

/// A valid inequality: the weighted number of bins, plus the items' costs if `has_costs`, is at
/// least `rhs`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cut {
    /// By kind.
    pub(crate) weights: Vec<u64>,
    /// True if the items' costs are on the left-hand side.
    pub(crate) has_costs: bool,
    pub(crate) rhs: u64,
}

impl Cut {
    /// Builds a cut without item costs, divided by the common divisor of its weights and rounded
    /// up.
    pub(crate) fn bins_only(mut weights: Vec<u64>, rhs: u64) -> Self {
        let unit = weights.iter().fold(0, |unit, weight| common_divisor(unit, *weight)).max(1);
        weights.iter_mut().for_each(|weight| *weight /= unit);
        Self { weights, has_costs: false, rhs: rhs.div_ceil(unit) }
    }

    /// Returns whether numbers of bins by kind, with these costs of the items, violate the cut.
    pub(crate) fn is_violated_by(&self, counts: &[u64], costs: u64) -> bool {
        let pairs = self.weights.iter().zip(counts);
        let sum: u128 = pairs.map(|(weight, count)| u128::from(*weight) * u128::from(*count)).sum();
        let costs = if self.has_costs { u128::from(costs) } else { 0 };
        sum + costs < u128::from(self.rhs)
    }
}

/// Returns the greatest common divisor.
fn common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}
