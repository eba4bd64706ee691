//! The journal, which makes records durable: an embedded database in the data directory, and a
//! thread that commits concurrent changes together.
//!
//! A commit needs space, also one that removes records. A file of `RESERVE` bytes beside the database
//! keeps some, so that a full disk can be cleared. While that file cannot be kept, the journal is full:
//! the service accepts only operations that need no records or remove some.

use crate::record::Key;
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableTable, StorageBackend, TableDefinition, TableError};
use serde::Serialize;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
/// Cache size of the database in bytes. It is small because the database is read only once.
const CACHE: usize = 4 << 20;
/// Space that is kept for the removal of records.
const RESERVE: usize = 2 << 20;

/// A failure of the journal.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub struct JournalError {
    text: String,
    /// The disk is full.
    is_full: bool,
}

impl JournalError {
    fn new(text: impl std::fmt::Display) -> Self {
        Self { text: text.to_string(), is_full: false }
    }

    fn of_database(error: impl Into<redb::Error>) -> Self {
        let error = error.into();
        let is_full = match &error {
            redb::Error::Io(error) => is_full(error),
            _ => false,
        };
        Self { text: error.to_string(), is_full }
    }

    fn within(self, path: &Path) -> Self {
        let text = format!("the blob journal {}: {}", path.display(), self.text);
        Self { text, ..self }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// A change of a record: its new value, or its removal.
#[derive(Debug, Clone)]
pub struct Change {
    key: Key,
    value: Option<Value>,
}

impl Change {
    /// Sets a record.
    #[must_use]
    pub fn put(key: Key, record: &impl Serialize) -> Self {
        // Serialisation cannot fail: records are plain structures of texts and numbers.
        Self { key, value: serde_json::to_value(record).ok() }
    }

    /// Removes a record.
    #[must_use]
    pub const fn remove(key: Key) -> Self {
        Self { key, value: None }
    }

    /// Applies the change to records in memory.
    #[cfg(test)]
    pub(crate) fn applied(
        self,
        mut records: std::collections::BTreeMap<Key, Value>,
    ) -> std::collections::BTreeMap<Key, Value> {
        match self.value {
            Some(value) => drop(records.insert(self.key, value)),
            None => drop(records.remove(&self.key)),
        }
        records
    }
}

/// Changes that are committed together, and the channel for the result.
type Batch = (Vec<Change>, oneshot::Sender<Result<(), JournalError>>);

/// The storage of records; it may be in memory only.
#[derive(Debug)]
pub struct Journal {
    sender: Option<Sender<Batch>>,
    thread: Option<JoinHandle<()>>,
    is_full: Arc<AtomicBool>,
}

impl Journal {
    /// Creates a journal that stores nothing.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { sender: None, thread: None, is_full: Arc::default() }
    }

    /// Opens or creates the journal file and returns its records. It opens on a full disk, too.
    ///
    /// # Errors
    ///
    /// [`JournalError`].
    pub fn open(path: &Path) -> Result<(Self, Vec<(Key, Value)>), JournalError> {
        let is_full = Arc::new(AtomicBool::new(false));
        let (writer, records) = Writer::open(path, &is_full).map_err(|error| error.within(path))?;
        let (sender, inbox) = channel();
        let thread = std::thread::Builder::new()
            .name("weir-journal".to_owned())
            .spawn(move || run(writer, &inbox))
            .map_err(|error| JournalError::new(error).within(path))?;
        Ok((Self { sender: Some(sender), thread: Some(thread), is_full }, records))
    }

    /// Returns whether the disk has no space for further records.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// Checks that there is space for further records.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if the disk is full.
    pub async fn check_room(&self) -> Result<(), JournalError> {
        if self.is_full() {
            self.commit(Vec::new()).await?;
        }
        if self.is_full() { Err(JournalError::new(FULL)) } else { Ok(()) }
    }

    /// Makes changes durable, all or none.
    ///
    /// # Errors
    ///
    /// [`JournalError`]: none of the changes is durable. If the disk is full, they are tried again with
    /// the next ones; after another failure, all later commits fail.
    pub async fn commit(&self, changes: Vec<Change>) -> Result<(), JournalError> {
        let Some(sender) = &self.sender else { return Ok(()) };
        let (told, heard) = oneshot::channel();
        let ended = || JournalError::new("the journal has stopped");
        sender.send((changes, told)).map_err(|_| ended())?;
        heard.await.map_err(|_| ended())?
    }
}

/// The reason for which operations are refused on a full disk.
const FULL: &str = "the disk of the data folder is full: reads and deletes are served, and nothing else \
                    until there is space";

impl Drop for Journal {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn run(mut writer: Writer, inbox: &Receiver<Batch>) {
    let mut failed: Option<JournalError> = None;
    while let Ok(first) = inbox.recv() {
        let mut batches = vec![first];
        batches.extend(inbox.try_iter());
        let changes = batches.iter_mut().flat_map(|(changes, _)| std::mem::take(changes)).collect();
        // After a failed commit, the state in memory is ahead of the journal, so later changes must
        // fail as well.
        let result = match &failed {
            Some(error) => Err(error.clone()),
            None => writer.write(changes),
        };
        if let Err(error) = &result
            && !error.is_full
        {
            failed.get_or_insert_with(|| error.clone());
        }
        for (_, told) in batches {
            // The request may have been cancelled.
            drop(told.send(result.clone()));
        }
    }
}

/// The database and its reserve.
struct Writer {
    path: PathBuf,
    /// `None` after a failure. A database that failed has to be opened again.
    database: Option<Database>,
    /// Changes that a full disk has not taken. Later changes may depend on them.
    owed: Vec<Change>,
    has_reserve: bool,
    is_full: Arc<AtomicBool>,
}

impl Writer {
    fn open(
        path: &Path,
        is_full: &Arc<AtomicBool>,
    ) -> Result<(Self, Vec<(Key, Value)>), JournalError> {
        let (path, is_full) = (path.to_owned(), Arc::clone(is_full));
        let (database, owed, has_reserve) = (None, Vec::new(), false);
        let mut writer = Self { path, database, owed, has_reserve, is_full };
        let mut opened = open(&writer.path);
        if matches!(&opened, Err(error) if error.is_full) && writer.release() {
            opened = open(&writer.path);
        }
        let records = match opened {
            Ok(database) => {
                let records = read(&database)?;
                writer.database = Some(database);
                records
            }
            Err(error) if error.is_full => read_copy(&writer.path)?,
            Err(error) => return Err(error),
        };
        writer.keep_reserve();
        Ok((writer, records))
    }

    /// Writes changes, and those that an earlier call has not written. Uses the reserve if there is no
    /// other space.
    fn write(&mut self, changes: Vec<Change>) -> Result<(), JournalError> {
        self.owed.extend(changes);
        let mut result = self.try_write();
        if matches!(&result, Err(error) if error.is_full) && self.release() {
            result = self.try_write();
        }
        if result.is_ok() {
            self.owed.clear();
        }
        self.keep_reserve();
        result
    }

    fn try_write(&mut self) -> Result<(), JournalError> {
        let database = match self.database.take() {
            Some(database) => database,
            None => open(&self.path)?,
        };
        if !self.owed.is_empty() {
            write(&database, &self.owed)?;
        }
        self.database = Some(database);
        Ok(())
    }

    fn reserve(&self) -> PathBuf {
        self.path.with_extension("reserve")
    }

    /// Makes space by removing the reserve. Returns whether there was one.
    fn release(&mut self) -> bool {
        self.has_reserve = false;
        fs::remove_file(self.reserve()).is_ok()
    }

    /// Creates the reserve again if there is space for it.
    fn keep_reserve(&mut self) {
        if !self.has_reserve {
            let path = self.reserve();
            let is_there = fs::metadata(&path).is_ok_and(|file| file.len() == RESERVE as u64);
            self.has_reserve = is_there || fill(&path).is_ok();
            if !self.has_reserve {
                // A part of it would take the space that is left.
                drop(fs::remove_file(&path));
            }
        }
        let has_space = self.has_reserve && self.owed.is_empty() && has_space(&self.path);
        let is_full = !has_space;
        self.is_full.store(is_full, Ordering::Release);
    }
}

/// Verifies a journal that no process uses, without changing it. Returns the number of its records.
///
/// # Errors
///
/// [`JournalError`] if it is damaged or cannot be read.
pub fn verify(path: &Path) -> Result<usize, JournalError> {
    read_copy(path).map(|records| records.len()).map_err(|error| error.within(path))
}

/// Returns whether the file system has space beside the reserve.
fn has_space(path: &Path) -> bool {
    let free = rustix::fs::statvfs(path.parent().unwrap_or(path));
    // Where that cannot be known, a commit shows it.
    free.map_or(true, |free| free.f_bavail.saturating_mul(free.f_frsize) >= RESERVE as u64)
}

/// Creates the reserve. Its bytes are no zeros, which some file systems do not store.
fn fill(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&vec![0x57; RESERVE])?;
    file.sync_all()
}

/// Opens or creates the database.
fn open(path: &Path) -> Result<Database, JournalError> {
    let is_new = !path.exists();
    let opened = Database::builder().set_cache_size(CACHE).create(path);
    if is_new && opened.is_err() {
        // A part of a new file is not a database.
        drop(fs::remove_file(path));
    }
    opened.map_err(JournalError::of_database)
}

/// Reads the records of a copy in memory, because opening the database needs space.
fn read_copy(path: &Path) -> Result<Vec<(Key, Value)>, JournalError> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes.map_err(JournalError::new)?,
    };
    let memory = InMemoryBackend::new();
    memory.set_len(bytes.len() as u64).map_err(JournalError::new)?;
    memory.write(0, &bytes).map_err(JournalError::new)?;
    let database = Database::builder().create_with_backend(memory);
    read(&database.map_err(JournalError::of_database)?)
}

fn read(database: &Database) -> Result<Vec<(Key, Value)>, JournalError> {
    let transaction = database.begin_read().map_err(JournalError::of_database)?;
    let mut records = Vec::new();
    let table = match transaction.open_table(RECORDS) {
        // A new journal.
        Err(TableError::TableDoesNotExist(_)) => return Ok(records),
        table => table.map_err(JournalError::of_database)?,
    };
    for entry in table.iter().map_err(JournalError::of_database)? {
        let (key, value) = entry.map_err(JournalError::of_database)?;
        let unknown = || JournalError::new(format!("unknown record {:?}", key.value()));
        let key = Key::decode(key.value()).ok_or_else(unknown)?;
        let value = serde_json::from_slice(value.value());
        records.push((key, value.map_err(JournalError::new)?));
    }
    Ok(records)
}

fn write(database: &Database, changes: &[Change]) -> Result<(), JournalError> {
    let transaction = database.begin_write().map_err(JournalError::of_database)?;
    {
        let mut table = transaction.open_table(RECORDS).map_err(JournalError::of_database)?;
        for change in changes {
            let key = change.key.encode();
            match &change.value {
                Some(value) => {
                    let text = value.to_string();
                    let inserted = table.insert(&*key, text.as_bytes());
                    drop(inserted.map_err(JournalError::of_database)?);
                }
                None => drop(table.remove(&*key).map_err(JournalError::of_database)?),
            }
        }
    }
    transaction.commit().map_err(JournalError::of_database)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn block_on<T>(what: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(what)
    }

    #[test]
    fn committed_records_survive_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records");
        let key = |name: &str| Key::Container("a".to_owned(), name.to_owned());
        {
            let (journal, records) = Journal::open(&path).unwrap();
            assert_eq!(records, []);
            let put = |name: &str| Change::put(key(name), &json!({ "is": name }));
            block_on(journal.commit(vec![put("x"), put("y")])).unwrap();
            block_on(journal.commit(vec![Change::remove(key("x"))])).unwrap();
        }
        let (_journal, records) = Journal::open(&path).unwrap();
        assert_eq!(records, [(key("y"), json!({ "is": "y" }))]);
    }

    #[test]
    fn a_file_that_is_not_a_journal_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records");
        std::fs::write(&path, b"something else").unwrap();
        let error = Journal::open(&path).unwrap_err().to_string();
        assert!(error.contains("records"), "{error}");
    }
}
