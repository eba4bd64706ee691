//! The guarantees of a volume that records its written pages.

mod cases;
mod folders;
mod model;
mod power;
