//! The present state in a sentence.

use weir_report::number::{float, grouped, mib, rate};
use weir_report::run::throttled;
use weir_report::status::{Rates, StatusReport, VolumeStatus, lasting};

/// Credits that last longer are not mentioned.
const SOON_S: f64 = 3_600.0;

/// Describes the state between the two readings of a report.
#[must_use]
pub fn sentence(report: &StatusReport) -> String {
    let present = limits(report);
    backends(report).map_or_else(|| present.clone(), |first| format!("{first} {present}"))
}

/// Describes the backends that are lost or have failed, if there are any.
fn backends(report: &StatusReport) -> Option<String> {
    let all = report.now.hosts.iter().flat_map(|host| &host.volumes);
    let bad = all.filter_map(|volume| Some((&volume.name, volume.backend.as_ref()?)));
    let mut bad = bad.filter(|(_, backend)| !backend.is_connected());
    let (volume, backend) = bad.next()?;
    let others = match bad.count() {
        0 => String::new(),
        1 => " So is that of another volume.".to_owned(),
        n => format!(" So are those of {n} other volumes."),
    };
    Some(format!("The backend of {volume} is {}.{others}", backend.words()))
}

/// Describes the volume that is throttled most, and burst credits.
fn limits(report: &StatusReport) -> String {
    let volumes = || {
        let all = report.now.hosts.iter().flat_map(|host| &host.volumes);
        all.filter_map(|volume| Some((volume, report.rates.get(&volume.name)?)))
    };
    let mut held: Vec<_> = volumes().filter(|(_, rates)| is_throttled(rates)).collect();
    held.sort_by(|(_, a), (_, b)| {
        b.binding_share.partial_cmp(&a.binding_share).unwrap_or(std::cmp::Ordering::Equal)
    });
    let busiest = volumes()
        .filter(|(_, rates)| rates.iops > 0.0)
        .max_by(|(_, a), (_, b)| a.iops.total_cmp(&b.iops));
    let mut text = match (held.first(), busiest) {
        (Some((volume, rates)), _) => self::held(volume, rates, held.len() - 1),
        (None, Some((volume, rates))) => format!(
            "No volume is throttled; the busiest, {}, does {}.",
            volume.name,
            used(volume, rates)
        ),
        (None, None) => format!("No requests in the last {} s.", rate(report.interval_s)),
    };
    let soonest = volumes()
        .filter_map(|(volume, rates)| Some((volume, rates.credits_last_s?)))
        .filter(|(_, last)| *last <= SOON_S)
        .min_by(|(_, a), (_, b)| a.total_cmp(b));
    if let Some((volume, last)) = soonest {
        let then = volume.limit_iops.map(|iops| format!(" {} IOPS", grouped(iops)));
        text += &format!(
            " The burst credits of {} last {}; then it has{}.",
            volume.name,
            lasting(last),
            then.unwrap_or_else(|| " its sustained limits".to_owned())
        );
    }
    text
}

/// Returns whether requests wait at caps for longer than the medium takes.
#[must_use]
pub fn is_throttled(rates: &Rates) -> bool {
    rates.binding_limit.as_deref().is_some_and(|cap| cap != "medium")
}

fn held(volume: &VolumeStatus, rates: &Rates, others: usize) -> String {
    let cap = rates.binding_limit.as_deref().unwrap_or_default();
    let share = rates.binding_share.unwrap_or_default();
    throttled(&volume.name, (cap, share), &used(volume, rates), others)
}

/// Returns the rates of a volume, of its limits if there are any.
fn used(volume: &VolumeStatus, rates: &Rates) -> String {
    let of = |limit: Option<String>| limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    let iops = of(volume.iops_now().map(|n| grouped(n).to_string()));
    let bytes = of(volume.bytes_per_s_now().map(|n| mib(float(n)).to_string()));
    format!("{}{iops} IOPS and {}{bytes} MiB/s", rate(rates.iops), mib(rates.bytes_per_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::reading;
    use weir_report::status::{BackendStatus, Status};

    fn between(old: &Status, new: &Status) -> String {
        sentence(&StatusReport::between(old, new.clone()))
    }

    #[test]
    fn a_backend_that_is_lost_comes_first() {
        let mut status = reading(11, 0);
        let backend = BackendStatus {
            state: "lost".into(),
            reason: Some("no answer for 30 s".into()),
            since_ns: 12_000_000_000,
            ..BackendStatus::default()
        };
        status.hosts[0].volumes[0].backend = Some(backend.clone());
        let words = |status: &Status| between(&reading(1, 0), status);
        let first = "The backend of data is lost for 12 s: no answer for 30 s.";
        assert_eq!(words(&status), format!("{first} No requests in the last 10.0 s."));
        let mut other = status.hosts[0].volumes[0].clone();
        other.name = "other".into();
        status.hosts[0].volumes.push(other.clone());
        assert!(words(&status).starts_with(&format!("{first} So is that of another volume. ")));
        status.hosts[0].volumes.push(other);
        assert!(words(&status).contains("So are those of 2 other volumes."));
        let connected = BackendStatus { state: "connected".into(), ..BackendStatus::default() };
        for volume in &mut status.hosts[0].volumes {
            volume.backend = Some(connected.clone());
        }
        assert_eq!(words(&status), "No requests in the last 10.0 s.");
    }

    #[test]
    fn the_state_is_one_sentence_or_two() {
        let check =
            |old: &Status, new: &Status, expect: &str| assert_eq!(between(old, new), expect);
        check(&reading(1, 5), &reading(11, 5), "No requests in the last 10.0 s.");
        let mut waiting = reading(11, 35_000);
        check(
            &reading(1, 0),
            &waiting,
            "data is throttled by disk_iops, where its requests spend 50.0 % of their time; it does \
             3,500 of 3,500 IOPS and 13.7 MiB/s. The burst credits of data last 12 min 41 s; then it \
             has 500 IOPS.",
        );
        // Two caps together take more than the medium.
        let waits = [("disk_iops", 14_000_000_000), ("disk_bytes", 22_000_000_000)];
        waiting.hosts[0].volumes[0].waits_ns = waits.map(|(cap, ns)| (cap.to_owned(), ns)).into();
        let words = between(&reading(1, 0), &waiting);
        assert!(
            words.starts_with("data is throttled by disk_bytes, where its requests spend 31.0 %"),
            "{words}"
        );
        waiting.hosts[0].volumes[0].waits_ns = [("disk_iops".to_owned(), 34_000_000_000)].into();
        waiting.hosts[0].volumes[0].credits_operations = Some(5_400_000);
        check(
            &reading(1, 0),
            &waiting,
            "No volume is throttled; the busiest, data, does 3,500 of 3,500 IOPS and 13.7 MiB/s.",
        );
    }
}
