//! The interface of everything that yields requests.

use std::error::Error;
use weir_units::Instant;

use crate::request::Request;

/// The reason why a trace cannot be read further.
pub type TraceError = Box<dyn Error + Send + Sync>;

/// A trace that is read request by request, in order of arrival.
pub trait ReadTrace {
    /// Returns the next request; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`TraceError`] if the trace cannot be read further.
    fn next_request(&mut self) -> Result<Option<Request>, TraceError>;

    /// Returns the names of the devices that were seen so far. A request's device is an index in
    /// them.
    fn devices(&self) -> &[String];

    /// Returns the number of devices whose requests may come, as far as it is known.
    fn wanted(&self) -> usize {
        self.devices().len()
    }

    /// Returns the names of devices that were asked for and not seen so far.
    fn missing(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Allows the trace to leave out requests before `at`. Some may come all the same.
    fn skip_before(&mut self, _at: Instant) {}

    /// Returns notes about the trace, for example that it was cut off. They are complete at its
    /// end.
    fn notes(&self) -> Vec<String>;
}

impl<T: ReadTrace + ?Sized> ReadTrace for Box<T> {
    fn next_request(&mut self) -> Result<Option<Request>, TraceError> {
        (**self).next_request()
    }

    fn devices(&self) -> &[String] {
        (**self).devices()
    }

    fn wanted(&self) -> usize {
        (**self).wanted()
    }

    fn missing(&self) -> Vec<&str> {
        (**self).missing()
    }

    fn skip_before(&mut self, at: Instant) {
        (**self).skip_before(at);
    }

    fn notes(&self) -> Vec<String> {
        (**self).notes()
    }
}
