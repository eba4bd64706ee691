//! What is promised of a volume that knows its pages.

mod cases;
mod folders;
mod model;
mod power;
