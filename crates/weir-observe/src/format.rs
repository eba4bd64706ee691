//! The file: a signature, then frames. `docs/OBSERVATION.md` has it byte by byte.
//!
//! ```text
//!   weirobs1 | HEAD | DATA | DATA | NOTE | MORE | DATA | ... | END
//!
//!   frame:  tag (4)  length (4)  payload  CRC-32 (4)
//! ```
//!
//! Frames are only ever appended, each with a checksum of its own, so a file whose
//! writer was killed is read up to its last whole frame.
//!
//! | module | does |
//! |---|---|
//! | `column` | a column to bytes and back |
//! | `bytes` | variable-length integers, and reading them from bytes that may lie |
//! | `writer` | frames out |
//! | `reader` | frames in |
//! | `error` | what can go wrong |

mod beside;
mod bytes;
mod column;
mod error;
mod reader;
mod writer;

pub use error::{ReadError, WriteError};
pub use reader::{Ending, Reader};
pub use writer::Writer;

/// What every observation begins with: the format's name and version.
pub const SIGNATURE: [u8; 8] = *b"weirobs1";

/// Tags of frames. A reader skips those that it does not know.
mod tag {
    pub(super) const HEAD: [u8; 4] = *b"HEAD";
    pub(super) const MORE: [u8; 4] = *b"MORE";
    pub(super) const NOTE: [u8; 4] = *b"NOTE";
    pub(super) const DATA: [u8; 4] = *b"DATA";
    pub(super) const END: [u8; 4] = *b"END ";
}

/// Samples of a chunk at most.
const MAX_SAMPLES: usize = 1 << 16;
/// Values of a chunk at most, missing ones as well.
const MAX_VALUES: usize = 1 << 24;
/// Bytes of a frame's payload at most.
const MAX_PAYLOAD: u32 = 1 << 28;

/// The payload of the last frame.
#[derive(serde::Serialize, serde::Deserialize)]
struct End {
    samples: u64,
    complete: bool,
}

#[cfg(test)]
mod tests;
