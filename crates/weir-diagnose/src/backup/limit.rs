//! The limit of a backup.

use super::during::{self, Flow};
use super::one::{Backup, LOCAL_FILES, count};
use crate::case::Case;
use crate::system::{CacheMode, On, Owner};
use weir_core::Cap as Kind;
use weir_observe::attribute;
use weir_pipeline::buffers::{MAX_TRANSFER, WRITE_DEPTH};
use weir_report::diagnosis::Confidence;
use weir_report::number::float;

/// Utilisation from which on a cap limits a backup. The best settings of article 004 used 96 %,
/// four files on one disk 96 %, and one file 82 %. The best settings of article 004 used 96 %, four
/// files on one disk 96 %, and one file 82 %.
const BINDS: f64 = 0.92;

/// Utilisation below which requests with the latency of their medium do not wait at the cap.
const FULLY: f64 = 0.985;

/// Highest latency of requests that do not wait, as a multiple of the medium's.
const UNHELD: f64 = 1.15;

/// If only the rate of a backup is known, it includes the time before the first transfer.
const BINDS_WHOLE: f64 = 0.88;

/// A rate of this multiple of a cap shows that the backup does not pass it, and so is not on these
/// disks.
const BEYOND: f64 = 1.1;

/// A pipeline in which this part of the writes or buffers is in flight is full. A striped write is over
/// when its last part is, so parts are in flight for less.
const FULL: f64 = 0.75;

/// Mean number of writes in flight.
const FULL_WRITERS: f64 = 0.65;

/// With compression a part of the buffers is always at a processor.
const FULL_COMPRESSED: f64 = 0.6;

/// Number of buffers at each thread from which on compression is saturated.
const BUSY: f64 = 0.95;

/// Utilisation of processors from which on compression is saturated.
const BUSY_PROCESSORS: f64 = 0.85;

/// The disks that a cap belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Target,
    /// The machine, which both pass.
    Machine,
}

/// The limit of a backup.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Limit {
    Cap(Side, usize),
    /// Too few stripes write at once.
    Stripes,
    /// Too few or too small buffers are in flight.
    Buffers,
    /// More files on a local SSD than it takes well.
    LocalSsd,
    Compression,
}

/// The limit of a backup, and what it follows from.
#[derive(Debug, Clone)]
pub(crate) struct Attributed {
    pub(crate) limit: Option<Limit>,
    pub(crate) confidence: Confidence,
    /// The part of each cap that was used, the highest first.
    pub(crate) used: Vec<(Side, usize, f64)>,
    /// A cap that is below the rate of the backup.
    pub(crate) refuted: Option<Refuted>,
    /// Reads in flight, of whole transfers.
    pub(crate) reads: Option<f64>,
    /// Writes in flight.
    pub(crate) writes: Option<f64>,
}

/// A cap that is lower than the rate of a backup, so that the backup did not pass it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Refuted {
    pub(crate) side: Side,
    pub(crate) cap: usize,
    /// Bytes per second that the backup did on this side, if it was not compressed.
    pub(crate) rate: f64,
    /// The most that the disks or the machine of this side do.
    pub(crate) most: f64,
}

/// Returns the limit of a backup.
pub(crate) fn attribute(case: &Case<'_>, backup: &Backup<'_>) -> Attributed {
    let observed = observed(case, backup);
    let is_observed = !observed.is_empty();
    let (used, refuted) = match is_observed {
        true => (observed, None),
        false => from_rate(case, backup),
    };
    let flow = |places: &[On]| during::flow(case, backup, places).filter(|_| is_observed);
    let transfer = float(backup.max_transfer());
    let whole = |flow: Flow, ratio: f64| flow.in_flight / (transfer * ratio.max(0.001));
    let reads = flow(&backup.sources).map(|flow| whole(flow, 1.0));
    let written = flow(&backup.targets);
    let seen_ratio = written.zip(backup.facts.rate()).map(|(flow, rate)| flow.bytes_per_s / rate);
    let ratio = backup.ratio().or(seen_ratio).unwrap_or(1.0).min(1.0);
    let writes = written.map(|flow| whole(flow, ratio));
    let confidence = if refuted.is_some() { Confidence::Low } else { Confidence::High };
    let mut own = Attributed { limit: None, confidence, used, refuted, reads, writes };
    if own.refuted.is_some() {
        return own;
    }
    let binds = if is_observed { BINDS } else { BINDS_WHOLE };
    let highest = own.used.first().copied();
    let held = highest.filter(|(side, _, used)| {
        *used >= binds && (*used >= FULLY || !is_unheld(case, backup, *side))
    });
    if let Some((side, cap, _)) = held {
        own.limit = Some(Limit::Cap(side, cap));
        if !is_observed {
            own.confidence = Confidence::Medium;
        }
        return own;
    }
    own.confidence = Confidence::Medium;
    own.limit = match (reads, writes) {
        (Some(reads), Some(writes)) => of_pipeline(case, backup, reads, writes),
        _ => from_options(case, backup, highest.map(|(.., used)| used)),
    };
    if !is_observed {
        own.confidence = Confidence::Low;
    }
    own
}

/// Tells whether requests of a side take what their media take.
fn is_unheld(case: &Case<'_>, backup: &Backup<'_>, side: Side) -> bool {
    let is_unloaded = |places: &[On]| {
        during::beside_medium(case, backup, places).is_some_and(|times| times <= UNHELD)
    };
    match side {
        Side::Source => is_unloaded(&backup.sources),
        Side::Target => is_unloaded(&backup.targets),
        Side::Machine => is_unloaded(&backup.sources) && is_unloaded(&backup.targets),
    }
}

/// Returns how much of the caps of a backup was used, as its disks were observed.
fn observed(case: &Case<'_>, backup: &Backup<'_>) -> Vec<(Side, usize, f64)> {
    let all = caps(case, backup).into_iter();
    let used = all.filter_map(|(side, cap)| Some((side, cap, during::used(case, backup, cap)?)));
    sorted(used.collect())
}

fn sorted(mut all: Vec<(Side, usize, f64)>) -> Vec<(Side, usize, f64)> {
    all.sort_by(|one, other| other.2.total_cmp(&one.2));
    all
}

/// Returns the caps that transfers of a backup pass.
fn caps(case: &Case<'_>, backup: &Backup<'_>) -> Vec<(Side, usize)> {
    let sources = Backup::disks(case, &backup.sources);
    let targets = Backup::disks(case, &backup.targets);
    let host = |disks: &[usize], index: usize| {
        disks.iter().any(|disk| case.system.disks[*disk].host == Some(index))
    };
    let side = |owner: Owner| match owner {
        Owner::Disk(disk) if targets.contains(&disk) => Some(Side::Target),
        Owner::Disk(disk) if sources.contains(&disk) => Some(Side::Source),
        Owner::Host(own) if host(&sources, own) || host(&targets, own) => Some(Side::Machine),
        _ => None,
    };
    let all = case.system.caps.iter().enumerate();
    all.filter(|(_, cap)| cap.kind != Kind::LogRate)
        .filter_map(|(index, cap)| Some((side(cap.owner)?, index)))
        .collect()
}

/// Returns the utilisation of the throughput limits, computed from the rate of the backup, and the
/// limit that is furthest below that rate. The limit of a side is the sum of its disks.
fn from_rate(case: &Case<'_>, backup: &Backup<'_>) -> (Vec<(Side, usize, f64)>, Option<Refuted>) {
    let (Some(read), Some(ratio)) = (backup.facts.rate(), backup.ratio()) else {
        return (Vec::new(), None);
    };
    let written = read * ratio;
    let mut all = Vec::new();
    let mut refuted: Option<Refuted> = None;
    let mut refute = |side: Side, cap: usize, rate: f64, most: f64| {
        let is_worse = refuted.is_none_or(|own| rate / most > own.rate / own.most);
        if rate > most * BEYOND && is_worse {
            refuted = Some(Refuted { side, cap, rate, most });
        }
    };
    for (side, places, rate) in
        [(Side::Source, &backup.sources, read), (Side::Target, &backup.targets, written)]
    {
        let disks = Backup::disks(case, places);
        let own = |cap: &crate::system::Cap| {
            let is_own = matches!(cap.owner, Owner::Disk(disk) if disks.contains(&disk));
            is_own && cap.kind == Kind::DiskBytes
        };
        let caps: Vec<usize> =
            (0..case.system.caps.len()).filter(|cap| own(&case.system.caps[*cap])).collect();
        let sum: f64 = caps.iter().map(|cap| case.system.caps[*cap].limit.rate).sum();
        let peak: f64 = caps.iter().map(|cap| case.system.caps[*cap].limit.peak()).sum();
        if let Some(first) = caps.first().filter(|_| sum > 0.0 && caps.len() == disks.len()) {
            // The sustained limit, or the burst limit if the rate exceeded it.
            let most = if rate > 1.03 * sum { peak } else { sum };
            all.push((side, *first, rate / most));
            // A host cache serves reads beyond the limit of its disk.
            let is_cached =
                disks.iter().any(|disk| case.system.disks[*disk].cache != CacheMode::None);
            if !is_cached {
                refute(side, *first, rate, most);
            }
        }
    }
    let remote = |places: &[On], host: usize, rate: f64| {
        let disks = Backup::disks(case, places);
        let own = disks.iter().filter(|disk| {
            let disk = &case.system.disks[**disk];
            disk.host == Some(host) && !disk.is_local
        });
        if disks.is_empty() { 0.0 } else { rate * count(own.count()) / count(disks.len()) }
    };
    for (index, cap) in case.system.caps.iter().enumerate() {
        let Owner::Host(host) = cap.owner else { continue };
        let is_separate = case.system.hosts[host].uncached_writes.is_some();
        let (reads, writes) = match cap.kind {
            Kind::HostUncachedBytes => (true, !is_separate),
            Kind::HostWriteBytes => (false, true),
            _ => (false, false),
        };
        if (reads || writes) && !backup.targets.is_empty() {
            let part = |counts: bool, rate: f64| if counts { rate } else { 0.0 };
            let both = part(reads, remote(&backup.sources, host, read))
                + part(writes, remote(&backup.targets, host, written));
            let limit = &cap.limit;
            let most = if both > 1.03 * limit.rate { limit.peak() } else { limit.rate };
            all.push((Side::Machine, index, both / most.max(1.0)));
            refute(Side::Machine, index, both, most.max(1.0));
        }
    }
    (sorted(all), refuted)
}

/// Returns the limit of a pipeline whose disks have room.
fn of_pipeline(case: &Case<'_>, backup: &Backup<'_>, reads: f64, writes: f64) -> Option<Limit> {
    let stripes = backup.stripes()?;
    let most = float(stripes * u64::from(WRITE_DEPTH));
    let buffers = backup.buffers().map(float);
    if backup.is_to_local_ssd(case) && stripes > LOCAL_FILES {
        return Some(Limit::LocalSsd);
    }
    let encodes = is_encoding(case, backup, reads + writes).filter(|_| backup.is_compressed());
    if encodes == Some(true) {
        return Some(Limit::Compression);
    }
    // With fewer buffers than writers take, the writers are not full whatever they could do.
    let has_buffers = buffers.is_none_or(|buffers| buffers > most);
    if writes >= FULL_WRITERS * most && has_buffers {
        // Small transfers fill the writers with little.
        let is_small = backup.max_transfer() < MAX_TRANSFER.get();
        return Some(if is_small { Limit::Buffers } else { Limit::Stripes });
    }
    let in_flight = buffers.map_or(0.0, |buffers| (reads + writes) / buffers);
    if backup.is_compressed() && encodes.is_none() {
        let is_full = in_flight >= FULL_COMPRESSED;
        return Some(if is_full { Limit::Buffers } else { Limit::Compression });
    }
    let is_writing = writes >= reads && in_flight < FULL && has_buffers;
    Some(if is_writing { Limit::Stripes } else { Limit::Buffers })
}

/// Tells whether the threads that compress are busy, as far as that is known: the buffers that are
/// neither read nor written are at them, or all processors are busy.
fn is_encoding(case: &Case<'_>, backup: &Backup<'_>, in_flight: f64) -> Option<bool> {
    let encoders = backup.entity.number(attribute::ENCODERS).map(float);
    match (encoders, backup.buffers().map(float)) {
        (Some(encoders), Some(buffers)) => Some(buffers - in_flight >= BUSY * encoders),
        _ => during::processors(case, backup).map(|busy| busy >= BUSY_PROCESSORS),
    }
}

/// Returns the limit of a backup of which nothing but its options and its rate is known.
fn from_options(case: &Case<'_>, backup: &Backup<'_>, highest: Option<f64>) -> Option<Limit> {
    // Without a cap to compare with there is nothing to say.
    highest?;
    // Nor without the disks that it writes to.
    if backup.targets.is_empty() && !backup.unknown_targets.is_empty() {
        return None;
    }
    let stripes = backup.stripes()?;
    if backup.is_to_local_ssd(case) && stripes > LOCAL_FILES {
        return Some(Limit::LocalSsd);
    }
    if stripes < backup.best_stripes(case) {
        return Some(Limit::Stripes);
    }
    backup.is_compressed().then_some(Limit::Compression)
}
