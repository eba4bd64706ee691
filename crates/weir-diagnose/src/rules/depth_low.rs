//! A queue depth that is too low for the disks.

use super::rule::{Candidate, Rule, source};
use crate::case::{Case, JudgedSubject};
use crate::system::SubjectId;
use crate::verdict::Basis;
use weir_catalog::RuleValue;
use weir_layout::Role;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{float, percent, rate, time};

pub(super) const RULE: Rule = Rule {
    id: 212,
    name: "depth-low",
    group: Group::Layout,
    priority: 150,
    source: source::PREMIUM,
    finds: "a load in a closed loop has too low a queue depth for its disks",
    find,
};

/// Under way all the time, but for what the clock rounds.
const ALWAYS: f64 = 0.9;

/// Ratio of the 5th to the 95th percentile from which on a queue depth counts as that of a closed
/// loop.
const STEADY: f64 = 0.95;

/// Limits of which more is used are not far: one backup file used 164 of 200 MB/s (article 004)
/// and was bound by its depth.
const FAR: f64 = 0.85;

/// A request that takes no more than this many times what the medium does waits for nothing else.
const USUAL: f64 = 1.5;

/// From this size on requests are those of scans, loads and backups, which take what they get.
const LARGE: f64 = 65_536.0;

/// Smaller requests may arrive at random. For a closed loop, their queue depth must be an integer
/// within this tolerance.
const WHOLE: f64 = 0.02;

/// Fewer samples do not show that something is steady.
const SAMPLES: u64 = 20;

/// The best number of backup files for each disk, and in total (article 004).
const FILES: (usize, usize) = (4, 8);

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    case.named().filter_map(|judged| check_subject(case, rule, &judged)).collect()
}

/// Returns the queue depth that a disk needs, from the edition.
pub(super) fn per_disk(case: &Case<'_>, rule: &str) -> Option<f64> {
    match case.edition?.rule(rule)?.value? {
        RuleValue::Count(count) => Some(float(count)),
        _ => None,
    }
}

/// Returns whether a load is a closed loop.
fn is_closed(case: &Case<'_>, judged: &JudgedSubject<'_>, depth: f64) -> bool {
    let own = &judged.facts.depth;
    let is_steady = own.count() >= SAMPLES && own.quantile(0.05) >= STEADY * own.quantile(0.95);
    let is_large = judged.facts.request_bytes().is_some_and(|bytes| bytes >= LARGE);
    let is_backup = case.roles(judged.subject.id).contains(&Role::Backup);
    let is_whole = depth.round() >= 1.0 && (depth - depth.round()).abs() <= WHOLE * depth.round();
    depth >= ALWAYS && is_steady && (is_large || is_backup || is_whole)
}

fn check_subject(case: &Case<'_>, rule: &Rule, judged: &JudgedSubject<'_>) -> Option<Candidate> {
    let depth = judged.facts.depth.mean()?;
    let (unloaded, latency) = (judged.waited.unloaded_ns?, judged.facts.latency_ns()?);
    let is_unloaded = judged.waited.basis != Basis::Utilisation && latency <= USUAL * unloaded;
    let columns = case.system.disks_of(judged.subject.id).len();
    if !is_unloaded || columns == 0 || !is_closed(case, judged, depth) {
        return None;
    }
    let caps = judged.subject.path.iter().map(|counts| case.cap(counts.cap));
    let known = caps.filter(|(_, facts)| facts.samples > 0);
    let used = known.map(|(cap, facts)| (cap, facts.used.mean().unwrap_or(0.0)));
    let (cap, used) = used.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let disks = float(columns as u64);
    // The edition says how many a disk needs; else a column that has none does nothing.
    let needs = per_disk(case, "outstanding-min").map(|count| count * disks);
    let is_shallow = match needs {
        Some(needs) => depth < needs,
        None => depth < disks || used <= 0.5,
    };
    if used <= 0.0 || used > FAR || !is_shallow {
        return None;
    }
    // At a constant latency, the rate is proportional to the queue depth.
    let fills = depth / used;
    let subject = judged.name(case);
    let text = format!(
        "the queue depth of {subject} is always {}, at a latency of {}: that uses {} of {}, which a \
         depth of {} would reach",
        rate(depth),
        time(latency),
        percent(used),
        cap.kind.name(),
        rate(fills.ceil()),
    );
    let mut finding = rule.finding(subject, text);
    finding.confidence = Confidence::Medium;
    finding.evidence.push(format!(
        "in 90 % of the samples the queue depth is between {} and {}, as in a closed loop",
        rate(judged.facts.depth.quantile(0.05)),
        rate(judged.facts.depth.quantile(0.95))
    ));
    finding.evidence.push(format!("unloaded latency {}", time(unloaded)));
    if depth < disks {
        finding.evidence.push(format!(
            "at a queue depth of {}, {} of its {columns} disks are idle at any time",
            rate(depth),
            rate(disks - depth)
        ));
    }
    if let Some(needs) = needs {
        finding.evidence.push(format!("disks of this kind need a queue depth of {}", rate(needs)));
    }
    finding.action = action(case, judged.subject.id, columns, fills);
    Some(finding.into())
}

fn action(case: &Case<'_>, id: SubjectId, columns: usize, fills: f64) -> String {
    if case.roles(id).contains(&Role::Backup) {
        let files = (FILES.0 * columns).min(FILES.1);
        return format!(
            "back up to {files} files instead of one: BACKUP DATABASE ... TO DISK = '1', DISK = '2', \
             ...; each adds requests in flight"
        );
    }
    format!(
        "raise the queue depth to {}: use more threads, files or streams (SQL Server: MAXDOP, more \
         backup files; fio: iodepth or numjobs). Larger disks do not help now",
        rate(fills.ceil())
    )
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    const POOL: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[stripe]]\n\
                        name = \"pool\"\nunit = \"256 KiB\"\nvolumes = { count = 5, tier = \"P30\" \
                        }\n[[file]]\nname = \"backup\"\nrole = \"backup\"\nsize = \"50 GiB\"\non = \
                        \"pool\"\n";

    #[test]
    fn one_backup_file_on_five_disks() {
        // A queue depth of 2, with 256 KiB in 2.3 ms each.
        let found =
            TestBed::layout(POOL).disk("pool", EntityLoad::writes(869.5).kib(256.0).ms(2.3));
        let found = found.found("depth-low");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(
            finding.finding.starts_with("the queue depth of pool is always 2.00,"),
            "{}",
            finding.finding
        );
        assert!(finding.action.contains("8 files"), "{}", finding.action);
    }

    #[test]
    fn a_thread_that_reads_page_by_page() {
        let disk = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\nname = \
                    \"data\"\ntier = \"P30\"\n";
        let thread = EntityLoad::reads(476.2).ms(2.1);
        assert!(TestBed::layout(disk).disk("data", thread).finds("depth-low"));
        assert!(!TestBed::layout(disk).disk("data", thread).seconds(10).finds("depth-low"));
        // A queue depth of 1.3 is no closed loop.
        assert!(
            !TestBed::layout(disk)
                .disk("data", EntityLoad::reads(619.0).ms(2.1))
                .finds("depth-low")
        );
        let over = |second: u64| {
            EntityLoad::reads(if second.is_multiple_of(2) { 300.0 } else { 652.4 }).ms(2.1)
        };
        assert!(!TestBed::layout(disk).disk_over("data", over).finds("depth-low"));
        assert!(
            !TestBed::layout(disk)
                .disk("data", EntityLoad::reads(100.0).ms(2.1))
                .finds("depth-low")
        );
    }

    #[test]
    fn at_its_limit_a_load_is_deep_enough() {
        let held = EntityLoad::writes(1980.0).kib(256.0).ms(20.0);
        assert!(!TestBed::layout(POOL).disk("pool", held).finds("depth-low"));
    }
}
