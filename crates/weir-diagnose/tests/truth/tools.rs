//! Runs in the formats of real tools: text that is imported like any other.

use crate::world::{RUN, Run, World};
use std::fmt::Write as _;
use weir_catalog::Catalog;
use weir_diagnose::system::Mapping;
use weir_diagnose::{Question, question, report};
use weir_import::{Input, Options, import};
use weir_observe::Observation;
use weir_observe::run::VolumeCounters;
use weir_report::diagnosis::{DiagnosisReport, Group, VerdictName};

/// A tool, and how it samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `iostat -xt 5`.
    Iostat,
    /// `iostat -xzt 5`, which leaves idle devices out.
    IostatBusy,
    /// `sys.dm_io_virtual_file_stats`, at the beginning and the end.
    FileStatistics,
    /// Metrics of Azure Monitor, each minute.
    AzureMonitor,
}

impl Tool {
    pub(crate) const ALL: [Self; 4] =
        [Self::Iostat, Self::IostatBusy, Self::FileStatistics, Self::AzureMonitor];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Iostat => "iostat -xt 5",
            Self::IostatBusy => "iostat -xzt 5",
            Self::FileStatistics => "file statistics at two points",
            Self::AzureMonitor => "Azure Monitor, minutes",
        }
    }

    /// Returns whether the tool can observe a world: instances have files, machines disks and
    /// files.
    pub(crate) fn observes(self, world: &World) -> bool {
        self == Self::FileStatistics || !world.is_instance()
    }

    /// Diagnoses what the tool reports, by the layout.
    pub(crate) fn diagnose(self, world: &World, run: &Run, catalog: &Catalog) -> Called {
        let text = match self {
            Self::Iostat => iostat(run, false),
            Self::IostatBusy => iostat(run, true),
            Self::FileStatistics => file_statistics(world, run),
            Self::AzureMonitor => azure_monitor(world, run),
        };
        let bytes = Box::new(std::io::Cursor::new(text.clone().into_bytes()));
        let input = Input { name: self.name().to_owned(), bytes, kind: None };
        let imported = import(vec![input], &Options::default(), Vec::new());
        let (bytes, _) = imported.unwrap_or_else(|(_, error)| panic!("{error}\n{text}"));
        let observation = Observation::read(&bytes[..]).expect("an observation");
        let luns = run.names.iter().enumerate().filter(|_| self == Self::AzureMonitor);
        let mapping: Mapping =
            luns.map(|(lun, name)| (format!("LUN {lun}"), name.clone())).collect();
        let edition = world.layout.edition.as_deref().and_then(|name| catalog.edition(name).ok());
        let layout = Some(&world.layout);
        let question = Question { layout, edition, catalog, mapping: &mapping };
        let contents = observation.contents();
        // An idle system may report nothing of its disks.
        let Ok((system, unmatched)) = question.system(contents) else { return Called::Nothing };
        assert_eq!(unmatched, [], "{text}");
        let facts = question::follow(&system, &observation);
        Called::new(&question.answer(contents, &system, &facts, report::report))
    }
}

/// The verdict on a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Called {
    /// Throttled, at a cap of a subject.
    Throttled { cap: Option<String>, subject: String },
    /// Perhaps throttled there.
    Suspected { cap: Option<String>, subject: String },
    /// Not throttled.
    Nothing,
}

impl Called {
    fn new(report: &DiagnosisReport) -> Self {
        let throttling = report.findings.iter().find(|own| own.group == Group::Throttling);
        let suspected = report.findings.iter().find(|own| own.rule == "bursts-or-slow");
        match (report.verdict, throttling, suspected) {
            (VerdictName::Throttled, Some(own), _) => {
                Self::Throttled { cap: own.cap.clone(), subject: own.subject.clone() }
            }
            (VerdictName::NotEnoughEvidence, _, Some(own)) => {
                Self::Suspected { cap: own.cap.clone(), subject: own.subject.clone() }
            }
            _ => Self::Nothing,
        }
    }
}

/// Seconds of a run.
fn seconds() -> usize {
    usize::try_from(RUN).expect("a few minutes")
}

/// Seconds between two reports of iostat.
const EVERY: usize = 5;

fn iostat(run: &Run, leaves_idle_out: bool) -> String {
    let mut text = "Linux 3.10.0 (db1) \t11/22/2026 \t_x86_64_\t(8 CPU)\n\n".to_owned();
    let reports = (0..=seconds() / EVERY).map(|report| report * EVERY);
    for second in reports {
        let _ = writeln!(text, "11/22/2026 10:{:02}:{:02}", second / 60, second % 60);
        let _ = writeln!(
            text,
            "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   \
             await  svctm  %util"
        );
        for (index, name) in run.names.iter().enumerate() {
            // The first report is of the time since the machine started.
            let Some(earlier) = second.checked_sub(EVERY) else {
                let _ = writeln!(
                    text,
                    "{name} 0.00 0.01 1.37 2.11 12.34 56.78 39.72 0.01 2.22 0.31 0.11"
                );
                continue;
            };
            let did = Did::between(&run.volumes[earlier][index], &run.volumes[second][index]);
            if did.operations() == 0.0 && leaves_idle_out {
                continue;
            }
            let seconds = EVERY as f64;
            let (size, await_ms) = match did.operations() {
                0.0 => (0.0, 0.0),
                all => ((did.read + did.written) / all / 512.0, did.ns / all / 1e6),
            };
            let _ = writeln!(
                text,
                "{name} 0.00 0.00 {:.2} {:.2} {:.2} {:.2} {size:.2} {:.2} {await_ms:.2} 0.00 {:.2}",
                did.reads / seconds,
                did.writes / seconds,
                did.read / 1024.0 / seconds,
                did.written / 1024.0 / seconds,
                did.ns / 1e9 / seconds,
                (did.busy_ns / 1e7 / seconds).min(100.0),
            );
        }
        text.push('\n');
    }
    text
}

/// The load of a volume between two moments.
struct Did {
    reads: f64,
    writes: f64,
    read: f64,
    written: f64,
    counted: f64,
    hits: f64,
    ns: f64,
    busy_ns: f64,
}

impl Did {
    fn between(before: &VolumeCounters, after: &VolumeCounters) -> Self {
        let more = |of: fn(&VolumeCounters) -> u64| (of(after) - of(before)) as f64;
        let waited =
            |counters: &VolumeCounters| -> u64 { counters.waits.iter().map(|(_, ns)| ns).sum() };
        Self {
            reads: more(|own| own.reads),
            writes: more(|own| own.writes),
            read: more(|own| own.read_bytes),
            written: more(|own| own.write_bytes),
            counted: more(|own| own.counted_operations),
            hits: more(|own| own.cache_hits),
            ns: (waited(after) - waited(before)) as f64 + more(|own| own.medium_ns),
            busy_ns: more(|own| own.busy_ns),
        }
    }

    fn operations(&self) -> f64 {
        self.reads + self.writes
    }
}

/// Writes two snapshots of file statistics, of files on whole disks and stripes. Only a managed
/// instance counts the queues of a governor. A managed instance counts the queues of its governor,
/// a server on a machine does not know of them; the log rate has a wait of its own.
fn file_statistics(world: &World, run: &Run) -> String {
    let mut text = "sample_time,database_name,file_name,type_desc,num_of_reads,num_of_bytes_read,\
        io_stall_read_ms,io_stall_queued_read_ms,num_of_writes,num_of_bytes_written,\
        io_stall_write_ms,io_stall_queued_write_ms\n"
        .to_owned();
    let ends = ["2026-11-22 10:00:00".to_owned(), format!("2026-11-22 10:{:02}:00", RUN / 60)];
    for (at, part) in ends.iter().zip([0.0, 1.0]) {
        for job in &run.jobs {
            let kind = if job.export == "log" { "LOG" } else { "ROWS" };
            let _ = write!(text, "{at},db,{},{kind}", job.export);
            let operations = job.sides.iter().map(|(count, ..)| count).sum::<f64>().max(1.0);
            for (count, bytes, ns) in job.sides {
                let waited = |is: fn(&str) -> bool| {
                    let own = job.waits.iter().filter(|(cap, _)| is(cap));
                    own.map(|(_, ns)| *ns as f64).sum::<f64>() * count / operations
                };
                let stall = ns - waited(|cap| cap == "log_rate");
                let queued = match world.is_instance() {
                    true => waited(|cap| cap.starts_with("disk_")),
                    false => 0.0,
                };
                let _ = write!(
                    text,
                    ",{:.0},{:.0},{:.0},{:.0}",
                    part * count,
                    part * bytes,
                    part * stall / 1e6,
                    part * queued / 1e6
                );
            }
            text.push('\n');
        }
    }
    if world.is_instance() {
        text += "\nsample_time,wait_type,waiting_tasks_count,wait_time_ms,signal_wait_time_ms\n";
        let waited = run.jobs.iter().filter_map(|job| job.waits.get("log_rate"));
        let ms = waited.map(|ns| *ns as f64 / 1e6).sum::<f64>();
        let tasks = run.jobs.iter().map(|job| job.sides[1].0).sum::<f64>();
        for (at, part) in ends.iter().zip([0.0, 1.0]) {
            let (tasks, ms) = (part * tasks, part * ms);
            let _ = writeln!(text, "{at},INSTANCE_LOG_RATE_GOVERNOR,{tasks:.0},{ms:.0},0");
        }
    }
    text
}

/// Seconds of a time grain of Azure Monitor.
const GRAIN: usize = 60;

fn azure_monitor(world: &World, run: &Run) -> String {
    let mut metrics: Vec<String> = Vec::new();
    let minutes: Vec<usize> = (0..seconds() / GRAIN).collect();
    let mut add = |name: &str, lun: Option<usize>, values: &[f64]| {
        let dimension = lun.map_or(String::new(), |lun| {
            format!(r#"{{"name": {{"value": "LUN"}}, "value": "{lun}"}}"#)
        });
        let points = minutes.iter().zip(values).map(|(minute, value)| {
            format!(r#"{{"timeStamp": "2026-11-22T10:{minute:02}:00Z", "average": {value}}}"#)
        });
        metrics.push(format!(
            r#"{{"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/host/providers/Microsoft.Insights/metrics/{name}", "unit": "Unspecified", "name": {{"value": "{name}"}}, "timeseries": [{{"metadatavalues": [{dimension}], "data": [{}]}}]}}"#,
            points.collect::<Vec<_>>().join(",")
        ));
    };
    let did = |index: usize| -> Vec<Did> {
        let between = |minute: &usize| {
            let (from, to) = (minute * GRAIN, (minute + 1) * GRAIN);
            Did::between(&run.volumes[from][index], &run.volumes[to][index])
        };
        minutes.iter().map(between).collect()
    };
    let host = &world.layout.hosts[0];
    let mut uncached = vec![(0.0, 0.0); minutes.len()];
    let mut cached = uncached.clone();
    for (lun, volume) in host.volumes.iter().enumerate() {
        let did = did(lun);
        let per_s = |of: fn(&Did) -> f64| -> Vec<f64> {
            did.iter().map(|did| of(did) / GRAIN as f64).collect()
        };
        add("Data Disk Read Operations/Sec", Some(lun), &per_s(|did| did.reads));
        add("Data Disk Write Operations/Sec", Some(lun), &per_s(|did| did.writes));
        add("Data Disk Read Bytes/sec", Some(lun), &per_s(|did| did.read));
        add("Data Disk Write Bytes/sec", Some(lun), &per_s(|did| did.written));
        add("Data Disk Queue Depth", Some(lun), &per_s(|did| did.ns / 1e9));
        let percent = |values: Vec<f64>, limit: Option<weir_core::Limit>| -> Option<Vec<f64>> {
            let limit = limit?.rate.get() as f64;
            Some(values.iter().map(|value| (100.0 * value / limit).min(100.0)).collect())
        };
        let gate = volume.spec.limits.gate;
        let at_disk = per_s(|did| did.counted);
        if let Some(values) = percent(at_disk, gate.iops) {
            add("Data Disk IOPS Consumed Percentage", Some(lun), &values);
        }
        let is_cached = volume.spec.cache != weir_core::CacheMode::None;
        for (minute, did) in did.iter().enumerate() {
            let missed = (did.reads - did.hits).max(0.0) / did.reads.max(1.0);
            let bytes = did.read * missed + did.written;
            uncached[minute].0 += (did.reads * missed + did.writes) / GRAIN as f64;
            uncached[minute].1 += bytes / GRAIN as f64;
            if is_cached {
                cached[minute].0 += did.operations() / GRAIN as f64;
                cached[minute].1 += (did.read + did.written) / GRAIN as f64;
            }
        }
    }
    let sides =
        [("Uncached", &uncached, &host.spec.uncached), ("Cached", &cached, &host.spec.cached)];
    for (side, values, limits) in sides {
        let percent = |limit: Option<weir_core::Limit>, of: fn(&(f64, f64)) -> f64| {
            let limit = limit?.rate.get() as f64;
            let values = values.iter().map(|value| (100.0 * of(value) / limit).min(100.0));
            Some(values.collect::<Vec<_>>())
        };
        if let Some(values) = percent(limits.iops, |value| value.0) {
            add(&format!("VM {side} IOPS Consumed Percentage"), None, &values);
        }
        if let Some(values) = percent(limits.bytes, |value| value.1) {
            add(&format!("VM {side} Bandwidth Consumed Percentage"), None, &values);
        }
    }
    format!(
        r#"{{"cost": 0, "interval": "PT1M", "namespace": "Microsoft.Compute/virtualMachines", "timespan": "a/b", "value": [{}]}}"#,
        metrics.join(",")
    )
}
