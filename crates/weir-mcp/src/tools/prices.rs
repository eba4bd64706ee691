//! `weir prices`.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::output::Output;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of `prices`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Prices {
    /// Machine, disk or family, for example D16s_v5, P30 or premium-ssd-v2.
    name: String,
    /// Edition to look in, instead of all.
    edition: Option<String>,
    /// Region, for example westeurope, or all.
    region: Option<String>,
    /// Currency, for example USD.
    currency: Option<String>,
    /// Format of the answer.
    #[serde(default)]
    output: Output,
}

impl Call for Prices {
    fn verb(&self) -> Vec<&str> {
        vec!["prices"]
    }

    fn output(&self) -> Output {
        self.output
    }

    fn add_to(&self, arguments: &mut Arguments<'_>) -> Result<(), String> {
        arguments.value(&self.name);
        arguments.option("edition", self.edition.as_ref());
        arguments.option("region", self.region.as_ref());
        arguments.option("currency", self.currency.as_ref());
        Ok(())
    }
}
