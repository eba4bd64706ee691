//! Files of results, in CSV or Parquet.

use crate::cli::SweepArgs;
use crate::commands::{page, plan, whole_file};
use crate::error::CliError;
use std::fs;
use std::path::Path;
use weir_sweep::{Journal, Results, csv};

/// Refuses outputs that cannot be written, before the points are simulated.
pub(super) fn check(args: &SweepArgs) -> Result<(), CliError> {
    if let Some(out) = &args.out {
        if args.merge.iter().any(|own| plan::is_same(own, out)) {
            let words = format!("--out {}: is one of the shards; use another name", out.display());
            return Err(CliError::Refused(words));
        }
        plan::can_write("--out", out)?;
        is_built_for(out)?;
    }
    let journal = args.out.as_deref().map(Journal::beside);
    let others = args.merge.iter().chain(&args.out).chain(&journal);
    page::check(args.html.as_deref(), others.map(std::path::PathBuf::as_path))
}

/// Refuses to replace results of another number of points, which may be those of the whole sweep.
pub(super) fn keep_others(out: &Path, points: usize) -> Result<(), CliError> {
    let Ok((_, old)) = read(out) else { return Ok(()) };
    if old.rows().len() == points {
        return Ok(());
    }
    Err(CliError::Refused(format!(
        "--out {}: has the results of {} points, and this run has {points}; use another name, or remove \
         the file",
        out.display(),
        old.rows().len()
    )))
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "parquet")
}

/// Writes results under a temporary name, and renames the file when it is whole.
pub(super) fn write(path: &Path, results: &Results) -> Result<(), CliError> {
    let failed = |source| CliError::write(path, source);
    #[cfg(feature = "parquet")]
    if is_parquet(path) {
        return whole_file::write(path, &parquet::bytes(path, results)?).map_err(failed);
    }
    is_built_for(path)?;
    whole_file::write(path, &csv::write(results)).map_err(failed)
}

/// Reads results, with the name of their file.
pub(super) fn read(path: &Path) -> Result<(String, Results), CliError> {
    let name = path.display().to_string();
    #[cfg(feature = "parquet")]
    if is_parquet(path) {
        return Ok((name, parquet::read(path)?));
    }
    is_built_for(path)?;
    let bytes = fs::read(path);
    let bytes = bytes.map_err(|source| CliError::Read { path: path.to_owned(), source })?;
    let results = csv::read(&name, &bytes)?;
    Ok((name, results))
}

/// Refuses Parquet, unless this program is built with it.
#[cfg_attr(feature = "parquet", expect(clippy::unnecessary_wraps, reason = "other builds fail"))]
fn is_built_for(path: &Path) -> Result<(), CliError> {
    #[cfg(not(feature = "parquet"))]
    if is_parquet(path) {
        return Err(CliError::NoParquet { path: path.to_owned() });
    }
    #[cfg(feature = "parquet")]
    let _ = path;
    Ok(())
}

#[cfg(feature = "parquet")]
mod parquet {
    use crate::error::CliError;
    use std::fs::File;
    use std::path::Path;
    use weir_parquet::{TableError, Values, Writer};
    use weir_sweep::results::{Column, Kind};
    use weir_sweep::{Results, SweepError};

    pub(super) fn bytes(path: &Path, results: &Results) -> Result<Vec<u8>, CliError> {
        let columns = results.columns().all();
        let kinds = columns.iter().map(|column| (column.name.as_str(), kind(column)));
        let kinds: Vec<(&str, weir_parquet::Kind)> = kinds.collect();
        let facts = [
            ("weir.sweep", results.identity().to_owned()),
            ("weir.points", results.points().to_string()),
        ];
        let failed = |source| CliError::Parquet { path: path.to_owned(), source };
        let mut writer = Writer::new(Vec::new(), &kinds, &facts).map_err(failed)?;
        let values = columns.iter().enumerate().map(|(at, column)| values(results, at, column));
        writer.rows(&values.collect::<Vec<_>>()).map_err(failed)?;
        writer.finish().map_err(failed)
    }

    fn kind(column: &Column) -> weir_parquet::Kind {
        match column.kind {
            Kind::Whole => weir_parquet::Kind::Whole,
            Kind::Number => weir_parquet::Kind::Number,
            Kind::Text => weir_parquet::Kind::Text,
        }
    }

    /// Returns a column; empty fields are missing values.
    fn values(results: &Results, at: usize, column: &Column) -> Values {
        let fields = results.rows().iter().map(|row| row[at].as_str());
        match column.kind {
            Kind::Whole => Values::Whole(fields.map(|field| field.parse().ok()).collect()),
            Kind::Number => Values::Number(fields.map(|field| field.parse().ok()).collect()),
            Kind::Text => {
                let text = |field: &str| (!field.is_empty()).then(|| field.to_owned());
                Values::Text(fields.map(text).collect())
            }
        }
    }

    pub(super) fn read(path: &Path) -> Result<Results, CliError> {
        let failed = |source| CliError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let name = path.display().to_string();
        let table = weir_parquet::read(file).map_err(|error| match error {
            TableError::Io(source) => failed(source),
            error => {
                let reason = format!("these are no results of weir sweep in Parquet: {error}");
                SweepError::Results { file: name.clone(), reason }.into()
            }
        })?;
        let rows = table.first().map_or(0, |(_, values)| values.len());
        let row = |at: usize| table.iter().map(|(_, values)| field(values, at)).collect();
        let rows = (0..rows).map(row).collect();
        let names = table.iter().map(|(name, _)| name.as_str());
        Ok(Results::read(&name, names, rows)?)
    }

    fn field(values: &Values, at: usize) -> String {
        let text = match values {
            Values::Whole(all) => all.get(at).copied().flatten().map(|n| n.to_string()),
            Values::Number(all) => all.get(at).copied().flatten().map(|x| x.to_string()),
            Values::Text(all) => all.get(at).cloned().flatten(),
            // Only tables that are written have labels.
            Values::Labels(_) => None,
        };
        text.unwrap_or_default()
    }
}
