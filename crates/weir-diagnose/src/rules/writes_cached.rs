//! Host caches of disks that are mostly written, and caches that data may be lost in.

use super::rule::{Candidate, Rule, source};
use super::stores::{CacheRelevance, Store, file_of, stores};
use crate::case::Case;
use crate::change::Change;
use crate::system::CacheMode;
use weir_layout::Role;
use weir_report::diagnosis::Group;
use weir_report::number::{percent, rate};

pub(super) const RULE: Rule = Rule {
    id: 208,
    name: "writes-cached",
    group: Group::Layout,
    priority: 150,
    source: source::PREMIUM,
    finds: "a disk that is mostly written has a host cache, or data may be lost in one",
    find,
};

/// A disk is mostly written from this part on: the article has a cache for disks that are read
/// and written, and none for those that are written heavily.
const MOSTLY: f64 = 0.8;

/// Minimum writes per second.
const FEW: f64 = 5.0;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    // Logs have a rule of their own.
    let all = stores(case).into_iter().filter(|store| !store.carries(Role::Log));
    all.filter_map(|store| match store.cache? {
        CacheMode::ReadOnly => written(case, rule, &store),
        CacheMode::ReadWrite => at_risk(case, rule, &store),
        CacheMode::None => None,
    })
    .collect()
}

fn set(case: &Case<'_>, store: &Store, mode: CacheMode) -> Option<Change> {
    case.layout.map(|_| Change::Cache { name: store.name.clone(), mode })
}

fn written(case: &Case<'_>, rule: &Rule, store: &Store) -> Option<Candidate> {
    let written = 1.0 - store.read_share()?;
    if written < MOSTLY || store.per_s(store.load.writes)? < FEW {
        return None;
    }
    let relevance = CacheRelevance::at_cache(case, store.host);
    let text = format!(
        "{} of the operations of {} are writes; its read-only host cache serves none of them and \
         counts them against its own limit; {}",
        percent(written),
        store.name,
        relevance.words()
    );
    let mut finding = rule.finding(store.name.clone(), text);
    finding.priority = relevance.priority();
    finding.evidence.push(format!(
        "{} writes/s and {} reads/s",
        rate(store.per_s(store.load.writes)?),
        rate(store.per_s(store.load.reads)?)
    ));
    finding.action = format!(
        "set the host cache of {} to none (this detaches the disk: stop its users first): az vm \
         update --set storageProfile.dataDisks[N].caching=None",
        store.name
    );
    Some(Candidate::new(finding, set(case, store, CacheMode::None)))
}

fn at_risk(case: &Case<'_>, rule: &Rule, store: &Store) -> Option<Candidate> {
    let data = file_of(case.system, store.id, Role::Data)?;
    let writes = store.per_s(store.load.writes).filter(|writes| *writes > 0.0)?;
    let mode = match store.read_share() {
        Some(share) if 1.0 - share >= MOSTLY => CacheMode::None,
        _ => CacheMode::ReadOnly,
    };
    let text = format!(
        "{} holds {data} and its host cache is read-write: {} writes/s complete before they are on \
         the disk, and are lost if the host fails",
        store.name,
        rate(writes)
    );
    let mut finding = rule.finding(store.name.clone(), text);
    finding.evidence.push(
        "a read-write cache is for software that flushes data to the disk itself when needed"
            .to_owned(),
    );
    finding.action = format!(
        "set the host cache of {} to {} (this detaches the disk: stop its users first)",
        store.name,
        mode.name()
    );
    Some(Candidate::new(finding, set(case, store, mode)))
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(cache: &str, does: EntityLoad) -> TestBed {
        let text = format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS1\" }}\n[[volume]]\nname = \
             \"disk\"\ntier = \"P30\"\ncache = \"{cache}\"\n[[file]]\nname = \"data\"\nrole = \
             \"data\"\nsize = \"100 GiB\"\non = \"disk\"\n"
        );
        TestBed::layout(&text).disk("disk", does)
    }

    #[test]
    fn a_cache_of_a_written_disk_is_found() {
        let writes = EntityLoad::reads(20.0).and_writes(200.0);
        let found = bed("read-only", writes).found("writes-cached");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.priority, 200);
        assert!(finding.finding.contains("no effect on the observed load"));
        let many = EntityLoad::reads(20.0).and_writes(3000.0).kib(8.0);
        assert_eq!(bed("read-only", many).found("writes-cached")[0].priority, 150);
    }

    #[test]
    fn a_cache_for_mixed_load_is_right() {
        assert!(
            !bed("read-only", EntityLoad::reads(50.0).and_writes(190.0)).finds("writes-cached")
        );
        assert!(!bed("none", EntityLoad::reads(20.0).and_writes(200.0)).finds("writes-cached"));
    }

    #[test]
    fn a_read_write_cache_is_found() {
        let found =
            bed("read-write", EntityLoad::reads(100.0).and_writes(100.0)).found("writes-cached");
        assert!(found[0].finding.contains("lost"), "{}", found[0].finding);
        assert!(!bed("read-write", EntityLoad::reads(100.0)).finds("writes-cached"));
    }
}
