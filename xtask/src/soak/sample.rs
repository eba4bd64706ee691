//! Samples of the server: what the system knows about its process, its folder, and latencies.

use super::verdict::Sample;
use crate::error::XtaskError;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use weir_units::Span;

/// A process, and the folder with its data.
pub(super) struct Sampler {
    process: PathBuf,
    data: PathBuf,
}

impl Sampler {
    pub(super) fn new(process: u32, data: PathBuf) -> Self {
        Self { process: PathBuf::from(format!("/proc/{process}")), data }
    }

    /// Takes a sample with the latencies since the last one.
    pub(super) fn take(&self, at: Span, latencies: Vec<Span>) -> Result<Sample, XtaskError> {
        let path = self.process.join("status");
        let status = fs::read_to_string(&path).map_err(XtaskError::file("reading", &path))?;
        let field = |name: &str| {
            let missing = || XtaskError::Lost(format!("{}: no field {name}", path.display()));
            field_of(&status, name).ok_or_else(missing)
        };
        let path = self.process.join("fd");
        let descriptors = fs::read_dir(&path).map_err(XtaskError::file("reading", &path))?;
        let mut latencies = latencies;
        latencies.sort_unstable();
        Ok(Sample {
            at,
            memory: field("VmRSS")? << 10,
            descriptors: descriptors.count() as u64,
            threads: field("Threads")?,
            space: space_of(&self.data)?,
            requests: latencies.len() as u64,
            p50: rank(&latencies, 50),
            p99: rank(&latencies, 99),
        })
    }
}

/// Returns the number in a field of `/proc/PID/status`.
fn field_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the bytes that the files of a folder take. Files that are removed meanwhile don't count.
fn space_of(folder: &Path) -> Result<u64, XtaskError> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(XtaskError::file("reading", folder))? {
        let Ok(entry) = entry else { continue };
        let Ok(about) = entry.metadata() else { continue };
        bytes += match about.is_dir() {
            true => space_of(&entry.path())?,
            false => about.blocks() * 512,
        };
    }
    Ok(bytes)
}

/// Returns the value that a percentage of sorted values do not exceed.
fn rank(sorted: &[Span], percent: usize) -> Span {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_percentiles_are_found() {
        let status = "Name:\tweir\nVmRSS:\t   1234 kB\nThreads:\t7\n";
        assert_eq!(field_of(status, "VmRSS"), Some(1234));
        assert_eq!(field_of(status, "Threads"), Some(7));
        assert_eq!(field_of(status, "VmR"), None);
        let all: Vec<Span> = (1..=200).map(Span::from_millis).collect();
        assert_eq!(rank(&all, 50), Span::from_millis(100));
        assert_eq!(rank(&all, 99), Span::from_millis(198));
        assert_eq!(rank(&all[..1], 99), Span::from_millis(1));
        assert_eq!(rank(&[], 50), Span::ZERO);
    }

    #[test]
    fn this_process_can_be_sampled() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("file"), [1; 8192]).expect("a file");
        let sampler = Sampler::new(std::process::id(), folder.path().to_owned());
        let sample = sampler.take(Span::ZERO, vec![Span::from_millis(3)]).expect("a sample");
        assert!(sample.memory > 0 && sample.descriptors > 2 && sample.threads > 0, "{sample}");
        assert_eq!((sample.requests, sample.p50), (1, Span::from_millis(3)));
    }
}
