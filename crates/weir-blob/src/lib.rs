//! Page blobs over REST: volumes of a running server as Azure's own clients see them.
//!
//! ```text
//!  socket --> http --> service --> operation: who may? --> state, journal: names, properties, leases
//!                                             |
//!                                             +----------> volumes: bytes, by the server's limits
//!                                             +----------> pieces: bytes of block blobs
//! ```
//!
//! The protocol is that of Microsoft's "Blob service REST API". One thread serves all
//! connections, so what happens between two waits happens at once; whatever may wait for a
//! medium runs elsewhere.
//!
//! | module | holds |
//! |---|---|
//! | [`endpoint`] | starting and stopping: socket, thread, what the data directory remembers |
//! | `http` | connections, requests, answers |
//! | [`tls`] | certificates |
//! | [`head`] | a request without its body |
//! | [`auth`] | who asks, and what that permits |
//! | [`operation`] | what is asked for, and the right that it needs |
//! | [`service`] | the operations |
//! | [`condition`], [`tags`], [`lease`] | what a request may depend on |
//! | [`state`], [`record`] | what there is, and how it is remembered |
//! | [`journal`] | what makes records durable |
//! | [`volumes`] | page blobs as volumes |
//! | [`pieces`] | the bytes of block and append blobs |
//! | [`body`], [`digest`], [`xml`], [`time`] | what goes over the wire |
//! | [`fault`] | refusals, by the service's own codes |
//! | [`fuzz`] | requests made of arbitrary bytes |

#![forbid(unsafe_code)]

pub mod auth;
pub mod body;
pub mod condition;
pub mod digest;
pub mod endpoint;
pub mod fault;
pub mod fuzz;
pub mod head;
mod http;
pub mod journal;
pub mod lease;
pub mod operation;
pub mod pieces;
pub mod record;
pub mod service;
pub mod state;
pub mod tags;
pub mod time;
pub mod tls;
pub mod volumes;
pub mod xml;
pub use endpoint::{BlobError, Endpoint};

#[cfg(test)]
mod tests {
    use crate::head::{Head, Target};
    use crate::time::Moment;

    /// A request that says nothing.
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
