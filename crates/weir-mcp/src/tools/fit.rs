//! `weir fit`.

use super::load::LoadCall;
use crate::arguments::Arguments;
use crate::call::Call;
use crate::output::Output;
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
        arguments.flag("bursts", self.bursts);
        arguments.option("seed", self.seed);
        Ok(())
    }
}
