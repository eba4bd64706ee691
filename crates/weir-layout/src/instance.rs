//! Managed instances: limits by service tier and vCores, from the rules and sizes of the edition, and
//! limits on their files.

use crate::database_file::FileUse;
use crate::error::{Beyond, Kind, Wrong};
use crate::file::{FileKeys, HostKeys, LimitKeys, ManagedInstance, PlaceKey, Role, VolumeKeys};
use std::collections::BTreeMap;
use weir_catalog::{Catalog, Edition, HostSize, RuleValue};
use weir_core::{GateLimits, HostSpec, Limit};
use weir_units::{Bytes, BytesPerSec, Iops};

/// A managed instance, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Tier.
    pub kind: ManagedInstance,
    /// VCores.
    pub vcores: u32,
    /// Reserved storage; by default the maximum.
    pub storage: Bytes,
    /// True if the layout states the storage.
    pub is_storage_stated: bool,
    /// Step in which storage is reserved.
    pub storage_step: Bytes,
    /// Operations per second that the layout states: included and bought ones together.
    pub iops: Option<Iops>,
    /// Tier set of its files, if they have tiers.
    pub tiers: Option<String>,
    /// Limits on its files.
    pub bounds: Vec<Bound>,
}

/// A limit on the files of a managed instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Limited quantity.
    pub measure: Measure,
    /// Maximum, in bytes, files or databases.
    pub most: u64,
}

/// A limited quantity of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Measure {
    /// The size of all files.
    Files,
    /// The size of all blobs.
    Blobs,
    /// The size of the tempdb files.
    Tempdb,
    /// The largest data file.
    DataFile,
    /// The largest log file.
    LogFile,
    /// The number of files.
    FileCount,
    /// The number of databases.
    Databases,
    /// The number of files of the database that has most.
    FilesOfDatabase,
}

impl Measure {
    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "size of all files",
            Self::Blobs => "size of all blobs",
            Self::Tempdb => "size of tempdb",
            Self::DataFile => "size of the largest data file",
            Self::LogFile => "size of the largest log file",
            Self::FileCount => "number of files",
            Self::Databases => "number of databases",
            Self::FilesOfDatabase => "number of files of one database",
        }
    }

    /// Returns whether the unit is bytes.
    #[must_use]
    pub fn is_bytes(self) -> bool {
        !matches!(self, Self::FileCount | Self::Databases | Self::FilesOfDatabase)
    }

    fn words(self, n: u64) -> String {
        if self.is_bytes() { Bytes::new(n).to_string() } else { n.to_string() }
    }
}

/// Sums of files, in every measure.
#[derive(Debug, Clone, Default)]
pub struct Tally<'a> {
    files: u64,
    blobs: u64,
    tempdb: u64,
    data_file: u64,
    log_file: u64,
    count: u64,
    databases: BTreeMap<Option<&'a str>, u64>,
    most_of_one: u64,
}

impl<'a> Tally<'a> {
    /// Sums up files.
    #[must_use]
    pub fn sum(files: &[FileUse<'a>]) -> Self {
        let mut tally = Self::default();
        files.iter().for_each(|file| tally.add(file));
        tally
    }

    fn add(&mut self, FileUse { file, volume }: &FileUse<'a>) {
        let size = volume.spec.size.get();
        self.files = self.files.saturating_add(size);
        self.blobs = self.blobs.saturating_add(volume.tier_size.map_or(0, Bytes::get));
        self.count = self.count.saturating_add(1);
        match file.role {
            Role::Data => self.data_file = self.data_file.max(size),
            Role::Log => self.log_file = self.log_file.max(size),
            Role::Tempdb => self.tempdb = self.tempdb.saturating_add(size),
            Role::Backup => {}
        }
        // tempdb is a system database, and a backup is not a database.
        if matches!(file.role, Role::Data | Role::Log) {
            let of_database = self.databases.entry(file.database.as_deref()).or_default();
            *of_database += 1;
            self.most_of_one = self.most_of_one.max(*of_database);
        }
    }

    /// Returns a sum, in bytes, files or databases.
    #[must_use]
    pub fn get(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Files => self.files,
            Measure::Blobs => self.blobs,
            Measure::Tempdb => self.tempdb,
            Measure::DataFile => self.data_file,
            Measure::LogFile => self.log_file,
            Measure::FileCount => self.count,
            Measure::Databases => self.databases.len() as u64,
            Measure::FilesOfDatabase => self.most_of_one,
        }
    }
}

impl Instance {
    /// Checks that the files are within all limits. An error has the index of the first file beyond a
    /// limit, and the total excess.
    pub(crate) fn check<'f>(&self, host: &str, files: &[FileUse<'f>]) -> Result<(), (usize, Kind)> {
        let whole = Tally::sum(files);
        let beyond = |bound: &&Bound| whole.get(bound.measure) > bound.most;
        let Some(Bound { measure, most }) = self.bounds.iter().copied().find(|b| beyond(&b)) else {
            return Ok(());
        };
        let mut tally = Tally::default();
        let crosses = files.iter().position(|file| {
            tally.add(file);
            tally.get(measure) > most
        });
        let used = whole.get(measure);
        let beyond = Beyond {
            host: host.to_owned(),
            what: measure.name(),
            used: measure.words(used),
            over: measure.words(used - most),
            most: self.in_words(measure, most),
        };
        Err((crosses.unwrap_or(0), Kind::BeyondLimit(Box::new(beyond))))
    }

    fn in_words(&self, measure: Measure, most: u64) -> String {
        let (kind, vcores, most) = (self.kind.name(), self.vcores, measure.words(most));
        match measure {
            Measure::Files => format!("the {most} of storage of the {kind} instance"),
            _ => format!("a {kind} instance with {vcores} vCores can have, {most}"),
        }
    }

    /// Returns the keys of the volume of a file.
    pub(crate) fn volume_of(&self, keys: &FileKeys, edition: Option<&Edition>) -> VolumeKeys {
        let with_latency = |family: &str| {
            let known = edition.is_some_and(|edition| edition.latency(family).is_some());
            known.then(|| family.to_owned())
        };
        let volume = match (self.kind, keys.role) {
            (_, Role::Tempdb) => unlimited_local(),
            (ManagedInstance::Gp, _) => {
                VolumeKeys { family: self.tiers.clone(), ..VolumeKeys::default() }
            }
            (ManagedInstance::Bc, _) => {
                VolumeKeys { family: with_latency("mi-bc"), ..unlimited_local() }
            }
            (ManagedInstance::NextGenGp, _) => {
                VolumeKeys { family: with_latency("mi-next-gen-gp"), ..unlimited() }
            }
        };
        VolumeKeys { size: Some(keys.size), log: keys.role == Role::Log, ..volume }
    }
}

/// Returns the keys of a volume without limits, with the latency of the edition.
fn unlimited() -> VolumeKeys {
    VolumeKeys { limits: Some(LimitKeys::default()), ..VolumeKeys::default() }
}

/// Returns the keys of a volume on local SSD without limits.
fn unlimited_local() -> VolumeKeys {
    VolumeKeys { place: Some(PlaceKey::Local), ..unlimited() }
}

/// Returns a key for managed instances in the keys of a machine.
pub(crate) fn stray_key(keys: &HostKeys) -> Option<&'static str> {
    let given = [
        ("vcores", keys.vcores.is_some()),
        ("storage", keys.storage.is_some()),
        ("tiers", keys.tiers.is_some()),
        ("iops", keys.iops.is_some()),
    ];
    given.into_iter().find(|(_, given)| *given).map(|(key, _)| key)
}

/// Resolves the keys of an instance. Returns it with the name of its size and the limits of its host.
pub fn resolve<'a>(
    kind: ManagedInstance,
    keys: &HostKeys,
    edition: &'a Edition,
    catalog: &Catalog,
) -> Result<(Instance, &'a str, HostSpec), Wrong> {
    check_excluded(kind, keys)?;
    let size = size(kind, keys, edition, catalog)?;
    let vcores = size.vcpus.unwrap_or_default();
    let storage = storage(keys, edition, size)?;
    let tier_set = match (kind, &keys.tiers) {
        (ManagedInstance::Gp, Some(tiers)) => {
            Some(edition.tier_set(tiers).map_err(|error| ("tiers", error.to_string()))?)
        }
        (ManagedInstance::Gp, None) => edition.default_set(),
        _ => None,
    };
    let tiers = tier_set.map(|set| set.name.clone());
    let bounds = bounds(kind, edition, storage, size);
    let spec = HostSpec {
        uncached: match kind {
            ManagedInstance::NextGenGp => quota(keys, edition, storage, size)?,
            _ => GateLimits::default(),
        },
        cached: match kind {
            ManagedInstance::Bc => GateLimits { iops: local_iops(edition, vcores), bytes: None },
            _ => GateLimits::default(),
        },
        log_rate: log_rate(kind, edition, vcores),
        ..HostSpec::default()
    };
    let storage_step = match value(edition, "storage-step") {
        Some(RuleValue::Size(step)) => step,
        _ => Bytes::gib(1),
    };
    let instance = Instance {
        kind,
        vcores,
        storage,
        is_storage_stated: keys.storage.is_some(),
        storage_step,
        iops: keys.iops,
        tiers,
        bounds,
    };
    Ok((instance, &size.name, spec))
}

fn check_excluded(kind: ManagedInstance, keys: &HostKeys) -> Result<(), Wrong> {
    let excluded = [
        ("size", keys.size.is_some()),
        ("limits", keys.limits.is_some()),
        ("unlimited", keys.unlimited),
        ("cache", keys.cache.is_some()),
        ("filesystem", keys.filesystem.is_some()),
        ("credits", keys.credits.is_some()),
    ];
    if let Some((key, _)) = excluded.into_iter().find(|(_, given)| *given) {
        return Err((key, format!("managed_instance excludes {key}; keep one of them")));
    }
    match (kind, &keys.tiers, keys.iops) {
        (ManagedInstance::Bc | ManagedInstance::NextGenGp, Some(_), _) => {
            Err(("tiers", format!("the files of {} have no tiers; leave it out", kind.name())))
        }
        (ManagedInstance::Gp | ManagedInstance::Bc, _, Some(_)) => {
            let reason = "is for next-gen-gp, where IOPS can be bought; leave it out";
            Err(("iops", format!("iops {reason}")))
        }
        _ => Ok(()),
    }
}

/// Returns the size in the catalog with the given vCores.
fn size<'a>(
    kind: ManagedInstance,
    keys: &HostKeys,
    edition: &'a Edition,
    catalog: &Catalog,
) -> Result<&'a HostSize, Wrong> {
    let name = kind.name();
    let has = |edition: &&Edition| edition.series().iter().any(|series| series.name == name);
    let Some(series) = edition.series().iter().find(|series| series.name == name) else {
        let others: Vec<&str> = catalog.editions().filter(has).map(Edition::name).collect();
        let reason = format!(
            "{} has no managed instance {name:?}; editions that do: {}",
            edition.name(),
            others.join(", ")
        );
        return Err(("managed_instance", reason));
    };
    let known = || {
        let all = series.hosts.iter().filter_map(|size| size.vcpus);
        all.map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
    };
    let Some(vcores) = keys.vcores else {
        return Err(("managed_instance", format!("it needs vcores = N, one of {}", known())));
    };
    let found = series.hosts.iter().find(|size| size.vcpus == Some(vcores));
    found
        .ok_or_else(|| ("vcores", format!("{name} has no {vcores} vCores; use one of {}", known())))
}

fn storage(keys: &HostKeys, edition: &Edition, size: &HostSize) -> Result<Bytes, Wrong> {
    let most = size.storage.unwrap_or(Bytes::ZERO);
    let Some(storage) = keys.storage else { return Ok(most) };
    if storage > most {
        let over = Bytes::new(storage.get() - most.get());
        let reason =
            format!("{storage} of storage are {over} more than {} can have, {most}", size.name);
        return Err(("storage", reason));
    }
    match value(edition, "storage-step") {
        Some(RuleValue::Size(step)) if !storage.get().is_multiple_of(step.get().max(1)) => Err((
            "storage",
            format!(
                "{storage} is not a multiple of {step}, the step in which \
                                     storage is reserved"
            ),
        )),
        _ if storage == Bytes::ZERO => Err(("storage", "it must be more than zero".to_owned())),
        _ => Ok(storage),
    }
}

fn value(edition: &Edition, rule: &str) -> Option<RuleValue> {
    edition.rule(rule)?.value
}

fn iops(edition: &Edition, rule: &str) -> Option<u64> {
    match value(edition, rule)? {
        RuleValue::Iops(iops) => Some(iops.get()),
        _ => None,
    }
}

fn throughput(edition: &Edition, rule: &str) -> Option<u64> {
    match value(edition, rule)? {
        RuleValue::Throughput(rate) => Some(rate.get()),
        _ => None,
    }
}

/// Returns the log rate by vCores, capped by the maximum of the instance.
fn log_rate(kind: ManagedInstance, edition: &Edition, vcores: u32) -> Option<Limit> {
    let name = format!("log-rate-{}", kind.name());
    let whole = throughput(edition, &name);
    let by_vcores = throughput(edition, &format!("{name}-vcore"))
        .map(|rate| rate.saturating_mul(u64::from(vcores)));
    let rate = whole.into_iter().chain(by_vcores).min()?;
    BytesPerSec::new(rate).map(Limit::from)
}

fn local_iops(edition: &Edition, vcores: u32) -> Option<Limit> {
    let by_vcores = iops(edition, "iops-bc-vcore")?.saturating_mul(u64::from(vcores));
    let least = iops(edition, "iops-bc-min").unwrap_or(0);
    let most = iops(edition, "iops-bc").unwrap_or(u64::MAX);
    Iops::new(by_vcores.max(least).min(most)).map(Limit::from)
}

/// Returns the quota of a next-gen instance: operations by its storage or as bought, bytes by the
/// operations, both capped by the vCores.
fn quota(
    keys: &HostKeys,
    edition: &Edition,
    storage: Bytes,
    size: &HostSize,
) -> Result<GateLimits, Wrong> {
    let cap = size.uncached.as_ref();
    let most = cap.map_or(u64::MAX, |cap| cap.iops.get());
    let per_gib = iops(edition, "quota-iops-per-gb").unwrap_or(0);
    let by_storage = (storage.get() >> 30).saturating_mul(per_gib);
    let included = by_storage.max(iops(edition, "quota-iops-min").unwrap_or(0)).min(most);
    let operations = match keys.iops.map(Iops::get) {
        None => included,
        Some(own) if own < included => {
            let reason =
                format!("{own} IOPS are fewer than the {included} that {storage} includes");
            return Err(("iops", reason + "; leave it out"));
        }
        Some(own) if own > most => {
            let reason = format!("{own} IOPS are more than {} can have, {most}", size.name);
            return Err(("iops", reason));
        }
        Some(own) => own,
    };
    let by_operations = iops(edition, "quota-iops-per-throughput")
        .map(|per_mb| u64::try_from(u128::from(operations) * MB / u128::from(per_mb.max(1))));
    let bytes = by_operations
        .and_then(Result::ok)
        .unwrap_or(u64::MAX)
        .max(throughput(edition, "quota-throughput-min").unwrap_or(0))
        .min(cap.map_or(u64::MAX, |cap| cap.throughput.get()));
    Ok(GateLimits {
        iops: Iops::new(operations).map(Limit::from),
        bytes: BytesPerSec::new(bytes).map(Limit::from),
    })
}

/// The unit of the rule `quota-iops-per-throughput`.
const MB: u128 = 1_000_000;

/// Returns the limits on the files of an instance. Only General Purpose has blobs.
fn bounds(kind: ManagedInstance, edition: &Edition, storage: Bytes, size: &HostSize) -> Vec<Bound> {
    let number = |rule: &str| value(edition, rule).map(|value| value.number());
    let own = |rule: &str| number(&format!("{rule}-{}", kind.name()));
    let gp = |rule: &str| number(rule).filter(|_| kind == ManagedInstance::Gp);
    let files = gp("instance-files").map_or(storage.get(), |most| most.min(storage.get()));
    let tempdb = size.temp.and_then(|temp| temp.size).map(Bytes::get);
    let bounds = [
        (Measure::Files, Some(files)),
        (Measure::Blobs, gp("account-blobs")),
        (Measure::Tempdb, tempdb),
        (Measure::DataFile, gp("max-data-file")),
        (Measure::LogFile, gp("max-log-file")),
        (Measure::FileCount, gp("max-files")),
        (Measure::Databases, own("max-databases").or_else(|| number("max-databases"))),
        (Measure::FilesOfDatabase, own("max-files-per-database")),
    ];
    bounds.into_iter().filter_map(|(measure, most)| Some(Bound { measure, most: most? })).collect()
}
