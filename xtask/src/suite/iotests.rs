//! QEMU's iotests of raw images over NBD, on `weir serve`.
//!
//! They start the server of an image themselves, with the program in `QEMU_NBD_PROG`. That is
//! `xtask/suites/qemu-nbd`, which serves the image as the backend of a volume. The clients are the installed
//! `qemu-img`, `qemu-io` and `qemu-system-x86_64`.
//!
//! Run are the scripts that say that they support raw images and NBD. A script that has passed and has not
//! started the server counts as skipped.

use super::results::{Outcome, Results};
use super::tap;
use super::watchdog::{self, Mark};
use crate::error::XtaskError;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The error of a QEMU without the accelerator that the tests of the emulator need, as Debian's is.
const LACKS_QTEST: &str = "invalid accelerator qtest";
/// The time after which a QEMU that has started has the accelerator.
const STARTING: Duration = Duration::from_secs(5);
/// The longest time of a test.
const LONGEST: Duration = Duration::from_secs(300);
/// The programs that the tests use, and the variables that name them.
const PROGRAMS: [(&str, &str); 4] = [
    ("QEMU_PROG", "qemu-system-x86_64"),
    ("QEMU_IMG_PROG", "qemu-img"),
    ("QEMU_IO_PROG", "qemu-io"),
    ("QSD_PROG", "qemu-storage-daemon"),
];

/// The folder of the tests in the checkout, and one for images, sockets and the layout.
struct Bed<'a> {
    tests: PathBuf,
    weir: &'a Path,
    folder: TempDir,
}

/// Runs the tests, one after another.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    let system = |source| XtaskError::System { doing: "making a folder", source };
    // Paths of sockets are short.
    let folder = tempfile::Builder::new().prefix("weir-qemu-").tempdir().map_err(system)?;
    let bed = Bed { tests: checkout.join("tests/qemu-iotests"), weir, folder };
    let wants = results.wants();
    let has_qtest = bed.has_qtest()?;
    for test in bed.list()?.iter().filter(|test| wants(test)) {
        let outcome = match has_qtest || !bed.uses_emulator(test)? {
            true => bed.run(test)?,
            false => Outcome::Skipped,
        };
        results.take(test, &outcome)?;
    }
    if !has_qtest {
        results.say("tests of the emulator are skipped: QEMU lacks the accelerator qtest")?;
    }
    Ok(())
}

impl Bed<'_> {
    /// Returns whether QEMU has the accelerator of its tests.
    fn has_qtest(&self) -> Result<bool, XtaskError> {
        let mut qemu = Command::new(installed(PROGRAMS[0].1)?);
        qemu.args(["-machine", "none", "-accel", "qtest", "-display", "none", "-nodefaults", "-S"]);
        let (_, said) = watchdog::run_to_file(&mut qemu, &self.path("said"), STARTING)?;
        Ok(!said.contains(LACKS_QTEST))
    }

    /// Returns whether a test starts the emulator, and not only its tools.
    fn uses_emulator(&self, test: &str) -> Result<bool, XtaskError> {
        let path = self.tests.join(test);
        let script = fs::read(&path).map_err(XtaskError::file("reading", &path))?;
        let script = String::from_utf8_lossy(&script);
        Ok(["$QEMU ", "_launch_qemu"].iter().any(|words| script.contains(words)))
    }

    /// Returns the numbers of the scripts that support raw images over NBD.
    fn list(&self) -> Result<Vec<String>, XtaskError> {
        let entries =
            fs::read_dir(&self.tests).map_err(XtaskError::file("reading", &self.tests))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
        let mut numbers: Vec<String> = names.filter(is_number).collect();
        numbers.sort();
        let mut tests = Vec::new();
        for number in numbers {
            let path = self.tests.join(&number);
            let script = fs::read(&path).map_err(XtaskError::file("reading", &path))?;
            if supports_nbd(&String::from_utf8_lossy(&script)) {
                tests.push(number);
            }
        }
        match tests.is_empty() {
            false => Ok(tests),
            true => Err(XtaskError::Suite(format!("{} has no tests", self.tests.display()))),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a test.
    fn run(&self, test: &str) -> Result<Outcome, XtaskError> {
        let (said, served) = (self.path("said"), self.path("served"));
        for file in [&said, &served] {
            File::create(file).map_err(XtaskError::file("creating", file))?;
        }
        let file = File::create(&said).map_err(XtaskError::file("creating", &said))?;
        let mut command = Command::new("./check");
        command.args(["-tap", "-raw", "-nbd", test]).current_dir(&self.tests);
        command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null()).env("WEIR", self.weir);
        command.env("TEST_DIR", self.path("images")).env("SOCK_DIR", self.path("sockets"));
        command.env("QEMU_NBD_PROG", crate::root().join("xtask/suites/qemu-nbd"));
        for (name, program) in PROGRAMS {
            command.env(name, installed(program)?);
        }
        let mark = Mark { name: "WEIR_SUITE", value: self.folder.path().as_os_str() };
        let ended = watchdog::run(&mut command, mark, LONGEST)?;
        // A test that fails may leave its server.
        watchdog::end(mark)?;
        let read = |path: &Path| {
            fs::read(path)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(XtaskError::file("reading", path))
        };
        let said = read(&said)?;
        let outcome = match ended {
            None => Outcome::Failed(format!("it did not end within {} s", LONGEST.as_secs())),
            Some(_) => whole(&said),
        };
        Ok(match outcome {
            Outcome::Passed if read(&served)?.is_empty() => Outcome::Skipped,
            outcome => outcome,
        })
    }
}

/// Returns the path of an installed program, since the tests take no names.
fn installed(program: &str) -> Result<PathBuf, XtaskError> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(program));
    let missing = || XtaskError::Suite(format!("{program} is not installed; the tests need it"));
    paths.find(|path| path.is_file()).ok_or_else(missing)
}

/// Returns whether a script says that it supports raw images and NBD.
fn supports_nbd(script: &str) -> bool {
    let says = |function: &str, own: &str| {
        let line = script.lines().find_map(|line| line.strip_prefix(function));
        line.is_some_and(|line| {
            line.split_whitespace().any(|word| [own, "generic"].contains(&word))
        })
    };
    says("_supported_fmt ", "raw") && says("_supported_proto ", "nbd")
}

/// Returns the one result of a test: its first failure, if it has one.
fn whole(said: &str) -> Outcome {
    let outcomes = tap::parse(said).into_iter().map(|(_, outcome)| outcome);
    let mut outcomes: Vec<Outcome> = outcomes.collect();
    outcomes.sort_by_key(|outcome| !matches!(outcome, Outcome::Failed(_)));
    match outcomes.into_iter().next() {
        Some(Outcome::Failed(words)) => {
            // The difference of the outputs is in comments.
            let mut differences = said.lines().filter_map(|line| line.strip_prefix("# +"));
            let differs = differences.find(|line| !line.starts_with("++"));
            Outcome::Failed(format!("{words} {}", differs.unwrap_or_default()))
        }
        Some(outcome) => outcome,
        None => Outcome::Failed("it has no result".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_say_what_they_support() {
        assert!(supports_nbd("# a\n_supported_fmt raw qcow2\n_supported_proto file nbd\n"));
        assert!(supports_nbd("_supported_fmt generic\n_supported_proto generic\n"));
        assert!(!supports_nbd("_supported_fmt qcow2\n_supported_proto nbd\n"));
        assert!(!supports_nbd("_supported_fmt raw\n_supported_proto file\n# nbd\n"));
    }

    #[test]
    fn a_failure_is_the_result() {
        let said = "TAP version 13\n1..1\nnot ok 1 raw nbd 001\n# --- a\n# +++ b\n# @@ -1 +1 @@\n# +wrong\n";
        assert_eq!(whole(said), Outcome::Failed("raw nbd 001 wrong".to_owned()));
        assert_eq!(whole("TAP version 13\n1..1\nok 1 raw nbd 001\n"), Outcome::Passed);
        assert_eq!(whole("1..1\nok 1 raw nbd 001 # SKIP no NBD\n"), Outcome::Skipped);
        assert!(matches!(whole(""), Outcome::Failed(_)));
    }
}
