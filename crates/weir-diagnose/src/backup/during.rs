//! The use of disks and limits while a backup ran.

use super::one::{Backup, count};
use crate::case::{Case, JudgedSubject};
use crate::system::{On, Reads, SubjectId};
use weir_observe::rates::Points;

/// Stretches of the observation with a value, in which the middle is that of most of the backup.
const ENOUGH: usize = 5;

/// Returns the value in the middle of what was there during a backup.
fn median(points: &[f64]) -> Option<f64> {
    // The beginning and the end are no whole stretches.
    let own = if points.len() >= ENOUGH { &points[1..points.len() - 1] } else { points };
    let mut own = own.to_vec();
    own.sort_by(f64::total_cmp);
    own.get(own.len() / 2).copied()
}

/// Returns what points have during a backup, with the middles of the stretches.
fn within(points: &Points, window: (f64, f64)) -> Vec<(f64, f64)> {
    let all: Vec<(f64, f64)> = points.iter().filter_map(|(at, own)| Some((at, own?))).collect();
    let inside = |(at, _): &&(f64, f64)| window.0 <= *at && *at <= window.1;
    let own: Vec<(f64, f64)> = all.iter().filter(inside).copied().collect();
    if !own.is_empty() {
        return own;
    }
    // A backup that is shorter than a stretch.
    let middle = (window.0 + window.1) / 2.0;
    let nearest =
        all.iter().min_by(|one, other| (one.0 - middle).abs().total_cmp(&(other.0 - middle).abs()));
    nearest.copied().into_iter().collect()
}

/// Returns the part of a cap that was used during a backup.
pub(super) fn used(case: &Case<'_>, backup: &Backup<'_>, cap: usize) -> Option<f64> {
    let window = backup.facts.window?;
    let own = &case.system.caps[cap];
    let mut at: std::collections::BTreeMap<u64, f64> = std::collections::BTreeMap::new();
    let mut has_any = false;
    for judged in case.all().filter(|judged| judged.subject.is_meter) {
        let Some(counts) = judged.subject.path.iter().find(|counts| counts.cap == cap) else {
            continue;
        };
        let reads = judged.facts.read_share().unwrap_or(0.5);
        let counted = match (counts.reads, counts.writes) {
            (Reads::None, _) => 1.0 - reads,
            (_, false) => reads,
            _ => 1.0,
        };
        let size = judged.facts.request_bytes().unwrap_or(0.0);
        let (points, each) = match own.counts_bytes() {
            true => (&judged.facts.over_time.bytes, 1.0),
            false => (&judged.facts.over_time.iops, operations(size, counts.piece, counts.unit)),
        };
        for (middle, rate) in within(points, window) {
            has_any = true;
            *at.entry((middle * 1e3).to_bits()).or_default() +=
                rate * counted * counts.share * each;
        }
    }
    let rates: Vec<f64> = at.into_values().collect();
    let rate = median(&rates).filter(|_| has_any)?;
    // The sustained limit, or the burst limit if the rate exceeded it.
    let limit = &own.limit;
    let most = if rate > 1.03 * limit.rate { limit.peak() } else { limit.rate };
    (most > 0.0).then(|| rate / most)
}

/// Returns how busy processors were during a backup.
pub(super) fn processors(case: &Case<'_>, backup: &Backup<'_>) -> Option<f64> {
    let points = within(case.facts.processors.as_ref()?, backup.facts.window?);
    median(&points.into_iter().map(|own| own.1).collect::<Vec<_>>())
}

/// Returns how many times what the media of places take their requests took, if that is known.
pub(super) fn beside_medium(case: &Case<'_>, backup: &Backup<'_>, places: &[On]) -> Option<f64> {
    let window = backup.facts.window?;
    let mut most: Option<f64> = None;
    for judged in places.iter().flat_map(|on| judged_of(case, *on)) {
        let ms: Vec<f64> = within(&judged.facts.over_time.latency_ms, window)
            .into_iter()
            .map(|own| own.1)
            .collect();
        let medium = judged.subject.medium?.load_ns(&judged.facts.total);
        let operations = judged.facts.total.operations.filter(|all| *all > 0.0)?;
        let times = median(&ms)? * 1e6 / (medium / operations).max(1.0);
        most = Some(most.map_or(times, |own| own.max(times)));
    }
    most
}

/// Returns as how many operations one counts.
fn operations(size: f64, piece: Option<f64>, unit: Option<f64>) -> f64 {
    let (pieces, each) = match piece.filter(|piece| *piece > 0.0 && size > *piece) {
        Some(piece) => ((size / piece).ceil(), piece),
        None => (1.0, size),
    };
    pieces * unit.filter(|unit| *unit > 0.0).map_or(1.0, |unit| (each / unit).ceil().max(1.0))
}

/// Load of places during a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Flow {
    /// Bytes per second.
    pub(super) bytes_per_s: f64,
    /// Bytes of all requests in flight, by Little's law.
    pub(super) in_flight: f64,
    /// Returns the mean latency in nanoseconds.
    pub(super) latency_ns: f64,
}

/// Returns the load of places during a backup, if their latency was observed.
pub(super) fn flow(case: &Case<'_>, backup: &Backup<'_>, places: &[On]) -> Option<Flow> {
    let window = backup.facts.window?;
    let (mut all, mut latencies) = (Flow::default(), Vec::new());
    for on in places {
        for judged in judged_of(case, *on) {
            let over = &judged.facts.over_time;
            let bytes: Vec<f64> =
                within(&over.bytes, window).into_iter().map(|own| own.1).collect();
            let ms: Vec<f64> =
                within(&over.latency_ms, window).into_iter().map(|own| own.1).collect();
            let (bytes, ms) = (median(&bytes)?, median(&ms)?);
            all.bytes_per_s += bytes;
            all.in_flight += bytes * ms / 1e3;
            latencies.push(ms * 1e6);
        }
    }
    if latencies.is_empty() {
        return None;
    }
    all.latency_ns = latencies.iter().sum::<f64>() / count(latencies.len());
    Some(all)
}

/// Returns those whose load is that of a place: itself, else its columns, else its files.
fn judged_of<'a>(case: &Case<'a>, on: On) -> Vec<JudgedSubject<'a>> {
    let id = match on {
        On::Disk(disk) => SubjectId::Disk(disk),
        On::Stripe(stripe) => SubjectId::Stripe(stripe),
    };
    if let Some(own) = case.subject(id) {
        return vec![own];
    }
    let columns: Vec<JudgedSubject<'a>> = case
        .system
        .disks_of(id)
        .into_iter()
        .filter_map(|disk| case.subject(SubjectId::Disk(disk)))
        .collect();
    if !columns.is_empty() {
        return columns;
    }
    case.system.files_on(on).filter_map(|(file, _)| case.subject_of_file(file)).collect()
}
