//! Quantities with their units.
//!
//! Everything Weir measures is one of six integers: [`Bytes`], [`Iops`],
//! [`BytesPerSec`], [`Instant`], [`Span`], [`Money`]. They are newtypes so that a size
//! cannot be passed where a rate is meant, and integers so that a limit is held
//! exactly. Text carries its unit: `64 KiB` is 65,536 bytes and `64 KB` is
//! 64,000; a bare number is refused ([`ParseError::NoUnit`]).
//!
//! | module | holds |
//! |---|---|
//! | [`money`] | [`Money`] |
//! | [`size`] | [`Bytes`] |
//! | [`rate`] | [`Iops`], [`BytesPerSec`] |
//! | [`time`] | [`Instant`], [`Span`] |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod money;
mod parse;
pub mod rate;
#[cfg(feature = "serde")]
mod serde_impl;
pub mod size;
pub mod time;
mod words;

pub use money::Money;
pub use parse::ParseError;
pub use rate::{BytesPerSec, Iops};
pub use size::{Bytes, Exact};
pub use time::{Instant, Span};
pub use words::in_plain_words;
