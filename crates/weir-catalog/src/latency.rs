//! Latencies of media. Vendors publish no distributions, so these are models; each states whether
//! it follows measurements, is calibrated, or is assumed.

use crate::provenance::Provenance;
use serde::Deserialize;
use std::fmt;
use weir_units::{BytesPerSec, Span};

/// A latency model of one or more families.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// The model's name.
    pub name: String,
    /// The families that it applies to.
    pub families: Vec<String>,
    /// Latency of a read without the transfer.
    pub read: Quantiles,
    /// Latency of a write without the transfer.
    pub write: Quantiles,
    /// Transfer rate of a single request, which adds to the latency.
    pub transfer: Option<BytesPerSec>,
    /// Latency of a flush; a write that is forced to the medium takes it beyond its own.
    pub sync: Option<Quantiles>,
    /// Time of a write to a ReadOnly disk beyond that of the disk, for the host cache.
    pub write_through: Option<Quantiles>,
    /// The basis of the model.
    pub basis: Basis,
    /// The reason for the values.
    pub reason: String,
    /// Source and date of the statement that the model is fitted to.
    pub provenance: Provenance,
}

/// The basis of a model. Distributions published by vendors do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Chosen so that means and quantiles come out that others measured.
    Measured,
    /// Chosen so that a published statement comes out.
    Calibrated,
    /// Chosen without one.
    Assumed,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Measured => "measured",
            Self::Calibrated => "calibrated",
            Self::Assumed => "assumed",
        })
    }
}

/// A distribution by some of its quantiles; linear between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantiles {
    /// The shortest.
    pub p0: Span,
    /// The median.
    pub p50: Span,
    /// 90 % are shorter.
    pub p90: Option<Span>,
    /// 99 % are shorter.
    pub p99: Option<Span>,
    /// 99.9 % are shorter.
    pub p999: Option<Span>,
    /// The longest.
    pub p100: Span,
}

impl Quantiles {
    /// (share in millionths, time) of those that are given, ascending, from 0 to
    /// 1,000,000.
    pub fn points(&self) -> impl Iterator<Item = (u32, Span)> {
        let all = [
            (0, Some(self.p0)),
            (500_000, Some(self.p50)),
            (900_000, self.p90),
            (990_000, self.p99),
            (999_000, self.p999),
            (1_000_000, Some(self.p100)),
        ];
        all.into_iter().filter_map(|(share, span)| Some((share, span?)))
    }

    /// The mean of the distribution, rounded down to the nanosecond.
    #[must_use]
    pub fn mean(&self) -> Span {
        let between = self.points().zip(self.points().skip(1));
        let twice_in_millionths: u128 = between
            .map(|(low, high)| {
                u128::from(high.0 - low.0)
                    * (u128::from(low.1.nanos()) + u128::from(high.1.nanos()))
            })
            .sum();
        // A mean lies between p0 and p100, so it fits what they fit.
        Span::from_nanos(u64::try_from(twice_in_millionths / 2_000_000).unwrap_or(u64::MAX))
    }
}
