//! Counters of disks, device by device and snapshot by snapshot.

use crate::sheet::Sheet;
use std::collections::HashMap;
use weir_observe::header::{EntityId, EntityKind, SeriesId};
use weir_observe::metric::Metric;

/// The metric of a counter, and the factor of its values.
pub(super) type Column = (&'static Metric, f64);

/// The devices seen so far.
#[derive(Debug, Default)]
pub(super) struct Disks {
    host: Option<EntityId>,
    devices: HashMap<String, Device>,
    /// Number of the current snapshot, from 1.
    snapshot: u64,
}

#[derive(Debug)]
struct Device {
    entity: EntityId,
    /// Series of each column that has had values.
    series: Vec<Option<SeriesId>>,
    /// Number of the last snapshot with the device.
    seen: u64,
}

impl Disks {
    /// Begins a snapshot.
    pub(super) fn begin(&mut self) {
        self.snapshot += 1;
    }

    /// Returns the number of the current snapshot, from 1.
    pub(super) const fn snapshot(&self) -> u64 {
        self.snapshot
    }

    /// Returns whether the current snapshot has the device already, so that another one begins.
    pub(super) fn has(&self, name: &str) -> bool {
        self.devices.get(name).is_some_and(|device| device.seen == self.snapshot)
    }

    /// Writes the counters of a device; missing ones are `None`.
    pub(super) fn put(
        &mut self,
        sheet: &mut Sheet,
        name: &str,
        columns: &[Option<Column>],
        values: &[Option<f64>],
    ) {
        if !self.devices.contains_key(name) {
            let entity = self.entity(sheet, name);
            let device = Device { entity, series: Vec::new(), seen: 0 };
            self.devices.insert(name.to_owned(), device);
        }
        let Some(device) = self.devices.get_mut(name) else { return };
        device.seen = self.snapshot;
        for (column, _) in columns.iter().zip(values).skip(device.series.len()) {
            let series = column.map(|(measure, _)| sheet.series(device.entity, measure));
            device.series.push(series);
        }
        for ((series, column), value) in device.series.iter().zip(columns).zip(values) {
            if let (Some(series), Some((measure, by)), Some(value)) = (series, column, value) {
                sheet.put(*series, measure, value * by);
            }
        }
    }

    fn entity(&mut self, sheet: &mut Sheet, name: &str) -> EntityId {
        let host = *self.host.get_or_insert_with(|| sheet.entity(EntityKind::Host, "host", None));
        let entity = sheet.entity(EntityKind::Volume, name, Some(host));
        if let Some(disk) = disk_of(name).filter(|disk| self.devices.contains_key(*disk)) {
            // The disk counts the I/O of its partitions too.
            sheet.attribute(entity, "partition_of", disk);
        }
        entity
    }
}

/// Returns the disk of a partition: `sda` for `sda1`, `nvme0n1` for `nvme0n1p2`.
fn disk_of(name: &str) -> Option<&str> {
    let digit = |c: char| c.is_ascii_digit();
    let bare = name.trim_end_matches(digit);
    if bare.len() == name.len() || bare.is_empty() {
        return None;
    }
    match bare.strip_suffix('p') {
        Some(disk) if disk.ends_with(digit) => Some(disk),
        _ => Some(bare),
    }
}

/// Parses a counter.
pub(super) fn counter(text: &str) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "exact up to petabytes")]
    text.parse::<u64>().ok().map(|number| number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_and_their_disks() {
        let check = |name: &str, expect| assert_eq!(disk_of(name), expect, "{name}");
        check("sda1", Some("sda"));
        check("nvme0n1p2", Some("nvme0n1"));
        check("cciss/c0d0p1", Some("cciss/c0d0"));
        check("sda", None);
        check("xvdp", None);
        check("1", None);
    }
}
