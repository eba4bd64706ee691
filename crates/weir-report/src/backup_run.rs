//! A backup that was made in wall time.

use crate::answer::Answer;
use crate::backup::{self, BackupReport};
use crate::backups::{Unit, counted, per_second, short_id, size, took};
use crate::cells;
use crate::number::{float, grouped, mib, rate, time};
use crate::page::RunPage;
use crate::run::latency_shares;
use crate::screen::Screen;
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// A backup that was made: its identity, its stripes, and how it went.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupRunReport {
    /// The id.
    pub id: String,
    /// `full`, `differential` or `copy-only`.
    pub kind: String,
    /// The id of the full backup that a differential builds on.
    pub base: Option<String>,
    /// Time of the freeze, as Unix time in milliseconds; `None` without one.
    pub frozen_unix_ms: Option<u64>,
    /// For how long the freeze stopped the server.
    pub pause_ns: Option<u64>,
    /// The most old contents that were kept beside the sources while the freeze lasted.
    pub kept_bytes: Option<u64>,
    /// The level of compression.
    pub compression: Option<i32>,
    /// True if the contents are encrypted.
    pub is_encrypted: bool,
    /// Bytes of the stripes.
    pub stored_bytes: u64,
    /// True if all of it was read back and found sound; nothing if that was not asked for.
    pub is_verified: Option<bool>,
    /// The stripes.
    pub stripe_files: Vec<BackupStripeReport>,
    /// Notes.
    pub notes: Vec<String>,
    /// Counters of the run.
    #[serde(flatten)]
    pub run: BackupReport,
}

/// A stripe of a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupStripeReport {
    /// The path, export or URL.
    pub place: String,
    /// The stripe, from 1.
    pub stripe: u32,
    /// Frames.
    pub frames: u64,
    /// Bytes of the sources in it.
    pub raw_bytes: u64,
    /// Length.
    pub bytes: u64,
}

impl RunPage for BackupRunReport {
    fn verdict(&self) -> String {
        self.answer().line
    }

    fn facts(&self) -> Vec<String> {
        self.details()
    }

    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Report for BackupRunReport {
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.identity()];
        tables.extend(backup::tables(std::slice::from_ref(&self.run)));
        tables.push(self.stripes());
        tables
    }

    fn text(&self, screen: &Screen) -> String {
        self.answer().text(&[self.places(), self.stripes()], screen)
    }

    fn markdown(&self) -> String {
        self.answer().markdown(&[self.places(), self.stripes()])
    }
}

impl BackupRunReport {
    fn answer(&self) -> Answer {
        let run = &self.run;
        let verified = match self.is_verified {
            Some(true) => " and verified",
            Some(false) => " but DAMAGED",
            None => "",
        };
        let pace = run.mib_per_s.map(|own| format!(", {} MiB/s", per_second(own)));
        let bound = run.binding_limit.as_ref().map(|limit| format!("; {limit} binds"));
        let line = format!(
            "{} backup {} {} complete{verified}: {} in {}{}{}",
            self.kind,
            run.backup,
            short_id(&self.id),
            size(run.bytes),
            took(run.elapsed_s),
            pace.unwrap_or_default(),
            bound.unwrap_or_default()
        );
        Answer { line, details: self.details(), ..Answer::default() }
    }

    fn details(&self) -> Vec<String> {
        let run = &self.run;
        let mut details = vec![format!("id {}", self.id)];
        details.push(format!(
            "stored: {} in {}, {}",
            size(self.stored_bytes),
            counted(self.stripe_files.len() as u64, "stripe"),
            self.encoding()
        ));
        details.push(format!(
            "{} of {}, {} in use on average; readers waited {} for buffers, writers {} for data",
            counted(run.buffer_count.into(), "buffer"),
            size(run.max_transfer_bytes),
            rate(run.buffers_used),
            time(run.waited_for_buffer_s * 1e9),
            time(run.waited_for_data_s * 1e9)
        ));
        if let Some(pause) = self.pause_ns {
            let pause = time(float(pause));
            details.push(format!("frozen at one instant; clients waited {pause} for it"));
        }
        details.extend(self.notes.iter().cloned());
        details.extend(run.message.clone());
        details
    }

    fn encoding(&self) -> String {
        let compression = self.compression.map(|level| format!("zstd level {level}"));
        let encryption = self.is_encrypted.then(|| "encrypted".to_owned());
        let all: Vec<String> = compression.into_iter().chain(encryption).collect();
        if all.is_empty() { "not compressed".to_owned() } else { all.join(", ") }
    }

    /// Returns the identity for machines.
    fn identity(&self) -> Table {
        let heads = ["|id", "|kind", "|base", "|stored_bytes", "|encoding", "|verified"];
        let mut table = Table::new("", &heads).named("backup");
        let verified = self.is_verified.map(|is_sound| if is_sound { "sound" } else { "damaged" });
        table.row(cells![
            self.id.as_str(),
            self.kind.as_str(),
            self.base.as_deref().map_or_else(Cell::none, Cell::from),
            mib(float(self.stored_bytes)),
            self.encoding(),
            verified.map_or_else(Cell::none, Cell::from),
        ]);
        table
    }

    /// Returns the sources and targets for people.
    fn places(&self) -> Table {
        let unit = Unit::for_sizes(self.run.places.iter().map(|own| own.bytes));
        let bytes = format!(">{}", unit.name());
        let heads = ["place", "role", &bytes, ">MiB/s", ">latency", ">depth", "time went to"];
        let mut table = Table::new("", &heads);
        for own in &self.run.places {
            table.row(cells![
                own.place.as_str(),
                own.role.as_str(),
                unit.cell(own.bytes),
                per_second(own.bytes_per_s / f64::from(1 << 20)),
                time(own.latency_mean_ns),
                rate(own.queue_depth),
                latency_shares(&own.waits_ns, own.medium_ns),
            ]);
        }
        table
    }

    fn stripes(&self) -> Table {
        let sizes = self.stripe_files.iter().flat_map(|own| [own.raw_bytes, own.bytes]);
        let unit = Unit::for_sizes(sizes);
        let raw = format!(">{}|raw_bytes", unit.name());
        let heads = [">stripe", ">frames", &raw, ">stored|bytes", "place"];
        let mut table = Table::new("", &heads).named("stripes");
        for own in &self.stripe_files {
            table.row(cells![
                grouped(own.stripe.into()),
                grouped(own.frames),
                unit.cell(own.raw_bytes),
                unit.cell(own.bytes),
                own.place.as_str(),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::BackupPlaceReport;

    #[test]
    fn a_backup_begins_with_how_it_went_and_fits() {
        let place = BackupPlaceReport {
            place: "/a/folder/with/a/long/name/for/backups".to_owned(),
            role: "target".to_owned(),
            bytes: 1431 << 20,
            bytes_per_s: 164.332 * 1_048_576.0,
            waits_ns: [("host_uncached_bytes".to_owned(), 40), ("disk_bytes".to_owned(), 60)]
                .into(),
            ..BackupPlaceReport::default()
        };
        let run = BackupReport {
            backup: "sales".to_owned(),
            bytes: 1431 << 20,
            elapsed_s: 8.7,
            mib_per_s: Some(164.332),
            binding_limit: Some("disk_bytes".to_owned()),
            places: vec![place],
            ..BackupReport::default()
        };
        let report = BackupRunReport {
            id: "0199c1a2-7b3c-7000-8000-000000000001".to_owned(),
            kind: "differential".to_owned(),
            base: Some("0199c1a2-0000-7000-8000-000000000001".to_owned()),
            is_verified: Some(true),
            run,
            ..BackupRunReport::default()
        };
        let text = report.text(&Screen::of_width(80));
        let first = "differential backup sales 0199c1a2-7b3c complete and verified: 1,431 MiB in \
                     8.7 s, 164.3 MiB/s; disk_bytes binds";
        let whole = report.text(&Screen::unlimited());
        assert_eq!(whole.lines().next(), Some(first));
        assert!(text.contains("  id 0199c1a2-7b3c-7000-8000-000000000001\n"), "{text}");
        let table = text.lines().skip_while(|line| !line.starts_with(" place"));
        assert!(table.into_iter().all(|line| line.chars().count() <= 80), "{text}");
    }
}
