//! Writing.

use super::facts::{Described, Fact, counting_name};
use super::schema::COLUMNS;
use super::value::stored;
use std::io::Write;
use weir_observe::Header;
use weir_parquet::{Label, TableError, Values, Writer};
use weir_units::Instant;

/// Rows of a group, which are in memory together.
const GROUP: usize = 100_000;

/// Columns of texts.
const TEXTS: usize = 9;

/// A table that is being written: first the facts, then a row for each value.
#[derive(Debug)]
pub struct Table<W: Write + Send> {
    writer: Writer<W>,
    labels: Vec<Labels>,
    row_value: Label,
    start: Option<i64>,
    rows: Rows,
}

/// The texts of a series, which are the same in each of its rows.
#[derive(Debug)]
struct Labels {
    texts: [Option<Label>; 6],
    entity: i64,
    series: i64,
    scale: i8,
}

#[derive(Debug, Default)]
struct Rows {
    times: Vec<Option<i64>>,
    offsets: Vec<Option<i64>>,
    texts: [Vec<Option<Label>>; TEXTS],
    entities: Vec<Option<i64>>,
    series: Vec<Option<i64>>,
    raws: Vec<Option<i64>>,
    values: Vec<Option<f64>>,
}

impl<W: Write + Send> Table<W> {
    /// Begins a table with the facts of an observation.
    ///
    /// # Errors
    ///
    /// [`TableError`] if it cannot be written.
    pub fn new(out: W, described: &Described) -> Result<Self, TableError> {
        let header = &described.header;
        let facts = [("weir.source", header.source.kind.name().to_owned())];
        let mut table = Self {
            writer: Writer::new(out, &COLUMNS, &facts)?,
            labels: labels(header),
            row_value: Label::from("value"),
            start: header.start_unix_ns,
            rows: Rows::default(),
        };
        described.facts().iter().for_each(|fact| table.rows.fact(fact));
        // Facts have groups of their own, so that readers of values can pass over them.
        table.flush()?;
        Ok(table)
    }

    /// Adds a row for each value of a sample, or one without a value if it has none.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the file cannot be written.
    pub fn sample(&mut self, at: Instant, row: &[Option<i64>]) -> Result<(), TableError> {
        // `offset_ns` ends after 292 years.
        let offset = i64::try_from(at.nanos()).unwrap_or(i64::MAX);
        let time = self.start.and_then(|start| start.checked_add(offset));
        let time = time.map(|nanos| nanos.div_euclid(1_000));
        let before = self.rows.offsets.len();
        for (labels, raw) in self.labels.iter().zip(row) {
            let Some(raw) = raw else { continue };
            let (value, exact) = stored(*raw, labels.scale);
            let rows = &mut self.rows;
            for (column, text) in rows.texts.iter_mut().zip(&labels.texts) {
                column.push(text.clone());
            }
            rows.texts[6].push(Some(self.row_value.clone()));
            rows.entities.push(Some(labels.entity));
            rows.series.push(Some(labels.series));
            rows.raws.push(exact);
            rows.values.push(Some(value));
        }
        let mut added = self.rows.values.len() - before;
        if added == 0 {
            self.rows.fact(&Fact { row: "sample".to_owned(), ..Fact::default() });
            self.rows.offsets.pop();
            self.rows.times.pop();
            added = 1;
        }
        for column in &mut self.rows.texts[7..] {
            column.resize(before + added, None);
        }
        self.rows.offsets.resize(before + added, Some(offset));
        self.rows.times.resize(before + added, time);
        if before + added >= GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.rows);
        if rows.values.is_empty() {
            return Ok(());
        }
        let [kind, name, parent, metric, unit, counting, row, key, text] = rows.texts;
        let columns = [
            Values::Whole(rows.times),
            Values::Whole(rows.offsets),
            Values::Labels(kind),
            Values::Labels(name),
            Values::Labels(parent),
            Values::Labels(metric),
            Values::Labels(unit),
            Values::Labels(counting),
            Values::Labels(row),
            Values::Whole(rows.entities),
            Values::Whole(rows.series),
            Values::Labels(key),
            Values::Labels(text),
            Values::Whole(rows.raws),
            Values::Number(rows.values),
        ];
        self.writer.rows(&columns)
    }

    /// Writes the rest and the end of the file, and returns the output.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the file cannot be written.
    pub fn finish(mut self) -> Result<W, TableError> {
        self.flush()?;
        self.writer.finish()
    }
}

impl Rows {
    fn fact(&mut self, fact: &Fact) {
        let texts = [
            fact.kind.as_deref(),
            fact.name.as_deref(),
            fact.parent.as_deref(),
            None,
            fact.unit.as_deref(),
            fact.counting.as_deref(),
            Some(&*fact.row),
            fact.key.as_deref(),
            fact.text.as_deref(),
        ];
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.push(text.map(Label::from));
        }
        self.times.push(None);
        self.offsets.push(None);
        self.entities.push(fact.entity);
        self.series.push(fact.series);
        self.raws.push(fact.raw);
        self.values.push(fact.value);
    }
}

fn labels(header: &Header) -> Vec<Labels> {
    let contents = &header.contents;
    let one = |(id, series): (i64, &weir_observe::Series)| {
        let entity = contents.entity(series.entity);
        let parent = entity.and_then(|own| contents.entity(own.parent?));
        let texts = [
            entity.map(|own| own.kind.name()),
            entity.map(|own| &*own.name),
            parent.map(|own| &*own.name),
            Some(&*series.metric),
            Some(series.unit.name()),
            Some(counting_name(series.counting)),
        ];
        Labels {
            texts: texts.map(|text| text.map(Label::from)),
            entity: series.entity.0.into(),
            series: id,
            scale: series.scale,
        }
    };
    (0..).zip(&contents.series).map(one).collect()
}
