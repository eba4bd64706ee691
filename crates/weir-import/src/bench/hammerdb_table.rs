//! Results of HammerDB as a table: one row per run, with its times, users, TPM and NOPM.

use super::job::{Facts, Jobs, RunClock, nanos};
use super::minute::MINUTE;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::number::{Style, is_missing};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::table::{Fields, Table, Tables, plain};
use crate::text::Lines;
use weir_observe::metric::{self as m, Metric};

pub(crate) const KIND: Kind = Kind {
    name: "hammerdb-table",
    about: "results of HammerDB as a table",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Word(&["NOPM"]), Sign::Word(&["TPM"])]],
};

const TPM: [&str; 3] = ["TPM", "Transactions per minute", "tpm_result"];
const NOPM: [&str; 3] = ["NOPM", "New orders per minute", "nopm_result"];
const USERS: [&str; 4] = ["Virtual Users", "VUs", "VU", "Users"];
const END: [&str; 4] = ["Transaction End Time", "End Time", "Timestamp", "Time"];
const START: [&str; 2] = ["Transaction Start Time", "Start Time"];
const TASK: [&str; 3] = ["Task", "Job", "Run"];
const MODE: [&str; 2] = ["Mode", "Benchmark"];

fn recognizes(text: &str) -> bool {
    text.lines().take(20).any(|line| {
        let names: Vec<String> = line.split([',', ';', '\t', '|']).map(plain).collect();
        names.iter().any(|name| name == "nopm") && names.iter().any(|name| name == "tpm")
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Results {
        tables: Tables::new(Lines::new(input)),
        options: options.clone(),
        table: None,
        jobs: Jobs::default(),
        runs: RunClock::default(),
    }))
}

/// A table with the indices of its columns.
struct Columns {
    table: Table,
    end: Option<usize>,
    task: Option<usize>,
    mode: Option<usize>,
    values: Vec<(usize, &'static Metric, f64)>,
}

struct Results {
    tables: Tables<Bytes>,
    options: Options,
    table: Option<Columns>,
    jobs: Jobs,
    runs: RunClock,
}

impl ReadSamples for Results {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        loop {
            let Some(columns) = &self.table else {
                match self.tables.next_table()? {
                    Some(table) => self.table = columns(sheet, table),
                    None => return Ok(None),
                }
                continue;
            };
            let Some(row) = self.tables.next_row(&columns.table)? else {
                if self.tables.cut().is_some() {
                    sheet.note("its last line was truncated and is left out");
                }
                self.table = None;
                continue;
            };
            return self.row(sheet, &row).map(Some);
        }
    }
}

/// Returns the columns of a table, or `None` if it has no results.
fn columns(sheet: &mut Sheet, table: Table) -> Option<Columns> {
    let values: Vec<_> = [
        (table.column(&TPM), &m::TRANSACTIONS_PER_S, 1.0 / MINUTE),
        (table.column(&NOPM), &m::NEW_ORDERS_PER_S, 1.0 / MINUTE),
        (table.column(&USERS), &m::USERS, 1.0),
    ]
    .into_iter()
    .filter_map(|(at, measure, by)| Some((at?, measure, by)))
    .collect();
    let (end, task, mode) = (table.column(&END), table.column(&TASK), table.column(&MODE));
    if table.column(&NOPM).is_none() && table.column(&TPM).is_none() {
        return None;
    }
    let used = [end, task, mode, table.column(&START)];
    for (name, place) in table.columns.iter().zip(0..) {
        if !used.contains(&Some(place)) && !values.iter().any(|(at, ..)| *at == place) {
            sheet.unused(name);
        }
    }
    if end.is_some() {
        sheet.note("its times have no zone: UTC is assumed unless an offset is given");
    }
    if table.column(&START).is_some() {
        sheet.note("each of its values covers the time from the start to the end in its row");
    }
    Some(Columns { table, end, task, mode, values })
}

impl Results {
    fn row(&mut self, sheet: &mut Sheet, row: &Fields) -> Result<At, ImportError> {
        let line = self.tables.line();
        let Some(columns) = &self.table else { return Ok(At::Since(0)) };
        let text = |at: Option<usize>| at.and_then(|at| row.get(at));
        let when = match text(columns.end) {
            Some(text) if !is_missing(text) => {
                let wrong = || ImportError::at(line, format!("{text:?} is not a time"));
                Some(self.options.clock.moment(text).ok_or_else(wrong)?)
            }
            _ => None,
        };
        let facts: Facts =
            text(columns.mode).map(|mode| ("mode", mode.into())).into_iter().collect();
        let id = self.jobs.job(sheet, None, text(columns.task).unwrap_or("HammerDB"), &facts);
        for (at, measure, by) in &columns.values {
            let Some(text) = text(Some(*at)).filter(|text| !is_missing(text)) else { continue };
            let Some(value) = Style::Point.parse(text) else {
                return Err(ImportError::at(line, format!("{text:?} is not a number")));
            };
            sheet.set(id, measure, value * by);
        }
        Ok(match when {
            Some(at) => At::Wall(at),
            None => self.runs.end(None, nanos(1.0)),
        })
    }
}
