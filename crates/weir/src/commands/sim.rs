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
use weir_core::CacheMode;
use weir_layout::Layout;
use weir_observe::run::{Sample, Shape};
use weir_report::number::{float, rate};
use weir_report::run::SimReport;
use weir_sim::{Options, Simulation, devices};
use weir_units::{Instant, Span};
use weir_workload::job::Target;
use weir_workload::{Device, JobFile, Placed, Source, fio, place};

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
    check_map(args, &jobs)?;
    let devices = devices(&layout);
    let placed = place(&jobs, &devices, &args.map)?;
    check_warm(args, &layout, &devices, &placed)?;
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
        check_crash(args, &jobs, run.elapsed_s)?;
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

/// Refuses a mapping that applies to no job.
fn check_map(args: &SimArgs, jobs: &JobFile) -> Result<(), CliError> {
    let mut paths: Vec<&str> = Vec::new();
    for job in &jobs.jobs {
        match &job.target {
            Target::Unnamed => {}
            Target::Directory(names) | Target::Files(names) => {
                paths.extend(names.iter().map(|name| name.trim_end_matches('/')));
            }
        }
    }
    paths.sort_unstable();
    paths.dedup();
    for (at, (path, export)) in args.map.iter().enumerate() {
        let trimmed = path.trim_end_matches('/');
        if !paths.contains(&trimmed) {
            let known = if paths.is_empty() { "none".to_owned() } else { paths.join(", ") };
            return Err(CliError::Refused(format!(
                "--map {path}={export}: no job has the directory or filename {path}; the jobs \
                 have: {known}"
            )));
        }
        let before = &args.map[..at];
        if before.iter().any(|(other, _)| other.trim_end_matches('/') == trimmed) {
            return Err(CliError::Refused(format!(
                "--map {path}={export}: {path} is mapped twice"
            )));
        }
    }
    Ok(())
}

/// Refuses to warm an export that no job reads or that is not cached. The simulator refuses
/// unknown exports.
fn check_warm(
    args: &SimArgs,
    layout: &Layout,
    devices: &[Device],
    placed: &[Placed],
) -> Result<(), CliError> {
    for name in &args.warm {
        let Ok((host, export)) = layout.export("--warm", name) else { continue };
        let device = devices.iter().position(|device| device.name == *name);
        let used = |at: usize| {
            placed.iter().flat_map(|p| &p.regions).any(|region| region.device as usize == at)
        };
        let volumes = &layout.hosts[host].spec.volumes;
        if export.volumes.iter().all(|id| volumes[id.0].cache == CacheMode::None) {
            let reason = "it has cache = \"none\"; give it cache = \"read-only\" in the layout";
            return Err(CliError::Refused(format!("--warm {name}: {reason}")));
        }
        if !device.is_some_and(used) {
            return Err(CliError::Refused(format!("--warm {name}: no job has a file on it")));
        }
    }
    Ok(())
}

/// Notes a crash after the last request, which has no effect.
fn check_crash(args: &SimArgs, jobs: &JobFile, elapsed_s: f64) -> Result<(), CliError> {
    let Some((host, at)) = &args.crash else { return Ok(()) };
    let first_wave = jobs.jobs.iter().map(|job| job.wave).min();
    let first = jobs.jobs.iter().filter(|job| Some(job.wave) == first_wave);
    let start = first.map(|job| job.start_delay).min().unwrap_or_default();
    let end = float(start.nanos()) / 1e9 + elapsed_s;
    if float(at.nanos()) / 1e9 > end {
        return Err(CliError::Refused(format!(
            "--crash {host}@{}: the run ends before that, after {} s; give an earlier time",
            at.to_string().replace(' ', ""),
            rate(end)
        )));
    }
    Ok(())
}
