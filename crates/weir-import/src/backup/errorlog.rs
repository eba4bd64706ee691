//! Backups and restores in the error log of SQL Server.
//!
//! ```text
//! 2014-09-10 18:10:49.04 spid51      BufferCount:                7
//! 2014-09-10 18:10:50.87 Backup      Database backed up. Database: Sales, creation date(time): ..,
//!                                    pages dumped: 11640, .., number of dump devices: 1, device
//!                                    information: (FILE=1, TYPE=DISK: {'D:\b\1.bak'}). ..
//! 2014-09-10 18:10:50.88 Backup      BACKUP DATABASE successfully processed 11634 pages in ..
//! ```
//!
//! All versions write the first of the two messages, with the devices; versions since 2019 also
//! the second, with the duration. Lines of trace flags precede both, from the session that runs
//! the backup.

use super::client::TOOL;
use super::ended::{Backups, Ended, between, float, leading};
use super::message::{Message, PAGE, processed};
use super::trace::{self, Trace};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use std::collections::{BTreeMap, VecDeque};
use weir_observe::attribute;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "sqlserver-errorlog",
    about: "the error log of SQL Server; only its backups are read",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Text(&[" spid"]),
        Sign::Text(&[" Server ", " Backup ", " Logon "]),
        Sign::Text(&["Database backed up", "Microsoft SQL Server"]),
    ]],
};

/// The most sessions whose trace is kept.
const MOST_SESSIONS: usize = 1024;

/// The longest distance of the two messages of a backup, in nanoseconds.
const APART: i64 = 60_000_000_000;

/// Beginnings of messages, the kind of backup, and whether it is a restore.
const DONE: [(&str, &str, bool); 9] = [
    ("Database backed up.", "full", false),
    ("Log was backed up.", "log", false),
    ("Database file was backed up.", "file", false),
    ("Database differential changes were backed up.", "differential", false),
    ("Database file differential changes were backed up.", "file", false),
    ("Database was restored:", "full", true),
    ("Log was restored.", "log", true),
    ("Database file was restored.", "file", true),
    ("Database changes were restored.", "differential", true),
];

fn recognizes(text: &str) -> bool {
    text.lines().take(200).filter(|line| Entry::parse(line, Clock::default()).is_some()).count() > 0
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(ErrorLog {
        lines: Lines::new(input),
        clock: options.clock,
        backups: Backups::default(),
        sessions: BTreeMap::new(),
        half: None,
        ready: VecDeque::new(),
        host: None,
        count: 0,
        ended: false,
    }))
}

/// A line with its time.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    at: i64,
    source: &'a str,
    text: &'a str,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str, clock: Clock) -> Option<Self> {
        let line = line.trim_start_matches('\u{feff}').trim_end();
        let (when, rest) = line.split_at_checked(22)?;
        // A quick test, since most lines of a log concern no backup.
        if !when.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let (source, text) = rest.strip_prefix(' ')?.split_once(char::is_whitespace)?;
        let session = source.trim_end_matches('s').strip_prefix("spid").unwrap_or_default();
        let is_session = !session.is_empty() && session.bytes().all(|byte| byte.is_ascii_digit());
        let is_source = is_session || ["Backup", "Server", "Logon", "Error"].contains(&source);
        Some(Self { at: clock.moment(when).filter(|_| is_source)?, source, text: text.trim() })
    }
}

/// Trace output of a session's backup.
#[derive(Debug, Default)]
struct Session {
    database: Option<String>,
    trace: Trace,
    began: Option<i64>,
}

/// A backup with one of its two messages.
#[derive(Debug)]
struct Half {
    ended: Ended,
    at: i64,
    has_devices: bool,
    has_seconds: bool,
    /// Pages in the message with the devices.
    pages: Option<u64>,
}

struct ErrorLog {
    lines: Lines<Bytes>,
    clock: Clock,
    backups: Backups,
    sessions: BTreeMap<String, Session>,
    half: Option<Half>,
    ready: VecDeque<Ended>,
    host: Option<String>,
    count: u64,
    ended: bool,
}

impl ReadSamples for ErrorLog {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        loop {
            if let Some(own) = self.ready.pop_front() {
                return Ok(Some(self.backups.put(sheet, &own)));
            }
            if self.ended {
                return Ok(None);
            }
            match self.lines.next_line()? {
                Some(line) => self.line(sheet, &line)?,
                None => {
                    self.ended = true;
                    self.flush();
                    if self.count == 0 {
                        let reason = "it contains no backup and no restore: trace flag 3226 keeps \
                                      them out of the log";
                        return Err(ImportError::Empty { reason: reason.to_owned() });
                    }
                }
            }
        }
    }
}

impl ErrorLog {
    fn line(&mut self, sheet: &mut Sheet, line: &str) -> Result<(), ImportError> {
        let Some(entry) = Entry::parse(line, self.clock) else { return Ok(()) };
        if self.half.as_ref().is_some_and(|half| entry.at.saturating_sub(half.at) > APART) {
            self.flush();
        }
        if let Some(name) = between(entry.text, "Server name is '", "'") {
            self.host.get_or_insert_with(|| name.to_owned());
        }
        if Message::is_one(entry.text) {
            return self.processed(sheet, &entry);
        }
        let done = DONE.iter().find(|(begin, ..)| entry.text.starts_with(begin));
        if let Some((_, what, is_restore)) = done {
            self.done(&entry, what, *is_restore);
        } else if entry.text.contains("Backup failed") || entry.text.contains("BACKUP failed") {
            sheet.unused("backups or restores that failed");
        } else if entry.source != "Backup" && processed(entry.text).is_none() {
            self.traced(&entry);
        }
        Ok(())
    }

    /// Takes a line of a session's trace.
    fn traced(&mut self, entry: &Entry<'_>) {
        let mut trace = Trace::default();
        if !trace.take(entry.text) {
            return;
        }
        if !self.sessions.contains_key(entry.source) && self.sessions.len() >= MOST_SESSIONS {
            return;
        }
        let session = self.sessions.entry(entry.source.to_owned()).or_default();
        let database = trace::database(entry.text);
        if let (Some(own), Some(now)) = (&session.database, database)
            && own != now
        {
            *session = Session::default();
        }
        session.database = database.map(str::to_owned).or(session.database.take());
        session.began.get_or_insert(entry.at);
        session.trace.take(entry.text);
    }

    /// Takes the message with the devices.
    fn done(&mut self, entry: &Entry<'_>, what: &'static str, is_restore: bool) {
        let database = between(entry.text, "Database: ", ", creation date");
        let devices = between(entry.text, "number of dump devices: ", ",").and_then(leading);
        let pages = between(entry.text, "pages dumped: ", ",").and_then(leading);
        let mut half = self.take_half(what, is_restore, entry.at, |half| !half.has_devices);
        half.has_devices = true;
        half.pages = pages;
        half.at = entry.at;
        let own = &mut half.ended;
        own.database = database.map(str::to_owned);
        own.ended = Some(entry.at);
        if let Some((_, list)) = entry.text.split_once('{') {
            let list = list.split('}').next().unwrap_or_default();
            for path in list.split(',') {
                own.target(path.trim().trim_start_matches('N').trim_matches('\''));
            }
        }
        own.number(attribute::STRIPES, devices.filter(|count| *count > 0));
        let is_session = |session: &Session| session.database.as_deref() == database;
        let found = self.sessions.iter().find(|(_, session)| is_session(session));
        if let Some(key) = found.map(|(key, _)| key.clone())
            && let Some(session) = self.sessions.remove(&key)
        {
            if own.seconds.is_none() {
                let nanos = session.began.map(|began| entry.at.saturating_sub(began));
                own.seconds =
                    nanos.and_then(|nanos| u64::try_from(nanos).ok()).map(|own| float(own) / 1e9);
            }
            session.trace.tell(own);
        }
        self.half = Some(half);
        self.complete();
    }

    /// Takes the half of a backup that lacks a message, or begins another backup.
    fn take_half(
        &mut self,
        what: &'static str,
        is_restore: bool,
        at: i64,
        lacks_it: impl Fn(&Half) -> bool,
    ) -> Half {
        let is_same = |half: &Half| {
            lacks_it(half) && half.ended.what == what && half.ended.is_restore == is_restore
        };
        if !self.half.as_ref().is_some_and(is_same) {
            self.flush();
        }
        self.half.take().unwrap_or_else(|| Half {
            ended: Ended { tool: TOOL, what, is_restore, ..Ended::default() },
            at,
            has_devices: false,
            has_seconds: false,
            pages: None,
        })
    }

    /// Takes the message with the duration.
    fn processed(&mut self, sheet: &mut Sheet, entry: &Entry<'_>) -> Result<(), ImportError> {
        let Some(message) = Message::parse(entry.text) else {
            if self.lines.was_open() {
                sheet.note("its last line was truncated and is left out");
                return Ok(());
            }
            let reason = format!(
                "a result is expected as \"successfully processed N pages in S seconds\", but \
                 found {:?}",
                entry.text
            );
            return Err(ImportError::at(self.lines.number(), reason));
        };
        let (bytes, remark) = message.bytes(None);
        if let Some(remark) = remark {
            sheet.note(format!("line {} {remark}", self.lines.number()));
        }
        let (what, is_restore) = (message.what, message.is_restore);
        let mut half = self.take_half(what, is_restore, entry.at, |half| !half.has_seconds);
        half.has_seconds = true;
        half.at = entry.at;
        half.ended.ended = Some(entry.at);
        half.ended.bytes = Some(bytes);
        half.ended.seconds = Some(message.seconds);
        self.half = Some(half);
        self.complete();
        Ok(())
    }

    /// Returns the current backup if both messages are there.
    fn complete(&mut self) {
        if self.half.as_ref().is_some_and(|half| half.has_devices && half.has_seconds) {
            self.flush();
        }
    }

    /// Returns the current backup with the facts known so far.
    fn flush(&mut self) {
        let Some(half) = self.half.take() else { return };
        let mut own = half.ended;
        own.bytes = own.bytes.or(half.pages.map(|pages| float(pages) * PAGE));
        own.host.clone_from(&self.host);
        self.count += 1;
        self.ready.push_back(own);
    }
}
