//! Page blobs over REST: the volumes of a running server, as Azure's own clients see them.
//!
//! ```text
//!  socket --> http --> service --> operation: authorise --> state, journal: names, properties, leases
//!                                             |
//!                                             +----------> volumes: page blobs, with the server's limits
//!                                             +----------> pieces: bytes of block blobs
//! ```
//!
//! The protocol is that of Microsoft's "Blob service REST API". A single thread serves all
//! connections, so code between two awaits is atomic. Operations that may wait for a medium run on
//! other threads.
//!
//! | module | holds |
//! |---|---|
//! | [`endpoint`] | start and stop: socket, thread, state in the data directory |
//! | `error` | errors of the endpoint |
//! | `http` | connections, requests, responses |
//! | `places` | limits of connections |
//! | `room` | limits of memory for bodies |
//! | `stream` | sockets whose clients must read, and their end |
//! | `tls` | certificates |
//! | [`head`] | the head of a request |
//! | [`auth`] | authentication and signatures |
//! | [`operation`] | parsing of operations, and authorisation |
//! | [`service`] | the operations |
//! | [`condition`], [`tags`], [`lease`] | preconditions of a request |
//! | [`query`] | queries for blobs by their tags |
//! | [`state`], [`record`] | accounts, containers and blobs in memory, and their records |
//! | [`journal`] | durable storage of records |
//! | [`volumes`] | page blobs as volumes |
//! | [`pieces`] | the bytes of block and append blobs |
//! | [`body`], [`digest`], [`xml`], [`time`], [`batch`] | encodings of the protocol |
//! | [`fault`] | error responses with the service's codes |
//! | [`fuzz`] | requests built from arbitrary bytes |

#![forbid(unsafe_code)]

pub mod auth;
pub mod batch;
pub mod body;
pub mod condition;
pub mod digest;
pub mod endpoint;
mod error;
pub mod fault;
pub mod fuzz;
pub mod head;
mod http;
pub mod journal;
pub mod lease;
pub mod operation;
pub mod pieces;
mod places;
pub mod query;
pub mod record;
mod room;
pub mod service;
pub mod state;
mod stream;
pub mod tags;
pub mod time;
mod tls;
pub mod volumes;
pub mod xml;
pub use endpoint::Endpoint;
pub use error::BlobError;

#[cfg(test)]
mod tests {
    use crate::head::{Head, Target};
    use crate::time::Moment;

    /// Returns the head of a request without parameters or headers.
    pub(crate) fn head() -> Head {
        Head {
            method: http::Method::GET,
            target: Target { account: "acc".to_owned(), container: None, blob: None },
            path: "/acc".to_owned(),
            query: Vec::new(),
            headers: http::HeaderMap::new(),
            secure: false,
            from: [127, 0, 0, 1].into(),
            now: Moment(0),
        }
    }
}
