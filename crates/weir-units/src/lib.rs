//! Quantities with their units, and phrases of messages about them.
//!
//! Weir's quantities are six integers: [`Bytes`], [`Iops`], [`BytesPerSec`], [`Instant`], [`Span`]
//! and [`Money`]. Newtypes keep sizes and rates apart, and integers keep limits exact. Texts carry
//! their unit: `64 KiB` is 65,536 bytes and `64 KB` is 64,000. A size, rate or time without a unit
//! is an error ([`ParseError::NoUnit`]); so is a text with two meanings, for example `1,5`
//! ([`ParseError::Ambiguous`]).
//!
//! | module | holds |
//! |---|---|
//! | [`cache`] | [`CacheMode`] |
//! | [`money`] | [`Money`] |
//! | [`number`] | counts and percentages, [`Share`] |
//! | [`size`] | [`Bytes`] |
//! | [`rate`] | [`Iops`], [`BytesPerSec`] |
//! | [`time`] | [`Instant`], [`Span`] |
//! | [`nearest`](mod@nearest) | the known name nearest to an unknown one; with the feature `nearest` |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cache;
pub mod money;
#[cfg(feature = "nearest")]
pub mod nearest;
pub mod number;
mod parse;
pub mod rate;
#[cfg(feature = "serde")]
mod serde_impl;
pub mod size;
pub mod time;
mod words;

pub use cache::CacheMode;
pub use money::Money;
#[cfg(feature = "nearest")]
pub use nearest::{is_near, nearest, nearest_by, parser_message};
pub use number::{Share, count, percent};
pub use parse::ParseError;
pub use rate::{BytesPerSec, Iops};
pub use size::{Bytes, Exact};
pub use time::{Instant, Span};
pub use words::{DidYouMean, did_you_mean, in_plain_words};
