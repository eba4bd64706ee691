//! The log is what to grow first.

use super::files::{
    REACH, database_of, file_throttled, grown, judged_file, name, needed, own_disk, resize, used,
};
use super::rule::{Candidate, Rule, source};
use super::throttled::next_tier;
use super::waits::{Class, share};
use crate::case::{Case, JudgedSubject, amount, size};
use crate::follow::NEAR;
use crate::system::SubjectId;
use weir_layout::Role;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 204,
    name: "log-first",
    group: Group::Layout,
    priority: 100,
    source: source::INSTANCE,
    finds: "commits wait for a throttled log file: growing it helps more than growing data files",
    find,
};

/// A load is write-intensive from this part of writes on: the one that the article measures had
/// 40 %.
const WRITES: f64 = 0.4;

/// Waits for the log are among those that matter from this part of all waiting on.
const WAITS: f64 = 0.1;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let files = case.system.files.iter().enumerate();
    let logs = files.filter(|(_, file)| file.is(Role::Log)).map(|(file, _)| file);
    logs.filter_map(|log| check_log(case, rule, log)).collect()
}

/// Returns the data files of a log's database.
fn data_of(case: &Case<'_>, log: usize) -> Vec<usize> {
    let (own, host) = (database_of(case, log), case.system.host_of(SubjectId::File(log)));
    let beside = |file: &usize| {
        case.system.files[*file].is(Role::Data)
            && database_of(case, *file) == own
            && case.system.host_of(SubjectId::File(*file)) == host
    };
    (0..case.system.files.len()).filter(beside).collect()
}

/// Returns the share of writes in the operations of files.
fn write_share(case: &Case<'_>, files: impl Iterator<Item = usize>) -> Option<f64> {
    let (mut writes, mut all) = (0.0, 0.0);
    for own in files.filter_map(|file| judged_file(case, file)) {
        writes += own.facts.total.writes.unwrap_or(0.0);
        all += own.facts.total.operations.unwrap_or(0.0);
    }
    (all > 0.0).then(|| writes / all)
}

fn check_log(case: &Case<'_>, rule: &Rule, log: usize) -> Option<Candidate> {
    own_disk(case, log)?;
    let own = judged_file(case, log)?;
    let data = data_of(case, log);
    let writes = write_share(case, data.iter().copied().chain([log]))?;
    if writes < WRITES {
        return None;
    }
    let wait = file_throttled(case, log).map(|(_, wait)| wait);
    let waits = share(case, Class::Log);
    let governor = share(case, Class::LogGovernor).unwrap_or(0.0);
    let use_of = |is_bytes| used(case, SubjectId::File(log), is_bytes).unwrap_or(0.0);
    let is_bytes = match wait {
        Some(wait) => super::files::counts_bytes(case, wait),
        None => use_of(true) > use_of(false),
    };
    // The governor's limit does not depend on the size of the log.
    let is_near = use_of(is_bytes) >= NEAR
        && waits.is_some_and(|waits| waits >= WAITS && waits > governor)
        && own.waited.throttled().is_none();
    if wait.is_none() && !is_near {
        return None;
    }
    let subject = name(case, log);
    let limit = super::files::limit(case, SubjectId::File(log), is_bytes)?;
    let text = match wait {
        Some(wait) => format!(
            "commits wait for {subject}: {} of its latency is wait time at its limit of {}",
            percent(wait.share),
            amount(is_bytes, limit)
        ),
        None => format!(
            "commits wait for {subject}: {} of all wait time is for the log, which is used to {} of {}",
            percent(waits.unwrap_or(0.0)),
            percent(use_of(is_bytes)),
            amount(is_bytes, limit)
        ),
    };
    let mut finding = rule.finding(subject.clone(), text);
    // The throttling is certain; that growing the log helps most holds for many write-intensive
    // workloads (practice 4), but not for all.
    finding.confidence = own.waited.confidence.min(Confidence::Medium);
    match wait {
        Some(wait) => finding.cap = Some(wait.kind.name().to_owned()),
        None => finding.priority = 150,
    }
    finding.evidence.push(format!(
        "{} of the operations of its database are writes, and each waits for the log",
        percent(writes)
    ));
    if let Some(waits) = waits {
        finding.evidence.push(format!("{} of all wait time is for the log", percent(waits)));
    }
    finding.evidence.extend(data.iter().filter_map(|file| beside(case, *file)));
    let (action, change) = match needed(case, log, is_bytes) {
        Some((_, to)) if case.is_instance(SubjectId::File(log)) => (
            format!(
                "grow the log to {} before the data files: {}",
                size(to),
                resize(case, log, to)
            ),
            grown(case, &[log], to),
        ),
        _ => {
            let (action, change) = next_tier(case, SubjectId::File(log), is_bytes, false);
            (format!("grow the log before the data files: {action}"), change)
        }
    };
    finding.action = action;
    Some(Candidate::new(finding, change))
}

/// Returns the utilisation of a data file, for comparison.
fn beside(case: &Case<'_>, file: usize) -> Option<String> {
    let own: JudgedSubject<'_> = judged_file(case, file)?;
    let most =
        [false, true].into_iter().filter_map(|is_bytes| used(case, own.subject.id, is_bytes));
    let most = most.fold(0.0, f64::max);
    let is_throttled = file_throttled(case, file).is_some();
    let words = match () {
        () if is_throttled => "throttled as well",
        () if most < REACH => "has headroom",
        () => "near its limit",
    };
    Some(format!("{} is used to {} at most: {words}", name(case, file), percent(most)))
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(data: EntityLoad, log: EntityLoad) -> TestBed {
        let text = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 \
                    }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"600 GiB\"\n[[file]]\n\
                    name = \"log\"\nrole = \"log\"\nsize = \"32 GiB\"\n";
        TestBed::layout(text).file("db", "data", data).file("db", "log", log)
    }

    #[test]
    fn a_throttled_log_of_a_write_load() {
        let held = EntityLoad::writes(498.0).kib(4.0).ms(40.0);
        let found =
            bed(EntityLoad::reads(200.0).and_writes(300.0).ms(4.0), held).found("log-first");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.subject.as_str(), finding.priority), ("log", 100));
        assert!(finding.action.contains("129 GiB"), "{}", finding.action);
        // A load that reads 90 % has other things to wait for.
        let reads = EntityLoad::reads(4500.0).ms(4.0);
        assert!(!bed(reads, held).finds("log-first"));
    }

    #[test]
    fn log_waits_near_the_limit() {
        let (data, near) =
            (EntityLoad::writes(300.0).ms(4.0), EntityLoad::writes(460.0).kib(4.0).ms(4.0));
        let found = bed(data, near).wait("WRITELOG", 500.0).found("log-first");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].priority, 150);
        assert!(!bed(data, near).finds("log-first"));
        let far = EntityLoad::writes(300.0).kib(4.0).ms(4.0);
        assert!(!bed(data, far).wait("WRITELOG", 500.0).finds("log-first"));
        // The governor throttles it, whatever the file size.
        let governed = bed(data, near).wait("WRITELOG", 200.0);
        assert!(!governed.wait("INSTANCE_LOG_RATE_GOVERNOR", 900.0).finds("log-first"));
    }
}
