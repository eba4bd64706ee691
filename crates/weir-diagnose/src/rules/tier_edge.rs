//! Sizes around the edges of tiers: what growing brings and what it does not, and space above an
//! edge that buys nothing.

use super::files::{
    GIB, InstanceStorage, REACH, counts_bytes, file_throttled, name, needed, one_of, own_disk,
    resize, sized, steps, throttled_on, tiers, used, words,
};
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, size};
use crate::change::Change;
use crate::system::SubjectId;
use weir_report::diagnosis::Group;
use weir_report::number::percent;
use weir_units::Bytes;

pub(super) const RULE: Rule = Rule {
    id: 205,
    name: "tier-edge",
    group: Group::Layout,
    priority: 100,
    source: source::INSTANCE,
    finds: "a file is just below the edge of a tier, or above one without benefit",
    find,
};

/// A step is no more than this many times what the file has: from 150 GiB to 257 it is 1.7.
const STEP: u64 = 2;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let files = 0..case.system.files.len();
    let mut found: Vec<Candidate> = files.filter_map(|file| below(case, rule, file)).collect();
    let hosts = 0..case.system.hosts.len();
    found.extend(hosts.filter_map(|host| above(case, rule, host)));
    found
}

/// Builds a finding on a throttled file that is just below the next tier.
fn below(case: &Case<'_>, rule: &Rule, file: usize) -> Option<Candidate> {
    let (judged, wait) = file_throttled(case, file)?;
    let is_bytes = counts_bytes(case, wait);
    let (own, to) = needed(case, file, is_bytes)?;
    if to > own.saturating_mul(STEP) {
        return None;
    }
    let set = tiers(case, own_disk(case, file)?)?;
    let (now, then) = (set.snap(Bytes::new(own))?, set.snap(Bytes::new(to))?);
    let subject = name(case, file);
    let text = format!(
        "{subject} has {} and is throttled by the limits of {}; {} are enough for {} ({} instead of \
         {}), and sizes up to {} change nothing",
        size(own),
        now.name,
        size(to),
        then.name,
        words(&then.limits()),
        words(&now.limits()),
        size(to - GIB),
    );
    let mut finding = rule.finding(subject.clone(), text);
    finding.cap = Some(wait.kind.name().to_owned());
    finding.confidence = judged.waited.confidence;
    finding
        .evidence
        .push(format!("{} of the latency of {subject} is wait time", percent(wait.share)));
    finding.evidence.push(format!("additional space: {}", size(to - own)));
    finding.action = format!("grow it to at least {}: {}", size(to), resize(case, file, to));
    let room = case
        .system
        .host_of(SubjectId::File(file))
        .and_then(|host| InstanceStorage::new(case, host));
    let lacks = room.is_some_and(|room| room.free() < to - own);
    if lacks {
        finding.action += "; the instance has too little free storage: raise its storage first";
    }
    Some(Candidate::new(finding, sized(case, file, to).filter(|_| !lacks)))
}

/// Space of a file above an edge.
struct SpareSpace {
    file: usize,
    own: u64,
    to: u64,
    is_lower: bool,
}

/// Returns the size to which a file can shrink without slowing its load.
fn spare(case: &Case<'_>, file: usize) -> Option<SpareSpace> {
    let (own, steps) = steps(case, file)?;
    super::files::judged_file(case, file)?;
    if file_throttled(case, file).is_some() {
        return None;
    }
    let fits = |is_bytes: bool| {
        let limits = steps.down.as_ref()?.limits;
        let set = tiers(case, own_disk(case, file)?)?;
        let now = set.snap(Bytes::new(own))?.limits();
        let used = used(case, SubjectId::File(file), is_bytes)?;
        Some(used * one_of(&now, is_bytes) <= REACH * one_of(&limits, is_bytes))
    };
    let is_lower = fits(false) == Some(true) && fits(true) == Some(true);
    let down = steps.down.as_ref().filter(|_| is_lower).map(|down| down.size.get());
    let to = down.unwrap_or(steps.from.get()).max(in_it(case, file).unwrap_or(0));
    // Below the lowest tier, the minimum size is unknown.
    (to > 0 && to + GIB <= own).then_some(SpareSpace { file, own, to, is_lower })
}

/// Returns the used size of a file, if the layout states it.
fn in_it(case: &Case<'_>, file: usize) -> Option<u64> {
    let own = &case.system.files[file];
    let hosts = case.layout.map(|layout| layout.hosts.as_slice()).unwrap_or_default();
    let mut files = hosts.iter().flat_map(|host| &host.files);
    let said = files.find(|other| other.name == own.name && other.database == own.database)?;
    said.used.map(Bytes::get)
}

/// Finds files above a tier edge without benefit, while throttled files of their instance lack
/// storage to grow.
fn above(case: &Case<'_>, rule: &Rule, host: usize) -> Option<Candidate> {
    let room = InstanceStorage::new(case, host)?;
    let wait = throttled_on(case, host);
    let need = |(file, _, wait): &(usize, _, &crate::verdict::CapWait)| {
        let (own, to) = needed(case, *file, counts_bytes(case, wait))?;
        Some((*file, own, to))
    };
    let needs: Vec<(usize, u64, u64)> = wait.iter().filter_map(need).collect();
    let (file, own, to) = *needs.iter().find(|(_, own, to)| to - own > room.free())?;
    let on_host = |file: &usize| case.system.host_of(SubjectId::File(*file)) == Some(host);
    let files = (0..case.system.files.len()).filter(on_host);
    let mut spares: Vec<SpareSpace> = files.filter_map(|file| spare(case, file)).collect();
    spares.sort_by_key(|spare| std::cmp::Reverse(spare.own - spare.to));
    let mut free = room.free();
    let mut taken = Vec::new();
    for spare in spares {
        if free >= to - own {
            break;
        }
        free += spare.own - spare.to;
        taken.push(spare);
    }
    if free < to - own {
        return None;
    }
    let given: Vec<String> = taken
        .iter()
        .map(|spare| {
            format!("{} from {} to {}", name(case, spare.file), size(spare.own), size(spare.to))
        })
        .collect();
    let subject = name(case, file);
    let text = format!(
        "{subject} needs {} more for the next tier and the instance has {} free, while {} of other \
         files are above the edge of a tier without benefit",
        size(to - own),
        size(room.free()),
        size(taken.iter().map(|spare| spare.own - spare.to).sum()),
    );
    let mut finding = rule.finding(case.system.hosts[host].name.clone(), text);
    if let Some((_, judged, wait)) = wait.iter().find(|(own, ..)| *own == file) {
        finding.cap = Some(wait.kind.name().to_owned());
        finding.confidence = judged.waited.confidence;
    }
    for spare in &taken {
        let what = if spare.is_lower {
            "the next lower tier, which its load uses to 70 % at most"
        } else {
            "the same limits"
        };
        let name = name(case, spare.file);
        finding.evidence.push(format!("{name} would have at {}: {what}", size(spare.to)));
    }
    finding.action = format!(
        "shrink {} if their contents fit (DBCC SHRINKFILE), and grow {subject} to {}: {}",
        given.join(", "),
        size(to),
        resize(case, file, to)
    );
    let shrunk = taken.iter().map(|spare| sized(case, spare.file, spare.to));
    let changes: Option<Vec<Change>> = shrunk.chain([sized(case, file, to)]).collect();
    Some(Candidate::new(finding, changes.map(Change::All)))
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(storage: &str, sizes: [u32; 2]) -> TestBed {
        let text = format!(
            "edition = \"azure-mi-2018\"\nhost = {{ managed_instance = \"gp\", vcores = 8, storage \
             = \"{storage}\" }}\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"{} GiB\"\n\
             [[file]]\nname = \"other\"\ndatabase = \"two\"\nrole = \"data\"\nsize = \"{} GiB\"\n",
            sizes[0], sizes[1]
        );
        TestBed::layout(&text)
    }

    /// A P15 has 1,100 operations.
    fn held(bed: TestBed, iops: f64) -> TestBed {
        bed.file("db", "data", EntityLoad::reads(iops).ms(60.0)).file(
            "two",
            "other",
            EntityLoad::reads(3000.0).ms(4.0),
        )
    }

    #[test]
    fn growing_150_gib_to_257_changes_the_tier_and_256_does_not() {
        let found = held(bed("8 TiB", [150, 600]), 1098.0).found("tier-edge");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.finding.contains("257 GiB are enough for P20"), "{}", finding.finding);
        assert!(finding.finding.contains("up to 256 GiB change nothing"), "{}", finding.finding);
        // From 32 GiB it is no step but four.
        assert!(!held(bed("8 TiB", [32, 600]), 498.0).finds("tier-edge"));
        // Nothing is throttled.
        assert!(!held(bed("8 TiB", [150, 600]), 12.0).finds("tier-edge"));
    }

    #[test]
    fn space_above_an_edge_is_given_to_other_files() {
        // 32 GiB need 97 more, 68 are left, and 900 GiB have what 513 have.
        let found = held(bed("1000 GiB", [32, 900]), 498.0).found("tier-edge");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.action.contains("other from 900 GiB to 513 GiB"), "{}", finding.action);
        // There is room, or nothing is to be had.
        assert!(!held(bed("2 TiB", [32, 900]), 498.0).finds("tier-edge"));
        assert!(!held(bed("560 GiB", [32, 513]), 498.0).finds("tier-edge"));
    }
}
