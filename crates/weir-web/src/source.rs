//! The server that is watched.

use serde_json::Value;
use weir_report::status::Status;
use weir_server::control::Request;
use weir_server::{Handle, ServerError};

/// A server with counters. Its methods may wait for the threads of the hosts.
pub trait Source: Send + Sync {
    /// Returns a reading of all counters.
    fn status(&self) -> Status;

    /// Executes a command of the control socket.
    ///
    /// # Errors
    ///
    /// [`ServerError`] with what to do.
    fn command(&self, request: Request) -> Result<Value, ServerError>;
}

impl Source for Handle {
    fn status(&self) -> Status {
        Self::status(self)
    }

    fn command(&self, request: Request) -> Result<Value, ServerError> {
        Self::command(self, request)
    }
}
