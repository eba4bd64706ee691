//! Finds the limit that throttles a system, with evidence, or shows that none does.
//!
//! An observation contains the load and latency of files and disks. Limits come from a layout, an
//! edition or the observation itself. One pass over the samples ([`follow`]) sums up the use of
//! each limit and the latency meanwhile. [`verdict`] computes wait times at each limit from that.
//! [`rules`] turn them into findings with a fix, one rule per file.
//!
//! ```text
//!   layout, edition --> System --+
//!                                +--> Follow --> Facts --> Verdict --> rules --> findings
//!   observation ------> samples -+
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`system`] | the observed system: entities, limits and paths of requests |
//! | [`follow`] | one pass over the samples |
//! | [`verdict`] | wait times of each subject at each limit |
//! | [`case`] | the input of the rules |
//! | `backup` | backups, and the limit of each |
//! | [`rules`] | the rules, one per file |
//! | [`change`] | a change of a layout that a rule proposes |
//! | [`effect`] | the simulated effect of a change |
//! | [`demand`] | the demand of a throttled system |
//! | [`diagnosis`] | the diagnosis of an observation, in one pass |
//! | [`question`] | an observed system with its limits, and its diagnosis |
//! | [`report`] | the report of a case, with grouped findings |
//! | [`error`] | reasons why there is no diagnosis |

#![forbid(unsafe_code)]

mod backup;
pub mod case;
pub mod change;
pub mod demand;
pub mod diagnosis;
pub mod effect;
pub mod error;
pub mod follow;
mod gauged;
pub mod question;
pub mod report;
pub mod rules;
mod seconds;
pub mod system;
pub mod verdict;

pub use case::Case;
pub use change::{Change, StripeDisk};
pub use diagnosis::{Failure, diagnose};
pub use error::DiagnoseError;
pub use follow::{Facts, Follow};
pub use question::Question;
pub use system::System;

#[cfg(test)]
mod bed;
