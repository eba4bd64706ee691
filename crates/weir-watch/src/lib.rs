//! Readings of a running server over time, for those who watch it: the live page and `weir top`.
//!
//! A reading is the answer to `weir status`. A [`Watch`] takes one reading after the other and keeps
//! the differences. It reads no clock and asks no server.
//!
//! | module | holds |
//! |---|---|
//! | [`watch`] | the last readings, and what each new one changes |
//! | [`sample`] | the rates between two readings |
//! | [`clients`] | the rates of single clients |
//! | [`caps`] | the use of each limit between two readings |
//! | [`history`] | the rates of the past |
//! | [`events`] | changes between two readings |
//! | [`verdict`] | the present state in a sentence |

#![forbid(unsafe_code)]

pub mod caps;
pub mod clients;
pub mod events;
pub mod history;
pub mod sample;
pub mod verdict;
pub mod watch;

pub use clients::{ClientRate, Clients};
pub use watch::{Taken, Watch};
