//! The load of `fit` and `tune`.

use crate::arguments::Arguments;
use crate::texts;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Load: a need, observations, or both. With observations, the need gives what cannot be observed:
/// latencies, working sets, sizes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadCall {
    /// Need file: rates and sizes of each role.
    need: Option<String>,
    /// Need in TOML, instead of a file, for example: [data] size = "1 TiB", iops = 4000.
    need_text: Option<String>,
    /// Observations or outputs of other tools whose rates are the load.
    #[serde(default)]
    #[schemars(length(max = 64))]
    observations: Vec<String>,
    /// Percentile of the observed samples, for example 99.9.
    percentile: Option<f64>,
    /// Takes the observed rates even if the system was throttled.
    #[serde(default)]
    as_observed: bool,
    /// Growth of the observed load, for example 30%.
    growth: Option<String>,
    /// Disks of the observations and their roles, for example {"sdc": "data"}.
    #[serde(default)]
    roles: BTreeMap<String, String>,
}

impl LoadCall {
    pub(super) fn add_to(&self, arguments: &mut Arguments<'_>) -> Result<(), String> {
        if self.need.is_some() || self.need_text.is_some() {
            texts::add_need(self.need.as_deref(), self.need_text.as_deref(), arguments)?;
        } else if self.observations.is_empty() {
            return Err("give need, need_text or observations in load".to_owned());
        }
        for path in &self.observations {
            arguments.file_option("load", path)?;
        }
        arguments.option("percentile", self.percentile);
        arguments.flag("as-observed", self.as_observed);
        arguments.option("growth", self.growth.as_ref());
        for (name, role) in &self.roles {
            arguments.option("role", Some(format!("{name}={role}")));
        }
        Ok(())
    }
}
