//! The rules, one per file.
//!
//! A rule looks at a [`Case`] and makes findings of it. Its number and name stay what they are:
//! people filter by them. `docs/DIAGNOSIS.md` explains each under its name.

mod add_files;
#[cfg(test)]
mod advice;
mod at_disk;
mod at_host;
mod at_log_rate;
mod at_stripe;
mod backup;
mod backup_cached;
mod backup_limit;
mod backup_local_ssd;
mod backup_options;
mod backup_stripes;
mod backup_targets;
mod bursts_or_slow;
mod cache_pressure;
mod ceiling;
mod client;
mod coarse_samples;
mod consumed;
mod cpu;
mod credits;
mod credits_out;
mod credits_soon;
mod data_uncached;
mod depth_high;
mod depth_low;
mod files;
pub(crate) use files::Room;
mod full_queue;
mod hits_unknown;
mod instance_storage;
mod throttled;
pub(crate) use instance_storage::storage_for;
mod large_io;
mod locks;
mod log_cached;
mod log_first;
mod many_small_files;
mod memory_grants;
mod near_limit;
mod no_latency;
mod no_limits;
mod no_operations;
mod not_storage;
pub(crate) use not_storage::Cause;
mod one_sample;
mod page_latch;
mod parallelism;
mod queued;
mod short_episode;
mod signs;
mod slow_medium;
mod small_file;
mod stores;
mod stripe_columns;
mod stripe_unit;
mod tempdb_contention;
mod tier_edge;
mod too_short;
mod unequal_files;
mod vm_below_disks;
mod waits;
mod writes_cached;

use crate::case::Case;
use crate::change::Change;
use weir_report::diagnosis::{Confidence, Finding, Group, SourceReport};

/// A rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Number of the rule.
    pub id: u16,
    /// Name.
    pub name: &'static str,
    /// Group of its findings.
    pub group: Group,
    /// Priority of its findings, from 1 (most urgent) to 255.
    pub priority: u8,
    /// Source.
    pub source: &'static str,
    /// In a sentence, what it finds.
    pub finds: &'static str,
    /// Looks.
    pub find: fn(&Case<'_>, &Rule) -> Vec<Candidate>,
}

/// A finding, and what would change it.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The finding.
    pub finding: Finding,
    /// Wait time at the limit, in nanoseconds.
    pub waited_ns: f64,
    /// A change of the layout that the action is.
    pub change: Option<Change>,
}

/// All rules.
pub const RULES: &[Rule] = &[
    at_disk::IN_OPERATIONS,
    at_disk::IN_BYTES,
    at_stripe::RULE,
    at_host::UNCACHED,
    at_host::CACHED,
    at_log_rate::RULE,
    small_file::RULE,
    unequal_files::RULE,
    many_small_files::RULE,
    log_first::RULE,
    tier_edge::RULE,
    log_cached::RULE,
    data_uncached::RULE,
    writes_cached::RULE,
    vm_below_disks::RULE,
    stripe_columns::RULE,
    stripe_unit::RULE,
    depth_low::RULE,
    depth_high::RULE,
    large_io::RULE,
    instance_storage::RULE,
    add_files::RULE,
    credits_out::RULE,
    consumed::RULE,
    queued::RULE,
    ceiling::RULE,
    near_limit::RULE,
    full_queue::RULE,
    credits_soon::RULE,
    backup_cached::RULE,
    backup_targets::RULE,
    backup_stripes::RULE,
    backup_local_ssd::RULE,
    cpu::RULE,
    locks::RULE,
    client::RULE,
    memory_grants::RULE,
    tempdb_contention::RULE,
    page_latch::RULE,
    parallelism::RULE,
    slow_medium::RULE,
    cache_pressure::RULE,
    no_limits::RULE,
    no_latency::RULE,
    coarse_samples::RULE,
    too_short::RULE,
    hits_unknown::RULE,
    one_sample::RULE,
    bursts_or_slow::RULE,
    no_operations::RULE,
    short_episode::RULE,
    backup_limit::RULE,
    backup_options::BUFFERS,
    backup_options::TRANSFERS,
    backup_options::STRIPES,
];

impl Rule {
    /// A finding of the rule that has nothing but its sentence yet.
    #[must_use]
    pub fn finding(&self, subject: impl Into<String>, finding: impl Into<String>) -> Finding {
        let subject = subject.into();
        Finding {
            check_id: self.id,
            rule: self.name,
            priority: self.priority,
            group: self.group,
            finding: finding.into(),
            subjects: vec![subject.clone()],
            subject,
            cap: None,
            limit: None,
            wait_ns: 0.0,
            confidence: Confidence::Medium,
            evidence: Vec::new(),
            moments: Vec::new(),
            ruled_out: Vec::new(),
            action: String::new(),
            effect: None,
            source: SourceReport { title: self.source, url: url(self.name) },
        }
    }
}

impl Candidate {
    /// A finding, and what its action would change.
    #[must_use]
    pub const fn new(finding: Finding, change: Option<Change>) -> Self {
        Self { finding, waited_ns: 0.0, change }
    }
}

impl From<Finding> for Candidate {
    fn from(finding: Finding) -> Self {
        Self::new(finding, None)
    }
}

/// Returns the section of the documentation on a rule.
fn url(name: &'static str) -> &'static str {
    URLS.iter().find(|(rule, _)| *rule == name).map_or("docs/DIAGNOSIS.md", |(_, url)| url)
}

macro_rules! urls {
    ($($name:literal)*) => { &[$(($name, concat!("docs/DIAGNOSIS.md#", $name))),*] };
}

const URLS: &[(&str, &str)] = urls![
    "disk-operations" "disk-bytes" "stripe-column" "host-uncached" "host-cached" "log-rate"
    "small-file"
    "unequal-files"
    "many-small-files"
    "log-first"
    "tier-edge"
    "log-cached"
    "data-uncached"
    "writes-cached"
    "vm-below-disks"
    "stripe-columns"
    "stripe-unit"
    "depth-low"
    "depth-high"
    "large-io-counted"
    "instance-storage"
    "add-files"
    "credits-out" "consumed" "queued" "ceiling" "near-limit" "full-queue" "credits-soon"
    "backup-limit" "backup-buffers" "backup-transfer-size" "backup-files"
    "backup-cached" "backup-targets" "backup-stripes" "backup-local-ssd"
    "cpu" "locks" "client" "memory-grants" "tempdb-contention" "page-latch" "parallelism"
    "slow-medium" "cache-pressure"
    "no-limits" "no-latency" "coarse-samples" "too-short" "hits-unknown" "one-sample"
    "bursts-or-slow" "no-operations" "short-episode"
];

/// The articles that rules come from.
pub mod source {
    /// On files of managed instances.
    pub const INSTANCE: &str = "Storage performance best practices and considerations for Azure SQL DB Managed Instance (General Purpose), Microsoft, 2018";
    /// On growing a data file.
    pub const PRESIZE: &str = "Increasing data files might improve performance on General Purpose Managed Instance tier, J. Popovic, 2018";
    /// On tempdb over several disks.
    pub const SCALE_OUT: &str = "Scaling-out SQL Server disks and data files on Windows Azure Virtual Machines, Microsoft, 2013";
    /// On premium storage.
    pub const PREMIUM: &str = "Azure Premium Storage: Design for High Performance, Microsoft, 2015";
    /// On backups.
    pub const BACKUP: &str = "Efficient SQL Server in Azure VM Backup Strategies using DS-SERIES and Premium Storage, I. Pagliai, 2015";
    /// The model of the limits.
    pub const MODEL: &str = "the model of the limits (docs/SEMANTICS.md)";
    /// Documentation of clouds on their metrics.
    pub const CLOUD: &str =
        "metrics of the cloud itself (documentation of Azure Monitor and of Amazon CloudWatch)";
    /// Documentation of SQL Server on waits.
    pub const WAITS: &str = "sys.dm_os_wait_stats, documentation of SQL Server";
}

/// Runs all rules. Findings are sorted by priority, then by wait time.
#[must_use]
pub fn run(case: &Case<'_>) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = RULES.iter().flat_map(|rule| (rule.find)(case, rule)).collect();
    backup_limit::without_repeats(case, &mut found);
    found.sort_by(|one, other| {
        let (one_is, other_is) = (&one.finding, &other.finding);
        let priority = one_is.priority.cmp(&other_is.priority);
        let waited = other.waited_ns.total_cmp(&one.waited_ns);
        let name = (one_is.check_id, &one_is.subject).cmp(&(other_is.check_id, &other_is.subject));
        priority.then(waited).then(name)
    });
    found
}
