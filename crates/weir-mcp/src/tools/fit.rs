//! `weir fit`.

use super::load::LoadCall;
use crate::arguments::Arguments;
use crate::call::Call;
use crate::output::Output;
use crate::texts;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of `fit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fit {
    /// Layout file.
    layout: Option<String>,
    /// Layout in TOML, instead of a file.
    layout_text: Option<String>,
    load: LoadCall,
    /// Need files that the layout has to carry at other times, for example at night, with a backup
    /// beside the load.
    #[serde(default)]
    #[schemars(length(max = 16))]
    also: Vec<String>,
    /// Such needs in TOML.
    #[serde(default)]
    #[schemars(length(max = 16))]
    also_texts: Vec<String>,
    /// Hours of each observed day that get an answer of their own, for example 22:00-06:00 in UTC or
    /// 22:00-06:00+01:00. Needs observations in load.
    night: Option<String>,
    /// Proposes only changes without downtime.
    #[serde(default)]
    no_downtime: bool,
    /// Counts on burst credits.
    #[serde(default)]
    bursts: bool,
    /// Seed of the random numbers.
    seed: Option<u64>,
    /// Format of the answer.
    #[serde(default)]
    output: Output,
}

impl Call for Fit {
    fn verb(&self) -> Vec<&str> {
        vec!["fit"]
    }

    fn output(&self) -> Output {
        self.output
    }

    fn add_to(&self, arguments: &mut Arguments<'_>) -> Result<(), String> {
        arguments.layout(self.layout.as_deref(), self.layout_text.as_deref())?;
        self.load.add_to(arguments)?;
        texts::add_also(&self.also, &self.also_texts, arguments)?;
        arguments.option("night", self.night.as_ref());
        arguments.flag("no-downtime", self.no_downtime);
        arguments.flag("bursts", self.bursts);
        arguments.option("seed", self.seed);
        Ok(())
    }
}
