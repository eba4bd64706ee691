//! Running labs in virtual and wall time, and comparing their figures.

use crate::error::LabError;
use crate::figure::Wanted;
use crate::file::Lab;
use crate::options::{Clocks, Options, wall_runtime};
use crate::work::{Outcome, Work};
use crate::{metric, notes};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use weir_catalog::Catalog;
use weir_report::lab::{Asked, Figure, LabReport, LabReports, Value, Verdict};
use weir_units::Bytes;

/// Runs `labs` one after the other, and reports progress through `talk`.
///
/// # Errors
///
/// [`LabError`]; for invalid options before anything runs. A missed figure is not an error.
pub fn run(
    labs: &[Lab],
    catalog: &Catalog,
    options: &Options,
    talk: &mut dyn FnMut(&str),
) -> Result<LabReports, LabError> {
    let rounds =
        labs.iter().map(|lab| Round::read(lab, catalog, options)).collect::<Result<Vec<_>, _>>()?;
    for round in &rounds {
        round.check()?;
    }
    let reports = rounds.iter().map(|round| round.run(talk));
    Ok(LabReports(reports.collect::<Result<_, _>>()?))
}

type Outcomes<'a> = BTreeMap<&'a str, Outcome<'a>>;

/// A lab in execution.
struct Round<'a> {
    lab: &'a Lab,
    options: &'a Options,
    wanted: Vec<Wanted<'a>>,
    works: Vec<(&'a str, Work<'a>)>,
}

impl<'a> Round<'a> {
    fn read(lab: &'a Lab, catalog: &'a Catalog, options: &'a Options) -> Result<Self, LabError> {
        let works = lab
            .file
            .run
            .iter()
            .map(|keys| {
                let work = Work::read(lab, keys, catalog, options)?;
                Ok((keys.id.as_str(), work))
            })
            .collect::<Result<_, LabError>>()?;
        Ok(Self { lab, options, wanted: lab.wanted()?, works })
    }

    /// Checks the options against the lab, before anything runs.
    fn check(&self) -> Result<(), LabError> {
        // The largest of the required sizes is reported, not the first.
        let mut too_small: Option<(Bytes, LabError)> = None;
        for (id, work) in &self.works {
            if matches!(work, Work::Jobs(_)) && !self.is_in_wall_time(id) {
                continue;
            }
            match work.check() {
                Err(error @ LabError::TooSmall { least, .. }) => {
                    if too_small.as_ref().is_none_or(|(most, _)| least > *most) {
                        too_small = Some((least, error));
                    }
                }
                other => other?,
            }
        }
        too_small.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn run(&self, talk: &mut dyn FnMut(&str)) -> Result<LabReport, LabError> {
        let clocks = self.options.clocks;
        let mut virtually = Outcomes::new();
        if clocks != Clocks::Wall {
            virtually = self.virtually(talk)?;
        }
        if clocks == Clocks::Virtual {
            return Ok(self.report(0, self.figures(&virtually, &Outcomes::new())?));
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let figures = self.figures(&virtually, &self.really(tries, talk)?)?;
            if tries >= self.options.tries || !figures.iter().any(misses_in_wall_time) {
                return Ok(self.report(tries, figures));
            }
        }
    }

    fn virtually(&self, talk: &mut dyn FnMut(&str)) -> Result<Outcomes<'_>, LabError> {
        let runs = self.works.iter().map(|(id, work)| {
            self.go_on()?;
            if !matches!(work, Work::Layout(_) | Work::Plan(_)) {
                talk(&format!("{}: {id} in virtual time", self.lab.name));
            }
            Ok((*id, work.virtually()?))
        });
        runs.collect()
    }

    fn really(&self, tries: u32, talk: &mut dyn FnMut(&str)) -> Result<Outcomes<'_>, LabError> {
        let runtime = wall_runtime(self.lab, self.options);
        if let Some(tries) = self.said_tries(tries) {
            talk(&format!("{}: {tries}", self.lab.name));
        }
        let mut outcomes = Outcomes::new();
        for (id, work) in &self.works {
            self.go_on()?;
            if matches!(work, Work::Jobs(_)) && !self.is_in_wall_time(id) {
                continue;
            }
            if work.is_in_wall_time() {
                talk(&format!("{}: {id} in wall time, {runtime}", self.lab.name));
            }
            outcomes.extend(work.really()?.map(|outcome| (*id, outcome)));
        }
        Ok(outcomes)
    }

    fn go_on(&self) -> Result<(), LabError> {
        match self.options.stop.load(Ordering::Relaxed) {
            true => Err(LabError::Interrupted),
            false => Ok(()),
        }
    }

    /// Returns the note about tries, if more than one is allowed.
    fn said_tries(&self, tries: u32) -> Option<String> {
        let allowed = self.options.tries;
        (allowed > 1 && tries > 0).then(|| format!("wall: try {tries} of {allowed}"))
    }

    fn figures(
        &self,
        virtually: &Outcomes<'_>,
        really: &Outcomes<'_>,
    ) -> Result<Vec<Figure>, LabError> {
        self.wanted.iter().map(|wanted| self.figure(wanted, virtually, really)).collect()
    }

    fn figure(
        &self,
        wanted: &Wanted<'_>,
        virtually: &Outcomes<'_>,
        really: &Outcomes<'_>,
    ) -> Result<Figure, LabError> {
        let (keys, clocks) = (wanted.keys, self.options.clocks);
        let is_of_both = metric::is_of_both_clocks(&keys.metric);
        let simulated = really.get(wanted.run).and_then(|own| metric::expected(keys, own));
        let virtual_time =
            if is_of_both { simulated.clone() } else { self.value(wanted, virtually)? };
        let figure = Figure {
            id: wanted.id.clone(),
            unit: keys.unit.clone().unwrap_or_else(|| metric::unit(&keys.metric).to_owned()),
            published: wanted.published.clone(),
            expected: simulated.unwrap_or_else(|| wanted.expected.clone()),
            place: keys.place.clone(),
            virtual_time,
            wall: self.value(wanted, really)?,
            compare: keys.compare,
            tolerance: keys.tolerance(),
            basis: keys.basis,
            verdict: Verdict::NotRun,
            explained: wanted.explained.clone(),
            explained_miss: false,
            class: keys.class.clone(),
            note: keys.note.clone(),
        };
        Ok(figure.judge(Asked {
            virtual_time: clocks != Clocks::Wall && !is_of_both,
            wall: clocks != Clocks::Virtual
                && !metric::virtual_only(&keys.metric)
                && self.is_in_wall_time(wanted.run),
        }))
    }

    /// Returns whether a run takes place in wall time.
    fn is_in_wall_time(&self, run: &str) -> bool {
        let mut runs = self.lab.file.run.iter().filter(|own| own.id == run);
        let own = runs.next().and_then(|own| own.not_in_wall_time.as_ref());
        own.or(self.lab.file.not_in_wall_time.as_ref()).is_none()
    }

    /// Returns the value of a figure in the runs of one clock.
    fn value(
        &self,
        wanted: &Wanted<'_>,
        outcomes: &Outcomes<'_>,
    ) -> Result<Option<Value>, LabError> {
        let read = |id: &str| match outcomes.get(id) {
            None => Ok(None),
            Some(outcome) => metric::read(wanted.keys, outcome).map_err(|reason| {
                let reason = format!("figure {:?}: {reason}", wanted.id);
                LabError::Lab { lab: self.lab.name.clone(), reason }
            }),
        };
        let own = read(wanted.run)?;
        let Some(per) = &wanted.keys.per else { return Ok(own) };
        let number = |value: Option<Value>| value.and_then(|value| value.number());
        let pair = number(own).zip(number(read(per)?));
        Ok(pair.filter(|(_, per)| *per > 0.0).map(|(own, per)| Value::Number(own / per)))
    }

    fn report(&self, tries: u32, figures: Vec<Figure>) -> LabReport {
        let Lab { name, file } = self.lab;
        let works = self.works.iter().map(|(_, work)| work);
        let mut notes = notes::collect(self.lab, self.options, works);
        notes.extend(self.said_tries(tries));
        notes.extend(notes::by_class(&figures));
        let left_out = file.left_out.iter();
        notes.extend(left_out.map(|own| format!("left out: {}: {}", own.id, own.why)));
        LabReport {
            lab: name.clone(),
            title: file.title.clone(),
            article: file.article.clone(),
            figures,
            tries,
            notes,
        }
    }
}

fn misses_in_wall_time(figure: &Figure) -> bool {
    matches!(figure.verdict, Verdict::MissesWall | Verdict::MissesBoth | Verdict::NotMeasured)
}
