//! The kinds nearest to an unknown input.
//!
//! Each kind has signs that its inputs show: words of their heads, keys of their documents, rows
//! with a number of fields. For an unrecognized input, the message names the kinds that share most
//! signs with it, and the missing signs.

use std::collections::HashSet;
use std::fmt;

/// The most kinds named.
const NAMED: usize = 3;
/// The bytes of an input that are searched for signs.
const GLANCE: usize = 1 << 16;
/// The most alternatives of a sign that are named.
const ALTERNATIVES: usize = 4;

/// A kind that an input is near to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// The name of the kind.
    pub kind: &'static str,
    /// Its signs that the input shows.
    pub has: Vec<String>,
    /// Its signs that the input lacks; none if only its values do not fit.
    pub lacks: Vec<String>,
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (it has {}", self.kind, self.has.join(", "))?;
        match self.lacks.is_empty() {
            true => write!(f, ", but neither in a head nor in rows that are read)"),
            false => write!(f, ", but lacks {})", self.lacks.join(" and ")),
        }
    }
}

/// A sign of a kind.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// One of these words, without regard to case.
    Word(&'static [&'static str]),
    /// One of these texts.
    Text(&'static [&'static str]),
    Json,
    Xml,
    /// A first row of mostly numbers: separator, least and most fields.
    Rows(char, usize, usize),
}
use Sign::{Json, Rows, Text, Word, Xml};

/// The signs of each kind of text; a kind with several tables has several entries.
const SIGNS: &[(&str, &[Sign])] = &[
    (
        "azure-monitor",
        &[Json, Word(&["timeseries"]), Word(&["timeStamp"]), Word(&["timespan", "namespace"])],
    ),
    (
        "cloudwatch",
        &[
            Json,
            Word(&["MetricDataResults", "Datapoints", "MetricDataQueries"]),
            Word(&["Timestamps", "Timestamp"]),
            Word(&["Label"]),
        ],
    ),
    (
        "cloudwatch-stream",
        &[Json, Word(&["metric_stream_name"]), Word(&["metric_name"]), Word(&["dimensions"])],
    ),
    (
        "perfmon",
        &[
            Text(&["(PDH-CSV", "(PDH-TSV"]),
            Text(&["\\PhysicalDisk(", "\\LogicalDisk(", "\\Processor(", "\\SQLServer:"]),
        ],
    ),
    (
        "get-counter",
        &[
            Word(&["Timestamp", "TimeGenerated", "CounterDateTime"]),
            Word(&["Path", "CounterPath", "CounterName", "Counter"]),
            Word(&["CookedValue", "CounterValue", "Value"]),
        ],
    ),
    (
        "get-counter-readings",
        &[Text(&["\\\\"]), Text(&["Readings", "CounterSamples", "Timestamp"]), Text(&[" :\n"])],
    ),
    (
        "iostat-json",
        &[Json, Word(&["sysstat"]), Word(&["statistics"]), Word(&["avg-cpu", "disk_device"])],
    ),
    ("sadf-j", &[Json, Word(&["sysstat"]), Word(&["file-date"]), Word(&["statistics"])]),
    ("sadf-x", &[Xml, Word(&["sysstat"]), Word(&["sysdata-version", "file-date", "statistics"])]),
    ("sadf-d", &[Word(&["hostname"]), Word(&["timestamp"]), Word(&["interval"]), Text(&["# "])]),
    ("sadf-p", &[Word(&["tps", "rkB/s", "%usr", "%user", "%idle"]), Rows('\t', 6, 6)]),
    (
        "iostat",
        &[
            Word(&["Device"]),
            Word(&["r/s", "tps", "rkB/s", "kB_read/s"]),
            Word(&["w/s", "tps", "wkB/s", "kB_wrtn/s"]),
            Word(&["avg-cpu", "%util"]),
        ],
    ),
    (
        "sar",
        &[
            Word(&["DEV", "CPU"]),
            Word(&["tps", "%user", "%usr"]),
            Word(&["%idle", "rd_sec/s", "rkB/s", "bread/s"]),
            Word(&["Average", "Linux"]),
        ],
    ),
    (
        "vmstat",
        &[Word(&["bi"]), Word(&["bo"]), Word(&["us"]), Word(&["wa"]), Word(&["procs", "swpd"])],
    ),
    (
        "vmstat-d",
        &[Word(&["disk-"]), Word(&["reads"]), Word(&["writes"]), Word(&["merged", "sectors"])],
    ),
    ("diskstats", &[Rows(' ', 14, 20)]),
    (
        "diskstats-json",
        &[
            Json,
            Word(&["device", "diskio"]),
            Word(&["reads_completed", "tags"]),
            Word(&["sectors_read", "fields"]),
        ],
    ),
    (
        "sqlserver",
        &[
            Word(&["num_of_reads", "num_of_bytes_read"]),
            Word(&["num_of_writes", "num_of_bytes_written"]),
            Word(&["io_stall", "io_stall_read_ms", "read_io_latency_ms", "avg_read_stall_ms"]),
            Word(&["database_name", "db_name", "database_id"]),
        ],
    ),
    (
        "sqlserver",
        &[
            Word(&["wait_type"]),
            Word(&["waiting_tasks_count", "WaitingTasks"]),
            Word(&["wait_time_ms", "wait_s", "WaitTimesPerMinute"]),
        ],
    ),
    ("sqlserver", &[Word(&["object_name"]), Word(&["counter_name"]), Word(&["cntr_value"])]),
    (
        "sqlserver",
        &[
            Word(&["end_time"]),
            Word(&["avg_cpu_percent"]),
            Word(&["avg_data_io_percent", "io_requests"]),
        ],
    ),
    (
        "sqlserver",
        &[
            Word(&["physical_name", "PhysicalFullName"]),
            Word(&["type_desc", "FileType"]),
            Word(&["size_mb", "SizeMB", "size"]),
            Word(&["file_id", "LogicalName"]),
        ],
    ),
    ("sqlserver", &[Word(&["measurement"]), Word(&["servername"]), Word(&["type"])]),
    ("pgstat", &[Word(&["xacts"]), Word(&["blocks"]), Word(&["commit"]), Word(&["rollback"])]),
    (
        "postgres",
        &[Word(&["datname"]), Word(&["blks_read"]), Word(&["blks_hit"]), Word(&["xact_commit"])],
    ),
    (
        "postgres",
        &[Word(&["backend_type"]), Word(&["object"]), Word(&["context"]), Word(&["reads"])],
    ),
    ("postgres", &[Word(&["wait_event_type"]), Word(&["wait_event"]), Word(&["state"])]),
    (
        "postgres",
        &[
            Word(&["checkpoints_timed", "num_timed"]),
            Word(&["checkpoints_req", "num_requested"]),
            Word(&["buffers_checkpoint", "buffers_written"]),
        ],
    ),
    ("postgres", &[Word(&["wal_records"]), Word(&["wal_bytes"]), Word(&["wal_write"])]),
    (
        "sqlserver-errorlog",
        &[
            Text(&[" spid"]),
            Text(&[" Server ", " Backup ", " Logon "]),
            Text(&["Database backed up", "Microsoft SQL Server"]),
        ],
    ),
    (
        "sqlserver-backup",
        &[Text(&["successfully processed"]), Text(&[" pages in "]), Text(&["MB/sec"])],
    ),
    (
        "backup-history",
        &[
            Word(&["backup_start_date"]),
            Word(&["backup_finish_date"]),
            Word(&["backup_size", "compressed_backup_size", "backup_set_id"]),
        ],
    ),
    ("backup-media", &[Word(&["media_set_id"]), Word(&["physical_device_name"])]),
    (
        "pgbackrest",
        &[
            Text(&["backup command begin", "restore command begin"]),
            Text(&["backup size = ", "restore size = "]),
            Text(&["command end: completed successfully"]),
        ],
    ),
    (
        "pg-basebackup",
        &[Text(&["pg_basebackup: "]), Text(&[" kB (100%)"]), Text(&["base backup completed"])],
    ),
    (
        "wal-g",
        &[
            Text(&["Starting a new tar bundle", "Starting part "]),
            Text(&["Finished writing part "]),
            Text(&["Wrote backup with name "]),
        ],
    ),
    ("fio-iolog", &[Text(&["fio version "]), Text(&["iolog"])]),
    ("blkparse", &[Rows(' ', 7, 12), Text(&[" Q ", " C ", " D "]), Text(&[" + "])]),
    ("msr-cambridge", &[Rows(',', 7, 7), Text(&[",Read,", ",Write,"])]),
    ("cloudphysics", &[Word(&["lbn"]), Word(&["op", "cmd"]), Word(&["size", "len", "length"])]),
    ("spc", &[Rows(',', 5, 6), Text(&[",R,", ",W,", ",r,", ",w,"])]),
    ("disksim", &[Rows(' ', 5, 5)]),
    ("mqsim", &[Rows(' ', 5, 5)]),
    (
        "trace-csv",
        &[
            Word(&["time", "timestamp"]),
            Word(&["op", "operation", "type", "rw", "opcode"]),
            Word(&["offset", "lba", "sector"]),
            Word(&["size", "length", "bytes", "sectors"]),
        ],
    ),
    ("fio", &[Json, Word(&["fio version", "fio"]), Word(&["jobs"]), Word(&["jobname"])]),
    ("diskspd-xml", &[Xml, Word(&["Results"]), Word(&["TimeSpan"]), Word(&["Profile"])]),
    (
        "diskspd",
        &[
            Text(&["Command Line:"]),
            Text(&["Results for timespan", "timespan:"]),
            Text(&["thread |"]),
            Text(&["I/Os"]),
        ],
    ),
    (
        "iometer-icf",
        &[
            Text(&["Version "]),
            Text(&["'TEST SETUP", "'ACCESS SPECIFICATIONS", "'RESULTS DISPLAY"]),
        ],
    ),
    (
        "hammerdb-profile",
        &[Word(&["calls"]), Word(&["avg_ms"]), Word(&["p99_ms"]), Text(&["PROC: ", "Profile"])],
    ),
    ("hammerdb-counter", &[Word(&["Hammerdb"]), Word(&["tpm"]), Text(&["Transaction Counter"])]),
    ("hammerdb-table", &[Word(&["NOPM"]), Word(&["TPM"])]),
    (
        "hammerdb",
        &[Word(&["Hammerdb"]), Word(&["NOPM"]), Text(&["System achieved", "Active Virtual Users"])],
    ),
    (
        "pgbench",
        &[
            Text(&["transaction type:"]),
            Text(&["scaling factor:"]),
            Text(&["number of transactions"]),
            Word(&["tps"]),
        ],
    ),
    ("pgbench-table", &[Word(&["collected"]), Word(&["samples"]), Word(&["avg_latency"])]),
    ("pgbench-log", &[Rows(' ', 6, 20)]),
    ("fio-log", &[Rows(',', 4, 6)]),
];

/// Returns the kinds that share most signs with the beginning of a text, the nearest first.
pub(super) fn nearest(text: &str) -> Vec<Nearest> {
    let seen = Seen::new(text);
    let mut all: Vec<_> = SIGNS.iter().filter_map(|(kind, signs)| seen.rate(kind, signs)).collect();
    // Of two kinds with equal matches, the one that lacks less is nearer.
    all.sort_by_key(|(points, own)| (std::cmp::Reverse(*points), own.lacks.len()));
    let mut named: Vec<Nearest> = Vec::new();
    for (_, own) in all {
        if named.len() < NAMED && named.iter().all(|other| other.kind != own.kind) {
            named.push(own);
        }
    }
    named
}

/// The signs of an input.
struct Seen<'a> {
    text: &'a str,
    words: HashSet<String>,
    first_row: &'a str,
}

impl<'a> Seen<'a> {
    fn new(text: &'a str) -> Self {
        let mut end = text.len().min(GLANCE);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text[..end].trim_start_matches('\u{feff}');
        let is_end = |c: char| c.is_whitespace() || ",;|\"<>{}[]=:()".contains(c);
        let words = text.split(is_end).filter(|word| !word.is_empty());
        let words = words.map(str::to_ascii_lowercase).collect();
        let first_row = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        Self { text, words, first_row }
    }

    /// Returns the signs of a kind that are present, and their weight; `None` if there are none.
    fn rate(&self, kind: &'static str, signs: &[Sign]) -> Option<(u32, Nearest)> {
        let mut own = Nearest { kind, has: Vec::new(), lacks: Vec::new() };
        let mut points = 0;
        for sign in signs {
            match self.find(sign) {
                Some(found) => {
                    // One word may match two signs.
                    if !own.has.contains(&found) {
                        own.has.push(found);
                    }
                    points += sign.points();
                }
                None => own.lacks.push(sign.to_string()),
            }
        }
        (points > 0).then_some((points, own))
    }

    /// Returns the matching words of a sign, if it is present.
    fn find(&self, sign: &Sign) -> Option<String> {
        match sign {
            Word(words) => {
                let is_there = |word: &&&str| self.words.contains(&word.to_ascii_lowercase());
                words.iter().find(is_there).map(|word| format!("{word:?}"))
            }
            Text(texts) => {
                let found = texts.iter().find(|text| self.text.contains(**text));
                found.map(|text| format!("{text:?}"))
            }
            Json => self.text.trim_start().starts_with(['{', '[']).then(|| sign.to_string()),
            Xml => self.text.trim_start().starts_with('<').then(|| sign.to_string()),
            Rows(separator, least, most) => {
                let fields: Vec<_> = match separator {
                    ' ' => self.first_row.split_whitespace().collect(),
                    _ => self.first_row.split(*separator).map(str::trim).collect(),
                };
                let numbers = fields.iter().filter(|field| field.parse::<f64>().is_ok()).count();
                let fits = (*least..=*most).contains(&fields.len()) && numbers * 2 > fields.len();
                fits.then(|| format!("rows of {} fields", fields.len()))
            }
        }
    }
}

impl Sign {
    /// Returns the weight of a sign: many inputs are JSON, or rows of numbers.
    const fn points(self) -> u32 {
        match self {
            Word(_) | Text(_) => 2,
            Json | Xml | Rows(..) => 1,
        }
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word(all) | Text(all) => {
                let named: Vec<_> =
                    all.iter().take(ALTERNATIVES).map(|text| format!("{text:?}")).collect();
                let one = if named.len() > 1 { "one of " } else { "" };
                write!(f, "{one}{}", named.join(", "))
            }
            Json => f.write_str("the form of JSON"),
            Xml => f.write_str("the form of XML"),
            Rows(separator, least, most) => {
                let between = match separator {
                    ' ' => "spaces",
                    '\t' => "tabs",
                    _ => "commas",
                };
                match least == most {
                    true => write!(f, "rows of {least} fields between {between}"),
                    false => write!(f, "rows of {least} to {most} fields between {between}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{self, By};

    #[test]
    fn every_kind_of_text_has_signs() {
        // All logs of fio look alike.
        let is_alike = |name: &str| ["fio-lat-log", "fio-bw-log", "fio-iops-log"].contains(&name);
        for kind in kind::all() {
            let is_text = matches!(kind.recognizes, By::Text(_));
            let has_signs = SIGNS.iter().any(|(name, _)| *name == kind.name);
            assert_eq!(has_signs, is_text && !is_alike(kind.name), "{}", kind.name);
        }
    }

    #[test]
    fn the_nearest_says_what_is_there_and_what_is_not() {
        let all = nearest("Disk r/s w/s %util\nsda 1.0 2.0 3.0\n");
        assert_eq!(
            all.first().map(ToString::to_string).as_deref(),
            Some("iostat (it has \"r/s\", \"w/s\", \"%util\", but lacks \"Device\")")
        );
        assert_eq!(nearest("").len(), 0);
        assert_eq!(nearest("nothing of the kind\n").len(), 0);
    }
}
