//! Databases under load, on either clock.

use crate::error::LabError;
use crate::file::{Lab, RunKeys};
use crate::options::{Options, WALL_RAMP, wall_runtime, wall_size};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use weir_catalog::{Catalog, Edition};
use weir_layout::Layout;
use weir_oltp::Description;
use weir_report::oltp::OltpReport;
use weir_runner::oltp::serving::served_files;
use weir_runner::{OltpOptions as WallOptions, OltpRun, OltpRunError, ServiceTimes};
use weir_server::{Address, Observer, Server};
use weir_sim::{OltpOptions, OltpSimulation};
use weir_units::{Instant, Span};

/// Interval at which a run checks whether to stop.
const SLICE: Span = Span::from_secs(1);

/// A run with databases.
pub(crate) struct Databases<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) catalog: &'a Catalog,
    pub(crate) keys: &'a RunKeys,
    pub(crate) descriptions: Vec<Description>,
    pub(crate) backups: Vec<weir_pipeline::Description>,
    pub(crate) layout: Layout,
    pub(crate) options: &'a Options,
}

impl Databases<'_> {
    pub(crate) fn virtually(&self) -> Result<OltpReport, LabError> {
        let edition = self.edition()?;
        let options = OltpOptions {
            edition,
            seed: self.options.seed,
            every: self.keys.every,
            backups: &self.backups,
        };
        let mut simulation = OltpSimulation::new(&self.layout, &self.descriptions, &options)?;
        let mut until = Instant::ZERO + SLICE;
        while let Some(next) = simulation.run_until(until) {
            if self.options.stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            until = next + SLICE;
        }
        Ok(simulation.report())
    }

    /// Runs the databases in wall time, each on a thread of its own, on one server; `None` if the
    /// lab has none in wall time.
    pub(crate) fn really(&self) -> Result<Option<OltpReport>, LabError> {
        if self.not_in_wall_time().is_some() {
            return Ok(None);
        }
        if !self.backups.is_empty() {
            return Err(self.wrong(&format!(
                "run {:?}: a backup beside databases runs in virtual time only; say so with \
                 not_in_wall_time",
                self.keys.id
            )));
        }
        let folder = tempfile::tempdir().map_err(LabError::Temp)?;
        let edition = self.edition()?;
        let book = Arc::new(ServiceTimes::default());
        let observer = Observer::with(book.writer());
        let listen = vec![Address::Unix(folder.path().join("nbd"))];
        let options = weir_server::Options { listen, observer, ..weir_server::Options::default() };
        let server = Server::start(self.layout.clone(), edition, &options)?;
        let drive = |(index, description): (u64, Description)| {
            self.drive(&server, &book, &description, index)
        };
        let reports = thread::scope(|scope| {
            let threads: Vec<_> = self
                .wall_descriptions()
                .zip(0..)
                .map(|(description, index)| scope.spawn(move || drive((index, description))))
                .collect();
            threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
        });
        server.stop()?;
        let databases = reports?.into_iter();
        Ok(databases.reduce(|mut all, one| {
            all.databases.extend(one.databases);
            all.notes.extend(one.notes);
            all
        }))
    }

    pub(crate) fn edition(&self) -> Result<Option<&Edition>, LabError> {
        let edition = self.layout.edition.as_ref().map(|name| self.catalog.edition(name));
        edition.transpose().map_err(|error| self.wrong(&error))
    }

    pub(crate) fn wrong(&self, error: &impl ToString) -> LabError {
        LabError::Lab { lab: self.lab.name.clone(), reason: error.to_string() }
    }

    /// Returns the descriptions, with the duration limited to that of a wall run.
    fn wall_descriptions(&self) -> impl Iterator<Item = Description> + '_ {
        let runtime = wall_runtime(self.lab, self.options);
        self.descriptions.iter().cloned().map(move |mut description| {
            description.duration = description.duration.min(runtime);
            description.ramp_time = description.ramp_time.min(WALL_RAMP);
            description
        })
    }

    /// Runs one database on `server`.
    fn drive(
        &self,
        server: &Server,
        book: &ServiceTimes,
        description: &Description,
        index: u64,
    ) -> Result<OltpReport, LabError> {
        let stopped = || self.options.stop.load(Ordering::Relaxed);
        let files = served_files(&self.layout, &server.uris(), server.refused());
        let resize = |volume: &str, size| {
            let tiers = server.resize(volume, size).map_err(|error| error.to_string())?;
            Ok(tiers.before.zip(tiers.after))
        };
        let options = WallOptions {
            files: &files,
            seed: weir_random::split(self.options.seed, index),
            every: self.keys.every,
            is_stopped: Some(&stopped),
            service: Some(book),
            resize: Some(&resize),
            ..WallOptions::default()
        };
        let (mut run, _) = OltpRun::open(description, options)?;
        let mut until = Instant::ZERO + SLICE;
        while let Some(next) = run.run_until(until)? {
            if stopped() {
                return Err(LabError::Interrupted);
            }
            until = next.max(until) + SLICE;
        }
        Ok(run.report())
    }

    /// Returns the reason why the run is not in wall time, if there is one.
    pub(crate) fn not_in_wall_time(&self) -> Option<&String> {
        self.keys.not_in_wall_time.as_ref().or(self.lab.file.not_in_wall_time.as_ref())
    }

    /// Returns whether the run consists of backups only.
    pub(crate) fn is_backup(&self) -> bool {
        self.descriptions.is_empty() && !self.backups.is_empty()
    }

    /// Returns the note about the run in wall time.
    pub(crate) fn wall_note(&self) -> String {
        match self.not_in_wall_time() {
            Some(why) if self.keys.not_in_wall_time.is_some() => {
                format!("wall: {} is not run, {why}", self.keys.id)
            }
            Some(why) => format!("wall: not run, {why}"),
            None if self.is_backup() => {
                let size = wall_size(self.lab, self.options);
                format!("wall: backups of {size} by the engine of weir backup run, over NBD")
            }
            None => {
                let runtime = wall_runtime(self.lab, self.options);
                format!("wall: databases on served volumes, at most {runtime} per run")
            }
        }
    }

    /// Returns the note about durations in virtual time.
    pub(crate) fn note(&self) -> String {
        let times = |d: &Description| match d.ramp_time {
            Span::ZERO => format!("{} per run", d.duration),
            ramp => format!("{} per run after a ramp of {ramp}", d.duration),
        };
        let alone = || "each backup to its end".to_owned();
        let times = self.descriptions.first().map_or_else(alone, times);
        format!("virtual: {times}")
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, Result<T, LabError>>) -> Result<T, LabError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl From<OltpRunError> for LabError {
    fn from(error: OltpRunError) -> Self {
        match error {
            OltpRunError::Description(error) => Self::Oltp(error),
            OltpRunError::Runner(error) => Self::Runner(error),
        }
    }
}
