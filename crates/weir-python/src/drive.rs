//! Simulations in slices, and their observations.

use crate::error::Failure;
use std::fs::{File, Permissions};
use std::io::{BufWriter, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use weir_observe::format::SIGNATURE;
use weir_observe::run::{Sample, Shape};
use weir_observe::{Header, Writer};
use weir_sim::{OltpSimulation, ReplaySimulation, Simulation};
use weir_units::{Instant, Span};

/// A simulation of any kind.
pub(crate) trait Drive {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, Failure>;
    fn now(&self) -> Instant;
    fn shape(&self) -> Shape;
    fn sample(&mut self) -> Sample;
}

/// The functions that all simulations have under the same names.
macro_rules! observed {
    () => {
        fn now(&self) -> Instant {
            Self::now(self)
        }

        fn shape(&self) -> Shape {
            Self::shape(self)
        }

        fn sample(&mut self) -> Sample {
            Self::sample(self)
        }
    };
}

impl Drive for Simulation<'_> {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, Failure> {
        Ok(Self::run_until(self, until)?)
    }

    observed!();
}

impl Drive for ReplaySimulation<'_> {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, Failure> {
        Ok(Self::run_until(self, until)?)
    }

    observed!();
}

impl Drive for OltpSimulation<'_> {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, Failure> {
        Ok(Self::run_until(self, until))
    }

    observed!();
}

/// Refuses to overwrite a file that is not an observation.
fn check_replaceable(path: &Path) -> Result<(), Failure> {
    let Ok(mut file) = File::open(path) else { return Ok(()) };
    if !file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
        return Ok(());
    }
    let mut begin = SIGNATURE;
    if file.read_exact(&mut begin).is_err() || begin != SIGNATURE {
        return Err(Failure::Input(format!(
            "observe {}: it exists and is not an observation; give another name",
            path.display()
        )));
    }
    Ok(())
}

/// The observation of a run. The file gets its name when it is whole.
pub(crate) struct Observed {
    path: PathBuf,
    shape: Shape,
    row: Vec<Option<i64>>,
    writer: Writer<BufWriter<File>>,
    part: NamedTempFile,
    every: Span,
    /// Time of the next sample.
    pub(crate) due: Instant,
    last: Option<Instant>,
}

impl Observed {
    /// Begins an observation under a temporary name.
    pub(crate) fn begin(
        path: &Path,
        header: &Header,
        every: Span,
        simulation: &impl Drive,
    ) -> Result<Self, Failure> {
        check_replaceable(path)?;
        let failed = |error: std::io::Error| Failure::write(path, &error);
        let folder = path.parent().filter(|own| !own.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let all = Permissions::from_mode(0o666);
        let part = tempfile::Builder::new()
            .prefix(".")
            .suffix(".part")
            .permissions(all)
            .tempfile_in(folder)
            .map_err(failed)?;
        let shape = simulation.shape();
        let mut header = header.clone();
        header.contents = shape.contents();
        let file = BufWriter::new(part.reopen().map_err(failed)?);
        let writer = Writer::new(file, &header).map_err(|error| Failure::write(path, &error))?;
        let (due, last, row) = (Instant::ZERO, None, Vec::new());
        Ok(Self { path: path.to_owned(), shape, row, writer, part, every, due, last })
    }

    /// Writes the samples due before `next`, while the counters stay as they are.
    pub(crate) fn pass(
        &mut self,
        next: Instant,
        simulation: &mut impl Drive,
    ) -> Result<(), Failure> {
        if self.due < next {
            self.shape.row(&simulation.sample(), &mut self.row);
        }
        while self.due < next {
            self.write(self.due)?;
            self.due += self.every;
        }
        Ok(())
    }

    fn write(&mut self, at: Instant) -> Result<(), Failure> {
        self.last = Some(at);
        let written = self.writer.sample(at, &self.row);
        written.map_err(|error| Failure::write(&self.path, &error))
    }

    /// Writes the last sample, and gives the file its name.
    pub(crate) fn finish(mut self, simulation: &mut impl Drive) -> Result<(), Failure> {
        let end = simulation.now();
        if self.last.is_none_or(|last| last < end) {
            self.shape.row(&simulation.sample(), &mut self.row);
            self.write(end)?;
        }
        let Self { path, writer, part, .. } = self;
        let out = writer.finish(true).map_err(|error| Failure::write(&path, &error))?;
        out.into_inner().map_err(|error| Failure::write(&path, error.error()))?;
        part.as_file().sync_all().map_err(|error| Failure::write(&path, &error))?;
        part.persist(&path).map(drop).map_err(|error| Failure::write(&path, &error.error))
    }
}
