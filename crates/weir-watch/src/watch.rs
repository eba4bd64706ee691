//! The last readings, and what each new one changes.

use crate::clients::{self, Clients};
use crate::events::{self, Event};
use crate::history::History;
use crate::sample::{self, Sampled};
use crate::verdict;
use std::collections::VecDeque;
use weir_report::status::{Status, StatusReport};

/// The readings that the sentence about the present looks back.
const LOOK_BACK: usize = 10;
/// Events that are kept.
const EVENTS: usize = 200;

/// A server that is watched.
#[derive(Debug)]
pub struct Watch {
    /// At least one after the first reading.
    readings: VecDeque<Status>,
    history: History,
    events: VecDeque<Event>,
}

/// The changes of a reading that is not the first.
#[derive(Debug)]
pub struct Taken {
    /// The number of the sample.
    pub number: u64,
    /// The rates since the reading before.
    pub sampled: Vec<Sampled>,
    /// The clients since the reading before.
    pub clients: Clients,
    /// The state over the last ten readings, or since limits changed.
    pub report: StatusReport,
    /// The same in a sentence.
    pub sentence: String,
}

impl Watch {
    /// Creates a watch with a history of this many samples.
    #[must_use]
    pub fn keeping(samples: usize) -> Self {
        Self {
            readings: VecDeque::new(),
            history: History::keeping(samples),
            events: VecDeque::new(),
        }
    }

    /// Returns the samples of the past.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// Returns the events, the oldest first.
    #[must_use]
    pub const fn events(&self) -> &VecDeque<Event> {
        &self.events
    }

    /// Returns the newest reading.
    #[must_use]
    pub fn newest(&self) -> Option<&Status> {
        self.readings.back()
    }

    /// Notes an event at a time in milliseconds since 1970.
    pub fn note(&mut self, ms: u64, item: String, text: String) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event { ms, item, text });
    }

    /// Takes a reading of a time in milliseconds since 1970. The first one changes nothing, nor does
    /// one that was taken before.
    pub fn take(&mut self, ms: u64, status: Status) -> Option<Taken> {
        if self.readings.back().is_some_and(|last| last.uptime_ns == status.uptime_ns) {
            return None;
        }
        let before = self.readings.back().map(|old| {
            let rates = (sample::between(old, &status), clients::between(old, &status));
            (events::between(old, &status), rates)
        });
        if before.as_ref().is_some_and(|(changes, _)| !changes.is_empty()) {
            // The sentence is about the present limits.
            self.readings.drain(..self.readings.len() - 1);
        }
        let report = self.readings.front().map(|old| StatusReport::between(old, status.clone()));
        if self.readings.len() == LOOK_BACK {
            self.readings.pop_front();
        }
        self.readings.push_back(status);
        let ((changes, (sampled, clients)), report) = before.zip(report)?;
        changes.into_iter().for_each(|(item, text)| self.note(ms, item, text));
        let number = self.history.push(ms, &sampled);
        let sentence = verdict::sentence(&report);
        Some(Taken { number, sampled, clients, report, sentence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::reading;

    #[test]
    fn the_sentence_looks_back_to_the_last_change_of_limits() {
        let mut watch = Watch::keeping(10);
        assert!(watch.take(0, reading(0, 0)).is_none());
        let mut sentence = |second: u64, tier: &str| {
            let mut status = reading(second, second * 100);
            status.hosts[0].volumes[0].tier = Some(tier.to_owned());
            // It waits only with its first tier.
            if tier != "P10" {
                status.hosts[0].volumes[0].waits_ns.clear();
            }
            watch.take(second * 1_000, status).expect("a sample").sentence
        };
        for second in 1..5 {
            assert!(sentence(second, "P10").starts_with("data is throttled"));
        }
        assert!(sentence(5, "P20").starts_with("No volume is throttled"));
        assert!(sentence(6, "P20").starts_with("No volume is throttled"));
        assert_eq!(watch.events().len(), 1);
        // Ten readings at most.
        for second in 7..30 {
            watch.take(second * 1_000, reading(second, 3_000));
        }
        let report = watch.take(30_000, reading(30, 3_000)).expect("a sample").report;
        assert!((report.interval_s - 10.0).abs() < 1e-9, "{}", report.interval_s);
    }
}
