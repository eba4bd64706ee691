//! What can keep a mount from coming about, or from ending, as kinds with a message for a
//! person and a hint about what to do.

use std::io;
use std::path::PathBuf;

/// Why a mount could not be made or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// There is no directory to mount at.
    #[error("cannot mount at {}: {source}", .dir.display())]
    NoDirectory {
        /// Where it was to be mounted.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It would hide what is in the directory.
    #[error("cannot mount at {}: it is not empty, it holds {found:?}", .dir.display())]
    NotEmpty {
        /// Where it was to be mounted.
        dir: PathBuf,
        /// The first thing found in it.
        found: String,
    },
    /// There is a mount of Weir at the directory, and it works.
    #[error("{} is mounted already", .dir.display())]
    Mounted {
        /// Where it was to be mounted.
        dir: PathBuf,
    },
    /// There is a mount of something else at the directory, and nobody serves it.
    #[error("{} is a dead mount of type {kind}", .dir.display())]
    DeadMount {
        /// Where it was to be mounted.
        dir: PathBuf,
        /// The type of its file system.
        kind: String,
    },
    /// A name that cannot be a directory's, or that two of them have.
    #[error("top directory {name:?} {problem}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The folder with the bytes cannot be used.
    #[error("backing folder {}: {context}", .dir.display())]
    Backing {
        /// The folder.
        dir: PathBuf,
        /// What went wrong.
        context: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Another mount has the folder with the bytes.
    #[error("backing folder {} is in use by another mount", .dir.display())]
    BackingInUse {
        /// The folder.
        dir: PathBuf,
    },
    /// A file that is there already cannot be, by the limits.
    #[error("{}: {reason}", .path.display())]
    Found {
        /// The file, in the backing folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The folder with the bytes is in the mount, or the mount in it.
    #[error("backing folder {} and mount {} are one in the other", .backing.display(), .dir.display())]
    Nested {
        /// The folder.
        backing: PathBuf,
        /// Where it was to be mounted.
        dir: PathBuf,
    },
    /// The system has no FUSE, or does not give it to us.
    #[error("cannot open /dev/fuse: {source}")]
    NoFuse {
        /// What the system said.
        source: io::Error,
    },
    /// The program that mounts for users is not there.
    #[error("cannot run fusermount3, which mounts for users that are not root: {source}")]
    NoHelper {
        /// What the system said.
        source: io::Error,
    },
    /// The program that mounts for users refused.
    #[error("fusermount3: {said}")]
    Helper {
        /// What it said.
        said: String,
    },
    /// There are open files, and they were not closed in time. The mount no longer has a name.
    #[error("{} is still in use", .dir.display())]
    InUse {
        /// Where it was mounted.
        dir: PathBuf,
    },
    /// The system refused for any other reason.
    #[error("{context}: {source}")]
    Io {
        /// What was being done.
        context: &'static str,
        /// What the system said.
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
    /// The kind, to match on.
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

    /// What to do about it, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoDirectory { .. } => Some("name a directory that exists: mkdir it first"),
            Self::NotEmpty { .. } => Some("choose an empty directory"),
            Self::Mounted { .. } => Some("choose another directory, or unmount it: umount DIR"),
            Self::DeadMount { .. } => Some("unmount it: umount -l DIR, or fusermount3 -uz DIR"),
            Self::Name { .. } => Some("use names that differ, of at most 255 bytes, without '/'"),
            Self::BackingInUse { .. } => Some("end the other mount first"),
            Self::Found { .. } => Some("give it more in the layout, or move the file elsewhere"),
            Self::Nested { .. } => Some("mount outside of the data directory"),
            Self::NoFuse { .. } => {
                Some("load FUSE with 'modprobe fuse'; a container needs --device /dev/fuse")
            }
            Self::NoHelper { .. } => Some("install it (package fuse3), or mount as root"),
            Self::Helper { said } if said.contains("user_allow_other") => {
                Some("mount for yourself alone, or put 'user_allow_other' into /etc/fuse.conf")
            }
            Self::InUse { .. } => Some("end the programs that have files open there"),
            Self::Helper { .. } | Self::Backing { .. } | Self::Io { .. } => None,
        }
    }

    /// Whether what was given is wrong, and not the machine.
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
