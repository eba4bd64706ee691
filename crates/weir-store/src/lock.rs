//! One process per data directory.
//!
//! The lock is the system's, so it ends with the process however that ends; the
//! file's content only tells the next one who is there.

use crate::{Result, StoreError, disk};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(crate) const FILE: &str = "lock";
const MAX_LEN: u64 = 1024;

/// Held as long as this lives.
#[derive(Debug)]
pub(crate) struct DirLock {
    _file: File,
}

impl DirLock {
    pub(crate) fn take(dir: &Path, holder: &str) -> Result<Self> {
        let path = dir.join(FILE);
        let failed = |e: std::io::Error| StoreError::io("lock", &path, e);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(locked_by_another(dir, &path)?),
            Err(e) => return Err(failed(e.into())),
        }
        let content = format!("process {} ({holder})\n", std::process::id());
        file.set_len(0).and_then(|()| file.write_all_at(content.as_bytes(), 0)).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

fn locked_by_another(dir: &Path, path: &Path) -> Result<StoreError> {
    let content = disk::read_small(path, MAX_LEN)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&content);
    let holder = match text.lines().next() {
        Some(line) => line.to_owned(),
        // Between taking the lock and saying so.
        None => "a process that is just starting".to_owned(),
    };
    Ok(StoreError::Locked { dir: dir.to_owned(), holder })
}
