//! The catalog: all editions, and the search for names in them.

use crate::cache::HostCache;
use crate::edition::{Edition, HOST_CACHE};
use crate::error::{CatalogError, Kind, known};
use crate::host::HostSize;
use crate::latency::Latency;
use crate::machines;
use crate::nearest::{nearest, plain};
use crate::provenance::Provenance;
use crate::provisioned::Provisioned;
use crate::region::RegionPrices;
use crate::rules::{BurstRule, Rule, Striping};
use crate::sized::SizedFamily;
use crate::store::{Pooled, Store};
use crate::tier::{Tier, TierSet};
use std::sync::{Arc, OnceLock};
use std::thread;

/// The built-in editions by file.
pub(crate) const BUILTIN: [(&str, &str); 9] = [
    ("catalog/azure-premium-2015.toml", include_str!("../../../catalog/azure-premium-2015.toml")),
    ("catalog/azure-mi-2018.toml", include_str!("../../../catalog/azure-mi-2018.toml")),
    ("catalog/azure-2018.toml", include_str!("../../../catalog/azure-2018.toml")),
    ("catalog/azure-now.toml", include_str!("../../../catalog/azure-now.toml")),
    ("catalog/azure-mi-now.toml", include_str!("../../../catalog/azure-mi-now.toml")),
    ("catalog/azure-postgres.toml", include_str!("../../../catalog/azure-postgres.toml")),
    ("catalog/aws.toml", include_str!("../../../catalog/aws.toml")),
    ("catalog/gcp-2022.toml", include_str!("../../../catalog/gcp-2022.toml")),
    ("catalog/gcp.toml", include_str!("../../../catalog/gcp.toml")),
];

/// A set of editions with distinct names. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    editions: Vec<Slot>,
}

/// An edition of a catalog. A built-in one is read when it is used for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Slot {
    Builtin(usize),
    Own(Arc<Edition>),
}

impl Slot {
    fn name(&self) -> &str {
        match self {
            Self::Builtin(index) => builtin_name(*index),
            Self::Own(edition) => edition.name(),
        }
    }

    fn edition(&self) -> &Edition {
        match self {
            Self::Builtin(index) => builtin(*index),
            Self::Own(edition) => edition,
        }
    }

    fn is_read(&self) -> bool {
        match self {
            Self::Builtin(index) => READ[*index].get().is_some(),
            Self::Own(_) => true,
        }
    }
}

/// The built-in editions that have been used.
static READ: [OnceLock<Edition>; BUILTIN.len()] = [const { OnceLock::new() }; BUILTIN.len()];

/// Returns the name of a built-in edition, which is that of its file.
fn builtin_name(index: usize) -> &'static str {
    let file = BUILTIN[index].0;
    file.strip_prefix("catalog/").and_then(|file| file.strip_suffix(".toml")).unwrap_or(file)
}

/// Returns a built-in edition with its tables. It is read once per process.
fn builtin(index: usize) -> &'static Edition {
    READ[index].get_or_init(|| {
        let (origin, text) = BUILTIN[index];
        match Edition::from_toml(origin, text) {
            Ok(mut edition) => {
                let spelled = edition.prices.iter().map(|list| list.region.clone()).collect();
                edition.region_prices = RegionPrices::find(&edition.name, spelled);
                machines::extend(&mut edition);
                edition.index();
                edition
            }
            // The files are part of the program and a test reads each of them.
            Err(error) => unreachable!("a built-in edition is broken: {error}"),
        }
    })
}

impl Catalog {
    /// Returns a catalog without editions.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns the built-in editions, each of which is read when it is used.
    #[must_use]
    pub fn builtin() -> Self {
        Self { editions: (0..BUILTIN.len()).map(Slot::Builtin).collect() }
    }

    /// Adds an edition. One that extends another gets the tables of that one.
    ///
    /// # Errors
    ///
    /// [`CatalogError::DuplicateEdition`] if the name exists, [`CatalogError::Unknown`] if the extended
    /// edition does not, [`CatalogError::Invalid`] if a priced item is in neither.
    pub fn add(&mut self, edition: Edition) -> Result<(), CatalogError> {
        let edition = match edition.extends.clone() {
            Some(base) => edition.over(self.edition(&base)?)?,
            None => edition,
        };
        if self.names().any(|name| plain(name) == plain(edition.name())) {
            return Err(CatalogError::DuplicateEdition { name: edition.name().to_owned() });
        }
        self.editions.push(Slot::Own(Arc::new(edition)));
        Ok(())
    }

    /// Iterates over the editions in the order of their addition. Each is read when it is used for the first time.
    pub fn editions(&self) -> impl ExactSizeIterator<Item = &Edition> {
        self.editions.iter().map(Slot::edition)
    }

    /// Reads all editions in parallel, for a caller that will use all of them.
    pub fn read_all(&self) {
        thread::scope(|scope| {
            for own in self.editions.iter().filter(|own| !own.is_read()) {
                // Without a thread, it is read when it is used.
                let _ = thread::Builder::new().spawn_scoped(scope, || own.edition());
            }
        });
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.editions.iter().map(Slot::name)
    }

    /// Returns an edition by name.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Unknown`] with the nearest name.
    pub fn edition(&self, name: &str) -> Result<&Edition, CatalogError> {
        let wanted = plain(name);
        let own = self.editions.iter().find(|own| plain(own.name()) == wanted);
        own.map(Slot::edition).ok_or_else(|| {
            let near = nearest(name, self.names());
            CatalogError::Unknown {
                kind: Kind::Edition,
                name: name.to_owned(),
                edition: None,
                near: near.map(str::to_owned),
                known: known(self.names(), "weir catalog editions"),
            }
        })
    }

    /// Finds everything with a name in all editions, in their order: tiers, machines, tier sets,
    /// families, latency models and their families, `host-cache`, kinds of bursting, `striping`,
    /// rules. Names may be qualified by a set or series.
    #[must_use]
    pub fn find(&self, name: &str) -> Vec<Found<'_>> {
        self.read_all();
        let wanted = plain(name);
        let all = self.editions().flat_map(Found::all_of);
        all.filter(|found| found.answers_to(&wanted)).collect()
    }

    /// As [`Catalog::find`], but at least one result.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Unknown`] with the nearest name.
    pub fn get(&self, name: &str) -> Result<Vec<Found<'_>>, CatalogError> {
        let found = self.find(name);
        if !found.is_empty() {
            return Ok(found);
        }
        let names = self.editions().flat_map(Found::all_of).map(|found| found.name());
        Err(CatalogError::Unknown {
            kind: Kind::Anything,
            name: name.to_owned(),
            edition: None,
            near: nearest(name, names).map(str::to_owned),
            known: format!(
                "weir catalog tiers EDITION and weir catalog hosts EDITION list names; editions: {}",
                self.editions().map(Edition::name).collect::<Vec<_>>().join(", ")
            ),
        })
    }
}

/// A named object of an edition.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Found<'a> {
    /// A tier.
    Tier(&'a Edition, &'a Tier),
    /// A tier set.
    TierSet(&'a Edition, &'a TierSet),
    /// A family with provisioned limits.
    Provisioned(&'a Edition, &'a Provisioned),
    /// A family whose limits follow from the size.
    Sized(&'a Edition, &'a SizedFamily),
    /// The storage of a service.
    Store(&'a Edition, &'a Store),
    /// A family whose disks share their limits.
    Pooled(&'a Edition, &'a Pooled),
    /// A machine.
    Host(&'a Edition, &'a HostSize),
    /// A latency model.
    Latency(&'a Edition, &'a Latency),
    /// The host cache.
    HostCache(&'a Edition, &'a HostCache),
    /// A kind of bursting.
    Bursting(&'a Edition, &'a BurstRule),
    /// The rules of striping.
    Striping(&'a Edition, &'a Striping),
    /// A rule.
    Rule(&'a Edition, &'a Rule),
}

impl<'a> Found<'a> {
    /// Returns all named objects of an edition.
    fn all_of(edition: &'a Edition) -> impl Iterator<Item = Self> {
        let tiers = edition.tiers().map(move |tier| Self::Tier(edition, tier));
        let sets = edition.tier_sets().iter().map(move |set| Self::TierSet(edition, set));
        let families = edition.provisioned_families().iter();
        let families = families.map(move |family| Self::Provisioned(edition, family));
        let sized = edition.sized_families().iter().map(move |own| Self::Sized(edition, own));
        let stores = edition.stores().iter().map(move |store| Self::Store(edition, store));
        let pooled = edition.pooled_families().iter().map(move |own| Self::Pooled(edition, own));
        let hosts = edition.hosts().map(move |host| Self::Host(edition, host));
        let latencies = edition.latencies().iter().map(move |l| Self::Latency(edition, l));
        let caches = edition.host_cache().map(move |cache| Self::HostCache(edition, cache));
        let bursts = edition.bursting().iter().map(move |rule| Self::Bursting(edition, rule));
        let striping = edition.striping().map(move |rule| Self::Striping(edition, rule));
        let rules = edition.rules().iter().map(move |rule| Self::Rule(edition, rule));
        let things =
            tiers.chain(sets).chain(families).chain(sized).chain(stores).chain(pooled).chain(hosts);
        let things = things.chain(latencies).chain(caches);
        things.chain(bursts).chain(striping).chain(rules)
    }

    /// Returns the edition of the object.
    #[must_use]
    pub fn edition(&self) -> &'a Edition {
        match *self {
            Self::Tier(edition, _)
            | Self::TierSet(edition, _)
            | Self::Provisioned(edition, _)
            | Self::Sized(edition, _)
            | Self::Store(edition, _)
            | Self::Pooled(edition, _)
            | Self::Host(edition, _)
            | Self::Latency(edition, _)
            | Self::HostCache(edition, _)
            | Self::Bursting(edition, _)
            | Self::Striping(edition, _)
            | Self::Rule(edition, _) => edition,
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        match *self {
            Self::Tier(_, tier) => &tier.name,
            Self::TierSet(_, set) => &set.name,
            Self::Provisioned(_, family) => &family.family,
            Self::Sized(_, family) => &family.family,
            Self::Store(_, store) => &store.name,
            Self::Pooled(_, family) => &family.family,
            Self::Host(_, host) => &host.name,
            Self::Latency(_, latency) => &latency.name,
            Self::HostCache(..) => HOST_CACHE,
            Self::Bursting(_, rule) => &rule.name,
            Self::Striping(..) => "striping",
            Self::Rule(_, rule) => &rule.name,
        }
    }

    /// Returns the name, qualified by a set or series if there is one.
    #[must_use]
    pub fn qualified(&self) -> String {
        match *self {
            Self::Tier(_, tier) => tier.qualified(),
            Self::Host(_, host) => host.qualified(),
            _ => self.name().to_owned(),
        }
    }

    /// Returns source, date and conflicts.
    #[must_use]
    pub fn provenance(&self) -> &'a Provenance {
        match *self {
            Self::Tier(_, tier) => &tier.provenance,
            Self::TierSet(_, set) => &set.provenance,
            Self::Provisioned(_, family) => &family.provenance,
            Self::Sized(_, family) => &family.provenance,
            Self::Store(_, store) => &store.provenance,
            Self::Pooled(_, family) => &family.provenance,
            Self::Host(_, host) => &host.provenance,
            Self::Latency(_, latency) => &latency.provenance,
            Self::HostCache(_, cache) => &cache.provenance,
            Self::Bursting(_, rule) => &rule.provenance,
            Self::Striping(_, striping) => &striping.provenance,
            Self::Rule(_, rule) => &rule.provenance,
        }
    }

    fn answers_to(&self, wanted: &str) -> bool {
        let parts = |name: &str| name.split('/').map(plain).collect::<Vec<_>>();
        let of_family = |family: &str| plain(family) == wanted;
        plain(self.name()) == wanted
            || match self {
                Self::Tier(..) | Self::Host(..) => {
                    wanted.contains('/') && parts(&self.qualified()) == parts(wanted)
                }
                Self::TierSet(_, set) => of_family(&set.family),
                Self::Latency(_, latency) => latency.families.iter().any(|f| of_family(f)),
                _ => false,
            }
    }
}
