//! iostat and its kin.
//!
//! | module | holds |
//! |---|---|
//! | [`iostat`] | `iostat` as text, of old and new sysstat |

pub mod iostat;

use super::kind::Kind;

use super::moment::Clock;

/// A line without the time that a collector put before it, and that time.
pub(crate) fn stamped(line: &str, clock: Clock) -> (Option<i64>, &str) {
    match line.split_once('\t') {
        Some((stamp, rest)) => match clock.moment(stamp) {
            Some(at) => (Some(at), rest),
            None => (None, line),
        },
        None => (None, line),
    }
}

/// The host and the date of the line that sysstat begins with:
/// `Linux 3.16.6 (host.example) 02/25/2015 _x86_64_ (8 CPU)`.
pub(crate) fn banner(line: &str, clock: Clock) -> Option<(String, Option<i64>)> {
    let rest = line.strip_prefix("Linux ")?;
    let (_, rest) = rest.split_once('(')?;
    let (host, rest) = rest.split_once(')')?;
    let date = rest.split_whitespace().find_map(|word| clock.date(word));
    Some((host.to_owned(), date))
}

/// What is read of it, the more special first.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "iostat",
        about: "iostat of sysstat, as text",
        recognizes: iostat::recognizes,
        open: iostat::open,
    },
];
