//! `weir.simulate`.

use crate::error::Failure;
use crate::layout::Layout;
use crate::text::{self, parsed};
use crate::work::{self, Stop};
use crate::workload::{Kind, Workload};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{BufWriter, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use weir_observe::format::SIGNATURE;
use weir_observe::run::{Sample, Shape};
use weir_observe::{Header, LayoutText, Source, SourceKind, Writer};
use weir_report::run::SimReport;
use weir_report::{Format, Report};
use weir_sim::{OltpOptions, OltpSimulation, Options, Simulation, devices};
use weir_units::{Bytes, Instant, Span};
use weir_workload::{JobFile, place};

/// Simulated time after which a stop is noticed.
const SLICE: Span = Span::from_millis(100);
/// Sampling interval of an observation, unless another is given.
const EVERY: Span = Span::from_secs(1);

/// Simulates a workload on a layout. Returns the report, and notes about the workload.
#[pyfunction]
#[pyo3(signature = (layout, workload, *, runtime=None, size=None, seed=1, every=None, observe=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn simulate<'py>(
    python: Python<'py>,
    layout: &Layout,
    workload: &Workload,
    runtime: Option<&str>,
    size: Option<&str>,
    seed: u64,
    every: Option<&str>,
    observe: Option<PathBuf>,
) -> PyResult<(Bound<'py, PyAny>, Vec<String>)> {
    let every: Option<Span> = parsed("every", every)?;
    if let Some(every) = every.filter(|every| *every < Span::from_millis(1)) {
        return Err(Failure::Input(format!("every {every}: must be at least 1 ms")).into());
    }
    let run = Run {
        layout: layout.clone(),
        kind: workload.scaled(parsed::<Bytes>("size", size)?, parsed("runtime", runtime)?)?,
        names: workload.names(),
        seed,
        every,
        observe,
    };
    let (report, notes) = work::run_stoppable(python, move |stop| run.go(stop))?;
    Ok((text::objects(python, &report)?, notes))
}

/// Returns the seconds that a simulation takes without Python, for the benchmark (`bench.py`).
#[pyfunction]
#[expect(clippy::disallowed_methods, reason = "a benchmark reads a clock")]
pub(crate) fn _seconds_without_python(
    python: Python<'_>,
    layout: &Layout,
    workload: &Workload,
) -> PyResult<f64> {
    let run = Run {
        layout: layout.clone(),
        kind: workload.scaled(None, None)?,
        names: workload.names(),
        seed: 1,
        every: None,
        observe: None,
    };
    Ok(python.detach(|| {
        let start = std::time::Instant::now();
        let report = run.go(&Stop::default());
        report.map(|_| start.elapsed().as_secs_f64())
    })?)
}

struct Run {
    layout: Layout,
    kind: Kind,
    names: Vec<String>,
    seed: u64,
    every: Option<Span>,
    observe: Option<PathBuf>,
}

impl Run {
    fn go(&self, stop: &Stop) -> Result<(String, Vec<String>), Failure> {
        match &self.kind {
            Kind::Jobs(jobs) => self.jobs(jobs, stop),
            Kind::Descriptions(databases, backups) => self.databases(databases, backups, stop),
        }
    }

    fn jobs(&self, jobs: &JobFile, stop: &Stop) -> Result<(String, Vec<String>), Failure> {
        let layout = &self.layout.0.layout;
        let placed = place(jobs, &devices(layout), &[])?;
        let options = Options { seed: self.seed, warm: Vec::new(), every: self.every, crash: None };
        let mut simulation = Simulation::new(layout, placed, &options)?;
        self.drive(&mut simulation, stop)?;
        let run = simulation.report();
        let totals = |host, volume| simulation.totals(host, volume);
        let writebacks = weir_sim::writebacks(layout, run.elapsed_s, totals);
        Ok((SimReport { run, writebacks }.render(Format::Json), notes(jobs)))
    }

    fn databases(
        &self,
        databases: &[weir_oltp::Description],
        backups: &[weir_pipeline::Description],
        stop: &Stop,
    ) -> Result<(String, Vec<String>), Failure> {
        let held = &self.layout.0;
        let edition = held.layout.edition.as_ref();
        let edition = edition.map(|name| held.catalog.0.catalog.edition(name)).transpose()?;
        let options = OltpOptions { edition, seed: self.seed, every: self.every, backups };
        let mut simulation = OltpSimulation::new(&held.layout, databases, &options)?;
        self.drive(&mut simulation, stop)?;
        let mut report = simulation.report();
        simulation.add_costs(&mut report, databases)?;
        Ok((report.render(Format::Json), Vec::new()))
    }

    /// Drives a simulation to its end, and writes its observation.
    fn drive(&self, simulation: &mut impl Drive, stop: &Stop) -> Result<(), Failure> {
        let every = self.every.unwrap_or(EVERY);
        let mut observed = match &self.observe {
            Some(path) => Some(Observed::begin(path, &self.header(every), every, simulation)?),
            None => None,
        };
        let mut until = Instant::ZERO;
        while let Some(next) = simulation.run_until(until)? {
            stop.check()?;
            until = next + SLICE;
            if let Some(observed) = &mut observed {
                // The run has no event before `next`.
                observed.pass(next, simulation)?;
                until = until.min(observed.due);
            }
        }
        observed.map_or(Ok(()), |observed| observed.finish(simulation))
    }

    fn header(&self, every: Span) -> Header {
        let about = BTreeMap::from([
            ("seed".to_owned(), self.seed.to_string()),
            ("jobs".to_owned(), self.names.join(", ")),
        ]);
        let by = format!("weir {}", env!("CARGO_PKG_VERSION"));
        let mut header = Header::new(Source { kind: SourceKind::VirtualRun, by, about });
        header.interval_ns = Some(every.nanos());
        let (name, text) = (self.layout.0.name.clone(), self.layout.0.text.clone());
        header.layout = Some(LayoutText { name, text });
        header
    }
}

/// Returns notes on options of jobs that have no effect.
fn notes(jobs: &JobFile) -> Vec<String> {
    let ignored = jobs.ignored.iter();
    let ignored = ignored.map(|own| format!("{}: {} is ignored: {}", own.at, own.option, own.why));
    let buffered = jobs.jobs.iter().filter(|job| !job.direct).map(|job| {
        format!(
            "{}: job {:?} is buffered (direct=0), but the page cache is not simulated: it runs as \
             direct=1",
            job.at, job.name
        )
    });
    ignored.chain(buffered).collect()
}

/// A simulation of either kind.
trait Drive {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, Failure>;
    fn now(&self) -> Instant;
    fn shape(&self) -> Shape;
    fn sample(&mut self) -> Sample;
}

impl Drive for Simulation<'_> {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, Failure> {
        Ok(Self::run_until(self, until)?)
    }

    fn now(&self) -> Instant {
        Self::now(self)
    }

    fn shape(&self) -> Shape {
        Self::shape(self)
    }

    fn sample(&mut self) -> Sample {
        Self::sample(self)
    }
}

impl Drive for OltpSimulation<'_> {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, Failure> {
        Ok(Self::run_until(self, until))
    }

    fn now(&self) -> Instant {
        Self::now(self)
    }

    fn shape(&self) -> Shape {
        Self::shape(self)
    }

    fn sample(&mut self) -> Sample {
        Self::sample(self)
    }
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
struct Observed {
    path: PathBuf,
    shape: Shape,
    row: Vec<Option<i64>>,
    writer: Writer<BufWriter<File>>,
    part: NamedTempFile,
    every: Span,
    /// Time of the next sample.
    due: Instant,
    last: Option<Instant>,
}

impl Observed {
    fn begin(
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
    fn pass(&mut self, next: Instant, simulation: &mut impl Drive) -> Result<(), Failure> {
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

    fn finish(mut self, simulation: &mut impl Drive) -> Result<(), Failure> {
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
