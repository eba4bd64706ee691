//! The results of a database under load, counted in the same way by both clocks.

mod growing;
mod over_time;
mod ratio;

pub use growing::Grown;

use crate::model::{Model, PAGE};
use crate::waits::WaitTotals;
use crate::{Counters, Database, Description, Wait};
use growing::Growing;
use over_time::OverTime;
use ratio::{cpu_share, ratio, seconds};
use weir_report::number::float;
use weir_report::oltp::{DatabaseReport, FileReport, LoadReport, WaitReport};
use weir_units::{Instant, Span};

/// The counters of a run: those of the measured time, and those over time.
#[derive(Debug)]
pub struct LoadTally {
    name: String,
    mix: Option<String>,
    users: u32,
    vcores: u32,
    /// The start of the measured time, and the counters at that time.
    from: Instant,
    before: Option<Counters>,
    end: Instant,
    /// The counters at the end, once it is reached.
    last: Option<Counters>,
    over_time: Option<OverTime>,
    growing: Growing,
}

impl LoadTally {
    /// Starts counting a run that begins at time zero. `every` is the length of intervals over
    /// time.
    #[must_use]
    pub fn new(description: &Description, model: &Model, every: Option<Span>) -> Self {
        let from = Instant::ZERO + description.ramp_time;
        Self {
            name: description.name(),
            mix: description.mix.clone(),
            users: model.users,
            vcores: model.vcores,
            from,
            before: (from == Instant::ZERO).then(Counters::default),
            end: from + description.duration,
            last: None,
            over_time: every.map(OverTime::new),
            growing: Growing::default(),
        }
    }

    /// Counts the growth of a data file.
    pub fn grown(&mut self, now: Instant, grown: &Grown<'_>) {
        self.growing.grown(now, grown);
    }

    /// Notes that a data file could not grow.
    pub fn refused(&mut self, now: Instant, file: &str, why: &str) {
        self.growing.refused(now, file, why);
    }

    /// Returns the name of the database.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the ready-made mix, if it is one.
    #[must_use]
    pub fn mix(&self) -> Option<&str> {
        self.mix.as_deref()
    }

    /// Returns the number of users.
    #[must_use]
    pub fn users(&self) -> u32 {
        self.users
    }

    /// Returns the number of schedulers.
    #[must_use]
    pub fn vcores(&self) -> u32 {
        self.vcores
    }

    /// Returns the present counters, or those at the end of the run.
    #[must_use]
    pub fn counters(&self, database: &Database) -> Counters {
        self.last.unwrap_or_else(|| database.counters())
    }

    /// Returns the start of the measured time.
    #[must_use]
    pub fn from(&self) -> Instant {
        self.from
    }

    /// Returns the end of the run.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.end
    }

    /// Returns whether the run has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.last.is_some()
    }

    /// Advances to `next`. The counters do not change until then.
    pub fn pass(&mut self, next: Instant, database: &Database) {
        if self.is_over() {
            return;
        }
        let counters = || database.counters();
        if next >= self.from && self.before.is_none() {
            self.before = Some(counters());
        }
        if let Some(over_time) = &mut self.over_time {
            over_time.pass(next.min(self.end), counters);
        }
        if next >= self.end {
            self.last = Some(counters());
        }
    }

    /// Returns the report at `now`. `files` are the data files, and the log last.
    #[must_use]
    pub fn report(
        &self,
        now: Instant,
        database: &Database,
        files: Vec<FileReport>,
    ) -> DatabaseReport {
        let now = now.min(self.end);
        let last = self.counters(database);
        // Nothing is measured during the ramp.
        let counted = last.since(self.before.as_ref().unwrap_or(&last));
        let elapsed = now.since(self.from);
        let series = |over_time: &OverTime| over_time.points(now, last, self.vcores);
        DatabaseReport {
            database: self.name.clone(),
            mix: self.mix.clone(),
            users: self.users,
            ramp_s: seconds(self.from.since(Instant::ZERO)),
            elapsed_s: seconds(elapsed),
            load: self.load(database, &counted, elapsed),
            waits: waits(&counted),
            files,
            series: self.over_time.as_ref().map(series).unwrap_or_default(),
            notes: notes(&counted, database.is_out_of_numbers())
                .chain(self.growing.notes())
                .collect(),
        }
    }

    fn load(&self, database: &Database, counted: &Counters, elapsed: Span) -> LoadReport {
        let per_s = |n: u64| ratio(float(n), seconds(elapsed));
        let pages = |pages: u64| pages.saturating_mul(PAGE);
        let in_memory = database.pages_in_memory() as u64;
        let found = counted.pages_wanted - counted.pages_missed.min(counted.pages_wanted);
        let leave = per_s(counted.pages_evicted);
        LoadReport {
            batches: counted.batches,
            batches_per_s: per_s(counted.batches),
            transactions: counted.transactions,
            transactions_per_min: per_s(counted.transactions) * 60.0,
            response_mean_ns: ratio(float(counted.response.nanos()), float(counted.transactions)),
            cpu_share: cpu_share(counted, seconds(elapsed), self.vcores),
            pages_wanted: counted.pages_wanted,
            buffer_hit_share: ratio(float(found), float(counted.pages_wanted)),
            buffer_bytes: pages(in_memory),
            dirty_bytes: pages(database.pages_dirty()),
            page_life_s: (leave > 0.0).then(|| float(in_memory) / leave),
            checkpoints: counted.checkpoints,
            failed: counted.failed,
            growths: counted.growths,
        }
    }
}

/// Returns notes on the figures.
fn notes(counted: &Counters, is_out_of_numbers: bool) -> impl Iterator<Item = String> + use<> {
    let none = (counted.checkpoints == 0).then(|| {
        "no checkpoint ended in the measured time, so the data files were written less than in the \
         long run; measure longer"
            .to_owned()
    });
    let failed = (counted.failed > 0).then(|| {
        let failed = weir_report::number::grouped(counted.failed);
        let why = match is_out_of_numbers {
            false => "the data files are full and cannot grow (SQL Server's error 1105)",
            true => "a database has at most 32 TiB of pages, of which a data file has its share",
        };
        format!("{failed} transactions failed: {why}")
    });
    none.into_iter().chain(failed)
}

/// Returns the waits, longest first.
fn waits(counted: &Counters) -> Vec<WaitReport> {
    let all: u64 = counted.waits.iter().map(|(_, totals)| totals.time.nanos()).sum();
    let report = |(wait, WaitTotals { count, time }): (Wait, WaitTotals)| WaitReport {
        wait: wait.name().to_owned(),
        count,
        time_ns: time.nanos(),
        share: ratio(float(time.nanos()), float(all)),
        mean_ns: ratio(float(time.nanos()), float(count)),
    };
    let mut waits: Vec<WaitReport> = counted.waits.iter().map(report).collect();
    waits.retain(|wait| wait.count > 0);
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.time_ns));
    waits
}
