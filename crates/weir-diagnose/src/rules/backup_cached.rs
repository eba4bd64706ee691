//! A host cache before a target of backups.

use super::backup::{Target, targets};
use super::rule::{Candidate, Rule, source};
use crate::case::Case;
use crate::change::Change;
use crate::system::{CacheMode, On};
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::mib;

pub(super) const RULE: Rule = Rule {
    id: 218,
    name: "backup-cached",
    group: Group::Layout,
    priority: 150,
    source: source::BACKUP,
    finds: "a disk with backups has a host cache, which does not help them",
    find,
};

/// Priority of a finding without effect on the observed load.
const NOTE: u8 = 200;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    targets(case).into_iter().filter_map(|target| candidate(case, rule, &target)).collect()
}

fn candidate(case: &Case<'_>, rule: &Rule, target: &Target) -> Option<Candidate> {
    let disk = &case.system.disks[*target.disks.first()?];
    if disk.cache == CacheMode::None || disk.is_local {
        return None;
    }
    let (name, cache) = (target.name.clone(), disk.cache.name());
    let written = target.written(case);
    let effect = match written {
        Some(_) => "writes occupy the cache and count against the cached limit",
        None => "no effect on the observed load, since nothing was written",
    };
    let text = format!("{name} holds backups and has a {cache} host cache: {effect}");
    let mut finding = rule.finding(name.clone(), text);
    finding.confidence = Confidence::High;
    finding.priority = if written.is_some() { rule.priority } else { NOTE };
    if let Some(written) = written {
        finding.evidence.push(format!("write rate {} MiB/s on average", mib(written)));
    }
    finding.evidence.push(format!(
        "{} files, all of them backups, on {} disks",
        target.files,
        target.disks.len()
    ));
    finding.action = format!(
        "set the host cache of {name} to None: az vm update --name .. --disk-caching <lun>=None"
    );
    let change = case.layout.map(|_| Change::Cache { name, mode: CacheMode::None });
    let is_there = matches!(target.on, On::Disk(_) | On::Stripe(_));
    Some(Candidate::new(finding, change.filter(|_| is_there)))
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn layout(cache: &str, role: &str) -> String {
        format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS14\" }}\n[[volume]]\nname = \
             \"target\"\ntier = \"P30\"\ncache = \"{cache}\"\n[[file]]\nname = \"full\"\nrole = \
             \"{role}\"\nsize = \"50 GiB\"\non = \"target\"\n"
        )
    }

    fn bed(cache: &str, role: &str) -> TestBed {
        TestBed::layout(&layout(cache, role)).disk("target", EntityLoad::writes(100.0).kib(1024.0))
    }

    #[test]
    fn a_cached_backup_disk_is_found() {
        assert_eq!(bed("read-only", "backup").found("backup-cached")[0].priority, 150);
        let idle =
            TestBed::layout(&layout("read-only", "backup")).disk("target", EntityLoad::writes(0.1));
        let found = idle.found("backup-cached");
        assert_eq!(found[0].priority, 200);
        assert!(found[0].finding.contains("no effect on the observed load"));
    }

    #[test]
    fn uncached_or_shared_disks_are_silent() {
        assert!(!bed("none", "backup").finds("backup-cached"));
        assert!(!bed("read-only", "data").finds("backup-cached"));
    }
}
