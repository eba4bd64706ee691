//! The requests of a trace, between its reader and what takes them.
//!
//! ```text
//!  a reader of a format --> Sink: Summing   --> samples
//!                                 Collector --> requests
//! ```

use crate::error::ImportError;
use crate::sheet::Sheet;
use weir_trace::Ticket;

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
    Discard,
    Flush,
    /// A read or write; the trace does not state which.
    Either,
}

/// A device of a trace, as an index in its [`Sink`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Device(pub(super) usize);

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// Start in nanoseconds.
    pub(crate) at: i64,
    /// Where.
    pub(crate) device: Device,
    pub(crate) direction: Direction,
    /// Offset of the first byte.
    pub(crate) offset: Option<u64>,
    /// Length in bytes.
    pub(crate) length: u64,
    /// Latency in nanoseconds.
    pub(crate) latency: Option<u64>,
}

/// The moment that the times of a trace count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// 1970.
    Epoch,
    /// An unknown moment.
    Unknown,
}

/// A request that has begun, for its sink.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun(pub(super) Option<Ticket>);

/// A receiver of requests.
///
/// Complete requests go to [`request`](Self::request). Events go to [`begin`](Self::begin) and
/// [`end`](Self::end).
pub(crate) trait Sink {
    /// Returns the device of a name, on a host if the trace has one.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if there are too many.
    fn device(&mut self, host: Option<&str>, name: &str) -> Result<Device, ImportError>;

    /// Takes a complete request.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it cannot be one.
    fn request(&mut self, request: Request) -> Result<(), ImportError>;

    /// Takes a complete request for an object instead of an offset.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it cannot be one.
    fn object(&mut self, request: Request, _object: u64) -> Result<(), ImportError> {
        self.request(request)
    }

    /// Begins a request that ends later; `None` if its time is wrong and it is left out.
    fn begin(&mut self, request: &Request) -> Option<Begun>;

    /// Ends a request that has begun, at the time of `request`.
    fn end(&mut self, begun: Begun, request: &Request);

    /// Takes a completed request whose beginning was not passed, at the time of its completion.
    fn done(&mut self, request: &Request);

    /// Removes a request that has begun and is none: it begins again.
    fn leave(&mut self, begun: Begun, device: Device);

    /// Gives up a request that has begun and whose end cannot be seen.
    fn lose(&mut self, begun: Begun, device: Device) {
        self.leave(begun, device);
    }

    /// Advances to an event that is no request.
    fn pass(&mut self, at: i64);
}

/// A reader of a trace.
pub(crate) trait ReadRequests {
    /// Reads on, and passes requests to `sink`; returns false at the end.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it cannot continue.
    fn next(&mut self, sink: &mut dyn Sink, sheet: &mut Sheet) -> Result<bool, ImportError>;

    /// Returns the number of events that its source dropped.
    fn lost(&self) -> u64 {
        0
    }
}
