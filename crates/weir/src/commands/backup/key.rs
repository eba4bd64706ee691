//! `weir backup key`: a new random key.

use crate::error::CliError;
use crate::output;

/// Bytes of a key.
const LENGTH: usize = 32;

pub(crate) fn run() -> Result<u8, CliError> {
    let mut key = [0; LENGTH];
    getrandom::fill(&mut key).map_err(|source| CliError::System {
        context: "asking the system for random bytes",
        source: std::io::Error::other(source.to_string()),
    })?;
    let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    output::print_text(&format!("{text}\n")).map(|()| 0)
}
