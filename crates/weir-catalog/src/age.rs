//! Dates of sources as days, to tell how old a figure is.

use crate::provenance::Citation;

impl Citation {
    /// Returns the day of the source in days since 1970-01-01: the oldest of several, the last one of
    /// a month or a year without a day. `None` if it states no date.
    #[must_use]
    pub fn day(&self) -> Option<u64> {
        let is_of_date = |c: char| c.is_ascii_digit() || c == '-';
        let words = self.as_of.split(|c| !is_of_date(c)).filter(|word| !word.is_empty());
        words.filter_map(last_day).min()
    }

    /// Returns whether the source is more than a year older than a day since 1970-01-01.
    #[must_use]
    pub fn is_old(&self, today: u64) -> bool {
        /// A year, or a leap year.
        const YEAR: u64 = 366;
        self.day().is_some_and(|day| day + YEAR < today)
    }
}

/// Returns the last day that `2026`, `2026-07` or `2026-07-20` covers; of `2025-2026` that of 2025.
fn last_day(word: &str) -> Option<u64> {
    let mut parts = word.split('-').map(|part| (part.len(), part.parse::<u64>().ok()));
    let year = parts.next()?.1.filter(|year| (1990..2200).contains(year))?;
    let mut two_digits = |most: u64| {
        let (len, number) = parts.next()?;
        number.filter(|number| len == 2 && (1..=most).contains(number))
    };
    let Some(month) = two_digits(12) else { return Some(day_of(year + 1, 1, 1) - 1) };
    Some(match two_digits(31) {
        Some(day) => day_of(year, month, day),
        None if month == 12 => day_of(year + 1, 1, 1) - 1,
        None => day_of(year, month + 1, 1) - 1,
    })
}

/// Returns the date of a day since 1970-01-01, as in `2026-11-25`.
#[must_use]
pub fn date_of(day: u64) -> String {
    // Years start in March here, and 400 years are a period.
    let days = day + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + next)
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar.
fn day_of(year: u64, month: u64, day: u64) -> u64 {
    // Years start in March here, so that the leap day is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_the_day_of_its_oldest_date() {
        let day = |as_of: &str| Citation::new("a page", as_of).day();
        assert_eq!(day("1990-01-01"), Some(7_305));
        assert_eq!(day("2026-06-18"), Some(20_622));
        assert_eq!(day("2023-05-11 / 2026-08-19"), day("2023-05-11"));
        assert_eq!(day("about 2026"), day("2026-12-31"));
        assert_eq!(day("2024-07-01 / 2025-2026"), day("2024-07-01"));
        assert_eq!(day("2025-2026"), day("2025-12-31"));
        assert_eq!(day("2026-02"), day("2026-02-28"));
        assert_eq!(day("2024-02"), Some(day("2024-03-01").unwrap() - 1));
        assert_eq!((day("no page date"), day("not stated"), day("")), (None, None, None));
    }

    #[test]
    fn a_day_has_its_date() {
        assert_eq!((date_of(0), date_of(20_622)), ("1970-01-01".into(), "2026-06-18".into()));
        for day in (0..80_000).step_by(13) {
            let citation = Citation::new("a page", &date_of(day));
            let expect = (day >= 7_305).then_some(day);
            assert_eq!(citation.day(), expect, "{}", date_of(day));
        }
    }

    #[test]
    fn a_source_is_old_after_a_year() {
        let of = |as_of: &str| Citation::new("a page", as_of);
        let today = of("2026-11-25").day().unwrap();
        assert!(of("2025-11-23").is_old(today) && of("2019-07-08").is_old(today));
        assert!(!of("2025-11-26").is_old(today) && !of("no page date").is_old(today));
    }
}
