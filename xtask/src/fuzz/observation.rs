//! Invariants of an observation file: it is read as far as it is complete, or rejected with a
//! message.

use weir_observe::{Ending, Reader};

/// Maximum number of chunks to follow.
const MAX_CHUNKS: usize = 100;

pub(super) fn run(data: &[u8]) {
    let mut reader = match Reader::open(data) {
        Err(error) => {
            assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
            return;
        }
        Ok(reader) => reader,
    };
    for _ in 0..MAX_CHUNKS {
        match reader.next_chunk() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
                return;
            }
        }
    }
    let _: Option<&Ending> = reader.ending();
}
