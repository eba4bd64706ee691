//! Whether a layout carries a load, and the cheapest changes until it does.
//!
//! [`fit()`] simulates a need on a layout: which roles it carries, with how much headroom, and the
//! cheapest single change that makes it carry the rest. [`tune()`] walks on from there: it measures,
//! finds the limit that holds the load back, chooses the cheapest changes that reach the goal,
//! applies them one by one and measures after each.
//!
//! ```text
//!   layout, load --> measure --> limit with the longest waits --> candidates that raise it
//!                       ^                                              |
//!                       +---------- cheapest candidate first <---------+
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`load`] | [`Load`]: a need, jobs or databases |
//! | [`measure`] | [`Bench`]: a load simulated on layouts; rates, latencies and waits at limits |
//! | [`counters`] | the load on a running server between two readings |
//! | [`goal`] | [`Goal`], and how it is written |
//! | [`limit`] | the limits of a layout, and where they are |
//! | `candidate` | changes that relieve a limit |
//! | `downtime` | the downtime of a change, by provider |
//! | [`place`] | the files of a need's roles, and their room |
//! | [`price`] | the monthly price of a layout |
//! | [`rounds`] | [`Rounds`]: a real system, which is changed and observed in turns |
//! | `search` | the cheapest changes that reach a goal |
//! | [`system`] | [`System`]: where changes are applied and measured |
//! | [`mod@fit`] | [`fit()`] |
//! | [`mod@tune`] | [`tune()`] |

#![forbid(unsafe_code)]

mod candidate;
mod clients;
pub mod counters;
mod downtime;
mod error;
pub mod fit;
pub mod goal;
pub mod limit;
pub mod load;
pub mod measure;
pub mod place;
pub mod price;
pub mod rounds;
mod search;
pub mod system;
pub mod tune;

pub use error::TuneError;
pub use fit::{FitOptions, NamedNeed, fit};
pub use goal::Goal;
pub use load::Load;
pub use measure::{Bench, Credits, Measured};
pub use rounds::Rounds;
pub use system::{System, SystemError, Undone};
pub use tune::{TuneOptions, Tuned, tune, tune_on};
