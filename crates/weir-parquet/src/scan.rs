//! Reading column by column, for tables that are larger than the memory.

use crate::{Label, TableError};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::fmt;
use std::fs::File;

/// A file whose columns are read one at a time.
pub struct Scan {
    reader: SerializedFileReader<File>,
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("groups", &self.groups()).finish_non_exhaustive()
    }
}

/// The name and the type of a column in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnType {
    /// The name; nested columns have dots.
    pub name: String,
    /// The type as Parquet names it: `INT64`, `DOUBLE`, `STRING`, `DECIMAL(18, 2)`,
    /// `TIMESTAMP(MICROS, UTC)`, ..
    pub kind: String,
}

impl Scan {
    /// Reads the schema and the places of the columns.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the file is no Parquet, or damaged.
    pub fn open(file: File) -> Result<Self, TableError> {
        Ok(Self { reader: SerializedFileReader::new(file)? })
    }

    /// Returns the columns in order.
    #[must_use]
    pub fn columns(&self) -> Vec<ColumnType> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        schema.columns().iter().map(|column| column_type(column)).collect()
    }

    /// Returns the number of row groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.reader.metadata().num_row_groups()
    }

    /// Returns the number of rows without a value in a column of a group, if the file states it.
    #[must_use]
    pub fn missing(&self, group: usize, column: usize) -> Option<u64> {
        let group = self.reader.metadata().row_groups().get(group)?;
        group.columns().get(column)?.statistics()?.null_count_opt()
    }

    /// Returns the number of rows of a group.
    #[must_use]
    pub fn rows(&self, group: usize) -> usize {
        let group = self.reader.metadata().row_groups().get(group);
        group.map_or(0, |own| usize::try_from(own.num_rows()).unwrap_or(0))
    }

    /// Opens a column of whole numbers.
    ///
    /// # Errors
    ///
    /// [`TableError`] if it has another type, or is damaged.
    pub fn whole(&self, group: usize, column: usize) -> Result<Cursor<Int64Type>, TableError> {
        match self.reader.get_row_group(group)?.get_column_reader(column)? {
            ColumnReader::Int64ColumnReader(reader) => Ok(Cursor::new(reader)),
            _ => Err(self.of_another_type(column)),
        }
    }

    /// Opens a column of numbers.
    ///
    /// # Errors
    ///
    /// [`TableError`] if it has another type, or is damaged.
    pub fn numbers(&self, group: usize, column: usize) -> Result<Cursor<DoubleType>, TableError> {
        match self.reader.get_row_group(group)?.get_column_reader(column)? {
            ColumnReader::DoubleColumnReader(reader) => Ok(Cursor::new(reader)),
            _ => Err(self.of_another_type(column)),
        }
    }

    /// Opens a column of texts.
    ///
    /// # Errors
    ///
    /// [`TableError`] if it has another type, or is damaged.
    pub fn texts(&self, group: usize, column: usize) -> Result<Texts, TableError> {
        match self.reader.get_row_group(group)?.get_column_reader(column)? {
            ColumnReader::ByteArrayColumnReader(reader) => {
                Ok(Texts { cursor: Cursor::new(reader), bytes: Vec::new() })
            }
            _ => Err(self.of_another_type(column)),
        }
    }

    fn of_another_type(&self, column: usize) -> TableError {
        let all = self.columns();
        let own = all.into_iter().nth(column);
        let (column, kind) = own.map_or_else(Default::default, |own| (own.name, own.kind));
        TableError::Type { column, kind }
    }
}

fn column_type(column: &ColumnDescriptor) -> ColumnType {
    let is_flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
    let physical = column.physical_type();
    let kind = match (logical(column), physical) {
        (None, _) => physical.to_string(),
        (Some(own), Physical::BYTE_ARRAY) if own == "STRING" => own,
        (Some(own), Physical::INT64) if own.starts_with("TIMESTAMP") => own,
        (Some(own), _) => format!("{physical} as {own}"),
    };
    let kind = if is_flat { kind } else { format!("nested {kind}") };
    ColumnType { name: column.path().string(), kind }
}

/// Returns the logical type of a column, if it says more than its physical type. Older files have the
/// converted type only.
fn logical(column: &ColumnDescriptor) -> Option<String> {
    Some(match column.logical_type_ref() {
        Some(LogicalType::String) => "STRING".to_owned(),
        Some(LogicalType::Integer(own)) if own.is_signed && own.bit_width == 64 => return None,
        Some(LogicalType::Integer(own)) => {
            let sign = if own.is_signed { "" } else { "U" };
            format!("{sign}INT_{}", own.bit_width)
        }
        Some(LogicalType::Decimal(own)) => format!("DECIMAL({}, {})", own.precision, own.scale),
        Some(LogicalType::Timestamp(own)) => {
            let unit = match own.unit {
                TimeUnit::MILLIS => "MILLIS",
                TimeUnit::MICROS => "MICROS",
                TimeUnit::NANOS => "NANOS",
            };
            format!("TIMESTAMP({unit}{})", if own.is_adjusted_to_u_t_c { ", UTC" } else { "" })
        }
        Some(other) => format!("{other:?}"),
        None => match column.converted_type() {
            ConvertedType::NONE | ConvertedType::INT_64 => return None,
            ConvertedType::UTF8 => "STRING".to_owned(),
            other => other.to_string(),
        },
    })
}

/// The values of a column of one group, read in batches.
pub struct Cursor<T: DataType> {
    reader: ColumnReaderImpl<T>,
    levels: Vec<i16>,
    present: Vec<T::T>,
}

impl<T: DataType> fmt::Debug for Cursor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").finish_non_exhaustive()
    }
}

impl<T: DataType> Cursor<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, levels: Vec::new(), present: Vec::new() }
    }

    /// Replaces `values` by the next ones: at most `most`, and none at the end of the group.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the column is damaged.
    pub fn next(&mut self, most: usize, values: &mut Vec<Option<T::T>>) -> Result<(), TableError> {
        values.clear();
        self.levels.clear();
        self.present.clear();
        let levels = Some(&mut self.levels);
        let (records, ..) = self.reader.read_records(most, levels, None, &mut self.present)?;
        if self.levels.is_empty() {
            // A column that requires values has no levels.
            values.extend(self.present.drain(..).map(Some));
        } else {
            let mut present = self.present.drain(..);
            values.extend(self.levels.iter().map(|level| match level {
                0 => None,
                _ => present.next(),
            }));
        }
        values.truncate(records);
        Ok(())
    }
}

/// The texts of a column of one group, read in batches.
pub struct Texts {
    cursor: Cursor<ByteArrayType>,
    bytes: Vec<Option<ByteArray>>,
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").finish_non_exhaustive()
    }
}

impl Texts {
    /// Replaces `values` by the next ones: at most `most`, and none at the end of the group.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the column is damaged, or has a text that is not UTF-8.
    pub fn next(
        &mut self,
        most: usize,
        values: &mut Vec<Option<String>>,
    ) -> Result<(), TableError> {
        values.clear();
        self.cursor.next(most, &mut self.bytes)?;
        for bytes in self.bytes.drain(..) {
            let text = bytes.map(|own| own.as_utf8().map(str::to_owned)).transpose()?;
            values.push(text);
        }
        Ok(())
    }

    /// Replaces `values` by the next ones, as [`Self::next`] does, without a copy of each text.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the column is damaged.
    pub fn next_labels(
        &mut self,
        most: usize,
        values: &mut Vec<Option<Label>>,
    ) -> Result<(), TableError> {
        values.clear();
        self.cursor.next(most, &mut self.bytes)?;
        values.extend(self.bytes.drain(..).map(|own| own.map(Label)));
        Ok(())
    }
}
