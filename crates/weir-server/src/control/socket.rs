//! The server's end of the control socket.

use super::{Answer, Request, shared_folder};
use crate::audit::FrontEnd;
use crate::error::ServerError;
use crate::listener::pause;
use crate::local_socket::{LocalSocket, private_folder};
use crate::places::Places;
use crate::server::freeze::Holding;
use crate::server::shared::Shared;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{Shutdown, shutdown};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Conversations at once.
const MAX_CONVERSATIONS: usize = 64;
const BUSY: &str = "too many others are asking this server; try again";

/// The longest silence of a conversation without a freeze.
const SILENCE: Duration = Duration::from_secs(60);

/// The longest wait for the last answers at the end. A client that reads nothing must not keep the
/// server from stopping.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Longest line that is read.
const MAX_LINE: u64 = 64 << 10;

/// The socket that is listened on.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    socket: LocalSocket,
    /// The conversations, to be ended.
    open: Mutex<BTreeMap<u64, UnixStream>>,
    /// Notified at the end of each conversation.
    ended: Condvar,
}

impl ControlSocket {
    pub(crate) fn bind(path: &Path) -> Result<Self, ServerError> {
        let address = path.display().to_string();
        let failed = |source| ServerError::Listen { address: address.clone(), source };
        if path.parent() == Some(&shared_folder()) {
            private_folder(&shared_folder()).map_err(failed)?;
        }
        let socket = LocalSocket::bind(path, &address)?;
        // Its clients can change and crash hosts.
        socket.restrict().map_err(failed)?;
        Ok(Self { socket, open: Mutex::default(), ended: Condvar::new() })
    }

    /// Answers until [`close`](Self::close).
    pub(crate) fn run(self: &Arc<Self>, shared: &Arc<Shared>, stop: &AtomicBool) {
        let conversations = Places::new(MAX_CONVERSATIONS);
        for number in 0.. {
            let accepted = self.socket.listener.accept();
            if stop.load(Ordering::Acquire) {
                return;
            }
            let Ok((stream, _)) = accepted else {
                pause();
                continue;
            };
            let Some(place) = conversations.take() else {
                let why = "too many conversations are open";
                shared.audit.refuse(FrontEnd::Control, &peer_of(&stream), &"connection", &why);
                let _ = say(&stream, &Answer::Failed(BUSY.to_owned()));
                continue;
            };
            let (own, shared) = (Arc::clone(self), Arc::clone(shared));
            if let Ok(stream) = stream.try_clone() {
                self.open().insert(number, stream);
            }
            // Without a thread the client sees its connection close.
            let begun =
                std::thread::Builder::new().name("weir-control".to_owned()).spawn(move || {
                    let _place = place;
                    drop(converse(&stream, &shared));
                    own.open().remove(&number);
                    own.ended.notify_all();
                });
            if begun.is_err() {
                self.open().remove(&number);
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, UnixStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts no more clients: a blocked [`run`](Self::run) checks its `stop`.
    pub(crate) fn close(&self) {
        // It fails only where nothing is listened to any more.
        let _ = shutdown(&self.socket.listener, Shutdown::Both);
    }

    /// Ends all conversations after [`run`](Self::run) has ended. Clients get the answers to their
    /// requests, and recordings their end, unless they do not read them.
    pub(crate) fn end_conversations(&self) {
        let open = self.open();
        for stream in open.values() {
            let _ = shutdown(stream, Shutdown::Read);
        }
        let are_open = |open: &mut BTreeMap<u64, UnixStream>| !open.is_empty();
        let waited = self.ended.wait_timeout_while(open, LAST_WORDS, are_open);
        let (open, _) = waited.unwrap_or_else(PoisonError::into_inner);
        for stream in open.values() {
            let _ = shutdown(stream, Shutdown::Both);
        }
    }
}

fn converse(stream: &UnixStream, shared: &Shared) -> io::Result<()> {
    let mut input = BufReader::new(stream);
    let mut holding = Holding::new(shared);
    loop {
        // A backup may take hours; a client that has gone is noticed all the same.
        let patience = holding.is_empty().then_some(SILENCE);
        stream.set_read_timeout(patience)?;
        let mut line = String::new();
        if input.by_ref().take(MAX_LINE).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str::<Request>(&line) {
            Ok(Request::Record { exports }) => match shared.begin_recording(&exports) {
                // The conversation ends with the recording.
                Ok(recording) => {
                    say(stream, &Answer::Ok(Value::Null))?;
                    return recording.run(stream);
                }
                Err(error) => answer_of(&error),
            },
            Ok(request) => match holding.answer(request) {
                Ok(value) => Answer::Ok(value),
                Err(error) => answer_of(&error),
            },
            Err(error) => {
                // The line may be anything, so it is not recorded, and neither is an error that quotes it.
                let why = "not a request";
                shared.audit.refuse(FrontEnd::Control, &peer_of(stream), &"line", &why);
                Answer::Refused(format!("{why}: {error}"))
            }
        };
        say(stream, &answer)?;
    }
}

/// Returns the process and the user of a client.
fn peer_of(stream: &UnixStream) -> String {
    match socket_peercred(stream) {
        Ok(own) => format!("process {} of user {}", own.pid.as_raw_nonzero(), own.uid.as_raw()),
        Err(_) => "gone".to_owned(),
    }
}

fn answer_of(error: &ServerError) -> Answer {
    match error.is_input() {
        true => Answer::Refused(error.to_string()),
        false => Answer::Failed(error.to_string()),
    }
}

fn say(mut stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    let mut text = serde_json::to_string(answer)?;
    text.push('\n');
    stream.write_all(text.as_bytes())
}
