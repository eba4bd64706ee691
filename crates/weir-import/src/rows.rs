//! Readers of result sets: each set goes to a reader that knows its columns.

use crate::error::ImportError;
use crate::kind::Bytes;
use crate::options::Options;
use crate::results::{ResultSet, ResultSets, Row, RowSet};
use crate::sheet::{At, ReadSamples, Sheet};
use crate::timing::{TimeColumns, Timing};
use crate::window::{Stamp, Window};
use std::collections::HashMap;
use weir_observe::header::{EntityId, EntityKind, SeriesId};
use weir_observe::metric::Metric;
use weir_observe::moment::Clock;

/// A reader of the rows of a result set.
pub(crate) trait ReadRows {
    /// Takes a row.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it does not fit its head.
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError>;

    /// Ends the set.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if values that were held back cannot be written.
    fn end(&mut self, _rows: &mut Rows, _set: &ResultSet) -> Result<(), ImportError> {
        Ok(())
    }
}

/// A function that returns the reader of a result set, if there is one.
pub(crate) type Plan = fn(&ResultSet) -> Option<Box<dyn ReadRows>>;

/// Returns the reader of a result set, if there is one.
type FindReader = dyn Fn(&ResultSet) -> Option<Box<dyn ReadRows>>;

/// A result set and its reader.
type SetReader = (ResultSet, Box<dyn ReadRows>);

/// Columns with their metrics and factors.
pub(crate) type Columns = Vec<(usize, &'static Metric, f64)>;

/// Synonymous column names, their metric, and the factor of the values.
pub(crate) type Meaning = (&'static [&'static str], &'static Metric, f64);

/// State that is kept across sets.
pub(crate) struct Rows {
    /// The sheet to fill.
    pub(crate) sheet: Sheet,
    window: Window,
    timing: Timing,
    times: TimeColumns,
    /// The moment and set at which an entity was last seen in a kind of result set without times.
    seen: HashMap<(EntityId, &'static str), (i64, u64)>,
    /// Number of the current set.
    set: u64,
    /// Series of the current set's columns, by entity.
    series: HashMap<EntityId, Vec<Option<SeriesId>>>,
    /// Values of a row.
    values: Vec<(SeriesId, f64)>,
    /// Number of values of the current set's first moment.
    before: usize,
    /// Names by the ids used in other sets.
    pub(crate) names: HashMap<String, String>,
    /// Name of a host that a result does not name.
    nameless: String,
    /// Time at which all rows were taken, for a live query.
    now: Option<Stamp>,
}

impl Rows {
    /// Creates the state for results without times that are `step` nanoseconds apart.
    fn new(clock: Clock, step: i64) -> Self {
        Self {
            sheet: Sheet::default(),
            window: Window::default(),
            timing: Timing::new(clock, step),
            times: TimeColumns::default(),
            seen: HashMap::new(),
            set: 0,
            series: HashMap::new(),
            values: Vec::new(),
            before: 0,
            names: HashMap::new(),
            nameless: "host".to_owned(),
            now: None,
        }
    }

    /// Returns the host of a name, or the unnamed host.
    pub(crate) fn host(&mut self, name: Option<&str>) -> EntityId {
        self.sheet.entity(EntityKind::Host, name.unwrap_or(&self.nameless), None)
    }

    /// Returns the time at which all rows were taken, for a live query.
    pub(crate) const fn now(&self) -> Option<Stamp> {
        self.now
    }

    /// Returns whether the rows of the current set have times, or the time is known.
    pub(crate) fn is_dated(&self) -> bool {
        self.now.is_some() || self.times.is_dated()
    }

    /// Begins a set.
    fn begin(&mut self, times: TimeColumns) {
        self.times = times;
        self.set += 1;
        self.series.clear();
        self.timing.forget();
        self.before = self.window.count(self.timing.moment());
    }

    /// Returns the time of a row with `entity` in the current set. `what` distinguishes sets with
    /// different facts about the same entities.
    ///
    /// # Errors
    ///
    /// [`ImportError::Malformed`] if a time is missing.
    pub(crate) fn stamp(
        &mut self,
        row: &Row,
        entity: EntityId,
        what: &'static str,
    ) -> Result<Stamp, ImportError> {
        if let Some(now) = self.now {
            self.window.touch(now)?;
            return Ok(now);
        }
        let last = self.seen.get(&(entity, what)).copied();
        let (mut seen, began) = (last.map(|(at, _)| at), self.timing.moment());
        let stamp = self.timing.stamp(&mut self.sheet, &self.times, row, &mut seen)?;
        if let Some(at) = seen {
            // A list with an entity of the previous list is a later one as a whole.
            if at != began && last.is_some_and(|(_, set)| set < self.set) {
                self.window.shift(began, self.before, at);
                self.before = 0;
            }
            self.seen.insert((entity, what), (at, self.set));
        }
        self.window.touch(stamp)?;
        Ok(stamp)
    }

    /// Returns the text of a row's time.
    pub(crate) fn time_text<'a>(&self, row: &'a Row) -> Option<&'a str> {
        self.times.text(row)
    }

    /// Takes a row with facts that do not depend on time.
    ///
    /// # Errors
    ///
    /// [`ImportError::Malformed`] if the entity was declared already.
    pub(crate) fn without_time(&mut self) -> Result<(), ImportError> {
        self.window.touch(self.now.unwrap_or(Stamp::Since(self.timing.moment())))
    }

    /// Writes a value, if there is one.
    ///
    /// # Errors
    ///
    /// [`ImportError::Malformed`] if its time has passed already.
    pub(crate) fn set(
        &mut self,
        at: Stamp,
        entity: EntityId,
        measure: &'static Metric,
        value: Option<f64>,
    ) -> Result<(), ImportError> {
        self.window.set(&mut self.sheet, at, entity, measure, value)
    }

    /// Writes the values of a row.
    ///
    /// # Errors
    ///
    /// [`ImportError::Malformed`] if a value is not a number.
    pub(crate) fn set_all(
        &mut self,
        at: Stamp,
        entity: EntityId,
        (set, row): (&ResultSet, &Row),
        columns: &Columns,
    ) -> Result<(), ImportError> {
        self.values.clear();
        let own = self.series.entry(entity).or_default();
        own.resize(own.len().max(set.columns.len()), None);
        for (column, measure, by) in columns {
            let Some(value) = row.number(set, Some(*column))? else { continue };
            let Some(known) = own.get_mut(*column) else { continue };
            let series = *known.get_or_insert_with(|| {
                let series = self.sheet.series(entity, measure);
                self.window.know(series, measure);
                series
            });
            self.values.push((series, value * by));
        }
        self.window.put_all(at, &self.values)
    }

    /// Sets an attribute of an entity, if there is a value.
    pub(crate) fn attribute(&mut self, entity: EntityId, name: &str, value: Option<f64>) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        if let Some(value) = value.filter(|value| (0.0..9e15).contains(value)) {
            self.sheet.attribute(entity, name, value.round() as u64);
        }
    }

    /// Interprets the times of the current set as UTC.
    pub(crate) fn is_utc(&mut self) {
        self.times.is_utc = true;
    }

    /// Notes the unused columns: those not in `used`, and not computed from others (means, shares
    /// of a sum).
    pub(crate) fn tell_unused(&mut self, set: &ResultSet, used: &[usize]) {
        for (at, name) in set.names() {
            let is_counted = ["avg", "pct", "percent", "total", "running", "row"]
                .iter()
                .any(|part| name.starts_with(part));
            if !used.contains(&at)
                && !self.times.is_one(at)
                && !is_counted
                && let Some(name) = set.columns.get(at)
            {
                self.sheet.unused(name);
            }
        }
    }
}

/// Returns the columns of a set with a meaning; of synonyms, the first.
pub(crate) fn columns(set: &ResultSet, meanings: &[Meaning]) -> Columns {
    let mut found = Columns::new();
    for (names, measure, by) in meanings {
        let is_new = !found.iter().any(|(_, other, _)| other == measure);
        if let Some(at) = set.column(names).filter(|_| is_new) {
            found.push((at, measure, *by));
        }
    }
    found
}

/// Rows of a live query at a known time.
pub(crate) struct AskedRows {
    plan: Plan,
    rows: Rows,
    /// Readers by column names.
    readers: HashMap<Vec<String>, Option<SetReader>>,
}

impl AskedRows {
    /// Creates the reader for results of this host, unless they name one.
    pub(crate) fn new(plan: Plan, host: &str) -> Self {
        let mut rows = Rows::new(Clock::default(), 0);
        host.clone_into(&mut rows.nameless);
        Self { plan, rows, readers: HashMap::new() }
    }

    /// Takes the results of a query into the sheet; `at` is in nanoseconds since 1970.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if a result does not fit its head.
    pub(crate) fn take(
        &mut self,
        sheet: &mut Sheet,
        at: i64,
        sets: Vec<RowSet>,
    ) -> Result<(), ImportError> {
        self.rows.now = Some(Stamp::Wall(at));
        // The window is filled while the caller holds the sheet.
        std::mem::swap(sheet, &mut self.rows.sheet);
        let read = sets.into_iter().try_for_each(|set| self.set(set));
        std::mem::swap(sheet, &mut self.rows.sheet);
        // An incomplete sample must not leak into the next one.
        while self.rows.window.pop(sheet).is_some() {}
        read
    }

    fn set(&mut self, set: RowSet) -> Result<(), ImportError> {
        let RowSet { columns, rows } = set;
        let (plan, sheet) = (self.plan, &mut self.rows.sheet);
        let reader = self.readers.entry(columns).or_insert_with_key(|columns| {
            let set = ResultSet::of_columns(columns.clone());
            let reader = plan(&set);
            if reader.is_none() {
                sheet.unused(&called(&set));
            }
            Some((set, reader?))
        });
        let Some((set, reader)) = reader else { return Ok(()) };
        self.rows.begin(TimeColumns::find(set, None, Clock::default()));
        for fields in rows {
            reader.row(&mut self.rows, set, &Row::of_fields(&fields, set)?)?;
        }
        reader.end(&mut self.rows, set)
    }
}

/// A reader of result sets.
pub(crate) struct RowReader {
    sets: ResultSets,
    plan: Box<FindReader>,
    /// The current set and its reader.
    set: Option<SetReader>,
    rows: Rows,
    clock: Clock,
    ended: bool,
    has_any: bool,
}

impl RowReader {
    /// Opens `input`; `plan` selects the reader of each set.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it is an incomplete document.
    pub(crate) fn open(
        input: Bytes,
        options: &Options,
        plan: impl Fn(&ResultSet) -> Option<Box<dyn ReadRows>> + 'static,
    ) -> Result<Box<dyn ReadSamples>, ImportError> {
        let step = i64::try_from(options.step().nanos()).unwrap_or(i64::MAX);
        let rows = Rows::new(options.clock, step);
        let (sets, clock) = (ResultSets::new(input)?, options.clock);
        let plan = Box::new(plan);
        Ok(Box::new(Self { sets, plan, set: None, rows, clock, ended: false, has_any: false }))
    }

    /// Takes a row, or goes to the next set.
    fn step(&mut self) -> Result<(), ImportError> {
        if let Some((set, reader)) = &mut self.set {
            if let Some(row) = self.sets.next_row(set)? {
                return reader.row(&mut self.rows, set, &row);
            }
            reader.end(&mut self.rows, set)?;
            if self.sets.is_cut() {
                self.rows.sheet.note("its last line was truncated and is left out");
            }
        }
        self.set = None;
        let next = self.sets.next_set()?;
        for _ in 0..self.sets.take_outside() {
            self.rows.sheet.unused("lines outside of tables");
        }
        match next {
            None => self.ended = true,
            Some(set) => match (self.plan)(&set) {
                Some(reader) => {
                    let times = TimeColumns::find(&set, self.sets.first(), self.clock);
                    self.rows.begin(times);
                    self.set = Some((set, reader));
                }
                None => {
                    let (line, text) = self.sets.glance(&set);
                    self.rows.sheet.skipped(&called(&set), line, &text);
                }
            },
        }
        Ok(())
    }
}

fn called(set: &ResultSet) -> String {
    let columns: Vec<_> = set.columns.iter().take(3).map(String::as_str).collect();
    match &set.title {
        Some(title) => format!("the table {title:?}"),
        None => format!("the table of {}", columns.join(", ")),
    }
}

impl ReadSamples for RowReader {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        // The window is filled while the caller holds the sheet.
        std::mem::swap(sheet, &mut self.rows.sheet);
        let result = self.fill();
        std::mem::swap(sheet, &mut self.rows.sheet);
        result?;
        let at = self.rows.window.pop(sheet);
        if at.is_none() && !self.has_any && !sheet.unused.is_empty() {
            let unused: Vec<_> = sheet.unused.keys().map(String::as_str).collect();
            let reason = format!("it contains nothing that can be used: {}", unused.join("; "));
            return Err(ImportError::Empty { reason });
        }
        self.has_any = true;
        Ok(at)
    }
}

impl RowReader {
    fn fill(&mut self) -> Result<(), ImportError> {
        while !self.ended && !self.rows.window.is_full() {
            self.step()?;
        }
        Ok(())
    }
}
