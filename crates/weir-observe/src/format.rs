//! The file format: a signature, then frames. `docs/OBSERVATION.md` describes each byte.
//!
//! ```text
//!   weirobs1 | HEAD | DATA | DATA | NOTE | MORE | DATA | ... | END
//!
//!   frame:  tag (4)  length (4)  payload  CRC-32 (4)
//! ```
//!
//! Frames are only appended, each with its own checksum. A file whose writer was killed is
//! readable up to its last whole frame.
//!
//! | module | does |
//! |---|---|
//! | `column` | converts a column to bytes and back |
//! | `bytes` | variable-length integers, and checked reads of untrusted bytes |
//! | `writer` | writes frames |
//! | `reader` | reads frames |
//! | `error` | errors of both |

mod beside;
mod column;
mod error;
mod reader;
mod writer;

pub use error::{ReadError, WriteError};
pub use reader::{Ending, Reader};
pub use writer::Writer;

/// The first bytes of every observation: the format's name and version.
pub const SIGNATURE: [u8; 8] = *b"weirobs1";

/// Tags of frames. A reader skips unknown ones.
mod tag {
    pub(super) const HEAD: [u8; 4] = *b"HEAD";
    pub(super) const MORE: [u8; 4] = *b"MORE";
    pub(super) const NOTE: [u8; 4] = *b"NOTE";
    pub(super) const DATA: [u8; 4] = *b"DATA";
    pub(super) const END: [u8; 4] = *b"END ";
}

/// The most samples in a chunk.
const MAX_SAMPLES: usize = 1 << 16;
/// The most values in a chunk, including missing ones.
const MAX_VALUES: usize = 1 << 24;
/// The most bytes in a frame's payload.
const MAX_PAYLOAD: u32 = 1 << 28;

/// The payload of the last frame.
#[derive(serde::Serialize, serde::Deserialize)]
struct End {
    samples: u64,
    complete: bool,
}

#[cfg(test)]
mod tests;
