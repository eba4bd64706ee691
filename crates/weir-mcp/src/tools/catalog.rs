//! `weir catalog`.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::output::Output;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of `catalog`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalog {
    /// The list or figure to look up.
    what: What,
    /// Edition of tiers and hosts, for example azure-now; or the name to show: a tier, machine,
    /// family or rule, for example P30, D16s_v5 or host-cache. Not for editions.
    name: Option<String>,
    /// Format of the answer.
    #[serde(default)]
    output: Output,
}

/// The list or figure to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum What {
    /// All editions.
    Editions,
    /// The tiers of an edition.
    Tiers,
    /// The machines of an edition.
    Hosts,
    /// All figures known for a name, with sources.
    Show,
}

impl Call for Catalog {
    fn verb(&self) -> Vec<&str> {
        let list = match self.what {
            What::Editions => "editions",
            What::Tiers => "tiers",
            What::Hosts => "hosts",
            What::Show => "show",
        };
        vec!["catalog", list]
    }

    fn output(&self) -> Output {
        self.output
    }

    fn add_to(&self, arguments: &mut Arguments<'_>) -> Result<(), String> {
        match (self.what, &self.name) {
            (What::Editions, None) => Ok(()),
            (What::Editions, Some(_)) => Err("editions has no name; leave it out".to_owned()),
            (_, Some(name)) => {
                arguments.value(name);
                Ok(())
            }
            (What::Tiers | What::Hosts, None) => {
                Err("name the edition, for example azure-now; what = editions lists them"
                    .to_owned())
            }
            (What::Show, None) => Err("name the tier, machine, family or rule to show".to_owned()),
        }
    }
}
