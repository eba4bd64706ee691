//! Observations as Arrow arrays.
//!
//! The values of a series are one buffer from the file's reader on: Arrow takes it over, and other
//! libraries read it in place through the Arrow C stream interface.

use crate::error::Failure;
use crate::text::parsed;
use crate::work;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{DurationNanosecondType, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, Int64Array, PrimitiveArray, RecordBatch, RecordBatchIterator};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyCapsule, PyType};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_import::{Input, Options, decompressed};
use weir_observe::joined::Chunks;
use weir_observe::{Chunk, Column, Counting, Ending, Header, Note};
use weir_units::{Instant, Span};

/// The first bytes of an observation of any version.
const BEGINNING: &[u8] = b"weirobs";
/// Samples of a chunk that is read from memory.
const CHUNK: usize = 4096;

/// The counters of a storage system over time. It does not change.
///
/// `paths` are one observation of Weir, or files of one system that `weir observe import` reads; `every` is
/// the sampling interval of files without timestamps. Libraries that know Arrow read it in place, as a table
/// with the column `time` and one column for each series.
#[pyclass(frozen, module = "weir", name = "Observation")]
#[derive(Debug, Clone)]
pub(crate) struct Observation(pub(crate) Arc<Held>);

/// An observation in memory.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) name: String,
    pub(crate) header: Header,
    /// Notes that reports repeat.
    pub(crate) notes: Vec<String>,
    /// Notes of the file.
    remarks: Vec<Note>,
    ending: Ending,
    times: Vec<Instant>,
    batch: RecordBatch,
}

impl Observation {
    /// Reads the file of an observation. Reports repeat `notes`, or else those of the file.
    fn read(name: String, input: impl Read, notes: Option<Vec<String>>) -> Result<Self, Failure> {
        let wrong = |source| Failure::Input(format!("{name}: {source}"));
        let observation = weir_observe::Observation::read(input).map_err(wrong)?;
        let of_file = || {
            let ending = Some(&observation.ending).filter(|own| **own != Ending::Complete);
            let ending = ending.map(|own| format!("{name}: {own}"));
            let remarks = observation.notes.iter().map(|note| format!("{name}: {}", note.text));
            ending.into_iter().chain(remarks).collect()
        };
        let notes = notes.unwrap_or_else(of_file);
        Self::hold(name, observation, notes)
    }

    fn hold(
        name: String,
        observation: weir_observe::Observation,
        notes: Vec<String>,
    ) -> Result<Self, Failure> {
        let weir_observe::Observation { header, times, columns, notes: remarks, ending } =
            observation;
        let batch = batch(&header, &times, columns)
            .map_err(|source| Failure::Input(format!("{name}: {source}")))?;
        Ok(Self(Arc::new(Held { name, header, notes, remarks, ending, times, batch })))
    }

    fn import(paths: &[PathBuf], options: &Options) -> Result<Self, Failure> {
        let open = |path: &PathBuf| {
            let bytes = File::open(path).and_then(decompressed);
            let bytes = bytes.map_err(|source| Failure::read(path, &source))?;
            Ok(Input { name: path.display().to_string(), bytes, kind: None })
        };
        let inputs = paths.iter().map(open).collect::<Result<_, Failure>>()?;
        let imported = weir_import::import(inputs, options, Vec::new());
        let (bytes, summary) = imported.map_err(|(name, source)| {
            let message = format!("{name}: {source}");
            if source.is_input() { Failure::Input(message) } else { Failure::Run(message) }
        })?;
        let read = summary.inputs.iter().map(|(name, kind, _)| format!("{name} is {kind}"));
        let notes = read.chain(summary.notes.iter().cloned()).collect();
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let name = names.join(", ");
        let observation = weir_observe::Observation::read(bytes.as_slice());
        let observation = observation.map_err(|e| Failure::Run(format!("{name}: {e}")))?;
        Self::hold(name, observation, notes)
    }

    /// Returns the samples, part by part.
    pub(crate) fn chunks(&self) -> Chunks {
        let held = Arc::clone(&self.0);
        let mut at = 0;
        Box::new(move || {
            let end = held.times.len().min(at + CHUNK);
            if at == end {
                return Ok(None);
            }
            let chunk =
                Chunk { times: held.times[at..end].to_vec(), columns: held.columns(at, end) };
            at = end;
            Ok(Some(chunk))
        })
    }

    /// Returns the observation as the library has it.
    fn to_library(&self) -> weir_observe::Observation {
        let held = &self.0;
        weir_observe::Observation {
            header: held.header.clone(),
            times: held.times.clone(),
            columns: held.columns(0, held.times.len()),
            notes: held.remarks.clone(),
            ending: held.ending.clone(),
        }
    }
}

impl Held {
    fn columns(&self, from: usize, to: usize) -> Vec<Column> {
        // The first array has the times.
        let arrays = self.batch.columns().iter().skip(1);
        let values = |array: &ArrayRef| -> Column {
            let array = array.as_any().downcast_ref::<Int64Array>();
            let values = array.map(|own| &own.values()[from..to]).unwrap_or_default();
            values.iter().map(|value| Some(*value).filter(|own| *own != Column::MISSING)).collect()
        };
        arrays.map(values).collect()
    }
}

/// Makes arrays of columns, without a copy of their values.
fn batch(
    header: &Header,
    times: &[Instant],
    columns: Vec<Column>,
) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let mut fields = Vec::with_capacity(columns.len() + 1);
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len() + 1);
    let nanos = times.iter().map(|at| i64::try_from(at.nanos()).unwrap_or(i64::MAX));
    match header.start_unix_ns {
        Some(start) => {
            let times = nanos.map(|at| at.saturating_add(start)).collect::<Vec<i64>>();
            let times = PrimitiveArray::<TimestampNanosecondType>::from(times).with_timezone("UTC");
            fields.push(Field::new("time", times.data_type().clone(), false));
            arrays.push(Arc::new(times));
        }
        // The moment that times count from is unknown.
        None => {
            let times = PrimitiveArray::<DurationNanosecondType>::from(nanos.collect::<Vec<i64>>());
            fields.push(Field::new("time", DataType::Duration(TimeUnit::Nanosecond), false));
            arrays.push(Arc::new(times));
        }
    }
    for (field, column) in fields_of(header).zip(columns) {
        let values = column.into_values();
        let is_missing = |value: &i64| *value == Column::MISSING;
        let nulls = values
            .iter()
            .any(is_missing)
            .then(|| values.iter().map(|value| !is_missing(value)).collect::<NullBuffer>());
        arrays.push(Arc::new(Int64Array::try_new(ScalarBuffer::from(values), nulls)?));
        fields.push(field);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// Returns the field of each series. Its name is the path of the entity and the metric, and its metadata
/// has all that is declared about it.
fn fields_of(header: &Header) -> impl Iterator<Item = Field> + '_ {
    let contents = &header.contents;
    contents.series.iter().zip(contents.paths_of_series()).map(|(series, (path, metric))| {
        let names: Vec<String> =
            path.iter().map(|(kind, name)| format!("{}:{name}", kind.name())).collect();
        let (kind, name) = path.last().map_or(("", ""), |(kind, name)| (kind.name(), name));
        let counting = match series.counting {
            Counting::Cumulative => "cumulative",
            Counting::Gauge => "gauge",
        };
        let metadata = [
            ("kind", kind.to_owned()),
            ("name", name.to_owned()),
            ("metric", metric.clone()),
            ("unit", series.unit.name().to_owned()),
            ("counting", counting.to_owned()),
            ("scale", series.scale.to_string()),
        ];
        let metadata: HashMap<String, String> =
            metadata.into_iter().map(|(key, value)| (format!("weir.{key}"), value)).collect();
        let name = format!("{}/{metric}", names.join("/"));
        Field::new(name, DataType::Int64, true).with_metadata(metadata)
    })
}

fn is_observation(path: &Path) -> Result<bool, Failure> {
    let failed = |source| Failure::read(path, &source);
    // Opening a pipe would wait for its writer, and reading would take its first bytes.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Ok(false);
    }
    let mut beginning = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(BEGINNING.len() as u64).read_to_end(&mut beginning).map_err(failed)?;
    Ok(beginning == BEGINNING)
}

#[pymethods]
impl Observation {
    /// Reads an observation, or imports files of other tools into one.
    #[new]
    #[pyo3(signature = (*paths, every = None))]
    fn new(
        python: Python<'_>,
        paths: Vec<PathBuf>,
        every: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let as_time = python.import("weir._inputs")?.getattr("as_time")?;
        let every: Option<String> = as_time.call1(("every", every))?.extract()?;
        let every: Option<Span> = parsed("every", every.as_deref())?;
        work::run(python, move || {
            if paths.is_empty() {
                let words = "an observation needs a file: one that weir wrote, or files to import";
                return Err(Failure::Input(words.to_owned()));
            }
            for path in &paths {
                if !is_observation(path)? {
                    continue;
                }
                let name = path.display();
                if paths.len() > 1 {
                    return Err(Failure::Input(format!(
                        "{name}: it is an observation, and only one can be given; only other files \
                         are read together"
                    )));
                }
                if every.is_some() {
                    return Err(Failure::Input(format!(
                        "{name}: it is an observation; every is for other files"
                    )));
                }
                let file = File::open(path).map_err(|source| Failure::read(path, &source))?;
                return Self::read(name.to_string(), BufReader::with_capacity(1 << 20, file), None);
            }
            let by = concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned();
            Self::import(&paths, &Options { every, by, ..Options::default() })
        })
    }

    /// Reads the bytes of an observation file. Reports repeat `notes`, or else those of the file.
    #[classmethod]
    #[pyo3(signature = (data, name = "observation", notes = None))]
    fn from_bytes(
        class: &Bound<'_, PyType>,
        data: PyBackedBytes,
        name: &str,
        notes: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let name = name.to_owned();
        work::run(class.py(), move || Self::read(name, &*data, notes))
    }

    /// Returns whether a JSON document is a result of Weir, not an input to import.
    #[staticmethod]
    fn _is_result(text: &str) -> bool {
        weir_compare::is_result(text)
    }

    /// Returns the observation as the bytes of a file.
    fn to_bytes<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let own = self.clone();
        let bytes = work::run(python, move || {
            let failed = |error| Failure::Run(format!("{}: {error}", own.0.name));
            own.to_library().write(Vec::new()).map_err(failed)
        })?;
        Ok(PyBytes::new(python, &bytes))
    }

    /// The name in messages: the file, if there is one.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Notes on the numbers: restarts, gaps, skipped input.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes.clone()
    }

    /// The layout of the observed run, as name and text, if it is known.
    #[getter]
    fn layout_text(&self) -> Option<(String, String)> {
        self.0.header.layout.as_ref().map(|own| (own.name.clone(), own.text.clone()))
    }

    /// The columns of the table: `time`, and one for each series.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The address of the values of a column, which Arrow readers of the observation share.
    fn address(&self, column: &str) -> Result<usize, Failure> {
        let array = self.0.batch.column_by_name(column).ok_or_else(|| {
            Failure::Input(format!("{}: there is no column {column:?}", self.0.name))
        })?;
        let data = array.to_data();
        Ok(data.buffers().first().map_or(0, |buffer| buffer.as_ptr().addr()))
    }

    fn __len__(&self) -> usize {
        self.0.times.len()
    }

    fn __repr__(&self) -> String {
        let (samples, series) = (self.0.times.len(), self.0.batch.num_columns() - 1);
        format!("Observation({:?}, samples: {samples}, series: {series})", self.0.name)
    }

    /// Exports the schema of the table (Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let failed = |error| Failure::Run(format!("{}: {error}", self.0.name));
        let schema = FFI_ArrowSchema::try_from(self.0.batch.schema().as_ref()).map_err(failed)?;
        PyCapsule::new_with_value(python, schema, c"arrow_schema")
    }

    /// Exports the table without copies (Arrow PyCapsule interface). A schema that is requested is not
    /// used, as the interface allows: its reader converts.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        python: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batch = self.0.batch.clone();
        let schema = batch.schema();
        let batches = RecordBatchIterator::new([Ok(batch)], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(python, stream, c"arrow_array_stream")
    }

    /// Supports pickling, so that Ray, Dask and multiprocessing can send observations.
    #[expect(clippy::type_complexity, reason = "a callable and its arguments, as pickle asks for")]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>, String, Vec<String>))> {
        let own = slf.get();
        let bytes = own.to_bytes(slf.py())?;
        Ok((
            slf.get_type().getattr("from_bytes")?,
            (bytes, own.0.name.clone(), own.0.notes.clone()),
        ))
    }
}
