//! Reading.

use super::facts::{Described, Fact};
use super::schema::Places;
use super::value::unscaled;
use crate::error::FleetError;
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use weir_observe::{Chunk, Column};
use weir_parquet::scan::{Cursor, Texts};
use weir_parquet::{DoubleType, Int64Type, Label, Scan};
use weir_units::Instant;

/// Rows that are decoded at a time.
const BATCH: usize = 16_384;

/// Values of a chunk, at most: 8 MiB.
const VALUES: usize = 1 << 20;

/// Samples of a chunk, at most.
const SAMPLES: usize = 4096;

/// The files of one observation, in the order of their samples.
#[derive(Debug)]
pub struct Tables {
    files: Vec<PathBuf>,
    described: Described,
}

impl Tables {
    /// Reads the facts of the files.
    ///
    /// # Errors
    ///
    /// [`FleetError::Table`] if a file is no table of an observation, or they are of different ones.
    pub fn open(files: Vec<PathBuf>) -> Result<Self, FleetError> {
        let mut facts = Vec::new();
        for path in &files {
            let (scan, places) = open(path)?;
            for group in groups_with_facts(&scan, places) {
                read_facts(&scan, places, group, &mut facts).map_err(FleetError::table(path))?;
            }
        }
        let path = files.first().cloned().unwrap_or_default();
        let wrong = |reason: String| FleetError::Table { path: path.clone(), reason };
        let described = Described::read(facts).map_err(wrong)?;
        let checked = described.header.contents.check();
        checked.map_err(|error| wrong(error.to_string()))?;
        Ok(Self { files, described })
    }

    /// Returns everything but the samples.
    #[must_use]
    pub const fn described(&self) -> &Described {
        &self.described
    }

    /// Returns the samples, chunk by chunk.
    #[must_use]
    pub fn samples(&self) -> Samples {
        let series = &self.described.header.contents.series;
        Samples {
            scales: series.iter().map(|own| own.scale).collect(),
            files: self.files.clone().into(),
            part: None,
            row: vec![None; series.len()],
            at: None,
            last: None,
        }
    }
}

fn open(path: &Path) -> Result<(Scan, Places), FleetError> {
    let file = File::open(path).map_err(FleetError::read(path))?;
    let scan = Scan::open(file).map_err(|error| match error {
        weir_parquet::TableError::Io(source) => FleetError::Read { path: path.to_owned(), source },
        error => FleetError::Table {
            path: path.to_owned(),
            reason: format!("this is no Parquet file, or a damaged one: {error}"),
        },
    })?;
    let places = Places::find(path, &scan)?;
    Ok((scan, places))
}

/// Returns the groups that have rows without `offset_ns`, as facts are.
fn groups_with_facts(scan: &Scan, places: Places) -> impl Iterator<Item = usize> {
    let column = places.place("offset_ns");
    (0..scan.groups()).filter(move |group| scan.missing(*group, column) != Some(0))
}

fn read_facts(
    scan: &Scan,
    places: Places,
    group: usize,
    facts: &mut Vec<Fact>,
) -> Result<(), weir_parquet::TableError> {
    let names = ["row", "kind", "name", "parent", "unit", "counting", "key", "text"];
    let mut texts = Vec::new();
    for name in names {
        texts.push((scan.texts(group, places.place(name))?, Vec::new()));
    }
    let mut wholes = Vec::new();
    for name in ["offset_ns", "entity", "series", "raw"] {
        wholes.push((scan.whole(group, places.place(name))?, Vec::new()));
    }
    let (mut numbers, mut values) = (scan.numbers(group, places.place("value"))?, Vec::new());
    loop {
        for (cursor, batch) in &mut texts {
            cursor.next(BATCH, batch)?;
        }
        for (cursor, batch) in &mut wholes {
            cursor.next(BATCH, batch)?;
        }
        numbers.next(BATCH, &mut values)?;
        let offsets = &wholes[0].1;
        for at in (0..offsets.len()).filter(|at| offsets[*at].is_none()) {
            let text = |column: usize| texts[column].1.get(at).cloned().flatten();
            let whole = |column: usize| wholes[column].1.get(at).copied().flatten();
            facts.push(Fact {
                row: text(0).unwrap_or_default(),
                kind: text(1),
                name: text(2),
                parent: text(3),
                unit: text(4),
                counting: text(5),
                key: text(6),
                text: text(7),
                entity: whole(1),
                series: whole(2),
                raw: whole(3),
                value: values.get(at).copied().flatten(),
            });
        }
        if offsets.is_empty() {
            return Ok(());
        }
    }
}

/// The samples of an observation.
#[derive(Debug)]
pub struct Samples {
    scales: Vec<i8>,
    files: VecDeque<PathBuf>,
    part: Option<Part>,
    /// The sample that is being read: for each series that has a row, its value.
    row: Vec<Option<Option<i64>>>,
    at: Option<i64>,
    /// The newest complete sample.
    last: Option<i64>,
}

/// A file that is being read.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    scan: Scan,
    places: Places,
    group: usize,
    columns: Option<Columns>,
}

/// The columns of a group, and the rows of them that are decoded.
#[derive(Debug)]
struct Columns {
    offsets: (Cursor<Int64Type>, Vec<Option<i64>>),
    series: (Cursor<Int64Type>, Vec<Option<i64>>),
    rows: (Texts, Vec<Option<Label>>),
    values: (Cursor<DoubleType>, Vec<Option<f64>>),
    /// Not read if no row of the group has one.
    raws: Option<(Cursor<Int64Type>, Vec<Option<i64>>)>,
    next: usize,
}

impl Samples {
    /// Returns the next samples; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`FleetError::Table`] if a file is damaged, or its rows are not in the order of their times.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, FleetError> {
        let width = self.scales.len();
        let most = (VALUES / width.max(1)).clamp(1, SAMPLES);
        let mut chunk = Chunk { times: Vec::new(), columns: vec![Column::default(); width] };
        while chunk.times.len() < most {
            if self.part.is_none() {
                let Some(path) = self.files.pop_front() else {
                    self.complete(&mut chunk);
                    break;
                };
                let (scan, places) = open(&path)?;
                self.part = Some(Part { path, scan, places, group: 0, columns: None });
            }
            if let Some(mut part) = self.part.take()
                && self.read(&mut part, &mut chunk, most)?
            {
                self.part = Some(part);
            }
        }
        Ok((!chunk.times.is_empty()).then_some(chunk))
    }

    /// Reads rows until a batch ends or the chunk is full. Returns false at the end of the file.
    fn read(
        &mut self,
        part: &mut Part,
        chunk: &mut Chunk,
        most: usize,
    ) -> Result<bool, FleetError> {
        let path = part.path.clone();
        let damaged = |error| FleetError::table(&path)(error);
        let Some(columns) = &mut part.columns else {
            if part.group == part.scan.groups() {
                return Ok(false);
            }
            let columns = Columns::open(&part.scan, part.places, part.group);
            part.columns = Some(columns.map_err(damaged)?);
            part.group += 1;
            return Ok(true);
        };
        if columns.next == columns.offsets.1.len() {
            columns.decode().map_err(damaged)?;
            if columns.offsets.1.is_empty() {
                part.columns = None;
            }
            return Ok(true);
        }
        let wrong = |reason: String| FleetError::Table { path: part.path.clone(), reason };
        while columns.next < columns.offsets.1.len() && chunk.times.len() < most {
            let at = columns.next;
            columns.next += 1;
            // Facts have no time.
            let Some(offset) = columns.offsets.1[at] else { continue };
            if self.at != Some(offset) {
                if offset < 0 || self.at.or(self.last).is_some_and(|before| before > offset) {
                    return Err(wrong(format!(
                        "a row with the offset_ns {offset} follows one with {}; sort the rows by \
                         offset_ns",
                        self.at.or(self.last).unwrap_or(0)
                    )));
                }
                self.complete(chunk);
                self.at = Some(offset);
            }
            let value = columns.values.1.get(at).copied().flatten();
            let raw = columns.raws.as_ref().and_then(|(_, raws)| raws.get(at).copied().flatten());
            let kind = columns.rows.1.get(at).and_then(Option::as_ref).and_then(Label::text);
            let series = columns.series.1.get(at).copied().flatten();
            let is_empty = series.is_none() && value.is_none() && raw.is_none();
            let series = match (kind, series) {
                (Some("value"), Some(series)) => series,
                (Some("sample"), None) if is_empty => continue,
                (kind, series) => return Err(wrong(misplaced(offset, kind, series))),
            };
            let place = usize::try_from(series).ok().filter(|place| *place < self.row.len());
            let place = place.ok_or_else(|| wrong(format!("no row declares series {series}")))?;
            if self.row[place].is_some() {
                return Err(wrong(format!(
                    "two rows have the offset_ns {offset} and the series {series}; keep one of them"
                )));
            }
            let raw = match (raw, value) {
                (Some(raw), _) => Some(raw),
                (None, Some(value)) => {
                    let raw = unscaled(value, self.scales[place]);
                    Some(raw.ok_or_else(|| {
                        wrong(format!("series {series} has the value {value}, which has no raw"))
                    })?)
                }
                (None, None) => None,
            };
            self.row[place] = Some(raw);
        }
        Ok(true)
    }

    /// Adds the sample that was being read to the chunk.
    fn complete(&mut self, chunk: &mut Chunk) {
        let Some(at) = self.at.take() else { return };
        self.last = Some(at);
        chunk.times.push(Instant::from_nanos(u64::try_from(at).unwrap_or(0)));
        for (column, value) in chunk.columns.iter_mut().zip(&mut self.row) {
            column.push(value.take().flatten());
        }
    }
}

/// Describes a row with a time that is no value of a series.
fn misplaced(offset: i64, kind: Option<&str>, series: Option<i64>) -> String {
    match (kind, series) {
        (Some("value"), _) => {
            format!("a value with the offset_ns {offset} has no series; add its number")
        }
        (Some("sample"), _) => format!(
            "a row of kind \"sample\" with the offset_ns {offset} has a series or a value; it is for \
             samples without any, and a value has the kind \"value\""
        ),
        (kind, _) => format!(
            "a row with the offset_ns {offset} is of kind {:?}; expected value or sample",
            kind.unwrap_or_default()
        ),
    }
}

impl Columns {
    fn open(scan: &Scan, places: Places, group: usize) -> Result<Self, weir_parquet::TableError> {
        let whole = |name: &str| scan.whole(group, places.place(name)).map(|own| (own, Vec::new()));
        let raw = places.place("raw");
        let has_raws = scan.missing(group, raw) != Some(scan.rows(group) as u64);
        Ok(Self {
            offsets: whole("offset_ns")?,
            series: whole("series")?,
            rows: (scan.texts(group, places.place("row"))?, Vec::new()),
            values: (scan.numbers(group, places.place("value"))?, Vec::new()),
            raws: has_raws.then(|| whole("raw")).transpose()?,
            next: 0,
        })
    }

    fn decode(&mut self) -> Result<(), weir_parquet::TableError> {
        self.next = 0;
        self.offsets.0.next(BATCH, &mut self.offsets.1)?;
        self.series.0.next(BATCH, &mut self.series.1)?;
        self.rows.0.next_labels(BATCH, &mut self.rows.1)?;
        self.values.0.next(BATCH, &mut self.values.1)?;
        if let Some((cursor, raws)) = &mut self.raws {
            cursor.next(BATCH, raws)?;
        }
        Ok(())
    }
}
