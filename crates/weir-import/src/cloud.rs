//! Metrics of clouds, as JSON.
//!
//! A cloud reports the beginning of each interval; an observation has its end.
//!
//! | module | holds |
//! |---|---|
//! | `azure_monitor` | metrics of Azure Monitor |
//! | `cloudwatch` | metrics of AWS CloudWatch, from its API |
//! | `metric_stream` | metrics of AWS CloudWatch, from metric streams |
//! | `aws` | the meaning of metrics of AWS |
//! | `document` | JSON documents |
//! | `timeline` | values in order of time |

mod aws;
mod azure_monitor;
mod cloudwatch;
mod document;
pub(crate) mod metric_stream;
mod timeline;

use crate::kind::Kind;

/// The kinds, most specific first.
pub(crate) const KINDS: &[Kind] = &[azure_monitor::KIND, cloudwatch::KIND, metric_stream::KIND];
