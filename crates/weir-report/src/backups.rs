//! Backups that are kept: what there is, what is wrong with it, what becomes of it, and restores.
//!
//! | module | holds |
//! |---|---|
//! | `listed` | the backups in some places, and one in detail |
//! | `verified` | verifications, and damage |
//! | `pruned` | what becomes of backups |
//! | `restored` | restores that ended |
//! | `words` | short ids, sizes and rates |

mod listed;
mod pruned;
mod restored;
mod verified;
mod words;

pub use listed::{
    BackupLine, BackupListReport, BackupShowReport, BackupSourceLine, BackupStripeLine,
};
pub use pruned::{PruneLine, PruneReport};
pub use restored::{RestoreReport, RestoreTargetLine};
pub use verified::{BackupVerifyReport, BackupVerifyReports, DamageLine};
pub(crate) use words::{Unit, per_second, took};
pub use words::{counted, short_id, size, speed};
