//! A layout that is tuned for databases until a goal is reached.

use crate::error::LabError;
use crate::file::{Lab, RunKeys};
use weir_catalog::Catalog;
use weir_oltp::Description;
use weir_report::tune::TuneReport;
use weir_tune::{Bench, Credits, Goal, Load, TuneOptions, tune};

/// A layout, its databases and the goal.
pub(crate) struct Tuning<'a> {
    name: String,
    text: String,
    bench: Bench<'a>,
    goal: Goal,
}

impl<'a> Tuning<'a> {
    /// Reads the layout, the databases and the goal of a run.
    pub(crate) fn read(
        lab: &Lab,
        keys: &RunKeys,
        goal: &str,
        catalog: &'a Catalog,
        seed: u64,
    ) -> Result<Self, LabError> {
        let target = goal.parse().map_err(|reason: String| LabError::Lab {
            lab: lab.name.clone(),
            reason: format!("run {:?}: tune: {reason}", keys.id),
        })?;
        let (name, text) = lab.layout_of(keys)?;
        let databases = lab.oltp_of(keys)?;
        let databases = databases.iter().map(|(name, text)| Description::parse(name, text));
        let load = Load::Databases(databases.collect::<Result<_, _>>()?, Vec::new());
        let runtime = keys.tune_runtime;
        let bench = Bench { catalog, load, seed, runtime, credits: Credits::Never };
        Ok(Self { name, text, bench, goal: Goal { targets: vec![target] } })
    }

    /// Tunes the layout.
    pub(crate) fn run(&self) -> Result<TuneReport, LabError> {
        let options = TuneOptions::default();
        Ok(tune(&self.name, &self.text, &self.bench, &self.goal, options)?.report)
    }
}
