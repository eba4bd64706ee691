//! Resolution of a volume's keys: tier or limits, medium, cache mode.

use crate::backend::Backend;
use crate::error::{Fault, Kind, Wrong};
use crate::file::{LatencyKeys, LimitKeys, PlaceKey, VolumeKeys};
use crate::luns;
use std::fmt::Display;
use std::num::NonZeroU64;
use weir_catalog::{
    Burst, BurstKind, CatalogError, Edition, HostCache, HostSize, Limits, RuleValue, SizedFamily,
    SizedLimits, Tier,
};
use weir_core::{
    CacheMode, DiskLimits, GateLimits, Latency, Limit, Medium, Place, Reserve, VolumeSpec,
};
use weir_units::{Bytes, BytesPerSec, Iops, Span};

/// A volume of a layout, resolved.
#[derive(Debug, Clone)]
pub struct Volume {
    /// Name.
    pub name: String,
    /// The tier, for volumes that have one.
    pub tier: Option<String>,
    /// The family, for volumes of an edition.
    pub family: Option<String>,
    /// Size of the tier, which is allocated and billed.
    pub tier_size: Option<Bytes>,
    /// Input of the engine.
    pub spec: VolumeSpec,
    /// True if all disks of its family share the limits of the host.
    pub is_pooled: bool,
    /// Number at the machine, if the layout states it ([`crate::luns`]).
    pub lun: Option<u32>,
    /// Place of its bytes when it is served, if the layout states it.
    pub backend: Option<Backend>,
    /// Keys, for another resolution at a resize.
    pub(crate) keys: VolumeKeys,
}

impl Volume {
    /// Returns whether the volume was removed, so that its id is free.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        // A name is never empty.
        self.name.is_empty()
    }

    /// Returns the tier that the layout names; `None` if the tier follows from the size.
    #[must_use]
    pub fn named_tier(&self) -> Option<&str> {
        self.keys.tier.as_deref()
    }

    /// Returns the tier whose limits the volume has: its performance tier, or else its own.
    #[must_use]
    pub fn limits_tier(&self) -> Option<&str> {
        self.keys.performance_tier.as_deref().or(self.tier.as_deref())
    }

    /// Returns the provisioned rates or own limits of the volume, as far as they are stated.
    #[must_use]
    pub fn rates(&self) -> (Option<Iops>, Option<BytesPerSec>) {
        match &self.keys.limits {
            Some(limits) => (limits.iops, limits.throughput),
            None => (self.keys.iops, self.keys.throughput),
        }
    }

    /// Returns the choices beside tier and size.
    #[must_use]
    pub fn choices(&self) -> Choices<'_> {
        Choices {
            has_own_limits: self.keys.limits.is_some() || self.keys.unlimited,
            on_demand_burst: self.keys.on_demand_burst,
            performance_plus: self.keys.performance_plus,
            performance_tier: self.keys.performance_tier.as_deref(),
        }
    }
}

/// The choices of a volume beside tier and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices<'a> {
    /// True if the layout states limits, so that the disk is not one of the edition.
    pub has_own_limits: bool,
    /// True if on-demand bursting is enabled.
    pub on_demand_burst: bool,
    /// True if the disk has the higher limits that are chosen at its creation.
    pub performance_plus: bool,
    /// Tier whose limits apply.
    pub performance_tier: Option<&'a str>,
}

/// The source of a volume's limits. A layout states at most one.
enum Basis<'a> {
    Unlimited,
    Own(&'a LimitKeys),
    Tier(&'a str),
    Size,
}

/// A resolved basis.
struct Resolved {
    size: Bytes,
    tier: Option<String>,
    tier_size: Option<Bytes>,
    family: Option<String>,
    limits: DiskLimits,
    is_pooled: bool,
}

/// Maximum size of a volume with a host cache. The table of cached blocks grows with the volume.
const MAX_CACHED: Bytes = Bytes::gib(64 << 10);

/// Maximum size of a volume in a data directory.
const MAX_SIZE: Bytes = Bytes::gib(1 << 20);

/// Resolves the keys of the volume called `name`.
pub(crate) fn resolve(
    name: &str,
    keys: &VolumeKeys,
    edition: Option<&Edition>,
) -> Result<Volume, Fault> {
    let wrong = |(key, reason): Wrong| contradiction(name, reason).at(key);
    let no_edition = |key, needs| Kind::no_edition(format!("volume {name:?}"), needs).at(key);
    let resolved = match basis(keys).map_err(wrong)? {
        Basis::Unlimited => own(keys, DiskLimits::default()),
        Basis::Own(limits) => {
            let gate = gate_limits(limits).map_err(wrong).map_err(|f| f.within("limits"))?;
            let io_unit = edition.and_then(|e| NonZeroU64::new(e.io_unit()?.get()));
            own(keys, DiskLimits { gate, io_unit, merges: false })
        }
        Basis::Tier(tier) => {
            let edition = edition.ok_or_else(|| no_edition("tier", "a tier"))?;
            let tier = in_set(edition, keys.family.as_deref(), tier)?;
            of_tier(keys, edition, tier).map_err(|problem| problem.into_fault(name))?
        }
        Basis::Size => {
            let edition = edition.ok_or_else(|| no_edition("size", "a size without limits"))?;
            of_size(keys, edition).map_err(|problem| problem.into_fault(name))?
        }
    };
    check_size(resolved.size).map_err(|reason| wrong(("size", reason)))?;
    let medium = medium(keys, edition, resolved.family.as_deref());
    let medium = medium.map_err(|reason| wrong(("latency", reason)))?;
    let place = match keys.place {
        Some(PlaceKey::Local) => Place::Local,
        _ => Place::Remote,
    };
    let cache = keys.cache;
    if cache != CacheMode::None {
        let checked =
            check_cacheable(name, place, &resolved, edition.and_then(Edition::host_cache));
        checked.map_err(|kind| kind.at("cache"))?;
    }
    let lun = luns::check(keys).map_err(wrong)?;
    let Resolved { size, tier, tier_size, family, mut limits, is_pooled } = resolved;
    if keys.limits.is_none() {
        limits.gate = with_reserve(limits.gate, edition);
    }
    check_credits(keys, &limits.gate).map_err(wrong)?;
    let credits = keys.credits.unwrap_or_default();
    let spec = VolumeSpec { size, limits, cache, place, medium, log: keys.log, credits };
    let backend = keys.backend.as_ref().map(Backend::resolve).transpose().map_err(wrong)?;
    if backend.is_some() && keys.checksums {
        let reason = "it has a backend, whose bytes have no checksums; remove one of the two";
        return Err(wrong(("checksums", reason.to_owned())));
    }
    let (name, keys) = (name.to_owned(), keys.clone());
    Ok(Volume { name, tier, family, tier_size, spec, is_pooled, lun, backend, keys })
}

fn contradiction(name: &str, reason: String) -> Kind {
    Kind::Contradiction { what: format!("volume {name:?}"), reason }
}

/// Checks that a volume with credits bursts on them.
fn check_credits(keys: &VolumeKeys, gate: &GateLimits) -> Result<(), Wrong> {
    let Some(share) = keys.credits.filter(|_| !gate.has_credits()) else { return Ok(()) };
    let why = match keys {
        VolumeKeys { on_demand_burst: true, .. } => "it bursts on demand, which needs no credits",
        _ => "it does not burst",
    };
    Err(("credits", format!("credits = {share} has no effect, because {why}; leave it out")))
}

/// Sizes are multiples of this.
const SECTOR: u64 = 512;

fn check_size(size: Bytes) -> Result<(), String> {
    if size == Bytes::ZERO || !size.get().is_multiple_of(SECTOR) {
        return Err("a size must be a positive multiple of 512 bytes".to_owned());
    }
    if size > MAX_SIZE {
        return Err(format!("{size} is more than the maximum size of a volume, {MAX_SIZE}"));
    }
    Ok(())
}

/// Completes the keys of a local volume without size and limits from the machine's local disk.
pub(crate) fn with_local_disk(
    name: &str,
    keys: &VolumeKeys,
    machine: Option<&HostSize>,
) -> Result<VolumeKeys, Fault> {
    let says =
        keys.tier.is_some() || keys.size.is_some() || keys.limits.is_some() || keys.unlimited;
    if keys.place != Some(PlaceKey::Local) || says {
        return Ok(keys.clone());
    }
    let Some(disk) = machine.and_then(|machine| machine.temp.as_ref()) else {
        let reason = "its host has no local disk in the catalog; give it a size and limits";
        return Err(contradiction(name, reason.to_owned()).at("place"));
    };
    // Reads and writes share one gate. If their limits differ, the read limit, which is higher,
    // applies to both.
    let limits = LimitKeys { iops: disk.iops, throughput: disk.read, burst: None };
    Ok(VolumeKeys { size: disk.size, limits: Some(limits), ..keys.clone() })
}

impl Volume {
    /// Resolves the volume at another size.
    pub(crate) fn at_size(&self, size: Bytes, edition: Option<&Edition>) -> Result<Self, Fault> {
        let mut keys = self.keys.clone();
        keys.size = Some(size);
        // The volume moves to the tier that holds the new size.
        if let Some(tier) = keys.tier.take() {
            keys.family = self.family.clone().or(keys.family);
            let set = edition.and_then(|e| e.tier(&tier).ok()).map(|t| t.set.clone());
            keys.family = set.or(keys.family);
        }
        self.changed(keys, edition)
    }

    /// Resolves the volume over a backend of `size`: a size that the layout states stays, otherwise it
    /// is that of the backend, at most that of a named tier.
    pub(crate) fn over(&self, size: Bytes, edition: Option<&Edition>) -> Result<Self, Fault> {
        let whole = Bytes::new(size.get() / SECTOR * SECTOR);
        if self.has_assumed_size() && whole != self.spec.size {
            let most = if self.keys.tier.is_some() { self.spec.size } else { whole };
            let keys = VolumeKeys { size: Some(whole.min(most)), ..self.keys.clone() };
            return self.changed(keys, edition);
        }
        if size < self.spec.size {
            let reason = format!(
                "its backend {} has {}, which is less than its size of {}; enlarge the backend, or \
                 give the volume a smaller size",
                self.backend.as_ref().map(ToString::to_string).unwrap_or_default(),
                size.exact(),
                self.spec.size.exact()
            );
            return Err(contradiction(&self.name, reason).at("size"));
        }
        Ok(self.clone())
    }

    /// Returns whether its blocks have checksums in a data directory.
    #[must_use]
    pub fn has_checksums(&self) -> bool {
        self.keys.checksums
    }

    /// Returns whether its size is that of a backend, which is known when it is served.
    pub(crate) fn has_assumed_size(&self) -> bool {
        self.backend.is_some() && self.keys.size.is_none()
    }

    /// Resolves changed keys. The volume keeps the credits of its start if it still bursts.
    fn changed(&self, keys: VolumeKeys, edition: Option<&Edition>) -> Result<Self, Fault> {
        let mut volume = resolve(&self.name, &VolumeKeys { credits: None, ..keys }, edition)?;
        if volume.spec.limits.gate.has_credits() {
            volume.keys.credits = self.keys.credits;
            volume.spec.credits = self.spec.credits;
        }
        Ok(volume)
    }

    /// Resolves the volume with the limits of a tier.
    pub(crate) fn in_tier(&self, tier: &str, edition: Option<&Edition>) -> Result<Self, Fault> {
        if self.tier.is_none() {
            let limits = match self.keys.unlimited {
                true => "it has no limits",
                false if self.has_rates(edition) => "change its rates",
                false => "resize it, since its limits follow from its size",
            };
            let reason = format!("it has no tier, so it cannot change to {tier}; {limits}");
            return Err(contradiction(&self.name, reason).at("tier"));
        }
        let set = |name: &str| Some(edition?.tier(name).ok()?.set.as_str());
        let own = self.tier.as_deref().and_then(set);
        if let Some((to, own)) = set(tier).zip(own).filter(|(to, own)| to != own) {
            let reason = format!("{tier} is a tier of {to}, and its disks are {own}");
            return Err(contradiction(&self.name, reason).at("tier"));
        }
        let mut keys = VolumeKeys { size: Some(self.spec.size), ..self.keys.clone() };
        // A disk with a performance tier stays of its own tier.
        match keys.performance_tier {
            Some(_) => keys.performance_tier = Some(tier.to_owned()),
            None => keys.tier = Some(tier.to_owned()),
        }
        self.changed(keys, edition)
    }

    /// Returns whether the volume has provisioned rates or limits of its own.
    fn has_rates(&self, edition: Option<&Edition>) -> bool {
        let provisions = |family: &str| edition.is_some_and(|own| own.provisioned(family).is_ok());
        self.keys.limits.is_some() || self.family.as_deref().is_some_and(provisions)
    }

    /// Resolves the volume with other provisioned rates, or other limits of its own. A rate that is not given stays.
    pub(crate) fn with_rates(
        &self,
        iops: Option<Iops>,
        throughput: Option<BytesPerSec>,
        edition: Option<&Edition>,
    ) -> Result<Self, Fault> {
        let mut keys = self.keys.clone();
        if !self.has_rates(edition) {
            let limits = match (&self.tier, keys.unlimited) {
                (Some(tier), _) => format!("its limits are those of {tier}; change the tier"),
                (None, true) => "it is unlimited".to_owned(),
                (None, false) => "its limits follow from its size; resize it".to_owned(),
            };
            let reason = format!("it has no provisioned rates and no limits of its own: {limits}");
            return Err(contradiction(&self.name, reason).at("iops"));
        }
        keys.size = Some(self.spec.size);
        let (own_iops, own_throughput) = match &mut keys.limits {
            Some(limits) => (&mut limits.iops, &mut limits.throughput),
            None => (&mut keys.iops, &mut keys.throughput),
        };
        *own_iops = iops.or(*own_iops);
        *own_throughput = throughput.or(*own_throughput);
        self.changed(keys, edition)
    }

    /// Resolves the volume with another cache mode.
    pub(crate) fn with_cache(
        &self,
        mode: CacheMode,
        edition: Option<&Edition>,
    ) -> Result<Self, Fault> {
        let keys = VolumeKeys { cache: mode, ..self.keys.clone() };
        resolve(&self.name, &keys, edition)
    }
}

fn basis(keys: &VolumeKeys) -> Result<Basis<'_>, Wrong> {
    let wrong = |key, reason: &str| Err((key, reason.to_owned()));
    let bought = [("iops", keys.iops.is_some()), ("throughput", keys.throughput.is_some())];
    let own = keys.unlimited || keys.limits.is_some();
    match (keys.unlimited, &keys.limits, keys.tier.as_deref()) {
        (true, Some(_), _) | (true, _, Some(_)) => {
            return wrong("unlimited", "unlimited excludes tier and limits; keep one of them");
        }
        (_, Some(_), Some(_)) => {
            return wrong("limits", "tier and limits contradict each other; keep one of them");
        }
        _ => {}
    }
    match (first(&bought), first_of_tier(keys), keys.tier.as_deref()) {
        (Some(key), ..) if own => wrong(
            key,
            "iops and throughput are for provisioned families; put them into limits = { .. }",
        ),
        (_, Some(key), _) if own => {
            wrong(key, "on_demand_burst, performance_plus and performance_tier need a tier")
        }
        (Some(key), _, Some(_)) => wrong(
            key,
            "a tier has fixed limits; iops and throughput are for a provisioned family, for \
             example family = \"premium-ssd-v2\"",
        ),
        _ if keys.unlimited => Ok(Basis::Unlimited),
        (.., Some(tier)) => Ok(Basis::Tier(tier)),
        _ => match &keys.limits {
            Some(limits) if keys.size.is_none() && limits.is_empty() => {
                wrong("limits", "limits = {} limits nothing; write unlimited = true")
            }
            Some(limits) => Ok(Basis::Own(limits)),
            None if keys.size.is_some() => Ok(Basis::Size),
            None => wrong("", "give one of tier, size, limits or unlimited"),
        },
    }
}

/// Returns the first of several keys that is given.
fn first(keys: &[(&'static str, bool)]) -> Option<&'static str> {
    keys.iter().find(|(_, is_given)| *is_given).map(|(key, _)| *key)
}

/// Returns the first key of a volume that is for disks with tiers.
fn first_of_tier(keys: &VolumeKeys) -> Option<&'static str> {
    first(&[
        ("on_demand_burst", keys.on_demand_burst),
        ("performance_plus", keys.performance_plus),
        ("performance_tier", keys.performance_tier.is_some()),
    ])
}

impl LimitKeys {
    fn is_empty(&self) -> bool {
        self.iops.is_none() && self.throughput.is_none()
    }
}

/// Default size of a volume with explicit limits.
const OWN_SIZE: Bytes = Bytes::gib(1024);

fn own(keys: &VolumeKeys, limits: DiskLimits) -> Resolved {
    let size = keys.size.unwrap_or(OWN_SIZE);
    let family = keys.family.clone();
    Resolved { size, tier: None, tier_size: None, family, limits, is_pooled: false }
}

/// A problem with a volume of an edition.
enum TierProblem {
    Catalog(&'static str, CatalogError),
    Wrong(Wrong),
}

/// Maps an error of the catalog to the key whose value caused it.
fn in_key(key: &'static str) -> impl Fn(CatalogError) -> TierProblem {
    move |error| TierProblem::Catalog(key, error)
}

impl TierProblem {
    fn into_fault(self, name: &str) -> Fault {
        match self {
            Self::Catalog(key, error) => Kind::from(error).at(key),
            Self::Wrong((key, reason)) => contradiction(name, reason).at(key),
        }
    }
}

/// Returns a tier by name, from the given set or family, or else from the whole edition.
fn in_set<'a>(edition: &'a Edition, set: Option<&str>, name: &str) -> Result<&'a Tier, Fault> {
    if let Some(set) = set {
        let set = edition.tier_set(set).map_err(|error| Kind::from(error).at("family"))?;
        if let Some(tier) = set.tiers.iter().find(|t| t.name.eq_ignore_ascii_case(name)) {
            return Ok(tier);
        }
    }
    edition.tier(name).map_err(|error| Kind::from(error).at("tier"))
}

fn of_tier(keys: &VolumeKeys, edition: &Edition, tier: &Tier) -> Result<Resolved, TierProblem> {
    let size = keys.size.unwrap_or(tier.size);
    if size > tier.holds {
        let reason = format!(
            "size {size} is more than {} holds ({}); use a larger tier, or a smaller size",
            tier.name, tier.holds
        );
        return Err(TierProblem::Wrong(("size", reason)));
    }
    let io_unit = edition.io_unit().and_then(|unit| NonZeroU64::new(unit.get()));
    let gate = tier_limits(keys, edition, tier)?;
    Ok(Resolved {
        size,
        tier: Some(tier.name.clone()),
        tier_size: Some(tier.size),
        family: Some(tier.family.clone()),
        limits: DiskLimits { gate, io_unit, merges: false },
        is_pooled: false,
    })
}

fn of_size(keys: &VolumeKeys, edition: &Edition) -> Result<Resolved, TierProblem> {
    let size = keys.size.unwrap_or(Bytes::ZERO);
    let default = edition.default_set().map(|set| set.name.as_str());
    let Some(family) = keys.family.as_deref().or(default) else {
        let families = edition.families().collect::<Vec<_>>().join(", ");
        let reason = format!(
            "{} needs a family for a size; add family = \"..\" (one of {families})",
            edition.name()
        );
        return Err(TierProblem::Wrong(("size", reason)));
    };
    edition.check_family(family).map_err(in_key("family"))?;
    let has_tiers = edition.provisioned(family).is_err()
        && edition.sized(family).is_none()
        && edition.pooled(family).is_none();
    if let Some(key) = first_of_tier(keys).filter(|_| !has_tiers) {
        let reason = format!("{key} is for disks with tiers, and {family} has none; leave it out");
        return Err(TierProblem::Wrong((key, reason)));
    }
    if let Ok(provisioned) = edition.provisioned(family) {
        let limits = provisioned.limits(size, keys.iops, keys.throughput).map_err(|error| {
            let key = match error {
                CatalogError::IopsOutOfRange { .. } => "iops",
                CatalogError::ThroughputOutOfRange { .. }
                | CatalogError::ThroughputOffStep { .. }
                | CatalogError::ThroughputFollows { .. } => "throughput",
                _ => "size",
            };
            TierProblem::Catalog(key, error)
        })?;
        return Ok(Resolved {
            size,
            tier: None,
            tier_size: None,
            family: Some(provisioned.family.clone()),
            limits: DiskLimits {
                gate: gate_of(limits),
                io_unit: io_unit_of(edition, family),
                merges: provisioned.merges,
            },
            is_pooled: false,
        });
    }
    if keys.iops.is_some() || keys.throughput.is_some() {
        let key = if keys.iops.is_some() { "iops" } else { "throughput" };
        let reason = format!(
            "the limits of {family} follow from the size; iops and throughput are for a \
             provisioned family, or write limits = {{ .. }}"
        );
        return Err(TierProblem::Wrong((key, reason)));
    }
    if let Some(sized) = edition.sized(family) {
        return of_sized(sized, size);
    }
    if let Some(pooled) = edition.pooled(family) {
        pooled.check_size(size).map_err(in_key("size"))?;
        return Ok(Resolved {
            size,
            tier: None,
            tier_size: None,
            family: Some(pooled.family.clone()),
            limits: DiskLimits::default(),
            is_pooled: true,
        });
    }
    let tier = edition.snap(family, size).map_err(in_key("size"))?;
    of_tier(keys, edition, tier)
}

/// Resolves a volume whose limits follow from its size, with credits that are a number.
fn of_sized(family: &SizedFamily, size: Bytes) -> Result<Resolved, TierProblem> {
    let limits = family.limits(size).map_err(in_key("size"))?;
    let io_unit = family.io_unit.and_then(|unit| NonZeroU64::new(unit.get()));
    let merges = family.merges;
    Ok(Resolved {
        size,
        tier: None,
        tier_size: None,
        family: Some(family.family.clone()),
        limits: DiskLimits { gate: gate_of_sized(limits), io_unit, merges },
        is_pooled: false,
    })
}

fn io_unit_of(edition: &Edition, family: &str) -> Option<NonZeroU64> {
    NonZeroU64::new(edition.io_unit_of(family)?.get())
}

/// Returns the size up to which disks cannot use the performance tiers above this size, if an edition states one.
fn largest_raised(edition: &Edition) -> Option<Bytes> {
    match edition.rule("performance-tiers")?.value? {
        RuleValue::Size(size) => Some(size),
        _ => None,
    }
}

fn tier_limits(
    keys: &VolumeKeys,
    edition: &Edition,
    tier: &Tier,
) -> Result<GateLimits, TierProblem> {
    let wrong = |key, reason: String| Err(TierProblem::Wrong((key, reason)));
    let mut base = tier.limits();
    if let Some(name) = &keys.performance_tier {
        let higher = edition.tier(name).map_err(in_key("performance_tier"))?;
        if !edition.tier_set(&tier.set).is_ok_and(|own| own.performance_tiers) {
            let reason = format!(
                "{} of {} has no performance tiers; choose a larger tier",
                tier.name,
                edition.name()
            );
            return wrong("performance_tier", reason);
        }
        if keys.performance_plus {
            let reason = "performance_plus replaces the limits of performance_tier, which would only \
                 cost; keep one of them";
            return wrong("performance_tier", reason.to_owned());
        }
        if higher.set != tier.set || higher.iops < tier.iops {
            let reason =
                format!("performance_tier {name} is not above {} in its family", tier.name);
            return wrong("performance_tier", reason);
        }
        let size = keys.size.unwrap_or(tier.size);
        if let Some(most) =
            largest_raised(edition).filter(|most| size <= *most && higher.size > *most)
        {
            let reason =
                format!("{name} is only for disks of more than {most}, and this one has {size}");
            return wrong("performance_tier", reason);
        }
        base = higher.limits();
    }
    if keys.performance_plus {
        match tier.plus {
            Some(plus) => base = plus,
            None => {
                let reason = format!("{} has no performance plus", tier.name);
                return wrong("performance_plus", reason);
            }
        }
        // A smaller disk with the limits of this tier is still too small for performance plus.
        let own = edition.snap(&tier.set, keys.size.unwrap_or(tier.size));
        if let Some(own) = own.ok().filter(|own| own.plus.is_none()) {
            let reason = format!(
                "a disk of {} has no performance plus, which is for disks of more than {}; make it \
                 larger",
                keys.size.unwrap_or(tier.size),
                own.holds
            );
            return wrong("performance_plus", reason);
        }
    }
    match (tier.burst, keys.on_demand_burst) {
        (Some(Burst { kind: BurstKind::OnDemand, iops, throughput, .. }), true) => {
            let burst = |limit: Limit, peak| limit.with_on_demand(peak);
            Ok(GateLimits {
                iops: Some(burst(base.iops.into(), iops.per_sec())),
                bytes: Some(burst(base.throughput.into(), throughput.per_sec())),
            })
        }
        (_, true) => wrong("on_demand_burst", format!("{} has no on-demand bursting", tier.name)),
        (Some(Burst { kind: BurstKind::Credit { duration }, iops, throughput, .. }), false)
            if keys.performance_tier.as_deref().is_none_or(|own| own == tier.name) =>
        {
            let burst = |limit: Limit, peak| limit.with_burst(peak, duration);
            Ok(GateLimits {
                iops: Some(burst(base.iops.into(), iops.per_sec())),
                bytes: Some(burst(base.throughput.into(), throughput.per_sec())),
            })
        }
        _ => Ok(gate_of(base)),
    }
}

/// Adds the reserve of the edition to limits of its disks or machines.
pub(crate) fn with_reserve(gate: GateLimits, edition: Option<&Edition>) -> GateLimits {
    let reserve = edition.and_then(Edition::reserve);
    let reserve = reserve.map(|own| Reserve { holds: own.holds, refill: own.refill });
    let with = |limit: Limit| limit.with_reserve(reserve);
    GateLimits { iops: gate.iops.map(with), bytes: gate.bytes.map(with) }
}

/// Converts limits of the catalog.
pub(crate) fn gate_of(limits: Limits) -> GateLimits {
    GateLimits { iops: Some(limits.iops.into()), bytes: Some(limits.throughput.into()) }
}

/// Converts limits with credits that are a number.
fn gate_of_sized(limits: SizedLimits) -> GateLimits {
    let GateLimits { mut iops, mut bytes } = gate_of(limits.base);
    if let Some((peak, credits)) = limits.iops {
        iops = iops.map(|limit| limit.with_credits(peak.per_sec(), credits));
    }
    if let Some((peak, credits)) = limits.throughput {
        bytes = bytes.map(|limit| limit.with_credits(peak.per_sec(), credits));
    }
    GateLimits { iops, bytes }
}

/// Maximum limits: one operation per nanosecond, the resolution of time, and 1 TiB/s.
const MAX_IOPS: Option<Iops> = Iops::new(1_000_000_000);
const MAX_THROUGHPUT: Option<BytesPerSec> = BytesPerSec::new(1 << 40);

/// Converts explicit limits.
pub(crate) fn gate_limits(keys: &LimitKeys) -> Result<GateLimits, Wrong> {
    check_rate("iops", keys.iops, MAX_IOPS)?;
    check_rate("throughput", keys.throughput, MAX_THROUGHPUT)?;
    let mut gate =
        GateLimits { iops: keys.iops.map(Limit::from), bytes: keys.throughput.map(Limit::from) };
    if let Some(burst) = &keys.burst {
        check_rate("burst.iops", burst.iops, MAX_IOPS)?;
        check_rate("burst.throughput", burst.throughput, MAX_THROUGHPUT)?;
        let side = |limit: Option<Limit>, peak: Option<NonZeroU64>, key: &'static str| {
            let what = key.trim_start_matches("burst.");
            match (limit, peak) {
                (Some(limit), Some(peak)) if peak <= limit.rate => {
                    Err((key, format!("{key} must be above {what}")))
                }
                (Some(limit), Some(peak)) => Ok(Some(limit.with_burst(peak, burst.duration))),
                (None, Some(_)) => Err((key, format!("{key} needs {what}"))),
                (limit, None) => Ok(limit),
            }
        };
        gate.iops = side(gate.iops, burst.iops.map(Iops::per_sec), "burst.iops")?;
        let peak = burst.throughput.map(BytesPerSec::per_sec);
        gate.bytes = side(gate.bytes, peak, "burst.throughput")?;
    }
    Ok(gate)
}

fn check_rate<T: Ord + Display>(
    key: &'static str,
    rate: Option<T>,
    max: Option<T>,
) -> Result<(), Wrong> {
    match (rate, max) {
        (Some(rate), Some(max)) if rate > max => Err((
            key,
            format!(
                "{rate} is above the maximum of a limit, {max}; leave out a limit that you do \
                     not need"
            ),
        )),
        _ => Ok(()),
    }
}

fn medium(
    keys: &VolumeKeys,
    edition: Option<&Edition>,
    family: Option<&str>,
) -> Result<Medium, String> {
    if let Some(latency) = &keys.latency {
        let latency = own_latency(latency)?;
        return Ok(Medium::new(latency.clone(), latency));
    }
    let local = keys.place == Some(PlaceKey::Local);
    let of_edition = edition.filter(|_| !keys.unlimited).and_then(|edition| {
        let default = || edition.default_set().map(|set| set.family.as_str());
        let named = family.or_else(default).and_then(|family| edition.latency(family));
        // With explicit limits, a family selects the latency.
        let own_family = named.filter(|_| keys.limits.is_some() && keys.family.is_some());
        if local { own_family.or(edition.local_latency()) } else { named }
    });
    match of_edition {
        Some(latency) => Ok(Medium {
            read: catalog_latency(&latency.read, latency.transfer)?,
            write: catalog_latency(&latency.write, latency.transfer)?,
            sync: latency.sync.map(|sync| catalog_latency(&sync, None)).transpose()?,
        }),
        None => Ok(Medium::new(Latency::zero(), Latency::zero())),
    }
}

/// Converts a latency of the catalog.
pub(crate) fn catalog_latency(
    quantiles: &weir_catalog::Quantiles,
    transfer: Option<BytesPerSec>,
) -> Result<Latency, String> {
    let points: Vec<(u32, Span)> = quantiles.points().collect();
    let latency = Latency::from_quantiles(&points).map_err(|error| error.to_string())?;
    Ok(match transfer {
        Some(rate) => latency.with_transfer(rate),
        None => latency,
    })
}

/// Converts an explicit latency.
pub(crate) fn own_latency(keys: &LatencyKeys) -> Result<Latency, String> {
    match keys {
        LatencyKeys::Fixed(span) => Ok(Latency::fixed(*span)),
        LatencyKeys::Quantiles(q) => {
            let some = |share: u32, span: Option<Span>| span.map(|span| (share, span));
            let points: Vec<(u32, Span)> = [
                Some((0, q.p0)),
                Some((500_000, q.p50)),
                some(900_000, q.p90),
                some(990_000, q.p99),
                some(999_000, q.p999),
                Some((1_000_000, q.p100)),
            ]
            .into_iter()
            .flatten()
            .collect();
            let latency = Latency::from_quantiles(&points).map_err(|error| error.to_string())?;
            Ok(match q.transfer {
                Some(rate) => latency.with_transfer(rate),
                None => latency,
            })
        }
    }
}

fn check_cacheable(
    name: &str,
    place: Place,
    resolved: &Resolved,
    rules: Option<&HostCache>,
) -> Result<(), Kind> {
    let refuse = |reason: String| Err(Kind::NotCacheable { volume: name.to_owned(), reason });
    if place == Place::Local {
        return refuse("it is on the host's own SSD".into());
    }
    if resolved.size > MAX_CACHED {
        return refuse(format!("Weir caches volumes of at most {MAX_CACHED}"));
    }
    let Some(rules) = rules else { return Ok(()) };
    let family = resolved.family.as_deref().unwrap_or_default();
    if rules.uncacheable.iter().any(|f| f == family) {
        return refuse(format!("{family} disks are not cached"));
    }
    match rules.max_disk_exclusive {
        Some(max) if resolved.size >= max => refuse(format!(
            "disks of {max} or more are not cached, and this one has {}",
            resolved.size
        )),
        _ => Ok(()),
    }
}
