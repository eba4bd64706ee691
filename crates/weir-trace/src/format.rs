//! The file format: a signature, then frames. `docs/TRACES.md` describes each byte.
//!
//! ```text
//!   weirtrc1 | HEAD | NAME | DATA | DATA | NAME | DATA | ... | END
//!
//!   frame:  tag (4)  length (4)  payload  CRC-32 (4)
//! ```
//!
//! Frames are only appended, each with its own checksum. A file whose writer was killed is
//! readable up to its last whole frame.
//!
//! | module | does |
//! |---|---|
//! | `block` | converts requests to the payload of a `DATA` frame and back |
//! | `column` | converts a column of numbers to bytes and back |
//! | `bytes` | variable-length integers, and checked reads of untrusted bytes |
//! | `writer` | writes frames |
//! | `reader` | reads frames |
//! | `error` | errors of both |

mod block;
mod column;
mod error;
mod reader;
mod writer;

pub use error::{ReadError, WriteError};
pub use reader::{Ending, Reader};
pub use writer::Writer;

use serde::{Deserialize, Serialize};

/// The first bytes of every trace: the format's name and version.
pub const SIGNATURE: [u8; 8] = *b"weirtrc1";

/// Tags of frames. A reader skips unknown ones.
mod tag {
    pub(super) const HEAD: [u8; 4] = *b"HEAD";
    pub(super) const NAME: [u8; 4] = *b"NAME";
    pub(super) const DATA: [u8; 4] = *b"DATA";
    pub(super) const END: [u8; 4] = *b"END ";
}

/// The most requests of a block.
pub const BLOCK: usize = 1 << 16;
/// The most bytes in a frame's payload.
const MAX_PAYLOAD: u32 = 1 << 26;
/// The most bytes of the name of a device.
pub const MAX_NAME: usize = 4096;
/// The most bytes of the names of all devices.
const MAX_NAMES: usize = 1 << 23;
/// The most devices of a trace.
pub const MAX_DEVICES: usize = 1 << 16;

/// Facts about a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The start of the trace in nanoseconds since 1970, if it is known.
    pub start_unix_ns: Option<i64>,
    /// The source: a server, a device, or a file of another tool.
    pub source: String,
    /// The recording program, with its version.
    pub by: String,
}

/// The payload of the last frame.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct End {
    requests: u64,
    /// Requests that the recorder was too slow to keep.
    lost: u64,
}

/// A device of a `NAME` frame.
#[derive(Debug, Serialize, Deserialize)]
struct Name {
    name: String,
}
