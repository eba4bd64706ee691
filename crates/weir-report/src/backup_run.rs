//! A backup that was made in wall time.

use crate::backup::{self, BackupReport};
use crate::cells;
use crate::number::{float, mib, time};
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
    /// When the contents were frozen, as Unix time in milliseconds; nothing if they were not.
    pub frozen_unix_ms: Option<u64>,
    /// For how long the freeze stopped the server.
    pub pause_ns: Option<u64>,
    /// The most old contents that were kept beside the sources while the freeze lasted.
    pub kept_bytes: Option<u64>,
    /// The level of compression.
    pub compression: Option<i32>,
    /// Whether the contents are encrypted.
    pub is_encrypted: bool,
    /// Bytes of the stripes.
    pub stored_bytes: u64,
    /// Whether all of it was read back and found sound; nothing if that was not asked for.
    pub is_verified: Option<bool>,
    /// The stripes.
    pub stripe_files: Vec<BackupStripeReport>,
    /// What is worth knowing.
    pub notes: Vec<String>,
    /// How it went.
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
    /// Its frames.
    pub frames: u64,
    /// Bytes of the sources in it.
    pub raw_bytes: u64,
    /// Its length.
    pub bytes: u64,
}

impl Report for BackupRunReport {
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.identity()];
        tables.extend(backup::tables(std::slice::from_ref(&self.run)));
        tables.push(self.stripes());
        tables
    }
}

impl BackupRunReport {
    fn identity(&self) -> Table {
        let heads = ["id", "kind", "base", ">stored MiB|stored_bytes", "encoding", "verified"];
        let mut table = Table::new("", &heads).named("backup");
        let compression = self.compression.map(|level| format!("zstd {level}"));
        let encryption = self.is_encrypted.then(|| "encrypted".to_owned());
        let encoding: Vec<String> = compression.into_iter().chain(encryption).collect();
        let verified = self.is_verified.map(|is_sound| if is_sound { "sound" } else { "damaged" });
        table.row(cells![
            self.id.as_str(),
            self.kind.as_str(),
            self.base.as_deref().map_or_else(Cell::none, Cell::from),
            mib(float(self.stored_bytes)),
            encoding.join(", "),
            verified.map_or_else(Cell::none, Cell::from),
        ]);
        if let Some(pause) = self.pause_ns {
            let pause = time(float(pause)).to_string();
            table.notes.push(format!("frozen at one instant; clients waited {pause} for it"));
        }
        table.notes.extend(self.notes.iter().cloned());
        table
    }

    fn stripes(&self) -> Table {
        let heads = [">stripe", "place", ">frames", ">MiB|raw_bytes", ">stored MiB|bytes"];
        let mut table = Table::new("", &heads).named("stripes");
        for own in &self.stripe_files {
            table.row(cells![
                Cell::from(own.stripe.to_string()),
                own.place.as_str(),
                crate::number::grouped(own.frames),
                mib(float(own.raw_bytes)),
                mib(float(own.bytes)),
            ]);
        }
        table
    }
}
