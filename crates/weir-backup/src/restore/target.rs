//! The targets of a restore: volumes and images.

use crate::error::BackupError;
use crate::format::BackupId;
use crate::verify::Watch;

/// A volume or an image that a source is restored to.
pub trait Target: Sync {
    /// Returns its name, for messages.
    fn name(&self) -> &str;

    /// Returns its size in bytes.
    fn size(&self) -> u64;

    /// Returns whether all of it reads as zeros.
    ///
    /// # Errors
    /// When it cannot be read.
    fn is_empty(&self, watch: &Watch) -> Result<bool, BackupError>;

    /// Marks a volume in its first [`HEAD`](super::HEAD) bytes as being restored, durably. Returns what
    /// these were.
    ///
    /// # Errors
    /// When it cannot be read or written.
    fn begin(&self, _: BackupId) -> Result<Vec<u8>, BackupError> {
        Ok(Vec::new())
    }

    /// Undoes [`Target::begin`], durably.
    ///
    /// # Errors
    /// When it cannot be written.
    fn unmark(&self, _head: &[u8]) -> Result<(), BackupError> {
        Ok(())
    }

    /// Makes all of it read as zeros, behind its first [`HEAD`](super::HEAD) bytes, durably.
    ///
    /// # Errors
    /// When it cannot be written.
    fn clear(&self, watch: &Watch) -> Result<(), BackupError>;

    /// Returns whether nothing sees it before [`Target::publish`].
    fn is_hidden(&self) -> bool {
        false
    }

    /// Checks that [`Target::set_aside`] will find its place free.
    ///
    /// # Errors
    /// When it is taken.
    fn check_aside(&self) -> Result<(), BackupError> {
        Ok(())
    }

    /// Takes away what has the name that a hidden target is to get, so that [`Target::take_back`] can
    /// bring it back.
    ///
    /// # Errors
    /// When that fails, or [`Target::check_aside`] does.
    fn set_aside(&self) -> Result<(), BackupError> {
        Ok(())
    }

    /// Opens a way to it, on which at most `in_flight` bytes of writes wait for an answer.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn open(&self, in_flight: usize) -> Result<Box<dyn TargetIo>, BackupError>;

    /// Makes it known as complete, after all else.
    ///
    /// # Errors
    /// When that fails.
    fn publish(&self) -> Result<(), BackupError>;

    /// Removes what was set aside, once all targets are published.
    fn settle(&self) {}

    /// Undoes [`Target::publish`] and [`Target::set_aside`], as far as it was done.
    ///
    /// # Errors
    /// When something is left otherwise than it was, in a sentence that says what.
    fn take_back(&self) -> Result<(), BackupError> {
        Ok(())
    }
}

/// A way to a target, for one thread at a time.
pub trait TargetIo: Send {
    /// Writes, or begins to.
    ///
    /// # Errors
    /// When this or an earlier write failed.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackupError>;

    /// Makes a range read as zeros.
    ///
    /// # Errors
    /// When this or an earlier write failed.
    fn write_zeros(&mut self, offset: u64, length: u64) -> Result<(), BackupError>;

    /// Waits until everything that was written is durable.
    ///
    /// # Errors
    /// When a write failed.
    fn finish(&mut self) -> Result<(), BackupError>;

    /// Reads, after [`TargetIo::finish`].
    ///
    /// # Errors
    /// When it fails.
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), BackupError>;
}

/// A target for each source of a backup; sources that are left out have none.
pub type Targets<'a> = [Option<&'a dyn Target>];
