//! Metrics of clouds, as JSON.
//!
//! Clouds give a value the time at which its interval begins; an observation has it at its end.
//!
//! | module | holds |
//! |---|---|
//! | [`azure_monitor`] | metrics of Azure Monitor |
//! | [`cloudwatch`] | metrics of AWS CloudWatch, as its API answers |
//! | [`metric_stream`] | metrics of AWS CloudWatch, as metric streams deliver them |
//! | `aws` | what metrics of AWS mean |
//! | `document` | JSON documents |
//! | `timeline` | values put in order of time |

mod aws;
pub mod azure_monitor;
pub mod cloudwatch;
mod document;
pub mod metric_stream;
mod timeline;

use super::kind::{By, Kind};

/// What is read of it, the more special first.
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
