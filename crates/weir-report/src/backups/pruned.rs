//! Retention decisions for the backups in some places.

use super::BackupLine;
use super::words::{Unit, counted, minute, short_id, size};
use crate::answer::Answer;
use crate::cells;
use crate::table::{Report, Table};
use serde::Serialize;

/// The retention decision for a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PruneLine {
    /// The backup.
    #[serde(flatten)]
    pub backup: BackupLine,
    /// True if it is removed.
    pub is_removed: bool,
    /// The reason on few columns.
    pub reason: String,
    /// The reason in a sentence, where it needs one.
    pub details: Option<String>,
}

/// The retention decisions for the backups in some places.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PruneReport {
    /// The places.
    pub places: Vec<String>,
    /// The backups, oldest first.
    pub backups: Vec<PruneLine>,
    /// True if nothing was removed because that was asked for.
    pub is_dry_run: bool,
    /// The bytes of the stripes that are removed.
    pub freed_bytes: u64,
}

impl PruneReport {
    fn answer(&self) -> Answer {
        let places = self.places.join(", ");
        if self.backups.is_empty() {
            let line = format!("no backup was found in {places}; nothing was removed");
            return Answer { line, ..Answer::default() };
        }
        let removed = self.backups.iter().filter(|own| own.is_removed).count() as u64;
        let kept = counted(self.backups.len() as u64 - removed, "backup");
        let (gone, freed) = (counted(removed, "backup"), size(self.freed_bytes));
        let line = match self.is_dry_run {
            true => format!("{gone} would be removed, {freed}; {kept} kept; nothing was changed"),
            false => format!("{gone} removed, {freed}; {kept} kept"),
        };
        let details = self.backups.iter().filter_map(|own| {
            let words = own.details.as_ref()?;
            Some(format!("{}: {words}", own.backup.called()))
        });
        Answer { line, details: details.collect(), ..Answer::default() }
    }
}

impl Report for PruneReport {
    fn tables(&self) -> Vec<Table> {
        let unit = Unit::for_sizes(self.backups.iter().map(|own| own.backup.stored_bytes));
        let heads = [
            "backup|",
            "|id",
            "name",
            "kind|",
            "|kind",
            "begun (UTC)|",
            "|created",
            &format!(">{}|stored_bytes", unit.name()),
            "decision",
            "because|",
            "|reason",
        ];
        let mut table = Table::new("", &heads).named("backups");
        for own in &self.backups {
            table.row(cells![
                short_id(&own.backup.id),
                own.backup.id.as_str(),
                own.backup.name.as_str(),
                own.backup.short_kind(),
                own.backup.kind.as_str(),
                minute(&own.backup.created),
                own.backup.created.as_str(),
                unit.cell(own.backup.stored_bytes),
                if own.is_removed { "remove" } else { "keep" },
                own.reason.as_str(),
                own.details.as_deref().unwrap_or(&own.reason),
            ]);
        }
        vec![table]
    }

    fn lead(&self) -> Option<Answer> {
        Some(self.answer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Screen;

    #[test]
    fn a_dry_run_says_that_nothing_was_removed() {
        let line = PruneLine { is_removed: true, ..PruneLine::default() };
        let mut report = PruneReport {
            backups: vec![line],
            is_dry_run: true,
            freed_bytes: 1 << 20,
            ..PruneReport::default()
        };
        let expect = "1 backup would be removed, 1.00 MiB; 0 backups kept; nothing was changed\n";
        let said = report.text(&Screen::of_width(80));
        assert!(said.starts_with(expect), "{said}");
        report.is_dry_run = false;
        let said = report.text(&Screen::of_width(80));
        assert!(said.starts_with("1 backup removed, 1.00 MiB; 0 backups kept\n"), "{said}");
    }

    #[test]
    fn decisions_fit_a_terminal() {
        let backup = BackupLine {
            id: "0199c1a2-7b3c-7000-8000-000000000001".to_owned(),
            name: "sales-of-the-north".to_owned(),
            kind: "copy-only".to_owned(),
            created: "2026-03-02 00:00:00Z".to_owned(),
            stored_bytes: 4_000_000 << 20,
            ..BackupLine::default()
        };
        let details = Some("a sentence that is long".to_owned());
        let line = PruneLine {
            backup,
            reason: "0199c1a2-7b3c needs it".to_owned(),
            details,
            ..Default::default()
        };
        let report = PruneReport { backups: vec![line], ..PruneReport::default() };
        let text = report.text(&Screen::of_width(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("  sales-of-the-north 0199c1a2-7b3c: a sentence that is long\n"));
    }
}
