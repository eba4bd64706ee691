//! Stripes over fewer disks than there are, or whose columns are used unevenly.

use super::files::held_at_own;
use super::{Found, Rule, source};
use crate::case::{Case, Seen};
use crate::change::Change;
use crate::system::{On, What};
use crate::verdict::Held;
use weir_report::diagnosis::Group;
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 210,
    name: "stripe-columns",
    group: Group::Layout,
    priority: 100,
    source: source::PREMIUM,
    finds: "the columns of a stripe are held while disks like them have nothing to do",
    find,
};

/// A column that uses less than this part of what the fullest does is spared.
const SPARED: f64 = 0.5;

/// A disk that does less than this part of what a column does has nothing to do.
const IDLE: f64 = 0.01;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    let stripes = 0..case.system.stripes.len();
    stripes
        .filter_map(|stripe| {
            let (seen, held) = held(case, stripe)?;
            let idle = idle(case, stripe);
            if idle.is_empty() {
                return uneven(case, rule, stripe, (&seen, held)).map(Found::from);
            }
            Some(unused(case, rule, stripe, (&seen, held), &idle))
        })
        .collect()
}

/// Who is held at the columns of a stripe, most first.
fn held<'a>(case: &Case<'a>, stripe: usize) -> Option<(Seen<'a>, &'a Held)> {
    let columns = &case.system.stripes[stripe].columns;
    let on_it = |seen: &Seen<'_>| {
        let disks = case.system.disks_of(seen.subject.what);
        !disks.is_empty() && disks.iter().all(|disk| columns.contains(disk))
    };
    let own = case.named().filter(on_it);
    let held = own.filter_map(|seen| held_at_own(case, &seen).map(|held| (seen, held)));
    held.max_by(|one, other| one.1.waited_ns.total_cmp(&other.1.waited_ns))
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
        let does = case.seen(What::Disk(*index)).and_then(|seen| seen.facts.total.operations);
        // Of a disk that nobody watched the layout has to say that nothing is on it.
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
    (seen, held): (&Seen<'_>, &Held),
    idle: &[usize],
) -> Found {
    let own = &case.system.stripes[stripe];
    let now = own.columns.len();
    let then = now + idle.len();
    let names: Vec<&str> = idle.iter().map(|disk| case.system.disks[*disk].name.as_str()).collect();
    let tier = case.system.disks[idle[0]].tier.clone().unwrap_or_default();
    let text = format!(
        "{} is held at the limits of its {now} columns while {} more {tier} of its machine {} \
         nothing: {}",
        own.name,
        idle.len(),
        if idle.len() == 1 { "carries" } else { "carry" },
        names.join(", ")
    );
    let mut finding = rule.finding(own.name.clone(), text);
    finding.cap = Some(held.kind.name().to_owned());
    finding.confidence = seen.waited.confidence;
    finding.evidence.push(format!("{} of the latency is waiting there", percent(held.share)));
    if let Some(most) = most_columns(case, stripe) {
        finding.evidence.push(format!("a stripe of this machine can have {most} columns"));
    }
    finding.action = format!(
        "make the stripe anew with one column for each disk, {then} in place of {now}: New-VirtualDisk \
         -NumberOfColumns {then}, or mdadm --grow --raid-devices={then}"
    );
    let change =
        u32::try_from(then).ok().map(|columns| Change::Columns { name: own.name.clone(), columns });
    Found::new(finding, change.filter(|_| case.layout.is_some()))
}

/// The most columns that the edition says a stripe of the host's series can have.
fn most_columns(case: &Case<'_>, stripe: usize) -> Option<u32> {
    let host = &case.system.hosts[case.system.stripes[stripe].host?];
    let edition = case.edition?;
    let series = &edition.host(host.qualified_size.as_deref()?).ok()?.series;
    let all = &edition.striping()?.max_columns;
    all.iter().find(|own| own.series == *series).map(|own| own.columns)
}

/// Columns that are held while others of the same stripe have little to do.
fn uneven(
    case: &Case<'_>,
    rule: &Rule,
    stripe: usize,
    (seen, held): (&Seen<'_>, &Held),
) -> Option<weir_report::diagnosis::Finding> {
    let own = &case.system.stripes[stripe];
    let is_bytes = super::files::counts_bytes(case, held);
    let watched = own.columns.iter().filter(|disk| case.seen(What::Disk(**disk)).is_some());
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
        "{} is held while {spared} of its {columns} columns {} less than half of what the fullest \
         does: what is done is not spread over all of them",
        own.name,
        if spared == 1 { "does" } else { "do" },
    );
    let mut finding = rule.finding(own.name.clone(), text);
    finding.cap = Some(held.kind.name().to_owned());
    finding.confidence = seen.waited.confidence;
    for (disk, used) in &uses {
        let name = &case.system.disks[*disk].name;
        finding.evidence.push(format!("{name} uses {} on average", percent(*used)));
    }
    finding.action = format!(
        "see that the stripe has one column for each disk (Get-VirtualDisk | select \
         NumberOfColumns; mdadm --detail): a stripe of fewer columns than disks spreads unevenly. \
         Make it anew with {columns} columns, or, if it has them, with a smaller unit"
    );
    Some(finding)
}

#[cfg(test)]
mod tests {
    use crate::bed::{Bed, Does};

    fn layout(spare_tier: &str) -> String {
        format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS14\" }}\n[[volume]]\nname = \
             \"spare\"\ntier = \"{spare_tier}\"\n[[stripe]]\nname = \"pool\"\nunit = \"64 \
             KiB\"\nvolumes = {{ count = 2, tier = \"P10\" }}\n[[file]]\nname = \"data\"\nrole = \
             \"data\"\nsize = \"100 GiB\"\non = \"pool\"\n"
        )
    }

    fn held() -> Does {
        Does::reads(996.0).ms(40.0)
    }

    #[test]
    fn a_disk_like_the_columns_that_carries_nothing() {
        let found = Bed::layout(&layout("P10")).disk("pool", held()).found("stripe-columns");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.finding.contains("2 columns while 1 more P10"), "{}", finding.finding);
        assert!(finding.action.contains("-NumberOfColumns 3"), "{}", finding.action);
    }

    #[test]
    fn a_disk_of_another_tier_or_with_work_is_no_column() {
        assert!(!Bed::layout(&layout("P20")).disk("pool", held()).finds("stripe-columns"));
        let busy =
            Bed::layout(&layout("P10")).disk("pool", held()).disk("spare", Does::reads(90.0));
        assert!(!busy.finds("stripe-columns"));
        let fine = Does::reads(600.0);
        assert!(!Bed::layout(&layout("P10")).disk("pool", fine).finds("stripe-columns"));
    }

    #[test]
    fn columns_that_are_used_unevenly() {
        let columns = |one: Does, two: Does| {
            let bed = Bed::layout(&layout("P20"));
            bed.disk("pool-0", one).disk("pool-1", two)
        };
        let held = Does::reads(498.0).ms(40.0);
        let found = columns(held, Does::reads(100.0)).found("stripe-columns");
        assert_eq!(found.len(), 1);
        assert!(found[0].finding.contains("1 of its 2 columns"), "{}", found[0].finding);
        assert!(!columns(held, held).finds("stripe-columns"));
        assert!(!columns(Does::reads(400.0), Does::reads(100.0)).finds("stripe-columns"));
    }
}
