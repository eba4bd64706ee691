//! Backups that are kept: what there is, what is wrong with it, what becomes of it, and restores.

use crate::cells;
use crate::number::{float, grouped, mib, time};
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// A backup, in a line.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupLine {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `full`, `differential` or `copy-only`.
    pub kind: String,
    /// `complete`, `incomplete`, or `missing stripes 2, 3`.
    pub state: String,
    /// When it began, in UTC.
    pub created: String,
    /// When it began, as Unix time in milliseconds.
    pub created_unix_ms: u64,
    /// The number of its stripes.
    pub stripes: u32,
    /// The bytes of the sources that it holds, if that is known.
    pub bytes: Option<u64>,
    /// The bytes that its stripes take.
    pub stored_bytes: u64,
    /// The full backup that a differential builds on.
    pub base: Option<String>,
    /// Whether its contents are encrypted.
    pub is_encrypted: bool,
    /// The level of compression.
    pub compression: Option<i32>,
}

/// The backups in some places.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupListReport {
    /// The backups, oldest first.
    pub backups: Vec<BackupLine>,
    /// Files that are no stripes, and the like.
    pub notes: Vec<String>,
}

const LINE: [&str; 9] = [
    "backup|id",
    "name",
    "kind",
    "state",
    "created",
    ">stripes",
    ">MiB|bytes",
    ">MiB stored|stored_bytes",
    "base",
];

fn line(own: &BackupLine) -> Vec<Cell> {
    cells![
        own.id.as_str(),
        own.name.as_str(),
        own.kind.as_str(),
        own.state.as_str(),
        own.created.as_str(),
        grouped(own.stripes.into()),
        own.bytes.map_or_else(Cell::none, |bytes| mib(float(bytes))),
        mib(float(own.stored_bytes)),
        own.base.as_deref().map_or_else(Cell::none, Cell::from),
    ]
}

impl Report for BackupListReport {
    fn tables(&self) -> Vec<Table> {
        let mut table = Table::new("", &LINE).named("backups");
        self.backups.iter().for_each(|own| table.row(line(own)));
        table.notes.clone_from(&self.notes);
        vec![table]
    }
}

/// One backup in detail.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupShowReport {
    /// The backup.
    #[serde(flatten)]
    pub backup: BackupLine,
    /// The instant that its contents are of, in UTC, if the sources were frozen.
    pub frozen: Option<String>,
    /// When it was complete, in UTC.
    pub finished: Option<String>,
    /// The program that wrote it.
    pub tool: Option<String>,
    /// The layout file of the sources, as text.
    pub layout: Option<String>,
    /// Its sources.
    pub sources: Vec<BackupSourceLine>,
    /// Its stripes.
    pub stripe_files: Vec<BackupStripeLine>,
    /// Whatever a reader should know.
    pub notes: Vec<String>,
}

/// A source of a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupSourceLine {
    /// The export's name.
    pub source: String,
    /// Its size.
    pub size_bytes: u64,
    /// The bytes of it that the backup holds.
    pub bytes: u64,
    /// Its role in the layout.
    pub role: Option<String>,
    /// Its tier in the layout.
    pub tier: Option<String>,
}

/// A stripe of a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupStripeLine {
    /// Its number, from 1.
    pub stripe: Option<u32>,
    /// The file, region or blob.
    pub name: String,
    /// Whether it has its footer and its final name.
    pub is_complete: bool,
    /// Its length.
    pub stored_bytes: u64,
    /// Its frames, if the manifest is there.
    pub frames: Option<u64>,
}

impl Report for BackupShowReport {
    fn tables(&self) -> Vec<Table> {
        let mut summary = Table::new("", &LINE).named("backups");
        summary.row(line(&self.backup));
        let text = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("{name}: {value}"))
        };
        summary.notes.extend(text("contents of", &self.frozen));
        summary.notes.extend(text("complete", &self.finished));
        summary.notes.extend(text("written by", &self.tool));
        summary.notes.extend(self.notes.iter().cloned());
        let heads = ["source", ">MiB of size|size_bytes", ">MiB held|bytes", "role", "tier"];
        let mut sources = Table::new("", &heads).named("sources");
        let or_none = |text: &Option<String>| text.as_deref().map_or_else(Cell::none, Cell::from);
        for own in &self.sources {
            sources.row(cells![
                own.source.as_str(),
                mib(float(own.size_bytes)),
                mib(float(own.bytes)),
                or_none(&own.role),
                or_none(&own.tier),
            ]);
        }
        let heads = [">stripe", "name", "state", ">MiB|stored_bytes", ">frames"];
        let mut stripes = Table::new("", &heads).named("stripes");
        for own in &self.stripe_files {
            stripes.row(cells![
                own.stripe.map_or_else(Cell::none, |stripe| grouped(stripe.into())),
                own.name.as_str(),
                if own.is_complete { "complete" } else { "incomplete" },
                mib(float(own.stored_bytes)),
                own.frames.map_or_else(Cell::none, grouped),
            ]);
        }
        vec![summary, sources, stripes]
    }
}

/// Damage of a backup, one thing that is wrong.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DamageLine {
    /// The stripe, from 1, if it is in one.
    pub stripe: Option<u32>,
    /// The kind: `missing`, `truncated`, `swapped`, `stale`, `frame`, ...
    pub kind: String,
    /// Whether contents are lost by it.
    pub loses_data: bool,
    /// A sentence with all names and figures.
    pub damage: String,
}

fn damage_table(all: &[DamageLine]) -> Option<Table> {
    let heads = [">stripe", "kind", "lossy|loses_data", "damage"];
    let mut table = Table::new("", &heads).named("damage");
    for own in all {
        table.row(cells![
            own.stripe.map_or_else(Cell::none, |stripe| grouped(stripe.into())),
            own.kind.as_str(),
            if own.loses_data { "yes" } else { "no" },
            own.damage.as_str(),
        ]);
    }
    (!all.is_empty()).then_some(table)
}

/// A verification of a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupVerifyReport {
    /// The backup's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether everything is as it was written.
    pub is_sound: bool,
    /// Whether a restore gives all contents.
    pub is_restorable: bool,
    /// Whether contents were decrypted; otherwise only the stored bytes were checked.
    pub is_decrypted: bool,
    /// The number of stripes.
    pub stripes: u32,
    /// Sound frames.
    pub frames: u64,
    /// The bytes of the sources in them.
    pub bytes: u64,
    /// The bytes that were read.
    pub stored_bytes: u64,
    /// Frames that are lost.
    pub lost_frames: u64,
    /// Seconds that it took.
    pub elapsed_s: f64,
    /// What is wrong.
    pub damage: Vec<DamageLine>,
    /// The number of damages that are not listed.
    pub unlisted_damage: u64,
    /// Whatever a reader should know.
    pub notes: Vec<String>,
}

/// Several verifications: of a differential, and of its full backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupVerifyReports {
    /// The backups, the base first.
    pub verified: Vec<BackupVerifyReport>,
}

impl Report for BackupVerifyReports {
    fn tables(&self) -> Vec<Table> {
        let heads = [
            "backup|id",
            "name",
            "result",
            ">stripes",
            ">frames",
            ">MiB|bytes",
            ">MiB read|stored_bytes",
            ">lost frames|lost_frames",
            ">time|elapsed_s",
        ];
        let mut table = Table::new("", &heads).named("verified");
        let mut damage = Vec::new();
        for own in &self.verified {
            let result = match (own.is_sound, own.is_restorable) {
                (true, _) => "sound",
                (false, true) => "damaged, restorable",
                (false, false) => "damaged",
            };
            table.row(cells![
                own.id.as_str(),
                own.name.as_str(),
                result,
                grouped(own.stripes.into()),
                grouped(own.frames),
                mib(float(own.bytes)),
                mib(float(own.stored_bytes)),
                grouped(own.lost_frames),
                Cell::number(time(own.elapsed_s * 1e9).to_string(), own.elapsed_s),
            ]);
            if own.unlisted_damage > 0 {
                table.notes.push(format!("{} more damages are not listed", own.unlisted_damage));
            }
            table.notes.extend(own.notes.iter().cloned());
            damage.extend(own.damage.iter().cloned());
        }
        [Some(table), damage_table(&damage)].into_iter().flatten().collect()
    }
}

/// What becomes of a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PruneLine {
    /// The backup.
    #[serde(flatten)]
    pub backup: BackupLine,
    /// Whether it is removed.
    pub is_removed: bool,
    /// Why.
    pub reason: String,
}

/// What becomes of the backups in some places.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PruneReport {
    /// The backups, oldest first.
    pub backups: Vec<PruneLine>,
    /// Whether nothing was removed because that was asked for.
    pub is_dry_run: bool,
    /// The bytes of the stripes that are removed.
    pub freed_bytes: u64,
}

impl Report for PruneReport {
    fn tables(&self) -> Vec<Table> {
        let heads = [
            "backup|id",
            "name",
            "kind",
            "created",
            ">MiB stored|stored_bytes",
            "decision",
            "reason",
        ];
        let mut table = Table::new("", &heads).named("backups");
        for own in &self.backups {
            table.row(cells![
                own.backup.id.as_str(),
                own.backup.name.as_str(),
                own.backup.kind.as_str(),
                own.backup.created.as_str(),
                mib(float(own.backup.stored_bytes)),
                if own.is_removed { "remove" } else { "keep" },
                own.reason.as_str(),
            ]);
        }
        let removed = self.backups.iter().filter(|own| own.is_removed).count();
        let freed = mib(float(self.freed_bytes));
        table.notes.push(match self.is_dry_run {
            true => format!("{removed} backups would be removed, {freed} MiB; nothing was"),
            false => format!("{removed} backups removed, {freed} MiB"),
        });
        vec![table]
    }
}

/// A restore that ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RestoreReport {
    /// The backup's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The full backup that was restored first.
    pub base: Option<String>,
    /// Whether everything was read back and compared.
    pub is_proved: bool,
    /// The targets.
    pub targets: Vec<RestoreTargetLine>,
    /// Frames that were restored.
    pub frames: u64,
    /// The bytes of the sources in them.
    pub bytes: u64,
    /// Frames that are lost.
    pub lost_frames: u64,
    /// Seconds that it took.
    pub elapsed_s: f64,
    /// What is wrong with the backup.
    pub damage: Vec<DamageLine>,
    /// Whatever a reader should know.
    pub notes: Vec<String>,
}

/// A target of a restore.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RestoreTargetLine {
    /// The source in the backup.
    pub source: String,
    /// The volume or image that it was restored to.
    pub target: String,
    /// The size of the source.
    pub size_bytes: u64,
}

impl Report for RestoreReport {
    fn tables(&self) -> Vec<Table> {
        let heads = [
            "backup|id",
            "name",
            ">frames",
            ">MiB|bytes",
            ">lost frames|lost_frames",
            ">time|elapsed_s",
            ">MiB/s|bytes_per_s",
            "proved|is_proved",
        ];
        let mut table = Table::new("", &heads).named("restored");
        table.row(cells![
            self.id.as_str(),
            self.name.as_str(),
            grouped(self.frames),
            mib(float(self.bytes)),
            grouped(self.lost_frames),
            Cell::number(time(self.elapsed_s * 1e9).to_string(), self.elapsed_s),
            mib(float(self.bytes) / self.elapsed_s.max(1e-9)),
            if self.is_proved { "yes" } else { "no" },
        ]);
        table.notes.clone_from(&self.notes);
        let mut targets =
            Table::new("", &["source", "target", ">MiB of size|size_bytes"]).named("targets");
        for own in &self.targets {
            targets.row(cells![
                own.source.as_str(),
                own.target.as_str(),
                mib(float(own.size_bytes)),
            ]);
        }
        [Some(table), Some(targets), damage_table(&self.damage)].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Format;

    #[test]
    fn a_damaged_backup_is_not_called_sound() {
        let mut own = BackupVerifyReport { is_restorable: true, ..BackupVerifyReport::default() };
        let said = |own: &BackupVerifyReport| {
            BackupVerifyReports { verified: vec![own.clone()] }.render(Format::Text)
        };
        assert!(said(&own).contains("damaged, restorable"));
        own.is_restorable = false;
        assert!(!said(&own).contains("restorable"));
        own.is_sound = true;
        assert!(said(&own).contains("sound"));
    }

    #[test]
    fn a_dry_run_says_that_nothing_was_removed() {
        let line = PruneLine { is_removed: true, ..PruneLine::default() };
        let mut report =
            PruneReport { backups: vec![line], is_dry_run: true, freed_bytes: 1 << 20 };
        let expect = "1 backups would be removed, 1.00 MiB; nothing was\n";
        let said = report.render(Format::Text);
        assert!(said.ends_with(expect), "{said}");
        report.is_dry_run = false;
        assert!(report.render(Format::Text).ends_with("1 backups removed, 1.00 MiB\n"));
    }
}
