//! Runs workloads on NBD exports by the wall clock.
//!
//! | module | holds |
//! |---|---|
//! | [`client`] | one connection to an export |

#![forbid(unsafe_code)]

pub mod client;
mod error;

pub use error::RunnerError;
