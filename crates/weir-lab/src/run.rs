//! Running one lab on either clock.

use crate::file::{FigureKeys, Lab, RunKeys};
use crate::metric::{self, WARM_UP};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_catalog::Catalog;
use weir_layout::{Layout, LayoutError};
use weir_proto::Uri;
use weir_report::lab::{Figure, LabReport, Verdict};
use weir_report::run::RunReport;
use weir_runner::{RunOptions, RunnerError};
use weir_server::{Address, Server, ServerError};
use weir_sim::{SimError, devices};
use weir_units::{Bytes, Span};
use weir_workload::{FioError, Isolated, JobFile, PlaceError, Placed, fio, place};

/// Which clocks to run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    /// The simulator's.
    Virtual,
    /// The real one.
    Wall,
    /// Both.
    Both,
}

/// Who drives the wall clock's jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Driver {
    /// Weir's own runner.
    #[default]
    Weir,
    /// The real fio.
    Fio,
}

/// Not measured at the start of a wall run: memory that is touched for the first
/// time costs the machine, not the limits.
const WALL_RAMP: Span = Span::from_secs(2);

/// How to run labs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which clocks.
    pub clocks: Clocks,
    /// Who drives the wall clock's jobs.
    pub driver: Driver,
    /// The size of each job's file in wall time, instead of the article's.
    pub size: Bytes,
    /// How long each job runs in wall time, instead of the article's.
    pub runtime: Span,
    /// The seed.
    pub seed: u64,
    /// Set by others to end early.
    pub stop: Arc<AtomicBool>,
}

impl Default for Options {
    /// Both clocks; wall time scaled so that the DS14 lab ends within two minutes.
    fn default() -> Self {
        Self {
            clocks: Clocks::Both,
            driver: Driver::Weir,
            size: Bytes::mib(64),
            runtime: Span::from_secs(6),
            seed: 1,
            stop: Arc::default(),
        }
    }
}

/// Why a lab cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// No such lab.
    #[error("there is no lab {name:?}{}", .near.as_ref().map_or_else(|| "; see weir lab list".to_owned(), |near| format!("; did you mean {near:?}?")))]
    Unknown {
        /// The name.
        name: String,
        /// The closest one.
        near: Option<String>,
    },
    /// A lab's own files are wrong.
    #[error("lab {lab}: {reason}")]
    Lab {
        /// The lab.
        lab: String,
        /// What is wrong.
        reason: String,
    },
    /// Its layout.
    #[error("{0}")]
    Layout(#[from] LayoutError),
    /// Its job files.
    #[error("{0}")]
    Jobs(#[from] FioError),
    /// Where its jobs go.
    #[error("{0}")]
    Place(#[from] PlaceError),
    /// The simulation.
    #[error("{0}")]
    Sim(#[from] SimError),
    /// The server.
    #[error("{0}")]
    Server(#[from] ServerError),
    /// The runner.
    #[error("{0}")]
    Runner(#[from] RunnerError),
    /// Someone wanted it to end.
    #[error("interrupted; nothing is left running")]
    Interrupted,
    /// A temporary folder cannot be made.
    #[error("cannot make a temporary folder: {0}")]
    Temp(std::io::Error),
}

/// Runs `lab`; says what it is doing through `talk`.
///
/// # Errors
///
/// [`LabError`]; a figure that misses is none.
pub fn run(
    lab: &Lab,
    catalog: &Catalog,
    options: &Options,
    talk: &mut dyn FnMut(&str),
) -> Result<LabReport, LabError> {
    let (name, text) = lab.text(lab.file.layout_text.as_ref(), lab.file.layout.as_ref())?;
    let layout = Layout::parse(&name, text, catalog)?;
    let bench = Bench { lab, layout: &layout, catalog, options };
    let (mut virtual_runs, mut wall_runs) = (BTreeMap::new(), BTreeMap::new());
    for keys in &lab.file.run {
        if options.stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if options.clocks != Clocks::Wall {
            talk(&format!("{}: {} in virtual time", lab.name, keys.id));
            virtual_runs.insert(keys.id.as_str(), bench.virtually(keys)?);
        }
        if options.clocks != Clocks::Virtual {
            let seconds = bench.wall_runtime();
            talk(&format!("{}: {} in wall time, {seconds}", lab.name, keys.id));
            wall_runs.insert(keys.id.as_str(), bench.really(keys)?);
        }
    }
    let figure = |keys: &FigureKeys| {
        let value = |runs: &BTreeMap<&str, RunReport>| value(lab, keys, runs);
        Ok(Figure {
            id: keys.id.clone(),
            unit: keys.unit.clone().unwrap_or_else(|| metric::unit(&keys.metric).to_owned()),
            published: keys.published,
            // A lab has one of the two, see `Lab::read`.
            expected: keys.published.or(keys.expected).unwrap_or(f64::NAN),
            place: keys.place.clone(),
            virtual_time: value(&virtual_runs)?,
            wall: value(&wall_runs)?,
            compare: keys.compare.into(),
            tolerance: keys.tolerance(),
            basis: keys.basis.into(),
            verdict: Verdict::NotRun,
            note: keys.note.clone(),
        }
        .judge())
    };
    Ok(LabReport {
        lab: lab.name.clone(),
        title: lab.file.title.clone(),
        article: lab.file.article.clone(),
        figures: lab.file.figure.iter().map(figure).collect::<Result<_, LabError>>()?,
        notes: bench.notes(),
    })
}

/// A figure in the runs of one clock.
fn value(
    lab: &Lab,
    keys: &FigureKeys,
    runs: &BTreeMap<&str, RunReport>,
) -> Result<Option<f64>, LabError> {
    let read = |id: &str| match runs.get(id) {
        None => Ok(None),
        Some(run) => metric::read(&keys.metric, run).map_err(|metric| LabError::Lab {
            lab: lab.name.clone(),
            reason: format!("figure {:?}: there is no metric {metric:?}", keys.id),
        }),
    };
    let own = read(&keys.run)?;
    let Some(per) = &keys.per else { return Ok(own) };
    let pair = own.zip(read(per)?);
    Ok(pair.filter(|(_, per)| *per > 0.0).map(|(own, per)| own / per))
}

fn ended(error: RunnerError) -> LabError {
    match error {
        RunnerError::Interrupted(_) => LabError::Interrupted,
        other => LabError::Runner(other),
    }
}

struct Bench<'a> {
    lab: &'a Lab,
    layout: &'a Layout,
    catalog: &'a Catalog,
    options: &'a Options,
}

impl Bench<'_> {
    fn wall_runtime(&self) -> Span {
        self.lab.file.wall_runtime.unwrap_or(self.options.runtime)
    }

    fn wall_size(&self) -> Bytes {
        self.lab.file.wall_size.unwrap_or(self.options.size)
    }

    fn jobs(&self, keys: &RunKeys) -> Result<JobFile, LabError> {
        let (name, text) = self.lab.text(keys.jobs_text.as_ref(), keys.jobs.as_ref())?;
        Ok(fio::parse(&name, text, &Isolated)?)
    }

    /// One sequential pass over every file that the jobs have on `export`.
    fn warm_up(&self, export: &str, placed: &[Placed]) -> Result<Option<JobFile>, LabError> {
        let devices = devices(self.layout);
        let mut text = String::new();
        let regions = placed.iter().flat_map(|p| &p.regions);
        for region in regions.filter(|r| devices[r.device as usize].name == export) {
            text += &format!(
                "[{WARM_UP}]\nfilename=/dev/{export}\noffset={}\nsize={}\nrw=read\nbs=1m\niodepth=32\n\
                 ioengine=libaio\ndirect=1\n",
                region.base.get(),
                region.len.get()
            );
        }
        if text.is_empty() {
            return Ok(None);
        }
        Ok(Some(fio::parse("warm-up", &text, &Isolated)?))
    }

    fn virtually(&self, keys: &RunKeys) -> Result<RunReport, LabError> {
        let devices = devices(self.layout);
        let mut jobs = self.jobs(keys)?.scale(None, Some(self.lab.file.runtime));
        if let Some(export) = &keys.warm_up
            && let Some(warm) = self.warm_up(export, &place(&jobs, &devices, &[])?)?
        {
            jobs = warm.then(jobs);
        }
        let placed = place(&jobs, &devices, &[])?;
        let options = weir_sim::Options {
            seed: self.options.seed,
            every: keys.every,
            ..weir_sim::Options::default()
        };
        Ok(weir_sim::simulate(self.layout, placed, &options)?)
    }

    fn really(&self, keys: &RunKeys) -> Result<RunReport, LabError> {
        let folder = tempfile::tempdir().map_err(LabError::Temp)?;
        let edition = match &self.layout.edition {
            Some(name) => self.catalog.edition(name).ok(),
            None => None,
        };
        let socket = Address::Unix(folder.path().join("nbd"));
        let serving = weir_server::Options { listen: vec![socket], ..Default::default() };
        let server = Server::start(self.layout.clone(), edition, &serving)?;
        let report = self.drive(keys, &server);
        server.stop()?;
        report
    }

    fn drive(&self, keys: &RunKeys, server: &Server) -> Result<RunReport, LabError> {
        let devices = devices(self.layout);
        let uri = |name: &String| server.uris().get(name).and_then(|uris| uris.first());
        let uris: Vec<Uri> = devices
            .iter()
            .filter_map(|device| uri(&device.name))
            .filter_map(|text| Uri::from_str(text).ok())
            .collect();
        let (size, runtime) = (self.wall_size(), self.wall_runtime());
        let mut jobs = self.jobs(keys)?.scale(Some(size), Some(runtime));
        // The smaller files are gone over again until the time is up; the article's
        // are larger than what passes in its time.
        for job in &mut jobs.jobs {
            job.time_based = true;
            // A run that is watched over time is watched from its start.
            if keys.every.is_none() {
                job.ramp_time = WALL_RAMP;
            }
        }
        let placed = place(&jobs, &devices, &[])?;
        let (seed, stop) = (self.options.seed, Some(self.options.stop.as_ref()));
        if let Some(export) = &keys.warm_up
            && let Some(warm) = self.warm_up(export, &placed)?
        {
            let placed = place(&warm, &devices, &[])?;
            let options = RunOptions { uris: &uris, seed, record_windows: None, stop };
            weir_runner::run(placed, &options).map_err(ended)?;
        }
        let windows = keys.every;
        let options = RunOptions { uris: &uris, seed, record_windows: windows, stop };
        Ok(match self.options.driver {
            Driver::Weir => weir_runner::run(placed, &options).map_err(ended)?,
            Driver::Fio => {
                weir_runner::run_with_fio(placed, &options, "fio".as_ref()).map_err(ended)?
            }
        })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.options.clocks != Clocks::Wall {
            let warm = self.lab.file.run.iter().any(|run| run.warm_up.is_some());
            let warm = if warm { ", the cache warmed by one pass in 1 MiB reads" } else { "" };
            notes.push(format!("virtual: {} a run{warm}", self.lab.file.runtime));
        }
        if self.options.clocks != Clocks::Virtual {
            let driver = match self.options.driver {
                Driver::Weir => "Weir's runner",
                Driver::Fio => "fio",
            };
            notes.push(format!(
                "wall: scaled to files of {} and {} a run after a ramp of {WALL_RAMP} (--size, \
                 --runtime), driven by {driver} over NBD",
                self.wall_size(),
                self.wall_runtime()
            ));
        }
        notes
    }
}
