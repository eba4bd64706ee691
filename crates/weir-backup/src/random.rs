//! Random bytes of the system.

use std::io;

/// The system has no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("asking the system for random bytes: {0}")]
pub struct RandomError(io::Error);

/// Fills `bytes` with random bytes of the system.
///
/// # Errors
/// When the system has none.
pub fn fill(bytes: &mut [u8]) -> Result<(), RandomError> {
    getrandom::fill(bytes).map_err(|source| RandomError(io::Error::other(source.to_string())))
}
