//! What must hold for the file of an observation, whatever is in it: it is read as far as
//! it is whole, or refused with words.

use weir_observe::{Ending, Reader};

/// Chunks that one file is followed for.
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
