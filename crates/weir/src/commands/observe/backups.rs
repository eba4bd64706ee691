//! Figures of the backups in an observation.

use std::collections::BTreeMap;
use weir_observe::{Contents, Counting, EntityId, EntityKind, SeriesId, attribute, metric};
use weir_report::number::float;
use weir_report::observe::ObservedBackup;
use weir_units::Instant;

/// The series of one entity.
#[derive(Debug, Clone, Copy, Default)]
struct Series {
    bytes: Option<SeriesId>,
    written: Option<SeriesId>,
    interval: Option<SeriesId>,
    is_counter: bool,
}

/// Totals of the backups of one entity.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u64,
    timed: u64,
    seconds: f64,
    sized: u64,
    bytes: f64,
    /// Bytes and seconds of the backups that report both.
    rate: (f64, f64),
    written: Option<(u64, f64)>,
    /// The last value of a counter, and the times of its first and last growth.
    last: Option<(i64, Instant)>,
    grew: Option<(Instant, Instant)>,
}

/// A single-pass collector of backups.
#[derive(Debug)]
pub(super) struct Backups {
    all: BTreeMap<EntityId, (Series, Sums)>,
}

impl Backups {
    pub(super) fn new(contents: &Contents) -> Self {
        let mut all: BTreeMap<EntityId, (Series, Sums)> = BTreeMap::new();
        for (series, id) in contents.series.iter().zip(0..).map(|(own, id)| (own, SeriesId(id))) {
            let is_backup =
                contents.entity(series.entity).is_some_and(|own| own.kind == EntityKind::Backup);
            if !is_backup {
                continue;
            }
            let (own, _) = all.entry(series.entity).or_default();
            match series.metric.as_str() {
                metric::name::BACKUP_BYTES => {
                    own.bytes = Some(id);
                    own.is_counter = series.counting == Counting::Cumulative;
                }
                metric::name::BACKUP_WRITTEN_BYTES => own.written = Some(id),
                metric::name::INTERVAL_NS => own.interval = Some(id),
                _ => {}
            }
        }
        Self { all }
    }

    pub(super) fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        for (series, sums) in self.all.values_mut() {
            let value = |id: Option<SeriesId>| row.get(id?.0 as usize).copied().flatten();
            let count = |id| value(id).and_then(|own| u64::try_from(own).ok()).map(float);
            let (bytes, written) = (count(series.bytes), count(series.written));
            if series.is_counter {
                sums.counted(at, value(series.bytes), bytes, written);
                continue;
            }
            let seconds = count(series.interval).map(|ns| ns / 1e9);
            if bytes.or(seconds).or(written).is_none() {
                continue;
            }
            sums.count += 1;
            if let Some(seconds) = seconds {
                sums.timed += 1;
                sums.seconds += seconds;
            }
            if let Some(bytes) = bytes {
                sums.sized += 1;
                sums.bytes += bytes;
            }
            if let Some((bytes, seconds)) = bytes.zip(seconds) {
                sums.rate = (sums.rate.0 + bytes, sums.rate.1 + seconds);
            }
            if let Some(written) = written {
                let (count, sum) = sums.written.unwrap_or_default();
                sums.written = Some((count + 1, sum + written));
            }
        }
    }

    pub(super) fn report(&self, contents: &Contents) -> Vec<ObservedBackup> {
        let of = |(id, (_, sums)): (&EntityId, &(Series, Sums))| {
            let entity = contents.entity(*id)?;
            let mean = |count: u64, sum: f64| (count > 0).then(|| sum / float(count));
            (sums.count > 0).then(|| ObservedBackup {
                backup: entity.name.clone(),
                count: sums.count,
                seconds: mean(sums.timed, sums.seconds),
                bytes: mean(sums.sized, sums.bytes),
                bytes_per_s: (sums.rate.1 > 0.0).then(|| sums.rate.0 / sums.rate.1),
                written_bytes: sums.written.and_then(|(count, sum)| mean(count, sum)),
                stripes: entity.number(attribute::STRIPES),
                readers: entity.number(attribute::READERS),
                buffer_count: entity
                    .number(attribute::BUFFER_COUNT)
                    .or(entity.number(attribute::BUFFER_COUNT_SET)),
                max_transfer_bytes: entity.number(attribute::MAX_TRANSFER_BYTES),
                targets: entity.text(attribute::TARGETS).map(str::to_owned),
            })
        };
        self.all.iter().filter_map(of).collect()
    }
}

impl Sums {
    /// Adds the counters of a run.
    fn counted(&mut self, at: Instant, now: Option<i64>, bytes: Option<f64>, written: Option<f64>) {
        let Some(now) = now else { return };
        if let Some((_, before)) = self.last.filter(|(last, _)| now > *last) {
            let first = self.grew.map_or(before, |(first, _)| first);
            self.grew = Some((first, at));
            let seconds = float((at - first).nanos()) / 1e9;
            (self.count, self.timed, self.sized) = (1, 1, 1);
            (self.seconds, self.bytes) = (seconds, bytes.unwrap_or(0.0));
            self.rate = (self.bytes, seconds);
        }
        self.written = written.map(|written| (1, written)).or(self.written);
        self.last = Some((now, at));
    }
}
