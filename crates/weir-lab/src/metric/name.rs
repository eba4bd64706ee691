//! Names of metrics.

/// An unknown metric.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown;

/// Splits a metric into its name and its argument.
pub(super) fn split(metric: &str) -> (&str, &str) {
    metric.split_once(':').unwrap_or((metric, ""))
}
