//! An instance at its limit of log.

use super::files::judged_file;
use super::rule::{Candidate, Rule, source};
use super::signs::NOTABLE;
use super::throttled::{finding, host_of, throttled_by, with};
use super::wait_times::{WAITERS, of_waits};
use crate::case::Case;
use crate::follow::WaitFacts;
use crate::verdict::{CapWait, THROTTLED};
use weir_core::Cap as Kind;
use weir_layout::Role;
use weir_report::diagnosis::{Confidence, Finding, Group};
use weir_report::number::{percent, time};

pub(super) const RULE: Rule = Rule {
    id: 106,
    name: "log-rate",
    group: Group::Throttling,
    priority: 10,
    source: source::INSTANCE,
    finds: "the instance is throttled by its log rate limit, which does not depend on the file size",
    find,
};

/// The wait type of the log rate governor.
pub(super) const WAIT: &str = "INSTANCE_LOG_RATE_GOVERNOR";

/// Others that say the same: of databases and pools.
const WAITS: [&str; 5] = [
    WAIT,
    "LOG_RATE_GOVERNOR",
    "POOL_LOG_RATE_GOVERNOR",
    "HADR_THROTTLE_LOG_RATE_GOVERNOR",
    "HADR_THROTTLE_LOG_RATE_SEND_RECV_QUEUE_SIZE",
];

const ACTION: &str = "write less log: load into tempdb first, which has no such limit, or into \
                      clustered columnstore indexes, which write little log. A larger log file \
                      does not help; more vCores may";

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let subjects = throttled_by(case, |_, wait: &CapWait| wait.kind == Kind::LogRate);
    if let Some((_, wait)) = subjects.first() {
        let host = host_of(case, wait.cap).map(|host| case.system.hosts[host].name.clone());
        let finding = finding(case, rule, host.unwrap_or_default(), &subjects);
        return finding
            .into_iter()
            .map(|mut finding| {
                finding.evidence.extend(waits(case));
                with(finding, &subjects, (ACTION.to_owned(), None))
            })
            .collect();
    }
    let wait_ns = share(case).map_or(0.0, |(_, _, ms)| ms * 1e6);
    let found = said_by_waits(case, rule);
    found.map(|finding| Candidate { wait_ns, ..finding.into() }).into_iter().collect()
}

/// Returns the share of these waits in all wait time, their number and their milliseconds.
fn share(case: &Case<'_>) -> Option<(f64, f64, f64)> {
    let waits = super::waits::resource_waits(case);
    let all: f64 = waits.iter().map(|wait| wait.time_ms).sum();
    let own = waits.iter().filter(|wait| WAITS.contains(&wait.name.as_str()));
    let (count, ms) = own.fold((0.0, 0.0), |(count, ms), wait| {
        (count + wait.count.unwrap_or(0.0), ms + wait.time_ms)
    });
    (all > 0.0 && ms > 0.0).then(|| (ms / all, count, ms))
}

fn waits(case: &Case<'_>) -> Option<String> {
    let (share, count, ms) = share(case)?;
    Some(format!(
        "{WAIT}: {count:.0} waits, {}, {} of all wait time",
        time(ms * 1e6),
        percent(share)
    ))
}

/// Looks for throttling of the log in the waits, for systems without a known log rate limit.
fn said_by_waits(case: &Case<'_>, rule: &Rule) -> Option<Finding> {
    let is_own = |wait: &WaitFacts| WAITS.contains(&wait.name.as_str());
    let waited = of_waits(case, is_own)?;
    let (share, _, ms) = share(case).filter(|(share, ..)| *share >= 0.1)?;
    // A tenth of hardly any waiting is no throttling.
    let is_felt =
        waited.waiters >= WAITERS || waited.waiters >= NOTABLE && is_much_of_writes(case, ms * 1e6);
    if !is_felt {
        return None;
    }
    let text = format!(
        "the log is throttled by the log rate governor: {} of all wait time",
        percent(share)
    );
    let mut finding = rule.finding("log", text);
    finding.cap = Some(Kind::LogRate.name().to_owned());
    finding.confidence = Confidence::High;
    finding.evidence.extend(waits(case));
    ACTION.clone_into(&mut finding.action);
    Some(finding)
}

/// Returns whether the wait is a notable part of the time that writes of the log take with it.
fn is_much_of_writes(case: &Case<'_>, wait_ns: f64) -> bool {
    let files = case.system.files.iter().enumerate();
    let logs = files.filter(|(_, file)| file.is(Role::Log)).map(|(file, _)| file);
    let latency_ns: f64 =
        logs.filter_map(|log| judged_file(case, log)).map(|own| own.waited.latency_ns).sum();
    latency_ns > 0.0 && wait_ns >= THROTTLED * (wait_ns + latency_ns)
}
