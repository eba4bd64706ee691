//! Reading.

use crate::{TableError, Values};
use parquet::basic::Type as Physical;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::fs::File;

/// Reads all columns of a file with their names.
///
/// # Errors
///
/// [`TableError`] if it is no Parquet, is damaged, or has columns of other types.
pub fn read(file: File) -> Result<Vec<(String, Values)>, TableError> {
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns = Vec::new();
    for column in schema.columns() {
        let values = match column.physical_type() {
            Physical::INT64 => Values::Whole(Vec::new()),
            Physical::DOUBLE => Values::Number(Vec::new()),
            Physical::BYTE_ARRAY => Values::Text(Vec::new()),
            other => {
                let (column, kind) = (column.name().to_owned(), other.to_string());
                return Err(TableError::Type { column, kind });
            }
        };
        columns.push((column.name().to_owned(), values));
    }
    for row in reader.get_row_iter(None)? {
        for ((column, values), (_, field)) in columns.iter_mut().zip(row?.into_columns()) {
            match (values, field) {
                (Values::Whole(all), Field::Long(n)) => all.push(Some(n)),
                (Values::Whole(all), Field::Null) => all.push(None),
                (Values::Number(all), Field::Double(x)) => all.push(Some(x)),
                (Values::Number(all), Field::Null) => all.push(None),
                (Values::Text(all), Field::Str(text)) => all.push(Some(text)),
                (Values::Text(all), Field::Null) => all.push(None),
                (_, other) => {
                    let (column, kind) = (column.clone(), format!("{other:?}"));
                    return Err(TableError::Type { column, kind });
                }
            }
        }
    }
    Ok(columns)
}
