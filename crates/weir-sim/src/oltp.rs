//! Databases and backups in virtual time: the engines of a layout with any number of
//! [databases](weir_oltp::Database) and [backups](weir_pipeline::Pipeline). The driver jumps from
//! one deadline to the next.
//!
//! SQL Server opens its files for write-through, so no write stays in a ReadWrite cache.

mod backup;
mod load;

use crate::observing;
use backup::Backup;
use load::Load;
use std::collections::BTreeMap;
use weir_catalog::Edition;
use weir_core::{Completion, Engine, Event, Op, Request, SpecError, TraceHash};
use weir_layout::files::Place;
use weir_layout::{Host, Layout, Role};
use weir_observe::run::{LimitsNow, Sample, Shape};
use weir_oltp::model::Growth;
use weir_oltp::tally::Grown;
use weir_oltp::{Description, FileAbout, FileIo, FileOp, OltpError};
use weir_pipeline::{BackupError, Transfer};
use weir_report::oltp::{CostReport, OltpReport};
use weir_report::run::ClockName;
use weir_units::{Bytes, Instant, Span};

/// Options of a simulation of databases.
#[derive(Debug, Clone, Copy, Default)]
pub struct OltpOptions<'a> {
    /// The edition of the layout, if it has one. It determines the tiers of files that grow.
    pub edition: Option<&'a Edition>,
    /// Seed of the users. The latencies have that of the layout.
    pub seed: u64,
    /// Length of the intervals over time in the report.
    pub every: Option<Span>,
    /// Backups beside the databases, or alone.
    pub backups: &'a [weir_pipeline::Description],
}

/// An error that prevents a simulation of databases and backups.
#[derive(Debug, thiserror::Error)]
pub enum OltpSimError {
    /// A database that does not fit the layout.
    #[error("{0}")]
    Database(#[from] OltpError),
    /// A backup that does not fit the layout.
    #[error("{0}")]
    Backup(#[from] BackupError),
}

/// The owner of a request.
#[derive(Debug, Clone, Copy)]
enum Owner {
    /// The load, the place and the tag of a database.
    Database(usize, u32, u32),
    /// The backup and the buffer.
    Backup(usize, u32),
}

/// A run in slices: it is not over as long as [`run_until`](Self::run_until) returns a time.
#[derive(Debug)]
pub struct OltpSimulation<'a> {
    layout: &'a Layout,
    /// The hosts, whose volumes may grow.
    hosts: Vec<Host>,
    edition: Option<&'a Edition>,
    seed: u64,
    engines: Vec<Engine>,
    /// Files and volumes that databases can use.
    places: Vec<Place>,
    /// Their present sizes.
    sizes: Vec<Bytes>,
    loads: Vec<Load>,
    backups: Vec<Backup>,
    /// The owner of each request in flight, by its tag.
    in_flight: Vec<Owner>,
    free: Vec<usize>,
    trace: TraceHash,
    now: Instant,
    end: Instant,
    completed: u64,
}

impl<'a> OltpSimulation<'a> {
    /// Makes the hosts of `layout` with a database for each description, at time zero.
    ///
    /// # Errors
    ///
    /// [`OltpSimError`] if a database or backup does not fit the layout, or two databases have the
    /// same file.
    pub fn new(
        layout: &'a Layout,
        descriptions: &[Description],
        options: &OltpOptions<'a>,
    ) -> Result<Self, OltpSimError> {
        check_databases(layout, descriptions)?;
        let places = layout.places();
        let files: Vec<FileAbout<'_>> = places.iter().map(about).collect();
        let mut loads: Vec<Load> = Vec::new();
        for (index, description) in (0..).zip(descriptions) {
            let model = description.model(&files, weir_random::split(options.seed, index))?;
            let mut files = model.files().into_iter().map(|(file, _)| file);
            if let Some(file) = files.find(|file| loads.iter().any(|load| load.has(*file))) {
                return Err(description.shared(&places[file as usize].name).into());
            }
            loads.push(Load::new(description, model, places.len(), options.every));
        }
        let backups = options.backups.iter().map(|own| Backup::new(own, &places));
        Ok(Self {
            backups: backups.collect::<Result<_, _>>()?,
            layout,
            hosts: layout.hosts.clone(),
            edition: options.edition,
            seed: options.seed,
            engines: crate::engines(layout, compile).0,
            sizes: places.iter().map(|place| place.size).collect(),
            places,
            end: loads.iter().map(Load::end).max().unwrap_or(Instant::ZERO),
            loads,
            in_flight: Vec::new(),
            free: Vec::new(),
            trace: TraceHash::default(),
            now: Instant::ZERO,
            completed: 0,
        })
    }

    /// Simulates until `until`. Returns the time of the next event, which is later, or `None`
    /// when the time of the descriptions is over and all backups are complete. The number of
    /// slices does not change the results.
    pub fn run_until(&mut self, until: Instant) -> Option<Instant> {
        let next = self.turn_until(until);
        // The run stops before the events at its end.
        let done = match next {
            Some(_) => until,
            None if self.now == self.end => Instant::from_nanos(self.end.nanos().saturating_sub(1)),
            None => self.now,
        };
        self.engines.iter_mut().for_each(|engine| engine.settle_totals(done));
        next
    }

    fn turn_until(&mut self, until: Instant) -> Option<Instant> {
        loop {
            for load in 0..self.loads.len() {
                self.grow(load);
                while let Some(io) = self.loads[load].poll_io(self.now) {
                    self.submit(load, &io);
                }
            }
            for at in 0..self.backups.len() {
                while let Some(transfer) = self.backups[at].poll_transfer(self.now) {
                    self.submit_transfer(at, &transfer);
                }
            }
            if self.collect() {
                continue;
            }
            let deadlines = self.engines.iter().filter_map(Engine::poll_deadline).min();
            let others = self.loads.iter().filter_map(Load::poll_deadline);
            let running = self.backups.iter().filter(|backup| !backup.is_done());
            let others = others.chain(running.filter_map(Backup::poll_deadline)).min();
            let is_backing_up = self.is_backing_up();
            let next = match deadlines.into_iter().chain(others).min() {
                Some(next) if is_backing_up => next,
                next => next.unwrap_or(self.end).min(self.end.max(self.now)),
            };
            if next > until {
                return Some(next);
            }
            let next = self.skip(next, others.unwrap_or(Instant::FAR).min(until));
            self.jump(next);
            if next >= self.end && !is_backing_up {
                return None;
            }
        }
    }

    /// Returns the number of completed I/Os, including those of the ramp.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Returns the current simulated time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the entities that can be observed.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let mut shape = observing::shape(self.layout);
        for load in &self.loads {
            load.declare(&mut shape, self.layout, &self.places);
        }
        shape.backups = self.backups.iter().map(|own| own.shape(&self.places)).collect();
        shape
    }

    /// Returns the counters since the start of the ramp.
    #[must_use]
    pub fn sample(&self) -> Sample {
        let mut sample = observing::sample(self.layout, &self.engines);
        for load in &self.loads {
            load.sample(&mut sample, &self.sizes, |file| self.limits(file));
        }
        sample.backups = self.backups.iter().map(Backup::counters).collect();
        sample
    }

    /// Returns the limits of a file's volume on an instance.
    fn limits(&self, file: usize) -> LimitsNow {
        let Place { host, device, .. } = self.places[file];
        let mut exports = self.hosts[host].exports.iter();
        let export = exports.find(|export| export.device == device);
        let volume = export.and_then(|export| self.engines[host].volume(*export.volumes.first()?));
        volume.map(observing::limits_now).unwrap_or_default()
    }

    /// Returns whether a backup is not complete.
    fn is_backing_up(&self) -> bool {
        self.backups.iter().any(|backup| !backup.is_done())
    }

    /// Advances the only engine from `next` to its next completion, but not beyond `others`, the
    /// time of the next other event. The steps between have no other effect. Returns the time
    /// reached.
    fn skip(&mut self, next: Instant, others: Instant) -> Instant {
        let has_ended = next >= self.end && !self.is_backing_up();
        match self.engines.as_mut_slice() {
            [engine] if !has_ended && engine.poll_deadline() == Some(next) => {
                let before_end = self.end.nanos().saturating_sub(1);
                let until = match self.backups.iter().any(|backup| !backup.is_done()) {
                    true => others,
                    false => others.min(Instant::from_nanos(before_end)),
                };
                engine.handle_timeout_until_event(until.max(next))
            }
            _ => next,
        }
    }

    fn jump(&mut self, next: Instant) {
        self.loads.iter_mut().for_each(|load| load.pass(next));
        self.backups.iter_mut().for_each(|backup| backup.pass(next));
        self.now = next;
        if next >= self.end && !self.is_backing_up() {
            return;
        }
        for engine in &mut self.engines {
            engine.handle_timeout(next);
        }
        self.loads.iter_mut().for_each(|load| load.handle_timeout(next));
        self.backups.iter_mut().for_each(|backup| backup.handle_timeout(next));
    }

    /// Grows the data files of a database that are full, or tells it that they cannot grow.
    fn grow(&mut self, load: usize) {
        while let Some(growth) = self.loads[load].poll_growth() {
            let file = growth.file as usize;
            let from = self.sizes[file];
            let tiers = match self.resize(file, growth.size) {
                Ok(tiers) => tiers,
                Err(why) => {
                    self.loads[load].refuse(self.now, &self.places[file].name, &why);
                    continue;
                }
            };
            self.sizes[file] = growth.size;
            let tiers = tiers.as_ref().map(|(before, after)| (before.as_str(), after.as_str()));
            let name = &self.places[file].name;
            let grown = Grown { file: name, from, to: growth.size, tiers };
            self.loads[load].grow(self.now, &grown);
        }
    }

    /// Resizes the volume of a file of a managed instance, and changes its limits; a file elsewhere
    /// has its room already. Returns the tiers before and after, or the reason why it cannot grow.
    fn resize(&mut self, file: usize, size: Bytes) -> Result<Option<(String, String)>, String> {
        let Place { host, device, .. } = self.places[file];
        let exports = &self.hosts[host].exports;
        let volumes = exports.iter().find(|export| export.device == device);
        let id = volumes.and_then(|export| export.volumes.first()).copied();
        let (Some(_), Some(id)) = (&self.hosts[host].instance, id) else { return Ok(None) };
        let resized = self.hosts[host].resized(id, size, self.edition);
        let resized = resized.map_err(|kind| kind.to_string())?;
        let engine = &mut self.engines[host];
        let done = engine.set_size(self.now, id, size).and_then(|()| {
            let limits = resized.spec.limits;
            engine.set_disk_limits(self.now, id, limits)
        });
        done.map_err(|refused| refused.to_string())?;
        let before = std::mem::replace(&mut self.hosts[host].volumes[id.0], resized);
        Ok(before.tier.zip(self.hosts[host].volumes[id.0].tier.clone()))
    }

    fn submit(&mut self, load: usize, io: &FileIo) {
        let op = match io.op {
            FileOp::Read => Op::Read,
            FileOp::Write => Op::WriteThrough,
        };
        let owner = Owner::Database(load, io.file, io.tag);
        self.request(owner, io.file as usize, (op, io.offset, io.len));
    }

    fn submit_transfer(&mut self, backup: usize, transfer: &Transfer) {
        // SQL Server writes backups without system caches.
        let op = if transfer.is_write { Op::WriteThrough } else { Op::Read };
        let io = (op, transfer.offset, transfer.len.into());
        self.request(Owner::Backup(backup, transfer.buffer), transfer.place as usize, io);
    }

    /// Sends a request to the place of a file.
    fn request(&mut self, owner: Owner, place: usize, (op, offset, len): (Op, u64, u64)) {
        let place = &self.places[place];
        let (host, device) = (place.host, place.device);
        let tag = self.free.pop().unwrap_or_else(|| {
            self.in_flight.push(owner);
            self.in_flight.len() - 1
        });
        self.in_flight[tag] = owner;
        let request = Request { device, op, offset: place.address(offset), len, tag: tag as u64 };
        let taken = self.engines[host].handle_request(self.now, &request);
        assert_eq!(taken, Ok(()), "places were checked: {owner:?} {op:?} {offset} {len}");
    }

    /// Reports completions to databases and backups, and returns whether there were any.
    fn collect(&mut self) -> bool {
        let mut any = false;
        for host in 0..self.engines.len() {
            while let Some(event) = self.engines[host].poll_event() {
                if let Event::Completed(completion) = event {
                    any = true;
                    self.complete(&completion);
                }
            }
        }
        any
    }

    #[expect(clippy::cast_possible_truncation, reason = "made from a usize in `submit`")]
    fn complete(&mut self, completion: &Completion) {
        self.completed += 1;
        self.trace.record(completion);
        let tag = completion.tag as usize;
        self.free.push(tag);
        match self.in_flight[tag] {
            Owner::Database(load, file, tag) => self.loads[load].complete(completion, file, tag),
            Owner::Backup(backup, buffer) => self.backups[backup].complete(completion, buffer),
        }
    }

    /// Simulates the databases without the backups to the end, and adds the cost of the backups to
    /// the report of this run.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn add_costs(
        &self,
        report: &mut OltpReport,
        descriptions: &[Description],
    ) -> Result<(), OltpSimError> {
        if self.backups.is_empty() || descriptions.is_empty() {
            return Ok(());
        }
        let options =
            OltpOptions { edition: self.edition, seed: self.seed, ..OltpOptions::default() };
        let mut alone = OltpSimulation::new(self.layout, descriptions, &options)?;
        while alone.run_until(Instant::FAR).is_some() {}
        report.costs = CostReport::between(&alone.report(), report);
        Ok(())
    }

    /// Reports the results so far.
    #[must_use]
    pub fn report(&self) -> OltpReport {
        let hosts = self.layout.hosts.iter().flat_map(|host: &Host| host.notes.clone());
        OltpReport {
            clock: ClockName::Virtual,
            seed: self.seed,
            trace_hash: Some(format!("{:016x}", self.trace.get())),
            databases: self
                .loads
                .iter()
                .map(|load| load.report(self.now, &self.places, &self.sizes))
                .collect(),
            backups: self.backups.iter().map(|own| own.report(self.now, &self.places)).collect(),
            costs: Vec::new(),
            notes: hosts.collect(),
        }
    }
}

/// Compiles a host. Volumes of a managed instance may grow and change their limits; those of other
/// hosts do not.
fn compile(host: &Host) -> Result<Engine, SpecError> {
    let spec = host.spec.clone();
    if host.instance.is_some() { Engine::new(spec) } else { Engine::with_fixed_limits(spec) }
}

/// Checks the files of databases, and their vCores, against the layout. [`OltpSimulation::new`]
/// checks whether they fit.
///
/// # Errors
///
/// [`OltpError`] for the first database that contradicts the layout.
pub fn check_databases(layout: &Layout, descriptions: &[Description]) -> Result<(), OltpError> {
    let places = layout.places();
    let files: Vec<FileAbout<'_>> = places.iter().map(about).collect();
    let mut used: BTreeMap<usize, u32> = BTreeMap::new();
    for description in descriptions {
        description.check_roles(&files)?;
        let log = places.iter().find(|place| place.name == description.log_name());
        let Some(host) = log.map(|place| place.host) else { continue };
        let Some(instance) = &layout.hosts[host].instance else { continue };
        let others = used.entry(host).or_default();
        if others.saturating_add(description.vcores()) > instance.vcores {
            return Err(description.too_many_vcores(*others, instance.vcores));
        }
        *others += description.vcores();
    }
    Ok(())
}

/// Returns the properties of a place that a database needs.
#[must_use]
pub fn about(place: &Place) -> FileAbout<'_> {
    let (role, database) = (place.role.map(Role::name), place.database.as_deref());
    let growth = place.growth.map(|growth| Growth { by: growth.by, most: growth.most });
    let (size, used) = (place.size, place.used);
    FileAbout { name: &place.name, size, used, growth, role, database }
}

#[cfg(test)]
mod tests;
