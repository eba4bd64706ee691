//! Scripts, read by parsers of other projects, run against fake commands, and compared with
//! reviewed ones.

mod backups;
mod changes;
mod common;
mod fake;
mod golden;
mod lines;
mod machines;
mod parsers;
mod plans;
mod refused;
mod runs;
mod tools;
