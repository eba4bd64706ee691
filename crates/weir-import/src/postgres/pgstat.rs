//! `pgstat -s database`: the activity of all databases of a server, one row per interval in the
//! format of vmstat.
//!
//! ```text
//! - backends - ------ xacts ------ -------------- blocks --------------
//!                 commit rollback     read    hit read_time write_time
//!          1      224041       17    24768 2803774         0          0      since the reset
//!          1           3        0        0    205         0          0       since the row before
//! ```
//!
//! The first row is the total since the reset of the statistics, each other one the growth since
//! the row before. Their running sums are the counters of `pg_stat_database`. The other tables of
//! pgstat (`-s bgwriter`, `table`, `xlog`, ..) are not read.

use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::number::Style;
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::{Lines, words};
use weir_observe::header::EntityKind;
use weir_observe::metric::{self as m, Metric};

pub(crate) const KIND: Kind = Kind {
    name: "pgstat",
    about: "output of pgstat -s database for PostgreSQL",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["xacts"]),
        Sign::Word(&["blocks"]),
        Sign::Word(&["commit"]),
        Sign::Word(&["rollback"]),
    ]],
};

const BACKENDS: &str = "backends";

fn recognizes(text: &str) -> bool {
    let is_first = |line: &&str| !line.starts_with('$') && !line.trim_ascii().is_empty();
    let mut lines = text.lines().filter(is_first);
    let (Some(groups), Some(names)) = (lines.next(), lines.next()) else { return false };
    is_groups(groups) && words(names).iter().any(|name| measure(name).is_some())
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Pgstat {
        lines: Lines::new(input),
        step: options.step().nanos(),
        columns: Vec::new(),
        totals: Vec::new(),
        rows: 0,
    }))
}

fn measure(name: &str) -> Option<&'static Metric> {
    Some(match name {
        BACKENDS => &m::USERS,
        "commit" => &m::TRANSACTIONS,
        "rollback" => &m::TRANSACTIONS_ROLLED_BACK,
        "read" => &m::PAGE_MISSES,
        "hit" => &m::PAGE_HITS,
        "read_time" => &m::IO_STALL_READ_MS,
        "write_time" => &m::IO_STALL_WRITE_MS,
        "bytes" => &m::TEMP_BYTES,
        _ => return None,
    })
}

/// Returns whether a line has the group titles of the database table.
fn is_groups(line: &str) -> bool {
    let words = words(line);
    let is_one = |word: &&str| [BACKENDS, "xacts", "blocks"].contains(word);
    words.iter().any(is_one) && words.iter().any(|word| word.starts_with('-'))
}

struct Pgstat {
    lines: Lines<Bytes>,
    step: u64,
    columns: Vec<Option<&'static Metric>>,
    /// Running sum of each column.
    totals: Vec<f64>,
    rows: u64,
}

impl ReadSamples for Pgstat {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        while let Some(line) = self.lines.next_line()? {
            if is_groups(&line) {
                self.head(sheet, &line)?;
                continue;
            }
            let row = words(&line);
            if !row.first().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
                if !row.is_empty() && !line.starts_with('$') {
                    sheet.unused("lines that are not rows");
                }
                continue;
            }
            match self.row(sheet, &row) {
                Ok(at) => return Ok(Some(at)),
                Err(_) if self.lines.was_open() => sheet.note(
                    "its last line was truncated and is \
                                                               left out",
                ),
                Err(reason) => return Err(ImportError::at(self.lines.number(), reason)),
            }
        }
        Ok(None)
    }
}

impl Pgstat {
    /// Takes the head, which repeats. The number of connections has no name below its group.
    fn head(&mut self, sheet: &mut Sheet, groups: &str) -> Result<(), ImportError> {
        let names = self.lines.next_line()?.unwrap_or_default();
        let first = words(groups).contains(&BACKENDS).then_some(BACKENDS);
        let names: Vec<_> = first.into_iter().chain(words(&names)).collect();
        let columns: Vec<_> = names.iter().map(|name| measure(name)).collect();
        if self.columns.is_empty() {
            names.iter().filter(|name| measure(name).is_none()).for_each(|name| sheet.unused(name));
            self.totals = vec![0.0; columns.len()];
            self.columns = columns;
        } else if columns != self.columns {
            let reason = "another table begins here: give each a file of its own";
            return Err(ImportError::at(self.lines.number(), reason));
        }
        Ok(())
    }

    fn row(&mut self, sheet: &mut Sheet, row: &[&str]) -> Result<At, String> {
        let expected = self.columns.len();
        if row.len() != expected {
            return Err(format!("a row has {} columns, but its header has {expected}", row.len()));
        }
        let number = |word: &&str| {
            Style::Point.parse(word).ok_or_else(|| format!("{word:?} is not a number"))
        };
        let numbers = row.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        let host = sheet.entity(EntityKind::Host, "host", None);
        for ((column, total), number) in self.columns.iter().zip(&mut self.totals).zip(numbers) {
            let Some(measure) = column else { continue };
            *total = if measure.is_counter { *total + number } else { number };
            let is_time = [&m::IO_STALL_READ_MS, &m::IO_STALL_WRITE_MS].contains(measure);
            // A total of zero means that times were not measured.
            if *total > 0.0 || !is_time {
                sheet.set(host, measure, *total);
            }
        }
        self.rows += 1;
        Ok(At::Since(self.step.saturating_mul(self.rows - 1)))
    }
}
