//! A Unix socket to listen on: taken over from a dead server, never from a living
//! one, and removed with its listener, if it is still the same.
//!
//! Looking whether a server lives and putting another socket into its place are two
//! steps, and so are looking whose socket it is and removing it. A lock, a file beside
//! the socket that is there no longer than that, makes one of each two.

use crate::error::ServerError;
use rustix::fs::{FlockOperation, flock};
use std::fs::{
    DirBuilder, File, Metadata, OpenOptions, Permissions, remove_file, symlink_metadata,
};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A Unix socket that is listened on.
#[derive(Debug)]
pub(crate) struct LocalSocket {
    pub(crate) listener: UnixListener,
    /// Absolute, if that can be known.
    pub(crate) path: PathBuf,
    /// Device and inode: another server may have put its own there since.
    identity: Option<(u64, u64)>,
}

impl LocalSocket {
    /// Listens at `path`.
    ///
    /// # Errors
    ///
    /// [`ServerError::SocketInUse`] if a server answers there, and
    /// [`ServerError::Listen`] with what the system says, naming `address`.
    pub(crate) fn bind(path: &Path, address: &str) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Listen { address: address.to_owned(), source };
        let _lock = PathLock::take(path).map_err(failed)?;
        if let Ok(meta) = symlink_metadata(path) {
            if !meta.file_type().is_socket() {
                let reason = "this path exists and is not a socket; give another";
                return Err(failed(io::Error::other(reason)));
            }
            match UnixStream::connect(path) {
                Ok(_) => return Err(ServerError::SocketInUse { path: path.to_owned() }),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    remove_file(path).map_err(failed)?;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let identity = symlink_metadata(&path).ok().as_ref().map(identity);
        Ok(Self { listener, path, identity })
    }

    /// Lets only this user connect.
    pub(crate) fn restrict(&self) -> io::Result<()> {
        std::fs::set_permissions(&self.path, Permissions::from_mode(0o600))
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // A socket that is left behind is taken over by the next process.
        let Ok(_lock) = PathLock::take(&self.path) else { return };
        let now = symlink_metadata(&self.path).ok().as_ref().map(identity);
        if now.is_some() && now == self.identity {
            let _ = remove_file(&self.path);
        }
    }
}

/// The right to put a socket at a path or to remove it.
struct PathLock {
    path: PathBuf,
    _file: File,
}

impl PathLock {
    /// Waits until no other process has it.
    fn take(socket: &Path) -> io::Result<Self> {
        let mut path = socket.to_owned();
        path.as_mut_os_string().push(".lock");
        loop {
            let mut options = OpenOptions::new();
            let file = options.write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // The process that had it has removed it, and another may have made a new one.
            let there = symlink_metadata(&path).ok().as_ref().map(identity);
            if there == Some(identity(&file.metadata()?)) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for PathLock {
    fn drop(&mut self) {
        let _ = remove_file(&self.path);
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Makes `folder` for this user alone if it is not there.
///
/// # Errors
///
/// Why it can't be trusted: in a folder that everybody writes to, somebody else may
/// have made it first, to be asked in the server's place or to be told what is sent.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    trusted_folder(folder)
}

/// Checks that `folder` is this user's alone.
///
/// # Errors
///
/// Describes why a folder cannot be trusted.
pub(crate) fn trusted_folder(folder: &Path) -> io::Result<()> {
    let meta = symlink_metadata(folder)?;
    let own = meta.uid() == rustix::process::getuid().as_raw();
    if meta.is_dir() && own && meta.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{} is not a folder that only this user can access (mode 0700); remove it, or give \
             --control another path",
            folder.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn a_socket_that_another_server_took_over_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let first = LocalSocket::bind(&path, "a").unwrap();
        remove_file(&path).unwrap();
        let second = LocalSocket::bind(&path, "a").unwrap();
        drop(first);
        assert!(UnixStream::connect(&path).is_ok());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn one_of_many_takes_a_dead_servers_socket_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        for _ in 0..50 {
            drop(UnixListener::bind(&path).unwrap());
            let (begin, all) = (Barrier::new(4), Barrier::new(4));
            let bind = || {
                begin.wait();
                let bound = LocalSocket::bind(&path, "a");
                all.wait();
                match &bound {
                    Ok(_) => assert!(UnixStream::connect(&path).is_ok()),
                    Err(error) => assert!(matches!(error, ServerError::SocketInUse { .. })),
                }
                // The loser must not remove the winner's socket.
                usize::from(bound.is_ok())
            };
            let won: usize = std::thread::scope(|scope| {
                let binding: Vec<_> = (0..4).map(|_| scope.spawn(bind)).collect();
                binding.into_iter().map(|one| one.join().unwrap()).sum()
            });
            assert_eq!(won, 1);
            let left: Vec<_> = folder.path().read_dir().unwrap().collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }

    #[test]
    fn a_folder_that_others_may_enter_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        private_folder(&own).unwrap();
        private_folder(&own).unwrap();
        std::fs::set_permissions(&own, Permissions::from_mode(0o755)).unwrap();
        let error = private_folder(&own).unwrap_err().to_string();
        assert!(error.ends_with(
            "own is not a folder that only this user can access (mode 0700); remove it, or give \
             --control another path"
        ));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(private_folder(&link).is_err());
    }
}
