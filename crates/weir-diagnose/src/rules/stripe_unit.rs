//! The unit of a stripe against the size of the requests.

use super::files::{REACH, throttled_at_own};
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, JudgedSubject, size};
use crate::system::{On, SubjectId, System};
use weir_report::diagnosis::Group;
use weir_report::number::{float, percent, rate, whole};

pub(super) const RULE: Rule = Rule {
    id: 211,
    name: "stripe-unit",
    group: Group::Layout,
    priority: 100,
    source: source::PREMIUM,
    finds: "requests are larger than the unit of their stripe, so that each becomes several operations",
    find,
};

/// A request that is done as fewer than this is split at the edge of a unit at most.
const PIECES: f64 = 2.0;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    case.named().filter_map(|judged| check_subject(case, rule, &judged)).collect()
}

/// Returns the stripe that splits the requests of a subject. Its columns see only pieces.
fn stripe_of(system: &System, id: SubjectId) -> Option<usize> {
    match id {
        SubjectId::Stripe(stripe) => Some(stripe),
        SubjectId::File(file) => match system.files[file].on? {
            On::Stripe(stripe) => Some(stripe),
            On::Disk(_) => None,
        },
        SubjectId::Disk(_) => None,
    }
}

/// Returns the unit that the edition recommends for a request size: the smallest that is not below
/// it, otherwise the largest.
fn recommended<'a>(case: &Case<'a>, bytes: f64) -> Option<(&'a str, u64)> {
    let units = &case.edition?.striping()?.units;
    let holds = units.iter().filter(|own| float(own.unit.get()) >= bytes);
    let least = holds.min_by_key(|own| own.unit);
    let own = least.or(units.iter().max_by_key(|own| own.unit))?;
    Some((own.workload.as_str(), own.unit.get()))
}

fn check_subject(case: &Case<'_>, rule: &Rule, judged: &JudgedSubject<'_>) -> Option<Candidate> {
    let stripe = stripe_of(case.system, judged.subject.id)?;
    let own = &case.system.stripes[stripe];
    let (unit, bytes) = (own.unit?, judged.facts.request_bytes()?);
    let (workload, better) = recommended(case, bytes)?;
    let pieces = bytes / float(unit);
    if pieces < PIECES || better <= unit {
        return None;
    }
    // A unit that is larger than what an operation may have counts as often as smaller ones.
    let io_unit = own.columns.first().and_then(|disk| case.system.disks[*disk].io_unit);
    let times = |unit: f64| {
        let pieces = (bytes / unit).max(1.0);
        pieces * io_unit.map_or(1.0, |io_unit| (bytes / pieces / io_unit).max(1.0))
    };
    let (now, then) = (times(float(unit)), times(float(better)));
    let caps = judged.subject.path.iter().map(|counts| case.cap(counts.cap));
    let in_operations =
        caps.filter(|(cap, facts)| !cap.counts_bytes() && facts.samples > 0 && !facts.is_bound);
    let used = in_operations.map(|(_, facts)| facts.used.quantile(0.99)).fold(0.0, f64::max);
    let wait =
        judged.waited.throttled().and_then(|first| throttled_at_own(case, judged).or(Some(first)));
    let wait = wait.filter(|wait| !super::files::counts_bytes(case, wait));
    if wait.is_none() && used < REACH {
        return None;
    }
    let text = format!(
        "requests to {} average {} and its unit is {}: each becomes {} disk operations, and {} with a \
         unit of {}",
        own.name,
        size(whole(bytes)),
        size(unit),
        rate(now),
        rate(then),
        size(better),
    );
    let mut finding = rule.finding(own.name.clone(), text);
    match wait {
        Some(wait) => {
            finding.cap = Some(wait.kind.name().to_owned());
            finding.confidence = judged.waited.confidence;
            finding.evidence.push(format!(
                "{} of the latency is wait time at IOPS limits",
                percent(wait.share)
            ));
        }
        None => {
            finding.priority = 150;
            finding.evidence.push(format!(
                "the IOPS limit is used to {} at most; no request waits there yet",
                percent(used)
            ));
        }
    }
    finding.evidence.push(format!("{} is recommended for {workload}", size(better)));
    finding.action = format!(
        "recreate the stripe with a unit of {} and copy its contents: New-VirtualDisk -Interleave \
         {better}, or mdadm --create --chunk={}",
        size(better),
        better >> 10
    );
    Some(finding.into())
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(unit: u32, does: EntityLoad) -> TestBed {
        let text = format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS14\" }}\n[[stripe]]\nname = \
             \"pool\"\nunit = \"{unit} KiB\"\nvolumes = {{ count = 4, tier = \"P10\" }}\n"
        );
        TestBed::layout(&text).disk("pool", does)
    }

    #[test]
    fn requests_of_256_kib_in_units_of_16() {
        // 124 of 16 pieces each are 1,984 of 2,000 operations.
        let held = EntityLoad::reads(124.0).kib(256.0).ms(80.0);
        let found = bed(16, held).found("stripe-unit");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.priority, 100);
        assert!(
            finding.finding.contains("each becomes 16.0 disk operations"),
            "{}",
            finding.finding
        );
        assert!(finding.action.contains("-Interleave 262144"), "{}", finding.action);
        // 100 of them are 80 % of it, and none waits.
        let near = bed(16, EntityLoad::reads(100.0).kib(256.0).ms(2.4)).found("stripe-unit");
        assert_eq!(near[0].priority, 150);
    }

    #[test]
    fn possible_cache_hits_prove_nothing() {
        let text = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[stripe]]\nname = \
                    \"pool\"\nunit = \"16 KiB\"\nvolumes = { count = 4, tier = \"P10\", cache = \
                    \"read-only\" }\n";
        let reads = EntityLoad::reads(200.0).kib(256.0).ms(0.5);
        assert!(!TestBed::layout(text).disk("pool", reads).finds("stripe-unit"));
    }

    #[test]
    fn a_fitting_unit_is_silent() {
        assert!(!bed(256, EntityLoad::reads(1980.0).kib(64.0).ms(80.0)).finds("stripe-unit"));
        assert!(!bed(16, EntityLoad::reads(60.0).kib(256.0).ms(2.4)).finds("stripe-unit"));
        // Small requests are not cut.
        assert!(!bed(64, EntityLoad::reads(1990.0).kib(64.0).ms(80.0)).finds("stripe-unit"));
    }
}
