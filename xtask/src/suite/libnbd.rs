//! The tests of libnbd that are about a server: its interoperability tests, which take the server as macros,
//! and its parallel requests.
//!
//! They are compiled here with the library that is installed. The other tests of libnbd are about the client,
//! with options of nbdkit that no other server has.

use super::results::{Outcome, Results};
use super::running::Running;
use super::{output, tap};
use crate::error::XtaskError;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

/// Two exports. The first has the size that the tests expect.
const LAYOUT: &str = "[[volume]]\nname = \"disk1\"\nsize = \"1 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"disk2\"\nsize = \"2 MiB\"\nunlimited = true\n";

/// A program of the suite.
pub(super) struct Check {
    pub(super) name: &'static str,
    source: &'static str,
    /// Macros besides the server and its parameters.
    macros: &'static [&'static str],
    server: Server,
}

enum Server {
    /// The program starts it, and passes it a socket.
    Started { has_tls: bool },
    /// It runs already, with one export of so many MiB, and the name of its socket is an argument.
    Running { mib: u32 },
}

const fn interop(name: &'static str, macros: &'static [&'static str], has_tls: bool) -> Check {
    Check { name, source: "interop/interop.c", macros, server: Server::Started { has_tls } }
}

const fn parallel(name: &'static str, source: &'static str, mib: u32) -> Check {
    Check { name, source, macros: &[], server: Server::Running { mib } }
}

pub(super) const CHECKS: [Check; 9] = [
    interop("interop", &["SOCKET_ACTIVATION=1", "EXPORT_NAME=\"disk1\""], false),
    interop(
        "interop-tls-certs",
        &["SOCKET_ACTIVATION=1", "EXPORT_NAME=\"disk1\"", "CERTS=1", "TLS_MODE=LIBNBD_TLS_REQUIRE"],
        true,
    ),
    interop(
        "interop-tls-certs-allow-enabled",
        &["SOCKET_ACTIVATION=1", "EXPORT_NAME=\"disk1\"", "CERTS=1", "TLS_MODE=LIBNBD_TLS_ALLOW"],
        true,
    ),
    interop(
        "interop-tls-certs-allow-fallback",
        &[
            "SOCKET_ACTIVATION=1",
            "EXPORT_NAME=\"disk1\"",
            "CERTS=1",
            "TLS_MODE=LIBNBD_TLS_ALLOW",
            "TLS_FALLBACK=1",
        ],
        false,
    ),
    Check {
        name: "list-exports",
        source: "interop/list-exports.c",
        macros: &[
            "SOCKET_ACTIVATION=1",
            "EXPORTS=\"disk1\", \"disk2\"",
            "DESCRIPTIONS=\"own limits\", \"own limits\"",
        ],
        server: Server::Started { has_tls: false },
    },
    Check {
        name: "socket-activation",
        source: "interop/socket-activation.c",
        macros: &[],
        server: Server::Started { has_tls: false },
    },
    parallel("aio-parallel", "tests/aio-parallel.c", 64),
    parallel("aio-parallel-load", "tests/aio-parallel-load.c", 64),
    parallel("synch-parallel", "tests/synch-parallel.c", 8),
];

/// Compiles and runs the programs.
pub(super) fn run(
    checkout: &Path,
    weir: &Path,
    results: &mut Results<'_>,
) -> Result<(), XtaskError> {
    let bed = Bed::new(checkout, weir)?;
    let wants = results.wants();
    for check in CHECKS.iter().filter(|check| wants(check.name)) {
        let outcome = match bed.compile(check)? {
            Some(refused) => Outcome::Failed(refused),
            None => bed.run(check)?,
        };
        results.take(check.name, &outcome)?;
    }
    Ok(())
}

/// A folder as the tests expect it: they run in `interop`, and the certificates are in `tests/pki`.
struct Bed<'a> {
    checkout: &'a Path,
    weir: &'a Path,
    folder: TempDir,
}

impl<'a> Bed<'a> {
    fn new(checkout: &'a Path, weir: &'a Path) -> Result<Self, XtaskError> {
        let system = |source| XtaskError::System { doing: "making a folder", source };
        let folder = tempfile::Builder::new().prefix("weir-libnbd-").tempdir().map_err(system)?;
        let bed = Self { checkout, weir, folder };
        for dir in ["bin", "interop", "tests"] {
            fs::create_dir(bed.path(dir)).map_err(XtaskError::file("creating", &bed.path(dir)))?;
        }
        // The package of the library has what configure would write here.
        for (file, text) in [("config.h", ""), ("layout.toml", LAYOUT)] {
            let path = bed.path(file);
            fs::write(&path, text).map_err(XtaskError::file("writing", &path))?;
        }
        let weir = weir.display().to_string();
        let made = output(
            bed.folder.path(),
            &weir,
            &["cert", "tests/pki", "--nbd", "--name", "localhost"],
        )?;
        match made.status.success() {
            true => Ok(bed),
            false => Err(XtaskError::Suite(format!("weir cert: {}", last_line(&made.stderr)))),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, check: &Check) -> PathBuf {
        self.path("bin").join(check.name)
    }

    /// Compiles a program; returns what the compiler said if it did not.
    fn compile(&self, check: &Check) -> Result<Option<String>, XtaskError> {
        let checkout = self.checkout.display();
        let mut args = vec!["-o".to_owned(), self.program(check).display().to_string()];
        args.extend([check.source, "tests/requires.c"].map(|file| format!("{checkout}/{file}")));
        args.push(format!("-I{}", self.folder.path().display()));
        args.extend(["common/include", "tests"].map(|dir| format!("-I{checkout}/{dir}")));
        args.extend(check.macros.iter().map(|own| format!("-D{own}")));
        if let Server::Started { has_tls } = check.server {
            args.push(format!("-DSERVER=\"{}\"", self.weir.display()));
            args.push(format!("-DSERVER_PARAMS={}", self.parameters(has_tls)));
        }
        args.extend(["-lnbd", "-lpthread"].map(str::to_owned));
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let compiled = output(self.folder.path(), "cc", &args)?;
        let said = String::from_utf8_lossy(&compiled.stderr);
        let error = said.lines().find(|line| line.contains("error")).unwrap_or("cc failed");
        Ok((!compiled.status.success()).then(|| error.to_owned()))
    }

    /// Returns the parameters of the server as C strings.
    fn parameters(&self, has_tls: bool) -> String {
        let place = self.folder.path().display();
        let mut all = vec![
            "serve".to_owned(),
            format!("{place}/layout.toml"),
            "--nbd".to_owned(),
            "systemd".to_owned(),
            "--control".to_owned(),
            format!("{place}/control"),
        ];
        if has_tls {
            all.extend(["--tls-certificates".to_owned(), format!("{place}/tests/pki")]);
        }
        all.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(", ")
    }

    fn run(&self, check: &Check) -> Result<Outcome, XtaskError> {
        let mut command = tap::bounded(self.program(check));
        command.current_dir(self.path("interop")).stdin(Stdio::null());
        let running = match check.server {
            Server::Started { .. } => None,
            Server::Running { mib } => {
                let args = ["serve", "{}/layout.toml", "--nbd", "unix:{}/nbd"];
                let layout = format!(
                    "[[volume]]\nname = \"disk\"\nsize = \"{mib} MiB\"\nunlimited = true\n"
                );
                let running = Running::start(self.weir, &layout, &args)?;
                let socket = running.path("nbd").display().to_string();
                self.fill(mib, &socket)?;
                command.arg(socket);
                Some(running)
            }
        };
        let said = self.path("said");
        let file = File::create(&said).map_err(XtaskError::file("creating", &said))?;
        command.stdout(Stdio::null()).stderr(file);
        let ended = command.spawn().and_then(|mut child| Ok((child.id(), child.wait()?)));
        let (id, status) = ended.map_err(XtaskError::file("starting", Path::new(check.name)))?;
        // A program that fails leaves the server that it started. It is in the group of `timeout`.
        if let Some(group) = i32::try_from(id).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        running.map_or(Ok(()), Running::stop)?;
        let said = fs::read(&said).map_err(XtaskError::file("reading", &said))?;
        Ok(match status.code() {
            Some(0) => Outcome::Passed,
            // As automake has it.
            Some(77) => Outcome::Skipped,
            _ => Outcome::Failed(last_line(&said)),
        })
    }

    /// Fills the export with what the programs expect: each 8 bytes are their offset, with the first byte highest.
    fn fill(&self, mib: u32, socket: &str) -> Result<(), XtaskError> {
        let size = format!("size={mib}M");
        let copy = format!("nbdcopy \"$uri\" 'nbd+unix:///disk?socket={socket}'");
        let filled =
            output(self.folder.path(), "nbdkit", &["-U", "-", "pattern", &size, "--run", &copy])?;
        match filled.status.success() {
            true => Ok(()),
            false => Err(XtaskError::Suite(format!("nbdcopy: {}", last_line(&filled.stderr)))),
        }
    }
}

fn last_line(said: &[u8]) -> String {
    String::from_utf8_lossy(said).trim_end().lines().last().unwrap_or_default().to_owned()
}
