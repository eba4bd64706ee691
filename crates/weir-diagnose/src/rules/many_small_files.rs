//! Many small files where fewer larger ones would have more for the same space.

use super::files::{
    Database, counts_bytes, databases, file_throttled, one_of, steps, tiers, words,
};
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, amount, size};
use crate::follow::NEAR;
use crate::system::SubjectId;
use weir_catalog::Tier;
use weir_report::diagnosis::Group;
use weir_report::number::float;
use weir_units::Bytes;

pub(super) const RULE: Rule = Rule {
    id: 203,
    name: "many-small-files",
    group: Group::Layout,
    priority: 100,
    source: source::INSTANCE,
    finds: "many data files in the lowest tier have lower limits together than fewer, larger files of \
            the same total size",
    find,
};

/// Fewer files than this are not many: two have to become one.
const MANY: usize = 3;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    databases(case).iter().filter_map(|own| check_database(case, rule, own)).collect()
}

/// Fewer files in place of what there is.
struct FewerFiles<'a> {
    count: usize,
    each: u64,
    tier: &'a Tier,
    together: f64,
}

fn check_database(case: &Case<'_>, rule: &Rule, database: &Database) -> Option<Candidate> {
    let files = &database.files;
    let wait: Vec<_> = files.iter().filter_map(|file| file_throttled(case, *file)).collect();
    let (judged, most) = wait.iter().max_by(|a, b| a.1.wait_ns.total_cmp(&b.1.wait_ns))?;
    let is_bytes = counts_bytes(case, most);
    let sizes: Option<Vec<u64>> = files.iter().map(|file| Some(steps(case, *file)?.0)).collect();
    let (sizes, first) = (sizes?, *files.first()?);
    let set = tiers(case, super::files::own_disk(case, first)?)?;
    let lowest = set.tiers.first()?;
    if files.len() < MANY || sizes.iter().any(|size| *size > lowest.holds.get()) {
        return None;
    }
    let space: u64 = sizes.iter().sum();
    let now = float(files.len() as u64) * one_of(&lowest.limits(), is_bytes);
    let other_use: f64 = files
        .iter()
        .flat_map(|file| case.system.disks_of(SubjectId::File(*file)))
        .flat_map(|disk| case.caps_of_disk(disk))
        .filter(|(cap, _)| cap.counts_bytes() != is_bytes)
        .map(|(_, facts)| facts.rate.quantile(0.99))
        .sum();
    let fewer = (1..files.len()).filter_map(|count| {
        let each = space / count as u64;
        let tier = set.snap(Bytes::new(each))?;
        let all = |is_bytes| float(count as u64) * one_of(&tier.limits(), is_bytes);
        // The use of the other limit must still fit.
        let fits = all(!is_bytes) * NEAR > other_use;
        let together = all(is_bytes);
        (fits && together > now).then_some(FewerFiles { count, each, tier, together })
    });
    let fewer = fewer.max_by(|one, other| one.together.total_cmp(&other.together))?;
    let text = format!(
        "{} has {} data files in the lowest tier, {} together: {} files of {} would have {} at the \
         same total size, {}",
        database.name,
        files.len(),
        amount(is_bytes, now),
        fewer.count,
        size(fewer.each),
        amount(is_bytes, fewer.together),
        size(space),
    );
    let mut finding = rule.finding(database.name.clone(), text);
    finding.cap = Some(most.kind.name().to_owned());
    finding.confidence = judged.waited.confidence;
    finding.evidence.push(format!(
        "a file of {} is {} ({}), one of {} is {} ({})",
        size(sizes.iter().copied().max().unwrap_or(0)),
        lowest.name,
        words(&lowest.limits()),
        size(fewer.each),
        fewer.tier.name,
        words(&fewer.tier.limits()),
    ));
    let names: Vec<String> = wait.iter().map(|(judged, _)| judged.name(case)).collect();
    finding.evidence.push(format!(
        "throttled: {} of {} files: {}; one throttled file is enough to delay all queries",
        wait.len(),
        files.len(),
        names.join(", ")
    ));
    finding.action = format!(
        "grow {} data files to {} each ({}), then move the contents of the others into them: DBCC \
         SHRINKFILE (N'{}', EMPTYFILE), then ALTER DATABASE {} REMOVE FILE",
        fewer.count,
        size(fewer.each),
        fewer.tier.name,
        case.system.files[*files.last()?].name.replace('\'', "''"),
        super::files::database_name(case, first),
    );
    Some(finding.into())
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(count: usize, gib: u32, does: EntityLoad) -> TestBed {
        let mut text =
            "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 \
                        }\n"
            .to_owned();
        let names: Vec<String> = (1..=count).map(|n| format!("data{n}")).collect();
        for name in &names {
            text +=
                &format!("[[file]]\nname = \"{name}\"\nrole = \"data\"\nsize = \"{gib} GiB\"\n");
        }
        names.iter().fold(TestBed::layout(&text), |bed, name| bed.file("db", name, does))
    }

    #[test]
    fn four_files_of_120_gib_have_lower_limits_than_three_of_160() {
        // 4 x 500 operations; 3 x 1,100 of a P15, and one P20 of 480 GiB has 2,300.
        let found = bed(4, 120, EntityLoad::reads(498.0).ms(60.0)).found("many-small-files");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(
            finding.finding.contains("2,000 IOPS together: 3 files of 160 GiB"),
            "{}",
            finding.finding
        );
        assert!(finding.finding.contains("3,300 IOPS"), "{}", finding.finding);
    }

    #[test]
    fn small_files_with_higher_limits_together_stay() {
        // 4 x 32 GiB have 2,000 operations, one of 128 GiB 500.
        assert!(!bed(4, 32, EntityLoad::reads(498.0).ms(60.0)).finds("many-small-files"));
        // In bytes 4 x 100 MiB/s are more than 150.
        assert!(
            !bed(4, 120, EntityLoad::reads(398.0).kib(256.0).ms(60.0)).finds("many-small-files")
        );
        assert!(!bed(4, 120, EntityLoad::reads(300.0).ms(4.0)).finds("many-small-files"));
        assert!(!bed(2, 120, EntityLoad::reads(498.0).ms(60.0)).finds("many-small-files"));
    }
}
