//! `weir observe export`: an observation as a long table in Parquet.

use crate::cli::ObserveExportArgs;
use crate::error::CliError;

#[cfg(not(feature = "parquet"))]
pub(super) fn run(args: &ObserveExportArgs) -> Result<u8, CliError> {
    Err(CliError::NoParquet { path: args.parquet.clone() })
}

#[cfg(feature = "parquet")]
pub(super) fn run(args: &ObserveExportArgs) -> Result<u8, CliError> {
    table::write(args)
}

#[cfg(feature = "parquet")]
mod table {
    use super::super::Source;
    use crate::cli::ObserveExportArgs;
    use crate::commands::{plan, whole_file};
    use crate::error::CliError;
    use crate::output;
    use std::fs::File;
    use weir_observe::{Counting, Header, Series};
    use weir_parquet::{Kind, TableError, Values, Writer};
    use weir_units::Instant;

    const COLUMNS: [(&str, Kind); 9] = [
        ("time", Kind::Time),
        ("offset_ns", Kind::Whole),
        ("kind", Kind::Text),
        ("name", Kind::Text),
        ("parent", Kind::Text),
        ("metric", Kind::Text),
        ("unit", Kind::Text),
        ("counting", Kind::Text),
        ("value", Kind::Number),
    ];
    /// Rows of a group, which are in memory together.
    const GROUP: usize = 100_000;

    pub(super) fn write(args: &ObserveExportArgs) -> Result<u8, CliError> {
        if plan::is_same(&args.file, &args.parquet) {
            let words = format!(
                "--parquet {}: is the observation; use another name",
                args.parquet.display()
            );
            return Err(CliError::Refused(words));
        }
        plan::can_write("--parquet", &args.parquet)?;
        let source = Source::observation(&args.file)?;
        let (header, _) = source.survey()?;
        let written = |source| CliError::write(&args.parquet, source);
        let failed = |source| CliError::Parquet { path: args.parquet.clone(), source };
        let mut part = whole_file::part_of(&args.parquet).map_err(written)?;
        let facts = [("weir.source", header.source.kind.name().to_owned())];
        let writer = Writer::new(part.as_file_mut(), &COLUMNS, &facts).map_err(failed)?;
        let mut table = Table {
            labels: labels(&header),
            start: header.start_unix_ns,
            rows: Rows::default(),
            writer,
        };
        let mut result = Ok(());
        let (notes, _) = source.each(|at, row| {
            if result.is_ok() {
                result = table.sample(at, row);
            }
        })?;
        result.and_then(|()| table.finish()).map_err(failed)?;
        whole_file::keep(part, &args.parquet).map_err(written)?;
        notes.iter().for_each(|note| output::talk(&format!("note: {}", note.text)));
        Ok(0)
    }

    /// The texts of a series, which are the same in each of its rows.
    struct Label {
        texts: [Option<String>; 6],
        scale: i8,
    }

    fn labels(header: &Header) -> Vec<Label> {
        let contents = &header.contents;
        let label = |series: &Series| {
            let entity = contents.entity(series.entity);
            let parent = entity.and_then(|own| contents.entity(own.parent?));
            let counting = match series.counting {
                Counting::Cumulative => "cumulative",
                Counting::Gauge => "gauge",
            };
            let texts = [
                entity.map(|own| own.kind.name().to_owned()),
                entity.map(|own| own.name.clone()),
                parent.map(|own| own.name.clone()),
                Some(series.metric.clone()),
                Some(series.unit.name().to_owned()),
                Some(counting.to_owned()),
            ];
            Label { texts, scale: series.scale }
        };
        contents.series.iter().map(label).collect()
    }

    #[derive(Default)]
    struct Rows {
        times: Vec<Option<i64>>,
        offsets: Vec<Option<i64>>,
        texts: [Vec<Option<String>>; 6],
        values: Vec<Option<f64>>,
    }

    struct Table<'a> {
        labels: Vec<Label>,
        start: Option<i64>,
        rows: Rows,
        writer: Writer<&'a mut File>,
    }

    impl Table<'_> {
        /// Adds the values of a sample that are known.
        fn sample(&mut self, at: Instant, row: &[Option<i64>]) -> Result<(), TableError> {
            let offset = i64::try_from(at.nanos()).ok();
            let time = self.start.zip(offset).and_then(|(start, offset)| start.checked_add(offset));
            for (label, value) in self.labels.iter().zip(row) {
                let Some(value) = value else { continue };
                self.rows.times.push(time);
                self.rows.offsets.push(offset);
                for (column, text) in self.rows.texts.iter_mut().zip(&label.texts) {
                    column.push(text.clone());
                }
                self.rows.values.push(Some(scaled(*value, label.scale)));
            }
            if self.rows.values.len() >= GROUP { self.flush() } else { Ok(()) }
        }

        fn flush(&mut self) -> Result<(), TableError> {
            let Rows { times, offsets, texts, values } = std::mem::take(&mut self.rows);
            let mut columns = vec![Values::Whole(times), Values::Whole(offsets)];
            columns.extend(texts.map(Values::Text));
            columns.push(Values::Number(values));
            self.writer.rows(&columns)
        }

        fn finish(mut self) -> Result<(), TableError> {
            if !self.rows.values.is_empty() {
                self.flush()?;
            }
            self.writer.finish().map(drop)
        }
    }

    /// Returns a value in the unit of its series.
    #[expect(clippy::cast_precision_loss, reason = "a column of floats")]
    fn scaled(value: i64, scale: i8) -> f64 {
        let power = 10_f64.powi(i32::from(scale).abs());
        // A quotient is rounded once, unlike a product with a tenth.
        if scale < 0 { value as f64 / power } else { value as f64 * power }
    }
}
