//! The data path on a clock that only the tests move, with replies kept in memory
//! and workers that run when a test lets them.
//!
//! | module | asks |
//! |---|---|
//! | `serving` | is every request answered once, and rightly, whatever breaks? |
//! | `lanes` | do waiting jobs delay no other requests, and end correctly? |
//! | `cache` | what does a ReadWrite cache keep, show and lose? |
//! | `coming` | does a volume that goes take long, or what is not its own? |
//! | `errands` | are requests without a socket refused exactly when their terms are not met? |
//! | `freeze` | is a view of one instant? |
//! | `same_trace` | does a late driver get what the simulator gets? |
//! | `syncs` | which requests share a sync, and how many are under way? |
//! | `power_loss` | is everything there that was promised to be? |

mod cache;
mod coming;
mod errands;
mod freeze;
mod lanes;
mod power_loss;
mod rig;
mod same_trace;
mod serving;
mod syncs;
