//! Checks of options that would otherwise have no effect. A front end passes the names that its options
//! have, which messages begin with.

use std::collections::BTreeSet;
use weir_core::CacheMode;
use weir_layout::Layout;
use weir_report::number::{float, rate};
use weir_units::Span;
use weir_workload::job::Target;
use weir_workload::{Device, JobFile, Placed};

/// Maximum number of requests that a closed replay keeps in flight.
pub const MOST_DEPTH: u32 = 65_536;

/// Refuses a mapping that applies to no job.
///
/// # Errors
///
/// A message about the first such mapping, or one that is given twice.
pub fn check_map(option: &str, map: &[(String, String)], jobs: &JobFile) -> Result<(), String> {
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    for job in &jobs.jobs {
        match &job.target {
            Target::Unnamed => {}
            Target::Directory(names) | Target::Files(names) => {
                paths.extend(names.iter().map(|name| name.trim_end_matches('/')));
            }
        }
    }
    for (at, (path, export)) in map.iter().enumerate() {
        let trimmed = path.trim_end_matches('/');
        if !paths.contains(trimmed) {
            let known: Vec<&str> = paths.into_iter().collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!(
                "{option} {path}={export}: no job has the directory or filename {path}; the jobs \
                 have: {known}"
            ));
        }
        let before = &map[..at];
        if before.iter().any(|(other, _)| other.trim_end_matches('/') == trimmed) {
            return Err(format!("{option} {path}={export}: {path} is mapped twice"));
        }
    }
    Ok(())
}

/// Refuses to warm an export that no job reads or that is not cached. The simulator refuses unknown
/// exports.
///
/// # Errors
///
/// A message about the first such export.
pub fn check_warm(
    option: &str,
    warm: &[String],
    layout: &Layout,
    devices: &[Device],
    placed: &[Placed],
) -> Result<(), String> {
    for name in warm {
        if layout.export(option, name).is_err() {
            continue;
        }
        check_cached(option, name, layout)?;
        let device = devices.iter().position(|device| device.name == *name);
        let used = |at: usize| {
            placed.iter().flat_map(|p| &p.regions).any(|region| region.device as usize == at)
        };
        if !device.is_some_and(used) {
            return Err(format!("{option} {name}: no job has a file on it"));
        }
    }
    Ok(())
}

/// Refuses to warm an export for a replay if it is unknown or not cached.
///
/// # Errors
///
/// A message about the first such export.
pub fn check_warm_replay(option: &str, warm: &[String], layout: &Layout) -> Result<(), String> {
    warm.iter().try_for_each(|name| check_cached(option, name, layout))
}

fn check_cached(option: &str, name: &str, layout: &Layout) -> Result<(), String> {
    let (host, export) = layout.export(option, name).map_err(|kind| kind.to_string())?;
    let volumes = &layout.hosts[host].spec.volumes;
    if export.volumes.iter().all(|id| volumes[id.0].cache == CacheMode::None) {
        return Err(format!(
            "{option} {name}: it has cache = \"none\"; give it cache = \"read-only\" in the layout"
        ));
    }
    Ok(())
}

/// Refuses a crash after the last request, which has no effect.
///
/// # Errors
///
/// A message with the end of the run.
pub fn check_crash(
    option: &str,
    crash: Option<&(String, Span)>,
    jobs: &JobFile,
    elapsed_s: f64,
) -> Result<(), String> {
    let Some((host, at)) = crash else { return Ok(()) };
    let first_wave = jobs.jobs.iter().map(|job| job.wave).min();
    let first = jobs.jobs.iter().filter(|job| Some(job.wave) == first_wave);
    let start = first.map(|job| job.start_delay).min().unwrap_or_default();
    let end = float(start.nanos()) / 1e9 + elapsed_s;
    if float(at.nanos()) / 1e9 > end {
        return Err(format!(
            "{option} {host}@{}: the run ends before that, after {} s; give an earlier time",
            at.to_string().replace(' ', ""),
            rate(end)
        ));
    }
    Ok(())
}
