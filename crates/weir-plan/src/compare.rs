//! One need on several clouds: the cheapest and the fastest layout of each, simulated.
//!
//! ```text
//! cloud --> edition, prices --> cheapest plan, fastest plan --> simulation --> verdict, table
//! ```
//!
//! Prices are compared only within one currency, and only if they are complete. A machine without a
//! price that may undercut the verdict is part of it.
//!
//! | module | holds |
//! |---|---|
//! | `clouds` | [`Cloud`]: an edition with its prices, by the name of the cloud |
//! | `contest` | [`compare`]: the plans of each cloud |
//! | `report` | [`compare_report`]: the verdict, and the types of `weir-report` |

mod clouds;
mod contest;
mod report;

pub use clouds::{Cloud, edition_of};
pub use contest::{Contender, Contest, Proven, compare};
pub use report::compare_report;
