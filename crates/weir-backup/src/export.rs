//! An export that is read or written, and what ends a wait for its server.

use crate::cancel::Cancel;
use crate::error::BackupError;
use crate::format::{BackupId, header};
use crate::label::{LABEL, has_label, may_list_backups};
use crate::mark::marked;
use std::fmt;
use std::hash::{Hash, Hasher};
use weir_client::Connection;
use weir_proto::Uri;

/// An export of an NBD server. Two are equal if they have the same address.
#[derive(Debug, Clone)]
pub struct Export {
    name: String,
    uri: Uri,
    cancel: Cancel,
}

impl Export {
    /// Takes an address. `name` is what messages call it.
    #[must_use]
    pub fn new(name: impl Into<String>, uri: Uri) -> Self {
        Self { name: name.into(), uri, cancel: Cancel::default() }
    }

    /// Lets `cancel` end the waits of connections that are opened from now on.
    #[must_use]
    pub fn with_cancel(self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self }
    }

    /// Returns its name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its address.
    #[must_use]
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(crate) const fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Connects, for reads and writes.
    ///
    /// # Errors
    /// When no server answers, or not with this export.
    pub fn open(&self) -> Result<Connection, BackupError> {
        self.connect(false)
    }

    /// Connects, and asks which ranges hold data.
    ///
    /// # Errors
    /// When no server answers, or not with this export.
    pub fn open_sparse(&self) -> Result<Connection, BackupError> {
        self.connect(true)
    }

    fn connect(&self, is_sparse: bool) -> Result<Connection, BackupError> {
        let connection = Connection::open_until(&self.uri, is_sparse, &self.cancel.stop());
        connection.map_err(BackupError::export(&self.name))
    }

    /// Returns whether it holds backups: it has a label that lists stripes or cannot be read, or is a
    /// stripe itself.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn holds_backups(&self) -> Result<bool, BackupError> {
        let start = self.start()?;
        Ok(may_list_backups(&start) || start.starts_with(header::MAGIC))
    }

    /// Returns whether it holds backups, or has held some and still has a label.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_for_backups(&self) -> Result<bool, BackupError> {
        let start = self.start()?;
        Ok(has_label(&start) || start.starts_with(header::MAGIC))
    }

    /// Returns the backup of which a restore to it did not end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn unfinished_restore(&self) -> Result<Option<BackupId>, BackupError> {
        Ok(marked(&self.start()?))
    }

    /// Reads the part that a label takes.
    fn start(&self) -> Result<Vec<u8>, BackupError> {
        let mut connection = self.open()?;
        let size = usize::try_from(connection.size().get()).unwrap_or(usize::MAX);
        let mut start = vec![0; size.min(LABEL)];
        let failed = BackupError::export(&self.name);
        connection.read(0, &mut start).map_err(&failed)?;
        connection.close().map_err(&failed)?;
        Ok(start)
    }
}

impl PartialEq for Export {
    fn eq(&self, other: &Self) -> bool {
        self.uri == other.uri
    }
}

impl Eq for Export {}

impl Hash for Export {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.uri.hash(state);
    }
}

impl fmt::Display for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
