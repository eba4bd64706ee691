//! The growth of data files.

use super::ratio::seconds;
use std::collections::BTreeMap;
use weir_units::{Bytes, Instant};

/// A file that grew, for a [`LoadTally`](super::LoadTally).
#[derive(Debug, Clone, Copy)]
pub struct Grown<'a> {
    /// Its name.
    pub file: &'a str,
    /// Its size before.
    pub from: Bytes,
    /// Its size after.
    pub to: Bytes,
    /// Its tier before and after, if it has one.
    pub tiers: Option<(&'a str, &'a str)>,
}

/// The growth of a file.
#[derive(Debug, Clone, Default)]
struct OfFile {
    times: u64,
    from: Bytes,
    to: Bytes,
    /// Changes of its tier, each with time and size.
    steps: Vec<String>,
    /// The reason why it did not grow further.
    refused: Option<String>,
}

/// The growth of a database's data files, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Growing(BTreeMap<String, OfFile>);

impl Growing {
    pub(super) fn grown(&mut self, now: Instant, grown: &Grown<'_>) {
        let file = self.0.entry(grown.file.to_owned()).or_default();
        if file.times == 0 {
            file.from = grown.from;
        }
        file.times += 1;
        file.to = grown.to;
        if let Some((before, after)) = grown.tiers.filter(|(before, after)| before != after) {
            let at = weir_report::number::rate(seconds(now.since(Instant::ZERO)));
            file.steps.push(format!("{before} to {after} at {at} s with {}", grown.to));
        }
    }

    pub(super) fn refused(&mut self, now: Instant, file: &str, why: &str) {
        let at = weir_report::number::rate(seconds(now.since(Instant::ZERO)));
        let file = self.0.entry(file.to_owned()).or_default();
        file.refused = Some(format!("could not grow at {at} s: {why}"));
    }

    /// Returns a line for each file that grew or could not grow.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> + '_ {
        let words = |(name, file): (&String, &OfFile)| {
            let times =
                if file.times == 1 { "once".to_owned() } else { format!("{} times", file.times) };
            let grew = (file.times > 0)
                .then(|| format!("grew {times}, from {} to {}", file.from, file.to));
            let steps =
                (!file.steps.is_empty()).then(|| format!("went from {}", file.steps.join(", ")));
            let parts: Vec<String> =
                grew.into_iter().chain(steps).chain(file.refused.clone()).collect();
            format!("{name} {}", parts.join("; "))
        };
        self.0.iter().map(words)
    }
}
