//! Lines that SQL Server logs about a backup under trace flags 3004, 3014, 3213 and 3605.

use crate::cells;
use crate::number::grouped;
use crate::screen::Screen;
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// Buffers and threads of a backup, and the log that SQL Server writes of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupInternalsReport {
    /// Readers: one for each volume that holds data files.
    pub readers: u32,
    /// Backup devices.
    pub stripes: u32,
    /// Buffers of a set.
    pub buffer_count: u32,
    /// Sets of buffers.
    pub buffer_sets: u32,
    /// Bytes of a buffer.
    pub max_transfer_bytes: u64,
    /// Bytes of all buffers.
    pub buffer_bytes: u64,
    /// Buffers of the media layer.
    pub media_buffers: u32,
    /// Buffers that compression writes to.
    pub encode_buffers: Option<u32>,
    /// The memory that buffers may take.
    pub memory_limit_bytes: Option<u64>,
    /// Source of the memory limit.
    pub memory_limit_source: String,
    /// Bytes of data to back up, in whole extents.
    pub estimated_bytes: Option<u64>,
    /// The lines of the error log.
    pub log: Vec<String>,
    /// Notes.
    pub notes: Vec<String>,
}

impl Report for BackupInternalsReport {
    fn tables(&self) -> Vec<Table> {
        let mut table = Table::new("", &["what", ">value"]).named("internals");
        let number = |n: u64| grouped(n);
        let mut row = |what: &str, cell: Cell| table.row(cells![what, cell]);
        row("readers", number(self.readers.into()));
        row("stripes", number(self.stripes.into()));
        row("buffer_count", number(self.buffer_count.into()));
        row("buffer_sets", number(self.buffer_sets.into()));
        row("max_transfer_bytes", number(self.max_transfer_bytes));
        row("buffer_bytes", number(self.buffer_bytes));
        row("media_buffers", number(self.media_buffers.into()));
        row("encode_buffers", self.encode_buffers.map_or_else(Cell::none, |n| number(n.into())));
        row("memory_limit_bytes", self.memory_limit_bytes.map_or_else(Cell::none, number));
        row("estimated_bytes", self.estimated_bytes.map_or_else(Cell::none, number));
        vec![table]
    }

    fn text(&self, screen: &Screen) -> String {
        // The log is shown as SQL Server writes it, line by line.
        let log = self.log.join("\n");
        let notes: String =
            self.notes.iter().map(|note| format!("{}\n", screen.prose(note, 2))).collect();
        if notes.is_empty() { format!("{log}\n") } else { format!("{log}\n\n{notes}") }
    }

    fn markdown(&self) -> String {
        let notes: String = self.notes.iter().map(|note| format!("\n{note}\n")).collect();
        format!("```text\n{}\n```\n{notes}", self.log.join("\n"))
    }
}
