//! Parser messages in plain words.

use alloc::string::{String, ToString};

/// Replaces the names of a program's types in a parser's message: `expected u32` becomes
/// `expected a whole number`.
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
    use super::in_plain_words;

    #[test]
    fn types_of_a_program_are_said_in_plain_words() {
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
