//! Metrics of a backup.
//!
//! | metric | is |
//! |---|---|
//! | `backup_mib_per_s` | the rate that SQL Server prints as MB/sec |
//! | `backup_queue_depth:PLACE` | transfers in flight at a source or target, on average |
//! | `backup_limit` | the binding limit |
//! | `backup_scaled_s` | the duration at the size of wall time, which is compared with the virtual one |
//! | `backup_readers`, `backup_buffers`, `backup_sets` | readers, buffers of a set, sets |
//! | `backup_buffer_mib` | memory of all buffers |

use super::name::{Unknown, split};
use weir_report::backup::BackupReport;
use weir_report::lab::Value;
use weir_report::number::float;

const MIB: f64 = 1_048_576.0;

/// Returns whether a metric belongs to backups.
pub(super) fn is_one(metric: &str) -> bool {
    metric.starts_with("backup_")
}

/// Reads a metric of a backup.
pub(super) fn read(metric: &str, backup: &BackupReport) -> Result<Option<Value>, Unknown> {
    let (name, place) = split(metric);
    let number = match name {
        "backup_mib_per_s" => backup.mib_per_s.filter(|_| backup.is_complete),
        "backup_queue_depth" => queue_depth(backup, place),
        "backup_limit" => return Ok(backup.binding_limit.clone().map(Value::Text)),
        "backup_scaled_s" => Some(backup.elapsed_s),
        "backup_readers" => Some(f64::from(backup.readers)),
        "backup_buffers" => Some(f64::from(backup.buffer_count)),
        "backup_sets" => Some(f64::from(backup.buffer_sets)),
        "backup_buffer_mib" => {
            let buffers = f64::from(backup.buffer_count) * f64::from(backup.buffer_sets);
            Some(buffers * float(backup.max_transfer_bytes) / MIB)
        }
        _ => return Err(Unknown),
    };
    Ok(number.map(Value::Number))
}

fn queue_depth(backup: &BackupReport, place: &str) -> Option<f64> {
    backup.places.iter().find(|own| own.place == place).map(|own| own.queue_depth)
}
