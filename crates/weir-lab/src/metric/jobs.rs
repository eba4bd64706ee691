//! Metrics of fio jobs.
//!
//! | metric | is |
//! |---|---|
//! | `iops`, `mib_per_s` | totals of all jobs, without the warm-up |
//! | `wait_share:CAP` | the limit's share of all wait time; virtual time only |
//! | `volume_depth_max:STRIPE` | requests in flight at the stripe's busiest column; virtual time
//! only |
//! | `series_first:X`, `series_last:X` | the first interval, and the mean of the last tenth of the
//! run; X is `read_mib_per_s`, `write_mib_per_s`, or `disk_read_mib_per_s`, the reads that missed
//! the cache (virtual time only) |

use super::name::{Unknown, split};
use crate::file::WARM_UP;
use weir_report::number::float;
use weir_report::run::{JobReport, RunReport, SeriesPoint};

const MIB: f64 = 1_048_576.0;

/// Returns whether a metric exists only in virtual time: jobs in wall time do not see what the
/// server does with their requests.
pub(super) fn virtual_only(metric: &str) -> bool {
    let (name, of) = split(metric);
    matches!(name, "wait_share" | "volume_depth_max") || of == "disk_read_mib_per_s"
}

/// Returns the metric of a run; `None` if the run does not have it, [`Unknown`] if no run has.
pub(super) fn read(metric: &str, run: &RunReport) -> Result<Option<f64>, Unknown> {
    let measured = || run.jobs.iter().filter(|job| job.name != WARM_UP);
    let (name, of) = split(metric);
    Ok(match name {
        "iops" => Some(measured().map(JobReport::iops).sum()),
        "mib_per_s" => Some(measured().map(JobReport::bytes_per_s).sum::<f64>() / MIB),
        "wait_share" => wait_share(measured(), of),
        "volume_depth_max" => {
            let columns = run.volumes.iter().filter(|v| v.name.starts_with(&format!("{of}-")));
            columns.map(|v| v.queue_depth).reduce(f64::max)
        }
        "series_first" | "series_last" => {
            let tenth = (run.series.len() / 10).max(1);
            // The last interval may be incomplete.
            let whole = &run.series[..run.series.len().saturating_sub(1)];
            let part = match name {
                "series_first" => &whole[..whole.len().min(1)],
                _ => &whole[whole.len().saturating_sub(tenth)..],
            };
            mean(part, of).ok_or(Unknown)?
        }
        _ => return Err(Unknown),
    })
}

fn wait_share<'a>(jobs: impl Iterator<Item = &'a JobReport>, cap: &str) -> Option<f64> {
    let (mut own, mut all) = (0, 0);
    for job in jobs {
        own += job.waits_ns.get(cap).copied().unwrap_or(0);
        all += job.waits_ns.values().sum::<u64>();
    }
    (all > 0).then(|| float(own) / float(all))
}

/// Returns the mean of a series' column; the outer `None` means an unknown column.
fn mean(points: &[SeriesPoint], column: &str) -> Option<Option<f64>> {
    if column == "disk_read_mib_per_s" && points.iter().all(|p| p.hit_share.is_none()) {
        // Wall time does not know the cache's hits.
        return Some(None);
    }
    let values: Vec<f64> = points
        .iter()
        .map(|p: &SeriesPoint| match column {
            "read_mib_per_s" => Some(p.read_bytes_per_s / MIB),
            "write_mib_per_s" => Some(p.write_bytes_per_s / MIB),
            // All requests of a run with a series have the same size.
            "disk_read_mib_per_s" => {
                Some(p.read_bytes_per_s * (1.0 - p.hit_share.unwrap_or(0.0)) / MIB)
            }
            _ => None,
        })
        .collect::<Option<_>>()?;
    if values.is_empty() {
        return Some(None);
    }
    Some(Some(values.iter().sum::<f64>() / float(values.len() as u64)))
}
