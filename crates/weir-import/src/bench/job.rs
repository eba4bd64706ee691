//! Jobs: their entities, attributes and metrics by direction.

use crate::sheet::{At, Sheet};
use std::collections::HashMap;
use weir_observe::header::{Attribute, EntityId, EntityKind};
use weir_observe::metric::{self as m, Metric};

/// Nanoseconds in a millisecond.
pub(super) const MS: f64 = 1e6;
/// Nanoseconds in a microsecond.
pub(super) const US: f64 = 1e3;

/// The metrics of reads, writes, discards, or all together.
#[derive(Debug)]
pub(super) struct Direction {
    /// Prefix of the names of latencies.
    pub(super) prefix: &'static str,
    pub(super) rate: &'static Metric,
    pub(super) bytes_rate: &'static Metric,
    pub(super) latency: &'static Metric,
    /// Metrics of the totals of operations and bytes.
    pub(super) totals: Option<(&'static Metric, &'static Metric)>,
}

/// Reads.
pub(super) const READ: Direction = Direction {
    prefix: "read_",
    rate: &m::READS_PER_S,
    bytes_rate: &m::READ_BYTES_PER_S,
    latency: &m::READ_LATENCY_NS,
    totals: Some((&m::READS, &m::READ_BYTES)),
};

/// Writes.
pub(super) const WRITE: Direction = Direction {
    prefix: "write_",
    rate: &m::WRITES_PER_S,
    bytes_rate: &m::WRITE_BYTES_PER_S,
    latency: &m::WRITE_LATENCY_NS,
    totals: Some((&m::WRITES, &m::WRITE_BYTES)),
};

/// Discards.
pub(super) const DISCARD: Direction = Direction {
    prefix: "discard_",
    rate: &m::DISCARDS_PER_S,
    bytes_rate: &m::DISCARD_BYTES_PER_S,
    latency: &m::DISCARD_LATENCY_NS,
    totals: Some((&m::DISCARDS, &m::DISCARD_BYTES)),
};

/// Reads and writes together.
pub(super) const BOTH: Direction = Direction {
    prefix: "",
    rate: &m::OPERATIONS_PER_S,
    bytes_rate: &m::BYTES_PER_S,
    latency: &m::LATENCY_NS,
    totals: None,
};

impl Direction {
    /// Returns the metric of a statistic of its latency: `min`, `stddev`, `p99_9`.
    pub(super) fn tail(&self, what: &str) -> Option<&'static Metric> {
        m::named(&format!("{}latency_{what}_ns", self.prefix))
    }

    /// Returns the metric of a percentile of its latency, if that percentile is kept.
    pub(super) fn percentile(&self, percent: f64) -> Option<&'static Metric> {
        self.tail(&format!("p{}", percent.to_string().replace('.', "_")))
    }

    /// Returns the metric of its mean latency, or of a part: `submission` or `completion`.
    pub(super) fn part(&self, part: &str) -> Option<&'static Metric> {
        match part {
            "" => Some(self.latency),
            part => m::named(&format!("{}{part}_latency_ns", self.prefix)),
        }
    }
}

/// The attributes of a job.
pub(super) type Facts = Vec<(&'static str, Attribute)>;

/// A job with its attributes.
type Known = (Facts, EntityId);

/// The jobs of an input.
///
/// A file may have the results of many runs. Runs of a job with equal parameters are samples of
/// one entity; other parameters under the same name make another entity.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    /// Jobs by name and host.
    known: HashMap<(String, Option<EntityId>), Vec<Known>>,
}

impl Jobs {
    /// Returns the job with this name and these attributes.
    pub(super) fn job(
        &mut self,
        sheet: &mut Sheet,
        host: Option<EntityId>,
        name: &str,
        facts: &Facts,
    ) -> EntityId {
        let same = self.known.entry((name.to_owned(), host)).or_default();
        if let Some((_, id)) = same.iter().find(|(known, _)| known == facts) {
            return *id;
        }
        let own = match same.len() {
            0 => name.to_owned(),
            others => format!("{name} #{}", others + 1),
        };
        let id = job(sheet, host, &own);
        for (what, value) in facts {
            sheet.attribute(id, what, value.clone());
        }
        same.push((facts.clone(), id));
        id
    }
}

/// Returns the job of a name, and creates it if it is new.
pub(super) fn job(sheet: &mut Sheet, host: Option<EntityId>, name: &str) -> EntityId {
    sheet.entity(EntityKind::Job, name, host)
}

/// Sets the interval of a job's rates in the current sample, in nanoseconds.
pub(super) fn put_interval(sheet: &mut Sheet, id: EntityId, nanos: u64) {
    if nanos > 0 {
        #[expect(clippy::cast_precision_loss, reason = "runs are far below 2^53 ns")]
        sheet.set(id, &m::INTERVAL_NS, nanos as f64);
    }
}

/// Starts the observation with the first run, which lasted this long.
pub(super) fn begin(sheet: &mut Sheet, nanos: u64) {
    if let (None, Some(held)) = (sheet.held, i64::try_from(nanos).ok().filter(|held| *held > 0)) {
        sheet.held = Some(held);
    }
}

/// Returns the host of a name, or a host with a default name.
pub(super) fn host(sheet: &mut Sheet, name: Option<&str>) -> EntityId {
    sheet.entity(EntityKind::Host, name.unwrap_or("host"), None)
}

/// The ends of consecutive runs in a file.
#[derive(Debug, Default)]
pub(super) struct RunClock {
    /// True if the first run has a start time.
    is_dated: Option<bool>,
    /// Stated start of the current run.
    began: Option<i64>,
    /// End of the last run, in nanoseconds.
    end: i64,
}

impl RunClock {
    /// Returns the end of a run of `nanos`. Several parts of a run have the same start.
    pub(super) fn end(&mut self, began: Option<i64>, nanos: u64) -> At {
        let is_dated = *self.is_dated.get_or_insert(began.is_some());
        if is_dated && began.is_some() && began != self.began {
            self.end = began.unwrap_or(self.end);
        }
        self.began = began.or(self.began);
        self.end = self.end.saturating_add_unsigned(nanos);
        if is_dated { At::Wall(self.end) } else { At::Since(self.end.unsigned_abs()) }
    }
}

/// Converts seconds to nanoseconds; impossible values become zero.
pub(super) fn nanos(seconds: f64) -> u64 {
    let nanos = (seconds * 1e9).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between zero and a hundred years"
    )]
    if nanos > 0.0 { nanos.min(3e18) as u64 } else { 0 }
}

/// Converts nanoseconds to seconds.
pub(super) fn seconds(nanos: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
    let nanos = nanos as f64;
    nanos / 1e9
}

/// Converts to a whole number, if it is not negative.
pub(super) fn whole(number: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    (0.0..1.8e19).contains(&number).then_some(number.round() as u64)
}

/// Parses a size with a unit, always a power of 1024: `4KiB`, `8192MB`, `256k`.
pub(crate) fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = text[end..].trim().to_ascii_lowercase();
    let power = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    whole(number * 1024_f64.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_their_units() {
        let check = |text: &str, expect: Option<u64>| assert_eq!(size(text), expect, "{text}");
        check("4096", Some(4096));
        check("4KiB", Some(4096));
        check("8192MB", Some(8 << 30));
        check("256k", Some(256 << 10));
        check("1.5G", Some(3 << 29));
        check("4kg", None);
        check("", None);
    }

    #[test]
    fn percentiles_by_their_names() {
        assert_eq!(READ.percentile(99.9), Some(&m::READ_LATENCY_P99_9_NS));
        assert_eq!(BOTH.percentile(50.0), Some(&m::LATENCY_P50_NS));
        assert_eq!(BOTH.percentile(51.0), None);
        assert_eq!(WRITE.part("submission"), Some(&m::WRITE_SUBMISSION_LATENCY_NS));
    }

    #[test]
    fn consecutive_runs() {
        let mut clock = RunClock::default();
        assert_eq!(clock.end(None, 5), At::Since(5));
        assert_eq!(clock.end(Some(1000), 5), At::Since(10));
        let mut clock = RunClock::default();
        assert_eq!(clock.end(Some(1000), 5), At::Wall(1005));
        assert_eq!(clock.end(Some(1000), 5), At::Wall(1010));
        assert_eq!(clock.end(Some(2000), 5), At::Wall(2005));
        assert_eq!(clock.end(None, 5), At::Wall(2010));
    }
}
