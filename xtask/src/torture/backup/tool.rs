//! Runs of `weir backup` and `weir restore`.

use super::super::oracle::{BLOCK, content, stamp_of};
use super::super::server::{lost, system, wait_until};
use super::moments::Window;
use super::now;
use crate::error::XtaskError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
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
    from: u64,
    pub(super) kind: Kind,
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
        let mut command = Command::new(self.weir);
        command.args(args).current_dir(self.folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Begins a backup to a folder or a raw volume.
    pub(super) fn begin(
        &self,
        kind: Kind,
        rng: &mut Rng,
        clock: &AtomicU64,
    ) -> Result<Attempt, XtaskError> {
        let stripes = rng.within(1, 3).to_string();
        let mut args = vec!["backup", "run"];
        args.extend(self.exports.iter().map(String::as_str));
        args.extend(["--to", PLACES[rng.index(PLACES.len())], "--stripes", &stripes]);
        args.extend(["--control", "control", "--name", "torture", "-q", "-o", "json"]);
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
        let from = now(clock);
        let child = self.command(&args).spawn();
        let child = child.map_err(XtaskError::file("starting", self.weir))?;
        Ok(Attempt { child: Some(child), words: args.join(" "), from, kind })
    }

    fn must(&self, args: &[&str]) -> Result<Output, XtaskError> {
        let output = self.command(args).output();
        let output = output.map_err(XtaskError::file("starting", self.weir))?;
        match output.status.success() {
            true => Ok(output),
            false => Err(lost(&refused(&args.join(" "), &output))),
        }
    }

    /// Returns the complete backups, and whether they are full ones on which differentials build.
    pub(super) fn list(&self) -> Result<BTreeMap<String, bool>, XtaskError> {
        let mut list = self.command(&["backup", "list"]);
        list.args(PLACES).args(["--control", "control", "-o", "json"]);
        let output = list.output().map_err(XtaskError::file("starting", self.weir))?;
        // There may be none.
        if output.status.code() == Some(1) {
            return Ok(BTreeMap::new());
        }
        let list = serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success());
        let list: Value = list.ok_or_else(|| lost(&refused("backup list", &output)))?;
        let backups = list["backups"].as_array().map(Vec::as_slice).unwrap_or_default();
        let complete = backups.iter().filter(|own| own["state"] == "complete");
        let entry = |own: &Value| Some((own["id"].as_str()?.to_owned(), own["kind"] == "full"));
        Ok(complete.filter_map(entry).collect())
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

    /// Waits for its end. Returns its id, or what it said if it is not complete, and when it ran.
    pub(super) fn finish(
        mut self,
        clock: &AtomicU64,
    ) -> Result<(Result<String, String>, Window), XtaskError> {
        let Some(mut child) = self.child.take() else { return Err(lost("it has no process")) };
        let waited = wait_until("a backup does not end", || {
            child.try_wait().map(|status| status.is_some()).map_err(system("waiting for a backup"))
        });
        if waited.is_err() {
            drop(child.kill());
        }
        let output = child.wait_with_output().map_err(system("waiting for a backup"))?;
        waited?;
        let window = Window { from: self.from, to: now(clock) };
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let id = report["id"].as_str().filter(|_| output.status.success());
        Ok((id.map(str::to_owned).ok_or_else(|| refused(&self.words, &output)), window))
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
