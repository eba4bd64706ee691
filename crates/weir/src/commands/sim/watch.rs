//! Driver of a run in either clock: progress, observation, plot and Ctrl-C.
//!
//! Pausing a run does not change it, so the driver pauses it whenever a sample is due.

use crate::cli::{RunArgs, RunOptions, SimArgs};
use crate::commands::observe::picture::Picture;
use crate::commands::page;
use crate::error::CliError;
use crate::input::read;
use crate::progress::Progress;
use crate::signals::Signals;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use weir_observe::format::SIGNATURE;
use weir_observe::run::{Sample, Shape};
use weir_observe::{Header, LayoutText, Source, SourceKind, WriteError, Writer};
use weir_report::number::{float, rate};
use weir_units::{Instant, Span};

/// Interval between updates of the progress, in the time of the run.
const SLICE: Span = Span::from_millis(100);
/// Default sampling interval, in the time of the run.
const EVERY: Span = Span::from_secs(1);
/// Flush interval of a run in wall time. Such a run cannot be repeated, so a kill must not lose
/// more of its observation than this.
const KEPT: Span = Span::from_secs(10);

/// The requested outputs of a run.
pub(crate) struct Watched<'a> {
    layout: &'a Path,
    jobs: &'a [PathBuf],
    run: &'a RunOptions,
    kind: SourceKind,
}

impl Watched<'_> {
    /// Checks the outputs before anything is simulated or served.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let others = self.jobs.iter().chain(&self.run.observe).chain(&self.run.plot);
        let others = others.map(PathBuf::as_path).chain([self.layout]);
        page::check(self.run.html.as_deref(), others)
    }
}

impl<'a> From<&'a SimArgs> for Watched<'a> {
    fn from(args: &'a SimArgs) -> Self {
        Self {
            layout: &args.layout,
            jobs: &args.jobs,
            run: &args.run,
            kind: SourceKind::VirtualRun,
        }
    }
}

impl<'a> From<&'a RunArgs> for Watched<'a> {
    fn from(args: &'a RunArgs) -> Self {
        Self { layout: &args.layout, jobs: &args.jobs, run: &args.run, kind: SourceKind::WallRun }
    }
}

/// A run in either clock.
pub(crate) trait Drive {
    /// Advances the run to `until` and returns the time of its next event.
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, CliError>;
    /// Returns the present time of the run.
    fn now(&self) -> Instant;
    /// Returns the number of completed I/Os.
    fn completed(&self) -> u64;
    /// Returns the entities and series to observe.
    fn shape(&self) -> Shape;
    /// Returns the present values of the series.
    fn sample(&mut self) -> Sample;
}

/// A run that a signal ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopped {
    at: Instant,
    /// Exit code, by the convention of shells.
    pub(crate) code: u8,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = rate(float(self.at.nanos()) / 1e9);
        write!(f, "interrupted after {seconds} s of the run; the report ends there")
    }
}

/// The end of a run.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The signal that ended it early.
    pub(crate) stopped: Option<Stopped>,
    /// The run over time, for its page.
    pub(crate) picture: Option<Picture>,
}

impl Ended {
    /// Returns how a run ended, apart from the run over time.
    pub(crate) fn split(
        ended: Result<Self, CliError>,
    ) -> (Result<Option<Stopped>, CliError>, Option<Picture>) {
        match ended {
            Ok(ended) => (Ok(ended.stopped), ended.picture),
            Err(error) => (Err(error), None),
        }
    }
}

/// The observers of a run.
pub(crate) struct Watch<'s> {
    signals: &'s Signals,
    observed: Option<Observed>,
}

impl<'s> Watch<'s> {
    /// Starts the outputs that `args` request. A signal ends the run in an orderly way.
    pub(crate) fn begin<'a>(
        args: impl Into<Watched<'a>>,
        run: &impl Drive,
        signals: &'s Signals,
    ) -> Result<Self, CliError> {
        let args = &args.into();
        let wanted = [&args.run.observe, &args.run.plot, &args.run.html];
        let wanted = wanted.iter().any(|path| path.is_some());
        let observed = if wanted { Some(Observed::begin(args, run.shape())?) } else { None };
        Ok(Self { signals, observed })
    }

    /// Drives `run` to its end or until a signal arrives.
    pub(crate) fn drive(
        mut self,
        run: &mut impl Drive,
        progress: Progress,
    ) -> Result<Ended, CliError> {
        let mut until = Instant::ZERO;
        let stopped = loop {
            let next = match run.run_until(until) {
                Ok(Some(next)) => next,
                Ok(None) => break Ok(None),
                // The observation so far is kept.
                Err(error) => break Err(error),
            };
            progress.at(until, run.completed());
            if let Some(observed) = &mut self.observed {
                // The run has no event before `next`.
                observed.pass(next, || run.sample())?;
            }
            if let Some(code) = self.signals.code() {
                break Ok(Some(Stopped { at: until, code }));
            }
            until = next + SLICE;
            if let Some(observed) = &self.observed {
                until = until.min(observed.due);
            }
        };
        drop(progress);
        if let Some(observed) = self.observed {
            let end = match &stopped {
                Ok(Some(stopped)) => stopped.at,
                Ok(None) | Err(_) => run.now(),
            };
            let picture = observed.finish(end, &run.sample(), matches!(stopped, Ok(None)))?;
            return Ok(Ended { stopped: stopped?, picture });
        }
        Ok(Ended { stopped: stopped?, picture: None })
    }
}

/// The files written about a run: an observation, a plot, or both.
struct Observed {
    every: Span,
    /// Time of the next sample.
    due: Instant,
    last: Option<Instant>,
    /// Time of the next flush, for a run in wall time.
    kept: Option<Instant>,
    shape: Shape,
    row: Vec<Option<i64>>,
    file: Option<(PathBuf, Writer<File>)>,
    plot: Option<PathBuf>,
    /// For the plot, and for the page of the run.
    picture: Option<Picture>,
}

impl Observed {
    fn begin(args: &Watched<'_>, shape: Shape) -> Result<Self, CliError> {
        let every = args.run.every.unwrap_or(EVERY);
        let header = header(args, every, &shape)?;
        let file = match &args.run.observe {
            None => None,
            Some(path) => {
                check_replaceable(path)?;
                let failed = |source| CliError::write(path, source);
                let file = File::create(path).map_err(failed)?;
                let failed = |source| CliError::Observe { path: path.to_owned(), source };
                Some((path.to_owned(), Writer::new(file, &header).map_err(failed)?))
            }
        };
        let plot = args.run.plot.clone();
        let is_drawn = plot.is_some() || args.run.html.is_some();
        let picture = is_drawn.then(|| Picture::new(&header));
        let (due, last, row) = (Instant::ZERO, None, Vec::new());
        let kept = (args.kind == SourceKind::WallRun).then_some(Instant::ZERO + KEPT);
        Ok(Self { every, due, last, kept, shape, row, file, plot, picture })
    }

    /// Writes the samples due before `next`, while the counters stay as they are.
    fn pass(&mut self, next: Instant, sample: impl FnOnce() -> Sample) -> Result<(), CliError> {
        if self.due < next {
            self.shape.row(&sample(), &mut self.row);
        }
        while self.due < next {
            self.write(self.due)?;
            self.due += self.every;
        }
        if self.kept.is_some_and(|kept| kept <= next) {
            self.kept = Some(next + KEPT);
            if let Some((path, writer)) = &mut self.file {
                writer.flush().map_err(|source| observe(path, source))?;
            }
        }
        Ok(())
    }

    /// Writes `row` as a sample.
    fn write(&mut self, at: Instant) -> Result<(), CliError> {
        if let Some((path, writer)) = &mut self.file {
            writer.sample(at, &self.row).map_err(|source| observe(path, source))?;
        }
        if let Some(picture) = &mut self.picture {
            picture.sample(at, &self.row);
        }
        self.last = Some(at);
        Ok(())
    }

    fn finish(
        mut self,
        end: Instant,
        sample: &Sample,
        complete: bool,
    ) -> Result<Option<Picture>, CliError> {
        if self.last.is_none_or(|last| last < end) {
            self.shape.row(sample, &mut self.row);
            self.write(end)?;
        }
        if let Some((path, writer)) = self.file {
            writer.finish(complete).map_err(|source| observe(&path, source))?;
        }
        if let (Some(path), Some(picture)) = (&self.plot, &self.picture) {
            picture.write(path)?;
        }
        Ok(self.picture)
    }
}

fn observe(path: &Path, source: WriteError) -> CliError {
    CliError::Observe { path: path.to_owned(), source }
}

fn header(args: &Watched<'_>, every: Span, shape: &Shape) -> Result<Header, CliError> {
    let jobs: Vec<String> = args.jobs.iter().map(|path| path.display().to_string()).collect();
    let about = BTreeMap::from([
        ("seed".to_owned(), args.run.seed.to_string()),
        ("jobs".to_owned(), jobs.join(", ")),
    ]);
    let by = format!("weir {}", env!("CARGO_PKG_VERSION"));
    let mut header = Header::new(Source { kind: args.kind.clone(), by, about });
    header.interval_ns = Some(every.nanos());
    let (name, text) = (args.layout.display().to_string(), read(args.layout, "layout")?);
    header.layout = Some(LayoutText { name, text });
    header.contents = shape.contents();
    Ok(header)
}

/// Refuses to overwrite a file that is not an observation.
fn check_replaceable(path: &Path) -> Result<(), CliError> {
    let Ok(mut file) = File::open(path) else { return Ok(()) };
    if !file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
        return Ok(());
    }
    let mut begin = SIGNATURE;
    if file.read_exact(&mut begin).is_err() || begin != SIGNATURE {
        return Err(CliError::Refused(format!(
            "--observe {}: it exists and is not an observation; give another name",
            path.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::OutputArgs;
    use std::fs;
    use weir_observe::Reader;

    /// Returns the number of samples in the file of an unfinished run.
    fn kept(kind: SourceKind) -> usize {
        let folder = tempfile::tempdir().unwrap();
        let (layout, path) = (folder.path().join("l.toml"), folder.path().join("o.weirobs"));
        fs::write(&layout, "").unwrap();
        let run = RunOptions {
            seed: 1,
            every: None,
            observe: Some(path.clone()),
            plot: None,
            html: None,
            quiet: true,
            output: OutputArgs::default(),
        };
        let args = Watched { layout: &layout, jobs: &[], run: &run, kind };
        let mut observed = Observed::begin(&args, Shape::default()).unwrap();
        for slice in 1..=250 {
            observed.pass(Instant::ZERO + Span::from_millis(100 * slice), Sample::default).unwrap();
        }
        let mut reader = Reader::open(File::open(&path).unwrap()).unwrap();
        let chunks = std::iter::from_fn(|| reader.next_chunk().unwrap());
        chunks.map(|chunk| chunk.times.len()).sum()
    }

    #[test]
    fn samples_of_a_wall_run_are_in_the_file_after_10_seconds() {
        assert_eq!(kept(SourceKind::WallRun), 20);
        // A virtual run can be repeated, so its file is not flushed and compresses best.
        assert_eq!(kept(SourceKind::VirtualRun), 0);
    }
}
