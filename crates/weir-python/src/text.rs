//! Inputs as texts: files, and Python mappings written as TOML.

use crate::error::{Failure, InputError};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Reads a text file; `what` names its kind in messages.
pub(crate) fn read(path: &Path, what: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|source| match source.kind() {
        ErrorKind::InvalidData => not_text(path, what),
        _ => Failure::read(path, &source),
    })
}

/// Reads at most `most` bytes of a text file. A longer one is cut one byte after that.
pub(crate) fn read_at_most(path: &Path, what: &str, most: u64) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(|source| Failure::read(path, &source))?;
    String::from_utf8(bytes).map_err(|_| not_text(path, what))
}

fn not_text(path: &Path, what: &str) -> Failure {
    Failure::Input(format!("{} is not a {what}: it is not UTF-8 text", path.display()))
}

/// Writes a mapping as TOML; `what` names it in messages.
pub(crate) fn toml_of(what: &str, mapping: &Bound<'_, PyDict>) -> PyResult<String> {
    let table = table(what, mapping)?;
    toml::to_string(&table).map_err(|error| InputError::new_err(format!("{what}: {error}")))
}

/// Containers within containers. None of Weir's inputs has as many, and a list may contain itself.
const DEEPEST: usize = 32;

fn table(path: &str, mapping: &Bound<'_, PyDict>) -> PyResult<Table> {
    if path.matches(['.', '[']).count() > DEEPEST {
        return Err(InputError::new_err(format!("{path}: is nested too deeply")));
    }
    let mut table = Table::new();
    for (key, value) in mapping {
        let Ok(key) = key.cast::<PyString>() else {
            let kind = key.get_type().name()?;
            let words = format!("{path}: the key {key} is of type {kind}; keys are texts");
            return Err(PyTypeError::new_err(words));
        };
        let key = key.to_str()?.to_owned();
        // TOML has no null: a key without a value is left out, as in keyword arguments.
        if !value.is_none() {
            let value = value_of(&format!("{path}.{key}"), &value)?;
            table.insert(key, value);
        }
    }
    Ok(table)
}

fn value_of(path: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    // A bool is an int in Python.
    if let Ok(own) = value.cast::<PyBool>() {
        return Ok(Value::Boolean(own.is_true()));
    }
    if let Ok(own) = value.cast::<PyString>() {
        return Ok(Value::String(own.to_str()?.to_owned()));
    }
    if value.is_instance_of::<PyInt>() {
        let whole = value.extract::<i64>();
        let too_large = |_| InputError::new_err(format!("{path}: {value} is too large a number"));
        return whole.map(Value::Integer).map_err(too_large);
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if let Ok(own) = value.cast::<PyDict>() {
        return Ok(Value::Table(table(path, own)?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        if path.matches(['.', '[']).count() > DEEPEST {
            return Err(InputError::new_err(format!("{path}: is nested too deeply")));
        }
        let values = value.try_iter()?.enumerate();
        let one = |(at, own): (usize, PyResult<Bound<'_, PyAny>>)| {
            value_of(&format!("{path}[{at}]"), &own?)
        };
        return Ok(Value::Array(values.map(one).collect::<PyResult<_>>()?));
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{path} is of type {kind}; expected a text, a number, a bool, a list or a dict"
    )))
}

/// Parses an option in the notation of the command line; `name` is that of the argument.
pub(crate) fn parsed<T: std::str::FromStr>(
    name: &str,
    text: Option<&str>,
) -> Result<Option<T>, Failure>
where
    T::Err: std::fmt::Display,
{
    let read =
        |text: &str| text.parse().map_err(|e: T::Err| Failure::Input(format!("{name}: {e}")));
    text.map(read).transpose()
}

/// An input that is a file, or a mapping with its keys.
pub(crate) enum Given<'py> {
    /// The path of a file.
    File(PathBuf),
    /// A mapping.
    Mapping(Bound<'py, PyDict>),
}

impl<'py> Given<'py> {
    /// Takes the value of an argument; `what` is the name of the argument.
    pub(crate) fn from_value(what: &str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(mapping) = value.cast::<PyDict>() {
            return Ok(Self::Mapping(mapping.clone()));
        }
        if let Ok(path) = value.extract::<PathBuf>() {
            return Ok(Self::File(path));
        }
        let kind = value.get_type().name()?;
        Err(PyTypeError::new_err(format!("{what} is of type {kind}; expected a path or a dict")))
    }
}

/// Returns a document in JSON as Python objects.
pub(crate) fn objects<'py>(python: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    python.import("json")?.getattr("loads")?.call1((text,))
}
