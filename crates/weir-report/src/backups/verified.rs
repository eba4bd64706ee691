//! Verifications of backups, and their damage.

use super::words::{Unit, counted, short_id, size};
use crate::answer::Answer;
use crate::cells;
use crate::number::{grouped, time};
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// Damage of a backup, one thing that is wrong.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DamageLine {
    /// The stripe, from 1, if it is in one.
    pub stripe: Option<u32>,
    /// The kind: `missing`, `truncated`, `swapped`, `stale`, `frame`, ...
    pub kind: String,
    /// True if contents are lost by it.
    pub loses_data: bool,
    /// A sentence with all names and figures.
    pub damage: String,
}

impl DamageLine {
    /// Returns the damage and whether it matters.
    pub(super) fn words(&self) -> String {
        let loss = if self.loses_data { "loses contents" } else { "loses nothing" };
        // Most sentences have the kind in them.
        match self.damage.contains(&self.kind) {
            true => format!("{} ({loss})", self.damage),
            false => format!("{} ({}; {loss})", self.damage, self.kind),
        }
    }
}

/// Returns damage as a table for machines.
pub(super) fn damage_table<'a>(all: impl Iterator<Item = (&'a str, &'a DamageLine)>) -> Table {
    let heads = ["|id", "|stripe", "|kind", "|loses_data", "|damage"];
    let mut table = Table::new("", &heads).named("damage");
    for (id, own) in all {
        table.row(cells![
            id,
            own.stripe.map_or_else(Cell::none, |stripe| grouped(stripe.into())),
            own.kind.as_str(),
            if own.loses_data { "yes" } else { "no" },
            own.damage.as_str(),
        ]);
    }
    table
}

/// A verification of a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupVerifyReport {
    /// The backup's id.
    pub id: String,
    /// Name.
    pub name: String,
    /// True if everything is as it was written.
    pub is_sound: bool,
    /// True if a restore gives all contents.
    pub is_restorable: bool,
    /// True if contents were decrypted; otherwise only the stored bytes were checked.
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
    /// Problem.
    pub damage: Vec<DamageLine>,
    /// The number of damages that are not listed.
    pub unlisted_damage: u64,
    /// Whatever a reader should know.
    pub notes: Vec<String>,
}

impl BackupVerifyReport {
    /// Returns the result in a word or two.
    const fn result(&self) -> &'static str {
        match (self.is_sound, self.is_restorable, self.is_decrypted) {
            (true, _, true) => "sound",
            (true, _, false) => "not decrypted",
            (false, true, _) => "damaged, restorable",
            (false, false, _) => "damaged",
        }
    }

    /// Returns whether stripes are missing or cut off. Nothing is restored of such a backup.
    fn has_lost_stripes(&self) -> bool {
        self.damage.iter().any(|own| matches!(own.kind.as_str(), "missing" | "truncated"))
    }

    /// Returns the result in a sentence.
    fn verdict(&self) -> String {
        let what = format!("{} {}", self.name, short_id(&self.id));
        let frames = counted(self.frames, "frame");
        match (self.is_sound, self.is_restorable, self.is_decrypted) {
            (true, _, true) => {
                format!("{what} is sound: {frames}, {} can be restored", size(self.bytes))
            }
            (true, _, false) => {
                format!("{what}: stored bytes sound, contents not checked: encrypted")
            }
            (false, true, _) => {
                format!("{what} is damaged, and all of its contents can still be restored")
            }
            (false, false, _) if self.has_lost_stripes() => {
                format!(
                    "{what} is damaged and cannot be restored: not all of its stripes are whole"
                )
            }
            (false, false, _) if self.lost_frames > 0 => {
                let lost = counted(self.lost_frames, "frame");
                format!("{what} is damaged: {lost} lost, {frames} sound")
            }
            (false, false, _) => format!("{what} is damaged and cannot be restored as it is"),
        }
    }
}

/// Several verifications: of a differential, and of its full backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupVerifyReports {
    /// The backups, the base first.
    pub verified: Vec<BackupVerifyReport>,
}

impl BackupVerifyReports {
    fn answer(&self) -> Answer {
        // The last backup is the requested one. Problems of its base come first.
        let own = self.verified.iter();
        let worst = own.clone().find(|own| !own.is_restorable);
        let worst = worst.or_else(|| own.clone().find(|own| !own.is_sound));
        let worst = worst.or_else(|| own.clone().find(|own| !own.is_decrypted));
        let Some(first) = worst.or_else(|| self.verified.last()) else { return Answer::default() };
        let mut details = Vec::new();
        for own in self.verified.iter().filter(|own| own.id != first.id) {
            details.push(own.verdict());
        }
        for own in &self.verified {
            details.extend(own.damage.iter().map(DamageLine::words));
            if own.unlisted_damage > 0 {
                details.push(format!(
                    "{} more are not listed",
                    counted(own.unlisted_damage, "damage")
                ));
            }
            details.extend(own.notes.iter().cloned());
        }
        Answer { line: first.verdict(), details, ..Answer::default() }
    }
}

impl Report for BackupVerifyReports {
    fn tables(&self) -> Vec<Table> {
        let sizes = self.verified.iter().flat_map(|own| [own.bytes, own.stored_bytes]);
        let unit = Unit::for_sizes(sizes);
        let heads = [
            "backup|",
            "|id",
            "name",
            "result",
            ">stripes",
            ">frames",
            ">lost|lost_frames",
            &format!(">{}|bytes", unit.name()),
            ">stored|stored_bytes",
            "|elapsed_s",
        ];
        let mut table = Table::new("", &heads).named("verified");
        for own in &self.verified {
            table.row(cells![
                short_id(&own.id),
                own.id.as_str(),
                own.name.as_str(),
                own.result(),
                grouped(own.stripes.into()),
                grouped(own.frames),
                grouped(own.lost_frames),
                unit.cell(own.bytes),
                unit.cell(own.stored_bytes),
                Cell::number(time(own.elapsed_s * 1e9).to_string(), own.elapsed_s),
            ]);
        }
        let damage = self
            .verified
            .iter()
            .flat_map(|own| own.damage.iter().map(|damage| (own.id.as_str(), damage)));
        vec![table, damage_table(damage)]
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
    fn the_verdict_comes_first() {
        let mut own = BackupVerifyReport {
            id: "0199c1a2-7b3c-7000-8000-000000000001".to_owned(),
            name: "sales".to_owned(),
            frames: 40_000,
            is_decrypted: true,
            is_restorable: true,
            ..BackupVerifyReport::default()
        };
        #[track_caller]
        fn check(own: &BackupVerifyReport, expect: &str) {
            let text =
                BackupVerifyReports { verified: vec![own.clone()] }.text(&Screen::of_width(80));
            assert!(text.starts_with(expect), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
        check(
            &own,
            "sales 0199c1a2-7b3c is damaged, and all of its contents can still be restored",
        );
        own.is_restorable = false;
        own.lost_frames = 1;
        check(&own, "sales 0199c1a2-7b3c is damaged: 1 frame lost, 40,000 frames sound");
        (own.is_sound, own.is_restorable, own.lost_frames) = (true, true, 0);
        check(&own, "sales 0199c1a2-7b3c is sound: 40,000 frames");
        own.is_decrypted = false;
        let expect = "sales 0199c1a2-7b3c: stored bytes sound, contents not checked: encrypted\n";
        check(&own, expect);
    }

    #[test]
    fn damage_names_its_kind_once() {
        let line = |kind: &str, damage: &str| DamageLine {
            kind: kind.to_owned(),
            damage: damage.to_owned(),
            loses_data: true,
            ..DamageLine::default()
        };
        let missing = line("missing", "stripe 2 of 3 is missing").words();
        assert_eq!(missing, "stripe 2 of 3 is missing (loses contents)");
        let lost = line("lost", "frames 0 to 3 of stripe 2 are gone").words();
        assert_eq!(lost, "frames 0 to 3 of stripe 2 are gone (lost; loses contents)");
    }
}
