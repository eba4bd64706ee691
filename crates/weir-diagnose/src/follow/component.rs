//! Subjects that share caps, followed together.
//!
//! Subjects without a common limit do not influence each other. Each connected component is
//! therefore followed for many samples at a time, which suits the processor's cache, and components
//! are distributed over threads.

use super::attribution::{Attribution, Pieces};
use super::bins::queued;
use super::cap::{CapFacts, CapTrack, others_of_burst};
use super::facts::SubjectFacts;
use super::subject::SubjectTrack;
use crate::system::{Counts, Subject, SubjectId, System};
use std::collections::BTreeMap;
use weir_observe::load::{Load, Loads, mean};
use weir_observe::{Block, Contents, EntityId};
use weir_units::Instant;

/// Subjects that share caps, and these.
#[derive(Debug)]
pub(super) struct Component<'a> {
    system: &'a System,
    loads: Loads,
    /// The place of each entity's subject.
    place_of: BTreeMap<EntityId, usize>,
    members: Vec<Member<'a>>,
    now: Vec<Option<Load>>,
    /// Indices of its limits in the system. Paths refer to positions in this list.
    caps: Vec<usize>,
    tracks: Vec<CapTrack>,
}

/// Operations of a column that have this part of the stripe's unit may be pieces of larger ones.
const PIECE: f64 = 0.9;

/// Facts with their indices in the system.
type Indexed<T> = Vec<(usize, T)>;

#[derive(Debug)]
struct Member<'a> {
    index: usize,
    subject: &'a Subject,
    path: Vec<Counts>,
    /// Columns of a stripe form a group; all others are groups of one.
    group: usize,
    /// For a column: position of its observed stripe, and the number of columns.
    stripe: Option<(usize, f64)>,
    /// Bytes on a column of its stripe before the next.
    unit: Option<f64>,
    track: SubjectTrack,
}

impl<'a> Component<'a> {
    /// Returns the components of a system, and the entities of `loads` that are no subjects.
    pub(super) fn all(system: &'a System, contents: &Contents) -> (Vec<Self>, Loads) {
        let groups = joined(system);
        let mut of_entity: BTreeMap<EntityId, usize> = BTreeMap::new();
        for (component, indices) in groups.iter().enumerate() {
            of_entity.extend(indices.iter().map(|i| (system.subjects[*i].entity, component)));
        }
        let of = |entity: EntityId| of_entity.get(&entity).copied().unwrap_or(groups.len());
        let mut loads = Loads::new(contents).split(groups.len() + 1, of).into_iter();
        let all = groups.iter().zip(&mut loads);
        let all = all.map(|(indices, loads)| Self::new(system, contents, indices, loads)).collect();
        (all, loads.next().unwrap_or_default())
    }

    fn new(system: &'a System, contents: &Contents, indices: &[usize], loads: Loads) -> Self {
        let paths = indices.iter().flat_map(|index| &system.subjects[*index].path);
        let mut caps: Vec<usize> = paths.map(|counts| counts.cap).collect();
        caps.sort_unstable();
        caps.dedup();
        let local = |counts: &Counts| {
            let cap = caps.binary_search(&counts.cap).unwrap_or_else(|_| unreachable!("its own"));
            Counts { cap, ..*counts }
        };
        let members: Vec<Member<'_>> = indices
            .iter()
            .map(|index| {
                let subject = &system.subjects[*index];
                let stripe = stripe_of(system, subject).and_then(|(stripe, columns)| {
                    let place = indices.iter().position(|index| *index == stripe)?;
                    Some((place, columns))
                });
                Member {
                    index: *index,
                    subject,
                    path: subject.path.iter().map(local).collect(),
                    group: group(system, *index, subject),
                    stripe,
                    unit: unit_of(system, subject),
                    track: SubjectTrack::new(subject.path.len()),
                }
            })
            .collect();
        let places = members.iter().enumerate();
        Self {
            system,
            loads,
            place_of: places.map(|(place, member)| (member.subject.entity, place)).collect(),
            now: vec![None; members.len()],
            members,
            tracks: caps.iter().map(|cap| CapTrack::new(system, contents, *cap)).collect(),
            caps,
        }
    }

    /// Takes samples.
    pub(super) fn samples(&mut self, block: &Block) {
        block.iter().for_each(|(at, row)| self.sample(at, row));
    }

    fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        self.now.fill(None);
        let (now, place_of, members) = (&mut self.now, &self.place_of, &mut self.members);
        self.loads.sample(at, row, |entity, mut load| {
            if let Some(place) = place_of.get(&entity) {
                let member = &mut members[*place];
                if !member.subject.counts_queues && queued(&load) == Some(0.0) {
                    (load.queued_read_ns, load.queued_write_ns) = (None, None);
                    member.track.facts.has_zero_queue_times = true;
                }
                now[*place] = Some(load);
            }
        });
        for (member, load) in self.members.iter().zip(&self.now) {
            let Some(load) = load.as_ref().filter(|_| member.subject.is_meter) else { continue };
            for counts in &member.path {
                let cap = &self.system.caps[self.caps[counts.cap]];
                self.tracks[counts.cap].take(cap, counts, (member.index, member.group), load);
            }
        }
        for (cap, track) in self.caps.iter().zip(&mut self.tracks) {
            track.settle(&self.system.caps[*cap], at, row);
        }
        for (member, load) in self.members.iter_mut().zip(&self.now) {
            let Some(load) = load.as_ref() else { continue };
            member.track.arrivals.take(load);
            if !member.subject.is_meter {
                continue;
            }
            let whole = whole(member, load, &self.now);
            let own = |counts: &Counts| self.tracks[counts.cap].service_s(member.index);
            let service_s = member.path.iter().map(own).fold(0.0, f64::max);
            let others = match member.track.arrivals {
                // In a closed loop, requests do not arrive together.
                arrivals if arrivals.are_closed_loop() => load.busy().map(|_| 0.0),
                arrivals => {
                    let medium = member.subject.medium.filter(|_| arrivals.are_even());
                    let operations = load.operations.unwrap_or(1.0);
                    let medium_s = medium.map(|own| own.load_ns(load) / 1e9 / operations);
                    others_of_burst(load, service_s, medium_s)
                }
            };
            for counts in &member.path {
                let track = &mut self.tracks[counts.cap];
                let Some((pieces, columns)) = whole else {
                    track.meet(member.index, others, 1.0);
                    continue;
                };
                let of = |is_disk_limit| Pieces::new(pieces, columns, is_disk_limit);
                let own = of(track.is_disk_limit());
                let others = others.map(|others| own.others(of(true).requests(others).max(1.0)));
                track.meet(member.index, others, own.columns);
            }
        }
        for (member, load) in self.members.iter_mut().zip(&self.now) {
            let Some(load) = load else { continue };
            let whole = whole(member, load, &self.now);
            member.track.take(
                &Attribution {
                    subject: member.index,
                    load,
                    path: &member.path,
                    medium: member.subject.medium,
                    whole,
                    is_cut: is_cut(member, load, whole),
                    is_even: member.track.arrivals.are_even(),
                    busy_of_bursts_s: member.track.arrivals.busy_of_bursts(),
                    caps: &self.tracks,
                },
                &member.subject.path,
            );
        }
    }

    /// Returns the number of counter resets.
    pub(super) fn restarts(&self) -> u64 {
        self.loads.restarts()
    }

    /// Returns the facts of subjects and limits with their indices in the system.
    pub(super) fn finish(self) -> (Indexed<SubjectFacts>, Indexed<CapFacts>) {
        let members = self.members.into_iter();
        let subjects = members.map(|member| (member.index, member.track.finish()));
        let caps = self.caps.into_iter().zip(self.tracks.into_iter().map(CapTrack::finish));
        (subjects.collect(), caps.collect())
    }
}

/// Returns for a column the number of pieces of a request to its stripe, and the number of columns.
fn whole(member: &Member<'_>, load: &Load, now: &[Option<Load>]) -> Option<(f64, f64)> {
    let (stripe, columns) = member.stripe?;
    let whole = now[stripe].as_ref()?;
    let size = mean(whole.bytes, whole.operations)?;
    Some((size / mean(load.bytes, load.operations)?, columns))
}

/// Returns whether operations of a column may be pieces of larger requests, which arrive together.
fn is_cut(member: &Member<'_>, load: &Load, whole: Option<(f64, f64)>) -> bool {
    if let Some((pieces, _)) = whole {
        return pieces > 1.0;
    }
    let size = mean(load.bytes, load.operations);
    member.unit.zip(size).is_some_and(|(unit, size)| size >= PIECE * unit)
}

/// Returns the unit of the stripe that a subject is a column of.
fn unit_of(system: &System, subject: &Subject) -> Option<f64> {
    let SubjectId::Disk(disk) = subject.id else { return None };
    let unit = system.stripes[system.disks[disk].stripe?].unit?;
    Some(weir_report::number::float(unit))
}

/// Returns the subjects of each component, in order.
fn joined(system: &System) -> Vec<Vec<usize>> {
    let count = system.subjects.len();
    let mut first_of_cap: Vec<Option<usize>> = vec![None; system.caps.len()];
    // Each leads to an earlier one of its component, the first to itself.
    let mut earlier: Vec<usize> = (0..count).collect();
    let first = |earlier: &[usize], mut index: usize| {
        while earlier[index] != index {
            index = earlier[index];
        }
        index
    };
    for (index, subject) in system.subjects.iter().enumerate() {
        let stripe = stripe_of(system, subject).map(|(stripe, _)| stripe);
        let mut with: Vec<usize> = stripe.into_iter().collect();
        with.extend(subject.path.iter().map(|own| *first_of_cap[own.cap].get_or_insert(index)));
        for other in with {
            let (one, other) = (first(&earlier, index), first(&earlier, other));
            earlier[one.max(other)] = one.min(other);
        }
    }
    let mut components: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for index in 0..count {
        components.entry(first(&earlier, index)).or_default().push(index);
    }
    components.into_values().collect()
}

/// Returns the group of a subject. Groups of stripes are numbered after all subjects.
fn group(system: &System, index: usize, subject: &Subject) -> usize {
    let stripe = match subject.id {
        SubjectId::Disk(disk) => system.disks[disk].stripe,
        SubjectId::Stripe(_) | SubjectId::File(_) => None,
    };
    stripe.map_or(index, |stripe| system.subjects.len() + stripe)
}

/// Returns the stripe of a column, if the stripe is a subject, and the number of columns.
fn stripe_of(system: &System, subject: &Subject) -> Option<(usize, f64)> {
    let SubjectId::Disk(disk) = subject.id else { return None };
    let stripe = system.disks[disk].stripe?;
    let own = system.subjects.iter().position(|own| own.id == SubjectId::Stripe(stripe))?;
    #[expect(clippy::cast_precision_loss, reason = "a number of disks")]
    let columns = system.stripes[stripe].columns.len() as f64;
    Some((own, columns))
}
