//! Data files of one database of unequal size, which do not reach their limits together.

use super::files::{
    Database, REACH, counts_bytes, databases, file_throttled, limit, name, resize, used,
};
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, amount, size};
use crate::change::Change;
use crate::follow::NEAR;
use crate::system::SubjectId;
use weir_report::diagnosis::Group;
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 202,
    name: "unequal-files",
    group: Group::Layout,
    priority: 100,
    source: source::INSTANCE,
    finds: "data files of a database differ in size or limits, so that one is full before the others",
    find,
};

/// Sizes that differ by less are the same: files grow a few extents apart.
const SAME: f64 = 1.01;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let databases = databases(case);
    let all =
        databases.iter().filter(|database| super::small_file::small(case, database).is_empty());
    all.filter_map(|database| check_database(case, rule, database)).collect()
}

fn are_unequal(values: &[f64]) -> bool {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    values.iter().any(|value| *value > SAME * least)
}

fn check_database(case: &Case<'_>, rule: &Rule, database: &Database) -> Option<Candidate> {
    let files = &database.files;
    let wait: Vec<_> =
        files.iter().filter_map(|file| Some((*file, file_throttled(case, *file)?))).collect();
    let most = wait.iter().max_by(|one, other| one.1.1.wait_ns.total_cmp(&other.1.1.wait_ns));
    let is_bytes = match most {
        Some((_, (_, wait))) => counts_bytes(case, wait),
        None => {
            let most = |is_bytes| {
                let all =
                    files.iter().filter_map(|file| used(case, SubjectId::File(*file), is_bytes));
                all.fold(0.0, f64::max)
            };
            most(true) > most(false)
        }
    };
    let sizes: Option<Vec<f64>> = files
        .iter()
        .map(|file| Some(weir_report::number::float(case.system.files[*file].size?)))
        .collect();
    let limits: Option<Vec<f64>> =
        files.iter().map(|file| limit(case, SubjectId::File(*file), is_bytes)).collect();
    let (sizes, limits) = (sizes?, limits?);
    let differ = (are_unequal(&sizes), are_unequal(&limits));
    if !(differ.0 || differ.1) {
        return None;
    }
    let use_of = |file: &usize| Some((*file, used(case, SubjectId::File(*file), is_bytes)?));
    let uses: Vec<(usize, f64)> = files.iter().filter_map(use_of).collect();
    let is_throttled = |file: usize| wait.iter().any(|(own, _)| *own == file);
    let (from, below) = if wait.is_empty() { (REACH, REACH) } else { (0.0, NEAR) };
    let high: Vec<_> = uses
        .iter()
        .filter(|(file, used)| if wait.is_empty() { *used >= from } else { is_throttled(*file) })
        .collect();
    let low: Vec<_> =
        uses.iter().filter(|(file, used)| !is_throttled(*file) && *used < below).collect();
    let (first, second) = (high.first()?, low.first()?);
    let what = match differ {
        (true, true) => "size and limits",
        (true, false) => "size",
        _ => "limits",
    };
    let text = format!(
        "data files of {} differ in {what}: {} uses up to {} of its limit, {} up to {}{}",
        database.name,
        name(case, first.0),
        percent(first.1),
        name(case, second.0),
        percent(second.1),
        if wait.is_empty() { "; no effect on the observed load" } else { "" }
    );
    let mut finding = rule.finding(database.name.clone(), text);
    if let Some((_, (judged, wait))) = most {
        finding.cap = Some(wait.kind.name().to_owned());
        finding.confidence = judged.waited.confidence;
    } else {
        finding.priority = 200;
    }
    for ((file, share), limit) in uses.iter().zip(&limits) {
        let bytes = case.system.files[*file].size?;
        finding.evidence.push(format!(
            "{}: {}, limit {}, used to {} at most{}",
            name(case, *file),
            size(bytes),
            amount(is_bytes, *limit),
            percent(*share),
            if is_throttled(*file) { ", throttled" } else { "" }
        ));
    }
    finding.evidence.push(
        "SQL Server fills the files of a filegroup in proportion to their free space".to_owned(),
    );
    let (action, change) = action(case, files);
    finding.action = action;
    Some(Candidate::new(finding, change))
}

fn action(case: &Case<'_>, files: &[usize]) -> (String, Option<Change>) {
    let by_size = |file: &&usize| case.system.files[**file].size;
    let largest = files.iter().max_by_key(by_size).copied();
    let target = largest.and_then(|file| case.system.files[file].size);
    let (Some(target), Some(first)) = (target, files.first()) else {
        return ("give all data files the same size".to_owned(), None);
    };
    let others: Vec<usize> = files
        .iter()
        .copied()
        .filter(|file| case.system.files[*file].size.is_some_and(|size| size < target))
        .collect();
    let mut action =
        format!("give all data files the same size, {}, and growth, on equal disks", size(target));
    if !case.is_instance(SubjectId::File(*first)) {
        return (action, None);
    }
    let statements: Vec<String> = others.iter().map(|file| resize(case, *file, target)).collect();
    action += &format!(": {}", statements.join("; "));
    let change = super::files::grown(case, &others, target);
    if change.is_none() && case.layout.is_some() {
        action += "; the instance has too little free storage: raise its storage first";
    }
    (action, change)
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(sizes: [u32; 3], does: [EntityLoad; 3]) -> TestBed {
        let mut text =
            "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 \
                        }\n"
            .to_owned();
        for (name, size) in ["one", "two", "three"].iter().zip(sizes) {
            text +=
                &format!("[[file]]\nname = \"{name}\"\nrole = \"data\"\nsize = \"{size} GiB\"\n");
        }
        let names = ["one", "two", "three"].into_iter().zip(does);
        names.fold(TestBed::layout(&text), |bed, (name, does)| bed.file("db", name, does))
    }

    #[test]
    fn files_of_one_tier_with_unequal_sizes() {
        let (held, other) = (EntityLoad::writes(498.0).ms(60.0), EntityLoad::writes(150.0).ms(4.0));
        let found = bed([40, 40, 120], [other, other, held]).found("unequal-files");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.priority, 100);
        assert!(finding.finding.contains("differ in size"), "{}", finding.finding);
        assert!(finding.action.contains("120 GiB"), "{}", finding.action);
    }

    #[test]
    fn equal_files_or_few_operations_are_silent() {
        let (held, other) = (EntityLoad::writes(498.0).ms(60.0), EntityLoad::writes(150.0).ms(4.0));
        assert!(!bed([40, 40, 40], [other, other, held]).finds("unequal-files"));
        assert!(!bed([40, 40, 120], [other, other, other]).finds("unequal-files"));
        // All of them are throttled.
        assert!(!bed([40, 40, 120], [held, held, held]).finds("unequal-files"));
    }

    #[test]
    fn a_limit_within_reach_is_a_note() {
        let (near, other) = (EntityLoad::writes(400.0).ms(4.0), EntityLoad::writes(150.0).ms(4.0));
        let found = bed([40, 40, 120], [other, other, near]).found("unequal-files");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].priority, 200);
        assert!(found[0].finding.contains("no effect on the observed load"));
    }
}
