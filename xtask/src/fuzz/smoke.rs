//! The fuzzing loop, its watchdog, and its reports.
//!
//! The target runs on a thread of its own, and the main thread checks that iterations proceed: a
//! hang is a finding like a panic. If the process itself dies (stack overflow, allocation failure),
//! the file `running` beside the artifacts holds the current iteration.

use super::corpus::Corpus;
use super::mutate;
use super::target::Target;
use super::trap::{self, Panic};
use crate::error::XtaskError;
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// An input that takes longer counts as a hang.
const HANG: Duration = Duration::from_secs(10);
/// Maximum number of runs to shrink a finding.
const MAX_SHRINKS: usize = 3_000;

/// Options of a smoke run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The targets to fuzz.
    pub targets: Vec<Target>,
    /// Processor time per target. The corpus is always processed completely.
    pub time: Duration,
    /// The random seed; equal seeds produce equal inputs.
    pub seed: u64,
    /// True if to continue after a panic. Each location of a panic is reported once.
    pub keep_going: bool,
}

/// The result of a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of inputs.
    pub iterations: u64,
    /// Number of distinct findings.
    pub findings: usize,
}

/// A message of the worker.
enum Report {
    Panicked { iteration: u64, panic: Panic },
    Ended,
}

/// Fuzzes every target of `plan`, writes results to `out`, and returns the number of findings.
///
/// # Errors
///
/// [`XtaskError`] if a corpus cannot be read or an artifact cannot be written.
pub fn run(plan: &Plan, out: &mut dyn Write) -> Result<usize, XtaskError> {
    let mut findings = 0;
    for target in &plan.targets {
        let outcome = run_target(plan, *target, out)?;
        findings += outcome.findings;
        if findings > 0 && !plan.keep_going {
            break;
        }
    }
    Ok(findings)
}

#[expect(clippy::disallowed_methods, reason = "this is a driver, and speed is its output")]
fn run_target(plan: &Plan, target: Target, out: &mut dyn Write) -> Result<Outcome, XtaskError> {
    let corpus = Arc::new(Corpus::load(target)?);
    let running = Running::open(target, plan.seed, out)?;
    let place = running.path.clone();
    let worker = Worker {
        target,
        corpus: Arc::clone(&corpus),
        seed: plan.seed,
        keep_going: plan.keep_going,
        running,
        iteration: Arc::default(),
        stop: Arc::default(),
    };
    let (iteration, stop) = (Arc::clone(&worker.iteration), Arc::clone(&worker.stop));
    let (report, reports) = mpsc::channel();
    let (started, used) = (Instant::now(), processor_time());
    let thread = thread::spawn(move || worker.run(&report));

    let mut outcome = Outcome::default();
    let mut seen = (0, started);
    loop {
        let now = Instant::now();
        let left = plan.time.saturating_sub(processor_time() - used);
        let corpus_done = iteration.load(Ordering::Relaxed) >= length(&corpus);
        stop.store(left.is_zero() && corpus_done, Ordering::Relaxed);
        let wait = if left.is_zero() { Duration::from_millis(10) } else { left.min(HANG / 10) };
        match reports.recv_timeout(wait) {
            Ok(Report::Panicked { iteration, panic }) => {
                outcome.findings += 1;
                let input = mutate::input(&corpus, plan.seed, iteration);
                let small = shrink(&input, &panic, |data| trap::catch(|| target.run(data)));
                let command = replay(target, plan.seed, iteration);
                tell(out, target, &panic.to_string(), &command, &[("", input), ("-small", small)])?;
            }
            Ok(Report::Ended) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let at = iteration.load(Ordering::Relaxed);
                if at != seen.0 {
                    seen = (at, now);
                } else if now - seen.1 > HANG {
                    outcome.findings += 1;
                    let input = mutate::input(&corpus, plan.seed, at);
                    let what = format!("took more than {} s", HANG.as_secs());
                    tell(out, target, &what, &replay(target, plan.seed, at), &[("", input)])?;
                    drop(fs::remove_file(place));
                    // The thread cannot be stopped; it ends with the process.
                    return Ok(outcome);
                }
            }
        }
    }
    drop(thread.join());
    outcome.iterations = iteration.load(Ordering::Relaxed);
    // The note matters only after an abort, so a failure to delete it is harmless.
    drop(fs::remove_file(place));
    summarize(out, target, &outcome, processor_time() - used)?;
    Ok(outcome)
}

/// Returns the processor time of this process, of which the targets use nearly all.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// The thread that runs the target.
struct Worker {
    target: Target,
    corpus: Arc<Corpus>,
    seed: u64,
    keep_going: bool,
    running: Running,
    iteration: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Worker {
    fn run(self, report: &Sender<Report>) {
        let mut told = HashSet::new();
        while !self.stop.load(Ordering::Relaxed) {
            let iteration = self.iteration.load(Ordering::Relaxed);
            self.running.at(iteration);
            let input = mutate::input(&self.corpus, self.seed, iteration);
            if let Err(panic) = trap::catch(|| self.target.run(&input))
                && told.insert(panic.place.clone())
            {
                // The receiver is gone only after a hang, which ends the process.
                drop(report.send(Report::Panicked { iteration, panic }));
                if !self.keep_going {
                    break;
                }
            }
            self.iteration.store(iteration + 1, Ordering::Relaxed);
        }
        drop(report.send(Report::Ended));
    }
}

/// The note about the current iteration.
struct Running {
    path: PathBuf,
    file: File,
    offset: u64,
}

impl Running {
    /// Opens the note, and reports one left by an earlier run.
    fn open(target: Target, seed: u64, out: &mut dyn Write) -> Result<Self, XtaskError> {
        let folder = target.artifacts();
        fs::create_dir_all(&folder).map_err(XtaskError::file("making", &folder))?;
        let path = folder.join("running");
        if let Ok(note) = fs::read_to_string(&path) {
            say(
                out,
                &format!("an earlier run did not come to its end; replay: {}\n", note.trim()),
            )?;
        }
        let command = replay(target, seed, 0);
        let text = command.strip_suffix('0').unwrap_or(&command);
        let failed = |source| XtaskError::File { doing: "writing", path: path.clone(), source };
        let mut file = File::create(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(Self { offset: text.len() as u64, path, file })
    }

    /// Writes the iteration. If that fails there is no note, and nothing else is lost.
    fn at(&self, iteration: u64) {
        drop(self.file.write_all_at(format!("{iteration:<20}\n").as_bytes(), self.offset));
    }
}

/// Repeats one iteration of the mutator, and lets its panic through.
///
/// # Errors
///
/// [`XtaskError`] if the corpus cannot be read.
///
/// # Panics
///
/// If the target panics.
pub fn replay_iteration(target: Target, seed: u64, iteration: u64) -> Result<(), XtaskError> {
    target.run(&mutate::input(&Corpus::load(target)?, seed, iteration));
    Ok(())
}

/// Runs the input of a file, and lets its panic through.
///
/// # Errors
///
/// [`XtaskError::File`] if the file cannot be read.
///
/// # Panics
///
/// If the target panics.
pub fn replay_file(target: Target, path: &std::path::Path) -> Result<(), XtaskError> {
    target.run(&fs::read(path).map_err(XtaskError::file("reading", path))?);
    Ok(())
}

fn replay(target: Target, seed: u64, iteration: u64) -> String {
    format!("cargo xtask fuzz-smoke --target {target} --seed {seed} --iteration {iteration}")
}

fn length(corpus: &Corpus) -> u64 {
    corpus.inputs.len() as u64
}

/// Returns the smallest part of `input` found that panics at the same location.
fn shrink(input: &[u8], panic: &Panic, run: impl Fn(&[u8]) -> Result<(), Panic>) -> Vec<u8> {
    let mut small = input.to_vec();
    let mut left = MAX_SHRINKS;
    let mut piece = small.len().div_ceil(2);
    while piece > 0 && left > 0 {
        let mut at = 0;
        while at < small.len() && left > 0 {
            left -= 1;
            let end = (at + piece).min(small.len());
            let without = [&small[..at], &small[end..]].concat();
            if run(&without).is_err_and(|other| other.place == panic.place) {
                small = without;
            } else {
                at = end;
            }
        }
        piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
    }
    small
}

/// Writes the inputs of a finding to files, and reports it.
fn tell(
    out: &mut dyn Write,
    target: Target,
    what: &str,
    command: &str,
    inputs: &[(&str, Vec<u8>)],
) -> Result<(), XtaskError> {
    let folder = target.artifacts();
    fs::create_dir_all(&folder).map_err(XtaskError::file("making", &folder))?;
    let name = format!("finding-{:016x}", fingerprint(what));
    let mut text = format!("{target}: {what}\n  replay: {command}\n");
    for (suffix, input) in inputs {
        let path = folder.join(format!("{name}{suffix}"));
        fs::write(&path, input).map_err(XtaskError::file("writing", &path))?;
        text += &format!("  input: {} ({} bytes)\n", path.display(), input.len());
    }
    say(out, &text)
}

/// Returns the FNV-1a hash, so that a finding has the same name in every run.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn summarize(
    out: &mut dyn Write,
    target: Target,
    outcome: &Outcome,
    took: Duration,
) -> Result<(), XtaskError> {
    let nanos = took.as_nanos().max(1);
    let rate = u128::from(outcome.iterations) * 1_000_000_000 / nanos;
    let (iterations, seconds) = (outcome.iterations, took.as_secs_f64());
    let findings = match outcome.findings {
        0 => "no finding".to_owned(),
        n => format!("{n} FOUND"),
    };
    let name = target.name();
    say(
        out,
        &format!("{name:<11}{iterations:>10} inputs in {seconds:>5.1} s {rate:>8}/s  {findings}\n"),
    )
}

fn say(out: &mut dyn Write, text: &str) -> Result<(), XtaskError> {
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|source: io::Error| XtaskError::System { doing: "writing the output", source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics at one of two locations.
    fn fragile(data: &[u8]) {
        assert!(!data.windows(2).any(|w| w == b"ab"), "ab");
        assert!(!data.contains(&b'z'), "z");
    }

    #[test]
    fn a_panic_is_caught_with_its_place_and_message() {
        let panic = trap::catch(|| fragile(b"xxabxx")).unwrap_err();
        assert_eq!(panic.message, "ab");
        assert!(panic.place.starts_with(file!()), "{}", panic.place);
        assert_ne!(panic.place, trap::catch(|| fragile(b"z")).unwrap_err().place);
        assert_eq!(trap::catch(|| fragile(b"b a")), Ok(()));
    }

    #[test]
    fn a_finding_is_made_as_small_as_it_can_be_and_stays_the_same_finding() {
        let run = |data: &[u8]| trap::catch(|| fragile(data));
        let input = b"0123z4567ab89z0123456789".to_vec();
        let panic = run(&input).unwrap_err();
        assert_eq!(shrink(&input, &panic, run), b"ab");
    }

    /// Sums numbers; on overflow, the panic is in the standard library.
    fn sums(all: &[u8]) -> u8 {
        all.iter().sum()
    }

    #[test]
    fn the_place_of_a_panic_is_in_this_repository() {
        let panic = trap::catch(|| assert_eq!(sums(&[200, 200]), 0)).unwrap_err();
        assert!(panic.place.starts_with(file!()), "{}", panic.place);
    }

    #[test]
    fn the_corpora_break_nothing() {
        for target in Target::ALL {
            let corpus = Corpus::load(target).unwrap();
            for iteration in 0..length(&corpus) {
                let input = mutate::input(&corpus, 1, iteration);
                if let Err(panic) = trap::catch(|| target.run(&input)) {
                    panic!("{target}: {panic}\n  replay: {}", replay(target, 1, iteration));
                }
            }
        }
    }
}
