//! Settings of a server.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program whose verbs the tools call.
    pub program: PathBuf,
    /// Arguments before each verb, for example `--catalog`.
    pub arguments: Vec<OsString>,
    /// Folders whose files may be read.
    pub roots: Vec<PathBuf>,
    /// Limits of a call.
    pub limits: Limits,
}

/// Limits of a call.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time of a call.
    pub time: Duration,
    /// Largest answer, in bytes.
    pub output: usize,
    /// Most memory of a call, in bytes.
    pub memory: u64,
    /// Largest file that is read, in bytes.
    pub file: u64,
    /// Largest arguments of a call, in bytes of JSON.
    pub arguments: usize,
    /// Number of calls at a time.
    pub calls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(60),
            output: 1 << 20,
            memory: 4 << 30,
            file: 256 << 20,
            arguments: 256 << 10,
            calls: 2,
        }
    }
}
