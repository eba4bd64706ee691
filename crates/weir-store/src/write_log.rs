//! A store that logs its changes, so that its content at each flush can be made again.
//!
//! ```text
//!   write, zeros, trim --> the store --> unflushed, in the order of the store
//!   durable write      --> the store --> the log, with FUA
//!   sync               --> the store --> the log: what was unflushed when it began, and a flush
//! ```
//!
//! Replayed up to a flush, the log gives the least that a loss of power then leaves: changes beyond the
//! flush, which a medium may or may not have, come later in the log.
//!
//! Changes of a logged store run one after the other. The log therefore has their order also where
//! they overlap. Syncs and reads wait for none of them.
//!
//! | module | holds |
//! |---|---|
//! | `format` | super block and entries |
//! | `file` | the file that entries are appended to |
//! | `pending` | changes without a flush |
//! | `read` | [`LogReader`] |
//! | `replay` | [`Replay`] of a log onto an image |

mod file;
mod format;
mod pending;
mod read;
mod replay;
#[cfg(test)]
mod tests;

pub use format::{Flags, SECTOR};
pub use read::{Entry, LogReader};
pub use replay::Replay;

use crate::Result;
use crate::pieces::index;
use crate::store::{Extent, Store};
use crate::sync::locked;
use file::LogFile;
use pending::{Change, Content, Log};
use std::path::Path;
use std::sync::{Arc, Mutex};
use weir_units::Bytes;

/// Maximum number of bytes of changes without a flush; beyond it, the oldest are logged without one.
const UNFLUSHED: usize = 64 << 20;

/// A [`Store`] whose changes go into a log of the format of `dm-log-writes`.
///
/// A change that fails is not in the log. A log that cannot be written fails all further changes and
/// syncs, so that it is never without one that its reader would expect.
#[derive(Debug)]
pub struct LoggedStore {
    store: Arc<dyn Store>,
    volume: String,
    log: Mutex<Log>,
}

impl LoggedStore {
    /// Logs all changes of a store, from now on, in a new file. Nothing else may change the store.
    ///
    /// # Errors
    ///
    /// [`crate::StoreError`] if the file is there, or cannot be made.
    pub fn create(store: Arc<dyn Store>, volume: &str, path: &Path) -> Result<Self> {
        Self::with_memory(store, volume, path, UNFLUSHED)
    }

    fn with_memory(store: Arc<dyn Store>, volume: &str, path: &Path, most: usize) -> Result<Self> {
        let mut file = LogFile::create(path)?;
        file.mark(&mark(volume, store.size()))?;
        file.publish()?;
        let log = Mutex::new(Log::new(file, most));
        Ok(Self { store, volume: volume.to_owned(), log })
    }

    /// Changes the store, and logs what it has then.
    fn change(
        &self,
        change: impl FnOnce(&dyn Store) -> Result<bool>,
        logged: impl FnOnce() -> Result<Vec<Change>>,
    ) -> Result<bool> {
        let mut log = locked(&self.log);
        log.file.check()?;
        let is_durable = change(&*self.store)?;
        let changes = logged().inspect_err(|error| log.file.break_off(error))?;
        match is_durable {
            _ if changes.is_empty() => {}
            true => log.add_durable(&changes)?,
            false => log.add(changes)?,
        }
        Ok(is_durable)
    }

    fn write(
        &self,
        offset: u64,
        data: &[u8],
        change: impl FnOnce(&dyn Store) -> Result<bool>,
    ) -> Result<bool> {
        self.change(change, || {
            let end = offset + data.len() as u64;
            if offset.is_multiple_of(SECTOR) && end.is_multiple_of(SECTOR) {
                let whole = (!data.is_empty()).then(|| data.to_vec());
                return Ok(whole
                    .map(|own| Change::new(offset, end, Content::Data(own)))
                    .into_iter()
                    .collect());
            }
            Ok(self.read_back(offset, end)?.into_iter().collect())
        })
    }

    fn zero(
        &self,
        (offset, len): (u64, u64),
        content: Content,
        change: impl FnOnce(&dyn Store) -> Result<bool>,
    ) -> Result<bool> {
        self.change(change, || {
            let end = offset + len;
            let (from, to) = (offset.next_multiple_of(SECTOR), end / SECTOR * SECTOR);
            if from >= to {
                return Ok(self.read_back(offset, end)?.into_iter().collect());
            }
            let mut changes = vec![Change::new(from, to, content)];
            changes.extend(self.read_back(offset, from)?);
            changes.extend(self.read_back(to, end)?);
            Ok(changes)
        })
    }

    /// Returns the content of the sectors of a range, none if it is empty. Behind the end of the volume
    /// are zeros.
    fn read_back(&self, from: u64, to: u64) -> Result<Option<Change>> {
        if from == to {
            return Ok(None);
        }
        let (from, to) = (from / SECTOR * SECTOR, to.next_multiple_of(SECTOR));
        let mut data = vec![0; index(to - from)];
        let inside = index(to.min(self.store.size().get()) - from);
        self.store.read_at(from, &mut data[..inside])?;
        Ok(Some(Change::new(from, to, Content::Data(data))))
    }
}

/// Returns the text that says from which size on a volume is logged.
fn mark(volume: &str, size: Bytes) -> String {
    format!("weir volume={volume} size={}", size.get())
}

/// Returns the size in a text of [`mark`].
fn size_in(text: &str) -> Option<u64> {
    let words = text.strip_prefix("weir ")?.split(' ');
    words.filter_map(|word| word.strip_prefix("size=")).find_map(|size| size.parse().ok())
}

impl Store for LoggedStore {
    fn size(&self) -> Bytes {
        self.store.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.store.read_at(offset, buf)
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.store.try_read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write(offset, data, |store| store.write_at(offset, data).map(|()| false)).map(drop)
    }

    fn write_durably(&self, offset: u64, data: &[u8]) -> Result<bool> {
        self.write(offset, data, |store| store.write_durably(offset, data))
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        let zero = |store: &dyn Store| store.write_zeroes(offset, len, may_trim).map(|()| false);
        self.zero((offset, len), Content::Zeros, zero).map(drop)
    }

    fn zero_durably(&self, offset: u64, len: u64, may_trim: bool) -> Result<bool> {
        let zero = |store: &dyn Store| store.zero_durably(offset, len, may_trim);
        self.zero((offset, len), Content::Zeros, zero)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        let trim = |store: &dyn Store| store.trim(offset, len).map(|()| false);
        self.zero((offset, len), Content::Discard, trim).map(drop)
    }

    fn sync(&self) -> Result<()> {
        let end = {
            let log = locked(&self.log);
            log.file.check()?;
            log.next()
        };
        self.store.sync()?;
        let mut log = locked(&self.log);
        log.file.check()?;
        log.flush(end)
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        let mut log = locked(&self.log);
        log.file.check()?;
        let (old, cut_from) = (self.store.size().get(), new.get().next_multiple_of(SECTOR));
        self.store.resize(new)?;
        let cut = (cut_from < old)
            .then(|| Change::new(cut_from, old.next_multiple_of(SECTOR), Content::Discard));
        log.resized(cut, &mark(&self.volume, new))
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.store.extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        self.store.allocated()
    }
}
