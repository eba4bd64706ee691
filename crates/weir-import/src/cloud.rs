//! Metrics of clouds, as JSON.
//!
//! A cloud reports the beginning of each interval; an observation has its end.
//!
//! | module | holds |
//! |---|---|
//! | [`azure_monitor`] | metrics of Azure Monitor |
//! | [`cloudwatch`] | metrics of AWS CloudWatch, from its API |
//! | [`metric_stream`] | metrics of AWS CloudWatch, from metric streams |
//! | `aws` | the meaning of metrics of AWS |
//! | `document` | JSON documents |
//! | `timeline` | values in order of time |

mod aws;
pub mod azure_monitor;
pub mod cloudwatch;
mod document;
pub mod metric_stream;
mod timeline;

use super::kind::{By, Kind};

/// The kinds, most specific first.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "azure-monitor",
        about: "metrics of Azure Monitor, as JSON",
        recognizes: By::Text(azure_monitor::recognizes),
        open: azure_monitor::open,
    },
    Kind {
        name: "cloudwatch",
        about: "metrics of AWS CloudWatch, as JSON",
        recognizes: By::Text(cloudwatch::recognizes),
        open: cloudwatch::open,
    },
    Kind {
        name: "cloudwatch-stream",
        about: "metrics of AWS CloudWatch, as a metric stream delivers them in JSON",
        recognizes: By::Text(metric_stream::recognizes),
        open: metric_stream::open,
    },
];
