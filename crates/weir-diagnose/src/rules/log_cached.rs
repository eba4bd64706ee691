//! Logs on a disk with a host cache.

use super::rule::{Candidate, Rule, source};
use super::stores::{CacheRelevance, Store, file_of, stores};
use crate::case::Case;
use crate::change::Change;
use crate::system::CacheMode;
use weir_layout::Role;
use weir_report::diagnosis::Group;
use weir_report::number::{percent, rate};

pub(super) const RULE: Rule = Rule {
    id: 206,
    name: "log-cached",
    group: Group::Layout,
    priority: 150,
    source: source::PREMIUM,
    finds: "a disk with a log has a host cache, which does not help logs",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let all = stores(case).into_iter().filter(|store| store.carries(Role::Log));
    all.filter_map(|store| check_store(case, rule, &store)).collect()
}

fn check_store(case: &Case<'_>, rule: &Rule, store: &Store) -> Option<Candidate> {
    let cache = store.cache.filter(|cache| *cache != CacheMode::None)?;
    let writes = store.load.writes?;
    let operations = store.load.operations?;
    let relevance = CacheRelevance::at_cache(case, store.host);
    let log = file_of(case.system, store.id, Role::Log)?;
    let text = format!(
        "{} holds {log} and its host cache is {}, which does not help log writes; {}",
        store.name,
        cache.name(),
        relevance.words()
    );
    let text = match cache {
        CacheMode::ReadWrite => format!("{text}; commits may be lost if the machine fails"),
        _ => text,
    };
    let mut finding = rule.finding(store.name.clone(), text);
    finding.priority = relevance.priority();
    finding.evidence.push(format!(
        "{} writes/s ({} of its operations) count against the limit of the machine's cache",
        rate(store.per_s(Some(writes))?),
        percent(writes / operations)
    ));
    if cache == CacheMode::ReadWrite {
        // Data loss does not depend on the load.
        finding.priority = finding.priority.min(150);
        finding.evidence.push(
            "with a read-write cache, a commit completes before it is on the disk: it is lost if \
             the host fails"
                .to_owned(),
        );
    }
    if store.carries(Role::Data) {
        finding.action = format!(
            "move the log to a disk of its own with host cache none: {} also holds data files, which \
             need the cache",
            store.name
        );
        return Some(finding.into());
    }
    finding.action = format!(
        "set the host cache of {} to none (this detaches the disk: stop its users first): az vm \
         update --set storageProfile.dataDisks[N].caching=None, where N is its index in the list",
        store.name
    );
    let change = Change::Cache { name: store.name.clone(), mode: CacheMode::None };
    Some(Candidate::new(finding, case.layout.map(|_| change)))
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(cache: &str, role: &str) -> TestBed {
        let text = format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS1\" }}\n[[volume]]\nname = \
             \"disk\"\ntier = \"P30\"\ncache = \"{cache}\"\n[[file]]\nname = \"log\"\nrole = \
             \"{role}\"\nsize = \"100 GiB\"\non = \"disk\"\n"
        );
        TestBed::layout(&text)
    }

    #[test]
    fn a_cached_log_is_found() {
        let few = EntityLoad::writes(200.0).kib(4.0).ms(2.0);
        let found = bed("read-only", "log").disk("disk", few).found("log-cached");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.priority, 200);
        assert!(finding.finding.contains("no effect on the observed load"), "{}", finding.finding);
        // A DS1 has 32 MiB/s to its cache.
        let many = EntityLoad::writes(700.0).kib(40.0).ms(2.0);
        assert_eq!(bed("read-only", "log").disk("disk", many).found("log-cached")[0].priority, 150);
        let found = bed("read-write", "log").disk("disk", few).found("log-cached");
        assert_eq!(found[0].priority, 150);
        assert!(found[0].evidence.iter().any(|line| line.contains("lost")));
    }

    #[test]
    fn an_uncached_log_and_cached_data_are_right() {
        let few = EntityLoad::writes(200.0).kib(4.0).ms(2.0);
        assert!(!bed("none", "log").disk("disk", few).finds("log-cached"));
        assert!(!bed("read-only", "data").disk("disk", few).finds("log-cached"));
    }
}
