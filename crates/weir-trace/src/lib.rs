//! Request traces: each request of a system with its time, device, offset, length and latency.
//!
//! A trace is recorded once, by [`Writer`], and replayed any number of times. All readers stream:
//! their memory does not grow with the trace.
//!
//! ```text
//!   served volumes, devices, traces of other tools --> Order --> Writer --> FILE.weirtrace
//!   FILE.weirtrace --> Reader --> Selection (window, devices, sample) --> a replay
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `request` | a request |
//! | [`mod@format`] | the file: frames, columns, writer and reader |
//! | `order` | requests in order of arrival, with latencies that become known later |
//! | `read` | [`ReadTrace`], the interface of everything that yields requests |
//! | `select` | windows, devices and samples of a trace |
//! | `fuzz` | promises about the reader, for fuzzing |

#![forbid(unsafe_code)]

pub mod format;
pub mod fuzz;
mod order;
mod read;
mod request;
mod select;

pub use format::{Ending, Header, ReadError, Reader, WriteError, Writer};
pub use order::{Order, Ticket};
pub use read::{ReadTrace, TraceError};
pub use request::{Kind, Request};
pub use select::{Sample, Selection, Window};
