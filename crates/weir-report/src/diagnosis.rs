//! The result of a diagnosis: the verdict, findings with evidence, and the use of each limit.

mod page;
mod shown;

use crate::number::{Amount, Delta};
use serde::Serialize;

/// The verdict of a diagnosis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictName {
    /// A limit throttles requests.
    Throttled,
    /// The cause is outside the storage.
    NotTheStorage,
    /// No limit throttles requests, and no other cause was found.
    #[default]
    Healthy,
    /// The observation does not show whether requests are throttled.
    NotEnoughEvidence,
}

impl VerdictName {
    /// Returns the name for text output.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::NotTheStorage => "not the storage",
            Self::Healthy => "healthy",
            Self::NotEnoughEvidence => "not enough evidence",
        }
    }
}

/// The group of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// A limit throttles requests.
    Throttling,
    /// The cause is outside the storage.
    NotTheStorage,
    /// A limit is nearly reached.
    Headroom,
    /// The layout can be improved.
    Layout,
    /// Data is missing.
    Evidence,
}

impl Group {
    /// Returns the name for text output.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Throttling => "Throttling",
            Self::NotTheStorage => "Not the storage",
            Self::Headroom => "Headroom",
            Self::Layout => "Layout",
            Self::Evidence => "Evidence",
        }
    }
}

/// The confidence in a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Suspected.
    Low,
    /// Inferred from bursts or from utilisation.
    Medium,
    /// Measured: wait times or queues were counted, or the limit was reached.
    High,
}

impl Confidence {
    /// Returns the name for text output.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A time span that shows a finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MomentReport {
    /// Start, in seconds from the start of the observation.
    pub from_s: f64,
    /// End, in seconds from the start of the observation.
    pub to_s: f64,
    /// Load, utilisation and latency in this span.
    pub description: String,
}

/// The source of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// Title of the publication.
    pub title: &'static str,
    /// The section of the documentation.
    pub url: &'static str,
}

/// The simulated effect of a change on the observed load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectReport {
    /// The change.
    pub change: String,
    /// IOPS of the present layout.
    pub iops_before: f64,
    /// IOPS with the change.
    pub iops_after: f64,
    /// Mean latency of the present layout, in nanoseconds.
    pub latency_before_ns: f64,
    /// Mean latency with the change, in nanoseconds.
    pub latency_after_ns: f64,
    /// The simulation of the present layout beside the observation.
    pub basis: String,
    /// Prices of both layouts, if the edition has any.
    pub price: Option<EffectPrice>,
    /// An assumption about the price, or the reason why there is none.
    pub price_note: Option<String>,
}

/// Monthly prices before and after a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectPrice {
    /// Region of the price list.
    pub region: String,
    /// Currency of the price list.
    pub currency: String,
    /// Monthly price of the present layout; items without a price are left out.
    pub before: Amount,
    /// Monthly price with the change; items without a price are left out.
    pub after: Amount,
    /// The difference; `None` if an item without a price is in one of the layouts only.
    pub difference: Option<Delta>,
    /// Items without a price.
    pub unknown: Vec<String>,
}

/// A verdict with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Number of the rule. It never changes.
    pub check_id: u16,
    /// Name of the rule.
    pub rule: &'static str,
    /// Priority from 1 (most urgent) to 255.
    pub priority: u8,
    /// Group of the rule.
    pub group: Group,
    /// The finding in a sentence.
    pub finding: String,
    /// The file, disk, stripe, host or database with the longest wait time.
    pub subject: String,
    /// All subjects with the same finding, that with the longest wait time first.
    pub subjects: Vec<String>,
    /// The limit as metrics name it, for example `disk_iops`.
    pub cap: Option<String>,
    /// The limit of each subject, in operations or bytes per second.
    pub limit: Option<f64>,
    /// Set if the limit is in bytes per second.
    pub is_bytes: bool,
    /// Wait time of all requests of all subjects, in nanoseconds; zero if the finding has none.
    pub wait_ns: f64,
    /// Confidence in the finding.
    pub confidence: Confidence,
    /// Evidence, line by line.
    pub evidence: Vec<String>,
    /// Time spans that show it.
    pub moments: Vec<MomentReport>,
    /// Other limits and causes, with the reason why each was ruled out.
    pub ruled_out: Vec<String>,
    /// The fix.
    pub action: String,
    /// The simulated effect of the fix.
    pub effect: Option<EffectReport>,
    /// Source of the rule.
    pub source: SourceReport,
}

/// The utilisation of a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CapReport {
    /// Name in metrics.
    pub cap: String,
    /// The disk or host that it belongs to.
    pub owner: String,
    /// Operations or bytes per second.
    pub limit: f64,
    /// Set for throughput limits.
    pub is_bytes: bool,
    /// Mean rate.
    pub mean: f64,
    /// 99th percentile of the rate.
    pub p99: f64,
    /// Highest rate.
    pub max: f64,
    /// Samples at 90 % of the limit or more.
    pub near_limit_count: u64,
    /// All samples.
    pub samples: u64,
    /// The share of time at 90 % of the limit or more.
    pub near_limit_share: f64,
    /// Wait time of all requests at this limit, in nanoseconds.
    pub wait_ns: f64,
    /// The rate is only an upper bound, because the number of cache hits is unknown.
    pub is_upper_bound: bool,
}

/// A file, disk or stripe with observed I/O.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubjectReport {
    /// Name.
    pub name: String,
    /// `file`, `disk` or `stripe`.
    pub kind: &'static str,
    /// Tier of its disk.
    pub tier: Option<String>,
    /// Mean IOPS.
    pub iops: Option<f64>,
    /// Mean throughput.
    pub bytes_per_s: Option<f64>,
    /// Mean latency, in nanoseconds.
    pub latency_ns: Option<f64>,
    /// Latency of a request that does not wait, in nanoseconds.
    pub unloaded_latency_ns: Option<f64>,
    /// The share of the latency that is wait time at limits or in a governor's queue; `None` if no
    /// limit is known.
    pub wait_share: Option<f64>,
    /// The limit with the longest wait time, if it throttles.
    pub cap: Option<String>,
    /// Source of the wait times.
    pub basis: &'static str,
}

/// Rates of a subject over time, and its limits, for plots.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlotReport {
    /// Name.
    pub name: String,
    /// Seconds from the start, and IOPS.
    pub iops: Vec<(f64, Option<f64>)>,
    /// Seconds from the start, and throughput.
    pub bytes_per_s: Vec<(f64, Option<f64>)>,
    /// Seconds from the start, and mean latency in milliseconds.
    pub latency_ms: Vec<(f64, Option<f64>)>,
    /// IOPS limit.
    pub iops_limit: Option<f64>,
    /// Throughput limit.
    pub bytes_per_s_limit: Option<f64>,
}

/// A diagnosis.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DiagnosisReport {
    /// The verdict.
    pub verdict: VerdictName,
    /// The verdict in a sentence.
    pub summary: String,
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Start and end, in seconds.
    pub span_s: (f64, f64),
    /// Number of samples.
    pub samples: u64,
    /// Median sampling interval, in seconds.
    pub interval_s: f64,
    /// Source of the limits.
    pub limits_source: String,
    /// The findings, by priority and then by wait time.
    pub findings: Vec<Finding>,
    /// The limits, by wait time.
    pub caps: Vec<CapReport>,
    /// Files, disks and stripes, by wait time.
    pub subjects: Vec<SubjectReport>,
    /// Notes on the input and on what was left out.
    pub notes: Vec<String>,
    /// Plots of the subjects with the longest wait times; not in JSON.
    #[serde(skip)]
    pub plots: Vec<PlotReport>,
}

impl DiagnosisReport {
    /// Returns whether a limit throttles the system.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        self.verdict == VerdictName::Throttled
    }
}
