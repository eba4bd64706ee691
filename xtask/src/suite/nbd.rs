//! The test client of nbd-server, against volumes of a server.
//!
//! Its script `simple_test` starts nbd-server with a configuration for each check. These are the same
//! checks with `weir serve`, as far as they are not of nbd-server's own configuration.

use super::build;
use super::results::{Outcome, Results};
use super::running::Running;
use super::tap;
use crate::error::XtaskError;
use std::path::Path;
use std::process::Stdio;

/// A volume of the size that `simple_test` uses, and one for its traces.
const LAYOUT: &str = "[[volume]]\nname = \"small\"\nsize = \"4 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"traced\"\nsize = \"50 MiB\"\nunlimited = true\n";

/// A check of `simple_test`.
pub(super) struct Check {
    pub(super) name: &'static str,
    /// Arguments of the client; `{}` stands for the folder of the server.
    args: &'static [&'static str],
}

const fn check(name: &'static str, args: &'static [&'static str]) -> Check {
    Check { name, args }
}

const TRACE: &str = "integrity-test.tr";
const HUGE: &str = "integrityhuge-test.tr";
const UNIX: &str = "{}/nbd";

pub(super) const CHECKS: [Check; 7] = [
    check("cfg1", &["-N", "small", "-u", UNIX]),
    check("cfgsize", &["-o", "-N", "small", "-u", UNIX]),
    check("write", &["-w", "-N", "small", "-u", UNIX]),
    check("flush", &["-w", "-f", "-N", "small", "-u", UNIX]),
    check("handshake", &["-h", "-N", "small", "-u", UNIX]),
    check("integrity", &["-i", "-t", TRACE, "-N", "traced", "-u", UNIX]),
    check("integrityhuge", &["-i", "-t", HUGE, "-N", "traced", "-u", UNIX]),
];

/// Builds the client, and runs each check on a new server.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    let steps = [
        ("./autogen.sh", &[][..]),
        ("./configure", &[]),
        ("make", &[]),
        ("make", &["-C", "tests/run", "nbd-tester-client"]),
    ];
    steps.iter().try_for_each(|(program, args)| build(checkout, program, args))?;
    let wants = results.wants();
    for check in CHECKS.iter().filter(|check| wants(check.name)) {
        results.take(check.name, &check.run(checkout, weir)?)?;
    }
    Ok(())
}

impl Check {
    fn run(&self, checkout: &Path, weir: &Path) -> Result<Outcome, XtaskError> {
        let args = ["serve", "{}/layout.toml", "--nbd", "unix:{}/nbd"];
        let running = Running::start(weir, LAYOUT, &args)?;
        let place = running.path("").display().to_string();
        let folder = checkout.join("tests/run");
        let client = folder.join("nbd-tester-client");
        let mut command = tap::bounded(&client);
        command.args(self.args.iter().map(|arg| arg.replace("{}", place.trim_end_matches('/'))));
        command.current_dir(&folder).stdin(Stdio::null());
        let output = command.output().map_err(XtaskError::file("starting", &client))?;
        running.stop()?;
        let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        let last = said.lines().last().unwrap_or_default().to_owned();
        Ok(match output.status.success() {
            true => Outcome::Passed,
            false => Outcome::Failed(last),
        })
    }
}
