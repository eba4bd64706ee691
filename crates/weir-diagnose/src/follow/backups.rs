//! Backups in the samples: their bytes, and the time that they took.

use crate::seconds::at_s;
use std::collections::BTreeMap;
use weir_observe::metric as m;
use weir_observe::rates::{Points, Track, Tracker};
use weir_observe::{Contents, Counting, EntityId, EntityKind, SeriesId, metric};
use weir_units::{Instant, Span};

/// The facts of a backup. If an entity has several, the largest.
#[derive(Debug, Clone, PartialEq)]
pub struct BackupFacts {
    /// Entity in the observation.
    pub entity: EntityId,
    /// Bytes of the database in it.
    pub bytes: Option<f64>,
    /// Bytes that were written to its targets.
    pub written: Option<f64>,
    /// Start and end in seconds from the start of the observation. The start may be negative.
    pub window: Option<(f64, f64)>,
    /// Backups of the entity that were seen.
    pub count: u64,
}

impl BackupFacts {
    fn new(entity: EntityId) -> Self {
        Self { entity, bytes: None, written: None, window: None, count: 0 }
    }

    /// Returns its duration in seconds.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        self.window.map(|(from, to)| to - from).filter(|seconds| *seconds > 0.0)
    }

    /// Returns the bytes of the database that it read per second.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        Some(self.bytes? / self.seconds()?)
    }
}

/// Series of an entity whose samples are backups that ended.
#[derive(Debug, Default, Clone, Copy)]
struct Gauges {
    bytes: Option<SeriesId>,
    written: Option<SeriesId>,
    interval: Option<SeriesId>,
}

/// The use of a track.
#[derive(Debug, Clone, Copy)]
enum Use {
    /// Bytes of a backup.
    Bytes(usize),
    /// Bytes that it wrote.
    Written(usize),
    Processors,
}

/// Follows backups.
#[derive(Debug)]
pub(super) struct BackupTracks {
    found: Vec<BackupFacts>,
    gauges: Vec<(usize, Gauges)>,
    tracker: Tracker,
    tracks: Vec<Use>,
    /// Processor utilisation over time.
    processors: Option<Points>,
    scales: Vec<i8>,
}

impl BackupTracks {
    pub(super) fn new(contents: &Contents) -> Self {
        let mut at: BTreeMap<EntityId, usize> = BTreeMap::new();
        let mut found = Vec::new();
        for (entity, id) in contents.entities.iter().zip(0..) {
            if entity.kind == EntityKind::Backup {
                at.insert(EntityId(id), found.len());
                found.push(BackupFacts::new(EntityId(id)));
            }
        }
        let mut gauges = vec![Gauges::default(); found.len()];
        let (mut tracks, mut uses) = (Vec::new(), Vec::new());
        for (series, id) in contents.series.iter().zip(0..).map(|(own, id)| (own, SeriesId(id))) {
            if series.metric == m::CPU.name && !found.is_empty() {
                tracks.push(Track(vec![id]));
                uses.push(Use::Processors);
            }
            let Some(place) = at.get(&series.entity).copied() else { continue };
            let is_written = series.metric == metric::name::BACKUP_WRITTEN_BYTES;
            let is_bytes = series.metric == metric::name::BACKUP_BYTES;
            if series.counting == Counting::Cumulative {
                if is_written || is_bytes {
                    tracks.push(Track(vec![id]));
                    uses.push(if is_written { Use::Written(place) } else { Use::Bytes(place) });
                }
                continue;
            }
            let own = &mut gauges[place];
            match series.metric.as_str() {
                metric::name::BACKUP_BYTES => own.bytes = Some(id),
                metric::name::BACKUP_WRITTEN_BYTES => own.written = Some(id),
                metric::name::INTERVAL_NS => own.interval = Some(id),
                _ => {}
            }
        }
        Self {
            found,
            gauges: gauges.into_iter().enumerate().collect(),
            tracker: Tracker::new(contents, &tracks),
            tracks: uses,
            processors: None,
            scales: contents.series.iter().map(|series| series.scale).collect(),
        }
    }

    pub(super) fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        if self.found.is_empty() {
            return;
        }
        let (found, tracks) = (&mut self.found, &self.tracks);
        let processors = &mut self.processors;
        self.tracker.sample(at, row, |index, reading| {
            let (place, is_written) = match tracks[index] {
                Use::Bytes(place) => (place, false),
                Use::Written(place) => (place, true),
                Use::Processors => {
                    let second = || Points::new(Span::from_secs(1));
                    processors.get_or_insert_with(second).add(&reading);
                    return;
                }
            };
            let own = &mut found[place];
            if reading.amount <= 0.0 {
                return;
            }
            let sum = if is_written { &mut own.written } else { &mut own.bytes };
            *sum = Some(sum.unwrap_or(0.0) + reading.amount);
            let (from, to) = (at_s(reading.from), at_s(reading.to));
            own.window =
                Some(own.window.map_or((from, to), |own| (own.0.min(from), own.1.max(to))));
            own.count = 1;
        });
        let scales = &self.scales;
        let value = |id: Option<SeriesId>| {
            let place = id?.0 as usize;
            let value = row.get(place).copied().flatten()?;
            #[expect(clippy::cast_precision_loss, reason = "bytes and times, for rates")]
            let value = value as f64;
            Some(value * 10_f64.powi(i32::from(*scales.get(place)?)))
        };
        for (place, gauges) in &self.gauges {
            let (bytes, interval) = (value(gauges.bytes), value(gauges.interval));
            if bytes.or(interval).is_none() {
                continue;
            }
            let own = &mut self.found[*place];
            own.count += 1;
            if own.count > 1 && bytes < own.bytes {
                continue;
            }
            (own.bytes, own.written) = (bytes, value(gauges.written));
            let to = at_s(at);
            own.window = interval.map(|ns| (to - ns / 1e9, to));
        }
    }

    /// Returns the backups that were seen, and how busy the processors were over time.
    pub(super) fn finish(self) -> (Vec<BackupFacts>, Option<Points>) {
        (self.found.into_iter().filter(|own| own.count > 0).collect(), self.processors)
    }
}
