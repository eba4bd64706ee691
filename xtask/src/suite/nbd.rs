//! The test client of nbd-server, against volumes of a server.
//!
//! Its script `simple_test` starts nbd-server with a configuration for each check. These are the same
//! checks with `weir serve`, as far as they are not of nbd-server's own configuration.

use super::build;
use super::results::{Outcome, Results};
use super::running::{Running, free_port};
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
    program: &'static str,
    /// Arguments of the program; `{}` stands for the folder of the server, `{pki}` for that of the certificates and
    /// `{port}` for the port.
    args: &'static [&'static str],
    has_tls: bool,
}

const fn check(name: &'static str, args: &'static [&'static str]) -> Check {
    Check { name, program: "./nbd-tester-client", args, has_tls: false }
}

/// Returns a check over TLS, with a server that demands certificates. They are Weir's own: the server does not read
/// the suite's key, which has 2,432 bits.
const fn encrypted(name: &'static str, args: &'static [&'static str]) -> Check {
    Check { has_tls: true, ..check(name, args) }
}

const TRACE: &str = "integrity-test.tr";
const HUGE: &str = "integrityhuge-test.tr";
const UNIX: &str = "{}/nbd";
const CERTIFICATE: &str = "{pki}/client-cert.pem";
const KEY: &str = "{pki}/client-key.pem";
const AUTHORITY: &str = "{pki}/ca-cert.pem";

pub(super) const CHECKS: [Check; 11] = [
    check("cfg1", &["-N", "small", "-u", UNIX]),
    check("cfgsize", &["-o", "-N", "small", "-u", UNIX]),
    check("write", &["-w", "-N", "small", "-u", UNIX]),
    check("flush", &["-w", "-f", "-N", "small", "-u", UNIX]),
    check("handshake", &["-h", "-N", "small", "-u", UNIX]),
    check("integrity", &["-i", "-t", TRACE, "-N", "traced", "-u", UNIX]),
    check("integrityhuge", &["-i", "-t", HUGE, "-N", "traced", "-u", UNIX]),
    Check { program: "../../nbd-client", ..check("list", &["-l", "-u", UNIX]) },
    encrypted(
        "tls",
        &[
            "-i",
            "-t",
            TRACE,
            "-N",
            "traced",
            "-C",
            CERTIFICATE,
            "-K",
            KEY,
            "-A",
            AUTHORITY,
            "localhost",
            "{port}",
        ],
    ),
    encrypted(
        "tlshuge",
        &[
            "-i",
            "-t",
            HUGE,
            "-N",
            "traced",
            "-C",
            CERTIFICATE,
            "-K",
            KEY,
            "-A",
            AUTHORITY,
            "-H",
            "localhost",
            "127.0.0.1",
            "{port}",
        ],
    ),
    encrypted(
        "tlswrongcert",
        &[
            "-t",
            TRACE,
            "-N",
            "traced",
            "-C",
            "certs/selfsigned-cert.pem",
            "-K",
            "certs/selfsigned-key.pem",
            "-F",
            "localhost",
            "{port}",
        ],
    ),
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
    let system = |source| XtaskError::System { doing: "making a folder", source };
    let certificates = tempfile::Builder::new().prefix("weir-nbd-").tempdir().map_err(system)?;
    let weir_name = weir.display().to_string();
    build(certificates.path(), &weir_name, &["cert", "pki", "--nbd", "--name", "localhost"])?;
    let certificates = certificates.path().join("pki");
    let wants = results.wants();
    for check in CHECKS.iter().filter(|check| wants(check.name)) {
        results.take(check.name, &check.run(checkout, weir, &certificates)?)?;
    }
    Ok(())
}

impl Check {
    fn run(&self, checkout: &Path, weir: &Path, pki: &Path) -> Result<Outcome, XtaskError> {
        let (pki, port) = (pki.display().to_string(), free_port()?.to_string());
        let tcp = format!("tcp:127.0.0.1:{port}");
        let args = match self.has_tls {
            false => vec!["serve", "{}/layout.toml", "--nbd", "unix:{}/nbd"],
            true => {
                let tls = ["--tls-certificates", &pki, "--tls-verify-peer"];
                [&["serve", "{}/layout.toml", "--nbd", &tcp][..], &tls].concat()
            }
        };
        let running = Running::start(weir, LAYOUT, &args)?;
        let place = running.path("").display().to_string();
        let folder = checkout.join("tests/run");
        let mut command = tap::bounded(self.program);
        command.args(self.args.iter().map(|arg| {
            let arg = arg.replace("{pki}", &pki).replace("{port}", &port);
            arg.replace("{}", place.trim_end_matches('/'))
        }));
        command.current_dir(&folder).stdin(Stdio::null());
        let program = folder.join(self.program);
        let output = command.output().map_err(XtaskError::file("starting", &program))?;
        running.stop()?;
        let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        let last = said.lines().last().unwrap_or_default().to_owned();
        Ok(match output.status.success() {
            true => Outcome::Passed,
            false => Outcome::Failed(last),
        })
    }
}
