//! Backups over more files than the machine's own SSD takes well.

use super::backup::{Target, targets};
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, amount};
use weir_report::diagnosis::{Confidence, Group};

pub(super) const RULE: Rule = Rule {
    id: 221,
    name: "backup-local-ssd",
    group: Group::Layout,
    priority: 150,
    source: source::BACKUP,
    finds: "backups are written to more than two files on the machine's local SSD",
    find,
};

/// With more, 300 to 400 MB/s became less than 100 (article 004).
const FILES: usize = 2;

/// Priority of a finding without effect on the observed load.
const NOTE: u8 = 200;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    targets(case).into_iter().filter_map(|target| candidate(case, rule, &target)).collect()
}

fn candidate(case: &Case<'_>, rule: &Rule, target: &Target) -> Option<Candidate> {
    let is_local = target.disks.iter().all(|disk| case.system.disks[*disk].is_local);
    if !is_local || target.files <= FILES {
        return None;
    }
    let written = target.written(case);
    let effect = match written {
        Some(_) => "more than 2 are slower there",
        None => "no effect on the observed load, since nothing was written",
    };
    let name = target.name.clone();
    let files = target.files;
    let text = format!("{name}, the machine's local SSD, holds {files} backup files: {effect}");
    let mut finding = rule.finding(name, text);
    finding.priority = if written.is_some() { rule.priority } else { NOTE };
    finding.confidence = Confidence::Medium;
    if let Some(written) = written {
        finding.evidence.push(format!("write rate {} on average", amount(true, written)));
    }
    finding.evidence.push(
        "the SSD is shared and governed: 2 files reached 300 to 400 MB/s, 4 and 8 files less than \
         100 (article 004)"
            .to_owned(),
    );
    "write backups to at most 2 files there, and copy them elsewhere, since the local SSD is lost with \
     the machine"
        .clone_into(&mut finding.action);
    Some(finding.into())
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(files: u32, place: &str) -> TestBed {
        let mut text = format!(
            "host = {{ unlimited = true }}\n[[volume]]\nname = \"ssd\"\nsize = \"200 \
             GiB\"\nunlimited = true\nplace = \"{place}\"\n"
        );
        for file in 0..files {
            text += &format!(
                "[[file]]\nname = \"b{file}\"\nrole = \"backup\"\nsize = \"9 GiB\"\non = \"ssd\"\n"
            );
        }
        TestBed::layout(&text).disk("ssd", EntityLoad::writes(90.0).kib(1024.0))
    }

    #[test]
    fn more_than_two_files() {
        assert_eq!(bed(4, "local").found("backup-local-ssd")[0].priority, 150);
        assert!(!bed(2, "local").finds("backup-local-ssd"));
        assert!(!bed(4, "remote").finds("backup-local-ssd"));
    }
}
