//! `weir.simulate`.

use crate::drive::{Drive, Observed};
use crate::error::Failure;
use crate::layout::Layout;
use crate::text::{self, parsed};
use crate::trace::Trace;
use crate::work::{self, Stop};
use crate::workload::{Kind, Workload};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use weir_observe::{Header, LayoutText, Source, SourceKind};
use weir_report::run::SimReport;
use weir_report::{Format, Report};
use weir_sim::{
    OltpOptions, OltpSimulation, Options, ReplaySimOptions, ReplaySimulation, Simulation, checks,
    devices,
};
use weir_units::{Bytes, Instant, Span};
use weir_workload::{JobFile, place};

/// Simulated time after which a stop is noticed.
const SLICE: Span = Span::from_millis(100);
/// Sampling interval of an observation, unless another is given.
const EVERY: Span = Span::from_secs(1);

/// A workload, or traces.
#[derive(FromPyObject)]
pub(crate) enum Load<'py> {
    /// Jobs, databases or backups.
    Workload(PyRef<'py, Workload>),
    /// Traces.
    Trace(PyRef<'py, Trace>),
}

impl Load<'_> {
    /// Applies other sizes and runtimes. Returns also the names of the files.
    fn simulated(
        &self,
        size: Option<Bytes>,
        runtime: Option<Span>,
    ) -> Result<(Simulated, Vec<String>), Failure> {
        match self {
            Self::Workload(own) => Ok((Simulated::Kind(own.scaled(size, runtime)?), own.names())),
            Self::Trace(_) if size.is_some() => {
                Err(Failure::Input("size is for jobs; a trace has its own offsets".to_owned()))
            }
            Self::Trace(_) if runtime.is_some() => Err(Failure::Input(
                "runtime is for jobs; window selects a part of a trace".to_owned(),
            )),
            Self::Trace(own) => Ok((Simulated::Trace((**own).clone()), own.names())),
        }
    }
}

/// A workload at its sizes and runtimes, or traces.
enum Simulated {
    Kind(Kind),
    Trace(Trace),
}

/// Simulates a workload on a layout. Returns the report, and notes about the workload.
#[pyfunction]
#[pyo3(signature = (layout, workload, *, runtime=None, size=None, seed=1, every=None, observe=None,
    mapping=Vec::new(), warm=Vec::new(), crash=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn simulate<'py>(
    python: Python<'py>,
    layout: &Layout,
    workload: Load<'py>,
    runtime: Option<&str>,
    size: Option<&str>,
    seed: u64,
    every: Option<&str>,
    observe: Option<PathBuf>,
    mapping: Vec<(String, String)>,
    warm: Vec<String>,
    crash: Option<(String, String)>,
) -> PyResult<(Bound<'py, PyAny>, Vec<String>)> {
    let every: Option<Span> = parsed("every", every)?;
    if let Some(every) = every.filter(|every| *every < Span::from_millis(1)) {
        return Err(Failure::Input(format!("every {every}: must be at least 1 ms")).into());
    }
    let (simulated, names) =
        workload.simulated(parsed::<Bytes>("size", size)?, parsed("runtime", runtime)?)?;
    let crash = crash.map(|(host, time)| -> Result<(String, Span), Failure> {
        Ok((host, parsed("crash", Some(&*time))?.unwrap_or_default()))
    });
    let run = Run {
        layout: layout.clone(),
        simulated,
        names,
        seed,
        every,
        observe,
        mapping,
        warm,
        crash: crash.transpose()?,
    };
    run.check()?;
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
        simulated: Simulated::Kind(workload.scaled(None, None)?),
        names: workload.names(),
        seed: 1,
        every: None,
        observe: None,
        mapping: Vec::new(),
        warm: Vec::new(),
        crash: None,
    };
    Ok(python.detach(|| {
        let start = std::time::Instant::now();
        let report = run.go(&Stop::default());
        report.map(|_| start.elapsed().as_secs_f64())
    })?)
}

struct Run {
    layout: Layout,
    simulated: Simulated,
    names: Vec<String>,
    seed: u64,
    every: Option<Span>,
    observe: Option<PathBuf>,
    mapping: Vec<(String, String)>,
    warm: Vec<String>,
    crash: Option<(String, Span)>,
}

impl Run {
    fn go(&self, stop: &Stop) -> Result<(String, Vec<String>), Failure> {
        match &self.simulated {
            Simulated::Kind(Kind::Jobs(jobs)) => self.jobs(jobs, stop),
            Simulated::Kind(Kind::Descriptions(databases, backups)) => {
                self.databases(databases, backups, stop)
            }
            Simulated::Trace(trace) => self.trace(trace, stop),
        }
    }

    /// Refuses options that do not apply to the workload.
    fn check(&self) -> Result<(), Failure> {
        let given = [
            ("map", !self.mapping.is_empty()),
            ("warm", !self.warm.is_empty()),
            ("crash", self.crash.is_some()),
        ];
        let refused = match &self.simulated {
            Simulated::Kind(Kind::Jobs(_)) => return Ok(()),
            Simulated::Kind(Kind::Descriptions(..)) => given.iter().find(|(_, is_given)| *is_given),
            Simulated::Trace(_) => {
                given.iter().find(|(name, is_given)| *is_given && *name == "crash")
            }
        };
        let Some((name, _)) = refused else { return Ok(()) };
        let words = match &self.simulated {
            Simulated::Trace(_) => "is for jobs; a replay does not crash hosts",
            Simulated::Kind(_) => "is for jobs; a description names its files itself",
        };
        Err(Failure::Input(format!("{name} {words}")))
    }

    fn jobs(&self, jobs: &JobFile, stop: &Stop) -> Result<(String, Vec<String>), Failure> {
        let layout = &self.layout.0.layout;
        checks::check_map("map", &self.mapping, jobs).map_err(Failure::Input)?;
        let devices = devices(layout);
        let placed = place(jobs, &devices, &self.mapping)?;
        checks::check_warm("warm", &self.warm, layout, &devices, &placed)
            .map_err(Failure::Input)?;
        let options = Options {
            seed: self.seed,
            warm: self.warm.clone(),
            every: self.every,
            crash: self.crash.clone(),
        };
        let mut simulation = Simulation::new(layout, placed, &options)?;
        self.drive(&mut simulation, stop)?;
        let run = simulation.report();
        checks::check_crash("crash", self.crash.as_ref(), jobs, run.elapsed_s)
            .map_err(Failure::Input)?;
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

    fn trace(&self, trace: &Trace, stop: &Stop) -> Result<(String, Vec<String>), Failure> {
        let layout = &self.layout.0.layout;
        checks::check_warm_replay("warm", &self.warm, layout).map_err(Failure::Input)?;
        let (replay, warm) = (trace.options(&self.mapping), self.warm.clone());
        let options = ReplaySimOptions { replay, warm, every: self.every };
        let mut simulation = ReplaySimulation::new(layout, trace.open()?, &options)?;
        self.drive(&mut simulation, stop)?;
        let report = simulation.report(self.seed);
        if simulation.completed() == 0 {
            let notes = report.run.notes.iter().map(|note| format!("; {note}"));
            return Err(Failure::Input(format!(
                "there are no requests to replay{}; another window, sample or devices may select some",
                notes.collect::<String>()
            )));
        }
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
