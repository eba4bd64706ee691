//! The targets of backups, with their facts.

use super::waits::{Class, resource_waits};
use crate::backup::{self, Backup};
use crate::case::{Case, JudgedSubject};
use crate::system::{File, On, SubjectId};
use weir_layout::Role;
use weir_report::number::time;

/// A disk or stripe with backups only.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// The metric.
    pub(super) on: On,
    /// Name.
    pub(super) name: String,
    /// Disks.
    pub(super) disks: Vec<usize>,
    /// Backup files on it.
    pub(super) files: usize,
    /// Indices of its subjects: itself, otherwise its files.
    pub(super) subjects: Vec<usize>,
}

/// Minimum write rate of a backup, in bytes per second.
const WRITES: f64 = 1e6;

/// Returns all targets of backups. Disks with other files are left out, since advice for backups
/// may be wrong for those.
pub(super) fn targets(case: &Case<'_>) -> Vec<Target> {
    let system = case.system;
    let observed = backup::all(case);
    let disks = (0..system.disks.len()).filter(|disk| system.disks[*disk].stripe.is_none());
    let stripes = 0..system.stripes.len();
    let all = disks.map(On::Disk).chain(stripes.map(On::Stripe));
    let target = |on: On| {
        let files: Vec<(usize, &File)> = system.files_on(on).collect();
        let by_files = !files.is_empty() && files.iter().all(|(_, file)| file.is(Role::Backup));
        let others = files.iter().any(|(_, file)| !file.is(Role::Backup));
        let stripes = written_to(&observed, on).filter(|_| !others);
        let is_one = by_files || stripes.is_some();
        let id = match on {
            On::Disk(disk) => SubjectId::Disk(disk),
            On::Stripe(stripe) => SubjectId::Stripe(stripe),
        };
        let disks = system.disks_of(id);
        is_one.then(|| {
            let whole = case.subject(id).map(|judged| vec![judged.index]);
            let columns = || {
                let columns = disks.iter().filter_map(|disk| case.subject(SubjectId::Disk(*disk)));
                let columns: Vec<usize> = columns.map(|judged| judged.index).collect();
                (!columns.is_empty()).then_some(columns)
            };
            let of_files = || {
                let of = files.iter().filter_map(|(file, _)| case.subject_of_file(*file));
                of.map(|judged| judged.index).collect()
            };
            let subjects = whole.or_else(columns).unwrap_or_else(of_files);
            let files = stripes.unwrap_or(0).max(files.len());
            Target { on, name: case.name(id), disks, files, subjects }
        })
    };
    all.filter_map(target).collect()
}

/// Returns the files that observed backups wrote to a place and to nothing that they read.
fn written_to(all: &[Backup<'_>], on: On) -> Option<usize> {
    let own = all.iter().filter(|own| own.targets.contains(&on) && !own.sources.contains(&on));
    let files = own.map(|own| own.stripes().unwrap_or(1).div_ceil(own.targets.len() as u64));
    files.max().and_then(|files| usize::try_from(files).ok())
}

impl Target {
    /// Returns its subjects.
    pub(super) fn all<'a>(&self, case: &Case<'a>) -> Vec<JudgedSubject<'a>> {
        case.all().filter(|judged| self.subjects.contains(&judged.index)).collect()
    }

    /// Returns the mean write rate in bytes per second, if anything was written.
    pub(super) fn written(&self, case: &Case<'_>) -> Option<f64> {
        let all = self.all(case);
        let per_s = |judged: &JudgedSubject<'_>| {
            let total = &judged.facts.total;
            let written = total.write_bytes.or(total.bytes)?;
            (judged.facts.seconds() > 0.0).then(|| written / judged.facts.seconds())
        };
        let written: f64 = all.iter().filter_map(per_s).sum();
        (written >= WRITES).then_some(written)
    }

    /// Returns the queue depth while it is in use.
    pub(super) fn depth(&self, case: &Case<'_>) -> Option<f64> {
        let depths: Vec<f64> = self
            .all(case)
            .iter()
            .filter(|judged| judged.facts.depth.count() > 0)
            .map(|judged| judged.facts.depth.quantile(0.9))
            .collect();
        (!depths.is_empty()).then(|| depths.iter().sum())
    }

    /// Returns the caps of its disks.
    pub(super) fn caps(&self, case: &Case<'_>) -> Vec<usize> {
        let owners = self.disks.iter();
        owners
            .flat_map(|disk| {
                let caps = case.system.caps.iter().enumerate();
                caps.filter(|(_, cap)| cap.owner == crate::system::Owner::Disk(*disk))
                    .map(|(index, _)| index)
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Returns the waits of backups, if known.
pub(super) fn waits(case: &Case<'_>) -> Option<String> {
    let waits = resource_waits(case).into_iter();
    let own: Vec<_> = waits.filter(|wait| Class::from_name(&wait.name) == Class::Backup).collect();
    let words =
        own.iter().take(3).map(|wait| format!("{} {}", wait.name, time(wait.time_ms * 1e6)));
    (!own.is_empty()).then(|| words.collect::<Vec<_>>().join(", "))
}

/// As article 004 measured it: files for each disk, and in all.
pub(super) const FILES_PER_DISK: usize = 4;

/// Files in total.
pub(super) const FILES: usize = 8;

/// Returns the command of a backup to `files` files.
pub(super) fn command(files: usize) -> String {
    let disks = (1..=files).map(|n| format!("DISK = N'..\\{n}.bak'")).collect::<Vec<_>>();
    format!(
        "BACKUP DATABASE .. TO {} WITH MAXTRANSFERSIZE = 4194304, COMPRESSION",
        disks.join(", ")
    )
}
