//! A backup that ran, in virtual or wall time.

use crate::backups::per_second;
use crate::cells;
use crate::number::{float, grouped, mib, rate, time};
use crate::run::latency_shares;
use crate::table::{Cell, Table};
use serde::Serialize;
use std::collections::BTreeMap;

/// A backup: how long it took, and the limit that bound it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupReport {
    /// Name.
    pub backup: String,
    /// True if all bytes were written before the run ended.
    pub is_complete: bool,
    /// Its start, in seconds from the start of the run.
    pub start_s: f64,
    /// Seconds from its start to its end, or to the end of the run.
    pub elapsed_s: f64,
    /// Bytes of the sources.
    pub bytes: u64,
    /// Bytes that were read so far.
    pub bytes_read: u64,
    /// Bytes that were written to the stripes.
    pub bytes_written: u64,
    /// Bytes of the sources in 2^20 bytes per second, which SQL Server prints as MB/sec.
    pub mib_per_s: Option<f64>,
    /// The line that SQL Server would print at the end.
    pub message: Option<String>,
    /// The limit at which its transfers waited longest; nothing if they hardly waited at limits.
    pub binding_limit: Option<String>,
    /// Readers.
    pub readers: u32,
    /// Stripes.
    pub stripes: u32,
    /// Buffers of a set.
    pub buffer_count: u32,
    /// Sets of buffers.
    pub buffer_sets: u32,
    /// Bytes of a buffer.
    pub max_transfer_bytes: u64,
    /// Buffers in use, on average.
    pub buffers_used: f64,
    /// Seconds in which readers had no free buffer, over all readers (BACKUPBUFFER).
    pub waited_for_buffer_s: f64,
    /// Seconds in which writers had no data, over all writers (BACKUPIO).
    pub waited_for_data_s: f64,
    /// The sources, then the targets.
    pub places: Vec<BackupPlaceReport>,
}

/// A source or target of a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupPlaceReport {
    /// The file, volume or stripe of the layout.
    pub place: String,
    /// `source` or `target`.
    pub role: String,
    /// Transfers.
    pub transfers: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes per second of the backup's time.
    pub bytes_per_s: f64,
    /// Mean latency.
    pub latency_mean_ns: f64,
    /// Transfers in flight, on average.
    pub queue_depth: f64,
    /// Time waited per limit.
    pub waits_ns: BTreeMap<String, u64>,
    /// Service time of the medium.
    pub medium_ns: u64,
}

/// Returns the tables of backups for people; no backup, no tables.
pub(crate) fn tables(backups: &[BackupReport]) -> Vec<Table> {
    if backups.is_empty() {
        return Vec::new();
    }
    vec![summary(backups), places(backups)]
}

fn summary(backups: &[BackupReport]) -> Table {
    let heads = [
        "backup",
        ">duration|elapsed_s",
        ">MiB|bytes",
        ">MiB/s|mib_per_s",
        "binding limit|binding_limit",
        ">stripes",
        ">buffers|buffer_count",
        ">in use|buffers_used",
        ">readers waited|waited_for_buffer_s",
        ">writers waited|waited_for_data_s",
    ];
    let mut table = Table::new("", &heads).named("backups");
    for own in backups {
        table.row(cells![
            own.backup.as_str(),
            seconds(own.elapsed_s),
            mib(float(own.bytes)),
            own.mib_per_s.map_or_else(Cell::none, |own| Cell::number(per_second(own), own)),
            own.binding_limit.as_deref().map_or_else(Cell::none, Cell::from),
            grouped(own.stripes.into()),
            grouped(own.buffer_count.into()),
            rate(own.buffers_used),
            seconds(own.waited_for_buffer_s),
            seconds(own.waited_for_data_s),
        ]);
        let note = match &own.message {
            Some(message) => format!("{}: {message}", own.backup),
            None => format!("{}: not complete when the run ended", own.backup),
        };
        table.notes.push(note);
    }
    table
}

/// Returns a time that machines read in seconds.
fn seconds(seconds: f64) -> Cell {
    Cell::number(time(seconds * 1e9).to_string(), seconds)
}

fn places(backups: &[BackupReport]) -> Table {
    // The first column names a row in each part of a table that is wider than the screen.
    let backup = if backups.len() > 1 { "backup" } else { "|backup" };
    let heads = [
        "place",
        "role",
        backup,
        ">transfers",
        ">MiB|bytes",
        ">MiB/s|bytes_per_s",
        ">latency|latency_mean_ns",
        ">queue depth|queue_depth",
        "where the time went|",
    ];
    let mut table = Table::new("", &heads).named("backup_places");
    for own in backups {
        for place in &own.places {
            table.row(cells![
                place.place.as_str(),
                place.role.as_str(),
                own.backup.as_str(),
                grouped(place.transfers),
                mib(float(place.bytes)),
                Cell::number(per_second(place.bytes_per_s / f64::from(1 << 20)), place.bytes_per_s),
                time(place.latency_mean_ns),
                rate(place.queue_depth),
                latency_shares(&place.waits_ns, place.medium_ns),
            ]);
        }
    }
    table
}
