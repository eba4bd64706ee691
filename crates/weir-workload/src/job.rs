//! The contents of a job file as typed data, with all defaults resolved.

use crate::position::Position;
use weir_units::{Bytes, BytesPerSec, Iops, Span};

/// Maximum block in bytes: a request has a 32-bit length.
pub const MAX_BLOCK: u32 = 1 << 30;
/// Maximum clones of one job (`numjobs`).
pub const MAX_CLONES: u32 = 65_536;
/// Maximum queue depth of one process (`iodepth`).
pub(crate) const MAX_DEPTH: u32 = 65_536;

/// Indices of the directions in [`PerOp::as_array`].
pub(crate) const READ: usize = 0;
pub(crate) const WRITE: usize = 1;
pub(crate) const TRIM: usize = 2;

/// A job file: its jobs in order, and its ignored options.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobFile {
    /// One job per job section, with the `[global]` sections merged in.
    pub jobs: Vec<JobSpec>,
    /// Options that have no meaning here, each named once.
    pub ignored: Vec<Ignored>,
}

/// An option that does not change the I/O that Weir sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The option's name as fio documents it.
    pub option: &'static str,
    /// Its first position.
    pub at: Position,
    /// The reason.
    pub why: &'static str,
}

/// A job section, which applies to each of its clones.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// The section's name, or `name=`.
    pub name: String,
    /// The position of the section.
    pub at: Position,
    /// The operations (`rw`).
    pub mix: Mix,
    /// The order of offsets (`rw`).
    pub order: Order,
    /// Reads among 100 I/Os of a [`Mix::ReadWrite`] (`rwmixread`).
    pub read_percent: u8,
    /// Block sizes (`bs`, `bsrange`, `bssplit`).
    pub blocks: PerOp<Blocks>,
    /// Alignment of random offsets, if it is not the smallest block (`ba`).
    pub align: PerOp<Option<Bytes>>,
    /// I/Os of 100 that go to a random offset in a random job (`percentage_random`).
    pub percent_random: PerOp<u8>,
    /// The distribution of random offsets (`random_distribution`).
    pub distribution: Distribution,
    /// Touch each block once before any twice; false with `norandommap`.
    pub random_map: bool,
    /// Omit a random map that is too large, instead of failing (`softrandommap`).
    pub soft_random_map: bool,
    /// The generator of random blocks (`random_generator`).
    pub generator: Generator,
    /// The stated queue depth (`iodepth`); see [`JobSpec::effective_depth`].
    pub depth: u32,
    /// The engine (`ioengine`).
    pub engine: Engine,
    /// Bypass the page cache (`direct=1`, `buffered=0`).
    pub direct: bool,
    /// Identical processes to start (`numjobs`).
    pub clones: u32,
    /// The size of the range, by default that of the region (`size`). Several files share it.
    pub size: Option<Extent>,
    /// The amount of I/O, if it is not `size` (`io_size`).
    pub io_size: Option<Extent>,
    /// The start of the range (`offset`).
    pub offset: Extent,
    /// The distance from the start of a clone to that of the next (`offset_increment`).
    pub offset_increment: Extent,
    /// End after this time, without the ramp (`runtime`).
    pub runtime: Option<Span>,
    /// Start over when `size` is done, until `runtime` (`time_based`). Without a
    /// `runtime` it has no effect, as in fio, and is listed in [`JobFile::ignored`].
    pub time_based: bool,
    /// Time before the measured time (`ramp_time`).
    pub ramp_time: Span,
    /// Time from the start of the run to that of the job (`startdelay`).
    pub start_delay: Span,
    /// Number of repetitions (`loops`).
    pub loops: u32,
    /// End after this many I/Os (`number_ios`). Not with `time_based`, as in fio.
    pub number_ios: Option<u64>,
    /// A cap per direction (`rate`, `rate_iops`).
    pub rate: PerOp<Option<Rate>>,
    /// The distribution of times between I/Os of a rate (`rate_process`).
    pub rate_process: RateProcess,
    /// The behaviour of pacing with I/Os in flight (`io_submit_mode`).
    pub submit: Submit,
    /// Idle time between I/Os (`thinktime` and `thinktime_blocks`).
    pub think: Option<Think>,
    /// `randseed`, mixed with the seed of the run.
    pub seed: Option<u64>,
    /// Same offsets in every run (`randrepeat`). Weir's runs always repeat for the same seed, so
    /// this has no effect.
    pub rand_repeat: bool,
    /// Writes are on stable media when they complete (`sync=sync`, `sync=dsync`).
    pub data_sync: bool,
    /// Number of writes after which a flush follows; 0 is never (`fsync`).
    pub fsync: u32,
    /// The same with `fdatasync`.
    pub fdatasync: u32,
    /// A flush at the end of the job (`end_fsync`, `fsync_on_close`).
    pub end_fsync: bool,
    /// The files or devices.
    pub target: Target,
    /// Report the clones of a group as one (`group_reporting`).
    pub group_reporting: bool,
    /// The reporting group, from 0 (`new_group`, `stonewall`).
    pub group: u32,
    /// Jobs of wave n start when all of wave n - 1 have ended (`stonewall`).
    pub wave: u32,
}

/// The operations of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Trims only.
    Trim,
    /// Reads and writes, drawn for each I/O.
    ReadWrite,
    /// Each block trimmed, then written.
    TrimWrite,
}

/// The order of offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Ascending offsets, with a hole of `gap` bytes between two I/Os (`rw=read:8k`).
    Sequential {
        /// Bytes between two I/Os.
        gap: u64,
    },
    /// A random offset for every `every`th I/O, sequential ones between them (`rw=randread:8`).
    Random {
        /// 1 is an ordinary random job.
        every: u32,
    },
}

/// One value for each of the three directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerOp<T> {
    /// For reads.
    pub read: T,
    /// For writes.
    pub write: T,
    /// For trims.
    pub trim: T,
}

impl<T> PerOp<T> {
    /// Makes the same value for all three.
    pub fn all(value: T) -> Self
    where
        T: Clone,
    {
        Self { read: value.clone(), write: value.clone(), trim: value }
    }

    /// Returns the values for read, write and trim.
    pub fn as_array(&self) -> [&T; 3] {
        [&self.read, &self.write, &self.trim]
    }

    /// Maps each value.
    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> PerOp<U> {
        PerOp { read: change(self.read), write: change(self.write), trim: change(self.trim) }
    }
}

/// The block sizes of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocks {
    /// Always the same size, in bytes.
    Fixed(u32),
    /// Any multiple of `min` up to `max`, all equally likely.
    Range {
        /// Smallest size in bytes.
        min: u32,
        /// Largest size in bytes.
        max: u32,
    },
    /// Sizes in bytes with the percentage of I/Os that have them; they add to 100.
    Split(Vec<(u32, u8)>),
}

impl Blocks {
    /// Returns the smallest block in bytes.
    #[must_use]
    pub fn min(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { min, .. } => *min,
            Self::Split(sizes) => sizes.iter().map(|(size, _)| *size).min().unwrap_or(0),
        }
    }

    /// Returns the largest block in bytes.
    #[must_use]
    pub fn max(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { max, .. } => *max,
            Self::Split(sizes) => sizes.iter().map(|(size, _)| *size).max().unwrap_or(0),
        }
    }
}

/// A length, absolute or as a share of the region that the job works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Bytes.
    Bytes(Bytes),
    /// Percent of the region.
    Percent(u32),
}

impl Extent {
    /// Zero bytes.
    pub const ZERO: Self = Self::Bytes(Bytes::ZERO);

    /// Returns the bytes for a region of `len` bytes, rounded down.
    #[must_use]
    pub fn resolve(self, len: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.get(),
            Self::Percent(percent) => {
                let share = u128::from(len) * u128::from(percent) / 100;
                u64::try_from(share).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The distribution of random offsets over the range. All but [`Distribution::Uniform`] have no
/// random map, as in fio.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Every block equally likely.
    Uniform,
    /// The k-th most popular block has weight k^-theta; popular blocks are scattered.
    Zipf {
        /// More than 0 and not 1.
        theta: f64,
    },
    /// A share of 1 - h of the I/O goes to a share of h of the blocks.
    Pareto {
        /// Between 0 and 1.
        h: f64,
    },
    /// The mean of twelve draws, spread by up to `deviation` percent of the range.
    Normal {
        /// 0 to 100.
        deviation: f64,
    },
    /// Zones of the range, in order, each with its share of the I/O.
    Zoned(PerOp<Vec<Zone>>),
}

/// The generator of random blocks, as far as it affects the I/O.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Generator {
    /// Independent draws. The random map ensures that no block is drawn twice.
    #[default]
    Tausworthe,
    /// Each of the smallest blocks once, with and without `norandommap`. There is no map, so
    /// I/Os of several sizes are not cut and overlap.
    Lfsr,
}

/// A zone of a [`Distribution::Zoned`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// I/Os of 100 that go here; a direction's zones add to 100.
    pub access: u8,
    /// Its part of the range.
    pub size: Extent,
}

/// fio's engine. Weir has its own, and keeps the queue depth that the engine allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Engine {
    /// fio's name for it.
    pub name: &'static str,
    /// False if one I/O must end before the next (sync, psync, ...).
    pub queued: bool,
}

/// A cap on one direction of one clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Bytes per second (`rate`).
    Bytes(BytesPerSec),
    /// I/Os per second (`rate_iops`). With several block sizes an I/O counts as
    /// its size over the smallest, as in fio.
    Iops(Iops),
}

/// The distribution of times between I/Os of a rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RateProcess {
    /// Equal times.
    #[default]
    Linear,
    /// Random arrivals, as from many independent users: times are exponentially distributed, with
    /// the mean of the rate.
    Poisson,
    /// One I/O at a random time in each interval of 1 / rate. Jobs of equal rates do not run in step, and a job
    /// is never ahead of or behind an even pace by two I/Os. All I/Os should have one size. Not an option of fio.
    Jittered,
}

/// The submission of a process with a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submit {
    /// A process ahead of its rate waits until nothing is in flight (fio's default).
    Inline,
    /// It issues on time, regardless of I/Os in flight.
    Offload,
}

/// Idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Think {
    /// The duration.
    pub time: Span,
    /// The number of I/Os before it.
    pub blocks: u32,
    /// The I/Os that count.
    pub count: ThinkCount,
}

/// The I/Os that count towards the next think time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkCount {
    /// Completed ones.
    Completed,
    /// Issued ones.
    Issued,
}

/// The files or devices. The placement resolves their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Neither `filename` nor `directory`.
    Unnamed,
    /// Each clone has a file of its own in one of these; clone k in entry k modulo
    /// their number.
    Directory(Vec<String>),
    /// All clones share these files or devices, used in turn.
    Files(Vec<String>),
}

impl JobSpec {
    /// Returns the maximum queue depth of a clone: `iodepth`, or 1 if the engine waits for each
    /// I/O.
    #[must_use]
    pub fn effective_depth(&self) -> u32 {
        if self.engine.queued { self.depth } else { 1 }
    }

    /// Returns the smallest block of the directions that the job uses, in bytes.
    #[must_use]
    pub(crate) fn min_block(&self) -> u32 {
        self.used_blocks().map(Blocks::min).min().unwrap_or(0)
    }

    /// Returns the largest block of the directions that the job uses, in bytes.
    #[must_use]
    pub fn max_block(&self) -> u32 {
        self.used_blocks().map(Blocks::max).max().unwrap_or(0)
    }

    /// Returns start and length of the range of clone `clone` in file `index` of `count`, in a
    /// region of `len` bytes. It may end beyond the region.
    ///
    /// Shares are whole blocks: fio rounds their start up and their length down.
    #[must_use]
    pub fn range(&self, clone: u32, (index, count): (u64, u64), len: u64) -> (u64, u64) {
        let start = self.start(clone, len);
        let rest = len.saturating_sub(start);
        let block = u64::from(self.min_block());
        let span = match self.size {
            None | Some(Extent::Percent(100)) => rest,
            Some(share @ Extent::Percent(_)) => {
                let span = share.resolve(len).min(rest);
                span - span % block
            }
            // The remainder makes the first files longer by a block.
            Some(Extent::Bytes(size)) => {
                let each = size.get() / count;
                let longer = (size.get() - each * count) / block;
                each + if index < longer { block } else { 0 }
            }
        };
        (start, span)
    }

    fn start(&self, clone: u32, len: u64) -> u64 {
        let step = self.offset_increment.resolve(len).saturating_mul(clone.into());
        let start = self.offset.resolve(len).saturating_add(step);
        let share = |extent| matches!(extent, Extent::Percent(_));
        match share(self.offset) || share(self.offset_increment) {
            true => start.checked_next_multiple_of(self.min_block().into()).unwrap_or(u64::MAX),
            false => start,
        }
    }

    /// Returns whether an I/O of this job ends before a block that the pass has touched: its I/Os
    /// differ in size, or its directions in their smallest block, and it has a random map.
    #[must_use]
    pub fn cuts_at_touched_blocks(&self) -> bool {
        let is_random = matches!(self.order, Order::Random { .. });
        let differ = self.placed_blocks().any(|own| own.min() != own.max());
        let has_map = self.random_map && self.generator != Generator::Lfsr;
        is_random && has_map && (differ || !self.smallest_blocks_agree())
    }

    /// Returns whether the directions, used or not, have the same smallest block. fio's random map
    /// and its `lfsr` count blocks of all directions.
    #[must_use]
    pub(crate) fn smallest_blocks_agree(&self) -> bool {
        let [read, write, trim] = self.blocks.as_array().map(Blocks::min);
        read == write && read == trim
    }

    /// Returns whether `lfsr` draws the random blocks. A distribution has its own generator.
    pub(crate) fn has_lfsr(&self) -> bool {
        let is_random = matches!(self.order, Order::Random { .. });
        is_random && self.generator == Generator::Lfsr && self.distribution == Distribution::Uniform
    }

    /// Returns the blocks of the directions that choose offsets. A write after a trim has the
    /// offset of the trim.
    fn placed_blocks(&self) -> impl Iterator<Item = &Blocks> {
        let writes = self.mix != Mix::TrimWrite;
        let used = self.mix.uses().into_iter().enumerate();
        let all = self.blocks.as_array();
        let placed = used.filter(move |(op, used)| *used && (writes || *op == TRIM));
        placed.map(move |(op, _)| all[op])
    }

    fn used_blocks(&self) -> impl Iterator<Item = &Blocks> {
        let used = self.mix.uses();
        self.blocks.as_array().into_iter().zip(used).filter(|(_, used)| *used).map(|(b, _)| b)
    }
}

impl Mix {
    /// Returns whether reads, writes and trims occur.
    #[must_use]
    pub fn uses(self) -> [bool; 3] {
        match self {
            Self::Read => [true, false, false],
            Self::Write => [false, true, false],
            Self::Trim => [false, false, true],
            Self::ReadWrite => [true, true, false],
            Self::TrimWrite => [false, true, true],
        }
    }
}

impl JobFile {
    /// Returns the same jobs with another `size` and `runtime` in every job section.
    #[must_use]
    pub fn scale(mut self, size: Option<Bytes>, runtime: Option<Span>) -> Self {
        for job in &mut self.jobs {
            if let Some(size) = size {
                job.size = Some(Extent::Bytes(size));
            }
            if runtime.is_some() {
                job.runtime = runtime;
            }
        }
        if runtime.is_some() {
            // It was ignored because there was no runtime.
            self.ignored.retain(|ignored| ignored.option != "time_based");
        }
        self
    }

    /// Appends the jobs of `next`, which start when all of these have ended, as for `fio A B`.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        let after = |last: Option<u32>| last.map_or(0, |n| n + 1);
        let wave = after(self.jobs.iter().map(|job| job.wave).max());
        let group = after(self.jobs.iter().map(|job| job.group).max());
        self.jobs.extend(next.jobs.into_iter().map(|mut job| {
            job.wave += wave;
            job.group += group;
            job
        }));
        for ignored in next.ignored {
            if !self.ignored.iter().any(|known| known.option == ignored.option) {
                self.ignored.push(ignored);
            }
        }
        self
    }
}
