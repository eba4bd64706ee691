//! One pass over the samples: how much of each cap was used, and what requests took meanwhile.
//!
//! Memory does not grow with the number of samples: what a subject did is summed up by the cap
//! that was used most and by how much it was used ([`Bin`]), so that what it waited can be told
//! at the end, when it is known what its requests take where nothing waits.

mod cap;
mod holding;
mod moments;
mod others;

pub use cap::{CapFacts, Credits};
pub use moments::Moment;
pub use others::{FULL, Gauged, HostFacts, OUT, Others, WaitFacts};

use crate::system::{Subject, System, What};
use cap::CapTrack;
use hdrhistogram::Histogram;
use holding::Holding;
use moments::Moments;
use weir_observe::load::{Load, Loads, mean};
use weir_observe::metric;
use weir_observe::rates::{Points, Reading, Spread, Track, Tracker};
use weir_observe::{Contents, EntityId, SeriesId};
use weir_units::{Instant, Span};

/// As the script of Microsoft's engineers has it: from here on a sample is near its limit.
pub const NEAR: f64 = 0.9;

/// Bins of use: 20 up to the limit, and what is beyond it.
const BINS: usize = 21;

/// Of use below this, nothing waits for long: what requests take then is the medium.
const IDLE: f64 = 0.3;

/// What a subject did while one of its caps was used most, and so much.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bin {
    /// For how long, in seconds.
    pub seconds: f64,
    /// Operations whose latency is known.
    pub operations: f64,
    /// Their latency, all together, in nanoseconds.
    pub ns: f64,
    /// Reads whose latency is told apart from that of writes.
    pub reads: f64,
    /// The latency of reads.
    pub read_ns: f64,
    /// Writes.
    pub writes: f64,
    /// The latency of writes.
    pub write_ns: f64,
    /// Reads and writes whose latency is told together.
    pub mixed: (f64, f64),
    /// Bytes read and written; where they are not told apart, all as written.
    pub bytes: (f64, f64),
    /// What was waited in queues of a governor, where that is said.
    pub queued_ns: f64,
    /// The most that the cap can have made them wait, all together, if all came at once.
    pub possible_ns: f64,
}

impl Bin {
    /// Adds a part of what a load was.
    fn add(&mut self, load: &Load, part: f64, possible_ns: f64) {
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
        self.bytes.0 += part * load.read_bytes.unwrap_or(0.0);
        self.bytes.1 += part * load.write_bytes.or(load.bytes).unwrap_or(0.0);
        self.queued_ns += part * queued(load).unwrap_or(0.0);
        self.possible_ns += part * possible_ns;
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
        self.bytes.0 += other.bytes.0;
        self.bytes.1 += other.bytes.1;
        self.queued_ns += other.queued_ns;
        self.possible_ns += other.possible_ns;
    }
}

/// What a subject waited in queues of a governor.
fn queued(load: &Load) -> Option<f64> {
    match (load.queued_read_ns, load.queued_write_ns) {
        (None, None) => None,
        (read, write) => Some(read.unwrap_or(0.0) + write.unwrap_or(0.0)),
    }
}

/// What a subject did, and while what was used.
#[derive(Debug)]
pub struct SubjectFacts {
    /// Its bins, for each cap of its path in order, and last without any.
    pub bins: Vec<[Bin; BINS]>,
    /// Operations while the peak of a burst held at the cap, and those of all, for each cap.
    pub peaks: Vec<(f64, f64)>,
    /// All of it.
    pub total: Load,
    /// For how long it is known, in seconds.
    pub seconds: f64,
    /// Operations a second.
    pub iops: Spread,
    /// Bytes a second.
    pub bytes: Spread,
    /// Operations under way, by the seconds.
    pub depth: Spread,
    /// Mean latencies of samples in which no cap was used much, in nanoseconds.
    pub idle_latency: Histogram<u64>,
    /// Mean latencies of all samples.
    pub latency: Histogram<u64>,
    /// When it waited most.
    pub moments: Vec<Moment>,
    /// Whether what it waits in queues is said.
    pub says_queued: bool,
    /// What Weir itself has counted that it waited, by cap, in nanoseconds.
    pub waited: Vec<(String, f64)>,
    /// Its rates over time, and its latency.
    pub over_time: OverTime,
    /// The most operations in a sample, as a share of all of the busy samples near it: whether
    /// there is a ceiling that nobody has named.
    pub rates: Histogram<u64>,
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

/// What was seen of a system.
#[derive(Debug)]
pub struct Facts {
    /// Of each cap, in the order of the system's.
    pub caps: Vec<CapFacts>,
    /// Of each subject.
    pub subjects: Vec<SubjectFacts>,
    /// What else there is: waits, processors, what a cloud says of its limits.
    pub others: Others,
    /// Samples.
    pub samples: u64,
    /// The first, and the last.
    pub span: Option<(Instant, Instant)>,
    /// How often counters went back.
    pub restarts: u64,
    /// The middle of the times between samples.
    pub interval_s: f64,
}

/// Follows the samples of an observation.
#[derive(Debug)]
pub struct Follow<'a> {
    system: &'a System,
    loads: Loads,
    /// The subject of each entity.
    subject_of: Vec<Option<usize>>,
    /// The columns of a stripe belong together, everybody else is alone.
    groups: Vec<usize>,
    /// Of a column its stripe, where that is observed, too, and the number of columns.
    stripes: Vec<Option<(usize, f64)>>,
    now: Vec<Option<Load>>,
    caps: Vec<CapTrack>,
    subjects: Vec<Following>,
    waits: Tracker,
    wait_of: Vec<(usize, usize)>,
    others: others::Following,
    samples: u64,
    span: Option<(Instant, Instant)>,
    intervals: Spread,
}

#[derive(Debug)]
struct Following {
    facts: SubjectFacts,
    moments: Moments,
    parts: Vec<(usize, f64)>,
}

impl<'a> Follow<'a> {
    /// Follows the subjects of `system`, which is that of `contents`.
    #[must_use]
    pub fn new(system: &'a System, contents: &Contents) -> Self {
        let mut subject_of = vec![None; contents.entities.len()];
        for (index, subject) in system.subjects.iter().enumerate() {
            subject_of[subject.entity.0 as usize] = Some(index);
        }
        let caps = (0..system.caps.len()).map(|cap| CapTrack::new(system, contents, cap));
        let (tracks, wait_of, names) = waits_of(contents, &subject_of);
        let mut subjects: Vec<Following> =
            system.subjects.iter().map(|subject| Following::new(subject.path.len())).collect();
        for (subject, name) in names {
            subjects[subject].facts.waited.push((name, 0.0));
        }
        Self {
            system,
            loads: Loads::new(contents),
            groups: system
                .subjects
                .iter()
                .enumerate()
                .map(|(at, own)| group(system, at, own))
                .collect(),
            stripes: system.subjects.iter().map(|own| stripe_of(system, own)).collect(),
            now: vec![None; subjects.len()],
            subject_of,
            caps: caps.collect(),
            subjects,
            waits: Tracker::new(contents, &tracks),
            wait_of,
            others: others::Following::new(contents),
            samples: 0,
            span: None,
            intervals: Spread::default(),
        }
    }

    /// Takes a sample.
    pub fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        if let Some((_, before)) = self.span {
            let seconds = seconds(at - before);
            let amount = seconds * seconds;
            self.intervals.add(&Reading { from: before, to: at, amount });
        }
        self.span = Some((self.span.map_or(at, |span| span.0), at));
        self.samples += 1;
        self.now.fill(None);
        let (now, subject_of) = (&mut self.now, &self.subject_of);
        self.loads.sample(at, row, |entity, load| {
            if let Some(subject) = subject_of[entity.0 as usize] {
                now[subject] = Some(load);
            }
        });
        for (index, load) in self.now.iter().enumerate() {
            let subject = &self.system.subjects[index];
            let Some(load) = load.as_ref().filter(|_| subject.is_meter) else { continue };
            for counts in &subject.path {
                let cap = &self.system.caps[counts.cap];
                self.caps[counts.cap].take(cap, counts, (index, self.groups[index]), load);
            }
        }
        for (cap, track) in self.system.caps.iter().zip(&mut self.caps) {
            track.settle(cap, at, row);
        }
        for (index, load) in self.now.iter().enumerate() {
            if let Some(load) = load {
                let medium = self.system.subjects[index].medium;
                let path = &self.system.subjects[index].path;
                let whole = self.stripes[index].and_then(|(stripe, columns)| {
                    let whole = self.now[stripe].as_ref()?;
                    let size = mean(whole.bytes, whole.operations)?;
                    Some((size / mean(load.bytes, load.operations)?, columns))
                });
                let caps = &self.caps;
                let holding = Holding { subject: index, load, path, medium, whole, caps };
                self.subjects[index].take(&holding);
            }
        }
        let (subjects, wait_of) = (&mut self.subjects, &self.wait_of);
        self.waits.sample(at, row, |index, reading| {
            let (subject, place) = wait_of[index];
            subjects[subject].facts.waited[place].1 += reading.amount;
        });
        self.others.sample(at, row);
    }

    /// What was seen.
    #[must_use]
    pub fn finish(self) -> Facts {
        let subjects = self.subjects.into_iter().map(Following::finish).collect();
        Facts {
            caps: self.caps.into_iter().map(CapTrack::finish).collect(),
            subjects,
            others: self.others.finish(),
            samples: self.samples,
            span: self.span,
            restarts: self.loads.restarts(),
            interval_s: self.intervals.quantile(0.5),
        }
    }
}

/// The group of a subject: stripes come behind all subjects.
fn group(system: &System, index: usize, subject: &Subject) -> usize {
    let stripe = match subject.what {
        What::Disk(disk) => system.disks[disk].stripe,
        What::Stripe(_) | What::File(_) => None,
    };
    stripe.map_or(index, |stripe| system.subjects.len() + stripe)
}

/// The stripe of a column, if that is a subject, and the number of columns.
fn stripe_of(system: &System, subject: &Subject) -> Option<(usize, f64)> {
    let What::Disk(disk) = subject.what else { return None };
    let stripe = system.disks[disk].stripe?;
    let own = system.subjects.iter().position(|own| own.what == What::Stripe(stripe))?;
    #[expect(clippy::cast_precision_loss, reason = "a number of disks")]
    let columns = system.stripes[stripe].columns.len() as f64;
    Some((own, columns))
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
            bins: vec![[Bin::default(); BINS]; caps + 1],
            peaks: vec![(0.0, 0.0); caps],
            total: Load { operations: Some(0.0), bytes: Some(0.0), ..Load::default() },
            seconds: 0.0,
            iops: Spread::default(),
            bytes: Spread::default(),
            depth: Spread::default(),
            idle_latency: histogram(),
            latency: histogram(),
            moments: Vec::new(),
            says_queued: false,
            waited: Vec::new(),
            over_time: OverTime {
                iops: Points::new(second),
                bytes: Points::new(second),
                latency_ms: Points::new(second),
            },
            rates: histogram(),
        };
        Self { facts, moments: Moments::default(), parts: Vec::new() }
    }

    fn take(&mut self, holding: &Holding<'_>) {
        let Holding { load, path, medium, caps, .. } = *holding;
        let facts = &mut self.facts;
        let used = holding.parts(&mut self.parts);
        let operations = load.operations.unwrap_or(0.0);
        for (place, part) in &self.parts {
            let track = &caps[path[*place].cap];
            let at_peak = if track.is_at_peak() { operations * part } else { 0.0 };
            facts.peaks[*place].0 += at_peak;
            facts.peaks[*place].1 += operations * part;
            let own = &mut facts.bins[*place][bin(used)];
            own.add(load, *part, track.longest_ns() * operations);
        }
        if self.parts.is_empty() {
            facts.bins[path.len()][bin(used)].add(load, 1.0, 0.0);
        }
        facts.says_queued |= queued(load).is_some();
        add(&mut facts.total, load);
        facts.seconds += load.seconds();
        let reading = |amount: f64| Reading { from: load.from, to: load.to, amount };
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
            if used < IDLE {
                record(&mut facts.idle_latency, latency, 1);
            }
        }
        let most = self.parts.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let cap = most.map(|(place, _)| path[*place].cap);
        let kind = cap.map(|cap| caps[cap].kind_now());
        self.moments.take(load, medium, queued(load), used, cap.zip(kind));
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

/// Sums up; what a sample does not say stays as it is.
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
    /// Bytes of an operation on average.
    #[must_use]
    pub fn request_bytes(&self) -> Option<f64> {
        mean(self.total.bytes, self.total.operations)
    }

    /// The mean latency in nanoseconds.
    #[must_use]
    pub fn latency_ns(&self) -> Option<f64> {
        let (mut ns, mut operations) = (0.0, 0.0);
        for bin in self.bins.iter().flatten() {
            ns += bin.ns;
            operations += bin.operations;
        }
        mean(Some(ns), Some(operations))
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
pub fn loads(contents: &Contents) -> std::collections::BTreeSet<EntityId> {
    Loads::new(contents).entities().collect()
}

/// Whether an observation says anything else that a diagnosis can use: waits, processors, shares.
#[must_use]
pub fn says_something(contents: &Contents) -> bool {
    others::Following::new(contents).follows_any()
}
