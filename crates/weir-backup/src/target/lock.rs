//! The lock of a raw volume, by which one process at a time changes its label.
//!
//! A label is read, changed and written; two processes that do so at once would lose each other's
//! stripes. NBD has no lock, so the lock is a file of this machine. It is released with the process,
//! however that ends. Writers on different machines do not see each other.

use crate::error::BackupError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::PathBuf;
use weir_proto::Uri;
use weir_proto::uri::Server;

/// The lock of a raw volume, held until it is dropped.
#[derive(Debug)]
pub(super) struct VolumeLock {
    _file: File,
}

impl VolumeLock {
    /// Takes the lock of an export.
    ///
    /// # Errors
    /// When another process has it, or the file cannot be made.
    pub(super) fn take(uri: &Uri, name: &str) -> Result<Self, BackupError> {
        let path = path(uri);
        let failed = |source| BackupError::File { action: "locking", path: path.clone(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(Errno::WOULDBLOCK) => Err(BackupError::Refused(format!(
                "another backup or prune is writing to {name}; wait until it finishes, or give another \
                 volume"
            ))),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// Returns the lock file of an export: the same for each way to write the path of its socket.
fn path(uri: &Uri) -> PathBuf {
    let server = match &uri.server {
        Server::Unix { socket } => {
            let full = std::fs::canonicalize(socket);
            full.map_or_else(|_| socket.clone(), |path| path.display().to_string())
        }
        Server::Tcp { host, port } => format!("{host}:{port}"),
    };
    let hash = blake3::hash(format!("{server}\n{}", uri.export).as_bytes()).to_hex();
    let folder = format!("weir-volumes-{}", rustix::process::getuid().as_raw());
    std::env::temp_dir().join(folder).join(format!("{}.lock", &hash[..32]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_has_one_writer_at_a_time() {
        let uri: Uri =
            format!("nbd://127.0.0.1:9/lock-{}", std::process::id()).parse().expect("a URI");
        let own = VolumeLock::take(&uri, "v").expect("free");
        let error = VolumeLock::take(&uri, "v").expect_err("taken").to_string();
        assert!(error.starts_with("another backup or prune is writing to v;"), "{error}");
        drop(own);
        VolumeLock::take(&uri, "v").expect("free again");
        drop(std::fs::remove_file(path(&uri)));
    }
}
