//! Traces to replay: files of Weir, and block traces of other tools.

use crate::compressed::decompressed;
use crate::error::ImportError;
use crate::input::Input;
use crate::kind::{Bytes, Kind};
use crate::options::Options;
use crate::requests::{Requests, trace_kind};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use weir_trace::format::SIGNATURE;
use weir_trace::{ReadError, ReadTrace, Reader};

/// The bytes at the beginning of a file that show its kind.
const GLANCE: u64 = 64 << 10;
/// The bytes of the signature.
const SIGNATURE_LEN: u64 = SIGNATURE.len() as u64;

/// A reason why a trace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file of Weir that is damaged.
    #[error("{}: {source}", .path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: ReadError,
    },
    /// A trace of another tool that cannot be read.
    #[error("{name}: {source}")]
    Import {
        /// The input.
        name: String,
        /// The reason.
        source: ImportError,
    },
}

/// A trace at its first request.
pub struct Recorded {
    /// The name of its file, without the folder.
    pub name: String,
    /// Its requests.
    pub trace: Box<dyn ReadTrace>,
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorded").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns whether a file is a trace, by its contents. Returns false for a file that cannot be read; opening
/// it gives the reason.
#[must_use]
pub fn is_trace(path: &Path) -> bool {
    let is_description = path.extension().is_some_and(|end| end == "toml");
    // Reading from a pipe would consume it.
    if is_description || !path.is_file() {
        return false;
    }
    let mut begin = Vec::new();
    let read = File::open(path).and_then(decompressed).and_then(|input| {
        // Trace formats of fixed records are recognized by whole records.
        input.take(GLANCE).read_to_end(&mut begin)
    });
    read.is_ok() && trace_kind(&begin).is_some()
}

/// Opens a file of Weir, compressed or not; `None` if it is of another kind.
///
/// # Errors
///
/// [`RecordedError`] if it cannot be read.
pub fn open_own(path: &Path) -> Result<Option<Reader<Bytes>>, RecordedError> {
    let read = |source| RecordedError::Read { path: path.to_owned(), source };
    let open = || File::open(path).and_then(decompressed);
    let mut begin = Vec::new();
    let glance = open().and_then(|input| input.take(SIGNATURE_LEN).read_to_end(&mut begin));
    if glance.map_err(read)? < SIGNATURE.len() || begin != SIGNATURE {
        return Ok(None);
    }
    let reader = Reader::open(open().map_err(read)?);
    Ok(Some(reader.map_err(|source| RecordedError::Trace { path: path.to_owned(), source })?))
}

/// Opens a block trace of another tool.
///
/// # Errors
///
/// [`RecordedError`] if it cannot be read.
pub fn open_foreign(
    paths: &[PathBuf],
    kind: Option<Kind>,
    options: &Options,
) -> Result<Vec<Requests>, RecordedError> {
    let mut inputs = Vec::new();
    for path in paths {
        let read = |source| RecordedError::Read { path: path.clone(), source };
        let bytes = File::open(path).and_then(decompressed).map_err(read)?;
        inputs.push(Input { name: path.display().to_string(), bytes, kind });
    }
    Requests::open(inputs, options).map_err(|(name, source)| RecordedError::Import { name, source })
}

/// Opens traces of any kind, to be replayed side by side.
///
/// # Errors
///
/// [`RecordedError`] if one cannot be read.
pub fn open_traces(paths: &[PathBuf]) -> Result<Vec<Recorded>, RecordedError> {
    let (mut all, mut foreign) = (Vec::new(), Vec::new());
    for path in paths {
        match open_own(path)? {
            Some(reader) => all.push(Recorded { name: name_of(path), trace: Box::new(reader) }),
            None => foreign.push(path.clone()),
        }
    }
    for requests in open_foreign(&foreign, None, &Options::default())? {
        let name = name_of(Path::new(requests.name()));
        all.push(Recorded { name, trace: Box::new(requests) });
    }
    Ok(all)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
