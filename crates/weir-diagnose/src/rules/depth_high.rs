//! More requests under way than a limit lets through: each waits longer, and nothing is gained.

use super::depth_low::per_disk;
use super::files::held_at_own;
use super::{Found, Rule, source};
use crate::case::{Case, Seen, amount};
use weir_layout::Role;
use weir_report::diagnosis::Group;
use weir_report::number::{float, rate, time, whole};

pub(super) const RULE: Rule = Rule {
    id: 213,
    name: "depth-high",
    group: Group::Layout,
    priority: 150,
    source: source::PREMIUM,
    finds: "far more requests are under way than fill the limit: that adds latency and nothing else",
    find,
};

/// So many times what fills the limit is far more.
const FAR_MORE: f64 = 4.0;

/// What is left when it is lowered: as much again as fills the limit, so that none is idle where
/// requests come unevenly.
const SPARE: f64 = 2.0;

/// A depth that somebody has set stays what it is: so much of it in all but a tenth of the samples
/// at either end.
const STEADY: f64 = 0.8;

/// It is at the limit for more than this part of the time.
const MOSTLY: f64 = 0.5;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    case.named().filter_map(|seen| of_subject(case, rule, &seen)).collect()
}

fn of_subject(case: &Case<'_>, rule: &Rule, seen: &Seen<'_>) -> Option<Found> {
    let held = held_at_own(case, seen).or(seen.waited.throttled())?;
    let roles = case.roles(seen.subject.what);
    // A database server does not let anybody set it: what waits there are its users.
    if roles.iter().any(|role| matches!(role, Role::Data | Role::Log | Role::Tempdb)) {
        return None;
    }
    let own = &seen.facts.depth;
    let (depth, usual) = (own.mean()?, seen.waited.usual_ns?);
    let is_steady = own.quantile(0.1) >= STEADY * own.quantile(0.9);
    let iops = seen.facts.iops.mean().filter(|iops| *iops > 0.0)?;
    let fills = iops * usual / 1e9;
    let disks = float(case.system.disks_of(seen.subject.what).len() as u64);
    let most = per_disk(case, "outstanding-max").map_or(0.0, |most| most * disks);
    let is_long = held.near_s >= MOSTLY * seen.facts.seconds();
    if !is_steady || !is_long || depth < FAR_MORE * fills || depth <= most {
        return None;
    }
    let lower =
        (SPARE * fills).max(per_disk(case, "outstanding-min").unwrap_or(1.0) * disks).ceil();
    if lower >= depth {
        return None;
    }
    let cap = &case.system.caps[held.cap];
    let subject = seen.name(case);
    let latency = seen.facts.latency_ns()?;
    let text = format!(
        "{} requests are under way at {subject} and {} fill its limit of {}: each takes {} where it \
         would take {} with {}, and no more is done",
        rate(depth),
        rate(fills),
        amount(cap.counts_bytes(), cap.limit.rate),
        time(latency),
        time(lower / iops * 1e9),
        whole(lower),
    );
    let mut finding = rule.finding(subject, text);
    finding.cap = Some(held.kind.name().to_owned());
    finding.confidence = seen.waited.confidence;
    finding.evidence.push(format!(
        "depth = operations a second x latency: {} x {} = {}",
        rate(iops),
        time(usual),
        rate(fills)
    ));
    if most > 0.0 {
        finding
            .evidence
            .push(format!("more than {} under way bring nothing on disks like these", rate(most)));
    }
    finding.action = format!(
        "lower the queue depth to {}: fewer threads, streams or backup files (fio: iodepth; SQL \
         Server: MAXDOP, fewer backup files)",
        whole(lower)
    );
    Some(finding.into())
}

#[cfg(test)]
mod tests {
    use crate::bed::{Bed, Does};

    fn bed(role: &str, does: Does) -> Bed {
        let text = format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS14\" }}\n[[volume]]\nname = \
             \"disk\"\ntier = \"P10\"\n[[file]]\nname = \"file\"\nrole = \"{role}\"\nsize = \"50 \
             GiB\"\non = \"disk\"\n"
        );
        Bed::layout(&text).disk("disk", does)
    }

    #[test]
    fn sixty_four_where_one_fills_it() {
        let found = bed("backup", Does::writes(498.0).ms(128.5)).found("depth-high");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.finding.starts_with("64.0 requests"), "{}", finding.finding);
        assert!(finding.action.contains("queue depth to 8"), "{}", finding.action);
    }

    #[test]
    fn what_nobody_can_set_or_is_not_much_or_not_held() {
        assert!(!bed("data", Does::writes(498.0).ms(128.5)).finds("depth-high"));
        // 16 are what the article still has for a disk.
        assert!(!bed("backup", Does::writes(498.0).ms(31.0)).finds("depth-high"));
        assert!(!bed("backup", Does::writes(300.0).ms(4.0)).finds("depth-high"));
    }
}
