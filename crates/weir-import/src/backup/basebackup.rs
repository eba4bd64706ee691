//! Output of `pg_basebackup` with `--verbose` and `--progress`.
//!
//! ```text
//! pg_basebackup: initiating base backup, waiting for checkpoint to complete
//! 112581901/112581901 kB (100%), 1/1 tablespace
//! pg_basebackup: base backup completed
//! real    2m13.724s
//! ```
//!
//! It has neither times nor rates. The duration comes from the shell's `time`, or from times that
//! a collector put before the lines.

use super::ended::{Backups, Ended, float, leading};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use weir_observe::attribute;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "pg-basebackup",
    about: "output of pg_basebackup",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Text(&["pg_basebackup: "]),
        Sign::Text(&[" kB (100%)"]),
        Sign::Text(&["base backup completed"]),
    ]],
};

const TOOL: &str = "pg_basebackup";

const KIB: f64 = 1024.0;

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| line.contains("pg_basebackup: "))
        || text.split(['\n', '\r']).any(|line| progress(line).is_some())
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(BaseBackup {
        lines: Lines::new(input),
        clock: options.clock,
        backups: Backups::default(),
        run: Run::default(),
        count: 0,
    }))
}

/// A backup in progress.
#[derive(Debug, Default, PartialEq)]
struct Run {
    kib: Option<u64>,
    tablespaces: Option<u64>,
    began: Option<i64>,
    ended: Option<i64>,
    seconds: Option<f64>,
    is_complete: bool,
    has_any: bool,
}

struct BaseBackup {
    lines: Lines<Bytes>,
    clock: Clock,
    backups: Backups,
    run: Run,
    count: u64,
}

impl ReadSamples for BaseBackup {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        while let Some(line) = self.lines.next_line()? {
            // Progress overwrites itself within a line.
            for part in line.split('\r') {
                if part.contains("pg_basebackup: initiating base backup")
                    && let Some(own) = self.next(sheet)
                {
                    self.lines.put_back(line);
                    return Ok(Some(self.backups.put(sheet, &own)));
                }
                self.part(sheet, part.trim());
            }
        }
        if let Some(own) = self.next(sheet) {
            return Ok(Some(self.backups.put(sheet, &own)));
        }
        if self.count == 0 {
            let reason = "it contains no completed base backup: \"base backup completed\" or \
                          progress of 100 % is expected";
            return Err(ImportError::at(self.lines.number(), reason));
        }
        Ok(None)
    }
}

impl BaseBackup {
    fn part(&mut self, sheet: &mut Sheet, part: &str) {
        if let Some(real) = real(part) {
            self.run.seconds = Some(real);
            return;
        }
        let run = &mut self.run;
        if let Some((when, text)) = part.split_once("pg_basebackup: ") {
            run.has_any = true;
            let when = when.trim().trim_start_matches('[').trim_end_matches([']', ':']).trim();
            let at = self.clock.moment(when);
            run.began = run.began.or(at.filter(|_| text.contains("start point")));
            if text.starts_with("write-ahead log end point") || text.contains("end point:") {
                run.ended = at;
            }
            run.is_complete |= text.starts_with("base backup completed")
                || text.starts_with("syncing data to disk")
                || text.contains("end point:");
            if text.starts_with("error:") {
                *run = Run::default();
                sheet.unused("base backups that failed");
            }
        } else if let Some((done, total, tablespaces)) = progress(part) {
            run.has_any = true;
            run.kib = Some(done);
            run.tablespaces = tablespaces;
            run.is_complete |= done >= total && total > 0;
        }
    }

    /// Returns the backup at hand if it is complete.
    fn next(&mut self, sheet: &mut Sheet) -> Option<Ended> {
        let run = std::mem::take(&mut self.run);
        if !run.has_any {
            return None;
        }
        if !run.is_complete {
            sheet.note("a base backup did not finish: left out");
            return None;
        }
        self.count += 1;
        #[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
        let between =
            run.began.zip(run.ended).map(|(from, to)| to.saturating_sub(from) as f64 / 1e9);
        let seconds = between.filter(|seconds| *seconds > 0.0).or(run.seconds);
        if seconds.is_none() {
            sheet.note(
                "its duration is not stated: run it with `time`, or put times before its \
                 lines with `ts`",
            );
        }
        let mut own = Ended {
            tool: TOOL,
            what: "full",
            bytes: run.kib.map(|kib| float(kib) * KIB),
            seconds,
            ended: run.ended,
            ..Ended::default()
        };
        // One process reads all files, one after the other.
        own.number(attribute::READERS, Some(1));
        own.number(attribute::STRIPES, run.tablespaces.filter(|count| *count > 0));
        Some(own)
    }
}

/// Parses `24264/24264 kB (100%), 1/1 tablespace`: done, total, and number of tablespaces.
fn progress(line: &str) -> Option<(u64, u64, Option<u64>)> {
    let at = line.find(" kB (")?;
    let counts = line[..at].rsplit(char::is_whitespace).next()?;
    let (done, total) = counts.split_once('/')?;
    let (_, rest) = line[at..].split_once("%), ")?;
    let tablespaces = rest.split_once('/').and_then(|(_, count)| leading(count));
    rest.contains("tablespace").then_some((done.parse().ok()?, total.parse().ok()?, tablespaces))
}

/// Parses `real 2m13.724s` or `real 133.72`, as shells print it, to seconds.
fn real(line: &str) -> Option<f64> {
    let rest = line.strip_prefix("real")?.trim().replace(',', ".");
    let seconds = match rest.split_once('m') {
        Some((minutes, seconds)) => {
            minutes.parse::<f64>().ok()? * 60.0
                + seconds.trim_end_matches('s').parse::<f64>().ok()?
        }
        None => rest.trim_end_matches('s').parse().ok()?,
    };
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
}
