//! Logs on a disk with a host cache.

use super::stores::{Matters, Store, file_of, stores};
use super::{Found, Rule, source};
use crate::case::Case;
use crate::change::Change;
use crate::system::Cache;
use weir_layout::Role;
use weir_report::diagnosis::Group;
use weir_report::number::{percent, rate};

pub(super) const RULE: Rule = Rule {
    id: 206,
    name: "log-cached",
    group: Group::Layout,
    priority: 150,
    source: source::PREMIUM,
    finds: "a disk that carries logs has a host cache, from which logs gain nothing",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    let all = stores(case).into_iter().filter(|store| store.carries(Role::Log));
    all.filter_map(|store| of_store(case, rule, &store)).collect()
}

fn of_store(case: &Case<'_>, rule: &Rule, store: &Store) -> Option<Found> {
    let cache = store.cache.filter(|cache| *cache != Cache::None)?;
    let writes = store.load.writes?;
    let operations = store.load.operations?;
    let matters = Matters::at_cache(case, store.host);
    let log = file_of(case.system, store.what, Role::Log)?;
    let text = format!(
        "{} carries {log} and its host cache is {}: a log is written and gains nothing from it; {}",
        store.name,
        cache.name(),
        matters.words()
    );
    let text = match cache {
        Cache::ReadWrite => format!("{text}; a commit may be lost with the machine"),
        _ => text,
    };
    let mut finding = rule.finding(store.name.clone(), text);
    finding.priority = matters.priority();
    finding.evidence.push(format!(
        "{} writes a second are {} of what is done there; each counts against the limit of the \
         machine's cache",
        rate(store.per_s(Some(writes))?),
        percent(writes / operations)
    ));
    if cache == Cache::ReadWrite {
        // Whatever the load: what is lost is lost.
        finding.priority = finding.priority.min(150);
        finding.evidence.push(
            "with read-write a commit is done once the host has it: what the host has not written \
             yet is lost with it"
                .to_owned(),
        );
    }
    if store.carries(Role::Data) {
        finding.action = format!(
            "put the log on a disk of its own with host cache none: {} carries data files, too, \
             which a cache serves",
            store.name
        );
        return Some(finding.into());
    }
    finding.action = format!(
        "set the host cache of {} to none (the disk is detached for it: stop what uses it): az vm \
         update --set storageProfile.dataDisks[N].caching=None, where N is its place in the list",
        store.name
    );
    let change = Change::Cache { name: store.name.clone(), mode: Cache::None.name() };
    Some(Found::new(finding, case.layout.map(|_| change)))
}

#[cfg(test)]
mod tests {
    use crate::bed::{Bed, Does};

    fn bed(cache: &str, role: &str) -> Bed {
        let text = format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS1\" }}\n[[volume]]\nname = \
             \"disk\"\ntier = \"P30\"\ncache = \"{cache}\"\n[[file]]\nname = \"log\"\nrole = \
             \"{role}\"\nsize = \"100 GiB\"\non = \"disk\"\n"
        );
        Bed::layout(&text)
    }

    #[test]
    fn a_cache_for_a_log() {
        let few = Does::writes(200.0).kib(4.0).ms(2.0);
        let found = bed("read-only", "log").disk("disk", few).found("log-cached");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.priority, 200);
        assert!(finding.finding.contains("no effect on the load observed"), "{}", finding.finding);
        // A DS1 has 32 MiB/s to its cache.
        let many = Does::writes(700.0).kib(40.0).ms(2.0);
        assert_eq!(bed("read-only", "log").disk("disk", many).found("log-cached")[0].priority, 150);
        let found = bed("read-write", "log").disk("disk", few).found("log-cached");
        assert_eq!(found[0].priority, 150);
        assert!(found[0].evidence.iter().any(|line| line.contains("lost")));
    }

    #[test]
    fn none_for_a_log_and_one_for_data_are_as_they_should_be() {
        let few = Does::writes(200.0).kib(4.0).ms(2.0);
        assert!(!bed("none", "log").disk("disk", few).finds("log-cached"));
        assert!(!bed("read-only", "data").disk("disk", few).finds("log-cached"));
    }
}
