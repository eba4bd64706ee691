//! `weir sim`.

mod oltp;
mod replay;
pub(super) mod watch;

pub(super) use oltp::{are_descriptions, read_descriptions};

use super::page;
use crate::cli::SimArgs;
use crate::error::CliError;
use crate::input::{read, read_layout};
use crate::output;
use crate::progress::Progress;
use crate::signals::Signals;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use watch::{Drive, Ended, Watch, Watched};
use weir_catalog::Catalog;
use weir_observe::run::{Sample, Shape};
use weir_report::run::SimReport;
use weir_sim::checks::{check_crash, check_map, check_warm};
use weir_sim::{Options, Simulation, devices};
use weir_units::{Instant, Span};
use weir_workload::{JobFile, Source, fio, place};

/// The environment variables and include files that job files can refer to.
pub(crate) struct Surroundings;

impl Source for Surroundings {
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn include(&self, from: &str, name: &str) -> io::Result<String> {
        let beside = Path::new(from).parent().unwrap_or(Path::new(""));
        std::fs::read_to_string(beside.join(name))
    }
}

/// Parses the job files, which run one after the other as in fio.
pub(crate) fn read_jobs(paths: &[PathBuf]) -> Result<JobFile, CliError> {
    let mut all: Option<JobFile> = None;
    for path in paths {
        let next =
            fio::parse(&path.display().to_string(), &read(path, "job file")?, &Surroundings)?;
        all = Some(match all {
            Some(jobs) => jobs.then(next),
            None => next,
        });
    }
    // The command line requires at least one.
    Ok(all.unwrap_or_default())
}

/// Says which options of jobs are ignored, and which jobs differ from those of fio.
pub(crate) fn tell_of_ignored(jobs: &JobFile) {
    for ignored in &jobs.ignored {
        output::talk(&format!("{}: {} is ignored: {}", ignored.at, ignored.option, ignored.why));
    }
    for job in jobs.jobs.iter().filter(|job| !job.direct) {
        output::talk(&format!(
            "{}: job {:?} is buffered (direct=0), but the page cache is not simulated: it runs as \
             direct=1",
            job.at, job.name
        ));
    }
}

pub(crate) fn run(args: &SimArgs, catalog: &Catalog) -> Result<u8, CliError> {
    if let Some(every) = args.run.every.filter(|every| *every < Span::from_millis(1)) {
        return Err(CliError::Refused(format!("--every {every}: must be at least 1 ms")));
    }
    Watched::from(args).check()?;
    if super::traces::are_traces(&args.jobs)? {
        return replay::run(args, catalog);
    }
    if let Some(option) = args.replay.given() {
        return Err(CliError::Refused(format!("{option} is for traces, and none is given")));
    }
    if oltp::are_descriptions(&args.jobs)? {
        return oltp::run(args, catalog);
    }
    let layout = read_layout(&args.layout, catalog)?;
    let jobs = read_jobs(&args.jobs)?.scale(args.size, args.runtime);
    tell_of_ignored(&jobs);
    check_map("--map", &args.map, &jobs).map_err(CliError::Refused)?;
    let devices = devices(&layout);
    let placed = place(&jobs, &devices, &args.map)?;
    check_warm("--warm", &args.warm, &layout, &devices, &placed).map_err(CliError::Refused)?;
    let options = Options {
        seed: args.run.seed,
        warm: args.warm.clone(),
        every: args.run.every,
        crash: args.crash.clone(),
    };
    let mut simulation = Simulation::new(&layout, placed, &options)?;
    let signals = Signals::catch()?;
    let watch = Watch::begin(args, &simulation, &signals)?;
    let Ended { stopped, picture } =
        watch.drive(&mut simulation, Progress::start(length(&jobs), args.run.quiet))?;
    let mut run = simulation.report();
    if stopped.is_none() {
        let crash = args.crash.as_ref();
        check_crash("--crash", crash, &jobs, run.elapsed_s).map_err(CliError::Refused)?;
    }
    run.notes.extend(stopped.map(|stopped| stopped.to_string()));
    let totals = |host, volume| simulation.totals(host, volume);
    let writebacks = weir_sim::writebacks(&layout, run.elapsed_s, totals);
    let report = SimReport { run, writebacks };
    page::write_run(args.run.html.as_deref(), &report, Some((&layout, catalog)), picture.as_ref())?;
    output::print(&report, args.run.output.format())?;
    Ok(stopped.map_or(0, |stopped| stopped.code))
}

impl Drive for Simulation<'_> {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, CliError> {
        Ok(Self::run_until(self, until)?)
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

/// Returns the maximum duration of the jobs, unless a job has no runtime.
fn length(jobs: &JobFile) -> Option<Span> {
    let mut waves: BTreeMap<u32, Span> = BTreeMap::new();
    for job in &jobs.jobs {
        let end = job.start_delay + job.ramp_time + job.runtime?;
        let wave = waves.entry(job.wave).or_default();
        *wave = end.max(*wave);
    }
    Some(waves.into_values().fold(Span::ZERO, |sum, wave| sum + wave))
}
