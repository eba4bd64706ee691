//! `weir.plan`.

use crate::catalog::Catalog;
use crate::error::Failure;
use crate::layout::Layout;
use crate::observation::Observation;
use crate::text::{self, Given, parsed};
use crate::work;
use pyo3::prelude::*;
use std::fmt::Display;
use std::path::Path;
use weir_catalog::Edition;
use weir_observe::Header;
use weir_observe::sizing::Roles;
use weir_plan::keep::Kept;
use weir_plan::measure::{self, Measure, Samples};
use weir_plan::need::{NeedFile, Wishes};
use weir_plan::proof::prove;
use weir_plan::{DEFAULT_EDITION, Outcome, Question, left_out, plan as planned, report, within};
use weir_report::plan::PlanReport;
use weir_report::{Format, Report};
use weir_units::{Instant, Money, percent};

/// Finds the cheapest layout that meets a need, and returns the report.
#[pyfunction]
#[pyo3(signature = (
    need, catalog, *, observation=None, measure=None, edition=None, budget=None, fastest=false, verify=false
))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are the keyword arguments of Python's function"
)]
pub(crate) fn plan<'py>(
    python: Python<'py>,
    need: Option<&Bound<'py, PyAny>>,
    catalog: &Catalog,
    observation: Option<PyRef<'py, Observation>>,
    measure: Option<Measuring>,
    edition: Option<String>,
    budget: Option<&str>,
    fastest: bool,
    verify: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let given = need.map(|need| Given::from_value("need", need)).transpose()?;
    let mut file = match given {
        Some(Given::Mapping(mapping)) => {
            NeedFile::read("need", &text::toml_of("need", &mapping)?).map_err(Failure::from)?
        }
        Some(Given::File(path)) => read(&path)?,
        None => NeedFile::default(),
    };
    if edition.is_some() {
        file.edition = edition;
    }
    let measure = measure.map(Measuring::measure).transpose()?.unwrap_or_default();
    let observation = observation.map(|own| (own.clone(), measure));
    let request = Request {
        file,
        observation,
        budget: parsed("budget", budget)?,
        fastest,
        verify,
        catalog: catalog.clone(),
    };
    let answer = work::run(python, move || request.answer())?;
    text::objects(python, &answer)
}

fn read(path: &Path) -> Result<NeedFile, Failure> {
    let mut file = NeedFile::read(&path.display().to_string(), &text::read(path, "need file")?)?;
    // A path in a need file is relative to its folder.
    if let (Some(folder), Some(keep)) = (path.parent(), &file.keep) {
        file.keep = Some(folder.join(keep));
    }
    Ok(file)
}

/// How an observation is measured, in the notation of the command line.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Measuring {
    percentile: Option<String>,
    growth: Option<String>,
    roles: Vec<(String, String)>,
    as_observed: bool,
}

impl Measuring {
    fn measure(self) -> Result<Measure, Failure> {
        let own = Measure::default();
        let wrong = |name: &str, reason: &dyn Display| Failure::Input(format!("{name}: {reason}"));
        let percentile = self.percentile.as_deref().map(measure::percentile).transpose();
        let percentile = percentile.map_err(|reason| wrong("percentile", &reason))?;
        let growth = self.growth.as_deref().map(percent).transpose();
        let growth = growth.map_err(|reason| wrong("growth", &reason))?;
        let said = self.roles.into_iter().map(|(name, role)| {
            measure::role(&format!("{name}={role}")).map_err(|_| {
                let words = "is not a role; roles are data, log, tempdb and backup";
                Failure::Input(format!("roles: {name}: {role:?} {words}"))
            })
        });
        Ok(Measure {
            percentile: percentile.unwrap_or(own.percentile),
            growth: growth.unwrap_or(own.growth),
            roles: Roles { said: said.collect::<Result<_, _>>()? },
            is_as_observed: self.as_observed,
            is_size_asked: true,
            hours: None,
        })
    }
}

impl Samples for Observation {
    type Error = Failure;

    fn header(&self) -> Result<Header, Failure> {
        Ok(self.0.header.clone())
    }

    fn each(&self, take: &mut dyn FnMut(Instant, &[Option<i64>])) -> Result<(), Failure> {
        let mut chunks = self.chunks();
        let mut row = Vec::new();
        let failed = |source| Failure::Input(format!("{}: {source}", self.0.name));
        while let Some(chunk) = chunks().map_err(failed)? {
            for (sample, at) in chunk.times.iter().enumerate() {
                chunk.row(sample, &mut row);
                take(*at, &row);
            }
        }
        Ok(())
    }
}

struct Request {
    file: NeedFile,
    /// An observation to size for, and how it is measured.
    observation: Option<(Observation, Measure)>,
    budget: Option<Money>,
    fastest: bool,
    verify: bool,
    catalog: Catalog,
}

impl Request {
    fn answer(self) -> Result<String, Failure> {
        let Self { mut file, observation, budget, fastest, verify, catalog } = self;
        let held = &catalog.0.catalog;
        let mut notes = Vec::new();
        if let Some((observation, own)) = &observation {
            let there = file.keep.as_ref().map(|path| Layout::read(path, &catalog)).transpose()?;
            let present = there.map(|own| own.0.layout.clone());
            let name = observation.0.name.as_str();
            notes = measure::fill(&mut file, (name, observation), own, (present, held))?;
            notes.extend(observation.0.notes.clone());
        }
        let (mut need, assumed) = file.need()?;
        notes.extend(assumed);
        let mut wishes = file.wishes();
        let there = keep(&mut file, &mut wishes, &catalog)?;
        wishes.needs_limits = budget.is_some() || fastest;
        notes.extend(wishes.keep.as_ref().and_then(Kept::note));
        let kept = there.as_ref().map(|own| edition_there(own, held)).transpose()?;
        let edition = edition(&file, kept, held)?;
        let in_use = wishes.keep.as_ref();
        notes.extend(in_use.and_then(|own| own.no_smaller(&file, &mut need, edition)));
        let place = [&file.region, &file.currency, &file.os].map(Option::as_deref);
        let book = edition.price_book(place[0], place[1], place[2])?;
        let prices = book.as_ref();
        let question = Question { catalog: held, edition, prices, need: &need, wishes: &wishes };
        let mut outcome = match (budget, fastest) {
            (None, false) => planned(&question)?,
            (budget, _) => within(&question, budget)?,
        };
        // The most that a budget or a machine allows leaves no extra capacity.
        let may_grow = budget.is_none() && !fastest;
        let proof = match verify {
            true => Some(prove(&question, &mut outcome, None, may_grow)?),
            false => None,
        };
        if matches!(outcome, Outcome::NotMet(_)) {
            notes.extend(left_out(&question)?);
        }
        let mut report = report::plan_report(edition, prices, &outcome, notes);
        match proof {
            Some(proof) => report::add_proof(&mut report, proof),
            None => {
                let notes = report::notes_without_proof(&need, &report, may_grow);
                report.notes.extend(notes);
            }
        }
        if let Some(layout) = &there {
            price(&mut report, layout, &question)?;
        }
        Ok(report.render(Format::Json))
    }
}

/// Reads the layout to keep, if there is one, into the constraints.
fn keep(
    file: &mut NeedFile,
    wishes: &mut Wishes,
    catalog: &Catalog,
) -> Result<Option<Layout>, Failure> {
    let Some(path) = &file.keep else {
        if file.no_downtime {
            return Err(Failure::Input("no_downtime needs keep, the layout in use".to_owned()));
        }
        return Ok(None);
    };
    let layout = Layout::read(path, catalog)?;
    let own = &layout.0.layout;
    if file.region.is_none() {
        file.region.clone_from(&own.region);
    }
    wishes.region.clone_from(&file.region);
    wishes.keep = Some(Kept::from_layout(own, file.no_downtime)?);
    Ok(Some(layout))
}

/// Returns the edition of the layout in use.
fn edition_there<'a>(
    layout: &Layout,
    catalog: &'a weir_catalog::Catalog,
) -> Result<&'a Edition, Failure> {
    let name = layout.0.layout.edition.as_deref().ok_or_else(|| {
        Failure::Input(format!(
            "{}: the layout to keep has no edition, so the tiers of its disks are unknown; add \
             edition = \"NAME\" to it",
            layout.0.name
        ))
    })?;
    Ok(catalog.edition(name)?)
}

/// Adds the price of the layout in use, and its difference from that of the plan.
fn price(report: &mut PlanReport, layout: &Layout, question: &Question<'_>) -> Result<(), Failure> {
    let bill = |own: &weir_layout::Layout| own.bill(Some(question.edition), question.prices);
    let text = report.plan.as_ref().map(|plan| plan.layout.as_str());
    let planned = text.map(|text| weir_layout::Layout::parse("plan", text, question.catalog));
    let planned = planned.transpose()?.map(|own| bill(&own));
    let name = layout.0.name.clone();
    report.present = Some(report::present(name, &bill(&layout.0.layout), planned.as_ref()));
    Ok(())
}

/// Returns the edition to plan with: that of the layout in use, if there is one.
fn edition<'a>(
    file: &NeedFile,
    kept: Option<&'a Edition>,
    catalog: &'a weir_catalog::Catalog,
) -> Result<&'a Edition, Failure> {
    let said = file.edition.as_deref().map(|name| catalog.edition(name)).transpose()?;
    match (said, kept) {
        (Some(said), Some(kept)) if said.name() != kept.name() => Err(Failure::Input(format!(
            "edition {}: the layout to keep has the edition {}; leave out one of the two",
            said.name(),
            kept.name()
        ))),
        (Some(edition), _) | (None, Some(edition)) => Ok(edition),
        (None, None) => Ok(catalog.edition(DEFAULT_EDITION)?),
    }
}
