//! `weir.diagnose`.

use crate::catalog::Catalog;
use crate::error::Failure;
use crate::layout::Layout;
use crate::observation::Observation;
use crate::text;
use crate::work::{self, Stop};
use pyo3::prelude::*;
use weir_diagnose::system::{Mapping, Unmatched};
use weir_diagnose::{Facts, Follow, Question, question};
use weir_observe::Block;
use weir_observe::joined::Joined;
use weir_report::diagnosis::DiagnosisReport;
use weir_report::{Format, Report};

/// Samples that are read for gauges of sizes and limits.
const FIRST: usize = 8;

/// Finds the cap that throttles a system, and returns the report.
#[pyfunction]
#[pyo3(signature = (observations, catalog, *, layout=None, edition=None, mapping=Vec::new()))]
pub(crate) fn diagnose<'py>(
    python: Python<'py>,
    observations: Vec<PyRef<'py, Observation>>,
    catalog: &Catalog,
    layout: Option<PyRef<'py, Layout>>,
    edition: Option<String>,
    mapping: Vec<(String, String)>,
) -> PyResult<Bound<'py, PyAny>> {
    let observations: Vec<Observation> = observations.iter().map(|own| (**own).clone()).collect();
    if observations.is_empty() {
        let words = "there is nothing to diagnose: give an observation".to_owned();
        return Err(Failure::Input(words).into());
    }
    let (catalog, layout) = (catalog.clone(), layout.map(|own| own.clone()));
    let answer = work::run_stoppable(python, move |stop| {
        let limits = Limits::resolve(layout.as_ref(), edition, &observations, &catalog);
        let mapping: Mapping = mapping.into_iter().collect();
        let report = report(&observations, &limits, (&mapping, &catalog), stop)?;
        Ok(report.render(Format::Json))
    })?;
    text::objects(python, &answer)
}

/// The limits and their source.
struct Limits {
    layout: Option<Layout>,
    edition: Option<String>,
    words: String,
}

impl Limits {
    /// Takes the limits from the given layout, the given edition, or the layout of the observed run,
    /// in this order.
    fn resolve(
        layout: Option<&Layout>,
        edition: Option<String>,
        observations: &[Observation],
        catalog: &Catalog,
    ) -> Self {
        let with = |layout: Layout, words: String| Self {
            edition: layout.0.layout.edition.clone(),
            layout: Some(layout),
            words,
        };
        if let Some(layout) = layout {
            return with(layout.clone(), format!("the layout {}", layout.0.name));
        }
        if let Some(name) = edition {
            let words = format!("the edition {name} and the observation");
            return Self { layout: None, edition: Some(name), words };
        }
        let without = |words: String| Self { layout: None, edition: None, words };
        let kept = observations.iter().find_map(|own| own.0.header.layout.as_ref());
        let Some(kept) = kept else { return without("the observation".to_owned()) };
        match Layout::parse(&kept.name, &kept.text, catalog) {
            Ok(layout) => with(layout, format!("the layout of the run, {}", kept.name)),
            Err(Failure::Input(error) | Failure::Run(error)) => without(format!(
                "the observation; the layout of the run, {}, is invalid now ({error}; try catalog or \
                 layout)",
                kept.name
            )),
            Err(Failure::Stopped) => without("the observation".to_owned()),
        }
    }
}

fn report(
    observations: &[Observation],
    limits: &Limits,
    (mapping, catalog): (&Mapping, &Catalog),
    stop: &Stop,
) -> Result<DiagnosisReport, Failure> {
    let held = limits.layout.as_ref().map(|own| &own.0);
    // A layout brings the catalog that it was made with.
    let catalog = &held.map_or(catalog, |own| &own.catalog).0.catalog;
    let edition = limits.edition.as_ref().map(|name| catalog.edition(name)).transpose()?;
    let layout = held.map(|own| &own.layout);
    let question = Question { layout, edition, catalog, mapping };
    let parts = observations.iter().map(|own| (own.0.header.clone(), own.chunks()));
    let mut joined = Joined::new(parts.collect());
    let failed = |(index, source): (usize, weir_observe::ReadError)| {
        Failure::Input(format!("{}: {source}", observations[index].0.name))
    };
    // The first samples contain the gauges of sizes and limits.
    let (mut first, mut block) = (Block::new(joined.contents().series.len()), Block::default());
    while first.len() < FIRST {
        joined.next_block(FIRST - first.len(), &mut block).map_err(failed)?;
        if block.is_empty() {
            break;
        }
        block.iter().for_each(|(at, row)| first.push(at, row.iter().copied()));
    }
    let rows = first.iter().map(|(_, row)| row);
    let contents = question::with_gauges(joined.contents(), rows);
    let (system, unmatched) = question.system(&contents)?;
    let mut pass = Follow::new(&system, &contents);
    pass.samples(&first);
    while !block.is_empty() {
        stop.check()?;
        joined.next_block(Block::MOST, &mut block).map_err(failed)?;
        pass.samples(&block);
    }
    let facts: Facts = pass.finish();
    let mut report = question.answer(&contents, &system, &facts, |case, mut found| {
        let text = held.map(|own| own.text.as_str());
        let notes = text.map(|text| weir_diagnose::effect::estimate(case, text, &mut found));
        let mut report = weir_diagnose::report::report(case, found);
        report.notes.extend(notes.into_iter().flatten());
        report
    });
    report.notes.extend(joined.notes());
    report.inputs = observations.iter().map(|own| own.0.name.clone()).collect();
    limits.words.clone_into(&mut report.limits_source);
    report.notes.extend(observations.iter().flat_map(|own| own.0.notes.clone()));
    report.notes.extend(unmatched_note(&unmatched));
    Ok(report)
}

/// Returns a note on entities that are not in the layout.
fn unmatched_note(unmatched: &[Unmatched]) -> Option<String> {
    if unmatched.is_empty() {
        return None;
    }
    let name = |own: &Unmatched| match &own.near {
        Some(near) => format!("{} (nearest: {near})", own.name),
        None => own.name.clone(),
    };
    Some(format!(
        "not in the layout and left out: {}; map names with map={{OBSERVED: LAYOUT}}",
        unmatched.iter().map(name).collect::<Vec<_>>().join(", ")
    ))
}
