//! Errors of mounting and unmounting: kinds to match on, messages and hints.

use std::io;
use std::path::PathBuf;

/// An error of mounting or unmounting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The mount directory does not exist or is not a directory.
    #[error("cannot mount at {}: {source}", .dir.display())]
    NoDirectory {
        /// The mount directory.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Files in the mount directory would be hidden.
    #[error("cannot mount at {}: it is not empty: it contains {found:?}", .dir.display())]
    NotEmpty {
        /// The mount directory.
        dir: PathBuf,
        /// An entry found in it.
        found: String,
    },
    /// A working mount of Weir exists at the directory.
    #[error("{} is mounted already", .dir.display())]
    Mounted {
        /// The mount directory.
        dir: PathBuf,
    },
    /// A dead mount that is not Weir's exists at the directory.
    #[error("{} is a dead mount of type {kind}", .dir.display())]
    DeadMount {
        /// The mount directory.
        dir: PathBuf,
        /// File system type of the dead mount.
        kind: String,
    },
    /// The name of a top directory is invalid or used twice.
    #[error("top directory {name:?} {problem}")]
    Name {
        /// The name.
        name: String,
        /// Description of the problem.
        problem: &'static str,
    },
    /// The backing folder cannot be used.
    #[error("backing folder {}: {context}", .dir.display())]
    Backing {
        /// The backing folder.
        dir: PathBuf,
        /// The operation that failed.
        context: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Another mount uses the backing folder.
    #[error("backing folder {} is in use by another mount", .dir.display())]
    BackingInUse {
        /// The backing folder.
        dir: PathBuf,
    },
    /// An existing file exceeds the limits.
    #[error("{}: {reason}", .path.display())]
    Found {
        /// The file, in the backing folder.
        path: PathBuf,
        /// Description of the problem.
        reason: String,
    },
    /// The backing folder is inside the mount directory, or the reverse.
    #[error("the backing folder {} and the mount {} are nested", .backing.display(), .dir.display())]
    Nested {
        /// The backing folder.
        backing: PathBuf,
        /// The mount directory.
        dir: PathBuf,
    },
    /// FUSE is missing or not permitted.
    #[error("cannot open /dev/fuse: {source}")]
    NoFuse {
        /// The system's error.
        source: io::Error,
    },
    /// The program `fusermount3` is missing.
    #[error("cannot run fusermount3, which mounts for users other than root: {source}")]
    NoHelper {
        /// The system's error.
        source: io::Error,
    },
    /// `fusermount3` refused.
    #[error("fusermount3: {said}")]
    Helper {
        /// Its error output.
        said: String,
    },
    /// Open files were not closed in time. The mount has been detached.
    #[error("{} is still in use", .dir.display())]
    InUse {
        /// The mount directory.
        dir: PathBuf,
    },
    /// Another system call failed.
    #[error("{context}: {source}")]
    Io {
        /// The operation that failed.
        context: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// The kinds of [`MountError`], to match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// See [`MountError::NoDirectory`].
    NoDirectory,
    /// See [`MountError::NotEmpty`].
    NotEmpty,
    /// See [`MountError::Mounted`].
    Mounted,
    /// See [`MountError::DeadMount`].
    DeadMount,
    /// See [`MountError::Name`].
    Name,
    /// See [`MountError::Backing`].
    Backing,
    /// See [`MountError::BackingInUse`].
    BackingInUse,
    /// See [`MountError::Found`].
    Found,
    /// See [`MountError::Nested`].
    Nested,
    /// See [`MountError::NoFuse`].
    NoFuse,
    /// See [`MountError::NoHelper`].
    NoHelper,
    /// See [`MountError::Helper`].
    Helper,
    /// See [`MountError::InUse`].
    InUse,
    /// See [`MountError::Io`].
    Io,
}

impl MountError {
    /// Returns the kind, to match on.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoDirectory { .. } => ErrorKind::NoDirectory,
            Self::NotEmpty { .. } => ErrorKind::NotEmpty,
            Self::Mounted { .. } => ErrorKind::Mounted,
            Self::DeadMount { .. } => ErrorKind::DeadMount,
            Self::Name { .. } => ErrorKind::Name,
            Self::Backing { .. } => ErrorKind::Backing,
            Self::BackingInUse { .. } => ErrorKind::BackingInUse,
            Self::Found { .. } => ErrorKind::Found,
            Self::Nested { .. } => ErrorKind::Nested,
            Self::NoFuse { .. } => ErrorKind::NoFuse,
            Self::NoHelper { .. } => ErrorKind::NoHelper,
            Self::Helper { .. } => ErrorKind::Helper,
            Self::InUse { .. } => ErrorKind::InUse,
            Self::Io { .. } => ErrorKind::Io,
        }
    }

    /// Returns advice, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoDirectory { .. } => Some("name a directory that exists: mkdir it first"),
            Self::NotEmpty { .. } => Some("choose an empty directory"),
            Self::Mounted { .. } => Some("choose another directory, or unmount it: umount DIR"),
            Self::DeadMount { .. } => Some("unmount it: umount -l DIR, or fusermount3 -uz DIR"),
            Self::Name { .. } => Some("use distinct names of at most 255 bytes, without '/'"),
            Self::BackingInUse { .. } => Some("unmount the other mount first"),
            Self::Found { .. } => Some("give it more in the layout, or move the file elsewhere"),
            Self::Nested { .. } => Some("mount outside of the data directory"),
            Self::NoFuse { .. } => {
                Some("load FUSE with 'modprobe fuse'; a container needs --device /dev/fuse")
            }
            Self::NoHelper { .. } => Some("install it (package fuse3), or mount as root"),
            Self::Helper { said } if said.contains("user_allow_other") => {
                Some("mount for yourself alone, or put 'user_allow_other' into /etc/fuse.conf")
            }
            Self::InUse { .. } => Some("close the programs that have open files there"),
            Self::Helper { .. } | Self::Backing { .. } | Self::Io { .. } => None,
        }
    }

    /// Returns whether the request is at fault, rather than the machine.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::NoDirectory { .. }
                | Self::NotEmpty { .. }
                | Self::Mounted { .. }
                | Self::DeadMount { .. }
                | Self::Name { .. }
                | Self::Found { .. }
                | Self::Nested { .. }
        )
    }

    pub(crate) fn io(context: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { context, source: source.into() }
    }
}
