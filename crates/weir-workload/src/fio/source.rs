//! The surroundings of a job file.

use std::io;

/// The surroundings of a job file: environment and other files.
pub trait Source {
    /// Returns the environment variable `name`; `None` if it is not set.
    fn env(&self, name: &str) -> Option<String>;

    /// Returns the text of `name`, included from the file `from`. fio looks for it as named, then
    /// beside `from`.
    ///
    /// # Errors
    /// The error of the read.
    fn include(&self, from: &str, name: &str) -> io::Result<String>;
}

/// No environment and no other files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Isolated;

impl Source for Isolated {
    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn include(&self, _: &str, _: &str) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}
