//! The order of layouts: the cheapest first, except that fewer disks win within 1 % of the cheapest
//! price.
//!
//! A stripe of many small disks may save a cent over a single disk. It also has more parts to fail,
//! to attach and to grow, so prices this close count as equal. The rule applies to machines, whose
//! disks need an administrator; a service looks after its own disks.

use crate::cost::Cost;
use weir_units::Money;

/// Prices within this many per cent of the cheapest count as equal. The figure is Weir's own.
pub(crate) const CLOSE_PERCENT: u64 = 1;

/// The goal of a search.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Aim {
    /// Find the next cheaper layout as well.
    pub(crate) explains: bool,
    /// The most that fewer disks may cost per month.
    pub(crate) budget: Option<Money>,
}

impl Aim {
    /// Returns the costs that count as equal to the cheapest; `None` without prices.
    #[must_use]
    pub(crate) fn close_to(self, cheapest: Cost) -> Option<Close> {
        let micros = cheapest.month.micros();
        let more = u128::from(micros) * u128::from(CLOSE_PERCENT) / 100;
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        let most = Money::from_micros(micros.saturating_add(more));
        let most = self.budget.map_or(most, |budget| most.min(budget)).max(cheapest.month);
        (micros > 0).then_some(Close { unpriced: cheapest.unpriced, most })
    }
}

/// Costs that count as equal: the same number of missing prices, and a known price up to a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Close {
    /// Number of missing prices.
    pub(crate) unpriced: u32,
    /// The maximum of the known prices.
    pub(crate) most: Money,
}

impl Close {
    /// Returns whether a cost counts as equal.
    #[must_use]
    pub(crate) fn holds(self, cost: Cost) -> bool {
        cost.unpriced == self.unpriced && cost.month <= self.most
    }
}

/// The order of the layouts in a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By price.
    Price,
    /// By number of disks, then by price, among prices that count as equal.
    Disks(Close),
}

impl Order {
    /// Returns whether a layout (disks, cost) ranks before the best so far.
    pub(crate) fn prefers(self, own: (u64, Cost), best: Option<(u64, Cost)>) -> bool {
        match self {
            Self::Price => best.is_none_or(|best| own.1 < best.1),
            Self::Disks(close) => close.holds(own.1) && best.is_none_or(|best| own < best),
        }
    }

    /// Returns whether no layout at this cost or above can rank before the best so far.
    pub(crate) fn ends(self, cost: Cost, best: Option<Cost>) -> bool {
        match self {
            Self::Price => best.is_some_and(|best| best < cost),
            Self::Disks(close) => cost.unpriced > close.unpriced || cost.month > close.most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_within_one_per_cent_count_as_equal() {
        let cost = |micros: u64| Cost { month: Money::from_micros(micros), ..Cost::default() };
        let most = |aim: Aim, cost: Cost| aim.close_to(cost).map(|close| close.most.micros());
        assert_eq!(most(Aim::default(), cost(415_480_000)), Some(419_634_800));
        let close = Aim::default().close_to(cost(415_480_000)).expect("a price");
        let (order, many) = (Order::Disks(close), Some((61, cost(415_480_000))));
        assert!(order.prefers((1, cost(419_634_800)), many));
        assert!(!order.prefers((1, cost(419_634_801)), many));
        assert!(!order.prefers((1, Cost { unpriced: 1, ..cost(1) }), many));
        // Among equal numbers of disks, the cheaper layout ranks first.
        assert!(!order.prefers((61, cost(415_480_001)), many));
        // The budget is respected, and the cheapest is always close to itself.
        let aim = |micros| Aim { explains: false, budget: Some(Money::from_micros(micros)) };
        assert_eq!(most(aim(416_000_000), cost(415_480_000)), Some(416_000_000));
        assert_eq!(most(aim(0), cost(415_480_000)), Some(415_480_000));
        // Without prices, nothing is close.
        assert_eq!(Aim::default().close_to(Cost { unpriced: 2, ..cost(0) }), None);
    }
}
