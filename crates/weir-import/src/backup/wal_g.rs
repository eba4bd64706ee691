//! Logs of WAL-G: base backups of PostgreSQL.
//!
//! ```text
//! INFO: 2023/08/17 12:14:54.361729 Starting a new tar bundle
//! INFO: 2023/08/17 12:14:54.361965 Starting part 1 ...
//! INFO: 2023/08/17 12:14:54.503773 Finished writing part 1.
//! DEBUG: 2023/08/17 12:14:54.6 Uncompressed size: 4194304
//! INFO: 2023/08/17 12:14:54.629729 Wrote backup with name base_000..0C to storage default
//! ```
//!
//! Sizes are printed at debug level only. A backup lasts from the first part to the end of the
//! last finished one.

use super::ended::{Backups, Ended, float, leading};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "wal-g",
    about: "logs of WAL-G",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Text(&["Starting a new tar bundle", "Starting part "]),
        Sign::Text(&["Finished writing part "]),
        Sign::Text(&["Wrote backup with name "]),
    ]],
};

const TOOL: &str = "WAL-G";

const LEVELS: [&str; 4] = ["INFO: ", "DEBUG: ", "WARNING: ", "ERROR: "];

fn recognizes(text: &str) -> bool {
    let is_own = |line: &str| {
        let Some((_, text)) = entry(line, Clock::default()) else { return false };
        [
            "Starting a new tar bundle",
            "Starting part ",
            "Wrote backup with name ",
            "Finished writing part ",
        ]
        .iter()
        .any(|begin| text.starts_with(begin))
    };
    text.lines().any(is_own)
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(WalG {
        lines: Lines::new(input),
        clock: options.clock,
        backups: Backups::default(),
        push: Push::default(),
        count: 0,
        told: false,
    }))
}

/// Returns the time of a line, if it has one, and its message.
fn entry(line: &str, clock: Clock) -> Option<(Option<i64>, &str)> {
    let line = line.trim();
    let rest = LEVELS.iter().find_map(|level| line.strip_prefix(level))?;
    // 2023/08/17 12:14:54.361729
    let words = rest
        .split_at_checked(19)
        .filter(|(when, _)| when.starts_with(|c: char| c.is_ascii_digit()));
    let Some((_, fraction)) = words else { return Some((None, rest)) };
    let len = fraction.find(' ').unwrap_or(fraction.len());
    let when = &rest[..19 + len];
    Some((clock.moment(when), rest[19 + len..].trim()))
}

/// A push in progress.
#[derive(Debug, Default, PartialEq)]
struct Push {
    began: Option<i64>,
    finished: Option<i64>,
    bytes: Option<u64>,
    written: Option<u64>,
    parts: u64,
}

struct WalG {
    lines: Lines<Bytes>,
    clock: Clock,
    backups: Backups,
    push: Push,
    count: u64,
    told: bool,
}

impl ReadSamples for WalG {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        while let Some(line) = self.lines.next_line()? {
            if let Some(own) = self.line(sheet, &line) {
                self.count += 1;
                return Ok(Some(self.backups.put(sheet, &own)));
            }
        }
        if self.push != Push::default() && self.count > 0 {
            sheet.note("its last backup is incomplete and is left out");
            self.push = Push::default();
        }
        if self.count == 0 {
            let reason = "it contains no completed backup: \"Wrote backup with name\" is expected";
            return Err(ImportError::at(self.lines.number(), reason));
        }
        Ok(None)
    }
}

impl WalG {
    fn line(&mut self, sheet: &mut Sheet, line: &str) -> Option<Ended> {
        let (at, text) = entry(line, self.clock)?;
        let push = &mut self.push;
        if text.starts_with("Starting a new tar bundle") {
            *push = Push { began: at, ..Push::default() };
        } else if text.starts_with("Starting part ") {
            push.began = push.began.or(at);
            push.parts += 1;
        } else if text.starts_with("Finished writing part ") {
            push.finished = at.or(push.finished);
        } else if let Some(size) = text.strip_prefix("Uncompressed size: ") {
            push.bytes = leading(size);
        } else if let Some(size) = text.strip_prefix("Compressed size: ") {
            push.written = leading(size);
        } else if let Some(name) = text.strip_prefix("Wrote backup with name ") {
            return Some(self.wrote(sheet, name, at));
        }
        None
    }

    fn wrote(&mut self, sheet: &mut Sheet, name: &str, at: Option<i64>) -> Ended {
        let push = std::mem::take(&mut self.push);
        if push.bytes.is_none() && !self.told {
            self.told = true;
            sheet
                .note("it contains no sizes: WAL-G prints them with WALG_LOG_LEVEL=DEVEL or DEBUG");
        }
        // The name of a delta ends with that of its base.
        let is_delta = name.split_whitespace().next().is_some_and(|name| name.contains("_D_"));
        // Uploads continue after the last part.
        let ended = at.or(push.finished);
        #[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
        let seconds = push.began.zip(ended).map(|(from, to)| to.saturating_sub(from) as f64 / 1e9);
        let mut own = Ended {
            tool: TOOL,
            what: if is_delta { "incremental" } else { "full" },
            bytes: push.bytes.map(float),
            written: push.written.map(float),
            seconds: seconds.filter(|seconds| *seconds > 0.0),
            ended,
            ..Ended::default()
        };
        if let Some((_, storage)) = name.split_once(" to storage ") {
            own.targets.push(storage.trim().to_owned());
        }
        own
    }
}
