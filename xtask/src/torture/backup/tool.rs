//! Runs of `weir backup` and `weir restore`.

use super::super::oracle::{BLOCK, content, stamp_of};
use super::super::server::{lost, system, wait_until};
use super::moments::Window;
use super::now;
use crate::error::XtaskError;
use crate::interrupt::in_own_group;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::AtomicU64;
use weir_random::Rng;

/// The volume for backups.
pub(super) const RAW: &str = "raw";
const PLACES: [&str; 2] = ["./backups", RAW];

/// The kind of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Full,
    CopyOnly,
    Differential,
}

/// The program in the folder of a server.
pub(super) struct Tool<'a> {
    pub(super) weir: &'a Path,
    pub(super) folder: &'a Path,
    /// The sources.
    pub(super) exports: Vec<String>,
}

/// A backup that runs; killed if it is dropped.
pub(super) struct Attempt {
    child: Option<Child>,
    words: String,
    /// The clock at its start.
    start: u64,
    pub(super) kind: Kind,
    pub(super) name: String,
}

/// The end of an attempt.
#[derive(Debug)]
pub(super) struct Finished {
    /// The id of the backup; without one, what was said.
    pub(super) id: Result<String, String>,
    /// It ended by the signal of [`Attempt::kill`], and not by itself.
    is_killed: bool,
    /// When it ran.
    pub(super) window: Window,
}

impl Finished {
    /// Refuses an attempt that failed by itself. Returns the id, unless it was killed.
    pub(super) fn of_killed(self) -> Result<Option<String>, XtaskError> {
        match self.id {
            Ok(id) => Ok(Some(id)),
            Err(_) if self.is_killed => Ok(None),
            Err(what) => Err(lost(&format!("before it was killed, {what}"))),
        }
    }
}

/// A backup in the places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) is_complete: bool,
    /// Differentials can build on it.
    pub(super) is_full: bool,
    /// The full backup on which it builds.
    pub(super) base: Option<String>,
    pub(super) created: u64,
}

/// Restored images.
pub(super) struct Images {
    folder: PathBuf,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl Tool<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = in_own_group(self.weir);
        command.args(args).current_dir(self.folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Begins a backup to a folder or a raw volume.
    pub(super) fn begin(
        &self,
        kind: Kind,
        name: String,
        rng: &mut Rng,
        clock: &AtomicU64,
    ) -> Result<Attempt, XtaskError> {
        let stripes = rng.within(1, 3).to_string();
        let mut args = vec!["backup", "run"];
        args.extend(self.exports.iter().map(String::as_str));
        args.extend(["--to", PLACES[rng.index(PLACES.len())], "--stripes", &stripes]);
        args.extend(["--control", "control", "--name", &name, "-q", "-o", "json"]);
        if rng.flip() {
            args.push("--compress");
        }
        match kind {
            Kind::Full => {}
            Kind::CopyOnly => args.push("--copy-only"),
            Kind::Differential => {
                args.push("--differential");
                args.extend(PLACES.iter().flat_map(|place| ["--from", place]));
            }
        }
        let start = now(clock);
        let child = self.command(&args).spawn();
        let child = child.map_err(XtaskError::file("starting", self.weir))?;
        let words = args.join(" ");
        Ok(Attempt { child: Some(child), words, start, kind, name })
    }

    fn must(&self, args: &[&str]) -> Result<Output, XtaskError> {
        let output = self.command(args).output();
        let output = output.map_err(XtaskError::file("starting", self.weir))?;
        match output.status.success() {
            true => Ok(output),
            false => Err(lost(&refused(&args.join(" "), &output))),
        }
    }

    /// Returns all backups by their ids.
    pub(super) fn list(&self) -> Result<BTreeMap<String, Listed>, XtaskError> {
        let mut list = self.command(&["backup", "list"]);
        list.args(PLACES).args(["--control", "control", "-o", "json"]);
        let output = list.output().map_err(XtaskError::file("starting", self.weir))?;
        // There may be none.
        if output.status.code() == Some(1) {
            return Ok(BTreeMap::new());
        }
        let list = serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success());
        let list: Value = list.ok_or_else(|| lost(&refused("backup list", &output)))?;
        let entry = |own: &Value| {
            let listed = Listed {
                name: own["name"].as_str()?.to_owned(),
                is_complete: own["state"] == "complete",
                is_full: own["kind"] == "full",
                base: own["base"].as_str().map(str::to_owned),
                created: own["created_unix_ms"].as_u64()?,
            };
            Some((own["id"].as_str()?.to_owned(), listed))
        };
        let backups = list["backups"].as_array();
        let backups = backups.and_then(|all| all.iter().map(entry).collect());
        backups.ok_or_else(|| lost(&format!("a list of backups is not one: {list}")))
    }

    /// Removes old backups, and incomplete ones.
    pub(super) fn prune(&self, kept: usize) -> Result<(), XtaskError> {
        let kept = kept.to_string();
        let prune = ["backup", "prune", PLACES[0], PLACES[1], "--keep-last", &kept];
        self.must(&[&prune[..], &["--incomplete", "--control", "control"]].concat()).map(drop)
    }

    /// Restores a backup to images.
    pub(super) fn restore(&self, id: &str) -> Result<Images, XtaskError> {
        let folder = self.folder.join("images");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(XtaskError::file("removing", &folder))?;
        }
        let from = ["restore", id, "--from", PLACES[0], "--from", PLACES[1]];
        self.must(
            &[&from[..], &["--from-control", "control", "--image", "images", "-q"]].concat(),
        )?;
        Ok(Images { folder })
    }
}

impl Attempt {
    pub(super) fn kill(&mut self) -> Result<(), XtaskError> {
        self.child.as_mut().map_or(Ok(()), Child::kill).map_err(system("killing a backup"))
    }

    /// Waits for its end.
    pub(super) fn finish(mut self, clock: &AtomicU64) -> Result<Finished, XtaskError> {
        let Some(mut child) = self.child.take() else { return Err(lost("it has no process")) };
        let waited = wait_until("a backup does not end", || {
            child.try_wait().map(|status| status.is_some()).map_err(system("waiting for a backup"))
        });
        if waited.is_err() {
            drop(child.kill());
        }
        let output = child.wait_with_output().map_err(system("waiting for a backup"))?;
        waited?;
        let window = Window::between(self.start, now(clock));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let id = report["id"].as_str().filter(|_| output.status.success());
        let id = id.map(str::to_owned).ok_or_else(|| refused(&self.words, &output));
        let is_killed = output.status.signal() == Some(Signal::KILL.as_raw());
        Ok(Finished { id, is_killed, window })
    }
}

fn refused(words: &str, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    format!("weir {words}: {}: {}", output.status, said.trim_end())
}

impl Images {
    /// Returns the contents of some blocks.
    pub(super) fn stamps(
        &self,
        export: &str,
        first: usize,
        blocks: usize,
    ) -> Result<Vec<u64>, String> {
        let path = self.folder.join(format!("{export}.raw"));
        let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut found = content(0);
        let read = (first..first + blocks).map(|at| {
            let read = file.read_exact_at(&mut found, at as u64 * BLOCK);
            read.map_err(|error| format!("block {at}: {error}"))?;
            stamp_of(&found).ok_or_else(|| format!("block {at} is torn"))
        });
        read.collect()
    }
}
