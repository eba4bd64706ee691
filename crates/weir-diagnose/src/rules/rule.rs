//! The type of a rule and of what it finds, and the sources of rules.

use crate::case::Case;
use crate::change::Change;
use weir_report::diagnosis::{Confidence, Finding, Group, SourceReport};

/// Priority of missing evidence. A finding of this priority or a smaller number leaves the verdict open.
pub(crate) const BLIND: u8 = 50;

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
    /// The finding in a sentence.
    pub finds: &'static str,
    /// Runs the rule.
    pub find: fn(&Case<'_>, &Rule) -> Vec<Candidate>,
}

/// A finding, and the change that it proposes.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The finding.
    pub finding: Finding,
    /// Wait time at the limit, in nanoseconds.
    pub waited_ns: f64,
    /// The change of the layout, if the action is one.
    pub change: Option<Change>,
}

impl Rule {
    /// Builds a finding of the rule without evidence.
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
            is_bytes: false,
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
    pub(crate) const PRESIZE: &str = "Increasing data files might improve performance on General Purpose Managed Instance tier, J. Popovic, 2018";
    /// On tempdb over several disks.
    pub(crate) const SCALE_OUT: &str = "Scaling-out SQL Server disks and data files on Windows Azure Virtual Machines, Microsoft, 2013";
    /// On premium storage.
    pub const PREMIUM: &str = "Azure Premium Storage: Design for High Performance, Microsoft, 2015";
    /// On backups.
    pub const BACKUP: &str = "Efficient SQL Server in Azure VM Backup Strategies using DS-SERIES and Premium Storage, I. Pagliai, 2015";
    /// The model of the limits.
    pub(crate) const MODEL: &str = "the model of the limits (docs/SEMANTICS.md)";
    /// Documentation of clouds on their metrics.
    pub const CLOUD: &str =
        "metrics of the cloud itself (documentation of Azure Monitor and of Amazon CloudWatch)";
    /// Documentation of SQL Server on waits.
    pub const WAITS: &str = "sys.dm_os_wait_stats, documentation of SQL Server";
}
