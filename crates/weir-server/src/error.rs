//! Errors of a server, and their NBD errno.

use std::io;
use std::path::PathBuf;
use weir_backend::BackendError;
use weir_layout::error::Kind as LayoutKind;
use weir_proto::Errno;
use weir_report::status::Refused;
use weir_store::{ErrorKind, StoreError};
use weir_units::Bytes;

/// Names that a message lists at most.
const SHOWN: usize = 8;

/// An error at the start of the server, or of a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A socket that cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", hint(.source))]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// A Unix socket at which another server answers.
    #[error("{} is in use by a running server; stop it or give another path", .path.display())]
    SocketInUse {
        /// The socket.
        path: PathBuf,
    },
    /// An address that cannot be read.
    #[error("{text:?} is not an address: {reason}; write unix:PATH, tcp:HOST:PORT or systemd")]
    BadAddress {
        /// The rejected text.
        text: String,
        /// The reason.
        reason: String,
    },
    /// Sockets of systemd that are not there or cannot be used.
    #[error("--nbd systemd: {reason}")]
    Passed {
        /// The reason, and what to do.
        reason: String,
    },
    /// A certificate or key that cannot be used.
    #[error("certificate or key {}: {reason}", .path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The data directory, or a volume in it.
    #[error("{0}{hint}", hint = store_hint(.0))]
    Store(#[from] StoreError),
    /// At the end the store of a ReadWrite cache still did not take everything.
    #[error(
        "{source}; {lost} that a read-write cache had taken and no client had flushed are lost"
    )]
    Lost {
        /// The bytes.
        lost: Bytes,
        /// The store's error.
        source: StoreError,
    },
    /// The layout does not allow it.
    #[error("{0}")]
    Layout(LayoutKind),
    /// A volume that cannot be served, or cannot be changed like that.
    #[error("volume {volume:?}: {reason}")]
    Volume {
        /// The volume.
        volume: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A backend that cannot be used.
    #[error("volume {volume:?}: backend {address}: {source}")]
    Backend {
        /// The volume.
        volume: String,
        /// The address of the backend.
        address: String,
        /// The reason.
        source: Box<BackendError>,
    },
    /// A volume, export or host that this server does not have.
    #[error("there is no {what} {name:?}{near}; there is {known}")]
    NotThere {
        /// volume, export or host.
        what: &'static str,
        /// The name.
        name: String,
        /// A name like it, as a question, or nothing.
        near: String,
        /// The names that there are, or the first of them.
        known: String,
    },
    /// A range that is not inside its export.
    #[error("export {export:?} has {size}; the range reaches beyond its end")]
    BeyondEnd {
        /// The export.
        export: String,
        /// Its size.
        size: Bytes,
    },
    /// An export of which nothing can be in a host cache.
    #[error(
        "export {export:?}: its volumes have no host cache, so there is nothing to warm; set cache = \"read-only\" or \"read-write\" for one of them"
    )]
    Uncached {
        /// The export.
        export: String,
    },
    /// No volume of this layout can be served.
    #[error("no volume can be served{}", reasons(.refused))]
    NothingToServe {
        /// Every volume and stripe, with its reason.
        refused: Vec<Refused>,
    },
    /// More hosts that poll than cores to spare.
    #[error(
        "polling needs a core for each host and one more for the clients: {}, {}; leave out --poll",
        counted(*.hosts, "host"), counted(*.cores, "core")
    )]
    TooFewCores {
        /// The hosts of the layout.
        hosts: usize,
        /// The cores that this process may use.
        cores: usize,
    },
    /// The system refused something that must work.
    #[error("{context}: {source}")]
    System {
        /// The operation that failed.
        context: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A running server's refusal of a request.
    #[error("{0}")]
    Refused(String),
    /// A running server's message about a command that failed.
    #[error("{0}")]
    Failed(String),
    /// The control socket does not answer, or not in its own words.
    #[error("no server answers at {}: {reason}; is weir serve running, with this --control?", .path.display())]
    Control {
        /// The socket.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl ServerError {
    /// Returns true if the input must change; else something failed.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::BadAddress { .. }
            | Self::Certificate { .. }
            | Self::Passed { .. }
            | Self::Layout(_)
            | Self::Volume { .. }
            | Self::NotThere { .. }
            | Self::BeyondEnd { .. }
            | Self::Uncached { .. }
            | Self::TooFewCores { .. }
            | Self::Refused(_) => true,
            Self::NothingToServe { refused } => refused.iter().all(|refused| refused.input),
            Self::Store(error) => {
                matches!(
                    error.kind(),
                    ErrorKind::OutOfRange
                        | ErrorKind::Name
                        | ErrorKind::TooLarge
                        | ErrorKind::NoFolder
                        | ErrorKind::NoChecksums
                )
            }
            _ => false,
        }
    }

    pub(crate) fn not_there<'a>(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        // A name of one or two letters is near to every other.
        let near =
            weir_units::nearest(name, known.iter().copied()).filter(|_| name.chars().count() > 2);
        let near = weir_units::did_you_mean(&near).to_string();
        Self::NotThere { what, name: name.to_owned(), near, known: listed(&known) }
    }

    /// Builds the error for a stripe where a volume was asked for.
    pub(crate) fn is_stripe(name: &str, columns: &[&str]) -> Self {
        let reason = format!("it is a stripe; name its columns one by one: {}", listed(columns));
        Self::Volume { volume: name.to_owned(), reason }
    }

    pub(crate) fn system(context: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { context, source }
    }
}

/// Returns the names, or the first of them.
fn listed(names: &[&str]) -> String {
    let mut text = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn reasons(refused: &[Refused]) -> String {
    if refused.is_empty() {
        return ": the layout has none; add a [[volume]], or serve page blobs with --blob"
            .to_owned();
    }
    refused.iter().map(|own| format!("\n  {own}")).collect()
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "; another process uses it: stop it, or give another address",
        io::ErrorKind::PermissionDenied => "; choose a path or port that this user may use",
        _ => "",
    }
}

fn store_hint(error: &StoreError) -> String {
    error.hint().map_or_else(String::new, |hint| format!("; {hint}"))
}

/// Maps a store's error to the errno that a client gets.
pub(crate) fn errno_of(error: &StoreError) -> Errno {
    match error.kind() {
        ErrorKind::OutOfRange => Errno::Inval,
        ErrorKind::NoSpace => Errno::NoSpc,
        _ => Errno::Io,
    }
}
