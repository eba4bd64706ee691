//! Client output of BACKUP and RESTORE: sqlcmd, Management Studio, logs of jobs and of Ola
//! Hallengren's scripts, with the statements if they are present.
//!
//! ```text
//! 10 percent processed.
//! Processed 584 pages for database 'Sales', file 'Sales' on file 1.
//! BACKUP DATABASE successfully processed 585 pages in 0.037 seconds (123.350 MB/sec).
//! Completion time: 2023-05-04T10:11:12.1234567+02:00
//! ```
//!
//! Only some clients write a time after the results. The results since the previous time ran one
//! after the other until then.

use super::ended::{Backups, Ended};
use super::message::{Message, processed};
use super::statement::Statement;
use super::trace::{self, Trace};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use std::collections::VecDeque;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "sqlserver-backup",
    about: "messages of BACKUP and RESTORE of SQL Server",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Text(&["successfully processed"]),
        Sign::Text(&[" pages in "]),
        Sign::Text(&["MB/sec"]),
    ]],
};

/// Name of the tool.
pub(super) const TOOL: &str = "SQL Server";

/// The most results kept until a time follows them.
const MOST: usize = 4096;

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        Message::is_one(line)
            || processed(line).is_some()
            || line.starts_with("Backup/Restore buffer configuration")
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Client {
        lines: Lines::new(input),
        clock: options.clock,
        backups: Backups::default(),
        results: VecDeque::new(),
        is_ready: false,
        ended: false,
        count: 0,
        state: State::default(),
    }))
}

/// State since the last result.
#[derive(Debug, Default)]
struct State {
    statement: Statement,
    trace: Trace,
    database: Option<String>,
    /// Pages of the last file, which is the log.
    last_file: Option<u64>,
}

struct Client {
    lines: Lines<Bytes>,
    clock: Clock,
    backups: Backups,
    /// Results without a time yet, or ready to be returned.
    results: VecDeque<Ended>,
    is_ready: bool,
    ended: bool,
    count: u64,
    state: State,
}

impl ReadSamples for Client {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        loop {
            if self.is_ready || self.ended {
                if let Some(own) = self.results.pop_front() {
                    return Ok(Some(self.backups.put(sheet, &own)));
                }
                self.is_ready = false;
                if self.ended {
                    return Ok(None);
                }
            }
            self.fill(sheet)?;
        }
    }
}

impl Client {
    /// Reads lines until a result is ready.
    fn fill(&mut self, sheet: &mut Sheet) -> Result<(), ImportError> {
        while !self.is_ready {
            let Some(line) = self.lines.next_line()? else {
                self.ended = true;
                if self.count == 0 {
                    let reason = "it contains no completed BACKUP or RESTORE: a line with \
                                  \"successfully processed N pages in S seconds\" is expected";
                    return Err(ImportError::at(self.lines.number(), reason));
                }
                return Ok(());
            };
            self.line(sheet, line.trim())?;
            self.is_ready |= self.results.len() >= MOST;
        }
        Ok(())
    }

    fn line(&mut self, sheet: &mut Sheet, line: &str) -> Result<(), ImportError> {
        if Message::is_one(line) {
            return self.result(sheet, line);
        }
        if let Some((pages, database)) = processed(line) {
            self.state.database = Some(database.to_owned());
            self.state.last_file = Some(pages);
        } else if let Some(at) = time_of(line, self.clock) {
            self.completed(at);
        } else if line.contains(" is terminating abnormally") {
            self.state = State::default();
            sheet.unused("backups or restores that failed");
        } else if self.state.trace.take(line) {
            if let Some(database) = trace::database(line) {
                self.state.database = Some(database.to_owned());
            }
        } else {
            self.state.statement.take(line);
        }
        Ok(())
    }

    fn result(&mut self, sheet: &mut Sheet, line: &str) -> Result<(), ImportError> {
        let Some(message) = Message::parse(line) else {
            if self.lines.was_open() {
                sheet.note("its last line was truncated and is left out");
                return Ok(());
            }
            let reason = format!(
                "a result is expected as \"successfully processed N pages in S seconds (R \
                 MB/sec)\", but found {line:?}"
            );
            return Err(ImportError::at(self.lines.number(), reason));
        };
        self.count += 1;
        let State { statement, trace, database, last_file } = std::mem::take(&mut self.state);
        let (bytes, remark) = message.bytes(last_file);
        if let Some(remark) = remark {
            sheet.note(format!("line {} {remark}", self.lines.number()));
        }
        let mut ended = Ended {
            tool: TOOL,
            what: message.what,
            is_restore: message.is_restore,
            database,
            bytes: Some(bytes),
            seconds: Some(message.seconds),
            ..Ended::default()
        };
        trace.tell(&mut ended);
        statement.tell(&mut ended);
        self.results.push_back(ended);
        Ok(())
    }

    /// Dates the pending results: they ended one after the other, the last at this time.
    fn completed(&mut self, at: i64) {
        let mut at = at;
        for own in self.results.iter_mut().rev() {
            own.ended = Some(at);
            let nanos = own.seconds.unwrap_or(0.0) * 1e9;
            #[expect(clippy::cast_possible_truncation, reason = "a saturating cast of seconds")]
            let nanos = nanos as i64;
            at = at.saturating_sub(nanos);
        }
        self.is_ready = !self.results.is_empty();
    }
}

/// Returns the time that a line of a client states.
fn time_of(line: &str, clock: Clock) -> Option<i64> {
    let heads = ["Completion time: ", "Date and time: ", "Finished: "];
    let text = heads.iter().find_map(|head| line.strip_prefix(head))?;
    clock.moment(text.trim())
}
