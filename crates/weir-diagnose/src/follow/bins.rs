//! The load of a subject by the utilisation of its limits.

use weir_observe::load::Load;

/// Utilisation from which on a sample is near its limit, as in the script of Microsoft's engineers.
pub const NEAR: f64 = 0.9;

/// Bins of use: 20 up to the limit, and what is beyond it.
const BINS: usize = 21;

/// The part of a subject's load that is charged to one of its caps, at one level of utilisation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bin {
    /// Duration in seconds.
    pub seconds: f64,
    /// Operations whose latency is known.
    pub operations: f64,
    /// Their total latency in nanoseconds.
    pub ns: f64,
    /// Reads with a latency of their own.
    pub reads: f64,
    /// The latency of reads.
    pub read_ns: f64,
    /// Host cache hits, if known.
    pub hits: f64,
    /// Writes.
    pub writes: f64,
    /// The latency of writes.
    pub write_ns: f64,
    /// Reads and writes with a common latency.
    pub mixed: (f64, f64),
    /// Bytes read and written. If only the total is known, it counts as written.
    pub bytes: (f64, f64),
    /// Queue time in a governor, if known.
    pub queued_ns: f64,
    /// Upper bound of the wait time at the limit, from the busy time.
    pub possible_ns: f64,
    /// Upper bound if all requests arrived at once.
    pub most_ns: f64,
}

impl Bin {
    /// Adds a part of what a load was.
    pub(super) fn add(&mut self, load: &Load, part: f64, (possible_ns, most_ns): (f64, f64)) {
        self.seconds += part * load.seconds();
        self.operations += part * load.operations.filter(|_| load.ns.is_some()).unwrap_or(0.0);
        self.ns += part * load.ns.unwrap_or(0.0);
        if let (Some(reads), Some(ns)) = (load.reads, load.read_ns) {
            self.reads += part * reads;
            self.read_ns += part * ns;
        }
        if let (Some(writes), Some(ns)) = (load.writes, load.write_ns) {
            self.writes += part * writes;
            self.write_ns += part * ns;
        }
        if let (Some(reads), Some(writes), None) = (load.reads, load.writes, load.read_ns) {
            self.mixed.0 += part * reads;
            self.mixed.1 += part * writes;
        }
        self.hits += part * load.hits.unwrap_or(0.0);
        self.bytes.0 += part * load.read_bytes.unwrap_or(0.0);
        self.bytes.1 += part * load.write_bytes.or(load.bytes).unwrap_or(0.0);
        self.queued_ns += part * queued(load).unwrap_or(0.0);
        self.possible_ns += part * possible_ns;
        self.most_ns += part * most_ns;
    }

    /// Adds another.
    pub fn join(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.operations += other.operations;
        self.ns += other.ns;
        self.reads += other.reads;
        self.read_ns += other.read_ns;
        self.writes += other.writes;
        self.write_ns += other.write_ns;
        self.mixed.0 += other.mixed.0;
        self.mixed.1 += other.mixed.1;
        self.hits += other.hits;
        self.bytes.0 += other.bytes.0;
        self.bytes.1 += other.bytes.1;
        self.queued_ns += other.queued_ns;
        self.possible_ns += other.possible_ns;
        self.most_ns += other.most_ns;
    }
}

/// Returns the queue time in a governor, if it is known.
pub(super) fn queued(load: &Load) -> Option<f64> {
    match (load.queued_read_ns, load.queued_write_ns) {
        (None, None) => None,
        (read, write) => Some(read.unwrap_or(0.0) + write.unwrap_or(0.0)),
    }
}

/// The load of a subject in some of the samples.
#[derive(Debug)]
pub struct Stretch {
    /// Bins for each limit of its path in order; the last ones are without a limit.
    pub bins: Vec<[Bin; BINS]>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Number of samples.
    pub samples: u64,
    /// Time with a known burst size, in seconds.
    pub bounded_s: f64,
}

impl Stretch {
    pub(super) fn new(caps: usize) -> Self {
        let bins = vec![[Bin::default(); BINS]; caps + 1];
        Self { bins, seconds: 0.0, samples: 0, bounded_s: 0.0 }
    }

    pub(super) fn take(&mut self, load: &Load, is_bounded: bool) {
        self.samples += 1;
        self.seconds += load.seconds();
        self.bounded_s += if is_bounded { load.seconds() } else { 0.0 };
    }

    /// Returns the sum of all bins.
    #[must_use]
    pub fn all(&self) -> Bin {
        let mut all = Bin::default();
        self.bins.iter().flatten().for_each(|bin| all.join(bin));
        all
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and held to the number of bins"
)]
pub(super) fn bin(used: f64) -> usize {
    // 100 % is in the last but one, with what is a little over it by the clock's rounding.
    ((used * 20.0 - 1e-9).max(0.0) as usize).min(BINS - 1)
}

/// Returns the utilisation at which a bin begins.
#[must_use]
pub(crate) fn bin_start(bin: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "21 bins")]
    let bin = bin as f64;
    bin / 20.0
}
