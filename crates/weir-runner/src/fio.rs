//! Runs of the real fio.
//!
//! Each process becomes a section of a generated job file with fio's nbd engine. fio's report
//! includes histograms, so processes are merged into the same reporting groups, with the same
//! percentiles, as by Weir's runner. An option that fio would treat differently is an error.
//!
//! Two things differ. Latencies are fio's completion latencies, which do not include the time to
//! send a request. And fio measures time in whole milliseconds.
//!
//! | module | holds |
//! |---|---|
//! | `job_file` | the job file for fio |
//! | `output` | its report |

mod job_file;
mod output;

use crate::error::RunnerError;
use crate::run::RunOptions;
use output::Output;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use weir_report::number::float;
use weir_report::run::{ClockName, JobReport, RunReport};
use weir_units::{Instant, Span};
use weir_workload::{JobSpec, Placed, Tally, Workload};

/// Time after which a stop is noticed.
const NOTICE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Runs `placed` with fio; `program` is its name or path.
///
/// # Errors
///
/// [`RunnerError::NoFio`] if fio is missing, [`RunnerError::NotWithFio`] for unsupported options
/// (including [`RunOptions::record_windows`]), and [`RunnerError::FioFailed`] if it fails.
///
/// # Panics
///
/// If a region's device has no URI.
pub fn run_with_fio(
    placed: Vec<Placed>,
    options: &RunOptions<'_>,
    program: &Path,
) -> Result<RunReport, RunnerError> {
    if options.record_windows.is_some() {
        let job = placed.first().map(|p| p.spec.name.clone()).unwrap_or_default();
        return Err(RunnerError::NotWithFio {
            job,
            what: "fio's report has no intervals over time",
        });
    }
    let text = job_file::write(&placed, options.uris, options.seed)?;
    let specs: Vec<JobSpec> = placed.iter().map(|p| p.spec.clone()).collect();
    // The workload does not run. It checks that the jobs fit, and groups the reports.
    let workload = Workload::new(placed, options.seed)?;
    let fio = Fio { text: &text, options, program };
    match fio.run()? {
        Ended::Report(output) => report(&output, &workload, &specs, options.seed),
        Ended::Stopped(output) => {
            // It was interrupted before it had results.
            let output = output.unwrap_or_else(|| Output::nothing(specs.len()));
            let report = report(&output, &workload, &specs, options.seed)?;
            Err(RunnerError::Interrupted(Box::new(report)))
        }
    }
}

fn report(
    output: &Output,
    workload: &Workload,
    specs: &[JobSpec],
    seed: u64,
) -> Result<RunReport, RunnerError> {
    let processes = output.in_order(specs.len())?;
    Ok(RunReport {
        clock: ClockName::Wall,
        seed,
        elapsed_s: elapsed_s(specs, &processes),
        trace_hash: None,
        jobs: jobs(workload, specs, &processes),
        volumes: Vec::new(),
        hosts: Vec::new(),
        series: Vec::new(),
        notes: notes(specs, &output.version),
    })
}

/// Returns notes for the reader. fio 3.33 sends `iodepth` flushes in a row.
fn notes(specs: &[JobSpec], version: &str) -> Vec<String> {
    let mut notes = vec![format!("run by {version}")];
    for spec in specs.iter().filter(|spec| spec.fsync > 0 && spec.effective_depth() > 1) {
        let job = &spec.name;
        let note = "where fsync asks for one flush, fio may send up to iodepth";
        let note = format!("job {job:?}: {note}");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

fn jobs(workload: &Workload, specs: &[JobSpec], processes: &[&output::Process]) -> Vec<JobReport> {
    let empty = Tally::new(specs.len()).jobs(workload, specs, Instant::ZERO);
    let groups = Tally::members(specs);
    empty
        .into_iter()
        .zip(groups)
        .map(|(report, members): (JobReport, Vec<u32>)| {
            let own: Vec<_> = members.iter().map(|member| processes[*member as usize]).collect();
            output::report(report, &own)
        })
        .collect()
}

/// Returns the elapsed time: waves run one after the other, each until its last process has ended.
fn elapsed_s(specs: &[JobSpec], processes: &[&output::Process]) -> f64 {
    let seconds = |span: Span| float(span.nanos()) / 1e9;
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by_key(|process| specs[*process].wave);
    let (mut wave, mut begun, mut ended) = (None, 0.0_f64, 0.0_f64);
    for process in order {
        let spec = &specs[process];
        if wave != Some(spec.wave) {
            (wave, begun) = (Some(spec.wave), ended);
        }
        let start = begun.max(seconds(spec.start_delay));
        ended = ended.max(start + seconds(spec.ramp_time) + processes[process].seconds());
    }
    ended
}

/// The end of fio's run.
enum Ended {
    Report(Output),
    /// Interrupted, with its results until then.
    Stopped(Option<Output>),
}

struct Fio<'a> {
    text: &'a str,
    options: &'a RunOptions<'a>,
    program: &'a Path,
}

impl Fio<'_> {
    fn run(&self) -> Result<Ended, RunnerError> {
        let streams = Streams::new(self.text).map_err(RunnerError::system("preparing for fio"))?;
        let mut fio = self.start(&streams)?;
        let stopped = wait_or_stop(&fio, self.options);
        if stopped.is_err() {
            // Its result is no longer needed.
            let _ = stop(&fio);
        }
        let waiting = RunnerError::system("waiting for fio");
        let status = fio.wait().map_err(&waiting)?;
        let stopped = stopped.map_err(&waiting)?;
        let reading = RunnerError::system("reading the output of fio");
        let report = read(streams.report).map_err(&reading)?;
        let output = Output::parse(&report);
        if stopped {
            return Ok(Ended::Stopped(output.ok()));
        }
        if !status.success() {
            return Err(failed(status, &read(streams.said).map_err(&reading)?));
        }
        output.map(Ended::Report).map_err(|source| RunnerError::FioReport { source })
    }

    fn start(&self, streams: &Streams) -> Result<Child, RunnerError> {
        let failed = RunnerError::system("starting fio");
        let hand = |stream: &File| stream.try_clone().map_err(&failed);
        let mut command = Command::new(self.program);
        command.args(["--eta=never", "--output-format=json+", "-"]);
        command.stdin(hand(&streams.jobs)?);
        command.stdout(hand(&streams.report)?).stderr(hand(&streams.said)?);
        command.spawn().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => RunnerError::NoFio { program: self.program.to_owned() },
            _ => failed(source),
        })
    }
}

/// fio's input and output in memory, so that no file is left behind and fio never blocks on a pipe.
struct Streams {
    jobs: File,
    report: File,
    said: File,
}

impl Streams {
    fn new(jobs: &str) -> io::Result<Self> {
        let memory = || memfd_create("weir-fio", MemfdFlags::CLOEXEC).map(File::from);
        let (mut input, report, said) = (memory()?, memory()?, memory()?);
        input.write_all(jobs.as_bytes())?;
        input.rewind()?;
        Ok(Self { jobs: input, report, said })
    }
}

fn read(mut stream: File) -> io::Result<String> {
    let mut text = String::new();
    stream.rewind()?;
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Waits until fio ends, and interrupts it if the run is stopped. fio then reports its results so
/// far.
fn wait_or_stop(fio: &Child, options: &RunOptions<'_>) -> io::Result<bool> {
    let handle = pidfd_open(Pid::from_child(fio), PidfdFlags::empty())?;
    let timeout = options.stop.map(|_| NOTICE);
    let mut stopped = false;
    loop {
        let mut ended = [PollFd::new(&handle, PollFlags::IN)];
        match poll(&mut ended, timeout.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(stopped),
            Err(errno) => return Err(errno.into()),
        }
        if !stopped && options.is_stopped() {
            stopped = true;
            stop(fio)?;
        }
    }
}

/// Interrupts fio like Ctrl-C: it ends its own processes and reports.
fn stop(fio: &Child) -> io::Result<()> {
    Ok(kill_process(Pid::from_child(fio), Signal::INT)?)
}

/// Returns the error of a failed fio, with the relevant lines of its output.
fn failed(status: ExitStatus, said: &str) -> RunnerError {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = if lines.is_empty() { "it printed no reason".to_owned() } else { lines.join("; ") };
    RunnerError::FioFailed { status: status.to_string(), said }
}
