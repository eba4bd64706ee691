//! Parameters of tools.

use crate::arguments::Arguments;
use crate::output::Output;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// Parameters of a tool.
pub(crate) trait Call: DeserializeOwned + JsonSchema {
    /// The verb, with its subcommand.
    fn verb(&self) -> Vec<&str>;

    /// Returns the format of the answer.
    fn output(&self) -> Output;

    /// Adds the arguments of the verb.
    fn add_to(&self, arguments: &mut Arguments<'_>) -> Result<(), String>;
}

/// Requires one of two parameters.
pub(crate) fn one_of<'a>(
    path: Option<&'a str>,
    text: Option<&'a str>,
    name: &str,
) -> Result<Given<'a>, String> {
    match (path, text) {
        (Some(path), None) => Ok(Given::Path(path)),
        (None, Some(text)) => Ok(Given::Text(text)),
        (None, None) => Err(format!("give {name} (a path) or {name}_text")),
        (Some(_), Some(_)) => Err(format!("give {name} or {name}_text, not both")),
    }
}

/// A file, or its text.
pub(crate) enum Given<'a> {
    Path(&'a str),
    Text(&'a str),
}
