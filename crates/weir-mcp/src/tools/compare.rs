//! `weir compare`.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::output::Output;
use crate::texts;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Parameters of `compare`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Compare {
    /// Sides, of one kind: observations, results in JSON, or layouts. The others are compared with
    /// the first. A folder holds repetitions of one measurement.
    #[schemars(length(min = 2, max = 16))]
    sides: Vec<String>,
    /// Workload to simulate on layouts: fio job files, or descriptions of databases or backups.
    #[serde(default)]
    #[schemars(length(max = 16))]
    workload: Vec<String>,
    /// Runtime of each job of the workload, for example 30s.
    runtime: Option<String>,
    /// Number of simulations of each layout.
    #[schemars(range(min = 3, max = 1000))]
    seeds: Option<u64>,
    /// Share by which a side may be worse, for example 10%.
    tolerance: Option<String>,
    /// Metrics that decide, for example iops or latency, instead of all rates and latencies.
    #[serde(default)]
    metrics: Vec<String>,
    /// Disks, files, databases or jobs to compare, instead of those with the most load.
    #[serde(default)]
    subjects: Vec<String>,
    /// Compares the sums of all disks and files only.
    #[serde(default)]
    total: bool,
    /// Names in later sides and the names in the first side that they stand for.
    #[serde(default)]
    map: BTreeMap<String, String>,
    /// Layout of the observed systems.
    layout: Option<String>,
    /// Format of the answer.
    #[serde(default)]
    output: Output,
}

impl Call for Compare {
    fn verb(&self) -> Vec<&str> {
        vec!["compare"]
    }

    fn output(&self) -> Output {
        self.output
    }

    fn add_to(&self, arguments: &mut Arguments<'_>) -> Result<(), String> {
        for path in &self.sides {
            arguments.file(path)?;
        }
        for path in &self.workload {
            let path = arguments.file_option("workload", path)?;
            texts::check_jobs_file(&path)?;
        }
        arguments.option("runtime", self.runtime.as_ref());
        arguments.option("seeds", self.seeds);
        arguments.option("tolerance", self.tolerance.as_ref());
        arguments.options("metric", &self.metrics);
        arguments.options("subject", &self.subjects);
        arguments.flag("total", self.total);
        for (other, first) in &self.map {
            arguments.option("map", Some(format!("{other}={first}")));
        }
        if let Some(layout) = &self.layout {
            arguments.file_option("layout", layout)?;
        }
        Ok(())
    }
}
