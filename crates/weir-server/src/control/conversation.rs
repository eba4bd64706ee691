//! A control connection that stays open, for a client that asks more than once.

use super::{Answer, Request, shared_folder};
use crate::error::ServerError;
use crate::local_socket::trusted_folder;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A connection to the control socket of a server. A freeze made in it ends with it.
#[derive(Debug)]
pub struct Conversation {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Conversation {
    /// Connects to the server at `path`.
    ///
    /// # Errors
    ///
    /// [`ServerError::Control`] if no server listens there.
    pub fn open(path: &Path) -> Result<Self, ServerError> {
        let connect = || -> io::Result<UnixStream> {
            if path.parent() == Some(&shared_folder()) && path.exists() {
                trusted_folder(&shared_folder())?;
            }
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            Ok(stream)
        };
        let failed = |error: io::Error| ServerError::Control {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let stream = BufReader::new(connect().map_err(failed)?);
        Ok(Self { path: path.to_owned(), stream })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`ServerError::Control`] if the server does not answer; [`ServerError::Refused`] and
    /// [`ServerError::Failed`] with the server's own sentence.
    pub fn ask(&mut self, request: &Request) -> Result<Value, ServerError> {
        let answer = self.exchange(request).map_err(|error| self.failed(error.to_string()))?;
        match serde_json::from_str(&answer) {
            Ok(Answer::Ok(value)) => Ok(value),
            Ok(Answer::Refused(reason)) => Err(ServerError::Refused(reason)),
            Ok(Answer::Failed(reason)) => Err(ServerError::Failed(reason)),
            Err(_) if answer.is_empty() => Err(self.failed("it closed the connection".to_owned())),
            Err(_) => Err(self.failed("it does not speak this protocol".to_owned())),
        }
    }

    /// Asks, and reads the answer as a `T`.
    ///
    /// # Errors
    ///
    /// Those of [`ask`](Self::ask), and [`ServerError::Control`] for an answer of another form.
    pub fn ask_for<T: serde::de::DeserializeOwned>(
        &mut self,
        request: &Request,
    ) -> Result<T, ServerError> {
        let value = self.ask(request)?;
        serde_json::from_value(value)
            .map_err(|error| self.failed(format!("its answer has another form: {error}")))
    }

    fn exchange(&mut self, request: &Request) -> io::Result<String> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes())?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer)?;
        Ok(answer)
    }

    fn failed(&self, reason: String) -> ServerError {
        ServerError::Control { path: self.path.clone(), reason }
    }
}
