//! Data files that are mostly read, on a disk without a host cache.

use super::files::REACH;
use super::rule::{Candidate, Rule, source};
use super::stores::{Store, file_of, is_cached, is_uncached, read_latency, stores};
use crate::case::{Case, amount, size};
use crate::change::Change;
use crate::system::{CacheMode, Owner, SubjectId};
use crate::verdict::CapWait;
use weir_core::Cap as Kind;
use weir_layout::Role;
use weir_report::diagnosis::Group;
use weir_report::number::{percent, rate, time};
use weir_units::Bytes;

pub(super) const RULE: Rule = Rule {
    id: 207,
    name: "data-uncached",
    group: Group::Layout,
    priority: 100,
    source: source::PREMIUM,
    finds: "data files that are mostly read are on a disk without a host cache, and reads are slow",
    find,
};

/// More reads than writes: disks that are written more are to have none.
const READS: f64 = 0.5;

/// Mean number of reads in flight from which on a session always waits for a read.
const ALWAYS: f64 = 1.0;

/// A read that takes no more than this many times what the medium does has that latency.
const USUAL: f64 = 1.5;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    stores(case).iter().filter_map(|store| check_store(case, rule, store)).collect()
}

/// Returns whether the host has a cache that the disks can use.
fn can_cache(case: &Case<'_>, store: &Store) -> bool {
    let host = &case.system.hosts[store.host];
    let Some(edition) = case.edition else { return false };
    let machine = host.size.as_deref().and_then(|size| edition.host(size).ok());
    let has_cache = machine.is_some_and(|machine| {
        machine.premium_caching != Some(false)
            && (machine.premium_caching == Some(true) || machine.cache.is_some())
    });
    let can = |disk: &usize| {
        let disk = &case.system.disks[*disk];
        let (Some(family), Some(size)) = (disk.family.as_deref(), disk.size) else { return false };
        edition.host_cache().is_some_and(|cache| cache.can_cache(family, Bytes::new(size)))
    };
    has_cache && store.disks.iter().all(can)
}

/// Returns whether the limit of the cache has headroom for this load.
fn has_room(case: &Case<'_>, store: &Store) -> bool {
    let fits = |kind: Kind, sum: Option<f64>| {
        let cap = case.caps_of_host(store.host).find(|(cap, _)| cap.kind == kind);
        match (cap, store.per_s(sum)) {
            (Some((cap, facts)), Some(more)) => {
                more + facts.rate.quantile(0.99) <= REACH * cap.limit.rate
            }
            // A limit that is not published is none that is known to hold.
            _ => false,
        }
    };
    fits(Kind::HostCachedIops, store.load.operations)
        && fits(Kind::HostCachedBytes, store.load.bytes)
}

/// Returns the limit that throttles reads which a cache would serve.
fn wait<'a>(
    case: &Case<'a>,
    store: &Store,
) -> Option<(crate::case::JudgedSubject<'a>, &'a CapWait)> {
    let is = |case: &Case<'_>, wait: &CapWait| {
        let cap = &case.system.caps[wait.cap];
        match cap.owner {
            Owner::Disk(disk) => store.disks.contains(&disk),
            Owner::Host(host) => {
                host == store.host && is_uncached(cap.kind) && !is_cached(cap.kind)
            }
        }
    };
    super::throttled::throttled_by(case, is).into_iter().find(|(judged, _)| {
        let own = case.system.disks_of(judged.subject.id);
        !own.is_empty() && own.iter().all(|disk| store.disks.contains(disk))
    })
}

fn check_store(case: &Case<'_>, rule: &Rule, store: &Store) -> Option<Candidate> {
    let is_data = store.carries(Role::Data) && !store.carries(Role::Log);
    let share = store.read_share().filter(|share| *share > READS)?;
    if !is_data
        || store.cache != Some(CacheMode::None)
        || !can_cache(case, store)
        || !has_room(case, store)
    {
        return None;
    }
    let wait = wait(case, store);
    let judged = case.subject(store.id);
    let latency = read_latency(store, judged, case);
    let depth = store.per_s(store.load.read_ns.map(|ns| ns / 1e9)).unwrap_or(0.0);
    let is_unloaded = latency
        .is_some_and(|(mean, unloaded)| mean <= USUAL * unloaded && mean >= unloaded / USUAL);
    if wait.is_none() && !(is_unloaded && depth >= ALWAYS) {
        return None;
    }
    let data = file_of(case.system, store.id, Role::Data)?;
    let reads = rate(store.per_s(store.load.reads)?);
    let why = match wait {
        Some((_, wait)) => {
            let cap = &case.system.caps[wait.cap];
            format!(
                "{} of their latency is wait time at {}",
                percent(wait.share),
                amount(cap.counts_bytes(), cap.limit.rate)
            )
        }
        None => format!("each takes {} at the disk", time(latency?.0)),
    };
    let text = format!(
        "{} holds {data} and has no host cache; {} of its operations are reads ({reads}/s), and {why}",
        store.name,
        percent(share),
    );
    let mut finding = rule.finding(store.name.clone(), text);
    match wait {
        Some((judged, wait)) => {
            finding.cap = Some(wait.kind.name().to_owned());
            finding.confidence = judged.waited.confidence;
        }
        None => finding.priority = 150,
    }
    finding.evidence.extend(evidence(case, store, depth));
    finding.action = format!(
        "set the host cache of {} to read-only (this detaches the disk: stop its users first): az vm \
         update --set storageProfile.dataDisks[N].caching=ReadOnly. It serves repeated reads, and is \
         cold after a restart",
        store.name
    );
    let change = Change::Cache { name: store.name.clone(), mode: CacheMode::ReadOnly };
    Some(Candidate::new(finding, case.layout.map(|_| change)))
}

fn evidence(case: &Case<'_>, store: &Store, depth: f64) -> Vec<String> {
    let mut lines = vec![format!("{} reads in flight on average", rate(depth))];
    let edition = case.edition;
    let cache = edition.and_then(|edition| edition.cache_latency());
    if let Some(latency) = cache {
        let nanos = weir_report::number::float(latency.read.mean().nanos());
        lines.push(format!("latency of a cache hit: {}", time(nanos)));
    }
    let host = &case.system.hosts[store.host];
    let machine = host.size.as_deref().and_then(|size| edition?.host(size).ok());
    let files = match store.id {
        SubjectId::Disk(disk) => Some(crate::system::On::Disk(disk)),
        SubjectId::Stripe(stripe) => Some(crate::system::On::Stripe(stripe)),
        SubjectId::File(_) => None,
    };
    let bytes: Option<u64> =
        files.into_iter().flat_map(|on| case.system.files_on(on)).map(|(_, file)| file.size).sum();
    if let (Some(cache), Some(bytes)) = (machine.and_then(|machine| machine.cache), bytes) {
        lines.push(format!(
            "size of the machine's cache: {}, of the files on {}: {}",
            size(cache.get()),
            store.name,
            size(bytes)
        ));
    }
    lines.push(
        "cache hits count neither against the disk nor against the machine's limit on remote \
         storage"
            .to_owned(),
    );
    lines
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(size: &str, cache: &str, role: &str, does: EntityLoad) -> TestBed {
        let text = format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"{size}\" }}\n[[volume]]\nname = \
             \"disk\"\ntier = \"P10\"\ncache = \"{cache}\"\n[[file]]\nname = \"file\"\nrole = \
             \"{role}\"\nsize = \"100 GiB\"\non = \"disk\"\n"
        );
        TestBed::layout(&text).disk("disk", does)
    }

    #[test]
    fn throttled_reads_without_a_cache() {
        let held = EntityLoad::reads(450.0).and_writes(49.0).ms(40.0);
        let found = bed("DS4", "none", "data", held).found("data-uncached");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.priority, finding.cap.as_deref()), (100, Some("disk_iops")));
        assert!(
            finding.evidence.iter().any(|line| line.contains("344 GiB")),
            "{:?}",
            finding.evidence
        );
        // A read is always in flight, and no limit is reached.
        let busy = EntityLoad::reads(480.0).ms(2.25);
        let found = bed("DS4", "none", "data", busy).found("data-uncached");
        assert_eq!(found[0].priority, 150);
    }

    #[test]
    fn loads_without_benefit_from_a_cache() {
        let held = EntityLoad::reads(450.0).and_writes(49.0).ms(40.0);
        assert!(!bed("DS4", "read-only", "data", held).finds("data-uncached"));
        assert!(!bed("DS4", "none", "log", held).finds("data-uncached"));
        let writes = EntityLoad::reads(150.0).and_writes(349.0).ms(40.0);
        assert!(!bed("DS4", "none", "data", writes).finds("data-uncached"));
        assert!(
            !bed("DS4", "none", "data", EntityLoad::reads(100.0).ms(2.0)).finds("data-uncached")
        );
        // The cache of a DS1 lets 32 MiB/s through, less than the disk does now.
        let large = EntityLoad::reads(400.0).kib(100.0).ms(3.0);
        assert!(!bed("DS1", "none", "data", large).finds("data-uncached"));
    }
}
