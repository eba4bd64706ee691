//! The time that the clients of a running server take between an answer and their next request.
//!
//! A simulated job sends its next request at once. A real client first receives the answer and makes the next
//! request, over a socket and through a scheduler. If it waits for each answer, that time is a part of each
//! turn, so its rate is lower by it. The time follows from the measurement before the first step: with `n`
//! clients, a rate `x` and a mean latency `l` at the server, it is `n / x - l`. It does not depend on limits, so
//! the predictions of later steps have the same.

use crate::load::Load;
use crate::measure::Measured;
use weir_report::number::{float, whole};
use weir_units::Span;
use weir_workload::JobSpec;
use weir_workload::job::{Think, ThinkCount};

/// The largest share of a turn that may be the clients' own. With more, the load is rather not the one that was
/// described.
const MOST: f64 = 0.25;

/// Returns the time of the clients, if all of them wait for each answer, and have no pauses and rates of their
/// own.
pub(crate) fn time_of(load: &Load, measured: &Measured) -> Option<Span> {
    let Load::Jobs(file) = load else { return None };
    if !file.jobs.iter().all(waits_for_each_answer) || measured.iops <= 0.0 {
        return None;
    }
    let clients: u64 = file.jobs.iter().map(|job| u64::from(job.clones)).sum();
    let turn = float(clients) * 1e9 / measured.iops;
    let own = turn - measured.mean_ns;
    (own > 0.0 && own <= MOST * turn).then(|| Span::from_nanos(whole(own)))
}

fn waits_for_each_answer(job: &JobSpec) -> bool {
    let has_rate = [job.rate.read, job.rate.write, job.rate.trim].iter().any(Option::is_some);
    job.effective_depth() == 1 && job.think.is_none() && !has_rate && job.wave == 0
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
