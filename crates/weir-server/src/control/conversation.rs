//! A control connection that stays open, for a client that asks more than once.

use super::{Answer, Request, shared_folder};
use crate::error::ServerError;
use crate::local_socket::trusted_folder;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time until an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to the control socket of a server. A freeze made in it ends with it.
///
/// A request that is not answered in time ends the conversation: a late answer would be taken for
/// that of the next request.
#[derive(Debug)]
pub struct Conversation {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    /// The reason for which it is over, after a failure.
    ended: Option<String>,
}

impl Conversation {
    /// Connects to the server at `path`.
    ///
    /// # Errors
    ///
    /// [`ServerError::Control`] if no server listens there.
    pub fn open(path: &Path) -> Result<Self, ServerError> {
        Self::open_with(path, PATIENCE)
    }

    fn open_with(path: &Path, patience: Duration) -> Result<Self, ServerError> {
        let connect = || -> io::Result<UnixStream> {
            if path.parent() == Some(&shared_folder()) && path.exists() {
                trusted_folder(&shared_folder())?;
            }
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(patience))?;
            Ok(stream)
        };
        let failed = |error: io::Error| ServerError::Control {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let stream = BufReader::new(connect().map_err(failed)?);
        Ok(Self { path: path.to_owned(), stream, ended: None })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`ServerError::Control`] if the server does not answer, or did not answer an earlier
    /// request; [`ServerError::Refused`] and [`ServerError::Failed`] with the server's own
    /// sentence.
    pub fn ask(&mut self, request: &Request) -> Result<Value, ServerError> {
        if let Some(reason) = &self.ended {
            let reason = format!("an earlier request failed ({reason}); connect again");
            return Err(self.failed(reason));
        }
        let answer = self.exchange(request).map_err(|error| self.end(reason_of(&error)))?;
        match serde_json::from_str(&answer) {
            Ok(Answer::Ok(value)) => Ok(value),
            Ok(Answer::Refused(reason)) => Err(ServerError::Refused(reason)),
            Ok(Answer::Failed(reason)) => Err(ServerError::Failed(reason)),
            Err(_) if answer.is_empty() => Err(self.end("it closed the connection".to_owned())),
            Err(_) => Err(self.end("it does not speak this protocol".to_owned())),
        }
    }

    /// Asks, and reads the answer as a `T`.
    ///
    /// # Errors
    ///
    /// The errors of [`ask`](Self::ask), and [`ServerError::Control`] for an answer of another form.
    pub fn ask_for<T: serde::de::DeserializeOwned>(
        &mut self,
        request: &Request,
    ) -> Result<T, ServerError> {
        let value = self.ask(request)?;
        serde_json::from_value(value)
            .map_err(|error| self.failed(format!("its answer has another form: {error}")))
    }

    /// Returns the connection, for an answer that is no line.
    pub(super) fn into_stream(self) -> BufReader<UnixStream> {
        self.stream
    }

    fn exchange(&mut self, request: &Request) -> io::Result<String> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes())?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer)?;
        Ok(answer)
    }

    /// Ends the conversation, and with it the freezes that were made in it.
    fn end(&mut self, reason: String) -> ServerError {
        // It fails only where the other side has ended it.
        let _ = self.stream.get_ref().shutdown(Shutdown::Both);
        self.ended = Some(reason.clone());
        self.failed(reason)
    }

    fn failed(&self, reason: String) -> ServerError {
        ServerError::Control { path: self.path.clone(), reason }
    }
}

fn reason_of(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it did not answer in time".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc::channel;

    #[test]
    fn a_late_answer_is_not_taken_for_that_of_the_next_request() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let (has_given_up, given_up) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (stream, _) = listener.accept().expect("a client");
                let mut lines = BufReader::new(&stream).lines();
                lines.next().expect("a request").expect("a line");
                given_up.recv().expect("the client is there");
                // The client may have hung up.
                let _ = (&stream).write_all(b"{\"ok\":1}\n");
            });
            let patience = Duration::from_millis(20);
            let mut conversation = Conversation::open_with(&path, patience).expect("a server");
            let error = conversation.ask(&Request::Status).expect_err("no answer").to_string();
            assert!(error.contains("it did not answer in time"), "{error}");
            has_given_up.send(()).expect("the server is there");
            let error = conversation.ask(&Request::Status).expect_err("it is over").to_string();
            assert!(error.contains("an earlier request failed"), "{error}");
        });
    }
}
