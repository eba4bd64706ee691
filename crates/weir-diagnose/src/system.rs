//! The observed system: entities, limits, and the paths of requests.
//!
//! A [`System`] is the static side of a diagnosis: hosts, disks, stripes and files with their
//! limits, from a layout, or from what the observation itself says of its entities, or from a
//! file's size and the tiers of an edition. Every limit becomes a [`Cap`], every entity that does
//! I/O a [`Subject`] with the caps that its requests pass.

mod from_layout;
mod from_observation;
pub(crate) mod mapping;
mod model;
pub(crate) mod observed;
mod paths;

pub use mapping::{Mapping, Unmatched};
pub use model::{
    Burst, Cap, Counts, Disk, File, Host, InstanceLimits, Limit, Medium, On, Owner, Pair, Reads,
    Stripe, Subject, SubjectId, System,
};
pub use weir_core::CacheMode;
