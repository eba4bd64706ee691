//! A backup that does not ask for enough at a time.

use super::backup::{FILES, FILES_PER_DISK, Target, command, targets, waits};
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, amount};
use crate::follow::NEAR;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, rate};

pub(super) const RULE: Rule = Rule {
    id: 220,
    name: "backup-stripes",
    group: Group::Layout,
    priority: 150,
    source: source::BACKUP,
    finds: "a backup has too few requests in flight to use its disks",
    find,
};

/// Article 004: a queue depth of 2 to 4 with one file, and of 16 to 20 with four.
const SHALLOW: f64 = 4.5;

/// Minimum request size of a backup.
const BACKUP_BYTES: f64 = 65_536.0;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    targets(case).into_iter().filter_map(|target| candidate(case, rule, &target)).collect()
}

fn candidate(case: &Case<'_>, rule: &Rule, target: &Target) -> Option<Candidate> {
    let (written, depth) = (target.written(case)?, target.depth(case)?);
    let is_long = target
        .all(case)
        .iter()
        .all(|judged| judged.facts.request_bytes().is_none_or(|bytes| bytes >= BACKUP_BYTES));
    // The disks, and the machine before them.
    let own = target.caps(case);
    let host = target.disks.first().and_then(|disk| case.system.disks[*disk].host);
    let of_host = host.into_iter().flat_map(|host| case.caps_of_host(host)).map(|(_, facts)| facts);
    let of_disks = own.iter().map(|cap| &case.facts.caps[*cap]);
    let used = of_disks.chain(of_host).map(|facts| facts.used.quantile(0.9)).reduce(f64::max)?;
    if !is_long || depth > SHALLOW || used >= NEAR {
        return None;
    }
    let files = (target.disks.len() * FILES_PER_DISK).min(FILES);
    let name = target.name.clone();
    let text = format!(
        "backups to {name} have {} requests in flight and leave {} of the limits unused: more files \
         would be faster",
        rate(depth),
        percent(1.0 - used)
    );
    let mut finding = rule.finding(name, text);
    finding.confidence = Confidence::Medium;
    finding.evidence.push(format!("write rate {} on average", amount(true, written)));
    finding.evidence.extend(waits(case));
    finding.action = format!(
        "write to {files} files, {FILES_PER_DISK} per disk and up to {FILES} in total, with the largest \
         transfers: {}; keep the default BUFFERCOUNT",
        command(files)
    );
    Some(finding.into())
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    const TEXT: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\n\
        name = \"target\"\ntier = \"P30\"\n[[file]]\nname = \"full\"\nrole = \"backup\"\nsize = \
        \"50 GiB\"\non = \"target\"\n";

    /// Returns a backup with a write rate in MiB/s and a queue depth of 1 MiB requests.
    fn bed(mib: f64, depth: f64) -> TestBed {
        let does = EntityLoad::writes(mib).kib(1024.0).ms(depth / mib * 1e3);
        TestBed::layout(TEXT).disk("target", does)
    }

    #[test]
    fn article_004_one_file_on_one_disk() {
        let found = bed(164.3, 3.0).found("backup-stripes");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.action.contains("4194304"), "{}", finding.action);
        // Four files: deep, and at the limit.
        assert!(!bed(191.6, 18.0).finds("backup-stripes"));
        // A deep queue below the limit has another cause.
        assert!(!bed(120.0, 18.0).finds("backup-stripes"));
        // Little is written.
        assert!(!bed(0.5, 2.0).finds("backup-stripes"));
    }
}
