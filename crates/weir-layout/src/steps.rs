//! What a file would get at another size: how far its tier reaches, and what the next
//! steps up and down are.

use crate::volume::Volume;
use weir_catalog::{Edition, Limits, Tier, TierSet};
use weir_units::Bytes;

/// One gibibyte more than a tier holds is the size by which people name the next step.
const A_LITTLE: u64 = 1 << 30;

/// A tier that another size would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The size: going up, a GiB more than what the tiers below it hold; going down, the
    /// most that the tier holds.
    pub size: Bytes,
    /// The tier.
    pub tier: String,
    /// Its limits.
    pub limits: Limits,
}

impl Step {
    fn to(tier: &Tier, size: Bytes) -> Self {
        Self { size, tier: tier.name.clone(), limits: tier.limits() }
    }
}

/// What lies around a volume's size in its tier set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// The largest size that gets what it gets.
    pub until: Bytes,
    /// The smallest size that gets what it gets, to the GiB.
    pub from: Bytes,
    /// The next size that gets more.
    pub up: Option<Step>,
    /// The next size that gets less.
    pub down: Option<Step>,
}

impl Volume {
    /// The steps around its size; `None` if it has no tier.
    #[must_use]
    pub fn steps(&self, edition: &Edition) -> Option<Steps> {
        self.tier.as_ref()?;
        let family = self.keys.family.as_deref().or(self.family.as_deref())?;
        Steps::around(edition.tier_set(family).ok()?, self.spec.size)
    }
}

impl Steps {
    /// The steps around `size` in `set`.
    #[must_use]
    pub fn around(set: &TierSet, size: Bytes) -> Option<Self> {
        let at = set.tiers.iter().position(|tier| tier.holds >= size)?;
        let limits = set.tiers[at].limits();
        let same = |tier: &&Tier| tier.limits() == limits;
        // Tiers of the same limits stand together: P40 and P50 do.
        let above = at + set.tiers[at..].iter().take_while(same).count();
        let below = at - set.tiers[..at].iter().rev().take_while(same).count();
        let beyond = |tier: &Tier| Bytes::new(tier.holds.get().saturating_add(A_LITTLE));
        let down = below.checked_sub(1).map(|below| &set.tiers[below]);
        Some(Self {
            until: set.tiers[above - 1].holds,
            from: down.map_or(Bytes::ZERO, beyond),
            up: set.tiers.get(above).map(|tier| Step::to(tier, beyond(&set.tiers[above - 1]))),
            down: down.map(|tier| Step::to(tier, tier.holds)),
        })
    }
}
