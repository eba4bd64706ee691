//! Hosts, disks, stripes and files with their limits, and the subjects that pass them.

use super::mapping::Mapping;
use std::ops::Mul;
use weir_core::{CacheMode, Cap as Kind};
use weir_layout::Role;
use weir_observe::EntityId;
use weir_observe::load::Load;

/// A limit, in operations or bytes a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Sustained rate.
    pub rate: f64,
    /// Burst rate, if any.
    pub burst: Option<Burst>,
}

/// A rate above the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// The rate.
    pub peak: f64,
    /// Seconds that a full bucket lasts; `None` if bursts need no credits.
    pub seconds: Option<f64>,
}

impl Limit {
    /// Returns a limit without bursts.
    #[must_use]
    pub const fn flat(rate: f64) -> Self {
        Self { rate, burst: None }
    }

    /// Returns the highest rate.
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

/// The limits of a managed instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceLimits {
    /// Storage reserved for its files.
    pub storage: u64,
    /// vCores.
    pub vcores: u64,
}

/// A machine or instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Host {
    /// Name.
    pub name: String,
    /// Entity in the observation.
    pub entity: Option<EntityId>,
    /// Machine size in the edition.
    pub size: Option<String>,
    /// The size as an edition finds it, with its series where several have the size.
    pub qualified_size: Option<String>,
    /// Limits on remote storage; of reads alone, if writes have limits of their own.
    pub uncached: Pair,
    /// Limits of writes to remote storage, if they are separate.
    pub uncached_writes: Option<Pair>,
    /// Limits of cache and local SSD.
    pub cached: Pair,
    /// Log rate limit.
    pub log: Option<Limit>,
    /// If it is a managed instance.
    pub instance: Option<InstanceLimits>,
}

/// A unit of storage with a tier: disk, page blob, local SSD.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Disk {
    /// Name.
    pub name: String,
    /// Entity, if observed.
    pub entity: Option<EntityId>,
    /// Host.
    pub host: Option<usize>,
    /// The stripe that it is a column of.
    pub stripe: Option<usize>,
    /// Tier.
    pub tier: Option<String>,
    /// Family.
    pub family: Option<String>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Limits.
    pub limits: Pair,
    /// An I/O of n bytes counts n over this, rounded up.
    pub io_unit: Option<f64>,
    /// Host cache mode.
    pub cache: CacheMode,
    /// Set for the local SSD.
    pub is_local: bool,
    /// Set if its writes count against the log rate limit.
    pub is_log: bool,
    /// Unloaded latency, if the edition states it.
    pub medium: Option<Medium>,
}

/// Unloaded latency in nanoseconds.
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
    /// Returns the total latency of reads and writes, with `hits` reads from the host cache.
    #[must_use]
    pub(crate) fn total_ns(
        &self,
        (reads, writes): (f64, f64),
        (read, written): (f64, f64),
        hits: f64,
    ) -> f64 {
        self.reads_with_hits(reads, read, hits) + self.writes(writes, written)
    }

    /// Returns the total latency of a load.
    #[must_use]
    pub(crate) fn load_ns(&self, load: &Load) -> f64 {
        let (read, written) = (load.read_bytes, load.write_bytes.or(load.bytes));
        let bytes = (read.unwrap_or(0.0), written.unwrap_or(0.0));
        match load.reads.zip(load.writes) {
            Some(both) => self.total_ns(both, bytes, load.hits.unwrap_or(0.0)),
            None => self.most(load.operations.unwrap_or(0.0), bytes.1),
        }
    }

    /// Returns the total latency of reads.
    #[must_use]
    pub fn reads(&self, reads: f64, bytes: f64) -> f64 {
        reads * self.read_ns + bytes * self.read_byte_ns
    }

    /// Returns the total latency of reads with cache hits.
    #[must_use]
    pub(crate) fn reads_with_hits(&self, reads: f64, bytes: f64, hits: f64) -> f64 {
        let Some((ns, byte_ns)) = self.hit.filter(|_| hits > 0.0) else {
            return self.reads(reads, bytes);
        };
        let hits = hits.min(reads);
        let hit_bytes = bytes * hits / reads.max(1.0);
        self.reads(reads - hits, bytes - hit_bytes) + hits * ns + hit_bytes * byte_ns
    }

    /// Returns the total latency of writes.
    #[must_use]
    pub fn writes(&self, writes: f64, bytes: f64) -> f64 {
        writes * self.write_ns + bytes * self.write_byte_ns
    }

    /// Returns the total latency of operations of unknown kind: the longer of reads and writes.
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
    /// Name.
    pub name: String,
    /// Entity, if observed.
    pub entity: Option<EntityId>,
    /// Host.
    pub host: Option<usize>,
    /// Columns.
    pub columns: Vec<usize>,
    /// Bytes on one column before the next.
    pub unit: Option<u64>,
}

/// The disk or stripe of a file.
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
    /// Name.
    pub name: String,
    /// Database.
    pub database: Option<String>,
    /// Entity, if observed.
    pub entity: Option<EntityId>,
    /// Role.
    pub role: Option<Role>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Disk or stripe.
    pub on: Option<On>,
}

/// A cap: one limit, and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Cap {
    /// Kind; the sustained one for a limit with bursts.
    pub kind: Kind,
    /// The entity.
    pub owner: Owner,
    /// Value.
    pub limit: Limit,
}

impl Cap {
    /// Returns whether this is a throughput limit.
    #[must_use]
    pub const fn counts_bytes(&self) -> bool {
        self.kind.counts_bytes()
    }

    /// Returns the kind of [`Limit::peak`]: the burst limit if there is one.
    #[must_use]
    pub(crate) const fn at_most(&self) -> Kind {
        if self.limit.burst.is_some() { self.kind.burst() } else { self.kind }
    }
}

/// The owner of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A host's.
    Host(usize),
    /// A disk's.
    Disk(usize),
}

/// The part of a subject's operations that counts against a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// The cap.
    pub cap: usize,
    /// Share of its load, for example one over the number of columns.
    pub share: f64,
    /// Unit of the stripe that splits requests.
    pub piece: Option<f64>,
    /// An operation of n bytes counts n over this.
    pub unit: Option<f64>,
    /// The reads that count.
    pub reads: Reads,
    /// Set if writes count.
    pub writes: bool,
}

/// The reads that count against a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// All reads.
    All,
    /// None.
    None,
    /// Cache misses, whose number is unknown.
    Misses,
}

/// The kind of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectId {
    /// A disk.
    Disk(usize),
    /// A stripe.
    Stripe(usize),
    /// A database file.
    File(usize),
}

/// An entity with observed I/O.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// Entity in the observation.
    pub entity: EntityId,
    /// Kind and index.
    pub id: SubjectId,
    /// The caps that its requests pass, and what of them counts there.
    pub path: Vec<Counts>,
    /// Set if limits take their load from it. A disk and its files may both be observed, but count
    /// once.
    pub is_meter: bool,
    /// Set if findings name it. Of a disk and its only file, one is named.
    pub is_named: bool,
    /// The unloaded latency.
    pub medium: Option<Medium>,
    /// Set if a queue time of zero is evidence. A server on a machine counts the queues of its own
    /// governor only, and not those of the machine and its disks.
    pub counts_queues: bool,
}

impl Subject {
    /// Returns whether its load counts against a limit.
    #[must_use]
    pub fn passes(&self, cap: usize) -> bool {
        self.path.iter().any(|counts| counts.cap == cap)
    }
}

/// Entities and their limits.
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
    /// Limits.
    pub caps: Vec<Cap>,
    /// Entities with observed I/O.
    pub subjects: Vec<Subject>,
    /// Targets of backups from `--map`: names of the observation and of the layout.
    pub backup_places: Mapping,
}

impl System {
    /// Returns the name of a subject; files are named with their database.
    #[must_use]
    pub fn name(&self, id: SubjectId) -> String {
        match id {
            SubjectId::Disk(disk) => self.disks[disk].name.clone(),
            SubjectId::Stripe(stripe) => self.stripes[stripe].name.clone(),
            SubjectId::File(file) => self.files[file].qualified(),
        }
    }

    /// Returns the name of a cap's owner.
    #[must_use]
    pub(crate) fn owner_name(&self, cap: &Cap) -> &str {
        match cap.owner {
            Owner::Host(host) => &self.hosts[host].name,
            Owner::Disk(disk) => &self.disks[disk].name,
        }
    }

    /// Returns the disks that a subject is on.
    #[must_use]
    pub fn disks_of(&self, id: SubjectId) -> Vec<usize> {
        let on = match id {
            SubjectId::Disk(disk) => Some(On::Disk(disk)),
            SubjectId::Stripe(stripe) => Some(On::Stripe(stripe)),
            SubjectId::File(file) => self.files[file].on,
        };
        match on {
            Some(On::Disk(disk)) => vec![disk],
            Some(On::Stripe(stripe)) => self.stripes[stripe].columns.clone(),
            None => Vec::new(),
        }
    }

    /// Returns the files on a disk or stripe.
    pub(crate) fn files_on(&self, on: On) -> impl Iterator<Item = (usize, &File)> {
        self.files.iter().enumerate().filter(move |(_, file)| file.on == Some(on))
    }

    /// Returns whether any limit is known.
    #[must_use]
    pub(crate) fn has_limits(&self) -> bool {
        !self.caps.is_empty()
    }

    /// Returns the host of a subject.
    #[must_use]
    pub fn host_of(&self, id: SubjectId) -> Option<usize> {
        self.disks_of(id).first().and_then(|disk| self.disks[*disk].host)
    }
}

impl File {
    /// Returns the name with its database.
    #[must_use]
    pub fn qualified(&self) -> String {
        match &self.database {
            Some(database) if *database != self.name => format!("{database}.{}", self.name),
            _ => self.name.clone(),
        }
    }

    /// Returns whether the file has a role.
    #[must_use]
    pub fn is(&self, role: Role) -> bool {
        self.role == Some(role)
    }
}
