//! Simulation of a choice of disks, stripes and transfers.
//!
//! The rate of a backup is constant, because plans count on no bursts. A large backup is therefore
//! simulated twice in part, with all sources in proportion; the difference is the time of one part,
//! from which the whole duration follows. The final plan is simulated as a whole.

use super::answer::Binding;
use super::bound::{lower_bound, processors_take};
use super::ground::Ground;
use super::question::Question;
use super::settings::Settings;
use crate::error::PlanError;
use std::collections::HashMap;
use weir_layout::Layout;
use weir_layout::file::VolumeKeys;
use weir_layout::files::Place;
use weir_pipeline::{
    BackupError, BackupFault, CompressionText, Description, DescriptionText, PlaceAbout, Plan,
};
use weir_report::backup::BackupReport;
use weir_sim::{OltpOptions, OltpSimError, OltpSimulation};
use weir_units::{Bytes, Instant, Span};

/// The simulated part of a large backup. Twice as much is simulated for the difference.
const PART: Bytes = Bytes::gib(8);
/// Backups up to this many parts are simulated as a whole.
const WHOLE_UP_TO: u64 = 3;
/// The size of a page, the unit in which sources are read.
const PAGE: u64 = 8192;

/// Equal target disks, as the keys of their volumes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Targets {
    pub(super) keys: VolumeKeys,
    pub(super) count: u64,
}

/// The result of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) duration: Span,
    pub(super) is_extrapolated: bool,
    pub(super) binding: Binding,
    pub(super) buffer_count: u32,
}

/// A layout with target disks.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) targets: Targets,
    pub(super) layout: Layout,
    places: Vec<Place>,
}

/// Simulates choices and remembers the results.
#[derive(Debug)]
pub(super) struct Bench<'q, 'a> {
    pub(super) question: &'q Question<'a>,
    pub(super) ground: &'q Ground<'q>,
    measured: HashMap<(Targets, Settings, bool), Option<Measured>>,
    /// Numbers of simulated choices, and of choices that their lower bound excluded.
    pub(super) simulated: u64,
    pub(super) excluded: u64,
}

impl<'q, 'a> Bench<'q, 'a> {
    pub(super) fn new(question: &'q Question<'a>, ground: &'q Ground<'q>) -> Self {
        Self { question, ground, measured: HashMap::new(), simulated: 0, excluded: 0 }
    }

    /// Resolves the layout with targets.
    pub(super) fn build(&self, targets: Targets) -> Result<Built, PlanError> {
        let layout = self.ground.with(&targets.keys, targets.count)?;
        let places = layout.places();
        Ok(Built { targets, layout, places })
    }

    /// Writes the description of a backup of `size`.
    pub(super) fn text(&self, targets: &Targets, own: Settings, size: Bytes) -> String {
        let question = self.question;
        let compression = question.compression.map(|own| CompressionText {
            ratio: own.ratio,
            rate: own.rate,
            threads: own.threads,
        });
        DescriptionText {
            sources: question.sources.clone(),
            to: (1..=targets.count).map(|at| self.ground.target(at)).collect(),
            stripes: own.stripes * targets.count,
            size,
            max_transfer_size: own.transfer,
            readers: Some(question.readers).filter(|readers| *readers > 1).map(u64::from),
            buffer_count: None,
            limit: own.limit.or(question.limit),
            setup: Some(question.setup).filter(|setup| *setup > Span::ZERO),
            compression,
        }
        .toml()
    }

    /// Returns the description of a backup of `size` and its plan on the layout; `None` if a target
    /// has no room for its stripes.
    pub(super) fn describe(
        &self,
        built: &Built,
        own: Settings,
        size: Bytes,
    ) -> Result<Option<(Description, Plan)>, PlanError> {
        let text = self.text(&built.targets, own, size);
        let description = Description::parse("backup.toml", &text)?;
        let about = |own| -> PlaceAbout<'_> {
            PlaceAbout { name: name(own), size: own.size, used: own.used }
        };
        fn name(place: &Place) -> &str {
            &place.name
        }
        let about: Vec<PlaceAbout<'_>> = built.places.iter().map(about).collect();
        match description.plan(&about) {
            Ok(plan) => Ok(Some((description, plan))),
            Err(error) if is_room(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the lower bound of a choice's duration; `None` if there is no room.
    pub(super) fn bound(&self, built: &Built, own: Settings) -> Result<Option<Span>, PlanError> {
        let described = self.describe(built, own, self.question.size)?;
        Ok(described.map(|(_, plan)| {
            lower_bound(&built.layout, &built.places, &plan) + self.question.setup
        }))
    }

    /// Simulates a choice, in part if that is enough. Returns `None` if there is no room.
    pub(super) fn measure(
        &mut self,
        built: &Built,
        own: Settings,
        is_whole: bool,
    ) -> Result<Option<Measured>, PlanError> {
        let size = self.question.size;
        let is_small = size.get() <= PART.get() * WHOLE_UP_TO;
        let key = (built.targets.clone(), own, is_whole || is_small);
        if let Some(known) = self.measured.get(&key) {
            return Ok(known.clone());
        }
        self.simulated += 1;
        let measured = match key.2 {
            true => self.run(built, own, size)?,
            false => self.extrapolate(built, own)?,
        };
        self.measured.insert(key, measured.clone());
        Ok(measured)
    }

    fn extrapolate(&self, built: &Built, own: Settings) -> Result<Option<Measured>, PlanError> {
        if self.describe(built, own, self.question.size)?.is_none() {
            return Ok(None);
        }
        let twice = Bytes::new(PART.get() * 2);
        let Some(first) = self.run(built, own, PART)? else { return Ok(None) };
        let Some(second) = self.run(built, own, twice)? else { return Ok(None) };
        let each = second.duration.saturating_sub(first.duration);
        let rest = self.question.size.get().saturating_sub(twice.get());
        let nanos = u128::from(each.nanos()) * u128::from(rest) / u128::from(PART.get());
        let rest = Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let duration = second.duration + rest;
        Ok(Some(Measured { duration, is_extrapolated: true, ..second }))
    }

    fn run(
        &self,
        built: &Built,
        own: Settings,
        size: Bytes,
    ) -> Result<Option<Measured>, PlanError> {
        let size = Bytes::new((size.get() / PAGE * PAGE).max(size.get().min(PAGE)));
        let Some((description, plan)) = self.describe(built, own, size)? else { return Ok(None) };
        let backups = [description];
        let options = OltpOptions {
            edition: Some(self.ground.edition),
            seed: 1,
            every: None,
            backups: &backups,
        };
        let mut simulation = match OltpSimulation::new(&built.layout, &[], &options) {
            Ok(simulation) => simulation,
            Err(OltpSimError::Backup(error)) if is_room(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        while simulation.run_until(Instant::FAR).is_some() {}
        let report = simulation.report();
        let elapsed = report.backups.first().map_or(0.0, |own| own.elapsed_s);
        let duration = seconds(elapsed);
        let binding = report.backups.first().map_or(Binding::Latency, |own| {
            binding(own, &plan, duration.saturating_sub(self.question.setup))
        });
        let buffer_count = plan.buffers.count;
        Ok(Some(Measured { duration, is_extrapolated: false, binding, buffer_count }))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a report's seconds, which came from nanoseconds"
)]
pub(super) fn seconds(own: f64) -> Span {
    Span::from_nanos((own * 1e9).round() as u64)
}

fn is_room(error: &BackupError) -> bool {
    matches!(*error.fault, BackupFault::Room { .. })
}

/// Processors bind a backup if compression takes this share of its duration, in per cent.
const BUSY: u128 = 95;

/// The name of a backup's own limit in its report.
const OWN_LIMIT: &str = "limit";

/// Returns the binding limit of a backup that took `elapsed` from its first transfer on.
pub(super) fn binding(report: &BackupReport, plan: &Plan, elapsed: Span) -> Binding {
    if processors_take(plan) * 100 >= u128::from(elapsed.nanos()) * BUSY {
        return Binding::Compression;
    }
    let Some(limit) = report.binding_limit.clone() else { return Binding::Latency };
    if limit == OWN_LIMIT {
        return Binding::Limit;
    }
    if !limit.starts_with("disk") {
        return Binding::Machine { limit };
    }
    let longest =
        report.places.iter().max_by_key(|own: &&weir_report::backup::BackupPlaceReport| {
            own.waits_ns.get(&limit).copied()
        });
    match longest {
        Some(own) if own.role == "target" => Binding::Target { place: own.place.clone(), limit },
        Some(own) => Binding::Source { place: own.place.clone(), limit },
        None => Binding::Latency,
    }
}
