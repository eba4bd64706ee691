//! A volume with the settings that it may have.

use super::super::oracle::Block;
use super::super::server::lost;
use crate::error::XtaskError;
use weir_catalog::{Catalog, Edition, Tier};
use weir_layout::hot_plug::NewVolume;
use weir_random::Rng;
use weir_report::status::VolumeStatus;
use weir_server::control::Request;
use weir_units::{Bytes, CacheMode};

/// The edition of the layouts.
const EDITION: &str = "azure-now";
/// Sizes of volumes. All of these hold the blocks that are written, and may be cached.
const SIZES: (Bytes, Bytes) = (Bytes::gib(32), Bytes::gib(2048));
/// Blocks that are written.
const BLOCKS: usize = 256;

/// The tiers.
pub(super) struct Catalogue {
    edition: Edition,
    tiers: Vec<Tier>,
}

/// A change of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Create { tier: String, size: Bytes, cache: CacheMode },
    Delete,
    Resize { size: Bytes, tier: String },
    Tier(String),
    Cache(CacheMode),
}

/// A volume, or the name of one that may be created.
#[derive(Debug, Clone)]
pub(super) struct Volume {
    pub(super) name: String,
    is_made: bool,
    pub(super) exists: bool,
    size: Bytes,
    pub(super) tier: String,
    pub(super) cache: CacheMode,
    /// A change that was asked for and not answered.
    pub(super) asked: Option<Change>,
    pub(super) blocks: Vec<Block>,
    /// A client uses it, so it is not deleted.
    pub(super) has_client: bool,
}

impl Catalogue {
    pub(super) fn load() -> Result<Self, XtaskError> {
        let catalog = Catalog::builtin();
        let edition = catalog.edition(EDITION).map_err(|error| lost(&error.to_string()))?.clone();
        let set = edition.default_set().map(|set| set.tiers.clone()).unwrap_or_default();
        let fits = |tier: &Tier| (SIZES.0..=SIZES.1).contains(&tier.size);
        Ok(Self { tiers: set.into_iter().filter(fits).collect(), edition })
    }

    pub(super) fn edition(&self) -> &str {
        self.edition.name()
    }

    fn random(&self, rng: &mut Rng) -> &Tier {
        rng.one(&self.tiers)
    }

    /// Returns the smallest tier that holds a volume.
    fn smallest(&self, size: Bytes) -> Option<&Tier> {
        self.tiers.iter().find(|tier| size <= tier.holds)
    }
}

impl Volume {
    /// Returns a volume of the layout.
    pub(super) fn of_layout(at: u64, catalogue: &Catalogue, rng: &mut Rng) -> Self {
        let tier = catalogue.random(rng);
        Self {
            name: format!("export-{at}"),
            is_made: false,
            exists: true,
            size: tier.size,
            tier: tier.name.clone(),
            cache: *rng.one(&CacheMode::ALL),
            asked: None,
            blocks: vec![Block::default(); BLOCKS],
            has_client: false,
        }
    }

    /// Returns a volume that may be created.
    pub(super) fn not_there(at: u64) -> Self {
        Self {
            name: format!("made-{at}"),
            is_made: true,
            exists: false,
            size: Bytes::ZERO,
            tier: String::new(),
            cache: CacheMode::None,
            asked: None,
            blocks: Vec::new(),
            has_client: false,
        }
    }

    /// Returns its part of the layout.
    pub(super) fn text(&self) -> String {
        let Self { name, tier, cache, .. } = self;
        format!("[[volume]]\nname = \"{name}\"\ntier = \"{tier}\"\ncache = \"{cache}\"\n")
    }

    pub(super) fn random_change(&self, catalogue: &Catalogue, rng: &mut Rng) -> Change {
        let tier = catalogue.random(rng);
        let cache = *rng.one(&CacheMode::ALL);
        if !self.exists {
            return Change::Create { tier: tier.name.clone(), size: tier.size, cache };
        }
        if self.is_made && !self.has_client && rng.chance(20) {
            return Change::Delete;
        }
        match rng.below(3) {
            0 => {
                let (least, most) = (SIZES.0.get() >> 30, SIZES.1.get() >> 30);
                let size = Bytes::gib(rng.within(least, most));
                let tier =
                    catalogue.smallest(size).map(|tier| tier.name.clone()).unwrap_or_default();
                Change::Resize { size, tier }
            }
            1 => {
                // A smaller tier is refused.
                let holds: Vec<_> =
                    catalogue.tiers.iter().filter(|tier| self.size <= tier.holds).collect();
                Change::Tier(rng.one(&holds).name.clone())
            }
            _ => Change::Cache(cache),
        }
    }

    /// Takes in that the change was answered.
    pub(super) fn answered(&mut self) {
        let Some(change) = self.asked.take() else { return };
        match change {
            Change::Create { tier, size, cache } => {
                self.exists = true;
                (self.tier, self.size, self.cache) = (tier, size, cache);
                self.blocks = vec![Block::default(); BLOCKS];
            }
            Change::Delete => self.exists = false,
            Change::Resize { size, tier } => (self.size, self.tier) = (size, tier),
            Change::Tier(tier) => self.tier = tier,
            Change::Cache(cache) => self.cache = cache,
        }
    }

    /// Compares it with what a server says.
    pub(super) fn compare(
        &self,
        found: Option<&VolumeStatus>,
        catalogue: &Catalogue,
    ) -> Result<(), String> {
        let Some(found) = found else {
            return if self.exists { Err("it is not there".to_owned()) } else { Ok(()) };
        };
        if !self.exists {
            return Err("it is there, and was deleted or never made".to_owned());
        }
        let tier = found.tier.as_deref().unwrap_or_default();
        let has = (Bytes::new(found.size_bytes), tier, found.cache.as_str());
        let expect = (self.size, self.tier.as_str(), self.cache.name());
        if has != expect {
            return Err(format!("it has {has:?}, and should have {expect:?}"));
        }
        let limits = catalogue.edition.tier(tier).map_err(|error| error.to_string())?.limits();
        let expect = (Some(limits.iops.get()), Some(limits.throughput.get()));
        let has = (found.limit_iops, found.limit_bytes_per_s);
        match has == expect {
            true => Ok(()),
            false => Err(format!("its limits are {has:?}, and those of {tier} are {expect:?}")),
        }
    }

    /// Takes its settings after a restart: each is the last one that was answered, or one that was asked for.
    /// A volume of the layout has the tier of its size again. Returns the number of settings.
    pub(super) fn settle(
        &mut self,
        found: Option<&VolumeStatus>,
        catalogue: &Catalogue,
    ) -> Result<u64, String> {
        let mut old = self.clone();
        let asked = old.asked.take();
        let mut new = self.clone();
        new.answered();
        self.asked = None;
        let Some(found) = found else {
            if old.exists && asked != Some(Change::Delete) {
                return Err("it is gone".to_owned());
            }
            self.exists = false;
            return Ok(1);
        };
        if !old.exists && !new.exists {
            return Err("it is there, and was deleted or never made".to_owned());
        }
        let either: Vec<&Self> = [&old, &new].into_iter().filter(|own| own.exists).collect();
        let size = Bytes::new(found.size_bytes);
        let tier = found.tier.clone().unwrap_or_default();
        let by_size = catalogue.smallest(size).map(|tier| tier.name.clone()).unwrap_or_default();
        let is_one = either.iter().any(|own| {
            let own_tier = if self.is_made { &own.tier } else { &by_size };
            (own.size, own_tier) == (size, &tier)
        });
        if !is_one {
            return Err(format!(
                "its size is {size} with tier {tier}; they were {} and {}, the tier of this size is {by_size}, \
                 and {asked:?} was asked",
                old.size, old.tier
            ));
        }
        let cache = either.iter().map(|own| own.cache).find(|own| own.name() == found.cache);
        let Some(cache) = cache else {
            let cache = &found.cache;
            return Err(format!(
                "its cache mode is {cache}; it was {}, and {asked:?} was asked",
                old.cache
            ));
        };
        if !old.exists {
            self.blocks = new.blocks;
        }
        (self.exists, self.size, self.tier, self.cache) = (true, size, tier, cache);
        self.compare(Some(found), catalogue).map(|()| 4)
    }
}

impl Change {
    /// Returns the request for it.
    pub(super) fn request(&self, volume: &Volume) -> Request {
        let name = volume.name.clone();
        match self {
            Self::Create { tier, cache, .. } => {
                let tier = Some(tier.clone());
                let volume = NewVolume { name, tier, cache: *cache, ..NewVolume::default() };
                Request::Create { host: None, volume }
            }
            Self::Delete => Request::Delete { volume: name, if_unused: false },
            Self::Resize { size, .. } => Request::Resize { volume: name, size: *size },
            Self::Tier(tier) => Request::SetTier { volume: name, tier: tier.clone() },
            Self::Cache(mode) => Request::SetCache { volume: name, mode: mode.name().to_owned() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A volume of 32 GiB that was created, with a change that was asked for.
    fn made(catalogue: &Catalogue, asked: Option<Change>) -> Volume {
        let tier = &catalogue.tiers[0];
        let (size, name) = (tier.size, tier.name.clone());
        let mut volume = Volume::not_there(0);
        volume.asked = Some(Change::Create { tier: name, size, cache: CacheMode::None });
        volume.answered();
        volume.asked = asked;
        volume
    }

    /// A status with the limits of a tier.
    fn status(size: Bytes, tier: &Tier, cache: CacheMode) -> VolumeStatus {
        VolumeStatus {
            size_bytes: size.get(),
            tier: Some(tier.name.clone()),
            cache: cache.name().to_owned(),
            limit_iops: Some(tier.iops.get()),
            limit_bytes_per_s: Some(tier.throughput.get()),
            ..VolumeStatus::default()
        }
    }

    #[test]
    fn a_setting_is_the_one_that_was_answered_or_one_that_was_asked_for() {
        let catalogue = Catalogue::load().unwrap();
        let (small, large) = (&catalogue.tiers[0], &catalogue.tiers[1]);
        let old = status(small.size, small, CacheMode::None);
        let new = status(large.size, large, CacheMode::None);
        let resize = Change::Resize { size: large.size, tier: large.name.clone() };
        let settles = |asked: &Option<Change>, found: &VolumeStatus| {
            made(&catalogue, asked.clone()).settle(Some(found), &catalogue).is_ok()
        };
        let asked = Some(resize);
        assert!(settles(&None, &old) && !settles(&None, &new), "nothing was asked");
        assert!(settles(&asked, &old) && settles(&asked, &new), "either is possible");
        let new_tier = status(small.size, large, CacheMode::None);
        assert!(!settles(&asked, &new_tier), "the old size with the new tier");
        let cached = status(small.size, small, CacheMode::ReadOnly);
        assert!(!settles(&asked, &cached), "nobody asked for a cache");
        assert!(settles(&Some(Change::Cache(CacheMode::ReadOnly)), &cached));
        let limits = VolumeStatus { limit_iops: Some(1), ..old };
        assert!(!settles(&None, &limits), "these are the limits of no tier");
    }

    #[test]
    fn a_volume_is_gone_only_if_its_deletion_was_asked_for() {
        let catalogue = Catalogue::load().unwrap();
        assert!(made(&catalogue, None).settle(None, &catalogue).is_err());
        let mut gone = made(&catalogue, Some(Change::Delete));
        assert_eq!(gone.settle(None, &catalogue), Ok(1));
        let tier = &catalogue.tiers[0];
        let found = status(tier.size, tier, CacheMode::None);
        assert!(gone.settle(Some(&found), &catalogue).is_err(), "it came back");
    }
}
