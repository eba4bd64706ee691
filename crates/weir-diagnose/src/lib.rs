//! Which cap holds a system back, with evidence, or that none does.
//!
//! An observation says what files and disks did and how long it took; a layout, an edition or
//! the observation itself says what limits them. One pass over the samples ([`follow`]) sums up
//! how much of each cap was used and what requests took meanwhile; [`verdict`] tells from that
//! who waited, and at which cap; [`rules`] say it, with what to do, one rule a file.
//!
//! ```text
//!   layout, edition --> System --+
//!                                +--> Follow --> Facts --> Verdict --> rules --> findings
//!   observation ------> samples -+
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`system`] | who there is, what holds it, and where it was observed |
//! | [`follow`] | one pass over the samples |
//! | [`verdict`] | who waited, how much, and at which cap |
//! | [`case`] | all that a rule may look at |
//! | `backup` | backups, and the limit of each |
//! | [`rules`] | what is said of it, one rule a file |
//! | [`change`] | a change of a layout that a rule proposes |
//! | [`effect`] | what that would bring, by simulation |
//! | [`demand`] | how much a throttled system would do if nothing throttled it |
//! | [`question`] | from an observation to findings |
//! | [`report`] | a case as a report |
//! | [`error`] | why there is no diagnosis |

#![forbid(unsafe_code)]

mod backup;
pub mod case;
pub mod change;
pub mod demand;
pub mod effect;
pub mod error;
pub mod follow;
mod gauged;
pub mod question;
pub mod report;
pub mod rules;
pub mod system;
pub mod verdict;

pub use case::Case;
pub use change::Change;
pub use error::DiagnoseError;
pub use follow::{Facts, Follow};
pub use question::Question;
pub use system::System;

#[cfg(test)]
mod bed;
