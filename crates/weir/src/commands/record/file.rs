//! The file of a recording, and what is in it.

use crate::error::CliError;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use weir_report::number::float;
use weir_report::replay::{RecordReport, RecordedDevice};
use weir_trace::{Kind, Request};
use weir_units::Instant;

/// Counts of the requests in a file.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) devices: Vec<RecordedDevice>,
    requests: u64,
    last: Instant,
}

impl Tally {
    /// Adds devices that were not seen before.
    pub(super) fn declare(&mut self, devices: &[String]) {
        let new = devices.iter().skip(self.devices.len());
        let new = new.map(|name| RecordedDevice { name: name.clone(), ..Default::default() });
        self.devices.extend(new);
    }

    /// Reports a file with these requests.
    pub(super) fn report(
        self,
        out: &Path,
        source: String,
        (lost, notes): (u64, Vec<String>),
    ) -> Result<RecordReport, CliError> {
        let bytes = fs::metadata(out).map_err(|source| CliError::write(out, source))?.len();
        Ok(RecordReport {
            path: out.display().to_string(),
            source,
            requests: self.requests,
            lost,
            length_s: float(self.last.nanos()) / 1e9,
            bytes,
            devices: self.devices.into_iter().filter(RecordedDevice::is_used).collect(),
            notes,
        })
    }

    pub(super) fn count(&mut self, request: &Request) {
        self.last = request.at;
        self.requests += 1;
        let Some(device) = self.devices.get_mut(request.device as usize) else { return };
        match request.kind {
            Kind::Read => device.reads += 1,
            Kind::Write | Kind::WriteThrough => device.writes += 1,
            Kind::Discard => device.discards += 1,
            Kind::Flush => device.flushes += 1,
        }
        if !matches!(request.kind, Kind::Discard) {
            device.bytes = device.bytes.saturating_add(request.len);
        }
        device.reaches_bytes = device.reaches_bytes.max(request.offset + request.len);
    }
}

/// Gives a complete file its name.
pub(super) fn keep(file: &File, part: &Path, out: &Path) -> Result<(), CliError> {
    let kept = file.sync_all().and_then(|()| fs::rename(part, out));
    kept.map_err(|source| CliError::write(out, source))
}

/// Returns the name of a file until it is complete.
pub(super) fn part_of(out: &Path) -> PathBuf {
    let mut part = out.to_owned().into_os_string();
    part.push(".part");
    PathBuf::from(part)
}
