//! The promises of a plan: no cheaper layout meets the need, the plan holds in simulation, and the
//! next cheaper layout does not.

mod articles;
mod at_caps;
mod bought;
mod exact;
mod exhaustive;
mod keep;
mod simulated;
mod thousand;
mod world;
