//! Places that hold stripes: folders here, raw volumes and blob containers beside.

pub mod folder;

pub use folder::Folder;

use crate::error::BackupError;
use crate::format::{BackupId, Footer, StripeHeader};
use crate::probe::Probe;
use crate::read_at::ReadAt;

/// A place that can hold stripes of many backups.
pub trait Place: Send {
    /// Returns its name as the user gave it, for messages.
    fn name(&self) -> &str;

    /// Lists whatever looks like a stripe, complete or not.
    ///
    /// # Errors
    /// When the place cannot be read.
    fn list(&mut self) -> Result<Vec<FoundStripe>, BackupError>;

    /// Opens a stripe that [`Place::list`] found.
    ///
    /// # Errors
    /// When it cannot be opened any more.
    fn open(&mut self, stripe: &FoundStripe) -> Result<Box<dyn ReadAt>, BackupError>;

    /// Removes a stripe that [`Place::list`] found, durably.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove(&mut self, stripe: &FoundStripe) -> Result<(), BackupError>;
}

/// A stripe in a place.
#[derive(Debug, Clone)]
pub struct FoundStripe {
    /// Its name, for messages: a path, an export with an offset, a URL.
    pub name: String,
    /// How its place finds it again. Only the place knows the meaning.
    pub locator: String,
    /// The stripe, from 0, that its name says, if it says one.
    pub named: Option<u8>,
    /// Its length in bytes.
    pub length: u64,
    /// When it was written last, as Unix time in milliseconds, if the place knows.
    pub modified_unix_ms: Option<u64>,
    /// True for a name that is only given while a backup is written.
    pub is_temporary: bool,
    /// True for a name that its place gives to complete stripes only.
    pub is_published: bool,
    /// Its header, if that can be read.
    pub header: Option<StripeHeader>,
    /// Its footer, if it has a valid one.
    pub footer: Option<Footer>,
    /// Why it cannot be used, if it cannot.
    pub problem: Option<String>,
}

impl FoundStripe {
    /// Reads both ends of a stripe.
    pub fn inspect(name: String, locator: String, bytes: &mut dyn ReadAt) -> Self {
        let mut found = Self {
            locator,
            named: None,
            length: bytes.length(),
            modified_unix_ms: None,
            is_temporary: false,
            is_published: false,
            header: None,
            footer: None,
            problem: None,
            name,
        };
        match Probe::read(&found.name, bytes) {
            Ok(probe) => {
                match probe.header {
                    Ok(header) => found.header = Some(header),
                    Err(error) => found.problem = Some(error.to_string()),
                }
                found.footer = probe.footer;
            }
            Err(error) => found.problem = Some(format!("{} cannot be read: {error}", found.name)),
        }
        found
    }

    /// Returns the backup that it belongs to, as far as either end says so.
    #[must_use]
    pub fn id(&self) -> Option<BackupId> {
        let header = self.header.as_ref().map(|header| header.identity.id);
        header.or_else(|| self.footer.as_ref().map(|footer| footer.id))
    }

    /// Returns the stripe, from 0, that it holds.
    #[must_use]
    pub fn stripe(&self) -> Option<u8> {
        let header = self.header.as_ref().map(|header| header.stripe);
        header.or_else(|| self.footer.as_ref().map(|footer| footer.stripe))
    }

    /// Returns whether it was complete, and has no valid footer any more.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.footer.is_none() && self.is_published
    }

    /// Returns whether it is complete and published.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.footer.is_some() && !self.is_temporary
    }
}
