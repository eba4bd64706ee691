//! Sources of samples: an observation, or an input of another tool that is imported into a
//! temporary one. Both can be read several times.

use super::import::{imported, talk_of};
use crate::cli::ImportArgs;
use crate::error::CliError;
use crate::output;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use weir_observe::moment::offset_of;
use weir_observe::when::Extent;
use weir_observe::{Ending, Header, Note, ReadError, Reader};
use weir_plan::measure::Samples;
use weir_units::Instant;

/// Magic number of an observation of any version.
const BEGINNING: &[u8] = b"weirobs";

/// A source of samples that can be read several times.
#[derive(Debug)]
pub(crate) struct Source {
    path: PathBuf,
    file: File,
}

impl Source {
    /// Opens an observation.
    pub(super) fn observation(path: &Path) -> Result<Self, CliError> {
        let file = File::open(path).map_err(|source| unread(path, source))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Opens an observation, or imports files of another kind into one.
    pub(crate) fn any(files: &[PathBuf], reading: &ImportArgs) -> Result<Self, CliError> {
        for path in files {
            if !is_observation(path)? {
                continue;
            }
            if files.len() > 1 {
                return Err(CliError::Refused(format!(
                    "{}: it is an observation, and only one can be given; only other files are \
                     read together",
                    path.display()
                )));
            }
            if let Some(option) = reading.given_for_files() {
                return Err(CliError::Refused(format!(
                    "{}: it is an observation, and {option} is for files of other tools; leave it out",
                    path.display()
                )));
            }
            return Self::observation(path);
        }
        let (file, summary) = imported(files, reading)?;
        talk_of(&summary);
        let path = files.first().cloned().unwrap_or_default();
        Ok(Self { path, file })
    }

    fn reader(&self) -> Result<Reader<BufReader<&File>>, CliError> {
        let mut file = &self.file;
        file.rewind().map_err(|source| unread(&self.path, source))?;
        Reader::open(BufReader::new(file)).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: ReadError) -> CliError {
        CliError::Observation { path: self.path.clone(), source }
    }

    /// Returns the header with all declared entities, and the times of the first and last sample; no
    /// times if there are no samples.
    pub(crate) fn survey(&self) -> Result<(Header, Option<Extent>), CliError> {
        let mut reader = self.reader()?;
        let mut times: Option<(Instant, Instant)> = None;
        while let Some(chunk) = reader.next_chunk().map_err(|source| self.failed(source))? {
            if let (Some(first), Some(last)) = (chunk.times.first(), chunk.times.last()) {
                times = Some((times.map_or(*first, |(first, _)| first), *last));
            }
        }
        let header = reader.into_parts().0;
        let start_unix_ns = header.start_unix_ns;
        Ok((header, times.map(|(first, last)| Extent { start_unix_ns, first, last })))
    }

    /// Passes the times of all samples to `take`.
    #[cfg(feature = "parquet")]
    pub(super) fn times(&self, mut take: impl FnMut(Instant)) -> Result<(), CliError> {
        let mut reader = self.reader()?;
        while let Some(chunk) = reader.next_chunk().map_err(|source| self.failed(source))? {
            chunk.times.iter().for_each(|at| take(*at));
        }
        Ok(())
    }

    /// Returns the notes and the way the file ended, without its samples.
    #[cfg(feature = "parquet")]
    pub(super) fn ending(&self) -> Result<(Vec<Note>, Ending), CliError> {
        let mut reader = self.reader()?;
        reader.skip_to_end().map_err(|source| self.failed(source))?;
        let (_, notes, ending) = reader.into_parts();
        Ok((notes, ending))
    }

    /// Passes all samples to `take` and reports missing data. Returns the notes and the way the file
    /// ended.
    pub(crate) fn each(
        &self,
        mut take: impl FnMut(Instant, &[Option<i64>]),
    ) -> Result<(Vec<Note>, Ending), CliError> {
        let mut reader = self.reader()?;
        let mut row = Vec::new();
        while let Some(chunk) = reader.next_chunk().map_err(|source| self.failed(source))? {
            for (sample, at) in chunk.times.iter().enumerate() {
                chunk.row(sample, &mut row);
                take(*at, &row);
            }
        }
        let (_, notes, ending) = reader.into_parts();
        if ending != Ending::Complete {
            output::talk(&format!("weir: {}: {ending}", self.path.display()));
        }
        Ok((notes, ending))
    }
}

impl Samples for Source {
    type Error = CliError;

    fn header(&self) -> Result<Header, CliError> {
        Ok(self.survey()?.0)
    }

    fn each(&self, take: &mut dyn FnMut(Instant, &[Option<i64>])) -> Result<(), CliError> {
        Self::each(self, take).map(|_| ())
    }
}

/// Returns the UTC offset of an observation's clock, if known.
pub(super) fn offset_in(header: &Header) -> Option<i64> {
    header.source.about.get("utc_offset").and_then(|text| offset_of(text))
}

fn unread(path: &Path, source: io::Error) -> CliError {
    CliError::Read { path: path.to_owned(), source }
}

/// Returns whether a file is an observation. Standard input and pipes, which can be read only
/// once, are not.
pub(crate) fn is_observation(path: &Path) -> Result<bool, CliError> {
    if path.as_os_str() == "-" {
        return Ok(false);
    }
    // The file is opened only after that: the writer of a pipe would see it closed.
    if !fs::metadata(path).map_err(|source| unread(path, source))?.is_file() {
        return Ok(false);
    }
    let file = File::open(path).map_err(|source| unread(path, source))?;
    let mut beginning = Vec::new();
    let length = u64::try_from(BEGINNING.len()).unwrap_or(0);
    file.take(length).read_to_end(&mut beginning).map_err(|source| unread(path, source))?;
    Ok(beginning == BEGINNING)
}
