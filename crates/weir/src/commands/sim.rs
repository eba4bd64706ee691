//! `weir sim`.

use super::{read, read_layout};
use crate::cli::SimArgs;
use crate::error::CliError;
use crate::output;
use std::io;
use std::path::{Path, PathBuf};
use weir_catalog::Catalog;
use weir_sim::{Options, devices, simulate};
use weir_units::Span;
use weir_workload::{JobFile, Source, fio, place};

/// Job files see the environment and the files beside them.
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

/// Job files, one after the other as fio runs them.
pub(crate) fn read_jobs(paths: &[PathBuf]) -> Result<JobFile, CliError> {
    let mut all: Option<JobFile> = None;
    for path in paths {
        let next = fio::parse(&path.display().to_string(), &read(path)?, &Surroundings)?;
        all = Some(match all {
            Some(jobs) => jobs.then(next),
            None => next,
        });
    }
    // The arguments ask for one at least.
    Ok(all.unwrap_or_default())
}

pub(crate) fn run(args: &SimArgs, catalog: &Catalog) -> Result<u8, CliError> {
    if let Some(every) = args.every.filter(|every| *every < Span::from_millis(1)) {
        return Err(CliError::Refused(format!("--every {every}: 1 ms is the least")));
    }
    let layout = read_layout(&args.layout, catalog)?;
    let jobs = read_jobs(&args.jobs)?.scale(args.size, args.runtime);
    for ignored in &jobs.ignored {
        output::talk(&format!("{}: {} is ignored: {}", ignored.at, ignored.option, ignored.why));
    }
    for job in jobs.jobs.iter().filter(|job| !job.direct) {
        output::talk(&format!(
            "{}: job {:?} is buffered (direct=0); a page cache is not simulated, it runs as direct=1",
            job.at, job.name
        ));
    }
    let placed = place(&jobs, &devices(&layout), &args.map)?;
    let options = Options {
        seed: args.seed,
        warm: args.warm.clone(),
        every: args.every,
        crash: args.crash.clone(),
    };
    let report = simulate(&layout, placed, &options)?;
    output::print(&report, args.output.format())?;
    Ok(0)
}
