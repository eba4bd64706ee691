//! "Did you mean": the known name closest to one that is not known.

use std::cmp::Reverse;

/// The candidate closest to `name`, if one is close enough to be a slip of the
/// hand: a third of the letters at most. Where the first half is the same, the other
/// may be another (`DS99`), and what was only begun (`azure`) may go on.
///
/// Short names have many neighbours at one edit (`DS41`: `DS4`, `DS11`, `DS14`),
/// so ties go to the same length, then to the same letters in another order,
/// then to the longest common beginning.
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
    fn slips_find_what_was_meant_and_nonsense_finds_nothing() {
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
