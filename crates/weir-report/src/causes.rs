//! Messages of errors for people.

use std::error::Error;

/// Returns the message of an error, with the causes that it does not contain.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    add_causes(error.to_string(), error)
}

/// Adds to `text`, which describes the error, the causes that it does not contain.
#[must_use]
pub fn add_causes(mut text: String, error: &dyn Error) -> String {
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}
