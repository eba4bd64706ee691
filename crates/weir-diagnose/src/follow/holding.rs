//! Which caps held the requests of a sample, each with its part of that.
//!
//! Requests pass the caps of their path one after the other. Where one of them is used up, or
//! many are under way for as long as it is used, they wait there. Where they come few at a time,
//! a little burst waits at the first cap for as long as that takes to let it through; at a later
//! one it waits for what that takes longer. And everybody waits for others at a cap that is
//! shared, for about as long as an operation of theirs takes.

use super::NEAR;
use super::cap::{CapTrack, Shares};
use crate::system::{Counts, Medium};
use weir_observe::load::Load;

/// A cap of which so much is used is used up all the time.
const USED_UP: f64 = 0.95;

/// So many requests under way while a cap is used are a line, not a coincidence.
const DEEP: f64 = 30.0;

/// So many pieces of a request on average are those of one that is cut.
const CUT: f64 = 1.01;

/// A line of so large a part of all requests came at once, and not one after the other.
const AT_ONCE: f64 = 0.2;

/// What a subject did in a sample, and the caps that it passes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holding<'a> {
    pub(super) subject: usize,
    pub(super) load: &'a Load,
    pub(super) path: &'a [Counts],
    pub(super) medium: Option<Medium>,
    /// Of a column: into how many pieces a request to its stripe is cut, and over how many
    /// columns.
    pub(super) whole: Option<(f64, f64)>,
    pub(super) caps: &'a [CapTrack],
}

impl Holding<'_> {
    /// Puts the places of the caps that held, each with its part, into `parts`; returns how much
    /// of the one used most was used.
    pub(super) fn parts(&self, parts: &mut Vec<(usize, f64)>) -> f64 {
        parts.clear();
        let most = self.scores().map(|(_, score)| score).fold(0.0, f64::max);
        if most <= 0.0 {
            return most;
        }
        let first = || self.scores().find(|(_, score)| *score >= most - 0.005);
        if most >= USED_UP {
            parts.extend(first().map(|(place, _)| (place, 1.0)));
            return most;
        }
        let left = self.for_others(parts);
        if self.is_steady(most) {
            parts.extend(first().map(|(place, _)| (place, left)));
        } else {
            self.in_bursts(left, parts);
        }
        let sum: f64 = parts.iter().map(|(_, part)| part).sum();
        if sum > 0.0 {
            parts.iter_mut().for_each(|(_, part)| *part /= sum);
        } else {
            parts.clear();
            parts.extend(first().map(|(place, _)| (place, 1.0)));
        }
        most
    }

    /// How much is used of each cap, as far as that can hold this subject.
    fn scores(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let all = self.path.iter().enumerate();
        all.filter_map(|(place, counts)| Some((place, self.score(counts)?)))
    }

    fn score(&self, counts: &Counts) -> Option<f64> {
        let track = &self.caps[counts.cap];
        let used = track.used()?;
        // Nobody says how many reads the host's cache served: at most this much is used, and a
        // cap of which more is known goes before it.
        let share = if used.is_bound { used.share.min(NEAR - 0.01) } else { used.share };
        // Who takes less than another has its part of a cap, however much is used of it.
        Some(share.min(track.of_the_largest(self.subject)))
    }

    fn operations(&self) -> f64 {
        self.load.operations.unwrap_or(0.0).max(1.0)
    }

    /// Whether requests come one after the other as others end, and not at once.
    fn is_steady(&self, most: f64) -> bool {
        let depth = self.load.ns.unwrap_or(0.0) / (most * self.load.seconds() * 1e9);
        depth >= DEEP && depth < AT_ONCE * self.operations()
    }

    /// What requests take beyond the medium, each, in seconds, if that is known.
    fn beyond_s(&self) -> Option<f64> {
        let medium = self.medium?;
        let beyond = self.load.ns.unwrap_or(0.0) - medium.of_load(self.load);
        Some(beyond.max(0.0) / self.operations() / 1e9)
    }

    /// Waits for others; returns what is left.
    fn for_others(&self, parts: &mut Vec<(usize, f64)>) -> f64 {
        let Some(mut left_s) = self.beyond_s() else { return 1.0 };
        for (place, counts) in self.path.iter().enumerate() {
            let track = &self.caps[counts.cap];
            if track.used().is_some() {
                let others = track.shares(self.subject).others_wait_s.min(left_s);
                parts.push((place, others));
                left_s -= others;
            }
        }
        left_s
    }

    /// The pieces of a request to a stripe come at once, and where requests do, those of more. Of
    /// those that come to one cap, the first does not wait for the others.
    fn behind_the_first(&self, counts: &Counts) -> f64 {
        let Some((pieces, columns)) = self.whole else { return 1.0 };
        // A cap of the host has what all columns have under way.
        let caps = if self.caps[counts.cap].is_of_disk() { columns } else { 1.0 };
        let of_one = pieces / caps;
        let at_once = match self.load.at_once() {
            Some(of_column) => of_one.max(of_column * columns / caps),
            // A burst of requests that are not cut is as one of requests to a disk.
            None if pieces < CUT => return 1.0,
            None => of_one,
        };
        1.0 - 1.0 / at_once.max(1.0)
    }

    /// Bursts: what others do stays what it is, and the burst takes what they leave.
    fn in_bursts(&self, left: f64, parts: &mut Vec<(usize, f64)>) {
        let burst = |counts: &Counts| {
            let Shares { own, others, .. } = self.caps[counts.cap].shares(self.subject);
            let score = own.min(self.score(counts)?) / (1.0 - others).max(0.05);
            Some(score * self.behind_the_first(counts))
        };
        let last = self.path.iter().filter_map(burst).fold(0.0, f64::max);
        let mut before = 0.0;
        for (place, counts) in self.path.iter().enumerate().filter(|_| last > 0.0) {
            if let Some(score) = burst(counts).filter(|score| *score > before) {
                parts.push((place, left * (score - before) / last));
                before = score;
            }
        }
    }
}
