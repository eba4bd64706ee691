//! Weir's verbs as tools of assistants, over the Model Context Protocol on stdin and stdout.
//!
//! A call of a tool is a call of the verb of the same name, in a process of its own. A tool
//! therefore answers as the verb does. A call that takes too long or answers too much is killed,
//! and one that is cancelled ends at once.
//!
//! ```text
//!   client --stdio--> server --> tool --> arguments, with paths checked --> process --> answer
//! ```
//!
//! No tool writes, and none has an option that names an output. Files are read only below the
//! folders that were named at the start. A path is resolved first, so that a link which leads
//! outside is refused.
//!
//! | module | holds |
//! |---|---|
//! | `server` | the protocol: the list of tools, and calls |
//! | `tools` | the tools: parameters with their schema, and the arguments of the verb |
//! | `arguments` | the arguments of a call as they are built |
//! | `roots` | the folders whose files may be read |
//! | `texts` | files that name other files |
//! | `process` | a verb in a process with limits |

#![forbid(unsafe_code)]

mod arguments;
mod process;
mod roots;
mod server;
mod texts;
mod tools;

use rmcp::ServiceExt as _;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program whose verbs the tools call.
    pub program: PathBuf,
    /// Arguments before each verb, for example `--catalog`.
    pub arguments: Vec<OsString>,
    /// Folders whose files may be read.
    pub roots: Vec<PathBuf>,
    /// Limits of a call.
    pub limits: Limits,
}

/// Limits of a call.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time of a call.
    pub time: Duration,
    /// Largest answer, in bytes.
    pub output: usize,
    /// Largest file that is read, in bytes.
    pub file: u64,
    /// Largest arguments of a call, in bytes of JSON.
    pub arguments: usize,
    /// Number of calls at a time.
    pub calls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(60),
            output: 1 << 20,
            file: 256 << 20,
            arguments: 256 << 10,
            calls: 2,
        }
    }
}

/// Largest message, in bytes. A longer one cannot be answered, since its identifier is unknown, and
/// is dropped.
const LARGEST_MESSAGE: usize = 4 << 20;

/// A reason why a server ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A folder that cannot be used.
    #[error("--root {}: {reason}", .path.display())]
    Root {
        /// The folder.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A failure of the system.
    #[error("{context}: {source}")]
    System {
        /// The activity.
        context: &'static str,
        /// The failure.
        source: io::Error,
    },
    /// A failure of the protocol.
    #[error("the client did not speak the Model Context Protocol: {0}")]
    Protocol(String),
}

impl ServeError {
    /// Returns whether the settings are wrong.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        matches!(self, Self::Root { .. })
    }
}

/// Serves a client on stdin and stdout until it closes them.
///
/// # Errors
///
/// [`ServeError`] if a root is wrong or the client does not speak the protocol.
pub fn serve(settings: Settings) -> Result<(), ServeError> {
    let server = server::Server::new(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| ServeError::System { context: "starting the server", source })?;
    let ended = runtime.block_on(async {
        let (input, output) = rmcp::transport::io::stdio();
        let transport =
            AsyncRwTransport::new_server(input, output).with_max_line_length(LARGEST_MESSAGE);
        let running = match server.serve(transport).await {
            Ok(running) => running,
            // A client that closes before it has begun is not an error.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Protocol(error.to_string())),
        };
        let ended = running.waiting().await;
        ended.map(drop).map_err(|error| ServeError::Protocol(error.to_string()))
    });
    // A read of stdin cannot be interrupted.
    runtime.shutdown_background();
    ended
}
