//! Profiles of layouts: simulations of one workload, with several seeds.

use crate::diagnosed;
use crate::error::CompareError;
use crate::measured::{Measured, Verdict};
use crate::price::{add_price, price_of};
use crate::profile::Profile;
use crate::results;
use crate::side::{Request, Workload};
use std::collections::BTreeMap;
use std::io::Cursor;
use weir_catalog::Catalog;
use weir_diagnose::Question;
use weir_layout::Layout;
use weir_observe::joined::Chunks;
use weir_observe::run::{Sample, Shape};
use weir_observe::{Header, Reader, Source, SourceKind, WriteError, Writer};
use weir_report::Report;
use weir_report::run::SimReport;
use weir_sim::{OltpOptions, OltpSimulation, Options, Simulation, devices};
use weir_units::{Instant, Span};
use weir_workload::place;

/// Measures a layout under the workload.
pub(crate) fn measure(
    name: &str,
    layout: &Layout,
    request: &Request<'_>,
) -> Result<Measured, CompareError> {
    let Some(workload) = request.workload else { return Err(CompareError::NoWorkload) };
    let options = request.options;
    let mut profiles = Vec::new();
    let mut verdict = None;
    for n in 0..options.seeds {
        let seed = options.seed.wrapping_add(n);
        // Its media draw their latencies from a seed of their own.
        let mut own = layout.clone();
        own.hosts.iter_mut().for_each(|host| host.spec.seed = host.spec.seed.wrapping_add(n << 32));
        let run = Run { name, layout: &own, catalog: request.catalog, seed };
        let is_first = n == 0;
        let (text, observed) = match workload {
            Workload::Jobs(_) => run.jobs(workload, is_first)?,
            Workload::Descriptions(..) => run.databases(workload, is_first)?,
        };
        profiles.push(results::measure(name, &text)?.profile);
        if let Some(observed) = observed {
            verdict = run.diagnosis(observed)?;
        }
    }
    let seconds = profiles.first().and_then(|own| own.seconds);
    let mut profile = Profile::repeated(profiles);
    profile.seconds = seconds;
    let price = price_of(layout, request.catalog)?;
    add_price(&mut profile, price.as_ref());
    Ok(Measured { name: name.to_owned(), profile, verdict, price, notes: Vec::new() })
}

/// One simulation.
struct Run<'a> {
    name: &'a str,
    layout: &'a Layout,
    catalog: &'a Catalog,
    seed: u64,
}

/// The result of a simulation in JSON, and its observation.
type Outcome = (String, Option<Vec<u8>>);

impl Run<'_> {
    fn jobs(&self, workload: &Workload, is_observed: bool) -> Result<Outcome, CompareError> {
        let Workload::Jobs(file) = workload else { return Err(CompareError::NoWorkload) };
        let name = || self.name.to_owned();
        let placed = place(file, &devices(self.layout), &[])
            .map_err(|source| CompareError::Place { name: name(), source: Box::new(source) })?;
        let options = Options { seed: self.seed, ..Options::default() };
        let failed = |source| CompareError::Simulation { name: name(), source: Box::new(source) };
        let observe = |source| CompareError::Observe { name: name(), source };
        let mut simulation = Simulation::new(self.layout, placed, &options).map_err(failed)?;
        let observed = if is_observed {
            let mut observer = Observer::begin(simulation.shape()).map_err(observe)?;
            while let Some(next) = simulation.run_until(observer.due).map_err(failed)? {
                observer.pass(next, || simulation.sample()).map_err(observe)?;
            }
            Some(observer.finish(simulation.now(), &simulation.sample()).map_err(observe)?)
        } else {
            simulation.run_until(Instant::FAR).map_err(failed)?;
            None
        };
        let (run, writebacks) = (simulation.report(), Vec::new());
        Ok((SimReport { run, writebacks }.render(weir_report::Format::Json), observed))
    }

    fn databases(&self, workload: &Workload, is_observed: bool) -> Result<Outcome, CompareError> {
        let Workload::Descriptions(databases, backups) = workload else {
            return Err(CompareError::NoWorkload);
        };
        let edition = self.layout.edition.as_ref().map(|name| self.catalog.edition(name));
        let edition = edition.transpose()?;
        let options = OltpOptions { edition, seed: self.seed, every: None, backups };
        let failed = |source| CompareError::Database {
            name: self.name.to_owned(),
            source: Box::new(source),
        };
        let observe = |source| CompareError::Observe { name: self.name.to_owned(), source };
        let mut simulation =
            OltpSimulation::new(self.layout, databases, &options).map_err(failed)?;
        let observed = if is_observed {
            let mut observer = Observer::begin(simulation.shape()).map_err(observe)?;
            while let Some(next) = simulation.run_until(observer.due) {
                observer.pass(next, || simulation.sample()).map_err(observe)?;
            }
            Some(observer.finish(simulation.now(), &simulation.sample()).map_err(observe)?)
        } else {
            simulation.run_until(Instant::FAR);
            None
        };
        Ok((simulation.report().render(weir_report::Format::Json), observed))
    }

    /// Diagnoses an observed simulation.
    fn diagnosis(&self, observed: Vec<u8>) -> Result<Option<Verdict>, CompareError> {
        let read = |source| CompareError::Read { name: self.name.to_owned(), source };
        let mut reader = Reader::open(Cursor::new(observed)).map_err(read)?;
        let header = reader.header().clone();
        let chunks: Chunks = Box::new(move || reader.next_chunk());
        let edition = self.layout.edition.as_ref().map(|name| self.catalog.edition(name));
        let mapping = Vec::new();
        let question = Question {
            layout: Some(self.layout),
            edition: edition.transpose()?,
            catalog: self.catalog,
            mapping: &mapping,
        };
        Ok(diagnosed::pass(self.name, &question, header, chunks)?.1)
    }
}

/// Sampling interval of a simulation, in its own time.
const EVERY: Span = Span::from_secs(1);

/// Records the counters of a simulation in memory.
struct Observer {
    shape: Shape,
    writer: Writer<Vec<u8>>,
    row: Vec<Option<i64>>,
    /// Time of the next sample.
    due: Instant,
    last: Option<Instant>,
}

impl Observer {
    fn begin(shape: Shape) -> Result<Self, WriteError> {
        let (kind, by, about) =
            (SourceKind::VirtualRun, "weir compare".to_owned(), BTreeMap::new());
        let mut header = Header::new(Source { kind, by, about });
        header.interval_ns = Some(EVERY.nanos());
        header.contents = shape.contents();
        let writer = Writer::new(Vec::new(), &header)?;
        Ok(Self { shape, writer, row: Vec::new(), due: Instant::ZERO, last: None })
    }

    /// Records the samples due before `next`, while the counters stay as they are.
    fn pass(&mut self, next: Instant, sample: impl Fn() -> Sample) -> Result<(), WriteError> {
        if self.due < next {
            self.shape.row(&sample(), &mut self.row);
        }
        while self.due < next {
            self.writer.sample(self.due, &self.row)?;
            self.last = Some(self.due);
            self.due += EVERY;
        }
        Ok(())
    }

    /// Records the last sample and returns the observation.
    fn finish(mut self, end: Instant, sample: &Sample) -> Result<Vec<u8>, WriteError> {
        if self.last.is_none_or(|last| last < end) {
            self.shape.row(sample, &mut self.row);
            self.writer.sample(end, &self.row)?;
        }
        self.writer.finish(true)
    }
}
