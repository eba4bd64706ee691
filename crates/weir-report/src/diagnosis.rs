//! What holds a system back, with evidence, or that nothing does.

mod shown;

use crate::number::{Amount, Delta};
use serde::Serialize;

/// What a diagnosis comes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictName {
    /// A cap holds requests back.
    Throttled,
    /// No cap does, and something else does.
    NotTheStorage,
    /// Nothing does.
    #[default]
    Healthy,
    /// It cannot be told.
    NotEnoughEvidence,
}

impl VerdictName {
    /// In words.
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

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// A cap holds requests back.
    Throttling,
    /// Something else than storage does.
    NotTheStorage,
    /// A cap is near.
    Headroom,
    /// The layout could be better.
    Layout,
    /// What cannot be told, and what is missing for it.
    Evidence,
}

impl Group {
    /// In words.
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

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// It may be.
    Low,
    /// It follows from what is usual.
    Medium,
    /// It was counted, or nothing else is possible.
    High,
}

impl Confidence {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A stretch of time to look at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MomentReport {
    /// Its beginning, in seconds from that of the observation.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// What there is to see.
    pub what: String,
}

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// Who says it.
    pub title: &'static str,
    /// Where it is explained.
    pub url: &'static str,
}

/// What a change would bring, by simulation of the load that was observed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectReport {
    /// What is changed.
    pub change: String,
    /// Operations a second, as it is.
    pub iops_before: f64,
    /// With the change.
    pub iops_after: f64,
    /// The mean latency as it is, in nanoseconds.
    pub latency_before_ns: f64,
    /// With the change.
    pub latency_after_ns: f64,
    /// How the simulation of what is compares with what was observed.
    pub basis: String,
    /// The price of both layouts, if there are prices.
    pub price: Option<EffectPrice>,
    /// What was assumed of the price, or why there is none.
    pub price_note: Option<String>,
}

/// What a change costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectPrice {
    /// The region of the prices.
    pub region: String,
    /// Their currency.
    pub currency: String,
    /// The price of a month as it is, as far as it is known.
    pub before: Amount,
    /// The price of a month with the change, as far as it is known.
    pub after: Amount,
    /// The difference; `None` where prices are missing that the two do not share.
    pub difference: Option<Delta>,
    /// The items without a price.
    pub unknown: Vec<String>,
}

/// A verdict with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The number of its rule, which stays.
    pub check_id: u16,
    /// The name of its rule.
    pub rule: &'static str,
    /// The smaller the more urgent, from 1 to 255.
    pub priority: u8,
    /// Its kind.
    pub group: Group,
    /// What is so, in a sentence.
    pub finding: String,
    /// Whose: a file, disk, stripe, host, database.
    pub subject: String,
    /// The cap, by its name in metrics, if it is one.
    pub cap: Option<String>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What it follows from.
    pub evidence: Vec<String>,
    /// When.
    pub moments: Vec<MomentReport>,
    /// The caps and causes that it is not, and why.
    pub ruled_out: Vec<String>,
    /// What to do.
    pub action: String,
    /// What that brings.
    pub effect: Option<EffectReport>,
    /// Who says so.
    pub source: SourceReport,
}

/// How much of a cap was used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CapReport {
    /// Its name in metrics.
    pub cap: String,
    /// Whose it is.
    pub owner: String,
    /// How much it is: operations or bytes a second.
    pub limit: f64,
    /// Whether that is bytes.
    pub is_bytes: bool,
    /// How much was used on average.
    pub mean: f64,
    /// 99 % of the samples used less.
    pub p99: f64,
    /// The most.
    pub max: f64,
    /// Samples of 90 % and more.
    pub near_limit_count: u64,
    /// Samples.
    pub samples: u64,
    /// The part of the time of 90 % and more.
    pub near_limit_share: f64,
    /// What was waited there, in nanoseconds.
    pub waited_ns: f64,
    /// Whether what was used is known as an upper bound alone.
    pub is_upper_bound: bool,
}

/// Somebody whose I/O was observed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubjectReport {
    /// Who.
    pub name: String,
    /// File, disk or stripe.
    pub kind: &'static str,
    /// Its tier.
    pub tier: Option<String>,
    /// Operations a second on average, where they are known.
    pub iops: Option<f64>,
    /// Bytes a second, where they are known.
    pub bytes_per_s: Option<f64>,
    /// The mean latency in nanoseconds.
    pub latency_ns: Option<f64>,
    /// What of it is the medium's.
    pub medium_ns: Option<f64>,
    /// The part of the latency that was waited at caps, or in a governor's queue; nothing where no
    /// limit is known that could tell.
    pub waited_share: Option<f64>,
    /// The cap where most of it was.
    pub cap: Option<String>,
    /// How it is known.
    pub basis: &'static str,
}

/// Somebody's rates over time beside the limits, for plots.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlotReport {
    /// Who.
    pub name: String,
    /// Seconds from the beginning, and operations a second.
    pub iops: Vec<(f64, Option<f64>)>,
    /// The same of bytes.
    pub bytes_per_s: Vec<(f64, Option<f64>)>,
    /// The same of the latency, in milliseconds.
    pub latency_ms: Vec<(f64, Option<f64>)>,
    /// Its limit in operations.
    pub iops_limit: Option<f64>,
    /// Its limit in bytes.
    pub bytes_per_s_limit: Option<f64>,
}

/// A diagnosis.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DiagnosisReport {
    /// What it comes to.
    pub verdict: VerdictName,
    /// In a sentence.
    pub summary: String,
    /// What was observed: names of files.
    pub observed: Vec<String>,
    /// From when to when, in seconds.
    pub span_s: (f64, f64),
    /// Samples.
    pub samples: u64,
    /// The usual time between two.
    pub interval_s: f64,
    /// Where limits come from.
    pub limits_from: String,
    /// The findings, the most urgent first.
    pub findings: Vec<Finding>,
    /// The caps, those where most was waited first.
    pub caps: Vec<CapReport>,
    /// Those whose I/O was observed, those that waited most first.
    pub subjects: Vec<SubjectReport>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Pictures of those who waited most; not in JSON.
    #[serde(skip)]
    pub plots: Vec<PlotReport>,
}

impl DiagnosisReport {
    /// Whether something is throttled.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        self.verdict == VerdictName::Throttled
    }
}
