//! A program that takes lines and answers each, like a client of a database when a line of SQL is committed.

use super::child;
use super::server::PATIENCE;
use crate::interrupt::in_own_group;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_units::Span;

/// Marks the end of an answer.
pub(super) const DONE: &str = "-- done";

/// The time to close a database.
const CLOSING: Span = Span::from_secs(20);

/// Runs the statements of each line, prints their rows, and then [`DONE`].
///
/// With `synchronous=full`, SQLite does not sync the folder from which a commit removes the journal, and a loss of
/// power may bring the journal back; with `extra` it does. It calls a commit a success, however, if it cannot open that
/// folder (`unixDelete` in its sources), as when the server has just ended. So an answer counts only if a file beside
/// the database can be opened after the commit.
const PYTHON: &str = "
import os, sqlite3, sys
path, journal, done = sys.argv[1:]
db = sqlite3.connect(path, timeout=60, isolation_level=None)
mode = db.execute('pragma journal_mode=' + journal).fetchone()[0]
if mode != journal: sys.exit('the journal mode is ' + mode)
db.execute('pragma synchronous=extra')
db.execute('pragma wal_autocheckpoint=50')
db.execute('pragma cache_size=20')
for line in sys.stdin:
    for sql in line.split(';'):
        for row in db.execute(sql): print('|'.join(map(str, row)))
    os.close(os.open(path + '.alive', os.O_CREAT | os.O_WRONLY))
    print(done, flush=True)
";

/// A running program. If it is dropped, its input ends, so that it closes its database; it is killed if that
/// takes too long.
pub(super) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    /// Its lines, which a thread reads.
    output: Receiver<String>,
    /// The time for a line.
    patience: Span,
    said: Option<JoinHandle<String>>,
    /// A command that is sent after each line, for clients that do not mark the end of their answers.
    echo: &'static str,
}

impl Drop for Session {
    fn drop(&mut self) {
        // At the end of its input it closes the database.
        drop(self.input.take());
        child::end(&mut self.child, CLOSING);
    }
}

impl Session {
    /// Returns whether Python has SQLite.
    pub(super) fn has_sqlite() -> bool {
        let mut python = Command::new("python3");
        python.args(["-c", "import sqlite3"]);
        python.output().is_ok_and(|output| output.status.success())
    }

    /// Opens a database of SQLite with a journal mode.
    pub(super) fn sqlite(path: &Path, journal: &str) -> Result<Self, String> {
        let mut python = in_own_group("python3");
        python.args(["-c", PYTHON]).arg(path).args([journal, DONE]);
        Self::start(python, "")
    }

    /// Starts psql.
    pub(super) fn psql(mut psql: Command) -> Result<Self, String> {
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        Self::start(psql, "\\echo -- done\n")
    }

    /// Starts a program that takes lines, and answers each with [`DONE`].
    pub(super) fn start(mut command: Command, echo: &'static str) -> Result<Self, String> {
        // A folder in the mount would keep it busy.
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("{command:?}: {error}"))?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(output), Some(errors)) = (output, errors) else {
            return Err("it has no pipes".to_owned());
        };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut read = BufReader::new(output).lines().map_while(Result::ok);
            // It ends with the program, or with the session.
            read.all(|line| sender.send(line).is_ok())
        });
        let said = Some(child::read(errors));
        Ok(Self { child, input, output: lines, patience: PATIENCE, said, echo })
    }

    /// Runs a line of statements, and returns their rows.
    pub(super) fn ask(&mut self, sql: &str) -> Result<Vec<String>, String> {
        let end = if self.echo.is_empty() { "\n" } else { ";\n" };
        let line = format!("{sql}{end}{}", self.echo);
        let sent = self.input.as_mut().map(|input| input.write_all(line.as_bytes()));
        let mut rows = Vec::new();
        let words = sql.get(..60).unwrap_or(sql);
        let patience = Duration::from_nanos(self.patience.nanos());
        while sent.as_ref().is_some_and(Result::is_ok) {
            match self.output.recv_timeout(patience) {
                Ok(row) if row.trim_end() == DONE => return Ok(rows),
                Ok(row) => rows.push(row.trim_end().to_owned()),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    child::end(&mut self.child, Span::ZERO);
                    return Err(format!("{words}: no answer within {}", self.patience));
                }
            }
        }
        drop(self.input.take());
        let said = self.said.take().and_then(|own| own.join().ok()).unwrap_or_default();
        Err(format!("{words}: {}", said.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Session {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        let mut session = Session::start(shell, "").unwrap();
        session.patience = Span::from_secs(1);
        session
    }

    #[test]
    fn a_client_that_does_not_answer_is_an_error() {
        let mut hangs = shell("exec sleep 1000");
        assert!(hangs.ask("select 1").is_err_and(|what| what.contains("no answer within")));
        let status = hangs.child.try_wait().unwrap();
        assert!(status.is_some(), "it was killed");
        let mut ends = shell("read line; echo refused >&2");
        assert!(ends.ask("select 1").is_err_and(|what| what.contains("refused")));
        let mut answers = shell("read line; echo 7; echo -- done");
        assert_eq!(answers.ask("select 1"), Ok(vec!["7".to_owned()]));
    }
}
