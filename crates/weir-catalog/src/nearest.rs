//! "Did you mean": the known name closest to an unknown one.

use std::cmp::Reverse;

/// Returns the candidate closest to `name`, if it may be a typing error: at most a third of the
/// letters differ. If the first half matches, the rest may differ (`DS99`), and incomplete names
/// (`azure`) match.
///
/// Short names have many neighbours at distance 1 (`DS41`: `DS4`, `DS11`, `DS14`). Ties are
/// resolved by equal length, then by equal letters in another order, then by the longest common
/// prefix.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let wanted = plain(name);
    let letters = wanted.chars().count();
    let close = |(rank, candidate): &(Rank, &str)| {
        let same = rank.3.0;
        rank.0 <= (letters / 3).max(1)
            || (same >= 2 && same == letters)
            || (same * 2 >= letters.max(4) && rank.0 * 2 <= candidate.chars().count())
    };
    candidates
        .into_iter()
        .map(|candidate| (rank(&wanted, &plain(candidate)), candidate))
        .filter(close)
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, candidate)| candidate)
}

/// A name as it is compared: without case and without Azure's `Standard_`.
pub(crate) fn plain(name: &str) -> String {
    let lower = name.trim().to_lowercase();
    lower.strip_prefix("standard_").map(str::to_owned).unwrap_or(lower)
}

/// Edits, whether the length and the letters are others, and the common beginning.
type Rank = (usize, bool, bool, Reverse<usize>);

fn rank(wanted: &str, candidate: &str) -> Rank {
    let edits = strsim::osa_distance(wanted, candidate);
    let common = wanted.chars().zip(candidate.chars()).take_while(|(a, b)| a == b).count();
    (edits, wanted.len() != candidate.len(), letters(wanted) != letters(candidate), Reverse(common))
}

fn letters(name: &str) -> Vec<char> {
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
        check("ds14_V3", &["Standard_DS14_v2", "Standard_DS4_v2"], Some("Standard_DS14_v2"));
        check(
            "azure-premium-2051",
            &["azure-now", "azure-premium-2015"],
            Some("azure-premium-2015"),
        );
        check("DS99", &["DS1", "DS11", "GS5", "Standard_D99"], Some("Standard_D99"));
        check("DS99", &["DS1", "DS11", "GS5"], Some("DS11"));
        check("azure", &["azure-premium-2015", "azure-now"], Some("azure-now"));
        check("a", &["azure-now"], None);
        check("P999", &["P10", "E10"], None);
        check("hamster", &["P10", "P20", "P30"], None);
        check("P31", &[], None);
    }
}
