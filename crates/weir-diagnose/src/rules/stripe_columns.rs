//! Stripes over fewer disks than there are, or whose columns are used unevenly.

use super::files::throttled_at_own;
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, JudgedSubject};
use crate::change::Change;
use crate::system::{On, SubjectId};
use crate::verdict::CapWait;
use weir_report::diagnosis::Group;
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 210,
    name: "stripe-columns",
    group: Group::Layout,
    priority: 100,
    source: source::PREMIUM,
    finds: "the columns of a stripe are throttled while equal disks are idle",
    find,
};

/// A column that uses less than this part of what the fullest does is spared.
const SPARED: f64 = 0.5;

/// A disk that does less than this part of what a column does has nothing to do.
const IDLE: f64 = 0.01;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let stripes = 0..case.system.stripes.len();
    stripes
        .filter_map(|stripe| {
            let (judged, wait) = wait(case, stripe)?;
            let idle = idle(case, stripe);
            if idle.is_empty() {
                return uneven(case, rule, stripe, (&judged, wait)).map(Candidate::from);
            }
            Some(unused(case, rule, stripe, (&judged, wait), &idle))
        })
        .collect()
}

/// Returns the subject with the longest wait time at the columns of a stripe.
fn wait<'a>(case: &Case<'a>, stripe: usize) -> Option<(JudgedSubject<'a>, &'a CapWait)> {
    let columns = &case.system.stripes[stripe].columns;
    let on_it = |judged: &JudgedSubject<'_>| {
        let disks = case.system.disks_of(judged.subject.id);
        !disks.is_empty() && disks.iter().all(|disk| columns.contains(disk))
    };
    let own = case.named().filter(on_it);
    let wait = own.filter_map(|judged| throttled_at_own(case, &judged).map(|wait| (judged, wait)));
    wait.max_by(|one, other| one.1.wait_ns.total_cmp(&other.1.wait_ns))
}

/// Disks of the host that are like the columns, and carry nothing.
fn idle(case: &Case<'_>, stripe: usize) -> Vec<usize> {
    let own = &case.system.stripes[stripe];
    let Some(column) = own.columns.first().map(|disk| &case.system.disks[*disk]) else {
        return Vec::new();
    };
    let per_column = own
        .columns
        .iter()
        .flat_map(|disk| case.caps_of_disk(*disk))
        .map(|(_, facts)| facts.operations)
        .fold(0.0, f64::max);
    let says_files = !case.system.files.is_empty();
    let is = |index: &usize| {
        let disk = &case.system.disks[*index];
        let is_like = disk.tier.is_some()
            && disk.tier == column.tier
            && disk.family == column.family
            && disk.host == column.host
            && disk.is_local == column.is_local;
        let has_files = case.system.files_on(On::Disk(*index)).next().is_some();
        let does =
            case.subject(SubjectId::Disk(*index)).and_then(|judged| judged.facts.total.operations);
        // An unobserved disk counts as idle only if the layout lists all files.
        let is_idle = match does {
            Some(does) => does <= IDLE * per_column,
            None => says_files,
        };
        disk.stripe.is_none() && is_like && !has_files && is_idle
    };
    (0..case.system.disks.len()).filter(is).collect()
}

fn unused(
    case: &Case<'_>,
    rule: &Rule,
    stripe: usize,
    (judged, wait): (&JudgedSubject<'_>, &CapWait),
    idle: &[usize],
) -> Candidate {
    let own = &case.system.stripes[stripe];
    let now = own.columns.len();
    let then = now + idle.len();
    let names: Vec<&str> = idle.iter().map(|disk| case.system.disks[*disk].name.as_str()).collect();
    let tier = case.system.disks[idle[0]].tier.clone().unwrap_or_default();
    let text = format!(
        "{} is throttled by the limits of its {now} columns while {} more {tier} of its machine {} \
         idle: {}",
        own.name,
        idle.len(),
        if idle.len() == 1 { "is" } else { "are" },
        names.join(", ")
    );
    let mut finding = rule.finding(own.name.clone(), text);
    finding.cap = Some(wait.kind.name().to_owned());
    finding.confidence = judged.waited.confidence;
    finding.evidence.push(format!("{} of the latency is wait time", percent(wait.share)));
    if let Some(most) = most_columns(case, stripe) {
        finding.evidence.push(format!("a stripe of this machine can have up to {most} columns"));
    }
    finding.action = format!(
        "recreate the stripe with one column per disk, {then} instead of {now}: New-VirtualDisk \
         -NumberOfColumns {then}, or mdadm --grow --raid-devices={then}"
    );
    let change =
        u32::try_from(then).ok().map(|columns| Change::Columns { name: own.name.clone(), columns });
    Candidate::new(finding, change.filter(|_| case.layout.is_some()))
}

/// Returns the maximum number of columns for the host's series in the edition.
fn most_columns(case: &Case<'_>, stripe: usize) -> Option<u32> {
    let host = &case.system.hosts[case.system.stripes[stripe].host?];
    let edition = case.edition?;
    let series = &edition.host(host.qualified_size.as_deref()?).ok()?.series;
    let all = &edition.striping()?.max_columns;
    all.iter().find(|own| own.series == *series).map(|own| own.columns)
}

/// Builds a finding on columns that are throttled while others of the same stripe have little load.
fn uneven(
    case: &Case<'_>,
    rule: &Rule,
    stripe: usize,
    (judged, wait): (&JudgedSubject<'_>, &CapWait),
) -> Option<weir_report::diagnosis::Finding> {
    let own = &case.system.stripes[stripe];
    let is_bytes = super::files::counts_bytes(case, wait);
    let watched = own.columns.iter().filter(|disk| case.subject(SubjectId::Disk(**disk)).is_some());
    let uses: Vec<(usize, f64)> = watched
        .filter_map(|disk| {
            let mut caps = case.caps_of_disk(*disk);
            let (_, facts) = caps.find(|(cap, _)| cap.counts_bytes() == is_bytes)?;
            Some((*disk, facts.used.mean().unwrap_or(0.0)))
        })
        .collect();
    let most = uses.iter().map(|(_, used)| *used).fold(0.0, f64::max);
    let spared = uses.iter().filter(|(_, used)| *used < SPARED * most).count();
    if uses.len() < own.columns.len() || spared == 0 {
        return None;
    }
    let columns = own.columns.len();
    let text = format!(
        "{} is throttled while {spared} of its {columns} columns {} less than half of the load of \
         the busiest: the load is not distributed over all columns",
        own.name,
        if spared == 1 { "has" } else { "have" },
    );
    let mut finding = rule.finding(own.name.clone(), text);
    finding.cap = Some(wait.kind.name().to_owned());
    finding.confidence = judged.waited.confidence;
    for (disk, used) in &uses {
        let name = &case.system.disks[*disk].name;
        finding.evidence.push(format!("{name}: {} on average", percent(*used)));
    }
    finding.action = format!(
        "check that the stripe has one column per disk (Get-VirtualDisk | select NumberOfColumns; \
         mdadm --detail): with fewer columns than disks, the load is uneven. Recreate it with \
         {columns} columns, or, if it has them, with a smaller unit"
    );
    Some(finding)
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn layout(spare_tier: &str) -> String {
        format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS14\" }}\n[[volume]]\nname = \
             \"spare\"\ntier = \"{spare_tier}\"\n[[stripe]]\nname = \"pool\"\nunit = \"64 \
             KiB\"\nvolumes = {{ count = 2, tier = \"P10\" }}\n[[file]]\nname = \"data\"\nrole = \
             \"data\"\nsize = \"100 GiB\"\non = \"pool\"\n"
        )
    }

    fn held() -> EntityLoad {
        EntityLoad::reads(996.0).ms(40.0)
    }

    #[test]
    fn an_idle_disk_of_the_same_tier_is_a_spare_column() {
        let found = TestBed::layout(&layout("P10")).disk("pool", held()).found("stripe-columns");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.finding.contains("2 columns while 1 more P10"), "{}", finding.finding);
        assert!(finding.action.contains("-NumberOfColumns 3"), "{}", finding.action);
    }

    #[test]
    fn a_disk_of_another_tier_or_with_load_is_no_spare_column() {
        assert!(!TestBed::layout(&layout("P20")).disk("pool", held()).finds("stripe-columns"));
        let busy = TestBed::layout(&layout("P10"))
            .disk("pool", held())
            .disk("spare", EntityLoad::reads(90.0));
        assert!(!busy.finds("stripe-columns"));
        let fine = EntityLoad::reads(600.0);
        assert!(!TestBed::layout(&layout("P10")).disk("pool", fine).finds("stripe-columns"));
    }

    #[test]
    fn uneven_columns_are_found() {
        let columns = |one: EntityLoad, two: EntityLoad| {
            let bed = TestBed::layout(&layout("P20"));
            bed.disk("pool-0", one).disk("pool-1", two)
        };
        let held = EntityLoad::reads(498.0).ms(40.0);
        let found = columns(held, EntityLoad::reads(100.0)).found("stripe-columns");
        assert_eq!(found.len(), 1);
        assert!(found[0].finding.contains("1 of its 2 columns"), "{}", found[0].finding);
        assert!(!columns(held, held).finds("stripe-columns"));
        assert!(
            !columns(EntityLoad::reads(400.0), EntityLoad::reads(100.0)).finds("stripe-columns")
        );
    }
}
