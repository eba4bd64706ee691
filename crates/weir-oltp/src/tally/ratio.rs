//! Ratios of counters.

use crate::Counters;
use weir_report::number::float;
use weir_units::Span;

/// Returns a time in seconds.
pub(super) fn seconds(span: Span) -> f64 {
    float(span.nanos()) / 1e9
}

/// Returns the ratio of two numbers, or zero if the second is zero.
pub(super) fn ratio(n: f64, of: f64) -> f64 {
    if of > 0.0 { n / of } else { 0.0 }
}

/// Returns the busy share of the schedulers.
pub(super) fn cpu_share(counted: &Counters, seconds: f64, vcores: u32) -> f64 {
    ratio(float(counted.cpu.nanos()) / 1e9, seconds * f64::from(vcores))
}
