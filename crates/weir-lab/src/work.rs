//! The runs of a lab, and their outcomes.

use crate::backups::{self, Measured};
use crate::bench::Bench;
use crate::error::LabError;
use crate::file::{Lab, RunKeys};
use crate::oltp::Databases;
use crate::options::Options;
use crate::planned::Planned;
use crate::tuned::Tuning;
use weir_catalog::{Catalog, Edition};
use weir_layout::Layout;
use weir_oltp::Description;
use weir_report::oltp::OltpReport;
use weir_report::run::RunReport;
use weir_report::tune::TuneReport;
use weir_workload::{Isolated, fio};

/// A run, read and checked.
pub(crate) enum Work<'a> {
    /// fio jobs.
    Jobs(Box<Bench<'a>>),
    /// Databases under load.
    Databases(Box<Databases<'a>>),
    /// A layout alone, whose check is the result.
    Layout(Box<Checked<'a>>),
    /// A need, whose plan is the result.
    Plan(Box<Planned>),
    /// A layout to tune, whose record is the result.
    Tune(Box<Tuning<'a>>),
}

/// A layout as `weir layout check` reads it.
pub(crate) struct Checked<'a> {
    /// The layout, or the error.
    pub(crate) layout: Result<Layout, String>,
    /// The edition, if there is one.
    pub(crate) edition: Option<&'a Edition>,
}

/// The outcome of a run.
pub(crate) enum Outcome<'a> {
    /// Results of fio jobs.
    Jobs(Box<RunReport>),
    /// Results of databases, or of backups in virtual time.
    Databases(Box<OltpReport>),
    /// Results of backups in wall time.
    Backups(Box<Measured>),
    /// A checked layout.
    Layout(&'a Checked<'a>),
    /// A plan.
    Plan(&'a Planned),
    /// The record of a tuned layout.
    Tune(Box<TuneReport>),
}

impl<'a> Work<'a> {
    /// Reads a run of `lab`.
    pub(crate) fn read(
        lab: &'a Lab,
        keys: &'a RunKeys,
        catalog: &'a Catalog,
        options: &'a Options,
    ) -> Result<Self, LabError> {
        if let Some(need) = &keys.need_text {
            return Ok(Self::Plan(Box::new(Planned::read(lab, keys, need, catalog)?)));
        }
        if let Some(goal) = &keys.tune {
            let tuning = Tuning::read(lab, keys, goal, catalog, options.seed)?;
            return Ok(Self::Tune(Box::new(tuning)));
        }
        let (name, text) = lab.layout_of(keys)?;
        let layout = Layout::parse(&name, &text, catalog);
        let (oltp, backups) = (lab.oltp_of(keys)?, lab.backups_of(keys)?);
        match (lab.jobs_of(keys)?, oltp.is_empty() && backups.is_empty()) {
            (Some((name, text)), true) => {
                let jobs = fio::parse(&name, text, &Isolated)?;
                let layout = layout?;
                Ok(Self::Jobs(Box::new(Bench { lab, keys, jobs, layout, catalog, options })))
            }
            (None, false) => {
                let descriptions = oltp
                    .iter()
                    .map(|(name, text)| Description::parse(name, text))
                    .collect::<Result<_, _>>()?;
                let layout = layout?;
                let backups = backups
                    .iter()
                    .map(|(name, text): &(String, &str)| {
                        weir_pipeline::Description::parse(name, text)
                    })
                    .collect::<Result<_, _>>()?;
                let databases =
                    Databases { lab, catalog, keys, descriptions, backups, layout, options };
                Ok(Self::Databases(Box::new(databases)))
            }
            (None, true) => {
                let edition = |layout: &Layout| catalog.edition(layout.edition.as_deref()?).ok();
                let edition = layout.as_ref().ok().and_then(edition);
                let layout = layout.map_err(|error| error.kind.to_string());
                Ok(Self::Layout(Box::new(Checked { layout, edition })))
            }
            (Some(_), false) => Err(LabError::Lab {
                lab: lab.name.clone(),
                reason: format!("run {:?} has jobs and databases or a backup; give one", keys.id),
            }),
        }
    }

    /// Checks the options against the run, before anything starts.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        match self {
            Self::Jobs(bench) => bench.check(),
            Self::Databases(_) | Self::Layout(_) | Self::Plan(_) | Self::Tune(_) => Ok(()),
        }
    }

    /// Runs in virtual time.
    pub(crate) fn virtually(&self) -> Result<Outcome<'_>, LabError> {
        Ok(match self {
            Self::Jobs(bench) => Outcome::Jobs(Box::new(bench.virtually()?)),
            Self::Databases(databases) => Outcome::Databases(Box::new(databases.virtually()?)),
            Self::Layout(checked) => Outcome::Layout(checked),
            Self::Plan(planned) => Outcome::Plan(planned),
            Self::Tune(tuning) => Outcome::Tune(Box::new(tuning.run()?)),
        })
    }

    /// Returns whether the run takes place in wall time.
    pub(crate) fn is_in_wall_time(&self) -> bool {
        match self {
            Self::Jobs(_) => true,
            Self::Databases(databases) => databases.not_in_wall_time().is_none(),
            Self::Layout(_) | Self::Plan(_) | Self::Tune(_) => false,
        }
    }

    /// Runs in wall time; `None` if that is not possible.
    pub(crate) fn really(&self) -> Result<Option<Outcome<'_>>, LabError> {
        Ok(match self {
            Self::Jobs(bench) => Some(Outcome::Jobs(Box::new(bench.really()?))),
            Self::Databases(own) if own.is_backup() && own.not_in_wall_time().is_none() => {
                Some(Outcome::Backups(Box::new(backups::measure(own)?)))
            }
            Self::Databases(databases) => {
                databases.really()?.map(|report| Outcome::Databases(Box::new(report)))
            }
            Self::Layout(checked) => Some(Outcome::Layout(checked)),
            Self::Plan(planned) => Some(Outcome::Plan(planned)),
            Self::Tune(_) => None,
        })
    }
}
