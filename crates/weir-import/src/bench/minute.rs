//! Common parts of the logs of HammerDB: minutes, and times with zone abbreviations.

use crate::sheet::Sheet;
use weir_observe::moment::Clock;

/// Seconds in a minute.
pub(super) const MINUTE: f64 = 60.0;

/// The zone abbreviations of RFC 822, in hours from UTC.
const ZONES: [(&str, &str); 8] = [
    ("EST", "-0500"),
    ("EDT", "-0400"),
    ("CST", "-0600"),
    ("CDT", "-0500"),
    ("MST", "-0700"),
    ("MDT", "-0600"),
    ("PST", "-0800"),
    ("PDT", "-0700"),
];

/// Parses a time of a log, with its zone if that is an abbreviation.
pub(super) fn moment(clock: Clock, text: &str) -> Option<(i64, Option<String>)> {
    let text = text.trim();
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some(zone) = words.get(4).filter(|_| words.len() == 6) else {
        return clock.moment(text).map(|at| (at, None));
    };
    let known = ZONES.iter().find(|(name, _)| name == zone);
    let plain = match known {
        Some((name, offset)) => text.replace(name, offset),
        None => text.to_owned(),
    };
    let is_utc = ["UTC", "GMT"].contains(zone) || zone.starts_with(['+', '-']);
    let zone = (!is_utc).then(|| match known {
        Some((_, offset)) => {
            format!("the zone {zone} is assumed to be {offset}, as in RFC 822")
        }
        None => format!("the zone {zone} is unknown: UTC assumed unless an offset is given"),
    });
    clock.moment(&plain).map(|at| (at, zone))
}

/// Notes once how a zone abbreviation is interpreted.
pub(super) fn tell_zone(sheet: &mut Sheet, zone: Option<String>, is_told: &mut bool) {
    if let Some(zone) = zone.filter(|_| !*is_told) {
        *is_told = true;
        sheet.note(zone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_zones_of_letters() {
        let at = |text: &str| moment(Clock::default(), text);
        let pacific = at("Tue Jan 07 12:25:15 PST 2020").expect("a time");
        let utc = at("Tue Jan 07 20:25:15 UTC 2020").expect("a time");
        assert_eq!((pacific.0, utc.1), (utc.0, None));
        assert!(pacific.1.is_some_and(|told| told.contains("-0800")));
    }
}
