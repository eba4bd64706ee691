//! A `weir serve` process.

use super::Campaign;
use super::disk::Disk;
use super::load::Loads;
use super::system::System;
use crate::error::XtaskError;
use crate::interrupt::in_own_group;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_client::Connection;
use weir_random::Rng;
use weir_server::control::{Request, ask};
use weir_units::{Bytes, Instant, Span};
use weir_wall::Clock;

/// The longest time for a server to start or stop, or for a load to go on.
pub(super) const PATIENCE: Span = Span::from_secs(60);

/// A running server; killed if it is dropped.
pub(super) struct Served {
    folder: PathBuf,
    /// The disk of its data folder, if that loses power with it, or fails.
    disk: Option<Arc<Disk>>,
    has_failed_disk: bool,
    child: Child,
    said: Option<JoinHandle<String>>,
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Served {
    /// Serves the layout in a folder, and waits until clients can connect.
    pub(super) fn start(campaign: &Campaign<'_>) -> Result<Self, XtaskError> {
        let args = ["serve", "layout.toml", "--nbd", "unix:nbd", "--data", "data"];
        Self::start_with(campaign, &args)
    }

    /// Starts the program with these arguments in the campaign's folder, and waits until it is ready.
    pub(super) fn start_with(campaign: &Campaign<'_>, args: &[&str]) -> Result<Self, XtaskError> {
        let mut command = in_own_group(campaign.weir);
        command.args(args).args(["--control", "control"]);
        command.current_dir(campaign.folder).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(XtaskError::file("starting", campaign.weir))?;
        let stderr = child.stderr.take();
        let (folder, disk) = (campaign.folder.to_owned(), campaign.disk.cloned());
        let mut served = Self { folder, disk, has_failed_disk: false, child, said: None };
        let lines = BufReader::new(stderr.ok_or_else(|| lost("it has no stderr"))?);
        let (sender, ready) = channel();
        // It must not wait for someone to read its messages.
        let said = std::thread::spawn(move || read_messages(lines, &sender));
        match ready.recv_timeout(Duration::from_nanos(PATIENCE.nanos())) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let said = said.join().unwrap_or_default();
                return Err(lost(&format!("the server does not start: {said}")));
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(lost(&format!("the server is not ready within {PATIENCE}")));
            }
        }
        served.said = Some(said);
        Ok(served)
    }

    /// Opens an export.
    pub(super) fn open(&self, export: &str) -> Result<Connection, XtaskError> {
        let uri = format!("nbd+unix:///{export}?socket={}", self.folder.join("nbd").display());
        let uri = uri.parse().map_err(|error| lost(&format!("{error}")))?;
        Connection::open(&uri).map_err(|error| lost(&error.to_string()))
    }

    /// Changes volumes while clients work, until they have got a number of answers. Returns the
    /// number of changes.
    pub(super) fn disturb(
        &mut self,
        system: &System,
        loads: &Loads,
        answers: u64,
        rng: &mut Rng,
    ) -> Result<u64, XtaskError> {
        let (mut changes, mut clock, mut seen) = (0, Clock::start(), 0);
        while loads.answers() < answers {
            if loads.answers() != seen {
                (clock, seen) = (Clock::start(), loads.answers());
            }
            loads.sound()?;
            if has_waited(clock) {
                return Err(lost("the clients get no answers"));
            }
            if !rng.chance(20) {
                pause();
                continue;
            }
            let export = rng.one(&system.exports);
            let volume = export.name.clone();
            let request = match export.size {
                Some(size) if rng.flip() => {
                    Request::Resize { volume, size: Bytes::new(size + (rng.below(4) << 20)) }
                }
                Some(_) => {
                    let mode = (*rng.one(&["none", "read-only", "read-write"])).to_owned();
                    Request::SetCache { volume, mode }
                }
                None => Request::Status,
            };
            ask(&self.folder.join("control"), &request)
                .map_err(|error| lost(&error.to_string()))?;
            changes += 1;
        }
        Ok(changes)
    }

    /// Crashes the host.
    pub(super) fn crash(&self) -> Result<(), XtaskError> {
        let crash = Request::Crash { host: "host".to_owned() };
        let crashed = ask(&self.folder.join("control"), &crash);
        crashed.map(drop).map_err(|error| lost(&error.to_string()))
    }

    /// Kills it. If its data folder is a disk that can lose power, the disk loses it first, unless it has failed.
    pub(super) fn kill(&mut self) -> Result<(), XtaskError> {
        if let Some(disk) = self.disk.as_ref().filter(|_| !self.has_failed_disk) {
            // It must not see the errors of a disk without power.
            self.freeze()?;
            disk.shut_down()?;
        }
        self.child.kill().map_err(system("killing the server"))?;
        self.child.wait().map_err(system("waiting for the server"))?;
        self.disk.as_ref().map_or(Ok(()), |disk| disk.recover())
    }

    /// Makes each access to its disk fail from now on, while it runs. What the disk has not received is lost.
    pub(super) fn fail_disk(&mut self) -> Result<(), XtaskError> {
        let disk = self.disk.as_ref().ok_or_else(|| lost("it has no disk that can fail"))?;
        self.has_failed_disk = true;
        disk.shut_down()
    }

    /// Refuses a server that has ended by itself, or does not answer the control socket.
    pub(super) fn check_alive(&mut self) -> Result<(), XtaskError> {
        match self.child.try_wait().map_err(system("looking for the server"))? {
            None => ask(&self.folder.join("control"), &Request::Status)
                .map(drop)
                .map_err(|error| lost(&error.to_string())),
            Some(status) => {
                let said = self.said.take().and_then(|own| own.join().ok()).unwrap_or_default();
                Err(lost(&format!("the server ended by itself with {status}: {said}")))
            }
        }
    }

    /// Stops all its threads, so that it answers nobody any more.
    fn freeze(&self) -> Result<(), XtaskError> {
        self.signal(Signal::STOP)?;
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        let waited = waitid(WaitId::Pid(self.pid()?), stopped);
        waited.map(drop).map_err(|error| system("stopping the server")(error.into()))
    }

    fn pid(&self) -> Result<Pid, XtaskError> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| lost("the server has no number"))
    }

    fn signal(&self, signal: Signal) -> Result<(), XtaskError> {
        kill_process(self.pid()?, signal)
            .map_err(|error| system("sending a signal to the server")(error.into()))
    }

    /// Stops it in order.
    pub(super) fn stop(mut self) -> Result<(), XtaskError> {
        self.signal(Signal::TERM)?;
        let clock = Clock::start();
        loop {
            if let Some(status) = self.child.try_wait().map_err(system("waiting for the server"))? {
                let said = self.said.take().and_then(|own| own.join().ok()).unwrap_or_default();
                return match status.success() {
                    true => Ok(()),
                    false => Err(lost(&format!("the server ended with {status}: {said}"))),
                };
            }
            if has_waited(clock) {
                return Err(lost("the server does not stop"));
            }
            pause();
        }
    }
}

/// Reads the messages of a server to their end, and sends when it is ready.
fn read_messages(mut lines: impl BufRead, ready: &Sender<()>) -> String {
    let (mut said, mut seen) = (String::new(), 0);
    while lines.read_line(&mut said).is_ok_and(|read| read > 0) {
        if said[seen..].starts_with("ready;") {
            // The receiver is gone if the start took too long.
            let _ = ready.send(());
        }
        seen = said.len();
    }
    said
}

/// Waits until something is so.
pub(super) fn wait_until(
    what: &str,
    is_so: impl FnMut() -> Result<bool, XtaskError>,
) -> Result<(), XtaskError> {
    wait_within(PATIENCE, what, is_so)
}

/// As [`wait_until`], but for another time.
pub(super) fn wait_within(
    time: Span,
    what: &str,
    mut is_so: impl FnMut() -> Result<bool, XtaskError>,
) -> Result<(), XtaskError> {
    let clock = Clock::start();
    while !is_so()? {
        if clock.now() > Instant::ZERO + time {
            return Err(lost(&format!("{what}: not within {time}")));
        }
        pause();
    }
    Ok(())
}

/// Waits until something is so. The time begins anew with each answer.
pub(super) fn wait_for_answers(
    answers: impl Fn() -> u64,
    is_so: impl Fn() -> bool,
) -> Result<(), XtaskError> {
    let (mut clock, mut seen) = (Clock::start(), answers());
    while !is_so() {
        let now = answers();
        if now != seen {
            (clock, seen) = (Clock::start(), now);
        }
        if has_waited(clock) {
            return Err(lost(&format!("the clients get no answers: none within {PATIENCE}")));
        }
        pause();
    }
    Ok(())
}

fn has_waited(clock: Clock) -> bool {
    clock.now() > Instant::ZERO + PATIENCE
}

#[expect(clippy::disallowed_methods, reason = "another process makes progress meanwhile")]
fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

pub(super) fn system(doing: &'static str) -> impl Fn(io::Error) -> XtaskError {
    move |source| XtaskError::System { doing, source }
}

pub(super) fn lost(what: &str) -> XtaskError {
    XtaskError::Lost(what.to_owned())
}
