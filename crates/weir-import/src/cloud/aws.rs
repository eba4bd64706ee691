//! The meaning of metrics of AWS from any source, and their conversion.

use super::timeline::Timeline;
use crate::sheet::{At, Sheet};
use std::collections::BTreeMap;
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::metric::{self as m, Metric};

/// Operations of a volume and their total seconds, by time.
type Latencies = BTreeMap<(EntityId, bool), BTreeMap<i64, (Option<f64>, Option<f64>)>>;

/// A value, and the statistic that it is.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) at: i64,
    pub(super) sum: Option<f64>,
    /// The average, or another statistic.
    pub(super) value: Option<f64>,
}

/// The meaning of a metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meaning {
    pub(super) of: Of,
    pub(super) means: Means,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// An EBS volume.
    Volume,
    /// An instance.
    Host,
    /// The storage of an RDS instance.
    Storage,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Means {
    /// A total of a period.
    Amount(&'static Metric),
    /// A total of operations whose latency is separate: of reads, or of writes.
    Operations(&'static Metric, bool),
    /// Total seconds of operations.
    Time(bool),
    /// Idle seconds.
    Idle,
    /// A level, times a factor.
    Gauge(&'static Metric, f64),
}

impl Means {
    /// Returns whether a value is divided by the length of its period.
    pub(super) const fn is_of_period(self) -> bool {
        !matches!(self, Self::Gauge(..))
    }
}

/// Returns the note on a metric with an unknown period.
pub(super) fn unknown_period(metric: &str) -> String {
    format!(
        "the values of {metric} are further apart than those of other metrics, and not evenly: its \
         period is unknown, and it is left out; state it with --every"
    )
}

pub(super) fn meaning(metric: &str) -> Option<Meaning> {
    use Means::{Amount, Gauge, Idle, Operations, Time};
    use Of::{Host, Storage, Volume};
    let (of, means) = match metric.to_ascii_lowercase().as_str() {
        "volumereadops" => (Volume, Operations(&m::READS_PER_S, true)),
        "volumewriteops" => (Volume, Operations(&m::WRITES_PER_S, false)),
        "volumereadbytes" => (Volume, Amount(&m::READ_BYTES_PER_S)),
        "volumewritebytes" => (Volume, Amount(&m::WRITE_BYTES_PER_S)),
        "volumetotalreadtime" => (Volume, Time(true)),
        "volumetotalwritetime" => (Volume, Time(false)),
        "volumeidletime" => (Volume, Idle),
        "volumequeuelength" => (Volume, Gauge(&m::QUEUE_DEPTH, 1.0)),
        "volumeavgreadlatency" => (Volume, Gauge(&m::READ_LATENCY_NS, 1e6)),
        "volumeavgwritelatency" => (Volume, Gauge(&m::WRITE_LATENCY_NS, 1e6)),
        "burstbalance" => (Volume, Gauge(&m::BURST_BALANCE, 0.01)),
        "volumeiopsexceededcheck" => (Volume, Gauge(&m::IOPS_EXCEEDED, 1.0)),
        "volumethroughputexceededcheck" => (Volume, Gauge(&m::BYTES_EXCEEDED, 1.0)),
        "ebsreadops" => (Host, Amount(&m::READS_PER_S)),
        "ebswriteops" => (Host, Amount(&m::WRITES_PER_S)),
        "ebsreadbytes" => (Host, Amount(&m::READ_BYTES_PER_S)),
        "ebswritebytes" => (Host, Amount(&m::WRITE_BYTES_PER_S)),
        "ebsiobalance%" => (Host, Gauge(&m::BURST_BALANCE, 0.01)),
        "ebsbytebalance%" => (Host, Gauge(&m::BURST_BYTES_BALANCE, 0.01)),
        "instanceebsiopsexceededcheck" => (Host, Gauge(&m::IOPS_EXCEEDED, 1.0)),
        "instanceebsthroughputexceededcheck" => (Host, Gauge(&m::BYTES_EXCEEDED, 1.0)),
        "cpuutilization" => (Host, Gauge(&m::CPU, 0.01)),
        "freeablememory" => (Host, Gauge(&m::MEMORY_AVAILABLE_BYTES, 1.0)),
        "databaseconnections" => (Host, Gauge(&m::USERS, 1.0)),
        "readiops" => (Storage, Gauge(&m::READS_PER_S, 1.0)),
        "writeiops" => (Storage, Gauge(&m::WRITES_PER_S, 1.0)),
        "readthroughput" => (Storage, Gauge(&m::READ_BYTES_PER_S, 1.0)),
        "writethroughput" => (Storage, Gauge(&m::WRITE_BYTES_PER_S, 1.0)),
        "readlatency" => (Storage, Gauge(&m::READ_LATENCY_NS, 1e9)),
        "writelatency" => (Storage, Gauge(&m::WRITE_LATENCY_NS, 1e9)),
        "diskqueuedepth" => (Storage, Gauge(&m::QUEUE_DEPTH, 1.0)),
        "freestoragespace" => (Storage, Gauge(&m::FREE_BYTES, 1.0)),
        _ => return None,
    };
    Some(Meaning { of, means })
}

/// Values of metrics, by time.
#[derive(Debug, Default)]
pub(super) struct Figures {
    line: Timeline,
    latencies: Latencies,
}

impl Figures {
    /// Returns whether there are no values.
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Removes the earliest sample and writes it into the sheet.
    pub(super) fn next(&mut self, sheet: &mut Sheet) -> Option<At> {
        self.line.next(sheet)
    }

    /// Adds a value of a period, whose length is in nanoseconds and in seconds.
    pub(super) fn value(
        &mut self,
        sheet: &mut Sheet,
        entity: EntityId,
        means: Means,
        point: Point,
        (period, seconds): (i64, f64),
    ) {
        let at = point.at.saturating_add(period);
        let value = if matches!(means, Means::Gauge(..)) { point.value } else { point.sum };
        let Some(value) = value else { return };
        let (measure, value) = match means {
            Means::Amount(measure) => (measure, value / seconds),
            Means::Operations(measure, is_read) => {
                self.latencies.entry((entity, is_read)).or_default().entry(at).or_default().0 =
                    Some(value);
                (measure, value / seconds)
            }
            Means::Time(is_read) => {
                self.latencies.entry((entity, is_read)).or_default().entry(at).or_default().1 =
                    Some(value);
                return;
            }
            Means::Idle => (&m::BUSY, (1.0 - value / seconds).max(0.0)),
            Means::Gauge(measure, by) => (measure, value * by),
        };
        let series = sheet.series(entity, measure);
        self.line.cover(at, entity, period);
        self.line.add(at, series, measure, value);
    }

    /// Computes latencies from the total time of operations.
    pub(super) fn divide(&mut self, sheet: &mut Sheet) {
        for ((entity, is_read), times) in std::mem::take(&mut self.latencies) {
            let measure = if is_read { &m::READ_LATENCY_NS } else { &m::WRITE_LATENCY_NS };
            for (at, pair) in times {
                if let (Some(operations), Some(seconds)) = pair
                    && operations > 0.0
                {
                    let series = sheet.series(entity, measure);
                    self.line.add(at, series, measure, seconds / operations * 1e9);
                }
            }
        }
    }
}

/// Returns the entity of a metric, from its label or its dimensions.
pub(super) fn entity(sheet: &mut Sheet, of: Of, name: &str) -> EntityId {
    let or =
        |default: &'static str| if name.is_empty() { default.to_owned() } else { name.to_owned() };
    match of {
        Of::Volume => {
            let id = name.split_whitespace().find(|word| word.starts_with("vol-"));
            let name = id.map_or_else(|| or("volume"), str::to_owned);
            sheet.entity(EntityKind::Volume, &name, None)
        }
        Of::Host => sheet.entity(EntityKind::Host, &or("host"), None),
        Of::Storage => {
            let host = sheet.entity(EntityKind::Host, &or("host"), None);
            sheet.entity(EntityKind::Volume, "storage", Some(host))
        }
    }
}
