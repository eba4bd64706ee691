//! A server of PostgreSQL, with its data folder in a mount.

use super::super::child::{self, must};
use super::super::server::{PATIENCE, wait_until};
use super::super::session::Session;
use crate::error::XtaskError;
use crate::interrupt::in_own_group;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use weir_units::Span;

/// The user of the Debian package. PostgreSQL refuses to run as root.
const USER: &str = "postgres";
/// Seconds for a connection.
const CONNECTING: &str = "5";
const PROGRAMS: [&str; 4] = ["initdb", "postgres", "psql", "pg_amcheck"];
/// The time to make a cluster, or to check one, on a slow machine.
const LONG: Span = Span::from_secs(180);
/// The time for a first query. Another one follows while the server recovers.
const SHORT: Span = Span::from_secs(10);
/// Settings that make checkpoints and new log files frequent.
const SETTINGS: [&str; 4] =
    ["shared_buffers=2MB", "max_wal_size=4MB", "min_wal_size=2MB", "checkpoint_timeout=30s"];

/// The installed programs, and the user and group to run them as.
pub(super) struct Programs {
    folder: PathBuf,
    user: Option<(u32, u32)>,
}

/// A server; ended if it is dropped.
pub(super) struct Postgres {
    programs: Programs,
    /// The folder of its socket and its log.
    place: PathBuf,
    running: Option<Child>,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl Postgres {
    /// Returns the newest programs that are installed.
    pub(super) fn find() -> Option<Programs> {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let debian = versions.map(|version| version.path().join("bin"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has_all = |folder: &PathBuf| PROGRAMS.iter().all(|name| folder.join(name).is_file());
        let found = debian.filter(has_all).max_by_key(|folder| version(folder));
        let folder = found.or_else(|| std::env::split_paths(&path).find(has_all))?;
        let id = |option: &str| -> Option<u32> {
            let output = Command::new("id").args([option, USER]).output().ok()?;
            String::from_utf8_lossy(&output.stdout).trim().parse().ok()
        };
        let user = match geteuid().is_root() {
            true => Some((id("-u")?, id("-g")?)),
            false => None,
        };
        Some(Programs { folder, user })
    }

    /// Makes the folder of its socket, and lets its user pass.
    pub(super) fn prepare(programs: Programs, folder: &Path) -> Result<Self, XtaskError> {
        let place = folder.join("postgres");
        fs::create_dir(&place).map_err(XtaskError::file("creating", &place))?;
        let open = fs::set_permissions(folder, fs::Permissions::from_mode(0o755));
        open.map_err(XtaskError::file("changing the mode of", folder))?;
        programs.give(&place).map_err(XtaskError::file("giving away", &place))?;
        Ok(Self { programs, place, running: None })
    }

    /// Makes a cluster.
    pub(super) fn create(&self, data: &Path) -> Result<(), String> {
        let made = fs::create_dir(data).and_then(|()| self.programs.give(data));
        made.map_err(|error| format!("{}: {error}", data.display()))?;
        let mut initdb = self.programs.command("initdb");
        initdb.args(["-A", "trust", "--no-locale", "-E", "UTF8", "-U", USER, "--wal-segsize=1"]);
        must(initdb.arg("-D").arg(data), LONG)
    }

    /// Starts it, and waits until it has recovered.
    pub(super) fn start(&mut self, data: &Path) -> Result<(), String> {
        let log = self.place.join("log");
        let log = File::options().create(true).append(true).open(&log);
        let mut server = self.programs.command("postgres");
        server.arg("-D").arg(data).arg("-k").arg(&self.place);
        server.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        server.args(["-c", "listen_addresses="]);
        server.stdout(Stdio::null()).stderr(log.map_err(|error| error.to_string())?);
        let mut child = server.spawn().map_err(|error| error.to_string())?;
        let waited = wait_until("PostgreSQL takes no connection", || {
            let ended = child.try_wait().is_ok_and(|status| status.is_some());
            Ok(ended || must(self.psql().args(["-c", "select 1"]), SHORT).is_ok())
        });
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            return Err(format!("it ended; the end of its log: {}", self.last_words()));
        }
        self.running = Some(child);
        waited.map_err(|error| error.to_string())
    }

    fn last_words(&self) -> String {
        let log = fs::read(self.place.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().rev().take(8).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("; ")
    }

    fn psql(&self) -> Command {
        let mut psql = in_own_group(self.programs.folder.join("psql"));
        psql.arg("-h").arg(&self.place).args(["-U", USER, "-d", "postgres"]);
        psql.env("PGCONNECT_TIMEOUT", CONNECTING);
        psql
    }

    /// Opens a session.
    pub(super) fn open(&self) -> Result<Session, String> {
        Session::psql(self.psql())
    }

    /// Checks its tables and indexes.
    pub(super) fn amcheck(&self) -> Result<(), String> {
        let mut check = in_own_group(self.programs.folder.join("pg_amcheck"));
        check.args(["--install-missing", "--heapallindexed", "-U", USER, "-h"]);
        check.env("PGCONNECT_TIMEOUT", CONNECTING);
        must(check.arg(&self.place).arg("postgres"), LONG)
    }

    /// Ends it in order, or at once.
    pub(super) fn end(&mut self, in_order: bool) {
        let Some(mut child) = self.running.take() else { return };
        // Once it has been waited for, its number may be that of another process.
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        let signal = if in_order { Signal::INT } else { Signal::QUIT };
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, signal);
        }
        child::end(&mut child, PATIENCE);
    }
}

impl Programs {
    fn command(&self, name: &str) -> Command {
        let mut command = in_own_group(self.folder.join(name));
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.current_dir("/").stdin(Stdio::null());
        command
    }

    fn give(&self, path: &Path) -> std::io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        let user = self.user.map(|(user, _)| user);
        std::os::unix::fs::chown(path, user, self.user.map(|(_, group)| group))
    }
}

/// Returns the version of a folder of Debian, as 15 of `/usr/lib/postgresql/15/bin`.
fn version(folder: &Path) -> Vec<u32> {
    let name = folder.parent().and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        let folder = |name: &str| Path::new("/usr/lib/postgresql").join(name).join("bin");
        let newest = ["9.6", "15", "9.10", "9.6"].map(folder);
        let newest = newest.iter().max_by_key(|own| version(own));
        assert_eq!(newest, Some(&folder("15")));
        assert!(version(&folder("9.10")) > version(&folder("9.6")));
    }
}
