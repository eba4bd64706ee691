//! Traces as the workload of a sweep. They are read once before the first point, so that a damaged one
//! ends the sweep at once, and opened again for each point.

use crate::cli::PartArgs;
use crate::commands::traces::open_all;
use crate::error::CliError;
use crate::output;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use weir_sweep::{Part, SweepFile, TraceInputs, Traces, content_hash};
use weir_trace::ReadTrace as _;
use weir_workload::replay::Recording;

/// Reads the traces of a sweep to their ends, and prints their notes: whether one was cut off, for
/// example.
pub(super) fn read(paths: &[PathBuf], file: &SweepFile) -> Result<TraceInputs, CliError> {
    let mut files = Vec::new();
    let mut hashes = Vec::new();
    for path in paths {
        let failed = |source| CliError::Read { path: path.clone(), source };
        let before = Version::read(path).map_err(failed)?;
        hashes.push(File::open(path).and_then(content_hash).map_err(failed)?);
        files.push((path.clone(), before));
    }
    let mut devices: BTreeSet<String> = BTreeSet::new();
    for mut recording in open_all(paths, &PartArgs::default())? {
        let name = &recording.name;
        let read = |error| CliError::Refused(format!("{name}: {error}"));
        while recording.trace.next_request().map_err(read)?.is_some() {}
        devices.extend(recording.trace.devices().iter().cloned());
        for note in recording.trace.notes() {
            output::talk(&format!("{}: {note}", recording.name));
        }
    }
    check_devices(file, &devices).map_err(CliError::Refused)?;
    let traces = TraceFiles { files };
    traces.check().map_err(CliError::Refused)?;
    Ok(TraceInputs { hashes, traces: Arc::new(traces) })
}

/// Refuses names of devices that no trace has.
fn check_devices(file: &SweepFile, devices: &BTreeSet<String>) -> Result<(), String> {
    let wanted = file.replay.iter().flat_map(|own| &own.devices).map(|own| ("devices", own));
    let mut named = file.map.keys().map(|own| ("map", own)).chain(wanted);
    let Some((key, name)) = named.find(|(_, name)| !devices.contains(*name)) else { return Ok(()) };
    let known: Vec<&str> = devices.iter().map(String::as_str).collect();
    Err(format!("{key}: no trace has the device {name:?}; there are: {}", known.join(", ")))
}

/// Traces with the versions that were hashed.
struct TraceFiles {
    files: Vec<(PathBuf, Version)>,
}

/// Identity, length and modification time of a file. Writing or replacing the file changes one of them.
#[derive(PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    len: u64,
    modified: SystemTime,
}

impl Version {
    fn read(path: &Path) -> io::Result<Self> {
        let own = fs::metadata(path)?;
        let (device, inode) = (own.dev(), own.ino());
        Ok(Self { device, inode, len: own.len(), modified: own.modified()? })
    }
}

impl Traces for TraceFiles {
    fn open(&self, part: &Part) -> Result<Vec<Recording>, String> {
        self.check()?;
        let paths: Vec<PathBuf> = self.files.iter().map(|(path, _)| path.clone()).collect();
        let part = PartArgs {
            devices: part.devices.clone(),
            from: part.window.from,
            to: part.window.to,
            sample: part.sample,
        };
        open_all(&paths, &part).map_err(|error| error.with_causes())
    }

    /// Refuses a trace that was written since it was hashed.
    fn check(&self) -> Result<(), String> {
        for (path, version) in &self.files {
            let name = path.display();
            match Version::read(path) {
                Ok(now) if now == *version => {}
                Ok(_) => {
                    return Err(format!("{name}: the trace was changed during the sweep"));
                }
                Err(source) => return Err(format!("{name}: {source}")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_is_written_or_replaced_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.weirtrace");
        let changes: [fn(&Path); 2] = [
            |path| fs::write(path, "longer").expect("a file"),
            |path| {
                let other = path.with_extension("other");
                fs::write(&other, "own").expect("a file");
                fs::rename(other, path).expect("a file");
            },
        ];
        for change in changes {
            fs::write(&path, "own").expect("a file");
            let version = Version::read(&path).expect("a version");
            let traces = TraceFiles { files: vec![(path.clone(), version)] };
            assert_eq!(traces.check(), Ok(()));
            change(&path);
            let error = traces.check().expect_err("a changed trace");
            assert!(
                error.ends_with("a.weirtrace: the trace was changed during the sweep"),
                "{error}"
            );
        }
    }
}
