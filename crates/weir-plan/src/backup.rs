//! From a window for a backup to the cheapest disks that it fits.
//!
//! A [`Question`] has the sources at their machine, the size, and the time that the backup may take.
//! [`plan`] tries disks alike, from the cheapest on: how many, how many stripes on each, and how large
//! transfers are. Of each choice a lower bound of its duration is computed first; choices whose bound
//! is beyond the window are never simulated. All others are, until one meets the window:
//!
//! ```text
//! streams of disks, by price --> lower bound --> simulation of a part --> simulation of the whole
//! ```
//!
//! The result is as cheap as that of an exhaustive search, because only what a bound excludes is left
//! out, and the bound is one for every choice of stripes and transfers.
//!
//! | module | holds |
//! |---|---|
//! | [`question`] | [`Question`]: sources, window, what may be used |
//! | [`ground`] | the layout that is there, with room for targets |
//! | [`bound`] | the lower bound of a duration |
//! | `settings` | stripes and transfers |
//! | `trial` | a choice, simulated |
//! | `beside` | a choice beside a database |
//! | `streams` | disks in the order of their price |
//! | `search` | [`plan`] |
//! | [`answer`] | [`Answer`]: what is found |
//! | `report` | [`backup_report`]: the answer as a type of `weir-report` |

pub mod answer;
mod beside;
pub mod bound;
pub mod ground;
pub mod question;
mod report;
mod search;
mod settings;
mod streams;
mod trial;

pub use answer::{Answer, Binding, Choice, Outcome, Relaxation, Shortest, Slowdown};
pub use ground::Base;
pub use question::{Beside, Compression, Question};
pub use report::backup_report;
pub use search::plan;
pub use settings::{MOST_STRIPES, STRIPES, Settings, TRANSFERS};
