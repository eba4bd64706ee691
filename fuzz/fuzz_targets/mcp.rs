//! Calls of assistants.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xtask::fuzz::Target;

fuzz_target!(|data: &[u8]| Target::Mcp.run(data));
