//! The backups in some places, and one of them in detail.

use super::words::{Unit, counted, minute, short_id, size};
use crate::answer::Answer;
use crate::cells;
use crate::number::grouped;
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// A backup, in a line.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupLine {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// `full`, `differential` or `copy-only`.
    pub kind: String,
    /// `complete`, `missing stripes`, `incomplete` or `damaged`.
    pub state: String,
    /// The stripes, from 1, that no place has.
    pub missing_stripes: Vec<u32>,
    /// The stripes, from 1, that have a temporary name or were not finished.
    pub unfinished_stripes: Vec<u32>,
    /// The stripes, from 1, that were published and have no valid footer any more.
    pub truncated_stripes: Vec<u32>,
    /// Its start, in UTC.
    pub created: String,
    /// Its start, as Unix time in milliseconds.
    pub created_unix_ms: u64,
    /// The number of its stripes.
    pub stripes: u32,
    /// The bytes of the sources that it holds, if that is known.
    pub bytes: Option<u64>,
    /// The bytes that its stripes take.
    pub stored_bytes: u64,
    /// The full backup that a differential builds on.
    pub base: Option<String>,
    /// True if its contents are encrypted.
    pub is_encrypted: bool,
    /// The level of compression.
    pub compression: Option<i32>,
}

/// The state of a backup that is whole.
const COMPLETE: &str = "complete";

impl BackupLine {
    /// Returns its name and its short id.
    pub(super) fn called(&self) -> String {
        format!("{} {}", self.name, short_id(&self.id))
    }

    fn is_complete(&self) -> bool {
        self.state == COMPLETE
    }

    /// Returns the stripes that are not there, in words.
    #[must_use]
    pub fn problems(&self) -> String {
        let all = [
            (&self.truncated_stripes, "truncated"),
            (&self.unfinished_stripes, "not finished"),
            (&self.missing_stripes, "missing"),
        ];
        let words = |(stripes, what): &(&Vec<u32>, &str)| {
            let numbers: Vec<String> = stripes.iter().map(u32::to_string).collect();
            let (noun, verb) =
                if stripes.len() == 1 { ("stripe", "is") } else { ("stripes", "are") };
            format!("{noun} {} of {} {verb} {what}", numbers.join(", "), self.stripes)
        };
        let there = all.iter().filter(|(stripes, _)| !stripes.is_empty());
        there.map(words).collect::<Vec<_>>().join("; ")
    }

    /// Returns its kind as administrators of SQL Server abbreviate it.
    pub(super) fn short_kind(&self) -> &str {
        if self.kind == "differential" { "diff" } else { &self.kind }
    }

    fn encoding(&self) -> String {
        let compression = match self.compression {
            Some(level) => format!("zstd, level {level}"),
            None => "not compressed".to_owned(),
        };
        let encryption = if self.is_encrypted { "encrypted" } else { "not encrypted" };
        format!("{compression}, {encryption}")
    }
}

/// The backups in some places.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupListReport {
    /// The places that were searched.
    pub places: Vec<String>,
    /// The backups, oldest first.
    pub backups: Vec<BackupLine>,
    /// Files that are no stripes, and the like.
    pub notes: Vec<String>,
}

impl BackupListReport {
    fn answer(&self) -> Answer {
        let places = self.places.join(", ");
        let own = &self.backups;
        if own.is_empty() {
            return Answer {
                line: format!("no backup was found in {places}"),
                details: self.notes.clone(),
                ..Answer::default()
            };
        }
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for backup in own {
            match counts.iter_mut().find(|(state, _)| *state == backup.state) {
                Some((_, count)) => *count += 1,
                None => counts.push((&backup.state, 1)),
            }
        }
        let states = match counts[..] {
            [(COMPLETE, _)] => if own.len() == 1 { COMPLETE } else { "all complete" }.to_owned(),
            [(state, _)] if own.len() == 1 => state.to_owned(),
            _ => counts
                .iter()
                .map(|(state, count)| match *state {
                    "missing stripes" => format!("{count} with missing stripes"),
                    state => format!("{count} {state}"),
                })
                .collect::<Vec<_>>()
                .join(", "),
        };
        let problems = own.iter().filter(|own| !own.is_complete());
        Answer {
            line: format!("{} in {places}: {states}", counted(own.len() as u64, "backup")),
            details: problems
                .map(|own| format!("{} is {}", own.called(), own.state_words()))
                .collect(),
            notes: self.notes.clone(),
        }
    }
}

impl BackupLine {
    /// Returns its state with the stripes that it is about.
    fn state_words(&self) -> String {
        match self.state.as_str() {
            "missing stripes" => format!("not whole: {}", self.problems()),
            state => format!("{state}: {}", self.problems()),
        }
    }
}

impl Report for BackupListReport {
    fn tables(&self) -> Vec<Table> {
        let unit = Unit::for_sizes(self.backups.iter().map(|own| own.stored_bytes));
        let has_base = self.backups.iter().any(|own| own.base.is_some());
        let heads = [
            "backup|",
            "|id",
            "name",
            "kind|",
            "|kind",
            "|state",
            if has_base { "builds on|" } else { "|" },
            "|base",
            "begun (UTC)|",
            "|created",
            "|stripes",
            "|bytes",
            &format!(">{}|stored_bytes", unit.name()),
        ];
        let mut table = Table::new("", &heads).named("backups");
        for own in &self.backups {
            table.row(cells![
                short_id(&own.id),
                own.id.as_str(),
                own.name.as_str(),
                own.short_kind(),
                own.kind.as_str(),
                own.state.as_str(),
                own.base.as_deref().map_or_else(Cell::none, |base| short_id(base).into()),
                own.base.as_deref().map_or_else(Cell::none, Cell::from),
                minute(&own.created),
                own.created.as_str(),
                grouped(own.stripes.into()),
                own.bytes.map_or_else(Cell::none, grouped),
                unit.cell(own.stored_bytes),
            ]);
        }
        vec![table]
    }

    fn lead(&self) -> Option<Answer> {
        Some(self.answer())
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
    /// Its completion, in UTC.
    pub finished: Option<String>,
    /// The program that wrote it.
    pub tool: Option<String>,
    /// The largest transfer, which is the size of a frame.
    pub max_transfer_bytes: Option<u64>,
    /// Other options that it was made with.
    pub options: Vec<(String, String)>,
    /// The layout file of the sources, as text.
    pub layout: Option<String>,
    /// Sources.
    pub sources: Vec<BackupSourceLine>,
    /// Stripes.
    pub stripe_files: Vec<BackupStripeLine>,
    /// Whatever a reader should know.
    pub notes: Vec<String>,
}

/// A source of a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupSourceLine {
    /// The export's name.
    pub source: String,
    /// Size.
    pub size_bytes: u64,
    /// The bytes of it that the backup holds.
    pub bytes: u64,
    /// Role in the layout.
    pub role: Option<String>,
    /// Tier in the layout.
    pub tier: Option<String>,
}

/// A stripe of a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupStripeLine {
    /// Number, from 1.
    pub stripe: Option<u32>,
    /// The file, region or blob.
    pub name: String,
    /// `complete`, `unfinished` or `truncated`.
    pub state: String,
    /// True if it has its footer and its final name.
    pub is_complete: bool,
    /// Length.
    pub stored_bytes: u64,
    /// Frames, if the manifest is there.
    pub frames: Option<u64>,
}

impl BackupShowReport {
    fn answer(&self) -> Answer {
        let own = &self.backup;
        let restorable = match own.state.as_str() {
            COMPLETE => "complete".to_owned(),
            _ => format!("{}; it cannot be restored as it is", own.state_words()),
        };
        let mut details = vec![format!("id           {}", own.id)];
        let mut fact = |name: &str, value: Option<String>| {
            details.extend(value.map(|value| format!("{name:<12} {value}")));
        };
        fact("builds on", own.base.clone());
        fact("begun", Some(own.created.clone()));
        fact("contents of", self.frozen.clone());
        fact("finished", self.finished.clone());
        fact("written by", self.tool.clone());
        let held = own.bytes.map(|bytes| format!("{} of the sources, ", size(bytes)));
        let stored =
            format!("{} in {}", size(own.stored_bytes), counted(own.stripes.into(), "stripe"));
        fact("size", Some(format!("{}{stored}", held.unwrap_or_default())));
        fact("encoding", self.tool.is_some().then(|| own.encoding()));
        let transfer = self.max_transfer_bytes.filter(|bytes| *bytes > 0);
        fact("transfers", transfer.map(|bytes| format!("up to {}", size(bytes))));
        for (name, value) in &self.options {
            fact(&name.replace('_', " "), Some(value.clone()));
        }
        Answer {
            line: format!("{} backup {}: {restorable}", own.kind, own.name),
            details,
            notes: self.notes.clone(),
        }
    }
}

impl Report for BackupShowReport {
    fn tables(&self) -> Vec<Table> {
        let own = &self.backup;
        let heads = [
            "|id",
            "|name",
            "|kind",
            "|state",
            "|created",
            "|stripes",
            "|bytes",
            "|stored_bytes",
            "|base",
            "|compression",
            "|max_transfer_bytes",
        ];
        let mut summary = Table::new("", &heads).named("backups");
        let level = |level: i32| u64::try_from(level).map_or_else(|_| Cell::none(), grouped);
        summary.row(cells![
            own.id.as_str(),
            own.name.as_str(),
            own.kind.as_str(),
            own.state.as_str(),
            own.created.as_str(),
            grouped(own.stripes.into()),
            own.bytes.map_or_else(Cell::none, grouped),
            grouped(own.stored_bytes),
            own.base.as_deref().map_or_else(Cell::none, Cell::from),
            own.compression.map_or_else(Cell::none, level),
            self.max_transfer_bytes.map_or_else(Cell::none, grouped),
        ]);
        let unit = Unit::for_sizes(self.sources.iter().map(|own| own.size_bytes));
        let (size, held) = (
            format!(">{} of size|size_bytes", unit.name()),
            format!(">{} held|bytes", unit.name()),
        );
        let heads = ["source", &size, &held, "role", "tier"];
        let mut sources = Table::new("", &heads).named("sources");
        let or_none = |text: &Option<String>| text.as_deref().map_or_else(Cell::none, Cell::from);
        for own in &self.sources {
            sources.row(cells![
                own.source.as_str(),
                unit.cell(own.size_bytes),
                unit.cell(own.bytes),
                or_none(&own.role),
                or_none(&own.tier),
            ]);
        }
        let unit = Unit::for_sizes(self.stripe_files.iter().map(|own| own.stored_bytes));
        let stored = format!(">{}|stored_bytes", unit.name());
        let heads = [">stripe", "state", &stored, ">frames", "name"];
        let mut stripes = Table::new("", &heads).named("stripes");
        for own in &self.stripe_files {
            stripes.row(cells![
                own.stripe.map_or_else(Cell::none, |stripe| grouped(stripe.into())),
                own.state.as_str(),
                unit.cell(own.stored_bytes),
                own.frames.map_or_else(Cell::none, grouped),
                own.name.as_str(),
            ]);
        }
        vec![summary, sources, stripes]
    }

    fn lead(&self) -> Option<Answer> {
        Some(self.answer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Screen;

    fn backup(state: &str) -> BackupLine {
        BackupLine {
            id: "0199c1a2-7b3c-7000-8000-000000000001".to_owned(),
            name: "sales-of-the-north".to_owned(),
            kind: "differential".to_owned(),
            state: state.to_owned(),
            created: "2026-03-02 00:00:00Z".to_owned(),
            stripes: 4,
            stored_bytes: 4_000 << 20,
            base: Some("0199c1a2-0000-7000-8000-000000000001".to_owned()),
            ..BackupLine::default()
        }
    }

    #[test]
    fn a_list_begins_with_what_there_is_and_fits() {
        let damaged = BackupLine {
            missing_stripes: vec![2, 3],
            truncated_stripes: vec![1],
            ..backup("damaged")
        };
        let places = vec!["/backups".to_owned()];
        let backups = vec![backup(COMPLETE), damaged];
        let report = BackupListReport { places: places.clone(), backups, ..Default::default() };
        let text = report.text(&Screen::of_width(80));
        let whole = report.text(&Screen::unlimited());
        let mut lines = whole.lines();
        assert_eq!(lines.next(), Some("2 backups in /backups: 1 complete, 1 damaged"));
        let line = lines.next().expect("the damage");
        let words = "damaged: stripe 1 of 4 is truncated; stripes 2, 3 of 4 are missing";
        assert!(line.ends_with(words), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let rows = text.lines().filter(|line| line.contains("2026-03-02 00:00  4,000"));
        assert_eq!(rows.count(), 2, "{text}");
        assert!(report.csv().contains("0199c1a2-7b3c-7000-8000-000000000001"));
        let empty = BackupListReport { places, ..Default::default() };
        assert_eq!(empty.text(&Screen::of_width(80)), "no backup was found in /backups\n");
    }

    #[test]
    fn a_backup_is_shown_with_its_whole_id_and_its_options() {
        let backup = BackupLine { compression: Some(3), ..backup(COMPLETE) };
        let report = BackupShowReport {
            backup,
            tool: Some("weir 1".to_owned()),
            max_transfer_bytes: Some(4 << 20),
            ..Default::default()
        };
        let text = report.text(&Screen::of_width(80));
        for words in [
            "0199c1a2-7b3c-7000-8000-000000000001",
            "0199c1a2-0000-7000-8000-000000000001",
            "zstd, level 3, not encrypted",
            "up to 4.00 MiB",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
