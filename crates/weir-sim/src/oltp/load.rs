//! One database of a run, and its results.

mod observed;

use weir_core::{Cap, Completion, Op};
use weir_layout::files::Place;
use weir_oltp::model::Model;
use weir_oltp::tally::Grown;
use weir_oltp::{Database, Description, FileGrowth, FileIo, FileOp, FileTally, LoadTally};
use weir_report::oltp::{DatabaseReport, FileReport};
use weir_units::{Bytes, Instant, Span};

/// A database under load.
#[derive(Debug)]
pub(super) struct Load {
    database: Database,
    tally: LoadTally,
    /// Its files, as places of the layout, and their roles.
    files: Vec<(u32, &'static str)>,
    /// Counters by place, and those at the start of the measured time.
    stats: Vec<FileTally>,
    before: Option<Vec<FileTally>>,
}

impl Load {
    pub(super) fn new(
        description: &Description,
        model: Model,
        places: usize,
        every: Option<Span>,
    ) -> Self {
        let tally = LoadTally::new(description, &model, every);
        let stats = vec![FileTally::default(); places];
        Self {
            before: (tally.from() == Instant::ZERO).then(|| stats.clone()),
            tally,
            files: model.files(),
            stats,
            database: Database::new(model),
        }
    }

    /// Returns whether a place is one of its files.
    pub(super) fn has(&self, place: u32) -> bool {
        self.files.iter().any(|(own, _)| *own == place)
    }

    pub(super) fn end(&self) -> Instant {
        self.tally.end()
    }

    /// Returns the next I/O; none after its end.
    pub(super) fn poll_io(&mut self, now: Instant) -> Option<FileIo> {
        if now < self.end() { self.database.poll_io() } else { None }
    }

    pub(super) fn poll_deadline(&self) -> Option<Instant> {
        if self.tally.is_over() {
            return None;
        }
        Some(self.database.poll_deadline().unwrap_or(self.end()).min(self.end()))
    }

    /// Advances to `next`. The counters do not change until then.
    pub(super) fn pass(&mut self, next: Instant) {
        if next >= self.tally.from() && self.before.is_none() {
            self.before = Some(self.stats.clone());
        }
        self.tally.pass(next, &self.database);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if now < self.end() {
            self.database.handle_timeout(now);
        }
    }

    pub(super) fn complete(&mut self, completion: &Completion, place: u32, tag: u32) {
        if completion.at >= self.end() {
            return;
        }
        let op = if completion.op == Op::Read { FileOp::Read } else { FileOp::Write };
        let stall = completion.at - completion.arrived;
        self.stats[place as usize].record(op, completion.len, stall, &completion.service());
        let governed = completion.waits.get(Cap::LogRate);
        self.database.handle_completion(completion.at, tag, governed);
    }

    /// Returns the data file that must grow.
    pub(super) fn poll_growth(&self) -> Option<FileGrowth> {
        self.database.poll_growth()
    }

    /// Notes that a data file has grown.
    pub(super) fn grow(&mut self, now: Instant, grown: &Grown<'_>) {
        self.tally.grown(now, grown);
        self.database.handle_growth(now, true);
    }

    /// Notes that a data file cannot grow.
    pub(super) fn refuse(&mut self, now: Instant, file: &str, why: &str) {
        self.tally.refused(now, file, why);
        self.database.handle_growth(now, false);
    }

    /// Reports the results at `now`.
    pub(super) fn report(&self, now: Instant, places: &[Place], sizes: &[Bytes]) -> DatabaseReport {
        let elapsed = now.min(self.end()).since(self.tally.from());
        let files = self.files.iter().map(|file| self.file(*file, (places, sizes), elapsed));
        self.tally.report(now, &self.database, files.collect())
    }

    fn file(
        &self,
        (file, role): (u32, &str),
        (places, sizes): (&[Place], &[Bytes]),
        elapsed: Span,
    ) -> FileReport {
        let place = &places[file as usize];
        let now = &self.stats[file as usize];
        let before = self.before.as_ref().map_or(now, |before| &before[file as usize]);
        let stats = now.since(before).report(sizes[file as usize], elapsed);
        FileReport { file: place.name.clone(), role: role.to_owned(), ..stats }
    }
}
