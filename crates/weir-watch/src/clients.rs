//! The rates of single clients between two readings.

use serde::Serialize;
use weir_report::number::float;
use weir_report::status::{ClientStatus, Status};

/// The clients that are shown: those with the most requests.
const SHOWN: usize = 20;

/// A client with what it did in an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClientRate {
    /// The host.
    pub host: String,
    /// The export.
    pub export: String,
    /// The volumes of the export.
    pub volumes: Vec<String>,
    /// The address of a client over TCP, the process of one over a Unix socket.
    pub peer: String,
    /// Requests per second.
    pub iops: f64,
    /// Bytes that these read and wrote, per second.
    pub bytes_per_s: f64,
    /// Requests under way at the end of the interval.
    pub in_flight: u64,
}

/// The clients of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Clients {
    /// Those with the most requests, the busiest first.
    pub busiest: Vec<ClientRate>,
    /// The number of all.
    pub count: usize,
}

/// Returns what the clients of the new reading did since the old one. A client that connected since
/// then began at zero.
#[must_use]
pub fn between(old: &Status, new: &Status) -> Clients {
    let seconds = float(new.uptime_ns.saturating_sub(old.uptime_ns)) / 1e9;
    let mut all = Vec::new();
    for host in &new.hosts {
        let before = old.hosts.iter().filter(|own| own.name == host.name);
        let mut before: Vec<&ClientStatus> =
            before.flat_map(|own| &own.exports).flat_map(|own| &own.clients).collect();
        before.sort_unstable_by_key(|own| own.id);
        for export in &host.exports {
            for own in &export.clients {
                let then = before.binary_search_by_key(&own.id, |old| old.id);
                let (requests, bytes) =
                    then.map_or((0, 0), |at| (before[at].requests, before[at].bytes));
                let per_s = |now: u64, then: u64| match seconds > 0.0 {
                    true => float(now.saturating_sub(then)) / seconds,
                    false => 0.0,
                };
                all.push(ClientRate {
                    host: host.name.clone(),
                    export: export.name.clone(),
                    volumes: export.volumes.clone(),
                    peer: own.peer.clone(),
                    iops: per_s(own.requests, requests),
                    bytes_per_s: per_s(own.bytes, bytes),
                    in_flight: own.in_flight,
                });
            }
        }
    }
    let count = all.len();
    all.sort_by(|one, other| other.iops.total_cmp(&one.iops));
    all.truncate(SHOWN);
    Clients { busiest: all, count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_report::status::{ExportStatus, HostStatus};

    fn reading(seconds: u64, clients: &[(u64, u64)]) -> Status {
        let client = |(id, requests): &(u64, u64)| ClientStatus {
            id: *id,
            peer: format!("process {id}"),
            requests: *requests,
            bytes: requests * 4096,
            in_flight: 2,
        };
        let export = ExportStatus {
            name: "data".into(),
            clients: clients.iter().map(client).collect(),
            ..ExportStatus::default()
        };
        let host = HostStatus { name: "host".into(), exports: vec![export], ..Default::default() };
        Status { uptime_ns: seconds * 1_000_000_000, hosts: vec![host], ..Status::default() }
    }

    #[test]
    fn rates_are_those_of_each_connection() {
        // Client 2 has gone; client 3 is new, and the busiest.
        let clients =
            between(&reading(10, &[(1, 100), (2, 900)]), &reading(12, &[(1, 300), (3, 500)]));
        assert_eq!(clients.count, 2);
        let shown: Vec<(&str, f64, f64)> =
            clients.busiest.iter().map(|own| (&own.peer[..], own.iops, own.bytes_per_s)).collect();
        assert_eq!(
            shown,
            [("process 3", 250.0, 250.0 * 4096.0), ("process 1", 100.0, 100.0 * 4096.0)]
        );
    }

    #[test]
    fn the_busiest_are_shown_and_all_are_counted() {
        let all: Vec<(u64, u64)> = (0..50).map(|id| (id, id * 10)).collect();
        let clients = between(&reading(0, &[]), &reading(1, &all));
        assert_eq!((clients.count, clients.busiest.len()), (50, SHOWN));
        assert_eq!(clients.busiest[0].peer, "process 49");
    }
}
