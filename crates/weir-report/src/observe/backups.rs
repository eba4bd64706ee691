//! The backups of an observation.

use crate::cells;
use crate::number::{float, grouped, mib, percent, time};
use crate::table::{Cell, Table};
use serde::Serialize;

/// Backups of a database that are alike. Unknown figures are absent, and not zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObservedBackup {
    /// Name.
    pub backup: String,
    /// The number of backups.
    pub count: u64,
    /// Mean duration in seconds.
    pub seconds: Option<f64>,
    /// Bytes read, on average.
    pub bytes: Option<f64>,
    /// Bytes read per second.
    pub bytes_per_s: Option<f64>,
    /// Bytes written, on average.
    pub written_bytes: Option<f64>,
    /// Files, blobs or devices that were written at once.
    pub stripes: Option<u64>,
    /// Readers.
    pub readers: Option<u64>,
    /// Buffers.
    pub buffer_count: Option<u64>,
    /// The largest transfer.
    pub max_transfer_bytes: Option<u64>,
    /// Folders, containers or volumes that were written to.
    pub targets: Option<String>,
}

/// Returns the table of backups; no backup, no rows.
pub(super) fn table(all: &[ObservedBackup]) -> Table {
    let heads = [
        "backup",
        ">count",
        ">duration|seconds",
        ">MiB|bytes",
        ">MiB/s|bytes_per_s",
        ">written MiB|written_bytes",
        ">of it|",
        ">stripes",
        ">readers",
        ">buffers|buffer_count",
        ">transfer KiB|max_transfer_bytes",
        "targets",
    ];
    let mut table = Table::new("", &heads).named("backups");
    for own in all {
        let some = |value: Option<f64>, cell: fn(f64) -> Cell| value.map_or_else(Cell::none, cell);
        let number = |value: Option<u64>| value.map_or_else(Cell::none, grouped);
        let ratio = own.written_bytes.zip(own.bytes).filter(|(_, bytes)| *bytes > 0.0);
        let kib = own
            .max_transfer_bytes
            .map(|bytes| Cell::number((bytes >> 10).to_string(), float(bytes)));
        table.row(cells![
            own.backup.as_str(),
            grouped(own.count),
            some(own.seconds, |seconds| Cell::number(time(seconds * 1e9).to_string(), seconds)),
            some(own.bytes, mib),
            some(own.bytes_per_s, mib),
            some(own.written_bytes, mib),
            some(ratio.map(|(written, bytes)| written / bytes), percent),
            number(own.stripes),
            number(own.readers),
            number(own.buffer_count),
            kib.unwrap_or_else(Cell::none),
            own.targets.as_deref().map_or_else(Cell::none, Cell::from),
        ]);
    }
    table
}
