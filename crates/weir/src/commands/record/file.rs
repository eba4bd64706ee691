//! The file of a recording, and what is in it.

use crate::error::CliError;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::{Builder, NamedTempFile};
use weir_import::recorded::open_own;
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

/// Makes a file for a recording in the folder of `out`, with a name that no other file has. It is
/// removed unless it is kept.
pub(super) fn part_of(out: &Path) -> Result<NamedTempFile, CliError> {
    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut prefix = OsString::from(".");
    prefix.push(out.file_name().unwrap_or_default());
    prefix.push(".");
    let mut builder = Builder::new();
    // The user's mask applies, as to every new file.
    builder.prefix(&prefix).suffix(".part").permissions(Permissions::from_mode(0o666));
    builder.tempfile_in(folder).map_err(|source| CliError::write(out, source))
}

/// Gives a file its name.
pub(super) fn keep(part: NamedTempFile, out: &Path) -> Result<(), CliError> {
    let write = |source| CliError::write(out, source);
    part.as_file().sync_all().map_err(write)?;
    part.persist(out).map_err(|error| write(error.error))?;
    Ok(())
}

/// Returns whether a file is a trace with at least one request.
pub(super) fn has_requests(path: &Path) -> bool {
    let reader = open_own(path).ok().flatten();
    reader.is_some_and(|mut reader| matches!(reader.next_request(), Ok(Some(_))))
}
