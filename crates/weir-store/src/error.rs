//! Errors of a store, as kinds that a server can map to an errno,
//! a message for a person, and a hint about what to do.

use std::io;
use std::path::{Path, PathBuf};
use weir_units::Bytes;

/// An error of a store, a volume or a data directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A request that is not inside the volume. Nothing was read or written.
    #[error("{len} bytes at offset {offset} reach past the end of the volume ({size} bytes)")]
    OutOfRange {
        /// The first byte of the request.
        offset: u64,
        /// The length of the request in bytes.
        len: u64,
        /// The size of the volume in bytes.
        size: u64,
    },
    /// The medium is full. A part of a write may have been stored.
    #[error("no space left: {context}")]
    NoSpace {
        /// The operation that failed, and its file.
        context: String,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused for any other reason.
    #[error("{context}")]
    Io {
        /// The operation that failed, and its file.
        context: String,
        /// The system's error.
        source: io::Error,
    },
    /// The contents of the medium are damaged.
    #[error("{what}")]
    Damaged {
        /// The file, and the damage.
        what: String,
        /// The remedy.
        hint: &'static str,
    },
    /// A block whose bytes are not those that were written.
    #[error(
        "block at offset {offset} of volume {volume} is damaged: its checksum is {expected:08x}, its \
         bytes have {found:08x}"
    )]
    DamagedBlock {
        /// The name of the volume.
        volume: String,
        /// The first byte of the block.
        offset: u64,
        /// The checksum that the block was written with.
        expected: u32,
        /// The checksum of the bytes that are there.
        found: u32,
    },
    /// Checksums for a volume that records its written pages.
    #[error("volume {volume} has layers of pages, which have no checksums")]
    NoChecksums {
        /// The name of the volume.
        volume: String,
    },
    /// Another process has the data directory.
    #[error("data directory {} is in use by {holder}", .dir.display())]
    Locked {
        /// The data directory.
        dir: PathBuf,
        /// The process, as it described itself.
        holder: String,
    },
    /// Written by a release with another format.
    #[error("{} has format {found:?}, this release reads {}", .path.display(), listed(known))]
    Version {
        /// The file that says so.
        path: PathBuf,
        /// The format found.
        found: String,
        /// The formats that this release reads.
        known: &'static [&'static str],
    },
    /// A folder that is no data directory, where one is needed.
    #[error("{} {found}", .dir.display())]
    NoFolder {
        /// The folder.
        dir: PathBuf,
        /// The reason, for example `does not exist`.
        found: &'static str,
    },
    /// A folder that holds something else.
    #[error("{} is not a Weir data directory and not empty: it holds {found:?}", .dir.display())]
    Foreign {
        /// The folder.
        dir: PathBuf,
        /// The first thing found in it.
        found: String,
    },
    /// A name that cannot be a volume's.
    #[error("volume name {name:?} {problem}")]
    Name {
        /// The name.
        name: String,
        /// The reason.
        problem: &'static str,
    },
    /// A size beyond what a store of files takes.
    #[error("a volume of {size} is larger than the largest possible, {max}")]
    TooLarge {
        /// The size asked for.
        size: Bytes,
        /// The largest.
        max: Bytes,
    },
    /// A change of what is only there to be read. Nothing was changed.
    #[error("a snapshot or a frozen view is read-only")]
    ReadOnly,
    /// A snapshot that is not there, or not where it is asked for.
    #[error("snapshot {snapshot} {problem}")]
    Snapshot {
        /// Its number.
        snapshot: u64,
        /// The reason.
        problem: &'static str,
    },
    /// A frozen view that does not show the volume any more as it was.
    #[error("the frozen view is lost: {reason}")]
    FrozenLost {
        /// Why.
        reason: String,
    },
}

/// The kinds of [`StoreError`], without their context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// See [`StoreError::OutOfRange`].
    OutOfRange,
    /// See [`StoreError::NoSpace`].
    NoSpace,
    /// See [`StoreError::Io`].
    Io,
    /// See [`StoreError::Damaged`].
    Damaged,
    /// See [`StoreError::DamagedBlock`].
    DamagedBlock,
    /// See [`StoreError::NoChecksums`].
    NoChecksums,
    /// See [`StoreError::Locked`].
    Locked,
    /// See [`StoreError::Version`].
    Version,
    /// See [`StoreError::NoFolder`].
    NoFolder,
    /// See [`StoreError::Foreign`].
    Foreign,
    /// See [`StoreError::Name`].
    Name,
    /// See [`StoreError::TooLarge`].
    TooLarge,
    /// See [`StoreError::ReadOnly`].
    ReadOnly,
    /// See [`StoreError::Snapshot`].
    Snapshot,
    /// See [`StoreError::FrozenLost`].
    FrozenLost,
}

/// Lists names in a sentence.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

impl StoreError {
    /// Returns the kind, to match on or to map to a protocol's codes.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OutOfRange { .. } => ErrorKind::OutOfRange,
            Self::NoSpace { .. } => ErrorKind::NoSpace,
            Self::Io { .. } => ErrorKind::Io,
            Self::Damaged { .. } => ErrorKind::Damaged,
            Self::DamagedBlock { .. } => ErrorKind::DamagedBlock,
            Self::NoChecksums { .. } => ErrorKind::NoChecksums,
            Self::Locked { .. } => ErrorKind::Locked,
            Self::Version { .. } => ErrorKind::Version,
            Self::NoFolder { .. } => ErrorKind::NoFolder,
            Self::Foreign { .. } => ErrorKind::Foreign,
            Self::Name { .. } => ErrorKind::Name,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::ReadOnly => ErrorKind::ReadOnly,
            Self::Snapshot { .. } => ErrorKind::Snapshot,
            Self::FrozenLost { .. } => ErrorKind::FrozenLost,
        }
    }

    /// Returns the remedy, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::OutOfRange { .. } | Self::Io { .. } | Self::Snapshot { .. } => None,
            Self::NoSpace { .. } => Some("free space on the file system"),
            Self::Damaged { hint, .. } => Some(hint),
            Self::DamagedBlock { .. } => {
                Some("restore the block from a backup; a write of the whole block repairs it")
            }
            Self::NoChecksums { .. } => {
                Some("remove checksums from the volume, or use another name")
            }
            Self::Locked { .. } => Some("stop that process or choose another data directory"),
            Self::Version { .. } => Some("use the release that wrote it, or an empty directory"),
            Self::NoFolder { .. } => Some("give the folder of weir serve --data"),
            Self::Foreign { .. } => Some("choose an empty directory, or one that Weir created"),
            Self::Name { .. } => {
                Some("use 1 to 128 letters, digits, '.', '_' or '-', and no '.' in front")
            }
            Self::TooLarge { .. } => Some("choose a smaller size"),
            Self::ReadOnly => Some("change the volume, or a copy of the snapshot"),
            Self::FrozenLost { .. } => Some("freeze the volume again"),
        }
    }

    /// Wraps a system error about `path`. A full medium is a kind of its own.
    pub(crate) fn io(verb: &str, path: &Path, source: io::Error) -> Self {
        let context = format!("cannot {verb} {}", path.display());
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::NoSpace { context, source }
            }
            _ => Self::Io { context, source },
        }
    }
}
