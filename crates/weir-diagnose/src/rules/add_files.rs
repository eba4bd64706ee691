//! Data files in the largest tier there is: more files, not larger ones.

use super::files::{
    Database, InstanceStorage, counts_bytes, database_name, databases, file_throttled, limit, name,
    own_disk, tiers,
};
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, JudgedSubject, amount, size};
use crate::system::SubjectId;
use crate::verdict::CapWait;
use weir_report::diagnosis::Group;
use weir_report::number::{float, percent, whole};

pub(super) const RULE: Rule = Rule {
    id: 217,
    name: "add-files",
    group: Group::Layout,
    priority: 100,
    source: source::INSTANCE,
    finds: "a data file is throttled in the largest tier: more files would help",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    databases(case).iter().filter_map(|own| check_database(case, rule, own)).collect()
}

/// Returns whether no tier of its set has a higher limit than the one that throttles a file.
fn is_at_the_top(case: &Case<'_>, file: usize, is_bytes: bool) -> bool {
    let own = own_disk(case, file).filter(|disk| !case.system.disks[*disk].is_local);
    let Some((disk, set)) = own.and_then(|disk| Some((disk, tiers(case, disk)?))) else {
        return false;
    };
    let limits = &case.system.disks[disk].limits;
    let now = if is_bytes { limits.bytes } else { limits.iops };
    let most = set.tiers.iter().map(|tier| super::files::one_of(&tier.limits(), is_bytes));
    let most = most.fold(0.0, f64::max);
    case.system.disks[disk].tier.is_some() && now.is_some_and(|now| now.rate >= most)
}

/// Returns an upper bound of the demand: the present queue depth at the latency of the medium.
fn wanted(judged: &JudgedSubject<'_>, share: f64) -> Option<f64> {
    let (unloaded, latency) = (judged.waited.unloaded_ns?, judged.facts.latency_ns()?);
    (unloaded > 0.0).then(|| share * latency / unloaded)
}

fn check_database(case: &Case<'_>, rule: &Rule, database: &Database) -> Option<Candidate> {
    let wait = |file: &usize| {
        let (judged, wait) = file_throttled(case, *file)?;
        let is_bytes = counts_bytes(case, wait);
        is_at_the_top(case, *file, is_bytes).then_some((*file, judged, wait, is_bytes))
    };
    let all: Vec<(usize, JudgedSubject<'_>, &CapWait, bool)> =
        database.files.iter().filter_map(wait).collect();
    let (file, judged, most, is_bytes) =
        *all.iter().max_by(|a, b| a.2.wait_ns.total_cmp(&b.2.wait_ns))?;
    // If other files have headroom, pages must be distributed over those first.
    if all.len() < database.files.len() {
        return None;
    }
    let count = database.files.len() as u64;
    let own_limit = limit(case, SubjectId::File(file), is_bytes)?;
    let used = |judged: &JudgedSubject<'_>| {
        if is_bytes { judged.facts.bytes.mean() } else { judged.facts.iops.mean() }.unwrap_or(0.0)
    };
    let need: Option<f64> = all.iter().map(|(_, judged, ..)| wanted(judged, used(judged))).sum();
    // No more than twice as many at once: what a load would do is known once it is let.
    let files = need.map_or(count + 1, |need| whole((need / own_limit).ceil()));
    let files = files.clamp(count + 1, 2 * count);
    let bytes = case.system.files[file].size?;
    let subject = name(case, file);
    let text = format!(
        "{subject} is throttled at {}, the highest limit of a file: {files} data files of {} instead \
         of {count} would have {}",
        amount(is_bytes, own_limit),
        size(bytes),
        amount(is_bytes, own_limit * float(files)),
    );
    let mut finding = rule.finding(database.name.clone(), text);
    finding.cap = Some(most.kind.name().to_owned());
    finding.confidence = judged.waited.confidence;
    finding
        .evidence
        .push(format!("{} of the latency of {subject} is wait time", percent(most.share)));
    if let Some(need) = need {
        finding.evidence.push(format!(
            "demand without throttling: at most {} at the same queue depth",
            amount(is_bytes, need)
        ));
    }
    let more = (files - count) * bytes;
    let room = case
        .system
        .host_of(SubjectId::File(file))
        .and_then(|host| InstanceStorage::new(case, host));
    if let Some(room) = room {
        finding.evidence.push(format!(
            "additional storage: {} of {} free",
            size(more),
            size(room.free())
        ));
    }
    finding.action =
        action(case, file, (count, files), room.is_some_and(|room| room.free() < more));
    Some(finding.into())
}

fn action(case: &Case<'_>, file: usize, (count, files): (u64, u64), lacks_room: bool) -> String {
    let own = &case.system.files[file];
    let more = match files - count {
        1 => "one more".to_owned(),
        more => format!("{more} more"),
    };
    let add = format!(
        "ALTER DATABASE {} ADD FILE (NAME = N'{}_{}', SIZE = {} MB)",
        database_name(case, file),
        own.name.replace('\'', "''"),
        count + 1,
        own.size.unwrap_or(0).div_ceil(1 << 20)
    );
    let spread = "rebuild the indexes to distribute existing data over all files, since empty files \
                  alone help little";
    match (case.is_instance(SubjectId::File(file)), lacks_room) {
        (true, false) => format!("add {more} of the same size: {add}; {spread}"),
        (true, true) => format!(
            "raise the instance's storage, or use Business Critical; then add {more} of the same size: \
             {add}; {spread}"
        ),
        (false, _) => format!(
            "attach {more} of the same size, each with a data file of {}, or stripe over them; {spread}",
            size(own.size.unwrap_or(0))
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(gib: u32, does: EntityLoad) -> TestBed {
        let text = format!(
            "edition = \"azure-mi-2018\"\nhost = {{ managed_instance = \"gp\", vcores = 8 }}\n\
             [[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"{gib} GiB\"\n"
        );
        TestBed::layout(&text).file("db", "data", does)
    }

    #[test]
    fn beyond_1_tib_a_second_file_helps() {
        let found = bed(1100, EntityLoad::reads(7490.0).ms(40.0)).found("add-files");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.finding.contains("2 data files"), "{}", finding.finding);
        assert!(finding.finding.contains("15,000 IOPS"), "{}", finding.finding);
        assert!(finding.action.contains("ADD FILE (NAME = N'data_2'"), "{}", finding.action);
    }

    #[test]
    fn growable_or_unthrottled_files_need_no_second_file() {
        assert!(!bed(1024, EntityLoad::reads(4990.0).ms(40.0)).finds("add-files"));
        assert!(!bed(1100, EntityLoad::reads(7000.0).ms(4.0)).finds("add-files"));
    }
}
