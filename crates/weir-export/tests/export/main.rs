//! Scripts, read by parsers that are not Weir's, run against commands that only pretend, and
//! compared with what somebody who knows the tools would write.

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
