//! Who there is, what holds it, and where it was observed.
//!
//! A [`System`] is the static side of a diagnosis: hosts, disks, stripes and files with their
//! limits, from a layout, or from what the observation itself says of its entities, or from a
//! file's size and the tiers of an edition. Every limit becomes a [`Cap`], every entity that does
//! I/O a [`Subject`] with the caps that its requests pass.

mod from_layout;
mod from_observation;
mod paths;

pub use from_layout::{Mapping, Unmatched};

use std::ops::Mul;
use weir_core::Cap as Kind;
use weir_layout::Role;
use weir_observe::EntityId;
use weir_observe::load::Load;

/// A limit, in operations or bytes a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// What lasts.
    pub rate: f64,
    /// What is reached at most, while credits last.
    pub burst: Option<Burst>,
}

/// A rate above the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// The rate.
    pub peak: f64,
    /// How many seconds a full bucket lasts at it; nothing if it needs no credits.
    pub seconds: Option<f64>,
}

impl Limit {
    /// A limit that does not burst.
    #[must_use]
    pub const fn flat(rate: f64) -> Self {
        Self { rate, burst: None }
    }

    /// What is reached at most.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.burst.map_or(self.rate, |burst| burst.peak)
    }
}

/// Limits in operations and in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pair {
    /// Operations a second.
    pub iops: Option<Limit>,
    /// Bytes a second.
    pub bytes: Option<Limit>,
}

/// A host cache mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cache {
    /// No host cache, or none that is known of.
    #[default]
    None,
    /// Reads are served from the host.
    ReadOnly,
    /// Writes are done once the host has them.
    ReadWrite,
}

impl Cache {
    /// Its name in layouts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
        }
    }
}

/// What a managed instance gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceLimits {
    /// Storage reserved for its files.
    pub storage: u64,
    /// Its vCores.
    pub vcores: u64,
}

/// A machine or instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its entity.
    pub entity: Option<EntityId>,
    /// Its size in the edition.
    pub size: Option<String>,
    /// The size as an edition finds it, with its series where several have the size.
    pub qualified_size: Option<String>,
    /// Its limits to remote storage.
    pub uncached: Pair,
    /// Its limits of cache and local SSD.
    pub cached: Pair,
    /// Of logs, in bytes.
    pub log: Option<Limit>,
    /// If it is a managed instance.
    pub instance: Option<InstanceLimits>,
}

/// A unit of storage with a tier: disk, page blob, local SSD.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Disk {
    /// Its name.
    pub name: String,
    /// Its entity, if it was observed.
    pub entity: Option<EntityId>,
    /// Its host.
    pub host: Option<usize>,
    /// The stripe that it is a column of.
    pub stripe: Option<usize>,
    /// Its tier.
    pub tier: Option<String>,
    /// Its family.
    pub family: Option<String>,
    /// Its size.
    pub size: Option<u64>,
    /// Its limits.
    pub limits: Pair,
    /// An I/O of n bytes counts n over this, rounded up.
    pub io_unit: Option<f64>,
    /// Its cache mode.
    pub cache: Cache,
    /// Whether it is on the host.
    pub is_local: bool,
    /// Whether its writes pass the host's limit of logs.
    pub is_log: bool,
    /// What a read and a write take where nothing waits, if the edition says it.
    pub medium: Option<Medium>,
}

/// What requests take where nothing waits, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Medium {
    /// A read, on average.
    pub read_ns: f64,
    /// A write.
    pub write_ns: f64,
    /// Each byte read on top.
    pub read_byte_ns: f64,
    /// Each byte written.
    pub write_byte_ns: f64,
    /// A read that the host cache serves, and each byte of it, if that is known.
    pub hit: Option<(f64, f64)>,
}

impl Medium {
    /// What so many reads and writes with so many bytes take, all together, if a host cache serves
    /// so many of the reads.
    #[must_use]
    pub fn of(&self, (reads, writes): (f64, f64), (read, written): (f64, f64), hits: f64) -> f64 {
        self.reads_with_hits(reads, read, hits) + self.writes(writes, written)
    }

    /// What the operations of a load take.
    #[must_use]
    pub fn of_load(&self, load: &Load) -> f64 {
        let (read, written) = (load.read_bytes, load.write_bytes.or(load.bytes));
        let bytes = (read.unwrap_or(0.0), written.unwrap_or(0.0));
        match load.reads.zip(load.writes) {
            Some(both) => self.of(both, bytes, load.hits.unwrap_or(0.0)),
            None => self.most(load.operations.unwrap_or(0.0), bytes.1),
        }
    }

    /// What reads take.
    #[must_use]
    pub fn reads(&self, reads: f64, bytes: f64) -> f64 {
        reads * self.read_ns + bytes * self.read_byte_ns
    }

    /// What reads take of which a host cache serves so many.
    #[must_use]
    pub fn reads_with_hits(&self, reads: f64, bytes: f64, hits: f64) -> f64 {
        let Some((ns, byte_ns)) = self.hit.filter(|_| hits > 0.0) else {
            return self.reads(reads, bytes);
        };
        let hits = hits.min(reads);
        let hit_bytes = bytes * hits / reads.max(1.0);
        self.reads(reads - hits, bytes - hit_bytes) + hits * ns + hit_bytes * byte_ns
    }

    /// What writes take.
    #[must_use]
    pub fn writes(&self, writes: f64, bytes: f64) -> f64 {
        writes * self.write_ns + bytes * self.write_byte_ns
    }

    /// What operations take of which nobody says whether they read or write: the more of both.
    #[must_use]
    pub fn most(&self, operations: f64, bytes: f64) -> f64 {
        self.reads(operations, bytes).max(self.writes(operations, bytes))
    }
}

impl Mul<f64> for Medium {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self {
            read_ns: times * self.read_ns,
            write_ns: times * self.write_ns,
            read_byte_ns: times * self.read_byte_ns,
            write_byte_ns: times * self.write_byte_ns,
            // The host's cache is no disk, and does not change with it.
            hit: self.hit,
        }
    }
}

/// Disks joined column by column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stripe {
    /// Its name.
    pub name: String,
    /// Its entity, if it was observed.
    pub entity: Option<EntityId>,
    /// Its host.
    pub host: Option<usize>,
    /// Its columns.
    pub columns: Vec<usize>,
    /// Bytes on one column before the next.
    pub unit: Option<u64>,
}

/// What a file lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// A disk.
    Disk(usize),
    /// A stripe.
    Stripe(usize),
}

/// A database file.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its database.
    pub database: Option<String>,
    /// Its entity, if it was observed.
    pub entity: Option<EntityId>,
    /// What is in it.
    pub role: Option<Role>,
    /// Its size.
    pub size: Option<u64>,
    /// What it lies on.
    pub on: Option<On>,
}

/// A cap: one limit, and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Cap {
    /// Which; of a limit that bursts the one without `Burst`.
    pub kind: Kind,
    /// Whose.
    pub owner: Owner,
    /// How much.
    pub limit: Limit,
}

impl Cap {
    /// Whether it counts bytes, else operations.
    #[must_use]
    pub const fn counts_bytes(&self) -> bool {
        matches!(
            self.kind,
            Kind::DiskBytes | Kind::HostUncachedBytes | Kind::HostCachedBytes | Kind::LogRate
        )
    }

    /// The kind of the highest limit that it has, [`Limit::peak`]: that of a burst, if there is one.
    #[must_use]
    pub const fn at_most(&self) -> Kind {
        if self.limit.burst.is_some() { self.at_peak() } else { self.kind }
    }

    /// The same cap where its burst's peak holds.
    #[must_use]
    pub const fn at_peak(&self) -> Kind {
        match self.kind {
            Kind::DiskIops => Kind::DiskBurstIops,
            Kind::DiskBytes => Kind::DiskBurstBytes,
            Kind::HostUncachedIops => Kind::HostUncachedBurstIops,
            Kind::HostUncachedBytes => Kind::HostUncachedBurstBytes,
            Kind::HostCachedIops => Kind::HostCachedBurstIops,
            Kind::HostCachedBytes => Kind::HostCachedBurstBytes,
            other => other,
        }
    }
}

/// Whose a cap is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A host's.
    Host(usize),
    /// A disk's.
    Disk(usize),
}

/// What of a subject's operations count at a cap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// The cap.
    pub cap: usize,
    /// Which part of what it does, as a column of a stripe has one over their number.
    pub share: f64,
    /// What an operation is cut into: a stripe's unit.
    pub piece: Option<f64>,
    /// An operation of n bytes counts n over this.
    pub unit: Option<f64>,
    /// Whether reads count.
    pub reads: Reads,
    /// Whether writes count.
    pub writes: bool,
}

/// Whether reads count at a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// All of them.
    All,
    /// None.
    None,
    /// Those that the host cache does not serve, and nobody says which these are.
    Misses,
}

/// What a subject is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A disk.
    Disk(usize),
    /// A stripe.
    Stripe(usize),
    /// A database file.
    File(usize),
}

/// Somebody whose I/O is observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// Its entity.
    pub entity: EntityId,
    /// What it is.
    pub what: What,
    /// The caps that its requests pass, and what of them counts there.
    pub path: Vec<Counts>,
    /// Whether the caps take their load from it: a disk and the files on it may both be
    /// observed, and count once.
    pub is_meter: bool,
    /// Whether it is what a finding names: of a disk and the one file on it one of them is.
    pub is_named: bool,
    /// What requests take where nothing waits.
    pub medium: Option<Medium>,
    /// Whether a queued time of zero means that nothing was queued. A server on a machine counts the
    /// queues of its own governor, and knows nothing of those of the machine and its disks.
    pub counts_queues: bool,
}

impl Subject {
    /// Whether what it does counts at a cap.
    #[must_use]
    pub fn passes(&self, cap: usize) -> bool {
        self.path.iter().any(|counts| counts.cap == cap)
    }
}

/// Who there is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct System {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The disks.
    pub disks: Vec<Disk>,
    /// The stripes.
    pub stripes: Vec<Stripe>,
    /// The files.
    pub files: Vec<File>,
    /// All caps.
    pub caps: Vec<Cap>,
    /// All whose I/O is observed.
    pub subjects: Vec<Subject>,
    /// Where targets of backups are, as somebody said: names of the observation and of the layout.
    pub backup_places: Mapping,
}

impl System {
    /// The name of a subject; files are named with their database.
    #[must_use]
    pub fn name(&self, what: What) -> String {
        match what {
            What::Disk(disk) => self.disks[disk].name.clone(),
            What::Stripe(stripe) => self.stripes[stripe].name.clone(),
            What::File(file) => self.files[file].qualified(),
        }
    }

    /// The name of a cap's owner.
    #[must_use]
    pub fn owner_name(&self, cap: &Cap) -> &str {
        match cap.owner {
            Owner::Host(host) => &self.hosts[host].name,
            Owner::Disk(disk) => &self.disks[disk].name,
        }
    }

    /// The disks that a subject is on.
    #[must_use]
    pub fn disks_of(&self, what: What) -> Vec<usize> {
        let on = match what {
            What::Disk(disk) => Some(On::Disk(disk)),
            What::Stripe(stripe) => Some(On::Stripe(stripe)),
            What::File(file) => self.files[file].on,
        };
        match on {
            Some(On::Disk(disk)) => vec![disk],
            Some(On::Stripe(stripe)) => self.stripes[stripe].columns.clone(),
            None => Vec::new(),
        }
    }

    /// Files on a disk or stripe.
    pub fn files_on(&self, on: On) -> impl Iterator<Item = (usize, &File)> {
        self.files.iter().enumerate().filter(move |(_, file)| file.on == Some(on))
    }

    /// Whether any limit is known.
    #[must_use]
    pub fn has_limits(&self) -> bool {
        !self.caps.is_empty()
    }

    /// The host that a subject is at.
    #[must_use]
    pub fn host_of(&self, what: What) -> Option<usize> {
        self.disks_of(what).first().and_then(|disk| self.disks[*disk].host)
    }
}

impl File {
    /// Its name with its database's in front.
    #[must_use]
    pub fn qualified(&self) -> String {
        match &self.database {
            Some(database) if *database != self.name => format!("{database}.{}", self.name),
            _ => self.name.clone(),
        }
    }

    /// Whether it is of that role.
    #[must_use]
    pub fn is(&self, role: Role) -> bool {
        self.role == Some(role)
    }
}
