//! Rules in documents: bursting, striping and others.

use crate::provenance::Provenance;
use serde::Deserialize;
use std::fmt;
use weir_units::{Bytes, BytesPerSec, Iops, Span};

/// A kind of bursting.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BurstRule {
    /// Name, for example `credit`.
    pub name: String,
    /// The families that it applies to.
    pub applies_to: Vec<String>,
    /// True if a new bucket is full; `None` if there is no bucket.
    pub starts_full: Option<bool>,
    /// Duration at the maximum from a full bucket; `None` if it is unlimited.
    pub duration: Option<Span>,
    /// Idle time that fills an empty bucket, of a reserve; its `duration` is the time of the limit
    /// that it holds. `None` for other kinds.
    pub refill: Option<Span>,
    /// The rule in words.
    pub text: String,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

/// The documents' rules for striping.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Striping {
    /// Recommended stripe units by workload.
    pub units: Vec<StripeUnit>,
    /// Maximum number of columns by machine series.
    pub max_columns: Vec<MaxColumns>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

/// A recommended stripe unit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StripeUnit {
    /// The workload, like `oltp`.
    pub workload: String,
    /// The unit.
    pub unit: Bytes,
}

/// The maximum number of columns of a stripe on a series.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MaxColumns {
    /// The series.
    pub series: String,
    /// The columns.
    pub columns: u32,
}

/// Any other stated rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Name, for example `max-files`.
    pub name: String,
    /// The rule in words.
    pub text: String,
    /// The figure, if there is one.
    pub value: Option<RuleValue>,
    /// The unit that the figure refers to, for example `instance` or `vcore`.
    pub per: Option<String>,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

/// The figure of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleValue {
    /// A number of things.
    Count(u64),
    /// A size.
    Size(Bytes),
    /// Operations per second.
    Iops(Iops),
    /// Bytes per second.
    Throughput(BytesPerSec),
    /// A time.
    Time(Span),
}

impl RuleValue {
    /// Returns the plain number: bytes, nanoseconds, operations or bytes per second.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            Self::Count(n) => *n,
            Self::Size(size) => size.get(),
            Self::Iops(iops) => iops.get(),
            Self::Throughput(rate) => rate.get(),
            Self::Time(span) => span.nanos(),
        }
    }

    /// Returns the unit of [`number`](Self::number); `None` for counts.
    #[must_use]
    pub fn unit(&self) -> Option<&'static str> {
        match self {
            Self::Count(_) => None,
            Self::Size(_) => Some("bytes"),
            Self::Iops(_) => Some("iops"),
            Self::Throughput(_) => Some("bytes_per_s"),
            Self::Time(_) => Some("ns"),
        }
    }
}

macro_rules! value_of {
    ($($type:ty => $kind:ident),*) => {
        $(impl From<$type> for RuleValue {
            fn from(value: $type) -> Self {
                Self::$kind(value.into())
            }
        })*
    };
}

value_of!(u32 => Count, Bytes => Size, Iops => Iops, BytesPerSec => Throughput, Span => Time);

impl fmt::Display for RuleValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(n) => n.fmt(f),
            Self::Size(size) => size.fmt(f),
            Self::Iops(iops) => iops.fmt(f),
            Self::Throughput(rate) => rate.fmt(f),
            Self::Time(span) => span.fmt(f),
        }
    }
}
