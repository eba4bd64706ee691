//! The diagnosis of a fleet: the servers that are throttled, the caps, and the fixes together.

use crate::answer::Answer;
use crate::cells;
use crate::number::{Amount, Delta, float, grouped, mib, rate, time};
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// The diagnosis of a fleet, or of a shard of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FleetDiagnosisReport {
    /// Hash of the names and sizes of all files and of the options.
    pub fleet: String,
    /// Number of observations of the whole fleet.
    pub observations: u64,
    /// Observations in the results.
    pub completed: u64,
    /// The shard, unless the results are whole.
    pub shard: Option<String>,
    /// Number of servers; those of a tree of Parquet may have several observations.
    pub servers: u64,
    /// Servers of which no observation was diagnosed.
    pub undiagnosed_servers: u64,
    /// Servers that are throttled in one observation or more.
    pub throttled_servers: u64,
    /// Observations by verdict.
    pub verdicts: VerdictCounts,
    /// Observations that are truncated or damaged, of which the rest was diagnosed.
    pub partial: u64,
    /// Observations without a diagnosis.
    pub failed: u64,
    /// Wait time of all requests of throttled files and disks.
    pub wait_s: f64,
    /// The caps that throttle, by wait time.
    pub caps: Vec<FleetCapReport>,
    /// The servers with the longest wait times.
    pub longest_waits: Vec<FleetServerReport>,
    /// The cost of the fixes, by currency.
    pub fixes: Vec<FleetFixReport>,
    /// Throttled servers without a fix that has a price.
    pub unpriced_servers: u64,
    /// Latencies of all samples, if any are known.
    pub latency: Option<FleetLatencyReport>,
    /// The first observations without a diagnosis.
    pub failures: Vec<FleetFailureReport>,
    /// Notes.
    pub notes: Vec<String>,
}

/// Observations by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names of verdicts")]
pub struct VerdictCounts {
    pub throttled: u64,
    pub not_the_storage: u64,
    pub healthy: u64,
    pub not_enough_evidence: u64,
}

/// A cap, and what it throttles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetCapReport {
    /// Name in metrics.
    pub cap: String,
    /// Observations in which it is the cap with the longest waits.
    pub observations: u64,
    /// The longest time in these in which a file or disk was slow or near the limit, summed up.
    pub throttled_s: f64,
    /// Wait time of all requests at the cap.
    pub wait_s: f64,
}

/// A throttled server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetServerReport {
    /// The server.
    pub server: String,
    /// The day of a partition.
    pub day: Option<String>,
    /// The cap with the longest waits.
    pub cap: String,
    /// The file or disk with the longest waits at the cap.
    pub subject: String,
    /// Its limit, in operations or bytes per second.
    pub limit: Option<f64>,
    /// Whether the limit is in bytes per second.
    pub limit_is_bytes: bool,
    /// The longest time in which a file or disk was slow or near the limit.
    pub throttled_s: f64,
    /// Wait time of all requests.
    pub wait_s: f64,
    /// The fix.
    pub fix: String,
}

/// The cost of the fixes in a currency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetFixReport {
    /// The currency.
    pub currency: String,
    /// Servers, each with one fix.
    pub servers: u64,
    /// Monthly price of their layouts.
    pub before: Amount,
    /// Monthly price with the fixes.
    pub after: Amount,
    /// The difference.
    pub difference: Delta,
}

/// Latencies of all samples of all files or disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FleetLatencyReport {
    /// Number of samples.
    pub samples: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
}

/// An observation without a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetFailureReport {
    /// The file or the folder of the partition.
    pub file: String,
    /// The reason.
    pub reason: String,
}

impl FleetDiagnosisReport {
    /// Returns whether a cap throttles a server.
    #[must_use]
    pub const fn is_throttled(&self) -> bool {
        self.throttled_servers > 0
    }

    fn answer(&self) -> Answer {
        let mut details = Vec::new();
        if let Some(first) = self.caps.first() {
            details.push(format!(
                "{} has the longest waits: {} of {} in total",
                first.cap,
                time(first.wait_s * 1e9),
                time(self.wait_s * 1e9)
            ));
        }
        let priced = self.fixes.iter().map(|own| {
            let words = own.difference.words(&own.currency);
            format!("{} cost {words} per month", counted(own.servers, "server"))
        });
        let priced: Vec<String> = priced.collect();
        match (priced.is_empty(), self.unpriced_servers) {
            (true, 0) => {}
            (true, n) => details.push(format!("no fix has a price ({})", counted(n, "server"))),
            (false, 0) => details.push(format!("the fixes of {}", priced.join(", those of "))),
            (false, n) => details.push(format!(
                "the fixes of {}; those of {} have no price",
                priced.join(", those of "),
                grouped(n)
            )),
        }
        if let Some(own) = &self.latency {
            let shown = |ns: u64| time(float(ns));
            details.push(format!(
                "latency of the samples: median {}, 95 % {}, 99 % {}",
                shown(own.p50_ns),
                shown(own.p95_ns),
                shown(own.p99_ns)
            ));
        }
        let mut notes = self.notes.clone();
        if self.failed > 0 {
            notes.push(format!(
                "not diagnosed: {} of {}; the column reason of the results says why",
                grouped(self.failed),
                counted(self.completed, "observation")
            ));
        }
        if self.partial > 0 {
            let words = "damaged or truncated, and diagnosed as far as they can be read: ";
            notes.push(format!("{words}{}", counted(self.partial, "observation")));
        }
        Answer { line: self.line(), details, notes }
    }

    fn line(&self) -> String {
        let shard = self.shard.as_ref().map(|own| format!("Shard {own}: ")).unwrap_or_default();
        let diagnosed = self.servers.saturating_sub(self.undiagnosed_servers);
        let (servers, rest) = match self.undiagnosed_servers {
            0 => (counted(self.servers, "server"), String::new()),
            _ if diagnosed == 0 => {
                return format!(
                    "{shard}None of {} was diagnosed.",
                    counted(self.servers, "server")
                );
            }
            n => {
                (counted(diagnosed, "diagnosed server"), format!(", {} not diagnosed", grouped(n)))
            }
        };
        match self.throttled_servers {
            0 => format!("{shard}None of {servers} is throttled{rest}."),
            1 => format!("{shard}1 of {servers} is throttled{rest}."),
            n => format!("{shard}{} of {servers} are throttled{rest}.", grouped(n)),
        }
    }

    fn counts(&self) -> Table {
        let heads = [
            "|fleet",
            "|observations",
            "|completed",
            "|shard",
            "|servers",
            "|undiagnosed_servers",
            "|throttled_servers",
            "|throttled",
            "|not_the_storage",
            "|healthy",
            "|not_enough_evidence",
            "|partial",
            "|failed",
            "|wait_s",
            "|unpriced_servers",
        ];
        let mut table = Table::new("", &heads).named("fleet");
        let number = |n: u64| Cell::number(n.to_string(), float(n));
        table.row(cells![
            self.fleet.as_str(),
            number(self.observations),
            number(self.completed),
            self.shard.as_deref().map_or_else(Cell::none, Cell::from),
            number(self.servers),
            number(self.undiagnosed_servers),
            number(self.throttled_servers),
            number(self.verdicts.throttled),
            number(self.verdicts.not_the_storage),
            number(self.verdicts.healthy),
            number(self.verdicts.not_enough_evidence),
            number(self.partial),
            number(self.failed),
            Cell::number(String::new(), self.wait_s),
            number(self.unpriced_servers),
        ]);
        table
    }

    fn caps(&self) -> Table {
        let heads = ["cap", ">observations", ">throttled for|throttled_s", ">waits|wait_s"];
        let mut table = Table::new("Caps", &heads).named("caps");
        for own in &self.caps {
            table.row(cells![
                own.cap.as_str(),
                grouped(own.observations),
                seconds(own.throttled_s),
                seconds(own.wait_s),
            ]);
        }
        table
    }

    fn longest_waits(&self) -> Table {
        let heads = [
            "server",
            "day",
            "cap",
            "file or disk|subject",
            ">limit",
            "|limit_is_bytes",
            ">throttled for|throttled_s",
            ">waits|wait_s",
            "|fix",
        ];
        let mut table = Table::new("Longest waits", &heads).named("longest_waits");
        for own in &self.longest_waits {
            let limit = |limit: f64| match own.limit_is_bytes {
                true => Cell::number(format!("{} MiB/s", mib(limit)), limit),
                false => Cell::number(format!("{} IOPS", rate(limit)), limit),
            };
            table.row(cells![
                own.server.as_str(),
                own.day.as_deref().map_or_else(Cell::none, Cell::from),
                own.cap.as_str(),
                own.subject.as_str(),
                own.limit.map_or_else(Cell::none, limit),
                if own.limit_is_bytes { "true" } else { "false" },
                seconds(own.throttled_s),
                seconds(own.wait_s),
                own.fix.as_str(),
            ]);
        }
        table
    }

    fn fixes(&self) -> Table {
        let heads = ["currency", ">servers", ">before", ">after", ">difference"];
        let mut table = Table::new("Fixes, per month", &heads).named("fixes");
        for own in &self.fixes {
            table.row(cells![
                own.currency.as_str(),
                grouped(own.servers),
                own.before,
                own.after,
                own.difference,
            ]);
        }
        table
    }

    fn failures(&self) -> Table {
        let mut table = Table::new("Not diagnosed", &["file", "reason"]).named("failures");
        for own in &self.failures {
            table.row(cells![own.file.as_str(), own.reason.as_str()]);
        }
        let more = self.failed.saturating_sub(self.failures.len() as u64);
        if more > 0 {
            table.notes.push(format!("and {} more", grouped(more)));
        }
        table
    }

    fn latencies(&self) -> Option<Table> {
        let own = self.latency?;
        let heads = ["|samples", "|p50_ns", "|p95_ns", "|p99_ns"];
        let mut table = Table::new("", &heads).named("latency");
        let values = [own.samples, own.p50_ns, own.p95_ns, own.p99_ns];
        table.row(values.map(|n| Cell::number(n.to_string(), float(n))).to_vec());
        Some(table)
    }
}

/// Returns a number with its noun in the singular or plural.
fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

fn seconds(seconds: f64) -> Cell {
    Cell::number(time(seconds * 1e9).to_string(), seconds)
}

impl Report for FleetDiagnosisReport {
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.counts(), self.caps(), self.longest_waits(), self.fixes()];
        tables.extend(self.latencies());
        tables.push(self.failures());
        tables.retain(|table| !table.rows.is_empty());
        tables
    }

    fn lead(&self) -> Option<Answer> {
        Some(self.answer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Format;
    use weir_units::Money;

    fn report() -> FleetDiagnosisReport {
        let money = |text: &str| text.parse::<Money>().expect("money");
        FleetDiagnosisReport {
            fleet: "0123456789abcdef".to_owned(),
            observations: 40,
            completed: 40,
            servers: 40,
            throttled_servers: 12,
            failed: 1,
            wait_s: 7_200.0,
            caps: vec![FleetCapReport {
                cap: "disk_iops".to_owned(),
                observations: 12,
                throttled_s: 3_600.0,
                wait_s: 7_200.0,
            }],
            fixes: vec![FleetFixReport {
                currency: "USD".to_owned(),
                servers: 10,
                before: Amount(money("100")),
                after: Amount(money("250.5")),
                difference: Delta::between(money("100"), money("250.5")),
            }],
            unpriced_servers: 2,
            failures: vec![FleetFailureReport {
                file: "db7.weirobs".to_owned(),
                reason: "it is empty".to_owned(),
            }],
            ..FleetDiagnosisReport::default()
        }
    }

    #[test]
    fn the_answer_is_the_number_of_throttled_servers() {
        let text = report().render(Format::Text);
        let lead = "12 of 40 servers are throttled.\n  disk_iops has the longest waits: 7,200 s of 7,200 s in total\n  \
            the fixes of 10 servers cost 150.50 USD more per month; those of 2 have no price\n";
        assert!(text.starts_with(lead), "{text}");
        assert!(text.contains("db7.weirobs"), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&report().render(Format::Json)).expect("JSON");
        assert_eq!(json["fixes"][0]["difference"], 150.5);
    }

    #[test]
    fn the_unit_of_a_limit_is_that_of_its_cap() {
        let server = |limit, limit_is_bytes| FleetServerReport {
            server: "db1".to_owned(),
            day: None,
            cap: "log_rate".to_owned(),
            subject: "log".to_owned(),
            limit: Some(limit),
            limit_is_bytes,
            throttled_s: 60.0,
            wait_s: 60.0,
            fix: String::new(),
        };
        let mut own = report();
        own.longest_waits = vec![server(f64::from(30 << 20), true), server(500.0, false)];
        let text = own.render(Format::Text);
        assert!(text.contains("30.0 MiB/s") && text.contains("500 IOPS"), "{text}");
    }

    #[test]
    fn servers_without_a_diagnosis_are_not_called_healthy() {
        let check = |servers, undiagnosed_servers, throttled_servers, expect: &str| {
            let own = FleetDiagnosisReport {
                servers,
                undiagnosed_servers,
                throttled_servers,
                ..FleetDiagnosisReport::default()
            };
            assert_eq!(own.line(), expect);
        };
        check(2_000, 2_000, 0, "None of 2,000 servers was diagnosed.");
        check(3, 1, 0, "None of 2 diagnosed servers is throttled, 1 not diagnosed.");
        check(3, 2, 1, "1 of 1 diagnosed server is throttled, 2 not diagnosed.");
        check(9, 1, 4, "4 of 8 diagnosed servers are throttled, 1 not diagnosed.");
        check(9, 0, 4, "4 of 9 servers are throttled.");
    }

    #[test]
    fn a_healthy_shard_says_so() {
        let shard = Some("2/8".to_owned());
        let own = FleetDiagnosisReport { shard, servers: 1, ..FleetDiagnosisReport::default() };
        assert_eq!(own.render(Format::Text), "Shard 2/8: None of 1 server is throttled.\n");
    }
}
