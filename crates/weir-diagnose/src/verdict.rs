//! Computes wait times of each subject at each limit.
//!
//! Wait time is latency in excess of the unloaded latency. The unloaded latency comes from the
//! edition, corrected by samples with isolated requests, or from quiet samples. Queue times of a
//! governor are wait times already. The pass over the samples has charged the limits, with an upper
//! bound of the wait time at each, so that latency with another cause does not count as wait time.
//! If bursts and a slow medium cannot be distinguished, a limit is only suspected.

mod cause;
mod judge;
mod unloaded;
mod wait;

pub use cause::Cause;
pub use judge::judge;
pub(crate) use judge::{EPISODE_S, NOTED_NS};
pub use wait::{Basis, CapWait, Episode, THROTTLED, WaitTimes};
pub(crate) use wait::{LEAST_LOST, NOTED};
