//! One pass over the samples, which sums up the use of each limit and the latency meanwhile.
//!
//! Memory does not grow with the number of samples. The load of a subject is summed up by the limit
//! that is charged with it (`holding`) and by the utilisation of that limit ([`Bin`]). Wait times
//! follow at the end, when the unloaded latency is known.

mod arrivals;
mod backups;
mod cap;
mod component;
mod holding;
mod moments;
mod others;

pub use backups::BackupFacts;
pub use cap::{CapFacts, Credits};
pub use moments::Moment;
pub use others::{FULL, Gauged, HostFacts, OUT, Others, WaitFacts};

use crate::system::{Counts, Medium, System, What};
use arrivals::Arrivals;
use cap::{CapTrack, OFTEN_IDLE};
use component::Component;
use hdrhistogram::Histogram;
use holding::Holding;
use moments::Moments;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::thread;
use weir_observe::load::{Load, Loads, mean};
use weir_observe::metric;
use weir_observe::rates::{Points, Reading, Spread, Track, Tracker};
use weir_observe::{Block, Contents, EntityId, SeriesId};
use weir_units::{Instant, Span};

/// As the script of Microsoft's engineers has it: from here on a sample is near its limit.
pub const NEAR: f64 = 0.9;

/// Bins of use: 20 up to the limit, and what is beyond it.
const BINS: usize = 21;

/// Below this utilisation, latency is that of the medium.
const IDLE: f64 = 0.3;

/// Requests that waited for others for less than this share of their latency count as isolated.
const ALONE: f64 = 0.25;

/// A sample in which this many times as much is taken as where nothing waits is slow.
const SLOW: f64 = 1.5;

/// After so many samples it is looked again what requests take where nothing waits.
const AGAIN: u64 = 64;

/// The part of what a subject did that falls to one of its caps, while so much was used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bin {
    /// Duration in seconds.
    pub seconds: f64,
    /// Operations whose latency is known.
    pub operations: f64,
    /// Their latency, all together, in nanoseconds.
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
    fn add(&mut self, load: &Load, part: f64, (possible_ns, most_ns): (f64, f64)) {
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

/// Queue time of a subject in a governor.
fn queued(load: &Load) -> Option<f64> {
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
    fn new(caps: usize) -> Self {
        let bins = vec![[Bin::default(); BINS]; caps + 1];
        Self { bins, seconds: 0.0, samples: 0, bounded_s: 0.0 }
    }

    fn take(&mut self, load: &Load, is_bounded: bool) {
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

/// The load of a subject, by utilisation of its limits.
#[derive(Debug)]
pub struct SubjectFacts {
    /// All samples.
    pub whole: Stretch,
    /// The samples in which requests took longer than they do where nothing waits.
    pub slow: Stretch,
    /// Operations at the burst limit, and all operations, for each limit.
    pub peaks: Vec<(f64, f64)>,
    /// All samples.
    pub total: Load,
    /// Operations a second.
    pub iops: Spread,
    /// Bytes a second.
    pub bytes: Spread,
    /// Queue depth over time.
    pub depth: Spread,
    /// Mean latencies of samples in which no cap was used much, in nanoseconds.
    pub idle_latency: Histogram<u64>,
    /// Latencies of isolated requests without queue time, in thousandths of the edition's medium.
    /// If the busy time is unknown, those of quiet samples.
    pub alone: Histogram<u64>,
    /// Latencies of bursts without their wait time, which is known if there was enough idle time
    /// between them.
    pub apart: Histogram<u64>,
    /// Mean latencies of all samples.
    pub latency: Histogram<u64>,
    /// Moments with the longest wait times.
    pub moments: Vec<Moment>,
    /// Set if queue times are known.
    pub says_queued: bool,
    /// Set if a queue time of zero was ignored, which proves nothing by itself.
    pub says_zero_queued: bool,
    /// Wait time at each limit as counted by Weir, in nanoseconds.
    pub waited: Vec<(String, f64)>,
    /// Rates and latency over time.
    pub over_time: OverTime,
}

/// Rates over time, for plots.
#[derive(Debug)]
pub struct OverTime {
    /// Operations.
    pub iops: Points,
    /// Bytes.
    pub bytes: Points,
    /// Latency in milliseconds, of samples that have any.
    pub latency_ms: Points,
}

impl OverTime {
    /// All curves have the same time spans, even if they are empty.
    fn reach(&mut self, to: Instant) {
        self.iops.reach(to);
        self.bytes.reach(to);
        self.latency_ms.reach(to);
    }
}

/// The facts of a system.
#[derive(Debug)]
pub struct Facts {
    /// Facts of each limit, in the order of the system's.
    pub caps: Vec<CapFacts>,
    /// Facts of each subject.
    pub subjects: Vec<SubjectFacts>,
    /// Other facts: waits, processors, metrics of a cloud on its limits.
    pub others: Others,
    /// Backups.
    pub backups: Vec<BackupFacts>,
    /// The part of the time that processors were busy, over time, if there are backups.
    pub processors: Option<Points>,
    /// Samples.
    pub samples: u64,
    /// The first, and the last.
    pub span: Option<(Instant, Instant)>,
    /// Number of counter resets.
    pub restarts: u64,
    /// The middle of the times between samples.
    pub interval_s: f64,
}

/// Follows the samples of an observation.
#[derive(Debug)]
pub struct Follow<'a> {
    system: &'a System,
    components: Vec<Component<'a>>,
    /// Counters of other entities may be reset as well.
    rest: Loads,
    /// Wait times that Weir counted, by subject.
    waited: Vec<Vec<(String, f64)>>,
    waits: Tracker,
    /// The subject, and the place there, of each wait.
    wait_of: Vec<(usize, usize)>,
    others: others::Following,
    backups: backups::Following,
    samples: u64,
    span: Option<(Instant, Instant)>,
    intervals: Spread,
    /// Limits without load.
    unused: Vec<(usize, CapFacts)>,
    /// The outermost entity that each subject belongs to: its server.
    servers: Vec<EntityId>,
}

#[derive(Debug)]
struct Following {
    facts: SubjectFacts,
    moments: Moments,
    arrivals: Arrivals,
    parts: Vec<(usize, f64)>,
    /// The unloaded latency after a number of samples: in nanoseconds, or in thousandths of the
    /// medium's.
    usual: Option<f64>,
    looked: u64,
}

/// Fewer loads than this are not worth a thread.
const FEW: usize = 4096;

impl<'a> Follow<'a> {
    /// Follows the subjects of `system`, which is that of `contents`.
    #[must_use]
    pub fn new(system: &'a System, contents: &Contents) -> Self {
        let mut subject_of = vec![None; contents.entities.len()];
        for (index, subject) in system.subjects.iter().enumerate() {
            subject_of[subject.entity.0 as usize] = Some(index);
        }
        let (tracks, wait_of, names) = waits_of(contents, &subject_of);
        let mut waited = vec![Vec::new(); system.subjects.len()];
        for (subject, name) in names {
            waited[subject].push((name, 0.0));
        }
        let (components, rest) = Component::all(system, contents);
        let is_used = |cap: usize| system.subjects.iter().any(|own| own.passes(cap));
        let unused = (0..system.caps.len()).filter(|cap| !is_used(*cap));
        let unused = unused.map(|cap| (cap, CapTrack::new(system, contents, cap).finish()));
        Self {
            system,
            components,
            rest,
            waited,
            waits: Tracker::new(contents, &tracks),
            wait_of,
            others: others::Following::new(contents),
            backups: backups::Following::new(contents),
            samples: 0,
            span: None,
            intervals: Spread::default(),
            unused: unused.collect(),
            servers: system.subjects.iter().map(|own| server(contents, own.entity)).collect(),
        }
    }

    /// Takes samples.
    pub fn samples(&mut self, block: &Block) {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let loads = self.system.subjects.len() * block.len();
        let threads = threads.min(self.components.len()).min(loads / FEW + 1);
        if threads < 2 {
            self.components.iter_mut().for_each(|component| component.samples(block));
            self.rest_of_samples(block);
            return;
        }
        let mut components = std::mem::take(&mut self.components);
        let share = components.len().div_ceil(threads);
        thread::scope(|scope| {
            for own in components.chunks_mut(share) {
                scope.spawn(|| own.iter_mut().for_each(|component| component.samples(block)));
            }
            self.rest_of_samples(block);
        });
        self.components = components;
    }

    /// Series that do not belong to a subject.
    fn rest_of_samples(&mut self, block: &Block) {
        for (at, row) in block.iter() {
            if let Some((_, before)) = self.span {
                let seconds = seconds(at - before);
                let amount = seconds * seconds;
                self.intervals.add(&Reading { from: before, to: at, amount });
            }
            self.span = Some((self.span.map_or(at, |span| span.0), at));
            self.samples += 1;
            self.rest.sample(at, row, |_, _| {});
            let (waited, wait_of) = (&mut self.waited, &self.wait_of);
            self.waits.sample(at, row, |index, reading| {
                let (subject, place) = wait_of[index];
                waited[subject][place].1 += reading.amount;
            });
            self.others.sample(at, row);
            self.backups.sample(at, row);
        }
    }

    /// Facts from the samples.
    #[must_use]
    pub fn finish(self) -> Facts {
        let restarts = self.components.iter().map(Component::restarts).sum::<u64>();
        let (mut subjects, mut caps) = (Vec::new(), self.unused);
        for component in self.components {
            let (own_subjects, own_caps) = component.finish();
            subjects.extend(own_subjects);
            caps.extend(own_caps);
        }
        subjects.sort_unstable_by_key(|(index, _)| *index);
        caps.sort_unstable_by_key(|(index, _)| *index);
        let subjects = subjects.into_iter().zip(self.waited);
        let mut subjects: Vec<SubjectFacts> =
            subjects.map(|((_, facts), waited)| SubjectFacts { waited, ..facts }).collect();
        believe_zeros(self.system, &mut subjects, &self.servers);
        let (backups, processors) = self.backups.finish();
        Facts {
            caps: caps.into_iter().map(|(_, facts)| facts).collect(),
            subjects,
            others: self.others.finish(),
            backups,
            processors,
            samples: self.samples,
            span: self.span,
            restarts: restarts + self.rest.restarts(),
            interval_s: self.intervals.quantile(0.5),
        }
    }
}

/// Returns the outermost entity around `id`.
fn server(contents: &Contents, id: EntityId) -> EntityId {
    match contents.entity(id).and_then(|own| own.parent) {
        Some(parent) => server(contents, parent),
        None => id,
    }
}

/// Counts queued times of zero where another file of the same server has a queue: its governor
/// counts them, then. A disk or machine whose limits are known may hold requests that no governor
/// sees.
fn believe_zeros(system: &System, subjects: &mut [SubjectFacts], servers: &[EntityId]) {
    let both = subjects.iter().zip(servers);
    let counting: BTreeSet<EntityId> =
        both.filter(|(own, _)| own.says_queued).map(|(_, server)| *server).collect();
    let all = system.subjects.iter().zip(subjects.iter_mut().zip(servers));
    for (subject, (own, server)) in all {
        if own.says_zero_queued && counting.contains(server) && subject.path.is_empty() {
            own.says_queued = true;
            own.total.queued_read_ns.get_or_insert(0.0);
            own.total.queued_write_ns.get_or_insert(0.0);
        }
    }
}

type WaitTracks = (Vec<Track>, Vec<(usize, usize)>, Vec<(usize, String)>);

/// The series of waits of subjects: their tracks, whose and which of its they are, and what they
/// are called.
fn waits_of(contents: &Contents, subject_of: &[Option<usize>]) -> WaitTracks {
    let (mut tracks, mut wait_of, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let mut counts = vec![0; subject_of.len()];
    for (series, id) in contents.series.iter().zip(0..) {
        let subject = subject_of.get(series.entity.0 as usize).copied().flatten();
        if let (Some(subject), Some(cap)) = (subject, metric::cap_of(&series.metric)) {
            tracks.push(Track(vec![SeriesId(id)]));
            wait_of.push((subject, counts[subject]));
            counts[subject] += 1;
            names.push((subject, cap.to_owned()));
        }
    }
    (tracks, wait_of, names)
}

impl Following {
    fn new(caps: usize) -> Self {
        // Two significant digits are always possible.
        let histogram = || Histogram::new(2).unwrap_or_else(|_| unreachable!("2 digits"));
        let second = Span::from_secs(1);
        let facts = SubjectFacts {
            whole: Stretch::new(caps),
            slow: Stretch::new(caps),
            peaks: vec![(0.0, 0.0); caps],
            total: Load { operations: Some(0.0), bytes: Some(0.0), ..Load::default() },
            iops: Spread::default(),
            bytes: Spread::default(),
            depth: Spread::default(),
            idle_latency: histogram(),
            alone: histogram(),
            apart: histogram(),
            latency: histogram(),
            moments: Vec::new(),
            says_queued: false,
            says_zero_queued: false,
            waited: Vec::new(),
            over_time: OverTime {
                iops: Points::new(second),
                bytes: Points::new(second),
                latency_ms: Points::new(second),
            },
        };
        Self {
            facts,
            moments: Moments::default(),
            arrivals: Arrivals::default(),
            parts: Vec::new(),
            usual: None,
            looked: 0,
        }
    }

    /// Takes a sample; `caps_of` is the path by the caps of the system.
    fn take(&mut self, holding: &Holding<'_>, caps_of: &[Counts]) {
        let Holding { subject, load, path, medium, caps, .. } = *holding;
        let in_loops = load.depth.filter(|_| self.arrivals.are_in_loops());
        let by_chance = match in_loops {
            // In a closed loop, a request waits for the other requests in flight at most.
            Some(depth) => 1.0 - 1.0 / depth.max(1.0),
            None if self.arrivals.are_even() => 0.0,
            None => 1.0,
        };
        let used = holding.parts(&mut self.parts);
        let is_slow = self.is_slow(load, medium, used);
        let facts = &mut self.facts;
        let operations = load.operations.unwrap_or(0.0);
        let (mut is_bounded, mut likely_ns) = (true, 0.0_f64);
        for counts in path {
            let likely = caps[counts.cap].longest(subject, by_chance).likely_ns;
            is_bounded &= likely.is_some();
            // Limits in a row account for the wait at the slowest.
            likely_ns = likely_ns.max(likely.unwrap_or(0.0));
        }
        for (place, part) in &self.parts {
            let at_peak = caps[path[*place].cap].is_at_peak();
            facts.peaks[*place].0 += if at_peak { operations * part } else { 0.0 };
            facts.peaks[*place].1 += operations * part;
        }
        for stretch in [Some(&mut facts.whole), is_slow.then_some(&mut facts.slow)] {
            let Some(stretch) = stretch else { continue };
            for (place, part) in &self.parts {
                let longest = caps[path[*place].cap].longest(subject, by_chance);
                let possible = (longest.ns * operations, longest.most_ns * operations);
                stretch.bins[*place][bin(used)].add(load, *part, possible);
            }
            if self.parts.is_empty() {
                stretch.bins[path.len()][bin(used)].add(load, 1.0, (0.0, 0.0));
            }
            stretch.take(load, is_bounded);
        }
        facts.says_queued |= queued(load).is_some();
        add(&mut facts.total, load);
        let reading = |amount: f64| Reading { from: load.from, to: load.to, amount };
        facts.over_time.reach(load.to);
        if let Some(operations) = load.operations {
            facts.iops.add(&reading(operations));
            facts.over_time.iops.add(&reading(operations));
        }
        if let Some(bytes) = load.bytes {
            facts.bytes.add(&reading(bytes));
            facts.over_time.bytes.add(&reading(bytes));
        }
        if let Some(depth) = load.depth {
            facts.depth.add(&reading(depth * load.seconds()));
        }
        if let Some(latency) = load.latency_ns() {
            record(&mut facts.latency, latency, 1);
            let milliseconds = latency / 1e6;
            facts.over_time.latency_ms.add(&reading(milliseconds * load.seconds()));
            let alone = load.ns.unwrap_or(0.0) - queued(load).unwrap_or(0.0);
            // The first piece of a request waits least, and may always be on the same disk.
            let is_cut = holding.is_cut;
            let is_quiet = used < IDLE || (in_loops.is_some() && is_bounded);
            let is_alone = is_quiet && !is_cut && likely_ns < ALONE * latency;
            if used < IDLE {
                record(&mut facts.idle_latency, alone / operations, 1);
            }
            if let Some(medium) = medium.filter(|_| is_alone).map(|medium| medium.of_load(load)) {
                let likely_ns = if is_bounded { likely_ns * operations } else { 0.0 };
                record(&mut facts.alone, 1000.0 * (alone - likely_ns) / medium, 1);
            }
            let is_idle =
                is_bounded && !is_cut && load.busy().is_some_and(|busy| busy < OFTEN_IDLE);
            if let Some(medium) = medium.filter(|_| is_idle).map(|medium| medium.of_load(load)) {
                let left_ns = (alone - likely_ns * operations).max(0.0);
                record(&mut facts.apart, 1000.0 * left_ns / medium, 1);
            }
        }
        let most = self.parts.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let cap = most.map(|(place, _)| (caps_of[*place].cap, caps[path[*place].cap].kind_now()));
        self.moments.take(load, medium, queued(load), used, cap);
    }

    /// Returns whether latency exceeds the unloaded latency known so far.
    fn is_slow(&mut self, load: &Load, medium: Option<Medium>, used: f64) -> bool {
        let ns = load.ns.unwrap_or(0.0);
        if let Some(queued) = queued(load) {
            return queued > ns * (1.0 - 1.0 / SLOW);
        }
        let own = if medium.is_some() { &self.facts.alone } else { &self.facts.idle_latency };
        if own.len() >= self.looked + AGAIN {
            self.looked = own.len();
            self.usual = Some(weir_report::number::float(own.value_at_quantile(0.1)));
        }
        let usual = match medium {
            Some(medium) => Some(medium.of_load(load) * self.usual.map_or(1.0, |own| own / 1000.0)),
            None => self.usual.map(|own| own * load.operations.unwrap_or(0.0)),
        };
        usual.map_or(used >= NEAR, |usual| ns > SLOW * usual)
    }

    fn finish(mut self) -> SubjectFacts {
        self.facts.moments = self.moments.finish();
        self.facts
    }
}

fn record(histogram: &mut Histogram<u64>, value: f64, times: u64) {
    // It grows up to the largest number there is, so nothing is beyond it.
    let recorded = histogram.record_n(weir_report::number::whole(value), times);
    debug_assert!(recorded.is_ok(), "{value}");
}

/// Adds a sample. Missing values change nothing.
fn add(total: &mut Load, load: &Load) {
    let add = |sum: &mut Option<f64>, value: Option<f64>| {
        if let Some(value) = value {
            *sum = Some(sum.unwrap_or(0.0) + value);
        }
    };
    add(&mut total.reads, load.reads);
    add(&mut total.writes, load.writes);
    add(&mut total.operations, load.operations);
    add(&mut total.read_bytes, load.read_bytes);
    add(&mut total.write_bytes, load.write_bytes);
    add(&mut total.bytes, load.bytes);
    add(&mut total.read_ns, load.read_ns);
    add(&mut total.write_ns, load.write_ns);
    add(&mut total.ns, load.ns);
    add(&mut total.queued_read_ns, load.queued_read_ns);
    add(&mut total.queued_write_ns, load.queued_write_ns);
    add(&mut total.hits, load.hits);
    add(&mut total.counted, load.counted);
    add(&mut total.sequential, load.sequential);
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and held to the number of bins"
)]
fn bin(used: f64) -> usize {
    // 100 % is in the last but one, with what is a little over it by the clock's rounding.
    ((used * 20.0 - 1e-9).max(0.0) as usize).min(BINS - 1)
}

/// The use that a bin begins at.
#[must_use]
pub fn bin_start(bin: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "21 bins")]
    let bin = bin as f64;
    bin / 20.0
}

fn seconds(span: Span) -> f64 {
    weir_report::number::float(span.nanos()) / 1e9
}

impl SubjectFacts {
    /// Returns the observed time in seconds.
    #[must_use]
    pub const fn seconds(&self) -> f64 {
        self.whole.seconds
    }

    /// Bytes of an operation on average.
    #[must_use]
    pub fn request_bytes(&self) -> Option<f64> {
        mean(self.total.bytes, self.total.operations)
    }

    /// The mean latency in nanoseconds.
    #[must_use]
    pub fn latency_ns(&self) -> Option<f64> {
        let all = self.whole.all();
        mean(Some(all.ns), Some(all.operations))
    }

    /// The part of operations that read.
    #[must_use]
    pub fn read_share(&self) -> Option<f64> {
        mean(self.total.reads, self.total.operations)
    }
}

impl Facts {
    /// The subject that is so, with its index.
    #[must_use]
    pub fn subject<'s>(&'s self, system: &System, what: What) -> Option<(usize, &'s SubjectFacts)> {
        let index = system.subjects.iter().position(|subject| subject.what == what)?;
        Some((index, &self.subjects[index]))
    }
}

/// The entities of an observation that do I/O.
#[must_use]
pub fn loads(contents: &Contents) -> BTreeSet<EntityId> {
    Loads::new(contents).entities().collect()
}

/// Returns whether an observation has other data for a diagnosis: waits, processors, shares of
/// limits.
#[must_use]
pub fn says_something(contents: &Contents) -> bool {
    others::Following::new(contents).follows_any()
}
