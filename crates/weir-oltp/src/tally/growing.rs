//! How the data files grew.

use std::collections::BTreeMap;
use weir_units::{Bytes, Instant};

/// A file that grew, for a [`LoadTally`](super::LoadTally).
#[derive(Debug, Clone, Copy)]
pub struct Grown<'a> {
    /// Its name.
    pub file: &'a str,
    /// Its size before and after.
    pub from: Bytes,
    /// After.
    pub to: Bytes,
    /// Its tier before and after, if it has one.
    pub tiers: Option<(&'a str, &'a str)>,
}

/// How a file grew.
#[derive(Debug, Clone, Default)]
struct OfFile {
    times: u64,
    from: Bytes,
    to: Bytes,
    /// When it came to another tier, and at which size.
    steps: Vec<String>,
    /// Why it grew no more.
    refused: Option<String>,
}

/// How the data files of a database grew, by name.
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
            let at = weir_report::number::rate(super::seconds(now.since(Instant::ZERO)));
            file.steps.push(format!("{before} to {after} at {at} s with {}", grown.to));
        }
    }

    pub(super) fn refused(&mut self, now: Instant, file: &str, why: &str) {
        let at = weir_report::number::rate(super::seconds(now.since(Instant::ZERO)));
        let file = self.0.entry(file.to_owned()).or_default();
        file.refused = Some(format!("could not grow at {at} s: {why}"));
    }

    /// A line for each file that grew or could not.
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
