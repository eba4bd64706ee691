//! The keys of a layout file.

use crate::backend::{BackendKeys, BackendSchema};
use crate::clients::{self, ClientsKeys};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use weir_units::{Bytes, BytesPerSec, CacheMode, Iops, Share, Span};

/// A layout file.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayoutFile {
    /// Catalog edition that defines tiers and machine sizes. Not needed if the layout states all
    /// limits.
    pub edition: Option<String>,
    /// Region of the edition's prices, for example westeurope; the edition's own by default.
    pub region: Option<String>,
    /// Seed of the random latencies; 1 by default. Equal seeds give equal runs.
    #[serde(default, deserialize_with = "seed")]
    #[schemars(!default)]
    pub seed: Option<u64>,
    /// The machine, or several machines with names.
    #[schemars(with = "Option<OneOrManySchema<HostKeys>>")]
    pub host: Option<OneOrMany<HostKeys>>,
    /// The volumes.
    #[serde(default)]
    pub volume: Vec<VolumeKeys>,
    /// Stripes of several volumes.
    #[serde(default)]
    pub stripe: Vec<StripeKeys>,
    /// Database files.
    #[serde(default)]
    pub file: Vec<FileKeys>,
    /// Page blobs, served over REST.
    pub blob: Option<BlobKeys>,
    /// Clients that may reach the exports over NBD, for exports without `clients` of their own. Default:
    /// all that can connect.
    #[serde(default, deserialize_with = "clients::table")]
    #[schemars(!default)]
    pub clients: Option<ClientsKeys>,
}

/// Page blobs. Each is a volume of a host, created and deleted by clients.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlobKeys {
    /// Address to listen at, HOST:PORT; "127.0.0.1:10000" by default.
    pub listen: Option<String>,
    /// Host of the blobs' volumes. Required if there are several hosts.
    pub host: Option<String>,
    /// Treatment of requests over a cap: they wait, or they get 503 ServerBusy and clients retry.
    #[serde(default)]
    pub over: OverKey,
    /// Maximum number of in-flight requests of one blob; further requests get 503 ServerBusy. 4096
    /// by default.
    pub queue: Option<usize>,
    /// Tier set or family that gives blobs their tier by size; that of the edition by default.
    pub family: Option<String>,
    /// True if there are no limits and no latency.
    #[serde(default)]
    pub unlimited: bool,
    /// Operations per second of each blob, instead of those of its tier.
    #[schemars(with = "Option<Quantity>")]
    pub iops: Option<Iops>,
    /// Bytes per second of each blob, instead of those of its tier.
    #[schemars(with = "Option<String>")]
    pub throughput: Option<BytesPerSec>,
    /// Clients that may use the well-known account, devstoreaccount1.
    #[serde(default)]
    pub well_known_key: WellKnownKey,
    /// Further accounts.
    #[serde(default)]
    pub account: Vec<AccountKeys>,
    /// Certificate chain for HTTPS, a PEM file. `weir cert` creates one.
    #[schemars(with = "Option<String>")]
    pub certificate: Option<PathBuf>,
    /// Private key of the certificate, a PEM file.
    #[schemars(with = "Option<String>")]
    pub key: Option<PathBuf>,
}

/// An account of page blobs: give `key` or `key_env`.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountKeys {
    /// Name: 3 to 24 lower-case letters and digits.
    pub name: String,
    /// Key in Base64.
    pub key: Option<String>,
    /// Environment variable with the key.
    pub key_env: Option<String>,
}

/// Treatment of requests over a cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverKey {
    /// Requests wait.
    #[default]
    Wait,
    /// Requests that would wait for more than 100 ms are rejected.
    Reject,
}

/// Clients that may use the well-known account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WellKnownKey {
    /// Clients on this machine.
    #[default]
    Loopback,
    /// All clients.
    Anywhere,
    /// No client.
    None,
}

/// Deserializes a seed. TOML has no unsigned integers.
fn seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let seed = i64::deserialize(deserializer)?;
    let negative = |_| D::Error::custom(format!("{seed} is negative; a seed is a whole number"));
    u64::try_from(seed).map(Some).map_err(negative)
}

/// A machine. State one of `size`, `limits`, `unlimited` and `managed_instance`.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostKeys {
    /// Name. Required if there are several hosts.
    pub name: Option<String>,
    /// Machine size of the edition, for example "DS14".
    pub size: Option<String>,
    /// Explicit limits. With `size`, they replace its limits on the stated side.
    pub limits: Option<HostLimitKeys>,
    /// True if there are no limits.
    #[serde(default)]
    pub unlimited: bool,
    /// Host cache. With `size`, it replaces the cache of that size.
    pub cache: Option<CacheKeys>,
    /// Service tier of a managed instance, with `vcores` and `storage`.
    pub managed_instance: Option<ManagedInstance>,
    /// Number of vCores of a managed instance.
    pub vcores: Option<u32>,
    /// Storage reserved for a managed instance; by default the maximum for its vCores.
    #[schemars(with = "Option<String>")]
    pub storage: Option<Bytes>,
    /// Tier set of the files of a General Purpose instance, for example "mi-2020"; that of the
    /// edition by default.
    pub tiers: Option<String>,
    /// Operations per second of a next-gen General Purpose instance, if more are bought than its
    /// storage includes.
    #[schemars(with = "Option<Quantity>")]
    pub iops: Option<Iops>,
    /// True if the licence is owned, so that the price excludes it: SQL Server for a managed
    /// instance, Windows Server for a machine.
    #[serde(default)]
    pub licence_owned: bool,
    /// File system of the machine's disks.
    pub filesystem: Option<FileSystem>,
    /// Part of its burst credits that the machine has at the start, for example "0 %"; all of them
    /// by default.
    #[schemars(with = "Option<String>")]
    pub credits: Option<Share>,
}

/// A file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// ext4 of Linux.
    Ext4,
    /// XFS of Linux.
    Xfs,
    /// NTFS of Windows.
    Ntfs,
}

impl FileSystem {
    /// Returns the name that layouts use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Ntfs => "ntfs",
        }
    }
}

/// A service tier of managed instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ManagedInstance {
    /// General Purpose: each file is a page blob with the limits of its size.
    Gp,
    /// Business Critical: the files are on local SSD.
    Bc,
    /// The next generation of General Purpose: one quota for the whole instance.
    NextGenGp,
}

impl ManagedInstance {
    /// Returns the name in layouts and in the catalog.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gp => "gp",
            Self::Bc => "bc",
            Self::NextGenGp => "next-gen-gp",
        }
    }
}

/// Limits of a machine.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostLimitKeys {
    /// Limits to remote storage.
    pub uncached: Option<LimitKeys>,
    /// Limits of host cache and local SSD together.
    pub cached: Option<LimitKeys>,
}

/// A pair of limits. A missing limit does not apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitKeys {
    /// Operations per second.
    #[schemars(with = "Option<Quantity>")]
    pub iops: Option<Iops>,
    /// Bytes per second, for example "200 MiB/s".
    #[schemars(with = "Option<String>")]
    pub throughput: Option<BytesPerSec>,
    /// Credit bursting above these limits.
    pub burst: Option<BurstKeys>,
}

/// Credit bursting. The buckets of operations and bytes start full.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstKeys {
    /// Maximum operations per second while credits last.
    #[schemars(with = "Option<Quantity>")]
    pub iops: Option<Iops>,
    /// Maximum bytes per second while credits last.
    #[schemars(with = "Option<String>")]
    pub throughput: Option<BytesPerSec>,
    /// Duration of a full bucket at the maximum.
    #[schemars(with = "String")]
    pub duration: Span,
}

/// The host cache.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheKeys {
    /// Size, RAM and SSD together.
    #[schemars(with = "Option<String>")]
    pub size: Option<Bytes>,
    /// Latency of cache hits.
    pub latency: Option<LatencyKeys>,
    /// Maximum of dirty bytes of read-write volumes; 64 MiB by default.
    #[schemars(with = "Option<String>")]
    pub dirty_limit: Option<Bytes>,
    /// Maximum age of dirty bytes; 1 s by default.
    #[schemars(with = "Option<String>")]
    pub writeback_after: Option<Span>,
}

/// A latency: constant, or quantiles.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LatencyKeys {
    /// A constant, for example "1ms".
    Fixed(#[schemars(with = "String")] Span),
    /// Quantiles, with linear interpolation.
    Quantiles(QuantileKeys),
}

/// Quantiles of a latency.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuantileKeys {
    /// Minimum.
    #[schemars(with = "String")]
    pub p0: Span,
    /// Median.
    #[schemars(with = "String")]
    pub p50: Span,
    /// 90th percentile.
    #[schemars(with = "Option<String>")]
    pub p90: Option<Span>,
    /// 99th percentile.
    #[schemars(with = "Option<String>")]
    pub p99: Option<Span>,
    /// 99.9th percentile.
    #[schemars(with = "Option<String>")]
    pub p999: Option<Span>,
    /// Maximum.
    #[schemars(with = "String")]
    pub p100: Span,
    /// Transfer rate; the transfer time of a request is added to the quantiles.
    #[schemars(with = "Option<String>")]
    pub transfer: Option<BytesPerSec>,
}

/// The location of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceKey {
    /// Remote storage.
    Remote,
    /// The local SSD of the host.
    Local,
}

/// A volume. State one of `tier`, `size`, `limits` and `unlimited`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeKeys {
    /// Name of the volume and of its export. Not for the volumes of a stripe, which are numbered.
    pub name: Option<String>,
    /// Host that it is attached to. Required if there are several hosts.
    pub host: Option<String>,
    /// Tier of the edition, for example "P30".
    pub tier: Option<String>,
    /// Size. Without a tier, the volume gets the smallest tier that holds it.
    #[schemars(with = "Option<String>")]
    pub size: Option<Bytes>,
    /// Tier set or family that gives the volume its tier by size; that of the edition by default.
    /// Limits of a provisioned family (premium-ssd-v2, ultra) follow from `size`, `iops` and
    /// `throughput`.
    pub family: Option<String>,
    /// Provisioned operations per second.
    #[schemars(with = "Option<Quantity>")]
    pub iops: Option<Iops>,
    /// Provisioned bytes per second.
    #[schemars(with = "Option<String>")]
    pub throughput: Option<BytesPerSec>,
    /// Explicit limits.
    pub limits: Option<LimitKeys>,
    /// True if there are no limits and no latency.
    #[serde(default)]
    pub unlimited: bool,
    /// Host cache mode; none by default.
    #[serde(default)]
    #[schemars(schema_with = "cache_schema")]
    pub cache: CacheMode,
    /// Remote storage (the default), or the local SSD of the host.
    pub place: Option<PlaceKey>,
    /// True if on-demand bursting is enabled, for tiers that have it.
    #[serde(default)]
    pub on_demand_burst: bool,
    /// True if the disk has the higher limits that can be chosen when it is created.
    #[serde(default)]
    pub performance_plus: bool,
    /// Larger tier whose limits apply; the size does not change.
    pub performance_tier: Option<String>,
    /// Latency of the medium, instead of that of the edition.
    pub latency: Option<LatencyKeys>,
    /// Part of its burst credits that the volume has at the start, for example "0 %"; all of them
    /// by default. For volumes that burst on credits.
    #[schemars(with = "Option<String>")]
    pub credits: Option<Share>,
    /// Number at the machine (LUN), from 0 to 63, for the scripts of `weir export`. Not for the
    /// volumes of a stripe, which have `luns`.
    #[schemars(range(min = 0, max = 63))]
    pub lun: Option<i64>,
    /// Place of the volume's bytes when it is served, instead of memory or the data folder: an NBD
    /// server, a block device or a file. It changes no limit. A stripe with `count` cannot have one; list
    /// its volumes by name.
    #[schemars(with = "Option<BackendSchema>")]
    pub backend: Option<BackendKeys>,
    /// True if the blocks of the volume have checksums in the data folder, so that damage of its disk is an
    /// error. Volumes in memory have none. It changes no limit.
    #[serde(default)]
    pub checksums: bool,
    /// Clients that may reach the volume over NBD, instead of the layout's `clients`. Not for volumes
    /// of a stripe.
    #[serde(default, deserialize_with = "clients::table")]
    #[schemars(!default)]
    pub clients: Option<ClientsKeys>,
    /// True if it is the log file of a managed instance; not a key of layouts.
    #[serde(skip)]
    pub log: bool,
}

/// A stripe.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StripeKeys {
    /// Name of the stripe and of its export.
    pub name: String,
    /// Host. Required if there are several hosts.
    pub host: Option<String>,
    /// Number of bytes on one column before the next.
    #[schemars(with = "String")]
    pub unit: Bytes,
    /// Columns: a number of equal volumes, or names of volumes of this layout.
    pub volumes: Columns,
    /// Clients that may reach the stripe over NBD, instead of the layout's `clients`.
    #[serde(default, deserialize_with = "clients::table")]
    #[schemars(!default)]
    pub clients: Option<ClientsKeys>,
}

/// A database file. On a managed instance it is a volume of its own.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileKeys {
    /// Name; on a managed instance also that of its export.
    pub name: String,
    /// Host. Required if there are several hosts.
    pub host: Option<String>,
    /// Database, if there are several.
    pub database: Option<String>,
    /// Contents of the file.
    pub role: Role,
    /// Size.
    #[schemars(with = "String")]
    pub size: Bytes,
    /// Allocated bytes, if they are not the file's share by its size.
    #[schemars(with = "Option<String>")]
    pub used: Option<Bytes>,
    /// Growth increment when the file is full. Without it, the file does not grow.
    #[schemars(with = "Option<String>")]
    pub growth: Option<Bytes>,
    /// Maximum size; by default limited only by the room on its volume.
    #[schemars(with = "Option<String>")]
    pub max_size: Option<Bytes>,
    /// Volume or stripe with the file. Not for managed instances.
    pub on: Option<String>,
}

impl FileKeys {
    /// Creates the required keys.
    #[must_use]
    pub fn new(name: impl Into<String>, role: Role, size: Bytes) -> Self {
        Self {
            name: name.into(),
            host: None,
            database: None,
            role,
            size,
            used: None,
            growth: None,
            max_size: None,
            on: None,
        }
    }
}

/// The contents of a database file.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Deserialize,
    serde::Serialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Pages of tables and indexes.
    Data,
    /// The transaction log.
    Log,
    /// Temporary objects and row versions, which a restart deletes.
    Tempdb,
    /// A backup.
    Backup,
}

impl Role {
    /// All roles, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Data, Self::Log, Self::Tempdb, Self::Backup];

    /// Returns the name in layouts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Log => "log",
            Self::Tempdb => "tempdb",
            Self::Backup => "backup",
        }
    }
}

/// The columns of a stripe.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum Columns {
    /// Equal volumes.
    Alike(Box<AlikeKeys>),
    /// Names of volumes of this layout.
    Named(Vec<String>),
}

/// Equal volumes.
#[derive(Debug, Clone, JsonSchema)]
pub struct AlikeKeys {
    /// Number of volumes.
    pub count: u32,
    /// Numbers at the machine (LUN), from 0 to 63, one for each volume, for the scripts of `weir
    /// export`.
    #[schemars(inner(range(min = 0, max = 63)))]
    pub luns: Option<Vec<i64>>,
    /// Keys of each volume.
    #[schemars(flatten)]
    pub each: VolumeKeys,
}

impl<'de> Deserialize<'de> for Columns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Columns;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table like { count = 4, tier = \"P30\" } or a list of volume names")
            }

            /// Takes `count` and `luns` out by hand, because a flattened struct accepts unknown
            /// keys.
            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Columns, M::Error> {
                let mut table = toml::Table::deserialize(MapAccessDeserializer::new(map))?;
                let count = table.remove("count");
                let whole = count.as_ref().and_then(toml::Value::as_integer);
                let count = whole.and_then(|n| u32::try_from(n).ok()).ok_or_else(|| {
                    let given = count.map(|count| format!(", not count = {count}"));
                    M::Error::custom(format!(
                        "the volumes of a stripe need a count, like count = 4{}",
                        given.unwrap_or_default()
                    ))
                })?;
                let luns =
                    table.remove("luns").map(numbers).transpose().map_err(M::Error::custom)?;
                let each = VolumeKeys::deserialize(table).map_err(|error| {
                    M::Error::custom(weir_units::in_plain_words(error.message()))
                })?;
                Ok(Columns::Alike(Box::new(AlikeKeys { count, luns, each })))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<Columns, S::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Columns::Named)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// Returns the numbers of a list.
fn numbers(value: toml::Value) -> Result<Vec<i64>, String> {
    let whole = |value: &toml::Value| value.as_integer();
    let all = value.as_array().and_then(|all| all.iter().map(whole).collect());
    all.ok_or_else(|| format!("luns is a list of whole numbers, like luns = [0, 1], not {value}"))
}

/// One table, or several.
#[derive(Debug, Clone)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table or an array of tables")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|one| OneOrMany(vec![one]))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<Self::Value, S::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(OneOrMany)
            }
        }

        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// The schema of [`OneOrMany`].
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum OneOrManySchema<T> {
    /// One.
    One(T),
    /// Several.
    Many(Vec<T>),
}

/// A rate: an integer, or a text such as "40k" or "5000 IOPS".
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Quantity {
    /// A number.
    Number(u64),
    /// Text with a unit.
    Text(String),
}

/// Returns the schema of a cache mode, whose type knows no schemas.
fn cache_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mode = |mode: CacheMode| {
        let description = format!("{}.", mode.description());
        serde_json::json!({ "description": description, "type": "string", "const": mode.name() })
    };
    let modes: Vec<serde_json::Value> = CacheMode::ALL.into_iter().map(mode).collect();
    schemars::json_schema!({ "oneOf": modes, "default": CacheMode::default().name() })
}

/// Returns the JSON schema of a layout file.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(LayoutFile).to_value()
}
