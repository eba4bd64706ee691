//! Metrics of databases under load.
//!
//! | metric | is |
//! |---|---|
//! | `batches_per_s`, `transactions_per_min` | throughput of the users |
//! | `transaction_ms` | time between two transactions, of a single user the mean of one |
//! | `cpu_pct` | busy share of the schedulers |
//! | `wait_pct:PREFIX` | share of waits whose name has this prefix |
//! | `top_wait` | the wait class with the longest total, like `PAGEIOLATCH` |
//! | `read_ms:FILES`, `write_ms:FILES`, `io_ms:FILES` | mean latency of reads, writes, both |
//! | `medium_ms:FILES` | the medium's part of it, on average over reads and writes |
//! | `file_iops:FILES`, `file_mib_per_s:FILES`, `file_write_mib_per_s:FILES` | totals of the files
//! |
//! | `evenness:FILES` | bytes written to the file with the fewest, as a share of the most |
//!
//! FILES is the name of a file, a role, or a prefix of names with an asterisk.

use super::name::{Unknown, split};
use std::collections::BTreeMap;
use weir_report::lab::Value;
use weir_report::number::float;
use weir_report::oltp::{DatabaseReport, FileReport};

const MIB: f64 = 1_048_576.0;

pub(super) fn read(metric: &str, run: &DatabaseReport) -> Result<Option<Value>, Unknown> {
    let (name, of) = split(metric);
    if name == "top_wait" {
        return Ok(top_wait(run).map(Value::Text));
    }
    let files = Files { run, files: run.files.iter().filter(|file| is_of(file, of)).collect() };
    let number = match name {
        "batches_per_s" => Some(run.load.batches_per_s),
        "transactions_per_min" => Some(run.load.transactions_per_min),
        "transaction_ms" => {
            let per_min = run.load.transactions_per_min;
            (per_min > 0.0).then(|| 60_000.0 / per_min)
        }
        "cpu_pct" => Some(run.load.cpu_share * 100.0),
        "wait_pct" => wait_share(run, of).map(|share| share * 100.0),
        "read_ms" => files.mean_ms(|file| (file.read_mean_ns, file.num_of_reads)),
        "write_ms" => files.mean_ms(|file| (file.write_mean_ns, file.num_of_writes)),
        "io_ms" => files.mean_ms(|file| {
            let count = file.num_of_reads + file.num_of_writes;
            let reads = file.read_mean_ns * float(file.num_of_reads);
            let stall = reads + file.write_mean_ns * float(file.num_of_writes);
            (stall / float(count.max(1)), count)
        }),
        "medium_ms" => files.medium_ms(),
        "file_iops" => files.per_s(|file| float(file.num_of_reads + file.num_of_writes)),
        "file_mib_per_s" => {
            files.per_s(|file| float(file.num_of_bytes_read + file.num_of_bytes_written) / MIB)
        }
        "file_write_mib_per_s" => files.per_s(|file| float(file.num_of_bytes_written) / MIB),
        "evenness" => files.evenness(),
        _ => return Err(Unknown),
    };
    Ok(number.map(Value::Number))
}

fn is_of(file: &FileReport, of: &str) -> bool {
    let begins = of.strip_suffix('*').is_some_and(|start| file.file.starts_with(start));
    begins || file.role == of || file.file == of
}

/// Returns the class of a wait: `PAGEIOLATCH_SH` and `PAGEIOLATCH_EX` belong to one.
fn class(wait: &str) -> &str {
    wait.find("LATCH_").map_or(wait, |at| &wait[..at + "LATCH".len()])
}

fn top_wait(run: &DatabaseReport) -> Option<String> {
    let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
    for wait in &run.waits {
        *classes.entry(class(&wait.wait)).or_default() += wait.time_ns;
    }
    classes.into_iter().max_by_key(|(_, time)| *time).map(|(class, _)| class.to_owned())
}

/// Returns the share of waits with this prefix; `None` without any waits.
fn wait_share(run: &DatabaseReport, prefix: &str) -> Option<f64> {
    let own = run.waits.iter().filter(|wait| wait.wait.starts_with(prefix));
    (!run.waits.is_empty()).then(|| own.map(|wait| wait.share).sum())
}

/// A selection of a run's files.
struct Files<'a> {
    run: &'a DatabaseReport,
    files: Vec<&'a FileReport>,
}

impl Files<'_> {
    fn sum(&self, of: impl Fn(&FileReport) -> f64) -> f64 {
        self.files.iter().map(|file| of(file)).sum()
    }

    fn per_s(&self, of: impl Fn(&FileReport) -> f64) -> Option<f64> {
        let seconds = self.run.elapsed_s;
        (!self.files.is_empty() && seconds > 0.0).then(|| self.sum(of) / seconds)
    }

    /// Returns the mean of the files' means, weighted by count.
    fn mean_ms(&self, of: impl Fn(&FileReport) -> (f64, u64)) -> Option<f64> {
        let count = self.sum(|file| float(of(file).1));
        let time = self.sum(|file| of(file).0 * float(of(file).1));
        (count > 0.0).then(|| time / count / 1e6)
    }

    fn medium_ms(&self) -> Option<f64> {
        let count = self.sum(|file| float(file.num_of_reads + file.num_of_writes));
        (count > 0.0).then(|| self.sum(|file| float(file.medium_ns)) / count / 1e6)
    }

    fn evenness(&self) -> Option<f64> {
        let written = || self.files.iter().map(|file| file.num_of_bytes_written);
        let (least, most) = (written().min()?, written().max()?);
        (most > 0).then(|| float(least) / float(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_report::oltp::{LoadReport, WaitReport};

    fn file(name: &str, role: &str, writes: u64, written_mib: u64) -> FileReport {
        FileReport {
            file: name.into(),
            role: role.into(),
            num_of_reads: 10,
            num_of_bytes_read: 10 << 20,
            num_of_writes: writes,
            num_of_bytes_written: written_mib << 20,
            read_mean_ns: 4e6,
            write_mean_ns: float(written_mib) * 1e6,
            medium_ns: (10 + writes) * 3_000_000,
            ..FileReport::default()
        }
    }

    fn run() -> DatabaseReport {
        let wait = |wait: &str, time_ns, share| WaitReport {
            wait: wait.into(),
            time_ns,
            share,
            ..WaitReport::default()
        };
        DatabaseReport {
            database: "db".into(),
            mix: None,
            users: 1,
            ramp_s: 0.0,
            elapsed_s: 10.0,
            load: LoadReport {
                batches_per_s: 7.0,
                transactions_per_min: 420.0,
                cpu_share: 0.46,
                ..LoadReport::default()
            },
            waits: vec![
                wait("WRITELOG", 40, 0.4),
                wait("PAGEIOLATCH_SH", 35, 0.35),
                wait("PAGEIOLATCH_EX", 25, 0.25),
            ],
            files: vec![
                file("d1", "data", 10, 40),
                file("d2", "data", 30, 80),
                file("log", "log", 5, 20),
            ],
            series: vec![],
            notes: vec![],
        }
    }

    #[test]
    fn numbers() {
        let run = run();
        let check = |metric: &str, expect: Option<f64>| {
            let number = read(metric, &run).map(|value| value.and_then(|value| value.number()));
            let Ok(Some(number)) = number else {
                return assert_eq!(number, Ok(expect), "{metric}");
            };
            assert!((number - expect.unwrap_or(f64::NAN)).abs() < 1e-9, "{metric}: {number}");
        };
        check("batches_per_s", Some(7.0));
        check("transactions_per_min", Some(420.0));
        check("cpu_pct", Some(46.0));
        check("wait_pct:WRITELOG", Some(40.0));
        check("wait_pct:PAGEIOLATCH", Some(60.0));
        check("wait_pct:PAGEIOLATCH_EX", Some(25.0));
        check("wait_pct:PAGELATCH", Some(0.0));
        check("read_ms:log", Some(4.0));
        check("write_ms:d2", Some(80.0));
        check("write_ms:data", Some((10.0 * 40.0 + 30.0 * 80.0) / 40.0));
        check("write_ms:d*", Some(70.0));
        check("write_ms:d3", None);
        check("io_ms:d2", Some((10.0 * 4.0 + 30.0 * 80.0) / 40.0));
        check("medium_ms:data", Some(3.0));
        check("file_iops:data", Some(6.0));
        check("file_mib_per_s:log", Some(3.0));
        check("file_write_mib_per_s:data", Some(12.0));
        check("evenness:data", Some(0.5));
        check("evenness:tempdb", None);
    }

    #[test]
    fn the_top_wait_is_of_a_class() {
        let top = read("top_wait", &run());
        assert_eq!(top, Ok(Some(Value::Text("PAGEIOLATCH".into()))));
        let none = DatabaseReport { waits: vec![], ..run() };
        assert_eq!((read("top_wait", &none), read("wait_pct:X", &none)), (Ok(None), Ok(None)));
        let classes = ["PAGELATCH_UP", "LATCH_EX", "INSTANCE_LOG_RATE_GOVERNOR"].map(class);
        assert_eq!(classes, ["PAGELATCH", "LATCH", "INSTANCE_LOG_RATE_GOVERNOR"]);
    }

    #[test]
    fn an_unknown_metric_is_none() {
        assert_eq!(read("iops", &run()), Err(Unknown));
    }
}
