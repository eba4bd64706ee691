//! The format of an answer.

use schemars::JsonSchema;
use serde::Deserialize;

/// The format of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Output {
    /// A verdict and tables for people; the shortest.
    #[default]
    Text,
    /// One document with all figures.
    Json,
}

impl Output {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}
