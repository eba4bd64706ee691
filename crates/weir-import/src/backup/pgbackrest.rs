//! Logs and output of pgBackRest.
//!
//! ```text
//! 2024-03-27 16:06:02.001 P00   INFO: backup command begin 2.50: --process-max=4 --stanza=main ..
//! 2024-03-27 16:06:03.001 P00   INFO: backup start archive = 00000001.., lsn = 0/3A000028
//! 2024-03-27 16:06:20.001 P00   INFO: execute non-exclusive backup stop and wait for ..
//! 2024-03-27 16:06:20.773 P00   INFO: full backup size = 359.1MB, file total = 1292
//! 2024-03-27 16:06:20.816 P00   INFO: backup command end: completed successfully (19411ms)
//! ```
//!
//! With times, a backup lasts from `backup start archive` to `backup stop`. Before that, the
//! command waits for a checkpoint, and afterwards for the archive. Sizes are uncompressed and have
//! one decimal; the bytes written are not logged.

use super::ended::{Backups, Ended, between, leading};
use crate::bench::job;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use weir_observe::attribute;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "pgbackrest",
    about: "logs of pgBackRest",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Text(&["backup command begin", "restore command begin"]),
        Sign::Text(&["backup size = ", "restore size = "]),
        Sign::Text(&["command end: completed successfully"]),
    ]],
};

const TOOL: &str = "pgBackRest";

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        let text = Entry::parse(line, Clock::default()).text;
        text.starts_with("backup command begin ")
            || text.starts_with("restore command begin ")
            || text.starts_with("backup start archive = ")
            || (text.contains(" backup size = ") && text.contains("file total = "))
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(PgBackRest {
        lines: Lines::new(input),
        clock: options.clock,
        backups: Backups::default(),
        command: None,
        count: 0,
    }))
}

/// The message of a line, with its time and level.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    at: Option<i64>,
    text: &'a str,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str, clock: Clock) -> Self {
        const LEVELS: [&str; 6] = ["INFO: ", "DETAIL: ", "WARN: ", "ERROR: ", "DEBUG: ", "TRACE: "];
        let found = LEVELS.iter().filter_map(|level| Some((line.find(level)?, level.len()))).min();
        let Some((at, len)) = found else { return Self { at: None, text: line.trim() } };
        let when = line[..at].trim_end();
        let when = match when.rsplit_once('P') {
            Some((when, process)) if process.bytes().all(|byte| byte.is_ascii_digit()) => when,
            _ => when,
        };
        Self { at: clock.moment(when.trim()), text: line[at + len..].trim() }
    }
}

/// A command in progress.
#[derive(Debug, Default)]
struct Command {
    ended: Ended,
    began: Option<i64>,
    copied_from: Option<i64>,
    copied_to: Option<i64>,
    last: Option<i64>,
}

struct PgBackRest {
    lines: Lines<Bytes>,
    clock: Clock,
    backups: Backups,
    command: Option<Command>,
    count: u64,
}

impl ReadSamples for PgBackRest {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        while let Some(line) = self.lines.next_line()? {
            if let Some(own) = self.line(sheet, &line) {
                self.count += 1;
                return Ok(Some(self.backups.put(sheet, &own)));
            }
        }
        if self.command.take().is_some() {
            sheet.note("its last command is incomplete and is left out");
        }
        if self.count == 0 {
            let reason = "it contains no completed backup or restore: \"backup command end: \
                          completed successfully\" is expected";
            return Err(ImportError::at(self.lines.number(), reason));
        }
        Ok(None)
    }
}

impl PgBackRest {
    /// Takes a line; returns a backup that ends with it.
    fn line(&mut self, sheet: &mut Sheet, line: &str) -> Option<Ended> {
        let Entry { at, text } = Entry::parse(line, self.clock);
        for (verb, is_restore) in [("backup", false), ("restore", true)] {
            if let Some(rest) = text.strip_prefix(verb)
                && let Some(options) = rest.strip_prefix(" command begin ")
            {
                if self.command.take().is_some() {
                    sheet.unused("commands without an end");
                }
                self.command = Some(begun(options, is_restore, at));
                return None;
            }
        }
        let has_start = text.starts_with("backup start archive = ");
        let has_size = text.contains(" backup size = ") || text.starts_with("restore size = ");
        if self.command.is_none() && (has_start || has_size) {
            self.command = Some(begun("", text.starts_with("restore"), at));
        }
        let command = self.command.as_mut()?;
        command.last = at.or(command.last);
        if has_start {
            command.copied_from = at;
        } else if text.starts_with("execute ") && text.contains("stop") {
            command.copied_to = at;
        } else if has_size {
            let (what, size) = text.split_once(" size = ")?;
            command.ended.what = kind_of(what);
            command.ended.bytes = size_of(size.split(',').next().unwrap_or(size));
        } else if let Some(rest) = text.split_once(" command end: ").map(|(_, rest)| rest) {
            let is_own = text.starts_with("backup") || text.starts_with("restore");
            let command = self.command.take().filter(|_| is_own)?;
            if !rest.starts_with("completed successfully") {
                sheet.unused("commands that failed");
                return None;
            }
            return Some(ended(command, rest, at));
        }
        None
    }
}

/// Begins a command with the facts in its options.
fn begun(options: &str, is_restore: bool, at: Option<i64>) -> Command {
    let mut ended = Ended { tool: TOOL, what: "full", is_restore, ..Ended::default() };
    let option = |name: &str| -> Option<&str> {
        let words = options.split_whitespace();
        words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')).next()
    };
    let workers = option("--process-max").and_then(leading);
    // Each worker reads one file and writes it. The default is one worker.
    let workers = workers.or((options.contains("--")).then_some(1));
    ended.number(attribute::READERS, workers);
    ended.number(attribute::STRIPES, workers);
    ended.database = option("--stanza").map(str::to_owned);
    let codec = option("--compress-type").or(options.contains("--").then_some("gz"));
    ended.text(attribute::COMPRESSION, codec.filter(|codec| *codec != "none"));
    ended.number(attribute::COMPRESSION_LEVEL, option("--compress-level").and_then(leading));
    let words = options.split_whitespace().filter_map(|word| word.split_once('='));
    for (name, value) in words {
        let is_target = name.starts_with("--repo")
            && ["-path", "-s3-bucket", "-azure-container", "-gcs-bucket"]
                .iter()
                .any(|end| name.ends_with(end));
        if is_target {
            ended.targets.push(value.to_owned());
        }
    }
    ended.targets.truncate(8);
    let ended = Ended { what: if is_restore { "full" } else { ended.what }, ..ended };
    Command { ended, began: at, ..Command::default() }
}

/// Ends a command; `rest` is the text after `command end: `.
fn ended(command: Command, rest: &str, at: Option<i64>) -> Ended {
    let Command { mut ended, began, copied_from, copied_to, last } = command;
    let seconds = |from: Option<i64>, to: Option<i64>| {
        let nanos = to?.checked_sub(from?).filter(|nanos| *nanos > 0)?;
        #[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
        Some(nanos as f64 / 1e9)
    };
    let told = between(rest, "(", "ms)").and_then(leading).map(|ms| super::ended::float(ms) / 1e3);
    ended.seconds = seconds(copied_from, copied_to)
        .or(told)
        .or_else(|| seconds(began, at))
        .filter(|seconds| *seconds > 0.0);
    ended.ended = copied_to.or(at).or(last);
    ended
}

fn kind_of(words: &str) -> &'static str {
    match words.split_whitespace().next() {
        Some("diff") => "differential",
        Some("incr") => "incremental",
        _ => "full",
    }
}

/// Parses `359.1MB`; units are powers of 1024.
fn size_of(text: &str) -> Option<f64> {
    let bytes = job::size(text.trim())?;
    Some(super::ended::float(bytes))
}
