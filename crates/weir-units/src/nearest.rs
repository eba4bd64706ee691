//! "Did you mean": the known name that is nearest to an unknown one.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Returns the candidate nearest to `name` if `name` may be a typing error of it
/// ([`is_near`]).
///
/// Short names have many neighbours at distance 1 (`DS41`: `DS4`, `DS11`, `DS14`). Ties are
/// resolved by equal length, then by equal letters in another order, then by the longest common
/// prefix.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_by(name, candidates, str::to_lowercase)
}

/// As [`nearest`], with the names compared as `plain` returns them.
pub fn nearest_by<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    plain: impl Fn(&str) -> String,
) -> Option<&'a str> {
    let wanted = plain(name);
    let mut best: Option<(Distance, &str)> = None;
    for candidate in candidates {
        let distance = Distance::between(&wanted, &plain(candidate));
        if distance.is_near() && best.as_ref().is_none_or(|(least, _)| distance < *least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns whether `name` may be a typing error of `candidate`: at most a third of the letters
/// differ. If the first half matches, the rest may differ (`DS99`). Incomplete names match
/// (`azure`).
#[must_use]
pub fn is_near(name: &str, candidate: &str) -> bool {
    Distance::between(&name.to_lowercase(), &candidate.to_lowercase()).is_near()
}

/// Replaces type names in the message of a parser ([`in_plain_words`](crate::in_plain_words)),
/// joins its lines, and suggests the nearest known key for an unknown one.
#[must_use]
pub fn parser_message(message: &str) -> String {
    let message = crate::in_plain_words(message).replace('\n', " ").trim_end().to_string();
    match nearest_key(&message) {
        Some(near) => alloc::format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}

/// Returns the known key nearest to the unknown one in a message like "unknown field `teir`,
/// expected one of `name`, `tier`".
fn nearest_key(message: &str) -> Option<&str> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted)
}

/// The distance between two names. The order of the fields resolves ties.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    edits: usize,
    differs_in_length: bool,
    differs_in_letters: bool,
    common_prefix: Reverse<usize>,
    /// Letters of the wanted name.
    wanted: usize,
    /// Letters of the candidate.
    candidate: usize,
}

impl Distance {
    fn between(wanted: &str, candidate: &str) -> Self {
        let common = wanted.chars().zip(candidate.chars()).take_while(|(a, b)| a == b).count();
        Self {
            edits: strsim::osa_distance(wanted, candidate),
            differs_in_length: wanted.len() != candidate.len(),
            differs_in_letters: sorted(wanted) != sorted(candidate),
            common_prefix: Reverse(common),
            wanted: wanted.chars().count(),
            candidate: candidate.chars().count(),
        }
    }

    fn is_near(&self) -> bool {
        let Reverse(common) = self.common_prefix;
        self.edits <= (self.wanted / 3).max(1)
            || (common >= 2 && common == self.wanted)
            || (common * 2 >= self.wanted.max(4) && self.edits * 2 <= self.candidate)
    }
}

fn sorted(name: &str) -> Vec<char> {
    let mut letters: Vec<char> = name.chars().collect();
    letters.sort_unstable();
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, candidates: &[&str], expect: Option<&str>) {
        assert_eq!(nearest(name, candidates.iter().copied()), expect);
    }

    #[test]
    fn typing_errors_are_corrected_and_nonsense_is_not() {
        check("DS41", &["DS1", "DS4", "DS11", "DS14"], Some("DS14"));
        check("P31", &["P1", "P3", "P10", "P30"], Some("P30"));
        check(
            "azure-premium-2051",
            &["azure-now", "azure-premium-2015"],
            Some("azure-premium-2015"),
        );
        check("DS99", &["DS1", "DS11", "GS5"], Some("DS11"));
        check("azure", &["azure-premium-2015", "azure-now"], Some("azure-now"));
        check("iodepht", &["iodepth", "direct"], Some("iodepth"));
        check("xyzzy", &["iodepth", "direct"], None);
        check("a", &["azure-now"], None);
        check("P999", &["P10", "E10"], None);
        check("hamster", &["P10", "P20", "P30"], None);
        check("P31", &[], None);
    }

    #[test]
    fn names_can_be_compared_in_another_form() {
        let plain = |name: &str| name.to_lowercase().trim_start_matches("standard_").to_string();
        let names = ["Standard_DS14_v2", "Standard_DS4_v2"];
        assert_eq!(nearest_by("ds14_V3", names, plain), Some("Standard_DS14_v2"));
        assert_eq!(nearest("ds14_V3", names), None);
    }

    #[test]
    fn unknown_keys_in_messages_of_parsers_get_a_suggestion() {
        assert_eq!(
            parser_message("unknown field `teir`, expected one of `name`, `tier`\n"),
            "unknown field `teir`, expected one of `name`, `tier`; did you mean `tier`?"
        );
        assert_eq!(
            parser_message("unknown field `xyzzy`, expected `name`"),
            "unknown field `xyzzy`, expected `name`"
        );
        assert_eq!(
            parser_message("invalid type: map,\nexpected u32\n"),
            "invalid type: map,\nexpected u32".replace('\n', " ")
        );
    }
}
