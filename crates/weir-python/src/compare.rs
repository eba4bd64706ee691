//! `weir.compare`.

use crate::catalog::Catalog;
use crate::error::Failure;
use crate::layout::Layout;
use crate::observation::Observation;
use crate::text::{self, parsed};
use crate::work;
use crate::workload::{Kind, Workload};
use pyo3::prelude::*;
use weir_compare::{Input, Observed, Options, Request, Side};
use weir_report::{Format, Report};
use weir_units::Span;

/// An input of a side.
#[derive(FromPyObject)]
pub(crate) enum Given<'py> {
    Layout(PyRef<'py, Layout>),
    Observation(PyRef<'py, Observation>),
    /// A result in JSON.
    Result(String),
}

/// The same, away from the interpreter.
enum Own {
    Layout(Layout),
    Observation(Observation),
    Result(String),
}

impl Own {
    /// Returns the catalog of a layout.
    fn catalog(&self) -> Option<&Catalog> {
        match self {
            Self::Layout(own) => Some(&own.0.catalog),
            Self::Observation(_) | Self::Result(_) => None,
        }
    }

    fn input(self, layout: Option<&Layout>, catalog: &Catalog) -> Result<Input, Failure> {
        Ok(match self {
            Self::Layout(own) => Input::Layout(Box::new(own.0.layout.clone())),
            Self::Result(text) if weir_compare::is_result(&text) => Input::Result(text),
            Self::Result(_) => {
                let words = "a dict is none of Weir's results; compare those of simulate or of \
                             weir run --output json";
                return Err(Failure::Input(words.to_owned()));
            }
            Self::Observation(own) => {
                let held = &own.0;
                let mut notes = held.notes.clone();
                let kept = || held.header.layout.as_ref();
                let layout = match (layout, kept()) {
                    (Some(layout), _) => Some(layout.0.layout.clone()),
                    (None, None) => None,
                    (None, Some(kept)) => {
                        let parsed = Layout::parse(&kept.name, &kept.text, catalog);
                        if let Err(Failure::Input(error)) = &parsed {
                            notes.push(format!(
                                "{}: the layout of the run, {}, is invalid now ({error}; try catalog \
                                 or layout)",
                                held.name, kept.name
                            ));
                        }
                        parsed.ok().map(|own| own.0.layout.clone())
                    }
                };
                let (header, chunks) = (held.header.clone(), own.chunks());
                Input::Observation(Box::new(Observed { header, chunks, layout, notes }))
            }
        })
    }
}

/// Compares sides with the first one, and returns the report.
#[pyfunction]
#[pyo3(signature = (sides, catalog, *, workload, layouts, tolerance, metrics, subjects, mapping,
    total, seeds, seed, runtime))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn compare<'py>(
    python: Python<'py>,
    sides: Vec<(String, Vec<Given<'py>>)>,
    catalog: &Catalog,
    workload: Option<PyRef<'py, Workload>>,
    layouts: Vec<PyRef<'py, Layout>>,
    tolerance: &str,
    metrics: Vec<String>,
    subjects: Vec<String>,
    mapping: Vec<(String, String)>,
    total: bool,
    seeds: u64,
    seed: u64,
    runtime: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    if !(3..=1000).contains(&seeds) {
        let words = format!("seeds {seeds}: is not a number from 3 to 1000");
        return Err(Failure::Input(words).into());
    }
    let tolerance = weir_units::percent(tolerance)
        .map_err(|error| Failure::Input(format!("tolerance: {error}")))?;
    let options = Options {
        // The share is in millionths.
        tolerance: weir_report::number::float(tolerance) / 1e6,
        subjects: subjects.into_iter().collect(),
        metrics: metrics.into_iter().collect(),
        map: mapping,
        total_only: total,
        seeds,
        seed,
    };
    let runtime: Option<Span> = parsed("runtime", runtime)?;
    if runtime.is_some() && workload.is_none() {
        return Err(Failure::Input("runtime needs a workload".to_owned()).into());
    }
    let workload = workload.map(|own| own.scaled(None, runtime)).transpose()?;
    let layouts: Vec<Layout> = layouts.iter().map(|own| (**own).clone()).collect();
    if layouts.len() > 1 && layouts.len() != sides.len() {
        return Err(Failure::Input(format!(
            "layout is given {} times for {} sides: give it once, or once for each side",
            layouts.len(),
            sides.len()
        ))
        .into());
    }
    let sides: Vec<(String, Vec<Own>)> =
        sides.into_iter().map(|(name, all)| (name, all.into_iter().map(own).collect())).collect();
    // Layouts bring the catalogs that they were made with.
    let all = sides.iter().flat_map(|(_, inputs)| inputs).filter_map(Own::catalog);
    let all = all.chain(layouts.iter().map(|own| &own.0.catalog));
    let catalog = Catalog::joined(std::iter::once(catalog).chain(all))?;
    let answer = work::run(python, move || {
        let workload = workload.map(|own| match own {
            Kind::Jobs(jobs) => weir_compare::Workload::Jobs(jobs),
            Kind::Descriptions(databases, backups) => {
                weir_compare::Workload::Descriptions(databases, backups)
            }
        });
        let mut all = Vec::new();
        for (place, (name, inputs)) in sides.into_iter().enumerate() {
            let layout = if layouts.len() == 1 { layouts.first() } else { layouts.get(place) };
            let inputs = inputs.into_iter().map(|own| own.input(layout, &catalog));
            all.push(Side { name, inputs: inputs.collect::<Result<_, _>>()? });
        }
        let request =
            Request { catalog: &catalog.0.catalog, workload: workload.as_ref(), options: &options };
        Ok(weir_compare::compare(all, &request)?.render(Format::Json))
    })?;
    text::objects(python, &answer)
}

fn own(given: Given<'_>) -> Own {
    match given {
        Given::Layout(own) => Own::Layout(own.clone()),
        Given::Observation(own) => Own::Observation(own.clone()),
        Given::Result(text) => Own::Result(text),
    }
}
