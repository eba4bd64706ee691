//! Limits of a file at other sizes: the range of its tier, and the next tiers up and down.

use crate::volume::Volume;
use weir_catalog::{Edition, Limits, Tier, TierSet};
use weir_units::Bytes;

/// The smallest size of the next tier is given as the maximum of a tier plus 1 GiB.
const A_LITTLE: u64 = 1 << 30;

/// A tier that another size would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Size: upwards, 1 GiB above the maximum of the lower tiers; downwards, the maximum of the
    /// tier.
    pub size: Bytes,
    /// The tier.
    pub tier: String,
    /// Limits.
    pub limits: Limits,
}

impl Step {
    fn to(tier: &Tier, size: Bytes) -> Self {
        Self { size, tier: tier.name.clone(), limits: tier.limits() }
    }
}

/// The tiers around a volume's size in its tier set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// Largest size with the same limits.
    pub until: Bytes,
    /// Smallest size with the same limits, in whole GiB.
    pub from: Bytes,
    /// Next size with higher limits.
    pub up: Option<Step>,
    /// Next size with lower limits.
    pub down: Option<Step>,
}

impl Volume {
    /// Returns the steps around its size; `None` if it has no tier.
    #[must_use]
    pub fn steps(&self, edition: &Edition) -> Option<Steps> {
        self.tier.as_ref()?;
        let family = self.keys.family.as_deref().or(self.family.as_deref())?;
        Steps::around(edition.tier_set(family).ok()?, self.spec.size)
    }
}

impl Steps {
    /// Returns the steps around `size` in `set`.
    #[must_use]
    pub fn around(set: &TierSet, size: Bytes) -> Option<Self> {
        let at = set.tiers.iter().position(|tier| tier.holds >= size)?;
        let limits = set.tiers[at].limits();
        let same = |tier: &&Tier| tier.limits() == limits;
        // Tiers with equal limits are adjacent, for example P40 and P50.
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
