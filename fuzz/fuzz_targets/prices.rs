//! Price lists, editions and downloads of clouds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xtask::fuzz::Target;

fuzz_target!(|data: &[u8]| Target::Prices.run(data));
