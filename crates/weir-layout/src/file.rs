//! The keys of a layout file as they are written.

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use weir_units::{Bytes, BytesPerSec, CacheMode, Iops, Span};

/// A layout file.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayoutFile {
    /// The catalog edition that tiers and host sizes are looked up in. Not needed
    /// where every limit is written out.
    pub edition: Option<String>,
    /// Seed of the latency draws; 1 if left out. One seed gives one run.
    #[serde(default, deserialize_with = "seed")]
    #[schemars(!default)]
    pub seed: Option<u64>,
    /// The machine, or several with names.
    #[schemars(with = "Option<OneOrManySchema<HostKeys>>")]
    pub host: Option<OneOrMany<HostKeys>>,
    /// The volumes.
    #[serde(default)]
    pub volume: Vec<VolumeKeys>,
    /// Volumes joined column by column.
    #[serde(default)]
    pub stripe: Vec<StripeKeys>,
    /// Database files.
    #[serde(default)]
    pub file: Vec<FileKeys>,
    /// Page blobs, which are served over REST.
    pub blob: Option<BlobKeys>,
}

/// How page blobs are served: each is a volume of a host, made and deleted by clients.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlobKeys {
    /// Where to listen, HOST:PORT; "127.0.0.1:10000" if left out.
    pub listen: Option<String>,
    /// The host of the blobs' volumes, where there are several.
    pub host: Option<String>,
    /// What a request does that is over a cap: it waits, or it is answered with 503
    /// ServerBusy and asked again later.
    #[serde(default)]
    pub over: OverKey,
    /// Requests of one blob that may be under way; further ones get 503 ServerBusy. 4096 if
    /// left out.
    pub queue: Option<usize>,
    /// The tier set or family that the blobs' sizes snap in; the edition's default if left
    /// out.
    pub family: Option<String>,
    /// No limits and no latency.
    #[serde(default)]
    pub unlimited: bool,
    /// Operations per second of each blob, instead of its tier's.
    #[schemars(with = "Option<Quantity>")]
    pub iops: Option<Iops>,
    /// Bytes per second of each blob, instead of its tier's.
    #[schemars(with = "Option<String>")]
    pub throughput: Option<BytesPerSec>,
    /// Who may use the account that everybody knows, devstoreaccount1.
    #[serde(default)]
    pub well_known_key: WellKnownKey,
    /// Further accounts.
    #[serde(default)]
    pub account: Vec<AccountKeys>,
    /// For HTTPS: the certificate chain, a PEM file (`weir cert` makes one).
    #[schemars(with = "Option<String>")]
    pub certificate: Option<PathBuf>,
    /// And its private key.
    #[schemars(with = "Option<String>")]
    pub key: Option<PathBuf>,
}

/// An account of page blobs: give `key` or `key_env`.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountKeys {
    /// Its name: 3 to 24 lower-case letters and digits.
    pub name: String,
    /// Its key, in Base64.
    pub key: Option<String>,
    /// The environment variable that has its key.
    pub key_env: Option<String>,
}

/// What a request does that is over a cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverKey {
    /// It waits.
    #[default]
    Wait,
    /// It is refused if it would wait for more than 100 ms.
    Reject,
}

/// Who may use the well-known account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WellKnownKey {
    /// This machine.
    #[default]
    Loopback,
    /// Everybody who gets here.
    Anywhere,
    /// Nobody.
    None,
}

/// TOML knows no unsigned integers.
fn seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let seed = i64::deserialize(deserializer)?;
    let negative = |_| D::Error::custom(format!("{seed} is negative; a seed is a whole number"));
    u64::try_from(seed).map(Some).map_err(negative)
}

/// A machine: give `size`, or `limits`, or `unlimited`; or `managed_instance`.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostKeys {
    /// Its name; needed where there are several.
    pub name: Option<String>,
    /// A size of the edition, like "DS14".
    pub size: Option<String>,
    /// Limits of your own. Beside `size` they replace that side's figures.
    pub limits: Option<HostLimitKeys>,
    /// No limits at all.
    #[serde(default)]
    pub unlimited: bool,
    /// The host cache. Beside `size` it replaces that size's figures.
    pub cache: Option<CacheKeys>,
    /// A managed instance of this tier, with `vcores` and `storage`.
    pub managed_instance: Option<ManagedInstance>,
    /// The vCores of a managed instance.
    pub vcores: Option<u32>,
    /// The storage reserved for a managed instance; the most that its vCores allow if
    /// left out.
    #[schemars(with = "Option<String>")]
    pub storage: Option<Bytes>,
    /// The tier set of a General Purpose instance's files, like "mi-2020"; the
    /// edition's default if left out.
    pub tiers: Option<String>,
    /// Operations per second of a next-gen General Purpose instance, where more than
    /// come with its storage are bought.
    #[schemars(with = "Option<Quantity>")]
    pub iops: Option<Iops>,
    /// The licence is owned and not part of the price: SQL Server for a managed instance, Windows
    /// Server for a machine.
    #[serde(default)]
    pub licence_owned: bool,
    /// The file system of a machine's disks.
    pub filesystem: Option<FileSystem>,
}

/// The file system of disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// ext4, of Linux.
    Ext4,
    /// XFS, of Linux.
    Xfs,
    /// NTFS, of Windows.
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

/// The tiers of a managed instance.
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
    /// As layouts and the catalog write it.
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
    /// To remote storage.
    pub uncached: Option<LimitKeys>,
    /// Of host cache and local SSD together.
    pub cached: Option<LimitKeys>,
}

/// A pair of limits; what is left out is not limited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitKeys {
    /// Operations per second.
    #[schemars(with = "Option<Quantity>")]
    pub iops: Option<Iops>,
    /// Bytes per second, like "200 MiB/s".
    #[schemars(with = "Option<String>")]
    pub throughput: Option<BytesPerSec>,
    /// Credit bursting above them.
    pub burst: Option<BurstKeys>,
}

/// Credit bursting: two buckets that start full.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstKeys {
    /// Operations per second while credits last.
    #[schemars(with = "Option<Quantity>")]
    pub iops: Option<Iops>,
    /// Bytes per second while credits last.
    #[schemars(with = "Option<String>")]
    pub throughput: Option<BytesPerSec>,
    /// How long a full bucket lasts at the maximum.
    #[schemars(with = "String")]
    pub duration: Span,
}

/// The host cache.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheKeys {
    /// RAM and SSD together.
    #[schemars(with = "Option<String>")]
    pub size: Option<Bytes>,
    /// Latency of what it serves.
    pub latency: Option<LatencyKeys>,
    /// Dirty bytes that read-write volumes may leave in it; 64 MiB if left out.
    #[schemars(with = "Option<String>")]
    pub dirty_limit: Option<Bytes>,
    /// How long dirty bytes may lie; 1 s if left out.
    #[schemars(with = "Option<String>")]
    pub writeback_after: Option<Span>,
}

/// A latency: one time for all, or quantiles.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LatencyKeys {
    /// Always the same, like "1ms".
    Fixed(#[schemars(with = "String")] Span),
    /// Quantiles, linear between them.
    Quantiles(QuantileKeys),
}

/// Quantiles of a latency.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuantileKeys {
    /// The shortest.
    #[schemars(with = "String")]
    pub p0: Span,
    /// The median.
    #[schemars(with = "String")]
    pub p50: Span,
    /// 90 % are shorter.
    #[schemars(with = "Option<String>")]
    pub p90: Option<Span>,
    /// 99 % are shorter.
    #[schemars(with = "Option<String>")]
    pub p99: Option<Span>,
    /// 99.9 % are shorter.
    #[schemars(with = "Option<String>")]
    pub p999: Option<Span>,
    /// The longest.
    #[schemars(with = "String")]
    pub p100: Span,
    /// The rate at which the bytes of a request pass, on top of the quantiles.
    #[schemars(with = "Option<String>")]
    pub transfer: Option<BytesPerSec>,
}

/// Where a volume's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceKey {
    /// Remote storage.
    Remote,
    /// The host's own SSD.
    Local,
}

/// A volume: give `tier`, or `size`, or `limits`, or `unlimited`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeKeys {
    /// Its name, and its export's. Not given for the volumes of a stripe, which
    /// are numbered.
    pub name: Option<String>,
    /// The host it is attached to, where there are several.
    pub host: Option<String>,
    /// A tier of the edition, like "P30".
    pub tier: Option<String>,
    /// Its size. Alone it snaps up to the tier that holds it.
    #[schemars(with = "Option<String>")]
    pub size: Option<Bytes>,
    /// The tier set or family that `size` snaps in; the edition's default if left
    /// out. For a family with provisioned limits (premium-ssd-v2, ultra) the
    /// limits come from `size`, `iops` and `throughput`.
    pub family: Option<String>,
    /// Provisioned operations per second.
    #[schemars(with = "Option<Quantity>")]
    pub iops: Option<Iops>,
    /// Provisioned bytes per second.
    #[schemars(with = "Option<String>")]
    pub throughput: Option<BytesPerSec>,
    /// Limits of your own.
    pub limits: Option<LimitKeys>,
    /// No limits and no latency.
    #[serde(default)]
    pub unlimited: bool,
    /// The host cache mode; none if left out.
    #[serde(default)]
    #[schemars(schema_with = "cache_schema")]
    pub cache: CacheMode,
    /// Remote storage, or the host's local SSD.
    pub place: Option<PlaceKey>,
    /// On-demand bursting, for tiers that have it.
    #[serde(default)]
    pub on_demand_burst: bool,
    /// The higher limits that can be chosen when the disk is made.
    #[serde(default)]
    pub performance_plus: bool,
    /// The limits of a larger tier, size unchanged.
    pub performance_tier: Option<String>,
    /// Latency of the medium, instead of the edition's.
    pub latency: Option<LatencyKeys>,
    /// Its number at the machine (LUN), from 0 to 63, for the scripts of `weir export`. Not given
    /// for the volumes of a stripe, which have `luns`.
    #[schemars(range(min = 0, max = 63))]
    pub lun: Option<i64>,
    /// Whether it is the log file of a managed instance; not a key of layouts.
    #[serde(skip)]
    pub log: bool,
}

/// A stripe.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StripeKeys {
    /// Its name, and its export's.
    pub name: String,
    /// The host, where there are several.
    pub host: Option<String>,
    /// Bytes on one column before the next.
    #[schemars(with = "String")]
    pub unit: Bytes,
    /// Its columns: so many alike, or volumes of this layout by name.
    pub volumes: Columns,
}

/// A database file. On a managed instance it is a volume of its own.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileKeys {
    /// Its name; on a managed instance its export's, too.
    pub name: String,
    /// The host, where there are several.
    pub host: Option<String>,
    /// The database, where there are several.
    pub database: Option<String>,
    /// What is in it.
    pub role: Role,
    /// Its size.
    #[schemars(with = "String")]
    pub size: Bytes,
    /// What of it is allocated, where that is not the file's share by its size.
    #[schemars(with = "Option<String>")]
    pub used: Option<Bytes>,
    /// By how much it grows when it is full; not at all if left out.
    #[schemars(with = "Option<String>")]
    pub growth: Option<Bytes>,
    /// Up to where it grows; as far as there is room if left out.
    #[schemars(with = "Option<String>")]
    pub max_size: Option<Bytes>,
    /// The volume or stripe that it is on. Not given on a managed instance.
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

/// What is in a database file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Pages of tables and indexes.
    Data,
    /// The transaction log.
    Log,
    /// Temporary objects and row versions, gone at a restart.
    Tempdb,
    /// A backup.
    Backup,
}

impl Role {
    /// Every role, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Data, Self::Log, Self::Tempdb, Self::Backup];

    /// As layouts write it.
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
    /// So many alike.
    Alike(Box<AlikeKeys>),
    /// Volumes of this layout, by name.
    Named(Vec<String>),
}

/// Volumes that are all alike.
#[derive(Debug, Clone, JsonSchema)]
pub struct AlikeKeys {
    /// How many.
    pub count: u32,
    /// Their numbers at the machine (LUN), from 0 to 63, one for each, for the scripts of `weir
    /// export`.
    #[schemars(inner(range(min = 0, max = 63)))]
    pub luns: Option<Vec<i64>>,
    /// What each is.
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

            /// `count` and `luns` are taken out by hand: a flattened struct would let
            /// unknown keys pass.
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

/// The numbers of a list of them.
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

/// How [`OneOrMany`] looks in the schema.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum OneOrManySchema<T> {
    /// One.
    One(T),
    /// Several.
    Many(Vec<T>),
}

/// A count: an integer, or text like "5000 IOPS".
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

/// The JSON schema of a layout file.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(LayoutFile).to_value()
}
