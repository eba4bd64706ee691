//! Runs as they are observed: by Weir itself, or by `iostat` beside the messages of SQL Server.

use crate::world::{Change, Run, World};
use std::fmt::Write as _;
use weir_catalog::Catalog;
use weir_diagnose::system::Mapping;
use weir_diagnose::{Question, question, report};
use weir_import::{Input, Options, import};
use weir_observe::run::{Sample, VolumeCounters};
use weir_observe::{Header, Observation, Source, SourceKind, Writer};
use weir_report::diagnosis::{DiagnosisReport, Group};

/// The observation of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `weir sim --observe`.
    Weir,
    /// `iostat -xt 2`, and what the client of SQL Server shows.
    Iostat,
}

impl Tool {
    pub(crate) const ALL: [Self; 2] = [Self::Weir, Self::Iostat];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Weir => "weir sim --observe",
            Self::Iostat => "iostat -xt 2 and messages of SQL Server",
        }
    }

    pub(crate) fn diagnose(self, world: &World, run: &Run, catalog: &Catalog) -> DiagnosisReport {
        match self {
            Self::Weir => diagnose(world, &as_weir(run), &Mapping::new(), catalog),
            Self::Iostat => {
                let inputs = vec![
                    ("iostat.txt", iostat(world, run)),
                    ("messages.txt", messages(world, run)),
                ];
                diagnose(world, &imported(inputs), &places(world), catalog)
            }
        }
    }
}

/// Diagnoses what the client of SQL Server shows, and nothing else.
pub(crate) fn from_messages(world: &World, text: &str, catalog: &Catalog) -> DiagnosisReport {
    let observation = imported(vec![("messages.txt", text.to_owned())]);
    diagnose(world, &observation, &places(world), catalog)
}

/// Returns where the folders of backups are.
fn places(world: &World) -> Mapping {
    world.targets.iter().map(|name| (format!("/backup/{name}"), name.clone())).collect()
}

fn diagnose(
    world: &World,
    observation: &Observation,
    mapping: &Mapping,
    catalog: &Catalog,
) -> DiagnosisReport {
    let edition = world.layout.edition.as_deref().and_then(|name| catalog.edition(name).ok());
    let question = Question { layout: Some(&world.layout), edition, catalog, mapping };
    let contents = observation.contents();
    let (system, unmatched) = question.system(contents).expect("a system");
    assert_eq!(unmatched, []);
    let facts = question::follow(&system, observation);
    question.answer(contents, &system, &facts, report::report)
}

/// Returns the changes that a finding of a limit stands for.
pub(crate) fn named(report: &DiagnosisReport) -> Vec<Change> {
    let own = report.findings.iter().find(|own| own.rule == "backup-limit");
    let Some(own) = own.filter(|own| own.group != Group::Evidence) else { return Vec::new() };
    let has = |words: &str| own.finding.contains(words);
    match () {
        () if own.cap.is_some() && has("its source") => vec![Change::Source],
        () if own.cap.is_some() && has("its target") => vec![Change::Target],
        () if own.cap.is_some() && has("the machine") => vec![Change::Machine],
        () if has("too few writes") => vec![Change::Stripes],
        () if has("is limited by its buffers") => vec![Change::Transfers, Change::Buffers],
        () if has("waits for compression") => vec![Change::Compression],
        () => Vec::new(),
    }
}

fn as_weir(run: &Run) -> Observation {
    let about = std::collections::BTreeMap::new();
    let source = Source { kind: SourceKind::VirtualRun, by: "weir".to_owned(), about };
    let header = Header { contents: run.shape.contents(), ..Header::new(source) };
    let mut writer = Writer::new(Vec::new(), &header).expect("a header");
    let mut row = Vec::new();
    for (at, sample) in &run.samples {
        run.shape.row(sample, &mut row);
        writer.sample(*at, &row).expect("a sample");
    }
    let bytes = writer.finish(true).expect("an end");
    Observation::read(&bytes[..]).expect("an observation")
}

fn imported(inputs: Vec<(&str, String)>) -> Observation {
    let inputs = inputs.into_iter().map(|(name, text)| Input {
        name: name.to_owned(),
        bytes: Box::new(std::io::Cursor::new(text.into_bytes())),
        kind: None,
    });
    let imported = import(inputs.collect(), &Options::default(), Vec::new());
    let (bytes, _) = imported.unwrap_or_else(|(name, error)| panic!("{name}: {error}"));
    Observation::read(&bytes[..]).expect("an observation")
}

/// Seconds between two reports.
const EVERY: usize = 2;
/// Reports of idle disks before and behind the backup.
const IDLE: usize = 10;

/// Returns how busy the processors of a machine were, all of which compress.
fn processors(world: &World, before: &Sample, after: &Sample) -> f64 {
    let Some((_, rate, threads)) = world.compression else { return 0.02 };
    let mib = (after.backups[0].bytes - before.backups[0].bytes) as f64 / 1_048_576.0;
    (mib / (rate * threads) as f64 / EVERY as f64).min(1.0)
}

fn iostat(world: &World, run: &Run) -> String {
    let mut text = "Linux 3.10.0 (db1) \t11/22/2026 \t_x86_64_\t(8 CPU)\n\n".to_owned();
    let last = run.samples.len() - 1;
    let at = |second: usize| -> &Sample {
        let second = second.saturating_sub(IDLE * EVERY).min(last);
        &run.samples[second].1
    };
    for second in (0..=last + 2 * IDLE * EVERY).step_by(EVERY) {
        let _ = writeln!(text, "11/22/2026 10:{:02}:{:02}", second / 60, second % 60);
        let earlier = second.checked_sub(EVERY);
        let busy = earlier.map_or(0.01, |earlier| processors(world, at(earlier), at(second)));
        let _ = writeln!(
            text,
            "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n          {:.2}    0.00    0.00    \
             0.00    0.00   {:.2}\n",
            100.0 * busy,
            100.0 * (1.0 - busy)
        );
        text += "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   \
                 await  svctm  %util\n";
        for (index, volume) in run.shape.volumes.iter().enumerate() {
            let name = &volume.name;
            let Some(earlier) = second.checked_sub(EVERY) else {
                let _ = writeln!(
                    text,
                    "{name} 0.00 0.01 1.37 2.11 12.34 56.78 39.72 0.01 2.22 0.31 0.11"
                );
                continue;
            };
            let (before, after) = (&at(earlier).volumes[index], &at(second).volumes[index]);
            let _ = writeln!(text, "{name} {}", line(before, after));
        }
        text.push('\n');
    }
    text
}

fn line(before: &VolumeCounters, after: &VolumeCounters) -> String {
    let more = |of: fn(&VolumeCounters) -> u64| (of(after) - of(before)) as f64;
    let waited = |own: &VolumeCounters| -> u64 { own.waits.iter().map(|(_, ns)| ns).sum() };
    let ns = (waited(after) - waited(before)) as f64 + more(|own| own.medium_ns);
    let (reads, writes) = (more(|own| own.reads), more(|own| own.writes));
    let (read, written) = (more(|own| own.read_bytes), more(|own| own.write_bytes));
    let all = (reads + writes).max(1.0);
    let seconds = EVERY as f64;
    format!(
        "0.00 0.00 {:.2} {:.2} {:.2} {:.2} {:.2} {:.2} {:.2} 0.00 {:.2}",
        reads / seconds,
        writes / seconds,
        read / 1024.0 / seconds,
        written / 1024.0 / seconds,
        (read + written) / all / 512.0,
        ns / 1e9 / seconds,
        ns / all / 1e6,
        (more(|own| own.busy_ns) / 1e7 / seconds).min(100.0),
    )
}

pub(crate) fn messages(world: &World, run: &Run) -> String {
    let files: Vec<String> = (0..world.stripes)
        .map(|file| {
            let at = usize::try_from(file).expect("few") % world.targets.len();
            format!("DISK = N'/backup/{}/{file}.bak'", world.targets[at])
        })
        .collect();
    let mut options = format!("MAXTRANSFERSIZE = {}", world.transfer);
    if let Some(buffers) = world.buffers {
        let _ = write!(options, ", BUFFERCOUNT = {buffers}");
    }
    if world.compression.is_some() {
        options += ", COMPRESSION";
    }
    let end = (IDLE * EVERY) as f64 + run.report.elapsed_s;
    format!(
        "BACKUP DATABASE [db] TO {} WITH {options}\nProcessed {pages} pages for database 'db', file \
         'db' on file 1.\nProcessed 0 pages for database 'db', file 'db_log' on file 1.\n{}\n\nCompletion \
         time: 2026-11-22T10:{:02}:{:06.3}+00:00\n",
        files.join(", "),
        run.report.message.as_deref().expect("it came to its end"),
        (end / 60.0).floor(),
        end % 60.0,
        pages = run.report.bytes / 8192,
    )
}
