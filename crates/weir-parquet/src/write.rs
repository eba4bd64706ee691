//! Writing.

use crate::{Kind, Label, TableError, Values};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// A file that is being written, one group of rows after the other.
pub struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    kinds: Vec<Kind>,
}

impl<W: Write + Send> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}

impl<W: Write + Send> Writer<W> {
    /// Begins a file with columns, and with facts in its metadata.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the file cannot be written.
    pub fn new(
        out: W,
        columns: &[(&str, Kind)],
        facts: &[(&str, String)],
    ) -> Result<Self, TableError> {
        let fields = columns.iter().map(|(name, kind)| Ok(Arc::new(field(name, *kind)?)));
        let fields = fields.collect::<Result<Vec<_>, ParquetError>>()?;
        let schema = Type::group_type_builder("weir").with_fields(fields).build()?;
        let facts =
            facts.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("weir".to_owned())
            .set_key_value_metadata(Some(facts.collect()))
            .build();
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        Ok(Self { file, kinds: columns.iter().map(|(_, kind)| *kind).collect() })
    }

    /// Writes rows, given as the values of each column.
    ///
    /// # Errors
    ///
    /// [`TableError::Shape`] if the values do not fit the columns, or a failure of the file.
    pub fn rows(&mut self, values: &[Values]) -> Result<(), TableError> {
        let rows = values.first().map_or(0, Values::len);
        let fits = |(own, kind): (&Values, &Kind)| {
            let is_kind = matches!(
                (own, kind),
                (Values::Whole(_), Kind::Whole | Kind::Time)
                    | (Values::Number(_), Kind::Number)
                    | (Values::Text(_) | Values::Labels(_), Kind::Text)
            );
            is_kind && own.len() == rows
        };
        let found = values.iter().zip(&self.kinds).filter(|pair| fits(*pair)).count();
        let expected = self.kinds.len();
        if found != expected || values.len() != expected {
            return Err(TableError::Shape { found, expected });
        }
        let mut group = self.file.next_row_group()?;
        for own in values {
            let Some(mut column) = group.next_column()? else { break };
            match own {
                Values::Whole(all) => put::<Int64Type>(&mut column, all.iter().copied())?,
                Values::Number(all) => put::<DoubleType>(&mut column, all.iter().copied())?,
                Values::Text(all) => {
                    let bytes = |text: &String| ByteArray::from(text.as_str());
                    put::<ByteArrayType>(
                        &mut column,
                        all.iter().map(|own| own.as_ref().map(bytes)),
                    )?;
                }
                Values::Labels(all) => {
                    let bytes = |own: &Option<Label>| own.as_ref().map(|own| own.0.clone());
                    put::<ByteArrayType>(&mut column, all.iter().map(bytes))?;
                }
            }
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the end of the file and returns the output.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the file cannot be written.
    pub fn finish(self) -> Result<W, TableError> {
        Ok(self.file.into_inner()?)
    }
}

fn field(name: &str, kind: Kind) -> Result<Type, ParquetError> {
    let (physical, logical) = match kind {
        Kind::Whole => (Physical::INT64, None),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Time => (Physical::INT64, Some(microseconds())),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

/// Returns the type of microseconds since 1970 in UTC.
fn microseconds() -> LogicalType {
    LogicalType::timestamp(true, parquet::basic::TimeUnit::MICROS)
}

/// Writes a column. A value that is missing has the definition level 0 and takes no other space.
fn put<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let mut levels: Vec<i16> = Vec::new();
    let present = values.inspect(|own| levels.push(own.is_some().into())).flatten();
    let present: Vec<T::T> = present.collect();
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    Ok(())
}
