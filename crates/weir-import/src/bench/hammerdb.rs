//! Logs of HammerDB with the results of runs, of 3.x and 4.x, of its window and its command line,
//! and the JSON in which 4.x stores results of jobs.
//!
//! ```text
//!  Timestamp 1 @ Tue Jan 07 12:25:15 PST 2020
//!  Vuser 1:8 Active Virtual Users configured
//!  Vuser 1:TEST RESULT : System achieved 66804 SQL Server TPM at 14516 NOPM      until 3.x
//!  Vuser 1:TEST RESULT : System achieved 11 NOPM from 25 MySQL TPM               since 4.0
//! ```
//!
//! TPM is the number of database transactions per minute, NOPM the number of new orders per
//! minute; both are stored per second. The command line writes no times, so its runs follow each
//! other, each with its stated duration.

use super::job::{self, Facts, Jobs, RunClock};
use super::minute::{MINUTE, moment, tell_zone};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use weir_observe::metric as m;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "hammerdb",
    about: "logs of HammerDB with results",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["Hammerdb"]),
        Sign::Word(&["NOPM"]),
        Sign::Text(&["System achieved", "Active Virtual Users"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        line.starts_with("Hammerdb Log @")
            || line.starts_with("HammerDB CLI v")
            || line.contains("Active Virtual Users configured")
            || (line.contains("System achieved") && line.contains("NOPM"))
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(HammerDb {
        lines: Lines::new(input),
        clock: options.clock,
        state: State::default(),
        jobs: Jobs::default(),
        runs: RunClock::default(),
        results: 0,
        is_zone_told: false,
    }))
}

/// State since the last result.
#[derive(Debug, Default)]
struct State {
    at: Option<i64>,
    users: Option<f64>,
    rampup: Option<f64>,
    minutes: Option<f64>,
    warehouses: Option<u64>,
}

struct HammerDb {
    lines: Lines<Bytes>,
    clock: Clock,
    state: State,
    jobs: Jobs,
    runs: RunClock,
    results: u64,
    is_zone_told: bool,
}

impl ReadSamples for HammerDb {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        while let Some(line) = self.lines.next_line()? {
            let text = line.trim();
            if text.contains("TEST RESULT") || text.contains("System achieved") {
                if let Some(at) = self.result(sheet, text)? {
                    return Ok(Some(at));
                }
                continue;
            }
            self.take(sheet, text);
        }
        if self.results == 0 {
            let reason = "it contains no TEST RESULT: no run was completed";
            return Err(ImportError::at(self.lines.number(), reason));
        }
        if self.state.minutes.is_some() {
            sheet.note("its last run has no result");
            self.state = State::default();
        }
        Ok(None)
    }
}

impl HammerDb {
    /// Takes a line without a result.
    fn take(&mut self, sheet: &mut Sheet, text: &str) {
        let said = |before: &str, behind: &str| -> Option<f64> {
            let (_, rest) = text.split_once(before)?;
            rest.split_once(behind)?.0.trim().parse().ok()
        };
        let when = match text.split_once(" @ ") {
            Some((_, when)) => Some(when),
            // A job's result, as JSON.
            None => text.strip_prefix('"').map(|rest| rest.trim_end_matches([',', '"'])),
        };
        if let Some((at, zone)) = when.and_then(|when| moment(self.clock, when)) {
            self.state.at = Some(at);
            tell_zone(sheet, zone, &mut self.is_zone_told);
            return;
        }
        if text.contains("Active Virtual Users configured") {
            let words = text.split([':', '"', ' ']).filter(|word| !word.is_empty());
            let before = words.take_while(|word| *word != "Active").last();
            self.state.users = before.and_then(|count| count.parse().ok());
        }
        self.state.rampup = said("rampup time of ", " minute").or(self.state.rampup);
        self.state.minutes = said("test period of ", " in minutes").or(self.state.minutes);
        if let Some((name, value)) = text.split_once('=')
            && name.trim().ends_with("_count_ware")
        {
            self.state.warehouses = value.trim().parse().ok();
        }
        if let Some((_, version)) = text.split_once("HammerDB CLI v") {
            sheet.about("hammerdb", version);
        }
        if text.contains("Error in Virtual User") {
            sheet.unused("errors of virtual users");
        }
    }

    fn result(&mut self, sheet: &mut Sheet, text: &str) -> Result<Option<At>, ImportError> {
        let Some(result) = Achieved::parse(text) else {
            if self.lines.was_open() {
                sheet.note("its last line was truncated and is left out");
                return Ok(None);
            }
            let reason = format!(
                "a result is expected as \"N NOPM from M .. TPM\" or \"M .. TPM at N NOPM\", \
                 there is {text:?}"
            );
            return Err(ImportError::at(self.lines.number(), reason));
        };
        self.results += 1;
        let state = std::mem::take(&mut self.state);
        self.state.warehouses = state.warehouses;
        let mut facts: Facts = vec![("database", result.database.as_str().into())];
        let number = |minutes: Option<f64>| minutes.and_then(job::whole);
        facts.extend(number(state.minutes).map(|minutes| ("minutes", minutes.into())));
        facts.extend(number(state.rampup).map(|minutes| ("rampup_minutes", minutes.into())));
        facts.extend(state.warehouses.map(|count| ("warehouses", count.into())));
        let id = self.jobs.job(sheet, None, "HammerDB", &facts);
        sheet.set(id, &m::TRANSACTIONS_PER_S, result.tpm / MINUTE);
        sheet.set(id, &m::NEW_ORDERS_PER_S, result.nopm / MINUTE);
        if let Some(users) = state.users {
            sheet.set(id, &m::USERS, users);
        }
        if let Some(at) = state.at {
            return Ok(Some(At::Wall(at)));
        }
        let minutes = state.rampup.unwrap_or(0.0) + state.minutes.unwrap_or(0.0);
        if self.results == 1 {
            sheet.note("it has no times: its runs follow each other from the beginning");
        }
        // Without a duration, one second separates them.
        let seconds = if minutes > 0.0 { minutes * MINUTE } else { 1.0 };
        Ok(Some(self.runs.end(None, job::nanos(seconds))))
    }
}

/// The result of a run.
#[derive(Debug, PartialEq)]
struct Achieved {
    tpm: f64,
    nopm: f64,
    database: String,
}

impl Achieved {
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("achieved ")?;
        let words: Vec<&str> = rest.split([' ', '"', ',']).filter(|w| !w.is_empty()).collect();
        let place = |unit: &str| words.iter().position(|word| *word == unit);
        let (tpm_at, nopm_at) = (place("TPM")?, place("NOPM")?);
        let number = |at: usize| words.get(at)?.parse::<f64>().ok();
        let nopm = number(nopm_at.checked_sub(1)?)?;
        // The name of the database is between a number and TPM.
        let tpm_from = if nopm_at < tpm_at { nopm_at + 2 } else { 0 };
        let tpm = number(tpm_from)?;
        let database = words.get(tpm_from + 1..tpm_at)?.join(" ");
        Some(Self { tpm, nopm, database })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_both_forms() {
        let check = |text: &str, expect: Option<(f64, f64, &str)>| {
            let expect = expect.map(|(tpm, nopm, database)| Achieved {
                tpm,
                nopm,
                database: database.to_owned(),
            });
            assert_eq!(Achieved::parse(text), expect, "{text}");
        };
        check(
            "TEST RESULT : System achieved 66804 SQL Server TPM at 14516 NOPM",
            Some((66804.0, 14516.0, "SQL Server")),
        );
        check("System achieved 11 NOPM from 25 MySQL TPM", Some((25.0, 11.0, "MySQL")));
        check("\"System achieved 11 NOPM from 25 MySQL TPM\",", Some((25.0, 11.0, "MySQL")));
        check("System achieved 11 NOPM from", None);
        check("System achieved NOPM", None);
        check("achieved TPM NOPM", None);
    }
}
