//! Test suites that others wrote, run unchanged from a checkout that the caller has fetched.
//!
//! Nothing of a suite is kept here but the list of its checks that are expected to fail, each with its
//! reason, in `xtask/suites/NAME.txt`. A check that fails and is not in the list, or passes and is in
//! it, makes the run fail.
//!
//! | module | holds |
//! |---|---|
//! | `source` | the checkouts |
//! | `results` | the results, compared with the list |
//! | `pjdfstest`, `xfstests`, `fsx`, `stress` | suites of file systems |
//! | `xfstests_check` | the runner of xfstests |
//! | `disks` | volumes over NBD as block devices |
//! | `file_systems`, `xfstests_over_nbd` | file systems of the kernel on such devices |
//! | `postgres`, `mariadb`, `sqllogictest` | the tests of databases |
//! | `nbd`, `libnbd` | the test client of a server, and the tests of a client library |
//! | `iotests` | the tests of QEMU's client of NBD |
//! | `azurite` | the tests of Azurite |
//! | `azure_sdk_python` | the tests of page blobs of the Azure SDK for Python |
//! | `tap` | the results of programs that print the Test Anything Protocol |
//! | `running` | the program under test |
//! | `watchdog` | the end of tests that hang |

mod azure_sdk_python;
mod azurite;
mod disks;
mod file_systems;
mod fsx;
mod iotests;
mod libnbd;
mod mariadb;
mod nbd;
mod pjdfstest;
mod postgres;
mod results;
pub(crate) mod running;
mod source;
mod sqllogictest;
mod stress;
mod tap;
mod watchdog;
mod xfstests;
mod xfstests_check;
mod xfstests_over_nbd;

use crate::error::XtaskError;
pub use results::Tally;
use results::{Outcome, Results};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// POSIX conformance of a file system, on `weir mount`: github.com/pjd/pjdfstest. Needs root.
    Pjdfstest,
    /// The quick generic tests of file systems, on `weir mount`: github.com/kdave/xfstests. Needs root.
    Xfstests,
    /// Random requests to files with `fsx` and `fsstress` of xfstests, on `weir mount`. Needs root.
    Fsx,
    /// `fsx` and `fsstress` of xfstests on ext4, XFS and Btrfs, on a volume over NBD, each with a check of the
    /// file system after it. Needs root, loop devices, and `qemu-storage-daemon`.
    FsOverNbd,
    /// The quick generic tests of xfstests on ext4, XFS and Btrfs, on volumes over NBD; a test that fails is
    /// repeated on plain files. Needs root, loop devices, and `qemu-storage-daemon`.
    XfstestsOverNbd,
    /// The stressors of file systems of the program stress-ng, on `weir mount`. Needs root, and no checkout.
    StressNg,
    /// The regression tests of PostgreSQL and a run of pgbench with `pg_amcheck`, on `weir mount`: sources of
    /// the version that is installed. Needs root, and the user postgres.
    Postgres,
    /// The tests of the storage engines of MariaDB, on `weir mount`: the packages mariadb-server and
    /// mariadb-test. Needs root, the user mysql, and no checkout.
    Mariadb,
    /// The logic tests that SQLite shares with other databases, on `weir mount`:
    /// github.com/gregrahn/sqllogictest. Needs root, a C compiler, and the headers of SQLite.
    Sqllogictest,
    /// The test client of nbd-server, on `weir serve`: github.com/NetworkBlockDevice/nbd.
    Nbd,
    /// The tests of a client library that are about servers, on `weir serve`: gitlab.com/nbdkit/libnbd. Needs
    /// the headers of libnbd, and nbdkit.
    Libnbd,
    /// The tests of raw images over NBD, on `weir serve`: tests/qemu-iotests of github.com/qemu/qemu, of the
    /// version that is installed. Needs `qemu-utils` and `qemu-system-x86_64`.
    QemuIotests,
    /// The live tests of a blob service, on `weir serve`: github.com/Azure/Azurite. Needs Node.js and npm.
    Azurite,
    /// The live tests of page blobs of a client library, on `weir serve`: the source package of azure-storage-blob
    /// on PyPI. Needs Python 3.10 with venv.
    AzureSdkPython,
}

/// A volume without limits, so that a suite takes no longer than it has to.
const LAYOUT: &str = "[[volume]]\nname = \"suite\"\nsize = \"8 GiB\"\nunlimited = true\n";
/// Serves it as a folder.
const MOUNT: [&str; 3] = ["mount", "{}/layout.toml", "{}/mount"];

/// A run of a suite.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The suite.
    pub suite: Suite,
    /// Its checkout, if it needs one. The suite is built there.
    pub checkout: Option<&'a Path>,
    /// The program to test.
    pub weir: &'a Path,
    /// Run only scripts whose path contains this.
    pub only: Option<&'a str>,
}

/// Builds and runs a suite, and prints the unexpected results and the totals.
///
/// # Errors
///
/// [`XtaskError`] if the suite cannot be built or run.
pub fn run(plan: &Plan<'_>, out: &mut dyn Write) -> Result<Tally, XtaskError> {
    let weir = &crate::program(plan.weir)?;
    let name = name_of(plan.suite);
    let source = source::source_of(plan.suite);
    let checkout = source::check(name, source, plan.checkout)?;
    let checkout = || checkout.as_deref().ok_or_else(|| source::missing(name, source));
    let mut results = Results::new(name, plan.only, out)?;
    match plan.suite {
        Suite::Pjdfstest => pjdfstest::run(checkout()?, weir, &mut results),
        Suite::Xfstests => xfstests::run(checkout()?, weir, &mut results),
        Suite::Fsx => fsx::run(checkout()?, weir, &mut results),
        Suite::FsOverNbd => file_systems::run(checkout()?, weir, &mut results),
        Suite::XfstestsOverNbd => xfstests_over_nbd::run(checkout()?, weir, &mut results),
        Suite::StressNg => stress::run(weir, &mut results),
        Suite::Postgres => postgres::run(checkout()?, weir, &mut results),
        Suite::Mariadb => mariadb::run(weir, &mut results),
        Suite::Sqllogictest => sqllogictest::run(checkout()?, weir, &mut results),
        Suite::Nbd => nbd::run(checkout()?, weir, &mut results),
        Suite::Libnbd => libnbd::run(checkout()?, weir, &mut results),
        Suite::QemuIotests => iotests::run(checkout()?, weir, &mut results),
        Suite::Azurite => azurite::run_all(checkout()?, weir, &mut results),
        Suite::AzureSdkPython => azure_sdk_python::run_all(checkout()?, weir, &mut results),
    }?;
    results.end()
}

const fn name_of(suite: Suite) -> &'static str {
    match suite {
        Suite::Pjdfstest => "pjdfstest",
        Suite::Xfstests => "xfstests",
        Suite::Fsx => "fsx",
        Suite::FsOverNbd => "fs-over-nbd",
        Suite::XfstestsOverNbd => "xfstests-over-nbd",
        Suite::StressNg => "stress-ng",
        Suite::Postgres => "postgres",
        Suite::Mariadb => "mariadb",
        Suite::Sqllogictest => "sqllogictest",
        Suite::Nbd => "nbd",
        Suite::Libnbd => "libnbd",
        Suite::QemuIotests => "qemu-iotests",
        Suite::Azurite => "azurite",
        Suite::AzureSdkPython => "azure-sdk-python",
    }
}

fn output(folder: &Path, program: &str, args: &[&str]) -> Result<Output, XtaskError> {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.output().map_err(XtaskError::file("starting", Path::new(program)))
}

/// Returns whether a program succeeds.
fn succeeds(folder: &Path, program: &str, args: &[&str]) -> Result<bool, XtaskError> {
    output(folder, program, args).map(|output| output.status.success())
}

fn build(folder: &Path, program: &str, args: &[&str]) -> Result<(), XtaskError> {
    let output = output(folder, program, args)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    let last = said.lines().last().unwrap_or_default().to_owned();
    Err(XtaskError::Suite(format!("{program} failed in {}: {last}", folder.display())))
}

/// Applies a patch in `xtask/suites` to a checkout, unless that has been done.
fn patch(checkout: &Path, name: &str) -> Result<(), XtaskError> {
    let patch = crate::root().join("xtask/suites").join(name).display().to_string();
    match succeeds(checkout, "git", &["apply", "--reverse", "--check", &patch])? {
        true => Ok(()),
        false => build(checkout, "git", &["apply", &patch]),
    }
}

/// Runs the files that are wanted, and takes the results of their tests.
fn by_file(
    files: &[&str],
    results: &mut Results<'_>,
    run: impl Fn(&str) -> Result<Vec<(String, Outcome)>, XtaskError>,
) -> Result<(), XtaskError> {
    let wants = results.wants();
    for file in files.iter().filter(|file| wants(file)) {
        let before = results.tally();
        for (test, outcome) in run(file)? {
            results.take(&format!("{file}: {test}"), &outcome)?;
        }
        results.say(&format!("{file}: {}", results.tally().since(&before)))?;
    }
    Ok(())
}

/// Returns the files with this extension in a folder and its subfolders, sorted.
fn scripts(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, XtaskError> {
    let mut scripts = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(XtaskError::file("reading", &folder))? {
            let path = entry.map_err(XtaskError::file("reading", &folder))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension() == Some(OsStr::new(extension)) {
                scripts.push(path);
            }
        }
    }
    scripts.sort();
    Ok(scripts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use results::expected;

    #[test]
    fn each_suite_has_a_list_of_its_checks() {
        for suite in Suite::value_variants() {
            let keys = expected(name_of(*suite)).expect("a list");
            let is_own = |key: &str| match suite {
                Suite::Pjdfstest => false,
                Suite::QemuIotests => key.bytes().all(|byte| byte.is_ascii_digit()),
                Suite::Xfstests => key.starts_with("generic/"),
                Suite::Fsx => fsx::CHECKS.iter().any(|own| own.name == key),
                Suite::FsOverNbd => file_systems::covers(key),
                Suite::XfstestsOverNbd => xfstests_over_nbd::covers(key),
                Suite::StressNg => stress::STRESSORS.contains(&key),
                Suite::Postgres => true,
                Suite::Mariadb => {
                    key.split_once('.').is_some_and(|(suite, _)| mariadb::SUITES.contains(&suite))
                }
                Suite::Sqllogictest => key.ends_with(".test"),
                Suite::Nbd => nbd::CHECKS.iter().any(|own| own.name == key),
                Suite::Libnbd => libnbd::CHECKS.iter().any(|own| own.name == key),
                Suite::Azurite => {
                    key.split_once(": ").is_some_and(|(file, _)| azurite::FILES.contains(&file))
                }
                Suite::AzureSdkPython => key
                    .split_once(": ")
                    .is_some_and(|(file, _)| azure_sdk_python::FILES.contains(&file)),
            };
            assert!(keys.iter().all(|(key, reason)| is_own(key) && !reason.is_empty()), "{keys:?}");
        }
    }
}
