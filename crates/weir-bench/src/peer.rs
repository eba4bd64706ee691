//! Servers of other programs, and `weir` as a program of its own.

use crate::Failure;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server under test. Its process is stopped when it is dropped.
#[derive(Debug)]
pub struct Peer {
    /// Its name in tables.
    pub name: &'static str,
    /// The NBD URI of its export.
    pub uri: String,
    process: Child,
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Peer {
    /// Starts a server that listens at the socket `name` in `folder`, and waits until it does.
    ///
    /// # Errors
    ///
    /// The reason.
    pub fn start(
        name: &'static str,
        folder: &Path,
        command: &mut Command,
        export: &str,
    ) -> Result<Self, Failure> {
        let socket = folder.join(name);
        let uri = format!("nbd+unix:///{export}?socket={}", socket.display());
        Self::start_at((name, uri), command, || UnixStream::connect(&socket).is_ok())
    }

    /// Starts a server with this name and URI, and waits until it listens.
    ///
    /// # Errors
    ///
    /// The reason.
    #[expect(clippy::disallowed_methods, reason = "it waits for the socket of another program")]
    pub fn start_at(
        (name, uri): (&'static str, String),
        command: &mut Command,
        listens: impl Fn() -> bool,
    ) -> Result<Self, Failure> {
        let process =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|error| {
                format!("cannot start {:?}: {error}; install it", command.get_program())
            })?;
        let peer = Self { name, uri, process };
        for _ in 0..200 {
            if listens() {
                return Ok(peer);
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        Err(format!("{name} does not listen at {}", peer.uri).into())
    }

    /// Returns the CPU seconds of its process so far (clock ticks are 1/100 s on Linux).
    ///
    /// # Errors
    ///
    /// The reason.
    pub fn cpu_seconds(&self) -> Result<f64, Failure> {
        cpu_seconds(&self.process.id().to_string(), 11..13)
    }
}

/// Returns fields of the stat file of a process, in seconds. Their numbers begin after its name.
pub(crate) fn cpu_seconds(process: &str, fields: Range<usize>) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let all: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = all.get(fields).ok_or("a short stat file")?.iter().map(|text| text.parse::<f64>());
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}
