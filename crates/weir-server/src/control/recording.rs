//! The client's end of a recording.

use super::{Conversation, Request};
use crate::error::ServerError;
use std::io::{self, BufRead, BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A trace that a server is recording, as bytes.
#[derive(Debug)]
pub struct Recorded {
    stream: BufReader<UnixStream>,
}

impl Recorded {
    /// Begins to record the requests to exports of the server at `path`; to all if none is named.
    /// Reads time out after `patience`.
    ///
    /// # Errors
    ///
    /// [`ServerError::Control`] if no server answers, [`ServerError::Refused`] if it has no such
    /// export or records already.
    pub fn begin(path: &Path, exports: &[String], patience: Duration) -> Result<Self, ServerError> {
        let mut conversation = Conversation::open(path)?;
        conversation.ask(&Request::Record { exports: exports.to_vec() })?;
        let stream = conversation.into_stream();
        let set = stream.get_ref().set_read_timeout(Some(patience));
        set.map_err(ServerError::system("preparing a recording"))?;
        Ok(Self { stream })
    }

    /// Ends the recording. The end of the trace follows.
    ///
    /// # Errors
    ///
    /// [`ServerError::System`] if the server has gone.
    pub fn end(&self) -> Result<(), ServerError> {
        let ended = self.stream.get_ref().shutdown(Shutdown::Write);
        ended.map_err(ServerError::system("ending a recording"))
    }
}

impl Read for Recorded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }
}

impl BufRead for Recorded {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.stream.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.stream.consume(amount);
    }
}
