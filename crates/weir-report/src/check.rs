//! The damage of a data folder.

use crate::answer::Answer;
use crate::cells;
use crate::number::{float, grouped, mib};
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// The result of a check of a data folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The folder.
    pub folder: String,
    /// True if no damage was found, and everything could be checked. Bytes without a known checksum are only
    /// read.
    pub is_sound: bool,
    /// The volumes.
    pub volumes: Vec<VolumeCheck>,
    /// The journal of the blob service, if there is one and it is sound.
    pub journal: Option<JournalCheck>,
    /// The damage.
    pub damage: Vec<DamagedFile>,
    /// Parts that could not be checked, with the reasons.
    pub unchecked: Vec<Unchecked>,
    /// Files among the folders of the volumes. A server ignores those that the layout does not name.
    pub ignored: Vec<String>,
}

/// The extent of the check of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VolumeCheck {
    /// Its name.
    pub name: String,
    /// Its size; absent if its metadata is damaged.
    pub size_bytes: Option<u64>,
    /// True if its blocks have checksums.
    pub checksums: bool,
    /// Bytes that were compared with their checksums.
    pub verified_bytes: u64,
    /// Bytes whose checksums are unknown, since they were written before a crash.
    pub unknown_bytes: u64,
    /// Bytes that were read and have no checksums.
    pub unverified_bytes: u64,
    /// Damaged ranges and files.
    pub damaged: u64,
}

/// The journal of the blob service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct JournalCheck {
    /// The file.
    pub file: String,
    /// Its records.
    pub records: u64,
}

/// A damaged file, or a damaged range of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DamagedFile {
    /// The volume, if it belongs to one.
    pub volume: Option<String>,
    /// The file, or the folder that lacks one.
    pub file: String,
    /// The first damaged byte in the file.
    pub offset: Option<u64>,
    /// The number of damaged bytes.
    pub length: Option<u64>,
    /// The first damaged byte in the volume.
    pub volume_offset: Option<u64>,
    /// The damage.
    pub reason: String,
}

/// A part that could not be checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Unchecked {
    /// The volume or file.
    pub name: String,
    /// The reason.
    pub reason: String,
}

impl DamagedFile {
    fn line(&self) -> String {
        let Self { file, offset: Some(offset), length: Some(length), reason, .. } = self else {
            // Its reason names the file.
            return self.reason.clone();
        };
        let within =
            self.volume_offset.map_or_else(String::new, |at| format!(", {at} in the volume"));
        format!("{file}: {length} bytes at offset {offset}{within}: {reason}")
    }
}

impl CheckReport {
    fn line(&self) -> String {
        let damaged: u64 = self.damage.len() as u64;
        match (damaged, self.unchecked.len()) {
            (0, 0) => format!("{} has no damage that can be found", self.folder),
            (0, _) => format!("{} could not be checked as a whole", self.folder),
            (1, _) => format!("{} is damaged in 1 place", self.folder),
            _ => format!("{} is damaged in {damaged} places", self.folder),
        }
    }

    fn notes(&self) -> Vec<String> {
        let sum = |of: fn(&VolumeCheck) -> u64| self.volumes.iter().map(of).sum::<u64>();
        let (unknown, unverified) = (sum(|v| v.unknown_bytes), sum(|v| v.unverified_bytes));
        let mut notes = Vec::new();
        if self.volumes.is_empty() && self.damage.is_empty() {
            notes.push("there are no volumes".to_owned());
        }
        for file in &self.ignored {
            notes.push(format!(
                "{file} is not the folder of a volume; a server ignores it unless the layout names it; if it is in \
                 place of one, restore the folder from a copy"
            ));
        }
        if unverified > 0 {
            notes.push(format!(
                "{} MiB have no checksums and were only read; set checksums = true for their volumes in the \
                 layout",
                mib(float(unverified))
            ));
        }
        if unknown > 0 {
            notes.push(format!(
                "{} MiB are in regions that were open when the last server ended, so their checksums are unknown; \
                 the next server computes them",
                mib(float(unknown))
            ));
        }
        if let Some(JournalCheck { file, records }) = &self.journal {
            notes.push(format!("{file} is sound, with {} records", grouped(*records)));
        }
        notes
    }
}

impl Report for CheckReport {
    fn lead(&self) -> Option<Answer> {
        let damage = self.damage.iter().map(DamagedFile::line);
        let unchecked =
            self.unchecked.iter().map(|own| format!("{} is not checked: {}", own.name, own.reason));
        Some(Answer {
            line: self.line(),
            details: damage.chain(unchecked).collect(),
            notes: self.notes(),
        })
    }

    fn tables(&self) -> Vec<Table> {
        let heads = [
            "volume|volume",
            ">MiB|size_bytes",
            "checksums|checksums",
            ">MiB verified|verified_bytes",
            ">unknown|unknown_bytes",
            ">without|unverified_bytes",
            ">damaged|damaged",
        ];
        let mut volumes = Table::new("", &heads).named("volumes");
        let bytes = |of: u64| Cell::number(mib(float(of)).to_string(), float(of));
        for own in &self.volumes {
            volumes.row(cells![
                own.name.clone(),
                own.size_bytes.map_or_else(Cell::none, bytes),
                match (own.checksums, own.size_bytes) {
                    (true, _) => "yes",
                    (false, Some(_)) => "no",
                    (false, None) => "-",
                },
                bytes(own.verified_bytes),
                bytes(own.unknown_bytes),
                bytes(own.unverified_bytes),
                grouped(own.damaged),
            ]);
        }
        // Text has a line for each.
        let heads = ["|volume", "|file", "|offset", "|length", "|volume_offset", "|reason"];
        let mut damage = Table::new("", &heads).named("damage");
        for own in &self.damage {
            let number = |of: Option<u64>| of.map_or_else(Cell::none, grouped);
            damage.row(cells![
                own.volume.clone().map_or_else(Cell::none, Cell::from),
                own.file.clone(),
                number(own.offset),
                number(own.length),
                number(own.volume_offset),
                own.reason.clone(),
            ]);
        }
        vec![volumes, damage]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Format;

    fn report(damage: Vec<DamagedFile>) -> CheckReport {
        CheckReport {
            folder: "data".to_owned(),
            is_sound: damage.is_empty(),
            volumes: vec![VolumeCheck {
                name: "db".to_owned(),
                size_bytes: Some(64 << 20),
                checksums: true,
                verified_bytes: 8 << 20,
                unknown_bytes: 4 << 20,
                unverified_bytes: 0,
                damaged: damage.len() as u64,
            }],
            journal: None,
            damage,
            unchecked: Vec::new(),
            ignored: Vec::new(),
        }
    }

    #[test]
    fn damage_has_a_line_with_file_and_offset() {
        let damage = DamagedFile {
            volume: Some("db".to_owned()),
            file: "data/volumes/db/data/00001".to_owned(),
            offset: Some(4096),
            length: Some(8192),
            volume_offset: Some(1_099_511_631_872),
            reason: "the bytes are not those of their checksums".to_owned(),
        };
        let report = report(vec![damage]);
        let text = report.render(Format::Markdown);
        assert!(text.starts_with("**data is damaged in 1 place**\n"), "{text}");
        let line = "data/volumes/db/data/00001: 8192 bytes at offset 4096, 1099511631872 in the volume: the \
                    bytes are not those of their checksums\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("4.00 MiB are in regions that were open when"), "{text}");
        let json = report.render(Format::Json);
        assert!(json.contains("\"volume_offset\": 1099511631872"), "{json}");
        let csv = report.render(Format::Csv);
        assert!(csv.contains("damage,db,"), "{csv}");
    }

    #[test]
    fn a_sound_folder_is_said_to_have_no_damage_that_can_be_found() {
        let text = report(Vec::new()).render(Format::Text);
        assert!(text.starts_with("data has no damage that can be found\n"), "{text}");
    }
}
