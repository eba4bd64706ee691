//! Changes between two readings.

use serde::Serialize;
use std::collections::BTreeMap;
use weir_report::number::{float, gib, grouped, mib};
use weir_report::status::{HostStatus, Status, VolumeStatus};

/// A change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Milliseconds since 1970.
    pub ms: u64,
    /// The volume or host.
    pub item: String,
    /// The change in words.
    pub text: String,
}

/// Returns the changes from `old` to `new`: (volume or host, words).
#[must_use]
pub fn between(old: &Status, new: &Status) -> Vec<(String, String)> {
    let mut changes = Vec::new();
    let hosts: BTreeMap<&str, &HostStatus> = named(&old.hosts, |host| &host.name);
    for host in &new.hosts {
        let Some(before) = hosts.get(host.name.as_str()) else { continue };
        if host.crashes > before.crashes {
            changes.push((host.name.clone(), "crashed".to_owned()));
        }
        let volumes = named(&before.volumes, |volume: &VolumeStatus| &volume.name);
        for volume in &host.volumes {
            match volumes.get(volume.name.as_str()) {
                None => changes.push((volume.name.clone(), "was created".to_owned())),
                Some(old) => of_volume(old, volume, &mut changes),
            }
        }
        let now = named(&host.volumes, |volume| &volume.name);
        let gone = before.volumes.iter().filter(|old| !now.contains_key(old.name.as_str()));
        changes.extend(gone.map(|old| (old.name.clone(), "was deleted".to_owned())));
    }
    changes
}

fn named<T>(all: &[T], name: impl Fn(&T) -> &String) -> BTreeMap<&str, &T> {
    all.iter().map(|one| (name(one).as_str(), one)).collect()
}

fn of_volume(old: &VolumeStatus, new: &VolumeStatus, changes: &mut Vec<(String, String)>) {
    let mut words = Vec::new();
    if old.size_bytes != new.size_bytes {
        words.push(format!("size {} GiB, was {} GiB", gib(new.size_bytes), gib(old.size_bytes)));
    }
    let tier = |of: &VolumeStatus| of.tier_words().unwrap_or_else(|| "none".to_owned());
    if tier(old) != tier(new) {
        words.push(format!("tier {}, was {}", tier(new), tier(old)));
    }
    if old.cache != new.cache {
        words.push(format!("cache {}, was {}", new.cache, old.cache));
    }
    let limits = |v: &VolumeStatus| (v.limit_iops, v.limit_bytes_per_s, v.burst_iops);
    if words.is_empty() && limits(old) != limits(new) {
        let iops = new.limit_iops.map(|n| format!("{} IOPS", grouped(n)));
        let rate = new.limit_bytes_per_s.map(|n| format!("{} MiB/s", mib(float(n))));
        let limits: Vec<String> = iops.into_iter().chain(rate).collect();
        let none = "none".to_owned();
        words.push(format!("limits {}", if limits.is_empty() { none } else { limits.join(", ") }));
    }
    if let Some(now) = &new.backend
        && old.backend.as_ref().is_none_or(|before| before.state != now.state)
    {
        let reason = now.reason.as_ref().map(|reason| format!(": {reason}"));
        words.push(format!("backend {}{}", now.state, reason.unwrap_or_default()));
    }
    changes.extend(words.into_iter().map(|words| (new.name.clone(), words)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_report::status::BackendStatus;

    #[test]
    fn changes_of_a_backend_are_told_with_the_reason() {
        let status = |state: &str, reason: Option<&str>| {
            let backend = BackendStatus {
                state: state.into(),
                reason: reason.map(str::to_owned),
                ..BackendStatus::default()
            };
            let backend = Some(backend);
            let volume = VolumeStatus { name: "a".into(), backend, ..VolumeStatus::default() };
            let host = HostStatus { volumes: vec![volume], ..HostStatus::default() };
            Status { hosts: vec![host], ..Status::default() }
        };
        let (well, lost) = (status("connected", None), status("lost", Some("no answer")));
        let told = |old, new| between(old, new).pop().map(|(_, text)| text);
        assert_eq!(told(&well, &lost).as_deref(), Some("backend lost: no answer"));
        assert_eq!(told(&lost, &well).as_deref(), Some("backend connected"));
        assert_eq!(told(&lost, &status("lost", Some("refused"))), None);
    }

    #[test]
    fn changes_are_told_in_words() {
        let status = |crashes, volumes: &[(&str, &str, u64, u64)]| {
            let volumes = volumes.iter().map(|(name, tier, gib, iops)| VolumeStatus {
                name: (*name).into(),
                tier: Some((*tier).into()),
                size_bytes: gib << 30,
                cache: "none".into(),
                limit_iops: Some(*iops),
                ..VolumeStatus::default()
            });
            let volumes = volumes.collect();
            let host = HostStatus { name: "h".into(), crashes, volumes, ..HostStatus::default() };
            Status { hosts: vec![host], ..Status::default() }
        };
        let old =
            status(0, &[("a", "P10", 128, 500), ("b", "P30", 1_024, 5_000), ("c", "P4", 32, 120)]);
        assert_eq!(between(&old, &old), []);
        let new = status(
            1,
            &[("a", "P20", 256, 2_300), ("b", "P30", 1_024, 16_000), ("d", "P4", 32, 120)],
        );
        let told: Vec<String> =
            between(&old, &new).into_iter().map(|(item, text)| format!("{item} {text}")).collect();
        assert_eq!(
            told,
            [
                "h crashed",
                "a size 256 GiB, was 128 GiB",
                "a tier P20, was P10",
                "b limits 16,000 IOPS",
                "d was created",
                "c was deleted",
            ]
        );
    }
}
