//! Running labs on either clock, and judging what they give.

use crate::bench::Bench;
use crate::error::LabError;
use crate::file::{FigureKeys, Lab};
use crate::metric;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_report::lab::{Asked, Figure, LabReport, LabReports, Verdict};
use weir_report::run::RunReport;
use weir_units::{Bytes, Span};

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

/// How to run labs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which clocks.
    pub clocks: Clocks,
    /// Who drives the wall clock's jobs.
    pub driver: Driver,
    /// The largest size of a job's files in wall time; the article's larger ones are
    /// made as large.
    pub size: Bytes,
    /// How long each job runs in wall time, instead of the article's.
    pub runtime: Span,
    /// How often a lab is run in wall time at most, until its figures hold there. The
    /// last time counts, as a whole.
    pub tries: u32,
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
            tries: 1,
            seed: 1,
            stop: Arc::default(),
        }
    }
}

/// Runs `labs`, one after the other; says what it is doing through `talk`.
///
/// # Errors
///
/// [`LabError`]: of the options before anything runs. A figure that misses is none.
pub fn run(
    labs: &[Lab],
    catalog: &Catalog,
    options: &Options,
    talk: &mut dyn FnMut(&str),
) -> Result<LabReports, LabError> {
    let layouts = labs.iter().map(|lab| {
        let (name, text) = lab.text(lab.file.layout_text.as_ref(), lab.file.layout.as_ref())?;
        Ok(Layout::parse(&name, text, catalog)?)
    });
    let layouts = layouts.collect::<Result<Vec<_>, LabError>>()?;
    let benches = labs.iter().zip(&layouts);
    let benches = benches.map(|(lab, layout)| Bench { lab, layout, catalog, options });
    let mut rounds: Vec<Round<'_>> = benches.map(|bench| Round { bench, tries: 0 }).collect();
    for round in &rounds {
        round.bench.check()?;
    }
    let reports = rounds.iter_mut().map(|round| round.run(talk));
    Ok(LabReports(reports.collect::<Result<_, _>>()?))
}

type Runs<'a> = BTreeMap<&'a str, RunReport>;

/// One lab as it is run.
struct Round<'a> {
    bench: Bench<'a>,
    /// How often it was run in wall time.
    tries: u32,
}

impl<'a> Round<'a> {
    fn run(&mut self, talk: &mut dyn FnMut(&str)) -> Result<LabReport, LabError> {
        let clocks = self.bench.options.clocks;
        let mut virtually = Runs::new();
        if clocks != Clocks::Wall {
            virtually = self.virtually(talk)?;
        }
        if clocks == Clocks::Virtual {
            return Ok(self.report(self.figures(&virtually, &Runs::new())?));
        }
        loop {
            self.tries += 1;
            let figures = self.figures(&virtually, &self.really(talk)?)?;
            if self.tries >= self.bench.options.tries || !figures.iter().any(misses_in_wall_time) {
                return Ok(self.report(figures));
            }
        }
    }

    fn virtually(&self, talk: &mut dyn FnMut(&str)) -> Result<Runs<'a>, LabError> {
        let lab = self.bench.lab;
        let runs = lab.file.run.iter().map(|keys| {
            self.go_on()?;
            talk(&format!("{}: {} in virtual time", lab.name, keys.id));
            Ok((keys.id.as_str(), self.bench.virtually(keys)?))
        });
        runs.collect()
    }

    fn really(&self, talk: &mut dyn FnMut(&str)) -> Result<Runs<'a>, LabError> {
        let (lab, runtime) = (self.bench.lab, self.bench.wall_runtime());
        if let Some(tries) = self.said_tries() {
            talk(&format!("{}: {tries}", lab.name));
        }
        let runs = lab.file.run.iter().map(|keys| {
            self.go_on()?;
            talk(&format!("{}: {} in wall time, {runtime}", lab.name, keys.id));
            Ok((keys.id.as_str(), self.bench.really(keys)?))
        });
        runs.collect()
    }

    fn go_on(&self) -> Result<(), LabError> {
        match self.bench.options.stop.load(Ordering::Relaxed) {
            true => Err(LabError::Interrupted),
            false => Ok(()),
        }
    }

    /// Where more than one try is allowed.
    fn said_tries(&self) -> Option<String> {
        let allowed = self.bench.options.tries;
        (allowed > 1 && self.tries > 0).then(|| format!("wall: try {} of {allowed}", self.tries))
    }

    fn figures(&self, virtually: &Runs<'_>, really: &Runs<'_>) -> Result<Vec<Figure>, LabError> {
        let figures = self.bench.lab.file.figure.iter();
        figures.map(|keys| self.figure(keys, virtually, really)).collect()
    }

    fn figure(
        &self,
        keys: &FigureKeys,
        virtually: &Runs<'_>,
        really: &Runs<'_>,
    ) -> Result<Figure, LabError> {
        let value = |runs: &Runs<'_>| value(self.bench.lab, keys, runs);
        let clocks = self.bench.options.clocks;
        let figure = Figure {
            id: keys.id.clone(),
            unit: keys.unit.clone().unwrap_or_else(|| metric::unit(&keys.metric).to_owned()),
            published: keys.published,
            // A lab has one of the two, see `Lab::read`.
            expected: keys.published.or(keys.expected).unwrap_or(f64::NAN),
            place: keys.place.clone(),
            virtual_time: value(virtually)?,
            wall: value(really)?,
            compare: keys.compare.into(),
            tolerance: keys.tolerance(),
            basis: keys.basis.into(),
            verdict: Verdict::NotRun,
            note: keys.note.clone(),
        };
        Ok(figure.judge(Asked {
            virtual_time: clocks != Clocks::Wall,
            wall: clocks != Clocks::Virtual && !metric::virtual_only(&keys.metric),
        }))
    }

    fn report(&self, figures: Vec<Figure>) -> LabReport {
        let Lab { name, file } = self.bench.lab;
        let mut notes = self.bench.notes();
        notes.extend(self.said_tries());
        LabReport {
            lab: name.clone(),
            title: file.title.clone(),
            article: file.article.clone(),
            figures,
            tries: self.tries,
            notes,
        }
    }
}

fn misses_in_wall_time(figure: &Figure) -> bool {
    matches!(figure.verdict, Verdict::MissesWall | Verdict::MissesBoth | Verdict::NotMeasured)
}

/// A figure in the runs of one clock.
fn value(lab: &Lab, keys: &FigureKeys, runs: &Runs<'_>) -> Result<Option<f64>, LabError> {
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
