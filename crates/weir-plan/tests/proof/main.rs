//! What a plan promises: that nothing cheaper meets the need, that it holds when it is simulated,
//! and that the next cheaper does not.

mod articles;
mod at_caps;
mod bought;
mod exact;
mod exhaustive;
mod keep;
#[path = "../../../weir-diagnose/tests/truth/rng.rs"]
mod rng;
mod simulated;
mod world;
