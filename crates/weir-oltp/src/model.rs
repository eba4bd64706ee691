//! What a run is made from: plain numbers, already checked.

use weir_units::{Bytes, Span};

/// Bytes of a page.
pub const PAGE: u64 = 8192;
/// Pages of an extent, the unit in which a table grows over the files.
pub const EXTENT: u32 = 8;

/// A database, the machine under it, and who uses it.
#[derive(Debug, Clone)]
pub struct Model {
    /// Users, each with one transaction under way or thinking.
    pub users: u32,
    /// Mean time between a user's transactions; exponentially distributed.
    pub think_time: Span,
    /// Schedulers that run transactions.
    pub vcores: u32,
    /// How long a transaction computes before another one is let run.
    pub quantum: Span,
    /// What users do; at least one kind.
    pub mix: Vec<Transaction>,
    /// Pages that the transactions touch.
    pub working_set: u64,
    /// The share of the working set that gets one minus this share of the accesses,
    /// at every scale (80-20 is 0.2); 0.5 is even.
    pub skew: f64,
    /// Pages that the buffer pool holds.
    pub buffer_pool: u64,
    /// Whether it holds what fits from the start.
    pub warm: bool,
    /// A miss reads its whole extent, as long as the buffer pool has never been full.
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
    /// Whether a transaction adds pages.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.mix.iter().any(|kind| kind.share > 0 && kind.new_pages > 0.0)
    }

    /// Its files, as the driver counts them, and their roles; the log last.
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
    /// How often, relative to the others.
    pub share: u32,
    /// Batch requests that a client sends for it.
    pub batches: u32,
    /// Pages read, on average.
    pub reads: f64,
    /// Pages changed, on average.
    pub writes: f64,
    /// The number of pages that every transaction of this kind changes some of:
    /// counters, sequences, allocation pages ...
    pub hot_pages: u32,
    /// ... and how many of them.
    pub hot_writes: u32,
    /// Pages that it adds to the database, on average.
    pub new_pages: f64,
    /// Its pages are read one after the other from a place on.
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
    /// The file, as the driver counts them.
    pub file: u32,
    /// The size that it was made with.
    pub declared: Bytes,
    /// Its size now: it may have grown.
    pub size: Bytes,
    /// The extents of the database lie on the files in this proportion.
    pub weight: Bytes,
    /// What of it they take.
    pub used: Bytes,
    /// Pages that were new in an earlier run, behind those.
    pub new_pages: u32,
    /// How it grows when it is full; `None` if it does not.
    pub growth: Option<Growth>,
}

/// How a file grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// By how much at a time.
    pub by: Bytes,
    /// Up to which size.
    pub most: Bytes,
}

impl DataFile {
    /// A file of which nothing is allocated and that does not grow.
    #[must_use]
    pub fn new(file: u32, size: Bytes) -> Self {
        let used = Bytes::ZERO;
        Self { file, declared: size, size, weight: size, used, new_pages: 0, growth: None }
    }

    /// Where its new pages begin.
    #[must_use]
    pub fn new_from(&self) -> u64 {
        self.used.get().next_multiple_of(PAGE * u64::from(EXTENT))
    }
}

/// The log and its writer.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    /// The file, as the driver counts them.
    pub file: u32,
    /// Its size; it is written round and round.
    pub size: Bytes,
    /// The largest write.
    pub block: Bytes,
    /// Writes under way at most.
    pub writes: u32,
}

/// Tempdb.
#[derive(Debug, Clone)]
pub struct Tempdb {
    /// Its data files; at least one.
    pub data: Vec<DataFile>,
    /// What of them is in use: after so much pages are used again.
    pub size: Bytes,
    /// For how long a page that is wanted holds the allocation page of its file.
    pub latch: Span,
}

/// How dirty pages get to their files.
#[derive(Debug, Clone, Copy)]
pub struct Checkpoint {
    /// When.
    pub kind: Checkpoints,
    /// Writes under way at most, of each file.
    pub writes: u32,
    /// Neighbouring dirty pages go in one write of at most so many bytes.
    pub coalesce: Bytes,
    /// Fewer writes are under way as long as they take longer than this.
    pub latency: Option<Span>,
}

/// When dirty pages get to their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkpoints {
    /// All of them, every so often.
    Automatic {
        /// From the start of one checkpoint to the start of the next.
        every: Span,
    },
    /// Each of them when its change is so old.
    Indirect {
        /// How old.
        target_recovery: Span,
    },
}
