//! The verdict on a run: which volume was throttled, and by which cap.

use super::{RunReport, VolumeReport};
use crate::number::{float, mib, percent, rate};

/// Returns a sentence on a volume that is throttled by a cap. `used` are its rates, `others` the
/// number of other throttled volumes.
#[must_use]
pub fn throttled(name: &str, (cap, share): (&str, f64), used: &str, others: usize) -> String {
    let others = match others {
        0 => String::new(),
        1 => " One other volume is throttled, too.".to_owned(),
        n => format!(" {n} other volumes are throttled, too."),
    };
    let share = percent(share);
    format!(
        "{name} is throttled by {cap}, where its requests spend {share} of their time; it does \
         {used}.{others}"
    )
}

/// Returns the cap with the longest waits of a volume, and its share of the requests' time; `None` if
/// waits at caps took less time than the medium.
fn binding(own: &VolumeReport) -> Option<(&str, f64)> {
    let waits: u64 = own.waits_ns.values().sum();
    let (cap, most) = own.waits_ns.iter().max_by_key(|(_, ns)| **ns)?;
    let is_throttled = waits > own.medium_ns;
    is_throttled.then(|| (cap.as_str(), float(*most) / float(waits + own.medium_ns)))
}

impl RunReport {
    /// Returns the verdict on the whole run in a sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let used = |own: &VolumeReport| {
            format!("{} IOPS and {} MiB/s", rate(own.iops), mib(own.bytes_per_s))
        };
        let held = self.volumes.iter().filter_map(|own| Some((own, binding(own)?)));
        let mut held: Vec<_> = held.collect();
        held.sort_by(|(_, (_, one)), (_, (_, other))| other.total_cmp(one));
        let busiest = self.volumes.iter().max_by(|one, other| one.iops.total_cmp(&other.iops));
        match (held.first(), busiest.filter(|own| own.iops > 0.0)) {
            (Some((own, by)), _) => throttled(&own.name, *by, &used(own), held.len() - 1),
            (None, Some(own)) => {
                format!("No volume is throttled; the busiest, {}, does {}.", own.name, used(own))
            }
            (None, None) => "No requests were made.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ClockName;

    fn report(volumes: Vec<VolumeReport>) -> RunReport {
        RunReport {
            clock: ClockName::Virtual,
            seed: 1,
            elapsed_s: 1.0,
            trace_hash: None,
            jobs: Vec::new(),
            volumes,
            hosts: Vec::new(),
            series: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn volume(name: &str, disk_iops: u64, disk_bytes: u64) -> VolumeReport {
        let waits = [("disk_iops", disk_iops), ("disk_bytes", disk_bytes)];
        VolumeReport {
            name: name.to_owned(),
            iops: 500.0,
            bytes_per_s: 1_048_576.0,
            waits_ns: waits.map(|(cap, ns)| (cap.to_owned(), ns)).into(),
            medium_ns: 20,
            ..VolumeReport::default()
        }
    }

    #[test]
    fn the_volume_with_the_largest_share_of_waits_is_named() {
        let report = report(vec![volume("log", 15, 6), volume("data", 60, 20)]);
        assert_eq!(
            report.verdict(),
            "data is throttled by disk_iops, where its requests spend 60.0 % of their time; it does \
             500 IOPS and 1.00 MiB/s. One other volume is throttled, too."
        );
    }

    #[test]
    fn waits_below_the_time_of_the_medium_are_no_throttling() {
        let words = report(vec![volume("data", 10, 10)]).verdict();
        let expect = "No volume is throttled; the busiest, data, does 500 IOPS and 1.00 MiB/s.";
        assert_eq!(words, expect);
        assert_eq!(report(Vec::new()).verdict(), "No requests were made.");
    }
}
