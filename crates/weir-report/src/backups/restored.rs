//! Restores that ended.

use super::DamageLine;
use super::verified::damage_table;
use super::words::{Unit, counted, short_id, size, speed, took};
use crate::answer::Answer;
use crate::cells;
use crate::number::{float, grouped, mib, time};
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// A restore that ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RestoreReport {
    /// The backup's id.
    pub id: String,
    /// Name.
    pub name: String,
    /// The full backup that was restored first.
    pub base: Option<String>,
    /// True if everything was read back and compared.
    pub is_proved: bool,
    /// True if the targets were scratch volumes, which are gone.
    pub is_scratch: bool,
    /// The targets.
    pub targets: Vec<RestoreTargetLine>,
    /// Frames that were restored.
    pub frames: u64,
    /// The bytes of the sources in them.
    pub bytes: u64,
    /// Frames that are lost.
    pub lost_frames: u64,
    /// Set if frames are lost, or if contents are not those that the backup vouches for.
    pub is_lossy: bool,
    /// Seconds that it took.
    pub elapsed_s: f64,
    /// The defects of the backup.
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

impl RestoreReport {
    fn answer(&self) -> Answer {
        let what = format!("{} {}", self.name, short_id(&self.id));
        let proved = if self.is_proved { " and proved" } else { "" };
        let done = match (self.lost_frames, self.is_scratch) {
            (0, _) if self.is_lossy => {
                "restored, but the backup does not vouch for all of it".to_owned()
            }
            (0, true) => "can be restored: proved on scratch volumes, which are gone".to_owned(),
            (0, false) => format!("restored{proved}"),
            (lost, _) => format!("restored in part: {} lost", counted(lost, "frame")),
        };
        let pace = speed(float(self.bytes) / self.elapsed_s.max(1e-9));
        let line =
            format!("{what} {done}; {} in {}, {pace}", size(self.bytes), took(self.elapsed_s));
        let base = self.base.as_ref().map(|base| format!("restored on its full backup {base}"));
        let damage = self.damage.iter().map(DamageLine::words);
        let details = base.into_iter().chain(damage).chain(self.notes.iter().cloned()).collect();
        Answer { line, details, ..Answer::default() }
    }
}

impl Report for RestoreReport {
    fn tables(&self) -> Vec<Table> {
        let heads = [
            "|id",
            "|name",
            "|frames",
            "|bytes",
            "|lost_frames",
            "|elapsed_s",
            "|bytes_per_s",
            "|is_proved",
        ];
        let mut table = Table::new("", &heads).named("restored");
        table.row(cells![
            self.id.as_str(),
            self.name.as_str(),
            grouped(self.frames),
            grouped(self.bytes),
            grouped(self.lost_frames),
            Cell::number(time(self.elapsed_s * 1e9).to_string(), self.elapsed_s),
            mib(float(self.bytes) / self.elapsed_s.max(1e-9)),
            if self.is_proved { "yes" } else { "no" },
        ]);
        let unit = Unit::for_sizes(self.targets.iter().map(|own| own.size_bytes));
        let heads = ["source", &format!(">{}|size_bytes", unit.name()), "target"];
        let mut targets = Table::new("", &heads).named("targets");
        for own in &self.targets {
            targets.row(cells![
                own.source.as_str(),
                unit.cell(own.size_bytes),
                own.target.as_str(),
            ]);
        }
        let damage = self.damage.iter().map(|damage| (self.id.as_str(), damage));
        vec![table, targets, damage_table(damage)]
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
    fn a_restore_says_whether_all_is_there() {
        let mut own = RestoreReport {
            id: "0199c1a2-7b3c-7000-8000-000000000001".to_owned(),
            name: "sales".to_owned(),
            bytes: 100 << 20,
            elapsed_s: 2.0,
            is_proved: true,
            ..RestoreReport::default()
        };
        let check = |own: &RestoreReport, expect: &str| {
            let text = own.text(&Screen::unlimited());
            assert_eq!(text.lines().next(), Some(expect));
        };
        let end = "; 100 MiB in 2.0 s, 50.0 MiB/s";
        check(&own, &format!("sales 0199c1a2-7b3c restored and proved{end}"));
        own.is_scratch = true;
        let words = "can be restored: proved on scratch volumes, which are gone";
        check(&own, &format!("sales 0199c1a2-7b3c {words}{end}"));
        (own.lost_frames, own.is_lossy) = (2, true);
        check(&own, &format!("sales 0199c1a2-7b3c restored in part: 2 frames lost{end}"));
    }
}
