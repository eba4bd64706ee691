//! Conversion of times to seconds for statistics.

use weir_report::number::float;
use weir_units::{Instant, Span};

/// Returns a moment in seconds from the start of the observation.
#[must_use]
pub(crate) fn at_s(at: Instant) -> f64 {
    float(at.nanos()) / 1e9
}

/// Returns a duration in seconds.
pub(crate) fn span_s(span: Span) -> f64 {
    float(span.nanos()) / 1e9
}
