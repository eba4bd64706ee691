//! A host cache before a target of backups.

use super::backup::{Target, targets};
use super::{Found, Rule, source};
use crate::case::Case;
use crate::change::Change;
use crate::system::{Cache, On};
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::mib;

pub(super) const RULE: Rule = Rule {
    id: 218,
    name: "backup-cached",
    group: Group::Layout,
    priority: 150,
    source: source::BACKUP,
    finds: "a disk that backups are written to has a host cache, which does nothing for them",
    find,
};

/// What has no effect on the load that was observed.
const NOTE: u8 = 200;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    targets(case).into_iter().filter_map(|target| of(case, rule, &target)).collect()
}

fn of(case: &Case<'_>, rule: &Rule, target: &Target) -> Option<Found> {
    let disk = &case.system.disks[*target.disks.first()?];
    if disk.cache == Cache::None || disk.is_local {
        return None;
    }
    let (name, cache) = (target.name.clone(), disk.cache.name());
    let written = target.written(case);
    let effect = match written {
        Some(_) => "its writes take room in the cache and count against the cached limit",
        None => "no effect on the load observed, as nothing was written to it",
    };
    let text = format!("{name} carries backups and has a {cache} cache: {effect}");
    let mut finding = rule.finding(name.clone(), text);
    finding.confidence = Confidence::High;
    finding.priority = if written.is_some() { rule.priority } else { NOTE };
    if let Some(written) = written {
        finding.evidence.push(format!("{} MiB/s are written to it on average", mib(written)));
    }
    finding.evidence.push(format!(
        "files on it: {}, all of them backups; its disks: {}",
        target.files,
        target.disks.len()
    ));
    finding.action = format!(
        "set the host cache of {name} to None: az vm update --name .. --disk-caching <lun>=None"
    );
    let change = case.layout.map(|_| Change::Cache { name, mode: "none" });
    let is_there = matches!(target.on, On::Disk(_) | On::Stripe(_));
    Some(Found::new(finding, change.filter(|_| is_there)))
}

#[cfg(test)]
mod tests {
    use crate::bed::{Bed, Does};

    fn layout(cache: &str, role: &str) -> String {
        format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS14\" }}\n[[volume]]\nname = \
             \"target\"\ntier = \"P30\"\ncache = \"{cache}\"\n[[file]]\nname = \"full\"\nrole = \
             \"{role}\"\nsize = \"50 GiB\"\non = \"target\"\n"
        )
    }

    fn bed(cache: &str, role: &str) -> Bed {
        Bed::layout(&layout(cache, role)).disk("target", Does::writes(100.0).kib(1024.0))
    }

    #[test]
    fn a_cache_before_backups() {
        assert_eq!(bed("read-only", "backup").found("backup-cached")[0].priority, 150);
        let idle = Bed::layout(&layout("read-only", "backup")).disk("target", Does::writes(0.1));
        let found = idle.found("backup-cached");
        assert_eq!(found[0].priority, 200);
        assert!(found[0].finding.contains("no effect on the load observed"));
    }

    #[test]
    fn none_or_for_others() {
        assert!(!bed("none", "backup").finds("backup-cached"));
        assert!(!bed("read-only", "data").finds("backup-cached"));
    }
}
