//! Metrics and the live page of a running server, over HTTP.
//!
//! One thread serves both. A sampler reads the counters of the control socket's status once a
//! second, keeps an hour of differences, and pushes each to the clients of the page. Metrics are
//! read when they are scraped. The data path counts nothing for either.
//!
//! | module | holds |
//! |---|---|
//! | [`source`] | the server that is watched |
//! | [`metrics`] | the counters in OpenMetrics |
//! | `sampler` | readings once a second, and the frames pushed to clients |
//! | [`token`] | the secret of clients that may change something |
//! | `guard` | requests that are refused whatever they ask for |
//! | `commands` | changes that the page may ask for |
//! | `http` | routes and responses |
//! | `watched` | connections without progress |
//! | [`endpoint`] | listening socket and thread |

#![forbid(unsafe_code)]

mod commands;
pub mod endpoint;
mod guard;
mod http;
pub mod metrics;
mod sampler;
pub mod source;
pub mod token;
mod watched;

pub use endpoint::{Bound, Content, Endpoint, WebError};
pub use source::Source;
pub use token::Token;
