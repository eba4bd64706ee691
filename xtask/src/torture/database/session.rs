//! A client of a database: a program that takes a line of SQL, and answers when it is committed.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

/// Says that a line is done.
const DONE: &str = "-- done";

/// Runs the statements of each line, prints their rows, and then [`DONE`].
const PYTHON: &str = "
import sqlite3, sys
path, journal, done = sys.argv[1:]
db = sqlite3.connect(path, timeout=60, isolation_level=None)
mode = db.execute('pragma journal_mode=' + journal).fetchone()[0]
if mode != journal: sys.exit('the journal mode is ' + mode)
db.execute('pragma synchronous=full')
db.execute('pragma wal_autocheckpoint=50')
db.execute('pragma cache_size=20')
for line in sys.stdin:
    for sql in line.split(';'):
        for row in db.execute(sql): print('|'.join(map(str, row)))
    print(done, flush=True)
";

/// A running client; killed if it is dropped.
pub(super) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    said: Option<JoinHandle<String>>,
    /// What is sent after each line, for clients that do not answer by themselves.
    echo: &'static str,
}

impl Drop for Session {
    fn drop(&mut self) {
        // At the end of its input it closes the database.
        drop(self.input.take());
        drop(self.child.wait());
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
        let mut python = Command::new("python3");
        python.args(["-c", PYTHON]).arg(path).args([journal, DONE]);
        Self::start(python, "")
    }

    /// Starts psql.
    pub(super) fn psql(mut psql: Command) -> Result<Self, String> {
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        Self::start(psql, "\\echo -- done\n")
    }

    fn start(mut command: Command, echo: &'static str) -> Result<Self, String> {
        // A folder in the mount would keep it busy.
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("{command:?}: {error}"))?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(output), Some(mut errors)) = (output, errors) else {
            return Err("it has no pipes".to_owned());
        };
        let said = std::thread::spawn(move || {
            let mut said = String::new();
            // What it could not say is missing.
            let _ = errors.read_to_string(&mut said);
            said
        });
        Ok(Self { child, input, output: BufReader::new(output), said: Some(said), echo })
    }

    /// Runs a line of statements, and returns their rows.
    pub(super) fn ask(&mut self, sql: &str) -> Result<Vec<String>, String> {
        let end = if self.echo.is_empty() { "\n" } else { ";\n" };
        let line = format!("{sql}{end}{}", self.echo);
        let sent = self.input.as_mut().map(|input| input.write_all(line.as_bytes()));
        let mut rows = Vec::new();
        while sent.as_ref().is_some_and(Result::is_ok) {
            let mut row = String::new();
            match self.output.read_line(&mut row) {
                Ok(read) if read > 0 => {}
                _ => break,
            }
            if row.trim_end() == DONE {
                return Ok(rows);
            }
            rows.push(row.trim_end().to_owned());
        }
        drop(self.input.take());
        let said = self.said.take().and_then(|own| own.join().ok()).unwrap_or_default();
        Err(format!("{}: {}", sql.get(..60).unwrap_or(sql), said.trim_end()))
    }
}
