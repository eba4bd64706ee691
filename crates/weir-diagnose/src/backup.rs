//! Backups that were observed, and the limit of each.
//!
//! A backup always takes what it gets, so something always limits it: a cap of its sources, of its
//! targets, or of the machine, which reads and writes share; or its own pipeline, which has too few
//! requests in flight for what the disks could do; or compression. Which one it is follows from how
//! much of each cap was used while it ran, and from the requests in flight at both ends.
//!
//! | module | holds |
//! |---|---|
//! | `one` | a backup with its options, sources and targets |
//! | `observed` | the backups of an observation |
//! | `places` | the disks that a backup reads and writes |
//! | `during` | the use of disks and limits while it ran |
//! | `limit` | the limit of a backup |
//! | `trial` | the same backup simulated with other options |

mod during;
mod limit;
mod observed;
mod one;
mod places;
mod trial;

pub(crate) use limit::{Attributed, Limit, Refuted, Side, attribute};
pub(crate) use observed::{all, has_any};
pub(crate) use one::{Backup, FILES, PER_DISK, TRANSFER};
pub(crate) use places::of_mapping;
pub(crate) use trial::Trial;
