//! `weir tune`, in simulation.

use super::load::LoadCall;
use crate::arguments::Arguments;
use crate::call::Call;
use crate::output::Output;
use crate::texts;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of `tune`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tune {
    /// Layout file.
    layout: Option<String>,
    /// Layout in TOML, instead of a file.
    layout_text: Option<String>,
    /// Load, unless there is a workload.
    load: Option<LoadCall>,
    /// Workload: fio job files, or descriptions of databases and backups (.toml).
    #[serde(default)]
    #[schemars(length(max = 16))]
    workload: Vec<String>,
    /// fio job file as text, instead of workload files.
    job_text: Option<String>,
    /// Runtime of each job or database of the workload, for example 30s.
    runtime: Option<String>,
    /// Goals of the workload, for example iops=8000, latency=5ms, p99=20ms or transactions=50000.
    #[serde(default)]
    goals: Vec<String>,
    /// Highest price of the layout per month.
    budget: Option<String>,
    /// Most layouts to simulate.
    simulations: Option<u32>,
    /// Makes only changes without downtime.
    #[serde(default)]
    no_downtime: bool,
    /// Counts on burst credits.
    #[serde(default)]
    bursts: bool,
    /// Seed of the random numbers.
    seed: Option<u64>,
    /// Format of the answer. The layout after the last step is in json only.
    #[serde(default)]
    output: Output,
}

impl Call for Tune {
    fn verb(&self) -> Vec<&str> {
        vec!["tune"]
    }

    fn output(&self) -> Output {
        self.output
    }

    fn add_to(&self, arguments: &mut Arguments<'_>) -> Result<(), String> {
        let given = usize::from(self.load.is_some())
            + usize::from(!self.workload.is_empty())
            + usize::from(self.job_text.is_some());
        if given != 1 {
            return Err("give one of load, workload (paths) or job_text".to_owned());
        }
        arguments.layout(self.layout.as_deref(), self.layout_text.as_deref())?;
        if let Some(load) = &self.load {
            load.add_to(arguments)?;
        }
        for path in &self.workload {
            let path = arguments.file_option("workload", path)?;
            texts::check_jobs_file(&path)?;
        }
        if let Some(text) = &self.job_text {
            texts::check_jobs("job_text", text)?;
            arguments.text_option("workload", "jobs.fio", text)?;
        }
        arguments.option("runtime", self.runtime.as_ref());
        arguments.options("goal", &self.goals);
        arguments.option("budget", self.budget.as_ref());
        arguments.option("simulations", self.simulations);
        arguments.flag("no-downtime", self.no_downtime);
        arguments.flag("bursts", self.bursts);
        arguments.option("seed", self.seed);
        Ok(())
    }
}
