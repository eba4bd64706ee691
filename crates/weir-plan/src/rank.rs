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
    /// Returns the highest price that is taken for equal to the cheapest; `None` where prices are
    /// missing, which are close to nothing.
    #[must_use]
    pub fn close_to(self, cheapest: Cost) -> Option<Money> {
        let micros = cheapest.month.micros();
        let more = u128::from(micros) * u128::from(CLOSE_PERCENT) / 100;
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        let most = Money::from_micros(micros.saturating_add(more));
        let most = self.budget.map_or(most, |budget| most.min(budget)).max(cheapest.month);
        (cheapest.unpriced == 0).then_some(most)
    }
}

/// How the layouts of a search are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By their price.
    Price,
    /// By the number of their disks, then by their price, which is no higher than this.
    Disks(Money),
}

impl Order {
    /// Whether a layout is a candidate that comes before the best so far, both as the number of
    /// their disks and their cost.
    pub(crate) fn prefers(self, own: (u64, Cost), best: Option<(u64, Cost)>) -> bool {
        match self {
            Self::Price => best.is_none_or(|best| own.1 < best.1),
            Self::Disks(most) => {
                let is_close = own.1.unpriced == 0 && own.1.month <= most;
                is_close && best.is_none_or(|best| own < best)
            }
        }
    }

    /// Whether nothing that costs as much or more can come before the best so far.
    pub(crate) fn ends(self, cost: Cost, best: Option<Cost>) -> bool {
        match self {
            Self::Price => best.is_some_and(|best| best < cost),
            Self::Disks(most) => cost.unpriced > 0 || cost.month > most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_one_per_cent_more_is_close_and_a_micro_above_is_not() {
        let cost = |micros: u64| Cost { month: Money::from_micros(micros), ..Cost::default() };
        let most = Aim::default().close_to(cost(415_480_000));
        assert_eq!(most, Some(Money::from_micros(419_634_800)));
        let order = Order::Disks(most.unwrap());
        let many = Some((61, cost(415_480_000)));
        assert!(order.prefers((1, cost(419_634_800)), many));
        assert!(!order.prefers((1, cost(419_634_801)), many));
        // Of as many disks the cheaper come first.
        assert!(!order.prefers((61, cost(415_480_001)), many));
        // A budget is kept, and the cheapest is always close to itself.
        let aim = |micros| Aim { explains: false, budget: Some(Money::from_micros(micros)) };
        assert_eq!(
            aim(416_000_000).close_to(cost(415_480_000)),
            Some(Money::from_micros(416_000_000))
        );
        assert_eq!(aim(0).close_to(cost(415_480_000)), Some(Money::from_micros(415_480_000)));
        assert_eq!(Aim::default().close_to(Cost { unpriced: 1, ..cost(1) }), None);
    }
}
