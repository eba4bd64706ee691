//! `weir diagnose`.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::output::Output;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Parameters of `diagnose`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Diagnose {
    /// Observations (.weirobs) or outputs of other tools, for example iostat.txt; several are merged
    /// by time.
    #[schemars(length(min = 1, max = 64))]
    observations: Vec<String>,
    /// Layout of the observed system, which gives the limits.
    layout: Option<String>,
    /// Catalog edition whose tiers give the limits of files by size, for example azure-mi-now, if
    /// there is no layout.
    edition: Option<String>,
    /// Names in the observation and the names in the layout that they stand for, for example
    /// {"sdc": "data"}.
    #[serde(default)]
    map: BTreeMap<String, String>,
    /// Kind of the inputs, if it is not to be detected.
    kind: Option<String>,
    /// Adds time spans, causes that were ruled out, and all limits.
    #[serde(default)]
    verbose: bool,
    /// Format of the answer.
    #[serde(default)]
    output: Output,
}

impl Call for Diagnose {
    fn verb(&self) -> Vec<&str> {
        vec!["diagnose"]
    }

    fn output(&self) -> Output {
        self.output
    }

    fn add_to(&self, arguments: &mut Arguments<'_>) -> Result<(), String> {
        for path in &self.observations {
            arguments.file(path)?;
        }
        if let Some(layout) = &self.layout {
            arguments.file_option("layout", layout)?;
        }
        arguments.option("edition", self.edition.as_ref());
        for (observed, own) in &self.map {
            arguments.option("map", Some(format!("{observed}={own}")));
        }
        arguments.option("as", self.kind.as_ref());
        arguments.flag("verbose", self.verbose);
        Ok(())
    }
}
