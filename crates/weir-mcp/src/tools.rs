//! The tools: parameters with their schema, and the arguments of the verb.

mod catalog;
mod compare;
mod diagnose;
mod fit;
mod load;
mod plan;
mod prices;
mod simulate;
mod tune;

use crate::arguments::Arguments;
use crate::call::Call;
use crate::output::Output;
use crate::roots::Roots;
use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::Schema;
use serde_json::Value;
use std::ffi::OsString;
use std::sync::Arc;
use tempfile::TempDir;

/// A call that can run.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Arguments of the program.
    pub(crate) arguments: Vec<OsString>,
    /// The folder in which it runs, with the texts of the call.
    pub(crate) folder: TempDir,
    /// The format of the answer.
    pub(crate) output: Output,
}

/// A tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    schema: fn() -> Schema,
    prepare: fn(JsonObject, &Roots) -> Result<Prepared, String>,
}

impl Tool {
    const fn calling<C: Call>(
        name: &'static str,
        title: &'static str,
        description: &'static str,
    ) -> Self {
        let schema = || schemars::schema_for!(C);
        Self { name, title, description, schema, prepare: prepare::<C> }
    }

    /// Returns the definition for clients.
    pub(crate) fn definition(&self) -> rmcp::model::Tool {
        let schema = match (self.schema)().to_value() {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        };
        let hints = ToolAnnotations::with_title(self.title);
        let hints = hints.read_only(true).destructive(false).idempotent(true).open_world(false);
        rmcp::model::Tool::new(self.name, self.description, Arc::new(schema))
            .with_title(self.title)
            .with_annotations(hints)
    }

    /// Checks a call and prepares its process.
    pub(crate) fn prepare(&self, call: JsonObject, roots: &Roots) -> Result<Prepared, String> {
        (self.prepare)(call, roots)
    }
}

const TOOLS: [Tool; 8] = [
    Tool::calling::<diagnose::Diagnose>(
        "diagnose",
        "Find the limit that throttles a system",
        "Finds the limit (disk, machine, cache, log rate) that throttles a system, with evidence, a fix \
         and its effect, or shows that storage is not the cause. Input: observations or output of other \
         tools (iostat, sar, perfmon, fio, SQL Server DMVs and many more).",
    ),
    Tool::calling::<simulate::Simulate>(
        "simulate",
        "Simulate a workload on a layout",
        "Predicts rates, latency percentiles and waits by limit of fio jobs, a database or a backup on a \
         layout of cloud disks, in virtual time.",
    ),
    Tool::calling::<plan::Plan>(
        "plan",
        "Find the cheapest layout for a need",
        "Finds the cheapest layout of machine and disks, or managed instance, that meets a need, with its \
         price, its binding limit and the reason why the next cheaper layout fails. Can also compare \
         clouds.",
    ),
    Tool::calling::<fit::Fit>(
        "fit",
        "Ask whether a layout carries a load",
        "Answers yes, barely or no for each role of a need or an observed load on a layout, with the \
         headroom, the binding limit and the cheapest single change that makes it a yes.",
    ),
    Tool::calling::<tune::Tune>(
        "tune",
        "Find the cheapest changes of a layout",
        "Finds the cheapest changes of a layout that reach a goal and applies them one by one in \
         simulation: the reason, price, downtime, predicted and measured effect of each. Changes \
         nothing.",
    ),
    Tool::calling::<compare::Compare>(
        "compare",
        "Compare measurements or layouts",
        "Compares observations, results of runs, or layouts (by simulation of one workload) side by side, \
         and says which differences are more than noise.",
    ),
    Tool::calling::<catalog::Catalog>(
        "catalog",
        "Look up limits of clouds",
        "Looks up tiers, machines and rules of cloud storage. Each figure has a source and a date.",
    ),
    Tool::calling::<prices::Prices>(
        "prices",
        "Look up list prices",
        "Shows the list prices of a machine, a disk or a family by region, with source and date.",
    ),
];

/// Returns all tools.
pub(crate) fn all() -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter()
}

/// Returns the tool of a name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    all().find(|tool| tool.name == name)
}

/// Returns the message for a tool that does not exist.
pub(crate) fn unknown(name: &str) -> String {
    let names: Vec<&str> = all().map(|tool| tool.name).collect();
    let near = weir_units::nearest(name, names.iter().copied()).map(str::to_owned);
    format!(
        "there is no tool {name:?}{}; there are: {}",
        weir_units::did_you_mean(&near),
        names.join(", ")
    )
}

/// Parses the parameters of a call and builds its arguments.
fn prepare<C: Call>(call: JsonObject, roots: &Roots) -> Result<Prepared, String> {
    let call: C = serde_json::from_value(Value::Object(call))
        .map_err(|error| format!("wrong arguments: {error}"))?;
    let folder =
        tempfile::tempdir().map_err(|error| format!("making a folder for the call: {error}"))?;
    let mut arguments = Arguments::new(&call.verb(), call.output(), roots, folder.path());
    call.add_to(&mut arguments)?;
    Ok(Prepared { arguments: arguments.finish(), folder, output: call.output() })
}

#[cfg(test)]
mod tests;
