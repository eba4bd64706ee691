//! Requests to the service of page blobs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xtask::fuzz::Target;

fuzz_target!(|data: &[u8]| Target::BlobRequest.run(data));
