//! The checked numbers of a run.

use weir_units::{Bytes, Span};

/// Bytes of a page.
pub const PAGE: u64 = 8192;
/// Pages of an extent, the unit in which a table grows over the files.
pub const EXTENT: u32 = 8;

/// A database, its machine and its users.
#[derive(Debug, Clone)]
pub struct Model {
    /// Users. Each one runs a transaction or thinks.
    pub users: u32,
    /// Mean time between a user's transactions; exponentially distributed.
    pub think_time: Span,
    /// Schedulers that run transactions.
    pub vcores: u32,
    /// Time after which a scheduler takes the next transaction in its queue.
    pub quantum: Span,
    /// Kinds of transactions; at least one.
    pub mix: Vec<Transaction>,
    /// Pages that the transactions touch.
    pub working_set: u64,
    /// The share of the working set that gets one minus this share of the accesses, at every scale:
    /// 0.2 is 80-20, and 0.5 is uniform.
    pub skew: f64,
    /// Pages of the buffer pool.
    pub buffer_pool: u64,
    /// The run starts with a full buffer pool.
    pub warm: bool,
    /// A miss reads its whole extent until the buffer pool is full for the first time.
    pub read_extents: bool,
    /// The data files; at least one.
    pub data: Vec<DataFile>,
    /// The log.
    pub log: Log,
    /// Checkpoints.
    pub checkpoint: Checkpoint,
    /// Tempdb, if the transactions use it.
    pub tempdb: Option<Tempdb>,
    /// Seed of every draw.
    pub seed: u64,
}

impl Model {
    /// Returns whether a transaction adds pages.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.mix.iter().any(|kind| kind.share > 0 && kind.new_pages > 0.0)
    }

    /// Returns its files, by their numbers at the driver, and their roles; the log last.
    #[must_use]
    pub fn files(&self) -> Vec<(u32, &'static str)> {
        let data = self.data.iter().map(|data| (data.file, "data"));
        let tempdb = self.tempdb.iter().flat_map(|tempdb| &tempdb.data);
        data.chain(tempdb.map(|data| (data.file, "tempdb")))
            .chain([(self.log.file, "log")])
            .collect()
    }
}

/// A kind of transaction.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// Its name.
    pub name: String,
    /// Frequency relative to the others.
    pub share: u32,
    /// Batch requests that a client sends for it.
    pub batches: u32,
    /// Pages read, on average.
    pub reads: f64,
    /// Pages changed, on average.
    pub writes: f64,
    /// Hot pages, some of which every transaction of this kind changes: counters, sequences,
    /// allocation pages ...
    pub hot_pages: u32,
    /// ... and the number of them that it changes.
    pub hot_writes: u32,
    /// Pages that it adds to the database, on average.
    pub new_pages: f64,
    /// It reads its pages in order, from a random extent on.
    pub sequential: bool,
    /// Pages of tempdb that it fills.
    pub tempdb_pages: u32,
    /// Bytes of log.
    pub log: Bytes,
    /// Time on a scheduler.
    pub cpu: Span,
}

/// A data file.
#[derive(Debug, Clone, Copy)]
pub struct DataFile {
    /// The number of the file at the driver.
    pub file: u32,
    /// Its size when the database was created.
    pub declared: Bytes,
    /// Its present size.
    pub size: Bytes,
    /// Its weight in the distribution of extents over the files.
    pub weight: Bytes,
    /// Bytes of it in use.
    pub used: Bytes,
    /// New pages of earlier runs, behind those in use.
    pub new_pages: u32,
    /// Its growth when it is full; `None` if it does not grow.
    pub growth: Option<Growth>,
}

/// The growth of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// The increment.
    pub by: Bytes,
    /// The maximum size.
    pub most: Bytes,
}

impl DataFile {
    /// Makes an empty file that does not grow.
    #[must_use]
    pub fn new(file: u32, size: Bytes) -> Self {
        let used = Bytes::ZERO;
        Self { file, declared: size, size, weight: size, used, new_pages: 0, growth: None }
    }

    /// Returns the offset of its new pages.
    #[must_use]
    pub fn new_from(&self) -> u64 {
        self.used.get().next_multiple_of(PAGE * u64::from(EXTENT))
    }
}

/// The log and its writer.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    /// The number of the file at the driver.
    pub file: u32,
    /// Its size. It is written as a ring.
    pub size: Bytes,
    /// The largest write.
    pub block: Bytes,
    /// Maximum number of in-flight writes.
    pub writes: u32,
}

/// Tempdb.
#[derive(Debug, Clone)]
pub struct Tempdb {
    /// Its data files; at least one.
    pub data: Vec<DataFile>,
    /// The part in use. After that many bytes, pages are filled again.
    pub size: Bytes,
    /// Time for which the allocation of a page latches the allocation page of its file.
    pub latch: Span,
}

/// The writing of dirty pages.
#[derive(Debug, Clone, Copy)]
pub struct Checkpoint {
    /// The kind of checkpoints.
    pub kind: Checkpoints,
    /// Maximum number of in-flight writes per file.
    pub writes: u32,
    /// Maximum bytes of a write of adjacent dirty pages.
    pub coalesce: Bytes,
    /// Target latency of writes. Slower writes reduce the number of in-flight writes.
    pub latency: Option<Span>,
}

/// The time at which dirty pages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkpoints {
    /// All dirty pages at an interval.
    Automatic {
        /// From the start of one checkpoint to the start of the next.
        every: Span,
    },
    /// Each dirty page at an age of its change.
    Indirect {
        /// The age.
        target_recovery: Span,
    },
}
