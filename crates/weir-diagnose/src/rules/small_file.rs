//! A small data file that slows the whole database.

use super::files::{
    Database, InstanceStorage, counts_bytes, databases, file_throttled, limit, name, resize, sized,
    tiers, used,
};
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, JudgedSubject, amount, size};
use crate::change::Change;
use crate::follow::NEAR;
use crate::system::SubjectId;
use crate::verdict::CapWait;
use weir_report::diagnosis::Group;
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 201,
    name: "small-file",
    group: Group::Layout,
    priority: 100,
    source: source::INSTANCE,
    finds: "a small data file is throttled while larger files of its database have headroom",
    find,
};

/// A throttled file, and the larger files with headroom.
pub(super) struct SmallFile<'a> {
    file: usize,
    judged: JudgedSubject<'a>,
    wait: &'a CapWait,
    larger: Vec<usize>,
}

/// Returns the small files of a database, at most as many as larger files with headroom.
pub(super) fn small<'a>(case: &Case<'a>, database: &Database) -> Vec<SmallFile<'a>> {
    let larger = |file: usize, is_bytes: bool| -> Vec<usize> {
        let (own, own_limit) =
            (case.system.files[file].size, limit(case, SubjectId::File(file), is_bytes));
        let is_larger = |other: &usize| {
            case.system.files[*other].size > own
                && limit(case, SubjectId::File(*other), is_bytes) > own_limit
                && file_throttled(case, *other).is_none()
                && used(case, SubjectId::File(*other), is_bytes).is_some_and(|used| used < NEAR)
        };
        match (own, own_limit) {
            (Some(_), Some(_)) => database.files.iter().copied().filter(is_larger).collect(),
            _ => Vec::new(),
        }
    };
    let all = database.files.iter().filter_map(|file| {
        let (judged, wait) = file_throttled(case, *file)?;
        let larger = larger(*file, counts_bytes(case, wait));
        (!larger.is_empty()).then_some(SmallFile { file: *file, judged, wait, larger })
    });
    let all: Vec<SmallFile<'_>> = all.collect();
    let wait = database.files.iter().filter(|file| file_throttled(case, **file).is_some()).count();
    let is_few = all.iter().all(|small| small.larger.len() >= wait);
    if is_few { all } else { Vec::new() }
}

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let databases = databases(case);
    let all = databases.iter().flat_map(|database| {
        let small = small(case, database);
        small.into_iter().filter_map(|small| check_file(case, rule, database, &small))
    });
    all.collect()
}

fn check_file(
    case: &Case<'_>,
    rule: &Rule,
    database: &Database,
    small: &SmallFile<'_>,
) -> Option<Candidate> {
    let is_bytes = counts_bytes(case, small.wait);
    let own = SubjectId::File(small.file);
    let (own_size, own_limit) = (case.system.files[small.file].size?, limit(case, own, is_bytes)?);
    let largest = small.larger.iter().copied().max_by_key(|file| case.system.files[*file].size)?;
    let target = case.system.files[largest].size?;
    let subject = name(case, small.file);
    let text = format!(
        "{subject}, with {} the smallest data file of {}, is throttled at {}; {} with {} and a limit \
         of {} is used to {} at most",
        size(own_size),
        database.name,
        amount(is_bytes, own_limit),
        name(case, largest),
        size(target),
        amount(is_bytes, limit(case, SubjectId::File(largest), is_bytes)?),
        percent(used(case, SubjectId::File(largest), is_bytes)?),
    );
    let mut finding = rule.finding(subject.clone(), text);
    finding.cap = Some(small.wait.kind.name().to_owned());
    finding.confidence = small.judged.waited.confidence;
    finding.evidence.push(format!(
        "{} of the latency of {subject} is wait time; every query that needs a page of this file \
         waits, even if the other files have headroom",
        percent(small.wait.share)
    ));
    for file in &small.larger {
        let share = used(case, SubjectId::File(*file), is_bytes)?;
        let bytes = case.system.files[*file].size?;
        let name = name(case, *file);
        finding.evidence.push(format!(
            "{name} ({}): used to {} at most",
            size(bytes),
            percent(share)
        ));
    }
    let (action, change) = action(case, small.file, largest, target);
    finding.action = action;
    Some(Candidate::new(finding, change))
}

fn action(case: &Case<'_>, file: usize, like: usize, target: u64) -> (String, Option<Change>) {
    let disks = case.system.disks_of(SubjectId::File(file));
    if !case.is_instance(SubjectId::File(file)) {
        let other = case.system.disks_of(SubjectId::File(like)).first().copied();
        let tier = other.and_then(|disk| case.system.disks[disk].tier.clone());
        let own = disks.first().map(|disk| &case.system.disks[*disk]);
        let same = own.filter(|disk| disk.stripe.is_none()).zip(tier);
        let change = same.map(|(disk, tier)| Change::Tier { name: disk.name.clone(), tier });
        let action = format!(
            "give all data files the same size and growth on equal disks: {} like {}",
            name(case, file),
            name(case, like)
        );
        return (action, change.filter(|_| case.layout.is_some()));
    }
    let own = case.system.files[file].size.unwrap_or(0);
    let more = target.saturating_sub(own);
    let tier =
        disks.first().and_then(|disk| tiers(case, *disk)?.snap(weir_units::Bytes::new(target)));
    let tier = tier.map(|tier| format!(" ({})", tier.name)).unwrap_or_default();
    let mut action = format!(
        "give all data files the same size and growth: {} to {}{tier}: {}",
        name(case, file),
        size(target),
        resize(case, file, target)
    );
    let room = case
        .system
        .host_of(SubjectId::File(file))
        .and_then(|host| InstanceStorage::new(case, host));
    match room {
        Some(room) if room.free() < more => {
            action += &format!(
                "; this is {} more than the free storage of the instance: raise its storage first",
                size(more - room.free())
            );
            (action, None)
        }
        _ => (action, sized(case, file, target)),
    }
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(sizes: [u32; 2], iops: [f64; 2]) -> TestBed {
        let text = format!(
            "edition = \"azure-mi-2018\"\nhost = {{ managed_instance = \"gp\", vcores = 8 }}\n\
             [[file]]\nname = \"one\"\nrole = \"data\"\nsize = \"{} GiB\"\n\
             [[file]]\nname = \"two\"\nrole = \"data\"\nsize = \"{} GiB\"\n",
            sizes[0], sizes[1]
        );
        let does = |iops: f64| EntityLoad::reads(iops).ms(if iops >= 495.0 { 80.0 } else { 4.0 });
        TestBed::layout(&text).file("db", "one", does(iops[0])).file("db", "two", does(iops[1]))
    }

    #[test]
    fn a_small_file_throttles_beside_a_large_one() {
        let found = bed([32, 600], [498.0, 480.0]).found("small-file");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.subject, "one");
        assert!(finding.finding.contains("600 GiB"), "{}", finding.finding);
        assert!(finding.action.contains("SIZE = 614400 MB"), "{}", finding.action);
        assert_eq!(finding.cap.as_deref(), Some("disk_iops"));
    }

    #[test]
    fn sizes_from_the_observation_are_enough() {
        let bed = |gib| {
            let bed = TestBed::edition("azure-mi-2018");
            let bed =
                bed.file("db", "one", EntityLoad::reads(498.0).ms(80.0)).with_role("data", 32);
            bed.file("db", "two", EntityLoad::reads(400.0).ms(4.0)).with_role("data", gib)
        };
        assert_eq!(bed(600).found("small-file").len(), 1);
        assert!(!bed(32).finds("small-file"));
    }

    #[test]
    fn silent_if_equal_or_both_or_neither_are_throttled() {
        assert!(!bed([32, 32], [498.0, 200.0]).finds("small-file"));
        assert!(!bed([32, 600], [300.0, 400.0]).finds("small-file"));
        // 256 GiB are a P15 with 1,100 operations.
        assert!(!bed([32, 256], [498.0, 1098.0]).finds("small-file"));
    }
}
