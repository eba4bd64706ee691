//! The lock of a raw volume, by which one process at a time changes its label.
//!
//! A label is read, changed and written; two processes that do so at once would lose each other's
//! stripes. NBD has no lock, so a lock is a name in the kernel, of an abstract socket: it depends on
//! no folder and no user, leaves no file, and goes with its process, however that ends. Processes of
//! one network namespace see each other; writers on different machines do not.
//!
//! The name is the volume's own number, which its label has. So each address of a volume has the same
//! lock. Full backups have such a lock too: a prune holds it while it looks for differentials and removes
//! the backup, and a differential while it shows itself and looks for the backup.

use crate::cancel::Cancel;
use crate::error::BackupError;
use crate::format::BackupId;
use crate::label::{Scope, VolumeId};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::Duration;

/// How often a lock is tried that is held for a short time.
const TICK: Duration = Duration::from_millis(20);
/// The most attempts at it.
const ATTEMPTS: u32 = 500;

/// A lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct VolumeLock {
    _socket: UnixDatagram,
}

impl VolumeLock {
    /// Takes the lock of a volume. `name` is what messages call it.
    ///
    /// # Errors
    /// When another process has it, or the kernel refuses.
    pub(super) fn take(volume: VolumeId, name: &str) -> Result<Self, BackupError> {
        Self::bind(&volume.to_string()).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => BackupError::Refused(format!(
                "another backup or prune is writing to {name}; wait until it finishes, or give another \
                 volume"
            )),
            _ => BackupError::System { action: "locking a volume", source: error },
        })
    }

    /// Takes the lock that guards volumes without a label: they have no number yet. Waits for it.
    ///
    /// # Errors
    /// When it does not become free, or `cancel` ends the wait.
    pub(super) fn take_for_new(cancel: &Cancel) -> Result<Self, BackupError> {
        Self::wait("new", cancel, || {
            "another backup is preparing a new volume and does not finish; try again".to_owned()
        })
    }

    /// Waits for a lock; `refused` is the message if it does not become free.
    fn wait(
        name: &str,
        cancel: &Cancel,
        refused: impl FnOnce() -> String,
    ) -> Result<Self, BackupError> {
        for _ in 0..ATTEMPTS {
            match Self::bind(name) {
                Ok(own) => return Ok(own),
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                Err(source) => return Err(BackupError::System { action: "locking", source }),
            }
            if cancel.is_set() {
                return Err(BackupError::Interrupted);
            }
            #[expect(clippy::disallowed_methods, reason = "the other process is soon done")]
            thread::sleep(TICK);
        }
        Err(BackupError::Refused(refused()))
    }

    /// Returns whether a process has the lock of a volume, as far as that can be told.
    pub(super) fn is_taken(volume: VolumeId) -> bool {
        let found = UnixDatagram::unbound()
            .and_then(|own| own.connect_addr(&address(&volume.to_string())?));
        !matches!(found, Err(error) if error.kind() == ErrorKind::ConnectionRefused)
    }

    fn bind(name: &str) -> io::Result<Self> {
        Ok(Self { _socket: UnixDatagram::bind_addr(&address(name)?)? })
    }
}

/// The lock of a full backup, for the time in which it is decided whether it is kept.
#[derive(Debug)]
pub struct BackupLock {
    _lock: VolumeLock,
}

impl BackupLock {
    /// Waits for the lock of a backup, which others on this machine hold for a short time.
    ///
    /// # Errors
    /// When it does not become free, or `cancel` ends the wait.
    pub fn take(backup: BackupId, cancel: &Cancel) -> Result<Self, BackupError> {
        let lock = VolumeLock::wait(&format!("backup-{backup}"), cancel, || {
            format!("another process prunes backup {backup}, or builds on it; try again")
        });
        Ok(Self { _lock: lock? })
    }
}

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("weir-volume-{name}"))
}

/// Returns the scope in which this process's locks are seen: a network namespace, for as long as the
/// kernel runs.
pub(super) fn scope() -> Option<Scope> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let space = fs::read_link("/proc/self/ns/net").ok()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&boot).update(space.as_os_str().as_bytes());
    Scope::new(hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_has_one_writer_at_a_time() {
        let volume = VolumeId::fresh().expect("random bytes");
        assert!(!VolumeLock::is_taken(volume));
        let own = VolumeLock::take(volume, "v").expect("free");
        let error = VolumeLock::take(volume, "v").expect_err("taken").to_string();
        assert!(error.starts_with("another backup or prune is writing to v;"), "{error}");
        // Looking at a lock neither takes it nor uses it up.
        assert!((0..1000).all(|_| VolumeLock::is_taken(volume)));
        drop(own);
        assert!(!VolumeLock::is_taken(volume));
        VolumeLock::take(volume, "v").expect("free again");
    }

    #[test]
    fn the_scope_of_a_process_stays_the_same() {
        assert!(scope().is_some());
        assert_eq!(scope(), scope());
    }
}
