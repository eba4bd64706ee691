//! One pass over the samples, which sums up the use of each limit and the latency meanwhile.
//!
//! Memory does not grow with the number of samples. The load of a subject is summed up by the limit
//! that is charged with it (`holding`) and by the utilisation of that limit ([`Bin`]). Wait times
//! follow at the end, when the unloaded latency is known.

mod arrivals;
mod backups;
mod bins;
mod cap;
mod component;
mod facts;
mod holding;
mod moments;
mod others;
mod pass;
mod subject;

pub use backups::BackupFacts;
pub(crate) use bins::bin_start;
pub use bins::{Bin, NEAR, Stretch};
pub use cap::{CapFacts, Credits};
pub use facts::{Facts, OverTime, SubjectFacts};
pub use moments::Moment;
pub use others::{FULL, Gauged, HostFacts, OUT, Others, WaitFacts};
pub(crate) use pass::says_something;
pub use pass::{Follow, loads};
