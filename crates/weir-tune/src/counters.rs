//! The load on a running server between two readings of its counters.

use crate::goal::{Goal, Target};
use crate::limit::{Place, cap_named};
use crate::measure::Measured;
use std::collections::BTreeMap;
use weir_layout::{Export, Layout, Role};
use weir_plan::verify::Got;
use weir_report::number::{float, whole};
use weir_report::status::{
    ExportStatus, HostStatus, LATENCY_BOUNDS_NS, Status, VolumeStatus, quantile_ns,
};
use weir_units::Span;

/// Returns what a server with the layout did between two readings. Roles are those of the
/// prediction, and so is the room that they lack, since a server knows no needs.
///
/// # Errors
///
/// A message if the readings are not of one server, or the prediction has roles whose requests
/// cannot be told apart.
pub fn of_counters(
    layout: &Layout,
    predicted: &Measured,
    (before, after): (&Status, &Status),
) -> Result<Measured, String> {
    if before.pid != after.pid || after.uptime_ns <= before.uptime_ns {
        return Err("the server was restarted during the measurement".to_owned());
    }
    let seconds = float(after.uptime_ns - before.uptime_ns) / 1e9;
    let mut measured = Measured { lacks: predicted.lacks.clone(), ..Measured::default() };
    let mut all = Requests::default();
    let mut waits: BTreeMap<Place, u64> = BTreeMap::new();
    for (at, host) in layout.hosts.iter().enumerate() {
        let find = |status: &'_ Status| status.hosts.iter().position(|own| own.name == host.name);
        let (Some(old), Some(new)) = (find(before), find(after)) else {
            return Err(format!("the server has no host {}", host.name));
        };
        let (old, new) = (&before.hosts[old], &after.hosts[new]);
        for export in &host.exports {
            all.add(&Requests::between(&export.name, old, new));
        }
        let connected = new.exports.iter().map(|own| own.clients.len() as u64).sum::<u64>();
        measured.clients = Some(measured.clients.unwrap_or(0) + connected);
        for (volume, own) in host.volumes.iter().enumerate() {
            let none = VolumeStatus::default();
            let find = |status: &'_ HostStatus| {
                status.volumes.iter().position(|volume| volume.name == own.name)
            };
            let Some(now) = find(new).map(|at| &new.volumes[at]) else { continue };
            let then = find(old).map_or(&none, |at| &old.volumes[at]);
            measured.bytes_per_s += float(now.bytes().saturating_sub(then.bytes())) / seconds;
            measured.storage_ns += now.medium_ns.saturating_sub(then.medium_ns);
            for (name, ns) in &now.waits_ns {
                let ns = ns.saturating_sub(then.waits_ns.get(name).copied().unwrap_or(0));
                measured.storage_ns += ns;
                let cap = cap_named(name);
                let place = cap.and_then(|cap| Place::of_volume(layout, at, volume, cap));
                if let Some(place) = place.filter(|_| ns > 0) {
                    *waits.entry(place).or_default() += ns;
                }
            }
        }
    }
    measured.waits = waits.into_iter().collect();
    measured.waits.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
    measured.iops = all.rate(seconds);
    measured.mean_ns = all.mean();
    (measured.median_ns, measured.p99_ns) = (all.quantile(0.5), all.quantile(0.99));
    for (at, role) in predicted.roles.iter().enumerate() {
        if predicted.roles[..at].iter().any(|own| own.role == role.role) {
            return Err(format!(
                "the need has the peak of throughput of its {} apart from that of operations, and a \
                 running system has one load at a time; give one peak",
                role.role.name()
            ));
        }
        let requests = of_role(layout, role.role, (before, after))?;
        measured.roles.push(Got {
            got: requests.rate(seconds),
            latency: requests.mean(),
            median: requests.quantile(0.5),
            p99: requests.quantile(0.99),
            grows: false,
            ..*role
        });
    }
    Ok(measured)
}

/// Decides for the goal where counters cannot tell: a latency in the same bucket as its target is set to
/// the target. Returns whether there was one.
pub(crate) fn decide_within_buckets(measured: &mut Measured, goal: &Goal) -> bool {
    let mut has_any = false;
    let mut decide = |ns: &mut u64, target: Span| {
        let bucket = |ns: u64| LATENCY_BOUNDS_NS.partition_point(|bound| *bound < ns);
        let target = target.nanos();
        if *ns > target && bucket(*ns) == bucket(target) {
            (*ns, has_any) = (target, true);
        }
    };
    for role in &mut measured.roles {
        if let Some(target) = role.asked_latency {
            decide(&mut role.median, target);
        }
    }
    for target in &goal.targets {
        match target {
            Target::Latency(most) => decide(&mut measured.median_ns, *most),
            Target::P99(most) => decide(&mut measured.p99_ns, *most),
            _ => {}
        }
    }
    has_any
}

/// Returns the requests to the exports of a role's files.
fn of_role(
    layout: &Layout,
    role: Role,
    (old, new): (&Status, &Status),
) -> Result<Requests, String> {
    let mut requests = Requests::default();
    for host in &layout.hosts {
        let has = |export: &Export, is_wanted: &dyn Fn(Role) -> bool| {
            let mut files = host.files.iter().filter(|file| file.device == export.device);
            files.any(|file| is_wanted(file.role))
        };
        for export in host.exports.iter().filter(|own| has(own, &|other| other == role)) {
            if has(export, &|other| other != role) {
                return Err(format!(
                    "{} has files of the {} and of another role, and a server counts the requests of \
                     both alike; use a workload of fio jobs",
                    export.name,
                    role.name()
                ));
            }
            let of = |status: &Status| status.hosts.iter().position(|own| own.name == host.name);
            if let (Some(before), Some(after)) = (of(old), of(new)) {
                requests.add(&Requests::between(
                    &export.name,
                    &old.hosts[before],
                    &new.hosts[after],
                ));
            }
        }
    }
    Ok(requests)
}

/// Reads and writes of an interval, with their latencies from the arrival to the reply.
#[derive(Debug, Default)]
struct Requests {
    reads: Counts,
    writes: Counts,
    sum_ns: u64,
}

type Counts = [u64; LATENCY_BOUNDS_NS.len() + 1];

impl Requests {
    fn between(export: &str, old: &HostStatus, new: &HostStatus) -> Self {
        let mut requests = Self::default();
        let mut take = |host: &HostStatus, put: fn(u64, u64) -> u64| {
            let is_it = |own: &&ExportStatus| own.name == export;
            for own in host.exports.iter().filter(is_it).flat_map(|own| &own.latencies) {
                let counts = match own.op.as_str() {
                    "read" => &mut requests.reads,
                    "write" => &mut requests.writes,
                    _ => continue,
                };
                counts.iter_mut().zip(&own.counts).for_each(|(sum, n)| *sum = put(*sum, *n));
                requests.sum_ns = put(requests.sum_ns, own.sum_ns);
            }
        };
        take(new, u64::saturating_add);
        take(old, u64::saturating_sub);
        requests
    }

    fn add(&mut self, other: &Self) {
        let sum = |own: &mut Counts, more: &Counts| {
            own.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
        };
        sum(&mut self.reads, &other.reads);
        sum(&mut self.writes, &other.writes);
        self.sum_ns += other.sum_ns;
    }

    fn count(&self) -> u64 {
        self.reads.iter().chain(&self.writes).sum()
    }

    fn rate(&self, seconds: f64) -> f64 {
        float(self.count()) / seconds
    }

    fn mean(&self) -> f64 {
        float(self.sum_ns) / float(self.count().max(1))
    }

    /// Returns the quantile of reads or of writes, whichever is longer.
    fn quantile(&self, share: f64) -> u64 {
        let all = [&self.reads, &self.writes].into_iter();
        all.filter_map(|counts| quantile_ns(counts, share)).map(whole).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_catalog::Catalog;
    use weir_report::status::OpLatency;

    const LAYOUT: &str = "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"data\"\ntier = \"P10\"\n\
        [[volume]]\nname = \"log\"\ntier = \"P10\"\n";

    /// Returns a reading after `requests` reads of 8 KiB from data, each of 3 ms at storage.
    fn reading(uptime_ns: u64, requests: u64) -> Status {
        let mut counts = vec![0; LATENCY_BOUNDS_NS.len() + 1];
        counts[8] = requests;
        let latency = OpLatency { op: "read".into(), counts, sum_ns: 3_000_000 * requests };
        let waits = [("disk_iops".to_owned(), 2_000_000 * requests)];
        let volume = |name: &str, n: u64| VolumeStatus {
            name: name.to_owned(),
            reads: n,
            read_bytes: 8192 * n,
            medium_ns: 1_000_000 * n,
            waits_ns: if n > 0 { waits.clone().into() } else { BTreeMap::new() },
            ..VolumeStatus::default()
        };
        let export = |name: &str, latencies| ExportStatus {
            name: name.to_owned(),
            latencies,
            ..ExportStatus::default()
        };
        let host = HostStatus {
            name: "host".into(),
            exports: vec![export("data", vec![latency]), export("log", vec![])],
            volumes: vec![volume("data", requests), volume("log", 0)],
            ..HostStatus::default()
        };
        Status { uptime_ns, pid: 1, hosts: vec![host], ..Status::default() }
    }

    fn layout(more: &str) -> Layout {
        let catalog = Catalog::builtin();
        Layout::parse("layout.toml", &format!("{LAYOUT}{more}"), &catalog).unwrap()
    }

    #[test]
    fn rates_latencies_and_waits_are_those_of_the_interval() {
        let layout = layout("");
        let (before, after) = (reading(1_000_000_000, 500), reading(3_000_000_000, 1_500));
        let none = Measured::default();
        let measured = of_counters(&layout, &none, (&before, &after)).unwrap();
        assert!((measured.iops - 500.0).abs() < 1e-6, "{measured:?}");
        assert!((measured.bytes_per_s - 500.0 * 8192.0).abs() < 1e-3, "{measured:?}");
        assert!((measured.mean_ns - 3e6).abs() < 1.0, "{measured:?}");
        assert!((2_000_000..=5_000_000).contains(&measured.median_ns), "{measured:?}");
        let (place, share) = measured.binding().unwrap();
        assert_eq!(place.name(&layout), "data");
        assert!((share - 2.0 / 3.0).abs() < 1e-9, "{share}");
    }

    #[test]
    fn a_latency_in_the_bucket_of_its_target_counts_as_met() {
        // Buckets end at 2, 5 and 10 ms.
        let check = |median_ns: u64, target_us: u64, expect: u64| {
            let mut measured = Measured { median_ns, ..Measured::default() };
            let goal = Goal { targets: vec![Target::Latency(Span::from_micros(target_us))] };
            let is_changed = decide_within_buckets(&mut measured, &goal);
            assert_eq!((measured.median_ns, is_changed), (expect, expect != median_ns));
        };
        check(2_670_000, 2_500, 2_500_000);
        check(2_670_000, 2_000, 2_670_000);
        check(2_670_000, 1_900, 2_670_000);
        check(5_100_000, 5_000, 5_100_000);
        check(2_100_000, 2_500, 2_100_000);
    }

    #[test]
    fn readings_of_two_servers_are_refused() {
        let (before, after) = (reading(3_000_000_000, 500), reading(1_000_000_000, 1_500));
        let none = Measured::default();
        let error = of_counters(&layout(""), &none, (&before, &after)).unwrap_err();
        assert!(error.contains("restarted"), "{error}");
    }

    #[test]
    fn roles_are_counted_by_their_exports() {
        let file = |name: &str, role: &str, on: &str| {
            format!(
                "[[file]]\nname = \"{name}\"\nrole = \"{role}\"\non = \"{on}\"\nsize = \"9 GiB\"\n"
            )
        };
        let got = Got {
            role: Role::Data,
            request: 8192,
            asked: 400,
            bytes: None,
            got: 0.0,
            latency: 0.0,
            median: 0,
            p99: 0,
            asked_latency: None,
            grows: false,
        };
        let predicted = Measured { roles: vec![got], ..Measured::default() };
        let (before, after) = (reading(1_000_000_000, 500), reading(3_000_000_000, 1_500));
        let apart = layout(&(file("d", "data", "data") + &file("l", "log", "log")));
        let measured = of_counters(&apart, &predicted, (&before, &after)).unwrap();
        assert!((measured.roles[0].got - 500.0).abs() < 1e-6, "{measured:?}");
        let mixed = layout(&(file("d", "data", "data") + &file("l", "log", "data")));
        let error = of_counters(&mixed, &predicted, (&before, &after)).unwrap_err();
        assert!(error.contains("another role"), "{error}");
        let twice = Measured { roles: vec![got, got], ..Measured::default() };
        let error = of_counters(&apart, &twice, (&before, &after)).unwrap_err();
        assert!(error.contains("give one peak"), "{error}");
    }
}
