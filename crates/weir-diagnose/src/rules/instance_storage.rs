//! The free storage of an instance, for throttled files to grow.

use super::files::{
    GIB, InstanceStorage, counts_bytes, name, needed, own_disk, resize, sized, throttled_on, tiers,
    words,
};
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, size};
use crate::change::Change;
use weir_catalog::RuleValue;
use weir_layout::instance::Measure;
use weir_report::diagnosis::Group;
use weir_units::Bytes;

pub(super) const RULE: Rule = Rule {
    id: 216,
    name: "instance-storage",
    group: Group::Layout,
    priority: 100,
    source: source::INSTANCE,
    finds: "throttled files could grow, if the instance has enough free storage",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let hosts = 0..case.system.hosts.len();
    hosts.filter_map(|host| check_instance(case, rule, host)).collect()
}

/// A file that has to grow.
struct FileGrowth {
    file: usize,
    own: u64,
    to: u64,
    /// Growth of its blob.
    blob: u64,
    words: String,
}

fn grows(case: &Case<'_>, file: usize, is_bytes: bool) -> Option<FileGrowth> {
    let (own, to) = needed(case, file, is_bytes)?;
    let set = tiers(case, own_disk(case, file)?)?;
    let (now, tier) = (set.snap(Bytes::new(own))?, set.snap(Bytes::new(to))?);
    let words = format!("{}: {}", tier.name, words(&tier.limits()));
    Some(FileGrowth { file, own, to, blob: tier.size.get() - now.size.get(), words })
}

fn check_instance(case: &Case<'_>, rule: &Rule, host: usize) -> Option<Candidate> {
    let room = InstanceStorage::new(case, host)?;
    let wait = throttled_on(case, host);
    let all =
        wait.iter().filter_map(|(file, _, wait)| grows(case, *file, counts_bytes(case, wait)));
    let all: Vec<FileGrowth> = all.collect();
    let (_, judged, most) = wait.first()?;
    let blobs = blobs_left(case, host);
    let (mut free, mut left) = (room.free(), blobs.unwrap_or(u64::MAX));
    let (mut fit, mut not) = (Vec::new(), Vec::new());
    // By wait time.
    for one in all {
        let more = one.to - one.own;
        if more <= free && one.blob <= left {
            (free, left) = (free - more, left - one.blob);
            fit.push(one);
        } else {
            not.push(one);
        }
    }
    let names = |all: &[FileGrowth]| {
        all.iter().map(|one| name(case, one.file)).collect::<Vec<_>>().join(", ")
    };
    let lacks: u64 = not.iter().map(|one| one.to - one.own).sum();
    let is_blob = not.iter().any(|one| one.to - one.own <= free);
    let text = match (fit.is_empty(), not.is_empty()) {
        (true, true) => return None,
        (false, true) => format!(
            "the instance has {} of {} free, and {} would be faster with {} of it",
            size(room.free()),
            size(room.storage),
            names(&fit),
            size(fit.iter().map(|one| one.to - one.own).sum()),
        ),
        (_, false) => format!(
            "the instance has {} of {} free, and {} would need {}{}",
            size(room.free()),
            size(room.storage),
            names(&not),
            size(lacks),
            if fit.is_empty() { String::new() } else { format!(" in addition to {}", names(&fit)) },
        ),
    };
    let mut finding = rule.finding(case.system.hosts[host].name.clone(), text);
    finding.cap = Some(most.kind.name().to_owned());
    finding.confidence = judged.waited.confidence;
    for one in fit.iter().chain(&not) {
        finding.evidence.push(format!(
            "{} has {}; at {} it becomes {}",
            name(case, one.file),
            size(one.own),
            size(one.to),
            one.words
        ));
    }
    if let Some(left) = blobs {
        finding.evidence.push(format!(
            "blobs occupy the full size of their tiers: {} of the limit on all blobs are free",
            size(left)
        ));
    }
    let mut actions: Vec<String> = Vec::new();
    if !fit.is_empty() {
        let statements: Vec<String> =
            fit.iter().map(|one| resize(case, one.file, one.to)).collect();
        actions.push(format!("grow the throttled files: {}", statements.join("; ")));
    }
    if !not.is_empty() && is_blob {
        actions.push(format!("{}: the limit on blobs is reached; use fewer files", names(&not)));
    } else if !not.is_empty() {
        actions.push(raise(case, host, room, lacks - free.min(lacks)));
    }
    finding.action = actions.join(", then ");
    let changes: Option<Vec<Change>> =
        fit.iter().map(|one| sized(case, one.file, one.to)).collect();
    Some(Candidate::new(finding, changes.filter(|all| !all.is_empty()).map(Change::All)))
}

/// Returns the free part of the limit on all blobs of an instance.
fn blobs_left(case: &Case<'_>, host: usize) -> Option<u64> {
    let name = &case.system.hosts[host].name;
    let own = case.layout?.hosts.iter().find(|own| own.name == *name)?;
    let bounds = &own.instance.as_ref()?.bounds;
    let bound = bounds.iter().find(|bound| bound.measure == Measure::Blobs)?;
    let sizes = own.volumes.iter().filter_map(|volume| volume.tier_size);
    Some(bound.most.saturating_sub(sizes.map(Bytes::get).sum()))
}

/// Returns the least storage that an instance can reserve for `bytes` of files.
pub(crate) fn storage_for(case: &Case<'_>, bytes: u64) -> u64 {
    let step = match case.edition.and_then(|edition| edition.rule("storage-step")?.value) {
        Some(RuleValue::Size(step)) => step.get().max(1),
        _ => GIB,
    };
    bytes.next_multiple_of(step)
}

/// Raises the storage of an instance by so much, if it may have that.
fn raise(case: &Case<'_>, host: usize, room: InstanceStorage, by: u64) -> String {
    let to = storage_for(case, room.storage + by);
    let own = case.system.hosts[host].size.as_deref();
    let own = own.and_then(|own| case.edition?.host(own).ok());
    let most = own.and_then(|own| own.storage).map(Bytes::get);
    match most {
        Some(most) if to > most => format!(
            "this needs {} of storage and {} is the maximum at this size: use more vCores, shrink other \
             files, or use Business Critical",
            size(to),
            size(most)
        ),
        _ => format!(
            "raise the storage of the instance to {} or the next step: az sql mi update --storage {}GB",
            size(to),
            to / GIB
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(vcores: u32, storage: &str, gib: u32, does: EntityLoad) -> TestBed {
        let text = format!(
            "edition = \"azure-mi-2018\"\nhost = {{ managed_instance = \"gp\", vcores = {vcores}, \
             storage = \"{storage}\" }}\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"{gib} \
             GiB\"\n"
        );
        TestBed::layout(&text).file("db", "data", does)
    }

    fn held() -> EntityLoad {
        EntityLoad::reads(498.0).ms(60.0)
    }

    #[test]
    fn free_storage_is_used_to_grow() {
        let found = bed(8, "1 TiB", 32, held()).found("instance-storage");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(
            finding.finding.starts_with("the instance has 992 GiB of 1 TiB free"),
            "{}",
            finding.finding
        );
        assert!(finding.action.contains("SIZE = 132096 MB"), "{}", finding.action);
        assert!(!bed(8, "1 TiB", 32, EntityLoad::reads(200.0).ms(4.0)).finds("instance-storage"));
    }

    #[test]
    fn storage_is_raised_up_to_the_maximum() {
        // 96 of 128 GiB are left, and 97 are needed: one short.
        let found = bed(8, "128 GiB", 32, held()).found("instance-storage");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.action.contains("--storage 129GB"), "{}", finding.action);
        // With one GiB more it is there.
        let fits = bed(8, "129 GiB", 32, held()).found("instance-storage");
        assert!(fits[0].action.contains("ALTER DATABASE"), "{}", fits[0].action);
    }

    #[test]
    fn storage_above_the_maximum_is_not_advised() {
        // 4 vCores have 2 TiB at most: a P30 of 1,010 GiB needs 15 more, a P40 beside it has the rest.
        let text = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 4 }\n\
                    [[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"1010 GiB\"\n[[file]]\nname = \
                    \"other\"\nrole = \"data\"\nsize = \"1030 GiB\"\n";
        let bed = TestBed::layout(text).file("db", "data", EntityLoad::reads(4990.0).ms(60.0));
        let found =
            bed.file("db", "other", EntityLoad::reads(90.0).ms(4.0)).found("instance-storage");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.action.contains("2 TiB is the maximum at this size"), "{}", finding.action);
    }

    #[test]
    fn files_in_the_largest_tier_do_not_grow() {
        assert!(
            !bed(8, "8 TiB", 1100, EntityLoad::reads(7490.0).ms(60.0)).finds("instance-storage")
        );
    }
}
