//! iostat, vmstat, sar and related tools.
//!
//! | module | holds |
//! |---|---|
//! | [`iostat`] | `iostat` as text, of old and new sysstat |
//! | [`iostat_json`] | `iostat -o JSON` |
//! | [`sar`] | `sar` as text |
//! | [`sadf_d`], [`sadf_p`], [`sadf_j`], [`sadf_x`] | `sadf -d`, `-p`, `-j` and `-x` |
//! | [`vmstat`], [`vmstat_d`] | `vmstat` and `vmstat -d` |
//! | [`diskstats`] | `/proc/diskstats` |
//! | [`diskstats_json`] | the same as JSON |
//! | `activity` | the columns of sar and sadf |
//! | `by_table` | a reader of output that is grouped by table |
//! | `processors` | processor time, by the names of all these tools |
//! | `held` | values of incomplete samples |
//! | `record` | a JSON object with numbers and texts |
//! | `pages` | heads of vmstat: of a run, or of a page |
//! | `runs`, `singles` | consecutive runs of iostat in one input |
//! | `statistics` | the JSON format of sysstat |
//! | `disks` | counters of disks, device by device |

mod activity;
mod by_table;
mod disks;
pub mod diskstats;
pub mod diskstats_json;
mod held;
pub mod iostat;
pub mod iostat_json;
mod pages;
mod processors;
mod record;
mod runs;
pub mod sadf_d;
pub mod sadf_j;
pub mod sadf_p;
pub mod sadf_x;
pub mod sar;
mod singles;
mod statistics;
pub mod vmstat;
pub mod vmstat_d;

pub(crate) use diskstats::Snapshots;

use super::kind::{By, Kind};

use super::number::Style;
use weir_observe::moment::Clock;

const KIB: f64 = 1024.0;

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

/// Parses a number in a unit of `by` smaller units: `1.5` KiB are 1536 bytes. With `-h`, sysstat
/// appends a unit to the number, which then applies.
pub(crate) fn quantity(style: Style, text: &str, by: f64) -> Option<f64> {
    if text.as_bytes().last().is_some_and(u8::is_ascii_digit) {
        return Some(style.parse(text)? * by);
    }
    let (number, unit) = match text.chars().last()? {
        's' => (&text[..text.len() - 1], 512.0),
        'B' => (&text[..text.len() - 1], 1.0),
        'k' => (&text[..text.len() - 1], KIB),
        'M' => (&text[..text.len() - 1], KIB * KIB),
        'G' => (&text[..text.len() - 1], KIB * KIB * KIB),
        'T' => (&text[..text.len() - 1], KIB * KIB * KIB * KIB),
        _ => (text, by),
    };
    Some(style.parse(number)? * unit)
}

/// Returns the style of numbers once one has decimals; a whole number does not show it.
pub(crate) fn style_of(known: &mut Option<Style>, words: &[&str]) -> Style {
    known.unwrap_or_else(|| {
        // Most outputs without decimals have none anywhere.
        if !words.iter().any(|word| word.bytes().any(|byte| matches!(byte, b'.' | b','))) {
            return Style::default();
        }
        let style = Style::of(words.iter().copied());
        if words.iter().any(|word| word.contains(['.', ',']) && style.parse(word).is_some()) {
            *known = Some(style);
        }
        style
    })
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

/// The kinds, most specific first.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "diskstats-json",
        about: "counters of /proc/diskstats as JSON (jc, Telegraf)",
        recognizes: By::Text(diskstats_json::recognizes),
        open: diskstats_json::open,
    },
    Kind {
        name: "iostat-json",
        about: "iostat of sysstat, as JSON",
        recognizes: By::Text(iostat_json::recognizes),
        open: iostat_json::open,
    },
    Kind {
        name: "sadf-j",
        about: "what sar recorded, as sadf -j writes it",
        recognizes: By::Text(sadf_j::recognizes),
        open: sadf_j::open,
    },
    Kind {
        name: "sadf-x",
        about: "what sar recorded, as sadf -x writes it",
        recognizes: By::Text(sadf_x::recognizes),
        open: sadf_x::open,
    },
    Kind {
        name: "sadf-d",
        about: "what sar recorded, as sadf -d writes it",
        recognizes: By::Text(sadf_d::recognizes),
        open: sadf_d::open,
    },
    Kind {
        name: "sadf-p",
        about: "what sar recorded, as sadf -p writes it",
        recognizes: By::Text(sadf_p::recognizes),
        open: sadf_p::open,
    },
    Kind {
        name: "iostat",
        about: "iostat of sysstat, as text",
        recognizes: By::Text(iostat::recognizes),
        open: iostat::open,
    },
    Kind {
        name: "sar",
        about: "sar of sysstat, as text",
        recognizes: By::Text(sar::recognizes),
        open: sar::open,
    },
    Kind {
        name: "vmstat",
        about: "vmstat, as text",
        recognizes: By::Text(vmstat::recognizes),
        open: vmstat::open,
    },
    Kind {
        name: "vmstat-d",
        about: "counters of disks, as vmstat -d writes them",
        recognizes: By::Text(vmstat_d::recognizes),
        open: vmstat_d::open,
    },
    Kind {
        name: "diskstats",
        about: "/proc/diskstats of Linux, once or repeatedly",
        recognizes: By::Text(diskstats::recognizes),
        open: diskstats::open,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_the_unit_that_sysstat_puts_behind_them() {
        let check = |text: &str, expect: Option<f64>| {
            assert_eq!(quantity(Style::Point, text, KIB), expect, "{text}");
        };
        check("1.5", Some(1536.0));
        check("1.5k", Some(1536.0));
        check("2.0M", Some(2_097_152.0));
        check("0.0B", Some(0.0));
        check("k", None);
        check("sda", None);
        check("", None);
    }

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
