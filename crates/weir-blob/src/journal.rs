//! The journal, which makes records durable: an embedded database in the data directory, and a
//! thread that commits concurrent changes together.

use crate::record::Key;
use redb::{Database, ReadableTable, TableDefinition};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
/// Cache size of the database in bytes. It is small because the database is read only once.
const CACHE: usize = 4 << 20;

/// A failure of the journal.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct JournalError(String);

impl JournalError {
    fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
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
}

/// Changes that are committed together, and the channel for the result.
type Batch = (Vec<Change>, oneshot::Sender<Result<(), JournalError>>);

/// The storage of records; it may be in memory only.
#[derive(Debug)]
pub struct Journal {
    sender: Option<Sender<Batch>>,
    thread: Option<JoinHandle<()>>,
}

impl Journal {
    /// Creates a journal that stores nothing.
    #[must_use]
    pub const fn in_memory() -> Self {
        Self { sender: None, thread: None }
    }

    /// Opens or creates the journal file and returns its records.
    ///
    /// # Errors
    ///
    /// [`JournalError`].
    pub fn open(path: &Path) -> Result<(Self, Vec<(Key, Value)>), JournalError> {
        let wrong = |error: &dyn std::fmt::Display| {
            JournalError(format!("reading the blob journal {}: {error}", path.display()))
        };
        let database = Database::builder().set_cache_size(CACHE).create(path);
        let database = database.map_err(|error| wrong(&error))?;
        let records = read(&database).map_err(|error| wrong(&error))?;
        let (sender, inbox) = channel();
        let thread = std::thread::Builder::new()
            .name("weir-journal".to_owned())
            .spawn(move || run(&database, &inbox))
            .map_err(|error| wrong(&error))?;
        Ok((Self { sender: Some(sender), thread: Some(thread) }, records))
    }

    /// Makes changes durable, all or none.
    ///
    /// # Errors
    ///
    /// [`JournalError`]: none of the changes is durable, and all later commits fail.
    pub async fn commit(&self, changes: Vec<Change>) -> Result<(), JournalError> {
        let Some(sender) = &self.sender else { return Ok(()) };
        let (told, heard) = oneshot::channel();
        let ended = || JournalError("the journal has stopped".to_owned());
        sender.send((changes, told)).map_err(|_| ended())?;
        heard.await.map_err(|_| ended())?
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn read(database: &Database) -> Result<Vec<(Key, Value)>, JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    let mut records = Vec::new();
    {
        let table = transaction.open_table(RECORDS).map_err(JournalError::new)?;
        for entry in table.iter().map_err(JournalError::new)? {
            let (key, value) = entry.map_err(JournalError::new)?;
            let unknown = || JournalError(format!("unknown record {:?}", key.value()));
            let key = Key::decode(key.value()).ok_or_else(unknown)?;
            let value = serde_json::from_slice(value.value());
            records.push((key, value.map_err(JournalError::new)?));
        }
    }
    transaction.commit().map_err(JournalError::new)?;
    Ok(records)
}

fn run(database: &Database, inbox: &Receiver<Batch>) {
    let mut failed: Option<JournalError> = None;
    while let Ok(first) = inbox.recv() {
        let mut batches = vec![first];
        batches.extend(inbox.try_iter());
        let changes = batches.iter().flat_map(|(changes, _)| changes);
        // After a failed commit, the state in memory is ahead of the journal, so later changes must
        // fail as well.
        let result = match &failed {
            Some(error) => Err(error.clone()),
            None => write(database, changes),
        };
        if let Err(error) = &result {
            failed.get_or_insert_with(|| error.clone());
        }
        for (_, told) in batches {
            // The request may have been cancelled.
            drop(told.send(result.clone()));
        }
    }
}

fn write<'a>(
    database: &Database,
    changes: impl Iterator<Item = &'a Change>,
) -> Result<(), JournalError> {
    let transaction = database.begin_write().map_err(JournalError::new)?;
    {
        let mut table = transaction.open_table(RECORDS).map_err(JournalError::new)?;
        for change in changes {
            let key = change.key.encode();
            match &change.value {
                Some(value) => {
                    let text = value.to_string();
                    table.insert(&*key, text.as_bytes()).map_err(JournalError::new)?;
                }
                None => drop(table.remove(&*key).map_err(JournalError::new)?),
            }
        }
    }
    transaction.commit().map_err(JournalError::new)
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
