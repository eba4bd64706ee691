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
//! | `call`, `output` | the parameters that all tools have |
//! | `arguments` | the arguments of a call as they are built |
//! | `roots` | the folders whose files may be read |
//! | `texts` | files that name other files |
//! | `process` | a verb in a process with limits |
//! | `settings`, `error` | settings of a server, and reasons why it ended |
//! | [`fuzz`] | calls made from arbitrary bytes |

#![forbid(unsafe_code)]

mod arguments;
mod call;
mod error;
pub mod fuzz;
mod output;
mod process;
mod roots;
mod server;
mod settings;
mod texts;
mod tools;

pub use error::ServeError;
pub use settings::{Limits, Settings};

use rmcp::ServiceExt as _;
use rmcp::transport::async_rw::AsyncRwTransport;

/// Largest message, in bytes. A longer one cannot be answered, since its identifier is unknown, and
/// is dropped.
const LARGEST_MESSAGE: usize = 4 << 20;

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
