//! The time that the clients of a running server take between an answer and their next request.
//!
//! A simulated job sends its next request at once. A real client first receives the answer and prepares the next
//! request. With one request in flight, this time is a part of each cycle, and lowers the client's rate. By
//! Little's law, with `n` clients, a rate `x` and a mean latency `l` at the server, it is `n / x - l`; `x` and `l`
//! are measured before the first step. The time does not depend on limits, so later predictions include the same.

use crate::load::Load;
use crate::measure::Measured;
use weir_report::number::{float, whole};
use weir_units::Span;
use weir_workload::JobSpec;
use weir_workload::job::{Mix, Think, ThinkCount};

/// The largest share of a cycle that may be the clients' own. With more, the load is not the one that was
/// described.
const MOST: f64 = 0.25;
/// The longest such time in nanoseconds.
const LONGEST: f64 = 1e6;

/// Returns the time of the clients, if as many are connected as the jobs describe, and all of them only wait for
/// each answer.
pub(crate) fn time_of(load: &Load, measured: &Measured) -> Option<Span> {
    let Load::Jobs(file) = load else { return None };
    let clients: u64 = file.jobs.iter().map(|job| u64::from(job.clones)).sum();
    let is_described = measured.clients == Some(clients);
    if !is_described || !file.jobs.iter().all(only_waits) || measured.iops <= 0.0 {
        return None;
    }
    let cycle = float(clients) * 1e9 / measured.iops;
    let own = cycle - measured.mean_ns;
    (own > 0.0 && own <= LONGEST && own <= MOST * cycle).then(|| Span::from_nanos(whole(own)))
}

/// Returns whether a job only reads and writes, one block after the other, from start to end. The counters do not
/// include flushes and trims, and the client's time does not slow down a job that is paced or ends early.
fn only_waits(job: &JobSpec) -> bool {
    let has_rate = [job.rate.read, job.rate.write, job.rate.trim].iter().any(Option::is_some);
    let is_paced = has_rate || job.think.is_some() || job.start_delay > Span::ZERO || job.wave > 0;
    let flushes = job.fsync > 0 || job.fdatasync > 0 || job.end_fsync;
    let trims = matches!(job.mix, Mix::Trim | Mix::TrimWrite);
    let ends_early = !job.time_based || job.number_ios.is_some();
    job.effective_depth() == 1 && !(is_paced || flushes || trims || ends_early)
}

/// Returns the load of clients that take this time after each answer.
pub(crate) fn with_time(load: &Load, time: Span) -> Load {
    let mut load = load.clone();
    if let Load::Jobs(file) = &mut load {
        for job in &mut file.jobs {
            job.think = Some(Think { time, blocks: 1, count: ThinkCount::Completed });
        }
    }
    load
}
