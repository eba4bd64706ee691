//! The input of the rules.

use crate::follow::{CapFacts, Facts, Moment, SubjectFacts};
use crate::seconds::at_s;
use crate::system::{Cap, On, Owner, Subject, SubjectId, System};
use crate::verdict::{Basis, CapWait, Cause, WaitTimes};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use weir_catalog::{Catalog, Edition, Tier};
use weir_core::Cap as Kind;
use weir_layout::{Layout, Role};
use weir_observe::Contents;
use weir_report::diagnosis::{Finding, MomentReport};
use weir_report::number::{percent, rate, time};
use weir_units::Bytes;

/// An observed system with its facts and wait times.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// Entities and their limits.
    pub system: &'a System,
    /// The facts.
    pub facts: &'a Facts,
    /// The wait times of each subject, in the order of the system's subjects.
    pub waited: &'a [WaitTimes],
    /// The entities of the observation.
    pub contents: &'a Contents,
    /// The edition, if one is known.
    pub edition: Option<&'a Edition>,
    /// The layout, if there is one.
    pub layout: Option<&'a Layout>,
    /// The catalog.
    pub catalog: &'a Catalog,
    /// Results that several rules need.
    pub known: &'a Known,
}

/// Results that several rules need, computed once. With thousands of files, computing them for each
/// would be too slow.
#[derive(Debug, Default)]
pub struct Known {
    /// Findings of the throttling rules, by rule number.
    pub(crate) throttling: RefCell<BTreeMap<u16, Rc<Vec<Finding>>>>,
    /// The causes that are no caps.
    pub(crate) causes: OnceCell<Vec<(Cause, f64)>>,
}

/// A subject with its facts and its wait times.
#[derive(Debug, Clone, Copy)]
pub struct JudgedSubject<'a> {
    /// Index in the system.
    pub index: usize,
    /// The observed entity.
    pub subject: &'a Subject,
    /// The facts.
    pub facts: &'a SubjectFacts,
    /// Wait times.
    pub waited: &'a WaitTimes,
}

impl<'a> Case<'a> {
    /// Returns the subjects that findings name.
    pub fn named(&self) -> impl Iterator<Item = JudgedSubject<'a>> + use<'a> {
        self.all().filter(|judged| judged.subject.is_named)
    }

    /// Returns all subjects.
    pub fn all(&self) -> impl Iterator<Item = JudgedSubject<'a>> + use<'a> {
        let both = self.system.subjects.iter().zip(&self.facts.subjects).zip(self.waited);
        both.enumerate().map(|(index, ((subject, facts), waited))| JudgedSubject {
            index,
            subject,
            facts,
            waited,
        })
    }

    /// Finds a subject.
    #[must_use]
    pub fn subject(&self, id: SubjectId) -> Option<JudgedSubject<'a>> {
        self.all().find(|judged| judged.subject.id == id)
    }

    /// Finds the subject of a file.
    #[must_use]
    pub fn subject_of_file(&self, file: usize) -> Option<JudgedSubject<'a>> {
        self.subject(SubjectId::File(file))
    }

    /// Returns the named subjects that are throttled, with the limit that throttles each.
    pub fn throttled(&self) -> impl Iterator<Item = (JudgedSubject<'a>, &'a CapWait)> + use<'a> {
        self.named().filter_map(|judged| Some((judged, judged.waited.throttled()?)))
    }

    /// Returns a cap with its facts.
    #[must_use]
    pub fn cap(&self, index: usize) -> (&'a Cap, &'a CapFacts) {
        (&self.system.caps[index], &self.facts.caps[index])
    }

    /// Returns the caps of a disk.
    pub(crate) fn caps_of_disk(
        &self,
        disk: usize,
    ) -> impl Iterator<Item = (&'a Cap, &'a CapFacts)> + use<'a> {
        let caps = self.system.caps.iter().zip(&self.facts.caps);
        caps.filter(move |(cap, _)| cap.owner == Owner::Disk(disk))
    }

    /// Returns the caps of a host.
    pub(crate) fn caps_of_host(
        &self,
        host: usize,
    ) -> impl Iterator<Item = (&'a Cap, &'a CapFacts)> + use<'a> {
        let caps = self.system.caps.iter().zip(&self.facts.caps);
        caps.filter(move |(cap, _)| cap.owner == Owner::Host(host))
    }

    /// Returns the name of a subject.
    #[must_use]
    pub fn name(&self, id: SubjectId) -> String {
        self.system.name(id)
    }

    /// Returns the roles of a file, or of the files on a disk or stripe.
    #[must_use]
    pub fn roles(&self, id: SubjectId) -> Vec<Role> {
        let on = match id {
            SubjectId::File(file) => return self.system.files[file].role.into_iter().collect(),
            SubjectId::Disk(disk) => match self.system.disks[disk].stripe {
                Some(stripe) => On::Stripe(stripe),
                None => On::Disk(disk),
            },
            SubjectId::Stripe(stripe) => On::Stripe(stripe),
        };
        let mut roles: Vec<Role> =
            self.system.files_on(on).filter_map(|(_, file)| file.role).collect();
        roles.sort_by_key(|role| role.name());
        roles.dedup();
        roles
    }

    /// Returns the tier of a disk in the edition, preferring the tier set that the layout states.
    #[must_use]
    pub fn tier(&self, disk: usize) -> Option<&'a Tier> {
        let (edition, name) = (self.edition?, self.system.disks[disk].tier.as_deref()?);
        let host = self.system.disks[disk].host.and_then(|host| self.layout?.hosts.get(host));
        let set = host.and_then(|host| host.instance.as_ref()?.tiers.as_deref());
        let in_set = set.and_then(|set| {
            edition.tier_set(set).ok()?.tiers.iter().find(|tier| tier.name == name)
        });
        in_set.or_else(|| edition.tier(name).ok())
    }

    /// Returns the smallest larger tier of a disk's set for which `is_more` holds, and the size
    /// that a file needs to reach it.
    #[must_use]
    pub(crate) fn tier_above(
        &self,
        disk: usize,
        is_more: impl Fn(&Tier, &Tier) -> bool,
    ) -> Option<(&'a Tier, u64)> {
        let (edition, tier) = (self.edition?, self.tier(disk)?);
        let set = edition.tier_set(&tier.set).ok()?;
        let mut below = tier;
        for above in set.tiers.iter().filter(|above| above.holds > tier.holds) {
            if is_more(tier, above) {
                return Some((above, below.holds.get() + GIB));
            }
            below = above;
        }
        None
    }

    /// Returns whether the files of a host are page blobs, whose limits depend on their size.
    #[must_use]
    pub fn is_instance(&self, id: SubjectId) -> bool {
        let host = self.system.host_of(id);
        let said = host.is_some_and(|host| self.system.hosts[host].instance.is_some());
        said || self.edition.is_some_and(|edition| edition.rule("min-blob").is_some())
    }
}

/// A file in the next tier is at least this much larger than the largest size of the tier below.
const GIB: u64 = 1 << 30;

impl JudgedSubject<'_> {
    /// Returns the name of the subject.
    #[must_use]
    pub fn name(&self, case: &Case<'_>) -> String {
        case.name(self.subject.id)
    }
}

/// Formats a limit or a rate with its unit.
#[must_use]
pub fn amount(is_bytes: bool, value: f64) -> String {
    if is_bytes {
        format!("{} MiB/s", rate(value / f64::from(1 << 20)))
    } else {
        format!("{} IOPS", rate(value))
    }
}

/// Formats a size with its unit.
#[must_use]
pub fn size(bytes: u64) -> String {
    Bytes::new(bytes).to_string()
}

/// Returns the name of a cap in messages.
#[must_use]
pub(crate) fn cap_words(kind: Kind) -> &'static str {
    match kind {
        Kind::DiskIops => "IOPS limit",
        Kind::DiskBytes => "throughput limit",
        Kind::DiskBurstIops => "burst IOPS limit",
        Kind::DiskBurstBytes => "burst throughput limit",
        Kind::HostUncachedIops => "uncached IOPS limit",
        Kind::HostUncachedBytes => "uncached throughput limit",
        Kind::HostUncachedBurstIops => "uncached burst IOPS limit",
        Kind::HostUncachedBurstBytes => "uncached burst throughput limit",
        Kind::HostCachedIops => "cached IOPS limit",
        Kind::HostCachedBytes => "cached throughput limit",
        Kind::HostCachedBurstIops => "cached burst IOPS limit",
        Kind::HostCachedBurstBytes => "cached burst throughput limit",
        Kind::HostWriteIops => "write IOPS limit",
        Kind::HostWriteBytes => "write throughput limit",
        Kind::LogRate => "log rate limit",
        _ => "limit",
    }
}

/// Returns the unloaded latency in words, if it is known.
#[must_use]
pub(crate) fn unloaded_words(waited: &WaitTimes) -> Option<String> {
    let own = format!("unloaded latency {}", time(waited.unloaded_ns?));
    let times = waited.medium_ratio;
    Some(match (times - 1.0).abs() < TELLING {
        true => own,
        false => format!("{own}: {times:.1} times that of the medium in the edition"),
    })
}

/// Difference from the edition's latency from which on it is mentioned.
const TELLING: f64 = 0.1;

/// Returns the source of wait times in words.
#[must_use]
pub(crate) const fn basis_words(basis: Basis) -> &'static str {
    match basis {
        Basis::Counted => "wait times counted by Weir at each limit",
        Basis::Queued => "queue times counted by the governor",
        Basis::Medium => "latency in excess of the medium's",
        Basis::Quiet => "latency in excess of quiet samples",
        Basis::Utilisation => "utilisation of the limit",
    }
}

/// Describes the moments with the longest wait times.
#[must_use]
pub fn moments(case: &Case<'_>, judged: &JudgedSubject<'_>, most: usize) -> Vec<MomentReport> {
    let words = |moment: &Moment| {
        let used = match moment.cap {
            Some((cap, _)) => {
                let owner = case.system.owner_name(&case.system.caps[cap]);
                let kind = case.system.caps[cap].kind.name();
                format!("{kind} of {owner} at {}", percent(moment.utilisation))
            }
            None => "no known limit".to_owned(),
        };
        let latency = moment.latency_ns().map(|ns| format!(", {} mean latency", time(ns)));
        let seconds = at_s(moment.to) - at_s(moment.from);
        let iops = rate(moment.operations / seconds.max(1e-9));
        format!("{iops} IOPS, {used}{}", latency.unwrap_or_default())
    };
    let all = judged.facts.moments.iter().take(most);
    all.map(|moment| MomentReport {
        from_s: at_s(moment.from),
        to_s: at_s(moment.to),
        description: words(moment),
    })
    .collect()
}
