//! PostgreSQL on `weir mount`: its regression tests against a server whose files are on the mount, and
//! pgbench followed by `pg_amcheck`.
//!
//! The checkout has the sources of the installed version. Only the runner of the tests is built from it;
//! the server is the installed one.

use super::results::{Outcome, Results};
use super::running::Running;
use super::{LAYOUT, MOUNT, build, succeeds, tap};
use crate::error::XtaskError;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The server does not run as root.
const USER: &str = "postgres";
const PORT: &str = "54329";
const REGRESS: &str = "src/test/regress";
const BENCH: &str = "pgbench and pg_amcheck";

/// The programs, and the folders of a server.
struct Server {
    programs: PathBuf,
    checkout: PathBuf,
    /// Its data, on the mount.
    data: String,
    /// Its socket and its log, and the output of the tests.
    place: String,
}

/// Builds the runner, and runs the tests.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    if !succeeds(checkout, "test", &["-x", "src/test/regress/regress.so"])? {
        build(checkout, "./configure", &["--without-readline", "--without-zlib"])?;
        build(checkout, "make", &["-C", "src/backend", "generated-headers"])?;
        for folder in ["src/port", "src/common", "src/interfaces/libpq", REGRESS] {
            build(checkout, "make", &["-C", folder])?;
        }
    }
    let running = Running::start(weir, LAYOUT, &MOUNT)?;
    let path = |name: &str| running.path(name).display().to_string();
    let (data, place) = (path("mount/suite/data"), path("place"));
    build(checkout, "chmod", &["755", &path("")])?;
    build(checkout, "install", &["-d", "-o", USER, "-m", "700", &data, &place])?;
    // The tests write files beside their sources.
    build(checkout, "chown", &["-R", USER, REGRESS])?;
    let server = Server { programs: programs()?, checkout: checkout.to_owned(), data, place };
    server.must("initdb", &["-D", &server.data, "--no-locale", "-E", "UTF8"])?;
    let options = format!("-k {} -p {PORT} -c listen_addresses=''", server.place);
    let log = format!("{}/log", server.place);
    server.must("pg_ctl", &["-w", "-D", &server.data, "-o", &options, "-l", &log, "start"])?;
    let done = server.regress(results).and_then(|()| server.bench(results));
    let stopped = server.must("pg_ctl", &["-w", "-D", &server.data, "-m", "fast", "stop"]);
    done.and(stopped)?;
    running.stop()
}

/// Returns the folder of the installed programs.
fn programs() -> Result<PathBuf, XtaskError> {
    let mut command = Command::new("pg_config");
    let output = command.arg("--bindir").output();
    let output = output.map_err(XtaskError::file("starting", Path::new("pg_config")))?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end()))
}

impl Server {
    /// Runs the schedule of tests that run side by side.
    fn regress(&self, results: &mut Results<'_>) -> Result<(), XtaskError> {
        let folder = self.checkout.join(REGRESS);
        let bindir = format!("--bindir={}", self.programs.display());
        let (host, out) = (format!("--host={}", self.place), format!("--outputdir={}", self.place));
        let port = format!("--port={PORT}");
        let args = [
            bindir.as_str(),
            "--inputdir=.",
            &out,
            "--dlpath=.",
            &host,
            &port,
            "--max-connections=20",
            "--schedule=./parallel_schedule",
        ];
        let output = self.run(&folder, &folder.join("pg_regress"), &args)?;
        let tests = parse(&String::from_utf8_lossy(&output.stdout));
        if tests.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            return Err(XtaskError::Suite(format!("pg_regress ran no tests: {said}")));
        }
        let wants = results.wants();
        for (test, outcome) in tests.iter().filter(|(test, _)| wants(test)) {
            results.take(test, outcome)?;
        }
        Ok(())
    }

    /// Runs transactions for a while, and checks the tables and indices after them.
    fn bench(&self, results: &mut Results<'_>) -> Result<(), XtaskError> {
        if !results.wants()(BENCH) {
            return Ok(());
        }
        let at = ["-h", &self.place, "-p", PORT];
        let steps: [(&str, &[&str]); 4] = [
            ("createdb", &["bench"]),
            ("pgbench", &["-i", "-q", "-s", "10", "bench"]),
            ("pgbench", &["-c", "8", "-j", "2", "-T", "30", "bench"]),
            ("pg_amcheck", &["--install-missing", "--heapallindexed", "bench"]),
        ];
        let mut outcome = Outcome::Passed;
        for (program, args) in steps {
            let output = self.call(program, &[&at, args].concat())?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
                outcome = Outcome::Failed(format!("{program}: {said}"));
                break;
            }
        }
        results.take(BENCH, &outcome)
    }

    fn must(&self, program: &str, args: &[&str]) -> Result<(), XtaskError> {
        let output = self.call(program, args)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        Err(XtaskError::Suite(format!("{program} failed: {said}")))
    }

    /// Runs an installed program.
    fn call(&self, program: &str, args: &[&str]) -> Result<Output, XtaskError> {
        self.run(Path::new(&self.place), &self.programs.join(program), args)
    }

    fn run(&self, folder: &Path, program: &Path, args: &[&str]) -> Result<Output, XtaskError> {
        let mut command = tap::bounded("runuser");
        command.args(["-u", USER, "--"]).arg(program).args(args);
        // A server that goes on must not hold a pipe open.
        command.current_dir(folder).stdin(Stdio::null());
        if program.ends_with("pg_ctl") {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        command.output().map_err(XtaskError::file("starting", program))
    }
}

/// Parses the lines of tests: `test NAME ... ok 12 ms`, or without `test` in a group.
fn parse(said: &str) -> Vec<(String, Outcome)> {
    let outcome = |line: &str| {
        let (name, result) = line.split_once(" ... ")?;
        let name = name.trim().trim_start_matches("test ").trim_end().to_owned();
        let result = result.trim_start();
        Some(match result.starts_with("ok") {
            true => (name, Outcome::Passed),
            false => (name, Outcome::Failed(result.trim_end().to_owned())),
        })
    };
    said.lines().filter_map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        let said = "===== running =====\ntest test_setup                   ... ok         3855 ms\n\
            parallel group (2 tests):  int2 int4\n     int2                         ... ok          798 ms\n     \
            int4                         ... FAILED      98 ms\n";
        let failed = Outcome::Failed("FAILED      98 ms".to_owned());
        let expect = [("test_setup", Outcome::Passed), ("int2", Outcome::Passed), ("int4", failed)];
        assert_eq!(parse(said), expect.map(|(name, outcome)| (name.to_owned(), outcome)));
    }
}
