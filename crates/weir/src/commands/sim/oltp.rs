//! `weir sim` of databases and backups, described by `.toml` files in place of job files.

use super::watch::{Drive, Ended, Watch};
use crate::cli::SimArgs;
use crate::commands::page;
use crate::error::CliError;
use crate::input::{edition_of, read, read_layout};
use crate::output;
use crate::progress::Progress;
use crate::signals::Signals;
use std::path::PathBuf;
use weir_catalog::Catalog;
use weir_observe::run::{Sample, Shape};
use weir_oltp::Description;
use weir_sim::{OltpOptions, OltpSimulation};
use weir_units::{Instant, Span};

/// The descriptions of a run.
pub(crate) type Descriptions = (Vec<Description>, Vec<weir_pipeline::Description>);

/// Returns whether the jobs are descriptions in TOML; a fio job file never ends in `.toml`.
pub(crate) fn are_descriptions(jobs: &[PathBuf]) -> Result<bool, CliError> {
    let is_oltp = |path: &&PathBuf| path.extension().is_some_and(|end| end == "toml");
    match (jobs.iter().find(is_oltp), jobs.iter().find(|path| !is_oltp(path))) {
        (None, _) => Ok(false),
        (Some(_), None) => Ok(true),
        (Some(oltp), Some(job)) => Err(CliError::Refused(format!(
            "{} describes a database or backup (.toml) and {} is a fio job file; give the one or the \
             other",
            oltp.display(),
            job.display()
        ))),
    }
}

/// Reads the descriptions, each of a database or a backup.
pub(crate) fn read_descriptions(
    jobs: &[PathBuf],
    runtime: Option<Span>,
) -> Result<Descriptions, CliError> {
    let (mut databases, mut backups) = (Vec::new(), Vec::new());
    for path in jobs {
        let text = read(path, "description of a database or backup")?;
        let name = path.display().to_string();
        if weir_pipeline::Description::recognizes(&text) {
            backups.push(weir_pipeline::Description::parse(&name, &text)?);
            continue;
        }
        let mut description = Description::parse(&name, &text)?;
        description.duration = runtime.unwrap_or(description.duration);
        databases.push(description);
    }
    if databases.is_empty() && runtime.is_some() {
        let reason = "--runtime is for databases and jobs; a backup ends when it is complete";
        return Err(CliError::Refused(reason.to_owned()));
    }
    Ok((databases, backups))
}

pub(super) fn run(args: &SimArgs, catalog: &Catalog) -> Result<u8, CliError> {
    check_options(args)?;
    let layout = read_layout(&args.layout, catalog)?;
    let (descriptions, backups) = read_descriptions(&args.jobs, args.runtime)?;
    let edition = edition_of(&layout, catalog)?;
    let (seed, every) = (args.run.seed, args.run.every);
    let options = OltpOptions { edition, seed, every, backups: &backups };
    let mut simulation = OltpSimulation::new(&layout, &descriptions, &options)?;
    let length = descriptions.iter().map(|one| one.ramp_time + one.duration).max();
    // The duration of a backup is unknown in advance.
    let length = length.filter(|_| backups.is_empty());
    let signals = Signals::catch()?;
    let watch = Watch::begin(args, &simulation, &signals)?;
    let Ended { stopped, picture } =
        watch.drive(&mut simulation, Progress::start(length, args.run.quiet))?;
    let mut report = simulation.report();
    if stopped.is_none() {
        simulation.add_costs(&mut report, &descriptions)?;
    }
    report.notes.extend(stopped.map(|stopped| stopped.to_string()));
    page::write_run(args.run.html.as_deref(), &report, Some((&layout, catalog)), picture.as_ref())?;
    output::print(&report, args.run.output.format())?;
    Ok(stopped.map_or(0, |stopped| stopped.code))
}

impl Drive for OltpSimulation<'_> {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, CliError> {
        Ok(Self::run_until(self, until))
    }

    fn now(&self) -> Instant {
        Self::now(self)
    }

    fn completed(&self) -> u64 {
        Self::completed(self)
    }

    fn shape(&self) -> Shape {
        Self::shape(self)
    }

    fn sample(&mut self) -> Sample {
        Self::sample(self)
    }
}

/// Refuses options that do not apply to databases.
fn check_options(args: &SimArgs) -> Result<(), CliError> {
    let refuse = |option: &str, instead: &str| {
        Err(CliError::Refused(format!("{option} is for fio job files; {instead}")))
    };
    if args.size.is_some() {
        return refuse("--size", "give size and working_set in the OLTP description");
    }
    if !args.map.is_empty() {
        return refuse("--map", "name the files in data and log of the OLTP description");
    }
    if !args.warm.is_empty() {
        return refuse("--warm", "give warm = true in the OLTP description for its buffer pool");
    }
    if args.crash.is_some() {
        return refuse("--crash", "a database that crashes is not simulated");
    }
    Ok(())
}
