//! The order of layouts: the cheapest first, except that fewer disks win within 1 % of the cheapest.
//!
//! A stripe of many small disks may save a cent over one disk. It has more that can fail, more to
//! attach and more to grow, so prices this close are taken for equal. The rule compares layouts of
//! machines, whose disks somebody has to look after; the disks of a service are its own.

use crate::cost::Cost;
use weir_units::Money;

/// Prices within this many per cent of the cheapest are taken for equal. The figure is ours.
pub const CLOSE_PERCENT: u64 = 1;

/// What a search looks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Aim {
    /// Whether the next cheaper layout is looked for, too.
    pub explains: bool,
    /// The most that a month may cost for the sake of fewer disks.
    pub budget: Option<Money>,
}

impl Aim {
    /// Returns the costs that are taken for equal to the cheapest; `None` where nothing has a
    /// price.
    #[must_use]
    pub fn close_to(self, cheapest: Cost) -> Option<Close> {
        let micros = cheapest.month.micros();
        let more = u128::from(micros) * u128::from(CLOSE_PERCENT) / 100;
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        let most = Money::from_micros(micros.saturating_add(more));
        let most = self.budget.map_or(most, |budget| most.min(budget)).max(cheapest.month);
        (micros > 0).then_some(Close { unpriced: cheapest.unpriced, most })
    }
}

/// Costs that are taken for equal: as many prices are missing, and the rest is no higher than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close {
    /// How many prices are missing.
    pub unpriced: u32,
    /// The highest sum of the prices that are known.
    pub most: Money,
}

impl Close {
    /// Whether a cost is one of them.
    #[must_use]
    pub fn holds(self, cost: Cost) -> bool {
        cost.unpriced == self.unpriced && cost.month <= self.most
    }
}

/// How the layouts of a search are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By their price.
    Price,
    /// By the number of their disks, then by their price, which is one of these.
    Disks(Close),
}

impl Order {
    /// Whether a layout is a candidate that comes before the best so far, both as the number of
    /// their disks and their cost.
    pub(crate) fn prefers(self, own: (u64, Cost), best: Option<(u64, Cost)>) -> bool {
        match self {
            Self::Price => best.is_none_or(|best| own.1 < best.1),
            Self::Disks(close) => close.holds(own.1) && best.is_none_or(|best| own < best),
        }
    }

    /// Whether nothing that costs as much or more can come before the best so far.
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
    fn what_costs_one_per_cent_more_is_close_and_a_micro_above_is_not() {
        let cost = |micros: u64| Cost { month: Money::from_micros(micros), ..Cost::default() };
        let most = |aim: Aim, cost: Cost| aim.close_to(cost).map(|close| close.most.micros());
        assert_eq!(most(Aim::default(), cost(415_480_000)), Some(419_634_800));
        let close = Aim::default().close_to(cost(415_480_000)).expect("a price");
        let (order, many) = (Order::Disks(close), Some((61, cost(415_480_000))));
        assert!(order.prefers((1, cost(419_634_800)), many));
        assert!(!order.prefers((1, cost(419_634_801)), many));
        assert!(!order.prefers((1, Cost { unpriced: 1, ..cost(1) }), many));
        // Of as many disks the cheaper come first.
        assert!(!order.prefers((61, cost(415_480_001)), many));
        // A budget is kept, and the cheapest is always close to itself.
        let aim = |micros| Aim { explains: false, budget: Some(Money::from_micros(micros)) };
        assert_eq!(most(aim(416_000_000), cost(415_480_000)), Some(416_000_000));
        assert_eq!(most(aim(0), cost(415_480_000)), Some(415_480_000));
        // Where nothing has a price nothing is close.
        assert_eq!(Aim::default().close_to(Cost { unpriced: 2, ..cost(0) }), None);
    }
}
