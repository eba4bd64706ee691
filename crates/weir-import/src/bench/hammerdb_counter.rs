//! HammerDB's log of transaction counts, and the JSON in which 4.x stores those of a job.
//!
//! ```text
//!  324540 PostgreSQL tpm @ Thu Jun 30 22:43:41 UTC 2022
//!  "324540": "2022-06-30 22:43:41",                        under {"PostgreSQL tpm": {
//! ```
//!
//! A count is the rate per minute of the interval before it. The first has no interval and is 0.

use super::job;
use super::minute::{MINUTE, moment, tell_zone};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use weir_observe::metric as m;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "hammerdb-counter",
    about: "transaction counts logged by HammerDB",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["Hammerdb"]),
        Sign::Word(&["tpm"]),
        Sign::Text(&["Transaction Counter"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    text.lines().take(100).any(|line| {
        line.starts_with("Hammerdb Transaction Counter Log")
            || line.contains(" tpm @ ")
            || (line.contains(" tpm\"") && line.contains('{'))
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Counter {
        lines: Lines::new(input),
        clock: options.clock,
        database: None,
        samples: 0,
        is_zone_told: false,
    }))
}

struct Counter {
    lines: Lines<Bytes>,
    clock: Clock,
    /// Name of the database in the head of the JSON.
    database: Option<String>,
    samples: u64,
    is_zone_told: bool,
}

impl ReadSamples for Counter {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        while let Some(line) = self.lines.next_line()? {
            if let Some(at) = self.line(sheet, &line)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

impl Counter {
    fn line(&mut self, sheet: &mut Sheet, line: &str) -> Result<Option<At>, ImportError> {
        let text = line.trim();
        let (count, database, when) = if let Some((what, when)) = text.split_once(" tpm @ ") {
            let (count, database) = what.split_once(' ').unwrap_or((what, ""));
            (count, database.to_owned(), when)
        } else if let Some((what, _)) = text.split_once(" tpm\"") {
            let name = what.trim_start_matches(['{', '"', ' ']);
            self.database = Some(name.to_owned());
            return Ok(None);
        } else if let (Some(database), Some((count, when))) =
            (&self.database, text.split_once("\": \""))
        {
            let when = when.trim_end_matches(['"', ',', '}', ' ']);
            (count.trim_start_matches('"'), database.clone(), when)
        } else {
            return Ok(None);
        };
        let Some((at, zone)) = moment(self.clock, when) else {
            return self.wrong(sheet, format!("{when:?} is not a time"));
        };
        let Ok(tpm) = count.trim().parse::<f64>() else {
            return self.wrong(sheet, format!("{count:?} is not a number of transactions"));
        };
        tell_zone(sheet, zone, &mut self.is_zone_told);
        self.samples += 1;
        if self.samples == 1 && tpm == 0.0 {
            sheet.note("its first count, 0, covers no interval and is left out");
            return Ok(None);
        }
        let id = job::job(sheet, None, "HammerDB");
        if !database.is_empty() {
            sheet.attribute(id, "database", database.as_str());
        }
        sheet.set(id, &m::TRANSACTIONS_PER_S, tpm / MINUTE);
        Ok(Some(At::Wall(at)))
    }

    fn wrong(&self, sheet: &mut Sheet, reason: String) -> Result<Option<At>, ImportError> {
        if self.lines.was_open() {
            sheet.note("its last line was truncated and is left out");
            return Ok(None);
        }
        Err(ImportError::at(self.lines.number(), reason))
    }
}
