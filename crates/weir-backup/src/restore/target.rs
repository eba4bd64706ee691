//! The targets of a restore: volumes and images.

use crate::error::BackupError;
use crate::verify::Watch;

/// The bytes at the start of a target that are written last.
pub const HEAD: u64 = 4096;

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

    /// Makes all of it read as zeros, its first [`HEAD`] bytes first, durably.
    ///
    /// # Errors
    /// When it cannot be written.
    fn clear(&self, watch: &Watch) -> Result<(), BackupError>;

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
