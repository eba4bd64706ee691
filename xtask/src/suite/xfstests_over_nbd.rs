//! xfstests on file systems of the kernel, which are on volumes over NBD: its quick generic tests.
//!
//! Two volumes are the test and the scratch device, as `disks` makes them. A test that fails is run again on loop
//! devices over plain files of the same size. If it fails there in the same way, the kernel, its programs or the
//! machine is the cause, and it counts as expected; the run prints it.

use super::disks::{self, Disks, KINDS, Kind};
use super::results::{Outcome, Results};
use super::xfstests_check::{PLACES, Reasons, Runner};
use crate::error::XtaskError;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Runs the tests on each file system.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    let runner = Runner::new(checkout)?;
    let tests = runner.quick()?;
    let wants = results.wants();
    for kind in &KINDS {
        let tests = tests.iter().filter(|test| wants(&key(kind, test)));
        let tests: Vec<&str> = tests.map(String::as_str).collect();
        if tests.is_empty() {
            continue;
        }
        let before = results.tally();
        let done = run_kind(&runner, kind, &tests, weir, results);
        // Folders of file systems that are mounted must not be removed.
        let unmounted = runner.detach();
        done.and(unmounted)?;
        results.say(&format!("{}: {}", kind.name, results.tally().since(&before)))?;
    }
    Ok(())
}

/// Returns the name of a test on a file system.
fn key(kind: &Kind, test: &str) -> String {
    format!("{}: {test}", kind.name)
}

/// Returns whether a test is one of the suite.
#[cfg(test)]
pub(super) fn covers(key: &str) -> bool {
    key.split_once(": ").is_some_and(|(kind, test)| {
        KINDS.iter().any(|own| own.name == kind) && test.starts_with("generic/")
    })
}

/// Runs tests on one file system.
fn run_kind(
    runner: &Runner,
    kind: &Kind,
    tests: &[&str],
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    let disks = Disks::start(weir, &PLACES)?;
    let mut plain = None;
    let mut reasons = Reasons::default();
    let volumes = Bed { runner, kind, devices: disks.devices() };
    volumes.make()?;
    for test in tests {
        let key = key(kind, test);
        let outcome = volumes.run(test, &mut reasons)?;
        let Outcome::Failed(words) = &outcome else {
            results.take(&key, &outcome)?;
            continue;
        };
        let files = match &mut plain {
            Some(files) => files,
            none => none.insert(Files::new(disks.folder(), disks.devices())?),
        };
        let files = Bed { runner, kind, devices: &files.devices };
        files.make()?;
        let own = files.run(test, &mut Reasons::default())?;
        runner.detach()?;
        // A test that hung or broke off may have left anything.
        volumes.make()?;
        match own {
            // Another failure there says nothing about this one.
            Outcome::Failed(own) if own == *words => {
                results.excuse(&key, words, "on plain files")?;
            }
            Outcome::Failed(own) => {
                results.say(&format!("fails in another way on plain files: {key} {own}"))?;
                results.take(&key, &outcome)?;
            }
            Outcome::Passed | Outcome::Skipped => results.take(&key, &outcome)?,
        }
    }
    runner.detach()?;
    drop(plain);
    disks.stop()?;
    reasons.say(results)
}

/// A test and a scratch device of a file system.
struct Bed<'a> {
    runner: &'a Runner,
    kind: &'a Kind,
    devices: &'a [String],
}

impl Bed<'_> {
    /// Makes empty file systems, and the settings of the tests.
    fn make(&self) -> Result<(), XtaskError> {
        self.runner.detach()?;
        let [test, scratch] = self.devices else {
            return Err(XtaskError::Suite("the tests need two devices".to_owned()));
        };
        self.kind.make(test)?;
        self.kind.make(scratch)?;
        self.runner.configure(&format!(
            "export FSTYP={}\nexport TEST_DEV={test}\nexport SCRATCH_DEV={scratch}\n",
            self.kind.name
        ))
    }

    fn run(&self, test: &str, reasons: &mut Reasons) -> Result<Outcome, XtaskError> {
        self.runner.run(test, None, reasons)
    }
}

/// Loop devices over plain files, which are removed when they are dropped.
struct Files {
    devices: Vec<String>,
}

impl Files {
    /// Makes devices that rotate if `others` do. ext4 allocates by that: on Linux 6.18, generic/223 fails on each
    /// loop device that does not rotate, such as those over a file of FUSE.
    fn new(folder: &Path, others: &[String]) -> Result<Self, XtaskError> {
        let mut files = Self { devices: Vec::new() };
        for (name, other) in PLACES.iter().zip(others) {
            let path = folder.join(format!("plain-{name}"));
            let file = File::create(&path).map_err(XtaskError::file("creating", &path))?;
            file.set_len(disks::SIZE).map_err(XtaskError::file("sizing", &path))?;
            let device = disks::attach(&path)?;
            let (from, to) = (rotational(other), rotational(&device));
            files.devices.push(device);
            let value = fs::read(&from).map_err(XtaskError::file("reading", &from))?;
            fs::write(&to, value).map_err(XtaskError::file("writing", &to))?;
        }
        Ok(files)
    }
}

/// Returns the attribute of a device that says whether it rotates.
fn rotational(device: &str) -> PathBuf {
    let name = Path::new(device).file_name().unwrap_or_default();
    Path::new("/sys/class/block").join(name).join("queue/rotational")
}

impl Drop for Files {
    fn drop(&mut self) {
        for device in &self.devices {
            // The files disappear with their folder in any case.
            drop(disks::detach(device));
        }
    }
}
