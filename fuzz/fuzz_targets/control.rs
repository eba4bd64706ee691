//! Requests to the control socket.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xtask::fuzz::Target;

fuzz_target!(|data: &[u8]| Target::Control.run(data));
