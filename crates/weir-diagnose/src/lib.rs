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
//! | [`error`] | why there is no diagnosis |

#![forbid(unsafe_code)]

pub mod error;
pub mod follow;
pub mod system;
pub mod verdict;

pub use error::DiagnoseError;
pub use follow::{Facts, Follow};
pub use system::System;
