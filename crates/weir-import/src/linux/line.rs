//! Lines that collectors and sysstat put before and between tables: times and banners.

use weir_observe::moment::Clock;

/// Splits off the time that a collector put before a line.
pub(crate) fn stamped(line: &str, clock: Clock) -> (Option<i64>, &str) {
    match line.split_once('\t') {
        Some((stamp, rest)) => match clock.moment(stamp) {
            Some(at) => (Some(at), rest),
            None => (None, line),
        },
        None => (None, line),
    }
}

/// Parses the first line of sysstat, `Linux 3.16.6 (host.example) 02/25/2015 _x86_64_ (8 CPU)`:
/// the host and the date.
pub(crate) fn banner(line: &str, clock: Clock) -> Option<(String, Option<i64>)> {
    let rest = line.strip_prefix("Linux ")?;
    let (_, rest) = rest.split_once('(')?;
    let (host, rest) = rest.split_once(')')?;
    let date = rest.split_whitespace().find_map(|word| clock.date(word));
    Some((host.to_owned(), date))
}

/// Parses a line with a time and at most a word or mark before it: `zzz ***Thu Jun 30 22:43:39 UTC
/// 2022`, `# 1598650497`, `Time: 2020-01-07 12:00:39`.
pub(crate) fn time_line(text: &str, clock: Clock) -> Option<i64> {
    if !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let text = text.trim();
    let bare = text.strip_prefix("zzz").unwrap_or(text);
    let bare = bare.trim_start_matches(|c: char| !c.is_alphanumeric());
    let named = || bare.split_once([':', '=', ' ']).filter(|(name, _)| is_word(name));
    clock.moment(bare).or_else(|| clock.moment(named()?.1))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_alone_in_a_line() {
        let check = |text: &str, expect: Option<i64>| {
            let seconds = time_line(text, Clock::default()).map(|at| at / 1_000_000_000);
            assert_eq!(seconds, expect, "{text}");
        };
        check("1598650497", Some(1_598_650_497));
        check("zzz ***Thu Jun 30 22:43:39 UTC 2022", Some(1_656_629_019));
        check("### 2022-06-30 22:43:39", Some(1_656_629_019));
        check("time: 2022-06-30 22:43:39", Some(1_656_629_019));
        check("TS=1598650497", Some(1_598_650_497));
        check("7223.72 29418.91", None);
        check("   8       0 sda 1 2 3", None);
        check("", None);
    }
}
