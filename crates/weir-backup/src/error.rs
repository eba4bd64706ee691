//! Errors of backups, and the kind of each.

use crate::format::BackupId;
use crate::random::RandomError;
use std::io;
use std::path::PathBuf;
use weir_client::ClientError;

/// Why a backup cannot be made, read, checked or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// A file or folder that cannot be read or written.
    #[error("{action} {}: {source}", .path.display())]
    File {
        /// The operation that failed, in the -ing form.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A stripe that cannot be read.
    #[error("reading stripe {stripe} of {backup}: {source}", stripe = u16::from(*.stripe) + 1)]
    Stripe {
        /// The backup.
        backup: String,
        /// The stripe, from 0.
        stripe: u8,
        /// The reason.
        source: io::Error,
    },
    /// The system has no random bytes.
    #[error(transparent)]
    Random(#[from] RandomError),
    /// An input that cannot be accepted, in a sentence.
    #[error("{0}")]
    Refused(String),
    /// Bytes that are not the start of a stripe.
    #[error("{name} is no stripe of a backup: it does not start with WEIRBAK1")]
    NotAStripe {
        /// The file, export or blob.
        name: String,
    },
    /// A stripe of a format that this version cannot read.
    #[error(
        "{name} has version {version} of the backup format, this weir reads version {known}; \
         use the weir that wrote it, or a newer one"
    )]
    Version {
        /// The file, export or blob.
        name: String,
        /// The version that the stripe states.
        version: u16,
        /// The version that this crate knows.
        known: u16,
    },
    /// A stripe whose header does not match its checksum.
    #[error("{name}: the stripe's header is damaged")]
    Header {
        /// The file, export or blob.
        name: String,
    },
    /// A key that does not belong to the backup.
    #[error("the key does not belong to backup {backup}; give the one that it was made with")]
    WrongKey {
        /// The backup.
        backup: BackupId,
    },
    /// An encrypted backup without a key.
    #[error(
        "backup {backup} is encrypted: give its key with --key-file FILE, or in WEIR_BACKUP_KEY"
    )]
    NoKey {
        /// The backup.
        backup: BackupId,
    },
    /// A key that is too short to protect anything.
    #[error(
        "a key of {length} bytes is too short: {least} is the least; weir backup key makes one"
    )]
    ShortKey {
        /// The length of what was given.
        length: usize,
        /// The shortest accepted length.
        least: usize,
    },
    /// A name of a backup that is asked for and is not there.
    #[error("no backup {name:?} in {places}{there}")]
    NotFound {
        /// The name, id or path that was given, without a signature.
        name: String,
        /// The places that were searched.
        places: String,
        /// The backups that are there, as the end of the message.
        there: String,
    },
    /// A target without room for a stripe.
    #[error("{0}")]
    NoRoom(String),
    /// A failure after which not all that was written could be removed.
    #[error("{cause}; {left}")]
    Untidy {
        /// The failure.
        cause: Box<Self>,
        /// The part that was not removed, in a sentence.
        left: String,
    },
    /// A backup that cannot be used as it is: the answer is no.
    #[error("{0}")]
    Unusable(String),
    /// Compression, decompression or encryption failed.
    #[error("{action}: {reason}")]
    Codec {
        /// The operation that failed, in the -ing form.
        action: &'static str,
        /// The reason.
        reason: String,
    },
    /// An NBD connection or request that failed.
    #[error("{name}: {source}")]
    Export {
        /// The export.
        name: String,
        /// The reason.
        source: ClientError,
    },
    /// The system refused something that must work.
    #[error("{action}: {source}")]
    System {
        /// The operation that failed, in the -ing form.
        action: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A connection, a server or an endpoint that failed, in a sentence.
    #[error("{0}")]
    Failed(String),
    /// A signal ended the operation.
    #[error("interrupted")]
    Interrupted,
}

impl BackupError {
    /// Returns whether the input or the usage is wrong (exit code 2).
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Untidy { cause, .. } => cause.is_input(),
            Self::Refused(_)
            | Self::NoRoom(_)
            | Self::NotAStripe { .. }
            | Self::Version { .. }
            | Self::WrongKey { .. }
            | Self::NoKey { .. }
            | Self::ShortKey { .. }
            | Self::NotFound { .. } => true,
            _ => false,
        }
    }

    /// Returns whether a signal ended the operation.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Untidy { cause, .. } => cause.is_interrupted(),
            own => matches!(own, Self::Interrupted),
        }
    }

    /// Returns whether the error is an answer, and the answer is no (exit code 1).
    #[must_use]
    pub fn is_verdict(&self) -> bool {
        match self {
            Self::Untidy { cause, .. } => cause.is_verdict(),
            own => matches!(own, Self::Header { .. } | Self::Unusable(_)),
        }
    }

    /// Wraps an error of a connection to the export `name`.
    pub fn export(name: &str) -> impl Fn(ClientError) -> Self + '_ {
        move |source| match source {
            ClientError::Stopped => Self::Interrupted,
            source => Self::Export { name: name.to_owned(), source },
        }
    }

    /// Wraps an I/O error of `path`.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
