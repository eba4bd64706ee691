//! Phrases of messages.

use alloc::string::{String, ToString};
use core::fmt;

/// A suggestion at the end of a message: `; did you mean "tier"?`, or nothing.
#[derive(Debug, Clone, Copy)]
pub struct DidYouMean<'a>(Option<&'a str>);

/// Returns the suggestion of a name.
#[must_use]
pub fn did_you_mean<S: AsRef<str>>(near: &Option<S>) -> DidYouMean<'_> {
    DidYouMean(near.as_ref().map(AsRef::as_ref))
}

impl fmt::Display for DidYouMean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |near| write!(f, "; did you mean {near:?}?"))
    }
}

/// Replaces type names in the message of a parser: `expected u32` becomes `expected a whole
/// number`.
#[must_use]
pub fn in_plain_words(message: &str) -> String {
    let Some((before, expected)) = message.split_once(", expected ") else {
        return message.to_string();
    };
    let word = expected.split([' ', '\n']).next().unwrap_or_default();
    let plain = match word {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => {
            "a whole number"
        }
        "f32" | "f64" => "a number",
        _ => return message.to_string(),
    };
    let least = if word.starts_with('u') { " of 0 or more" } else { "" };
    let most = if word == "u8" { ", 255 at most" } else { "" };
    let rest = &expected[word.len()..];
    alloc::format!("{before}, expected {plain}{least}{most}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_questions() {
        assert_eq!(did_you_mean(&Some("tier")).to_string(), "; did you mean \"tier\"?");
        assert_eq!(did_you_mean::<String>(&None).to_string(), "");
    }

    #[test]
    fn type_names_become_plain_words() {
        let check = |message: &str, plain: &str| assert_eq!(in_plain_words(message), plain);
        check(
            "invalid type: string \"3\", expected u8\n",
            "invalid type: string \"3\", expected a whole number of 0 or more, 255 at most\n",
        );
        check(
            "invalid value: integer `-1`, expected i32",
            "invalid value: integer `-1`, expected a whole number",
        );
        check("x, expected f64 or null", "x, expected a number or null");
        for other in ["missing field `size`", "x, expected a string", "x, expected usual words"] {
            check(other, other);
        }
    }
}
