//! The control socket: one JSON request a line, one JSON answer a line.

mod conversation;
mod freeze;

pub use conversation::Conversation;
pub use freeze::{ChangedAnswer, FreezeAnswer, FrozenExport, Purpose, ReleaseAnswer};

use crate::error::ServerError;
use crate::listener::pause;
use crate::local_socket::{LocalSocket, private_folder};
use crate::places::Places;
use crate::server::{Holding, Shared};
use rustix::net::{Shutdown, shutdown};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_layout::hot_plug::NewVolume;
use weir_units::Bytes;

/// Conversations at once.
const MAX_CONVERSATIONS: usize = 64;
const BUSY: &str = "too many others are asking this server; try again";

/// The longest silence of a conversation without a freeze.
const SILENCE: Duration = Duration::from_secs(60);

/// Longest line that is read.
const MAX_LINE: u64 = 64 << 10;

/// A request to a running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// A reading of all counters ([`weir_report::status::Status`]).
    Status,
    /// A volume's new size; its tier and limits follow at once.
    Resize {
        /// The volume.
        volume: String,
        /// Its size.
        size: Bytes,
    },
    /// A volume comes.
    Create {
        /// Its host, where there are several.
        host: Option<String>,
        /// Its description.
        volume: NewVolume,
    },
    /// A volume goes, with its bytes; its clients are cut off.
    Delete {
        /// The volume.
        volume: String,
    },
    /// A volume's new cache mode.
    SetCache {
        /// The volume.
        volume: String,
        /// none, read-only or read-write.
        mode: String,
    },
    /// The host crashes: its clients are cut off, its cache is cold, and what a
    /// read-write cache had not written back is lost.
    Crash {
        /// The host.
        host: String,
    },
    /// The host cache holds a range from now on, as after a warm-up.
    Warm {
        /// The export.
        export: String,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Freezes exports at one instant ([`FreezeAnswer`]). The views are there until they are
    /// released or this conversation ends.
    Freeze {
        /// The exports; all of them if empty.
        exports: Vec<String>,
        /// The kind of backup.
        purpose: Purpose,
        /// The id of the backup.
        backup: String,
    },
    /// The ranges of a frozen export that may differ from its base ([`ChangedAnswer`]).
    Changed {
        /// The number of the freeze.
        freeze: u64,
        /// The export, by its own name.
        export: String,
        /// The first byte to look at.
        from: u64,
    },
    /// A range of a frozen export has been read and is not read again: its old contents need
    /// not be kept any longer. To say so is optional and saves space.
    ReadDone {
        /// The number of the freeze.
        freeze: u64,
        /// The export, by its own name.
        export: String,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Ends a freeze ([`ReleaseAnswer`]).
    Release {
        /// The number of the freeze.
        freeze: u64,
        /// True if the backup is complete. Later differentials build on a complete full backup.
        completed: bool,
    },
}

/// A server's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The result.
    Ok(Value),
    /// The reason of a refusal, and a request that would be accepted.
    Refused(String),
    /// The reason of a failure on the way.
    Failed(String),
}

/// Returns the default path of this user's control socket: in the user's runtime
/// folder, else in a folder of this user alone among the temporary files.
#[must_use]
pub fn default_path() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir).join("weir.sock"),
        _ => shared_folder().join("control.sock"),
    }
}

/// Returns the folder of the default path where the system gives this user none.
fn shared_folder() -> PathBuf {
    std::env::temp_dir().join(format!("weir-{}", rustix::process::getuid().as_raw()))
}

/// Asks the server at `path`.
///
/// # Errors
///
/// [`ServerError::Control`] if none answers; [`ServerError::Refused`] and
/// [`ServerError::Failed`] with the server's own sentence.
pub fn ask(path: &Path, request: &Request) -> Result<Value, ServerError> {
    Conversation::open(path)?.ask(request)
}

/// The socket that is listened on.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    socket: LocalSocket,
    /// The conversations, to be ended.
    open: Mutex<BTreeMap<u64, UnixStream>>,
}

impl ControlSocket {
    pub(crate) fn bind(path: &Path) -> Result<Self, ServerError> {
        let address = path.display().to_string();
        let failed = |source| ServerError::Listen { address: address.clone(), source };
        if path.parent() == Some(&shared_folder()) {
            private_folder(&shared_folder()).map_err(failed)?;
        }
        let socket = LocalSocket::bind(path, &address)?;
        // It changes and crashes things.
        socket.restrict().map_err(failed)?;
        Ok(Self { socket, open: Mutex::default() })
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
                });
            if begun.is_err() {
                self.open().remove(&number);
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, UnixStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes no more clients: a blocked [`run`](Self::run) looks at its `stop`. Those that
    /// are there get the answers to what they have asked.
    pub(crate) fn close(&self) {
        // It fails only where nothing is listened to any more.
        let _ = shutdown(&self.socket.listener, Shutdown::Both);
        for stream in self.open().values() {
            let _ = shutdown(stream, Shutdown::Read);
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
            Ok(request) => match holding.answer(request) {
                Ok(value) => Answer::Ok(value),
                Err(error) if error.is_input() => Answer::Refused(error.to_string()),
                Err(error) => Answer::Failed(error.to_string()),
            },
            Err(error) => Answer::Refused(format!("not a request: {error}")),
        };
        say(stream, &answer)?;
    }
}

fn say(mut stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    let mut text = serde_json::to_string(answer)?;
    text.push('\n');
    stream.write_all(text.as_bytes())
}
