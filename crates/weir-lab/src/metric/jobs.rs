//! Metrics of fio jobs.
//!
//! | metric | is |
//! |---|---|
//! | `iops`, `mib_per_s`, `mb_per_s` | totals of all jobs, without the warm-up |
//! | `read_iops`, `write_iops`, `read_mib_per_s`, `write_mib_per_s`, `read_mb_per_s`,
//! `write_mb_per_s` | the same of reads or writes alone |
//! | `mean_ms`, `read_mean_ms`, `write_mean_ms` | mean latency |
//! | `p50_ms`, `p99_ms` | percentile of the latency of a single job, or reporting group, of reads or
//! writes only |
//! | `series_between_s:LOW..HIGH` | start of the first interval with at least LOW and at most HIGH
//! operations per second |
//! | `wait_share:CAP` | the limit's share of all wait time; virtual time only |
//! | `volume_depth_max:STRIPE` | requests in flight at the stripe's busiest column; virtual time
//! only |
//! | `series_first:X`, `series_last:X` | the first interval, and the mean of the last tenth of the
//! run; X is `read_mib_per_s`, `write_mib_per_s`, or `disk_read_mib_per_s`, the reads that missed
//! the cache (virtual time only) |
//!
//! Rates and latencies are those of one job if its name follows: `iops:JOB`.

use super::name::{Unknown, split};
use crate::file::WARM_UP;
use weir_report::number::float;
use weir_report::run::{JobReport, LatencyReport, OpReport, RunReport, SeriesPoint};

const MIB: f64 = 1_048_576.0;

/// Returns whether a metric exists only in virtual time: jobs in wall time do not see what the
/// server does with their requests.
pub(super) fn virtual_only(metric: &str) -> bool {
    let (name, of) = split(metric);
    matches!(name, "wait_share" | "volume_depth_max") || of == "disk_read_mib_per_s"
}

/// Returns the metric of a run; `None` if the run does not have it, [`Unknown`] if no run has.
pub(super) fn read(metric: &str, run: &RunReport) -> Result<Option<f64>, Unknown> {
    let (name, of) = split(metric);
    let measured = || run.jobs.iter().filter(|job| job.name != WARM_UP);
    let own = || measured().filter(|job| of.is_empty() || job.name == of);
    let sum =
        |rate: fn(&JobReport) -> f64| own().next().is_some().then(|| own().map(rate).sum::<f64>());
    Ok(match name {
        "iops" => sum(JobReport::iops),
        "read_iops" => sum(|job| job.read.iops),
        "write_iops" => sum(|job| job.write.iops),
        "mib_per_s" => sum(JobReport::bytes_per_s).map(|rate| rate / MIB),
        "read_mib_per_s" => sum(|job| job.read.bytes_per_s).map(|rate| rate / MIB),
        "write_mib_per_s" => sum(|job| job.write.bytes_per_s).map(|rate| rate / MIB),
        "mb_per_s" => sum(JobReport::bytes_per_s).map(|rate| rate / 1e6),
        "read_mb_per_s" => sum(|job| job.read.bytes_per_s).map(|rate| rate / 1e6),
        "write_mb_per_s" => sum(|job| job.write.bytes_per_s).map(|rate| rate / 1e6),
        "mean_ms" => mean_ms(own().flat_map(|job| [&job.read, &job.write])),
        "read_mean_ms" => mean_ms(own().map(|job| &job.read)),
        "write_mean_ms" => mean_ms(own().map(|job| &job.write)),
        "p50_ms" => percentile(own(), |latency| latency.p50),
        "p99_ms" => percentile(own(), |latency| latency.p99),
        "series_between_s" => first_between(&run.series, of)?,
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

/// Returns the mean latency of operations, weighted by their number.
fn mean_ms<'a>(ops: impl Iterator<Item = &'a OpReport>) -> Option<f64> {
    let weigh = |(time, ios): (f64, u64), op: &OpReport| {
        (time + op.latency.mean * float(op.ios), ios + op.ios)
    };
    let (time, ios) = ops.fold((0.0, 0), weigh);
    (ios > 0).then(|| time / float(ios) / 1e6)
}

/// Returns a percentile of a job with operations of one kind; `None` if there are several.
fn percentile<'a>(
    mut jobs: impl Iterator<Item = &'a JobReport>,
    of: fn(&LatencyReport) -> u64,
) -> Option<f64> {
    let job = jobs.next()?;
    let mut kinds = [&job.read, &job.write].into_iter().filter(|op| op.ios > 0);
    match (kinds.next(), kinds.next(), jobs.next()) {
        (Some(op), None, None) => Some(float(of(&op.latency)) / 1e6),
        _ => None,
    }
}

/// Returns the start of the first interval within a range of rates.
fn first_between(series: &[SeriesPoint], range: &str) -> Result<Option<f64>, Unknown> {
    let number = |text: &str| text.parse::<f64>().map_err(|_| Unknown);
    let (low, high) = range.split_once("..").ok_or(Unknown)?;
    let range = number(low)?..=number(high)?;
    let is_in = |point: &&SeriesPoint| range.contains(&(point.read_iops + point.write_iops));
    Ok(series.iter().find(is_in).map(|point| point.start_s))
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
