//! The pass over the samples of a system, on several threads if it is large.

use super::backups::BackupTracks;
use super::cap::{CapFacts, CapTrack};
use super::component::Component;
use super::facts::{Facts, SubjectFacts};
use super::others::OtherTracks;
use crate::seconds::span_s;
use crate::system::System;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::thread;
use weir_observe::load::Loads;
use weir_observe::metric;
use weir_observe::rates::{Reading, Spread, Track, Tracker};
use weir_observe::{Block, Contents, EntityId, SeriesId};
use weir_units::Instant;

/// Follows the samples of an observation.
#[derive(Debug)]
pub struct Follow<'a> {
    system: &'a System,
    components: Vec<Component<'a>>,
    /// Counters of other entities may be reset as well.
    rest: Loads,
    /// Wait times that Weir counted, by subject.
    waited: Vec<Vec<(String, f64)>>,
    waits: Tracker,
    /// The subject, and the place there, of each wait.
    wait_of: Vec<(usize, usize)>,
    others: OtherTracks,
    backups: BackupTracks,
    samples: u64,
    span: Option<(Instant, Instant)>,
    intervals: Spread,
    /// Limits without load.
    unused: Vec<(usize, CapFacts)>,
    /// The outermost entity that each subject belongs to: its server.
    servers: Vec<EntityId>,
}

/// Minimum number of loads for a thread.
const FEW: usize = 4096;

impl<'a> Follow<'a> {
    /// Follows the subjects of `system`, which is that of `contents`.
    #[must_use]
    pub fn new(system: &'a System, contents: &Contents) -> Self {
        let mut subject_of = vec![None; contents.entities.len()];
        for (index, subject) in system.subjects.iter().enumerate() {
            subject_of[subject.entity.0 as usize] = Some(index);
        }
        let (tracks, wait_of, names) = waits_of(contents, &subject_of);
        let mut waited = vec![Vec::new(); system.subjects.len()];
        for (subject, name) in names {
            waited[subject].push((name, 0.0));
        }
        let (components, rest) = Component::all(system, contents);
        let is_used = |cap: usize| system.subjects.iter().any(|own| own.passes(cap));
        let unused = (0..system.caps.len()).filter(|cap| !is_used(*cap));
        let unused = unused.map(|cap| (cap, CapTrack::new(system, contents, cap).finish()));
        Self {
            system,
            components,
            rest,
            waited,
            waits: Tracker::new(contents, &tracks),
            wait_of,
            others: OtherTracks::new(contents),
            backups: BackupTracks::new(contents),
            samples: 0,
            span: None,
            intervals: Spread::default(),
            unused: unused.collect(),
            servers: system.subjects.iter().map(|own| server(contents, own.entity)).collect(),
        }
    }

    /// Takes samples.
    pub fn samples(&mut self, block: &Block) {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let loads = self.system.subjects.len() * block.len();
        let threads = threads.min(self.components.len()).min(loads / FEW + 1);
        if threads < 2 {
            self.components.iter_mut().for_each(|component| component.samples(block));
            self.rest_of_samples(block);
            return;
        }
        let mut components = std::mem::take(&mut self.components);
        let share = components.len().div_ceil(threads);
        thread::scope(|scope| {
            for own in components.chunks_mut(share) {
                scope.spawn(|| own.iter_mut().for_each(|component| component.samples(block)));
            }
            self.rest_of_samples(block);
        });
        self.components = components;
    }

    /// Series that do not belong to a subject.
    fn rest_of_samples(&mut self, block: &Block) {
        for (at, row) in block.iter() {
            if let Some((_, before)) = self.span {
                let seconds = span_s(at - before);
                let amount = seconds * seconds;
                self.intervals.add(&Reading { from: before, to: at, amount });
            }
            self.span = Some((self.span.map_or(at, |span| span.0), at));
            self.samples += 1;
            self.rest.sample(at, row, |_, _| {});
            let (waited, wait_of) = (&mut self.waited, &self.wait_of);
            self.waits.sample(at, row, |index, reading| {
                let (subject, place) = wait_of[index];
                waited[subject][place].1 += reading.amount;
            });
            self.others.sample(at, row);
            self.backups.sample(at, row);
        }
    }

    /// Returns the facts.
    #[must_use]
    pub fn finish(self) -> Facts {
        let restarts = self.components.iter().map(Component::restarts).sum::<u64>();
        let (mut subjects, mut caps) = (Vec::new(), self.unused);
        for component in self.components {
            let (own_subjects, own_caps) = component.finish();
            subjects.extend(own_subjects);
            caps.extend(own_caps);
        }
        subjects.sort_unstable_by_key(|(index, _)| *index);
        caps.sort_unstable_by_key(|(index, _)| *index);
        let subjects = subjects.into_iter().zip(self.waited);
        let mut subjects: Vec<SubjectFacts> =
            subjects.map(|((_, facts), waited)| SubjectFacts { waited, ..facts }).collect();
        believe_zeros(self.system, &mut subjects, &self.servers);
        let (backups, processors) = self.backups.finish();
        Facts {
            caps: caps.into_iter().map(|(_, facts)| facts).collect(),
            subjects,
            others: self.others.finish(),
            backups,
            processors,
            samples: self.samples,
            span: self.span,
            restarts: restarts + self.rest.restarts(),
            interval_s: self.intervals.quantile(0.5),
        }
    }
}

/// Returns the outermost entity around `id`.
fn server(contents: &Contents, id: EntityId) -> EntityId {
    match contents.entity(id).and_then(|own| own.parent) {
        Some(parent) => server(contents, parent),
        None => id,
    }
}

/// Counts queued times of zero where another file of the same server has a queue: its governor
/// counts them, then. A disk or machine whose limits are known may hold requests that no governor
/// sees.
fn believe_zeros(system: &System, subjects: &mut [SubjectFacts], servers: &[EntityId]) {
    let both = subjects.iter().zip(servers);
    let counting: BTreeSet<EntityId> =
        both.filter(|(own, _)| own.says_queued).map(|(_, server)| *server).collect();
    let all = system.subjects.iter().zip(subjects.iter_mut().zip(servers));
    for (subject, (own, server)) in all {
        if own.says_zero_queued && counting.contains(server) && subject.path.is_empty() {
            own.says_queued = true;
            own.total.queued_read_ns.get_or_insert(0.0);
            own.total.queued_write_ns.get_or_insert(0.0);
        }
    }
}

type WaitTracks = (Vec<Track>, Vec<(usize, usize)>, Vec<(usize, String)>);

/// Returns the tracks of counted waits, the subject and position of each, and the names of their
/// caps.
fn waits_of(contents: &Contents, subject_of: &[Option<usize>]) -> WaitTracks {
    let (mut tracks, mut wait_of, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let mut counts = vec![0; subject_of.len()];
    for (series, id) in contents.series.iter().zip(0..) {
        let subject = subject_of.get(series.entity.0 as usize).copied().flatten();
        if let (Some(subject), Some(cap)) = (subject, metric::cap_of(&series.metric)) {
            tracks.push(Track(vec![SeriesId(id)]));
            wait_of.push((subject, counts[subject]));
            counts[subject] += 1;
            names.push((subject, cap.to_owned()));
        }
    }
    (tracks, wait_of, names)
}

/// Returns the entities of an observation with I/O.
#[must_use]
pub fn loads(contents: &Contents) -> BTreeSet<EntityId> {
    Loads::new(contents).entities().collect()
}

/// Returns whether an observation has other data for a diagnosis: waits, processors, shares of
/// limits.
#[must_use]
pub(crate) fn says_something(contents: &Contents) -> bool {
    OtherTracks::new(contents).follows_any()
}
