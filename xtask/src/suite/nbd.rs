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
    args: &'static str,
    has_tls: bool,
    /// The words with which the server has to refuse the client, if the client expects an error of any kind.
    refusal: Option<&'static str>,
}

const fn check(name: &'static str, args: &'static str) -> Check {
    Check { name, program: "./nbd-tester-client", args, has_tls: false, refusal: None }
}

/// Returns a check over TLS, with a server that demands certificates. They are Weir's own: the server does not read
/// the suite's key, which has 2,432 bits.
const fn encrypted(name: &'static str, args: &'static str) -> Check {
    Check { has_tls: true, ..check(name, args) }
}

/// Arguments of a client that shows its certificate.
macro_rules! with_certificate {
    ($trace:literal, $server:literal) => {
        concat!(
            "-i -t ",
            $trace,
            " -N traced -C {pki}/client-cert.pem -K {pki}/client-key.pem -A {pki}/ca-cert.pem ",
            $server,
            " {port}"
        )
    };
}

pub(super) const CHECKS: [Check; 11] = [
    check("cfg1", "-N small -u {}/nbd"),
    check("cfgsize", "-o -N small -u {}/nbd"),
    check("write", "-w -N small -u {}/nbd"),
    check("flush", "-w -f -N small -u {}/nbd"),
    check("handshake", "-h -N small -u {}/nbd"),
    check("integrity", "-i -t integrity-test.tr -N traced -u {}/nbd"),
    check("integrityhuge", "-i -t integrityhuge-test.tr -N traced -u {}/nbd"),
    Check { program: "../../nbd-client", ..check("list", "-l -u {}/nbd") },
    encrypted("tls", with_certificate!("integrity-test.tr", "localhost")),
    encrypted("tlshuge", with_certificate!("integrityhuge-test.tr", "-H localhost 127.0.0.1")),
    Check {
        refusal: Some("why=\"peer sent no certificates\""),
        ..encrypted(
            "tlswrongcert",
            "-t integrity-test.tr -N traced -C certs/selfsigned-cert.pem -K certs/selfsigned-key.pem -F localhost {port}",
        )
    },
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
        let system = |source| XtaskError::System { doing: "making a folder", source };
        let certificates =
            tempfile::Builder::new().prefix("weir-nbd-").tempdir().map_err(system)?;
        let pki = certificates.path().display().to_string();
        let port = free_port()?.to_string();
        let address = match self.has_tls {
            true => format!("tcp:127.0.0.1:{port}"),
            false => "unix:{}/nbd".to_owned(),
        };
        let mut args = vec!["serve", "{}/layout.toml", "--nbd", &address];
        if self.has_tls {
            let weir = weir.display().to_string();
            build(checkout, &weir, &["cert", &pki, "--nbd", "--name", "localhost"])?;
            args.extend(["--tls-certificates", &pki, "--tls-verify-peer"]);
        }
        let running = Running::start(weir, LAYOUT, &args)?;
        let place = running.path("").display().to_string();
        let folder = checkout.join("tests/run");
        let mut command = tap::bounded(self.program);
        command.args(self.args.split_whitespace().map(|arg| {
            let arg = arg.replace("{pki}", &pki).replace("{port}", &port);
            arg.replace("{}", place.trim_end_matches('/'))
        }));
        command.current_dir(&folder).stdin(Stdio::null());
        let program = folder.join(self.program);
        let output = command.output().map_err(XtaskError::file("starting", &program))?;
        let told = running.stop_and_tell()?;
        let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        let last = said.lines().last().unwrap_or_default().to_owned();
        Ok(match (output.status.success(), self.refusal) {
            (false, _) => Outcome::Failed(last),
            (true, Some(why)) if !told.contains(why) => {
                Outcome::Failed(format!("the server did not refuse it with {why:?}: {told}"))
            }
            (true, _) => Outcome::Passed,
        })
    }
}
