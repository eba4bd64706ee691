//! How long a medium takes. Vendors publish no distributions, so these are
//! models: each says whether it was calibrated on a statement or only assumed.

use crate::provenance::Provenance;
use serde::Deserialize;
use std::fmt;
use weir_units::{BytesPerSec, Span};

/// A latency model of one or more families.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// Its name.
    pub name: String,
    /// The families that it is for.
    pub families: Vec<String>,
    /// Of a read, before the transfer.
    pub read: Quantiles,
    /// Of a write, before the transfer.
    pub write: Quantiles,
    /// How fast the bytes of one request travel; added to the above.
    pub transfer: Option<BytesPerSec>,
    /// What the model rests on.
    pub basis: Basis,
    /// How the values were chosen.
    pub reason: String,
    /// The statement it was fitted to, and its date.
    pub provenance: Provenance,
}

/// What a model rests on. Never on a published distribution: there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Chosen so that a published statement comes out.
    Calibrated,
    /// Chosen without one.
    Assumed,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
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
