//! The control socket: one JSON request a line, one JSON answer a line.

use crate::error::ServerError;
use crate::listener::{bind_unix, pause};
use crate::server::Shared;
use rustix::net::{Shutdown, shutdown};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_core::CacheMode;
use weir_layout::file::CacheKey;
use weir_units::Bytes;

/// Longest line that is read.
const MAX_LINE: u64 = 64 << 10;

/// What can be asked of a running server.
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
}

/// A server's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// What was asked for.
    Ok(Value),
    /// Why not, and what to do.
    Error(String),
}

/// The mode that `text` names.
///
/// # Errors
///
/// A sentence that says which there are.
pub fn cache_key(text: &str) -> Result<CacheKey, String> {
    match text {
        "none" => Ok(CacheKey::None),
        "read-only" => Ok(CacheKey::ReadOnly),
        "read-write" => Ok(CacheKey::ReadWrite),
        _ => Err(format!("{text:?} is not a cache mode; use none, read-only or read-write")),
    }
}

/// The name of `mode`, as [`cache_key`] reads it.
pub(crate) fn cache_name(mode: CacheMode) -> &'static str {
    match mode {
        CacheMode::None => "none",
        CacheMode::ReadOnly => "read-only",
        CacheMode::ReadWrite => "read-write",
    }
}

/// Where a server of this user listens if it is not told: in the user's runtime
/// folder, else in the folder for temporary files.
#[must_use]
pub fn default_path() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir).join("weir.sock"),
        _ => {
            let uid = rustix::process::getuid().as_raw();
            std::env::temp_dir().join(format!("weir-{uid}.sock"))
        }
    }
}

/// Asks the server at `path`.
///
/// # Errors
///
/// [`ServerError::Control`] if none answers; the server's own sentence, in the
/// inner result, if it refuses.
pub fn ask(path: &Path, request: &Request) -> Result<Result<Value, String>, ServerError> {
    let failed = |reason: String| ServerError::Control { path: path.to_owned(), reason };
    let exchange = || -> io::Result<String> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        (&stream).write_all(line.as_bytes())?;
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer)?;
        Ok(answer)
    };
    let answer = exchange().map_err(|error| failed(error.to_string()))?;
    match serde_json::from_str(&answer) {
        Ok(Answer::Ok(value)) => Ok(Ok(value)),
        Ok(Answer::Error(reason)) => Ok(Err(reason)),
        Err(_) if answer.is_empty() => Err(failed("it closed the connection".to_owned())),
        Err(_) => Err(failed("it does not speak this protocol".to_owned())),
    }
}

/// The socket that is listened on; its path is removed with it.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    pub(crate) fn bind(path: &Path) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Listen { address: path.display().to_string(), source };
        let listener = bind_unix(path, failed)?;
        // It changes and crashes things: for this user alone.
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, own).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Answers until [`close`](Self::close).
    pub(crate) fn run(&self, shared: &Arc<Shared>, stop: &AtomicBool) {
        loop {
            let accepted = self.listener.accept();
            if stop.load(Ordering::Acquire) {
                return;
            }
            let Ok((stream, _)) = accepted else {
                pause();
                continue;
            };
            let shared = Arc::clone(shared);
            let answering = std::thread::Builder::new()
                .name("weir-control".to_owned())
                .spawn(move || drop(converse(&stream, &shared)));
            // Without a thread the client sees its connection close.
            drop(answering);
        }
    }

    /// Takes no more clients: a blocked [`run`](Self::run) looks at its `stop`.
    pub(crate) fn close(&self) {
        // It fails only where nothing is listened to any more.
        let _ = shutdown(&self.listener, Shutdown::Both);
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn converse(stream: &UnixStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut input = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if input.by_ref().take(MAX_LINE).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str::<Request>(&line) {
            Ok(request) => match shared.answer(request) {
                Ok(value) => Answer::Ok(value),
                Err(error) => Answer::Error(error.to_string()),
            },
            Err(error) => Answer::Error(format!("not a request: {error}")),
        };
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        (&mut &*stream).write_all(text.as_bytes())?;
    }
}
