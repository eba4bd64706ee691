//! A load simulated on layouts.

use crate::error::TuneError;
use crate::limit::{Place, cap_named};
use crate::load::Load;
use crate::place::{self, Lack};
use std::collections::BTreeMap;
use weir_catalog::Catalog;
use weir_core::{Cap, Limit};
use weir_layout::Layout;
use weir_observe::run::Sample;
use weir_plan::promise::with_promises;
use weir_plan::verify::{Got, How, Load as NeedLoad, verify_counted, without_bursts};
use weir_plan::{Need, RoleNeed};
use weir_report::number::float;
use weir_report::oltp::{DatabaseReport, FileReport};
use weir_report::run::RunReport;
use weir_sim::{OltpOptions, OltpSimulation, Options, Simulation, devices};
use weir_units::{Instant, Share, Span};
use weir_workload::place as placed_on;

/// The result of a load on a layout.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Median latency of reads or of writes, the longest of all jobs, in nanoseconds.
    pub median_ns: u64,
    /// 99th percentile of the latency, the longest of all jobs, in nanoseconds.
    pub p99_ns: u64,
    /// Mean latency at storage in nanoseconds.
    pub mean_ns: f64,
    /// Connections of clients, if it was measured on a server.
    pub clients: Option<u64>,
    /// Transactions per minute of all databases, if the load is databases.
    pub transactions_per_min: Option<f64>,
    /// Mean response time of the transactions of all databases in nanoseconds, if the load is
    /// databases.
    pub response_ns: Option<f64>,
    /// The results of the roles, if the load is a need.
    pub roles: Vec<Got>,
    /// Roles that need more room than they have, if the load is a need.
    pub lacks: Vec<Lack>,
    /// Wait time at each limit in nanoseconds, the longest first: that of requests, or that of
    /// transactions if the load is databases.
    pub waits: Vec<(Place, u64)>,
    /// Time at storage of all requests, in nanoseconds: waits and service times. If the load is
    /// databases, the response time of all transactions.
    pub storage_ns: u64,
}

impl Measured {
    /// Returns the share of the time at storage that requests waited at limits.
    #[must_use]
    pub fn waited(&self) -> f64 {
        let waited: u64 = self.waits.iter().map(|(_, ns)| *ns).sum();
        if self.storage_ns == 0 { 0.0 } else { float(waited) / float(self.storage_ns) }
    }

    /// Returns the limit with the longest waits, and their share of the time at storage.
    #[must_use]
    pub fn binding(&self) -> Option<(Place, f64)> {
        let (place, ns) = *self.waits.first()?;
        Some((place, float(ns) / float(self.storage_ns.max(1))))
    }
}

/// The effort of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A short run, for the choice among many layouts.
    Quick,
    /// A run as long as a measurement, with other random numbers.
    Prediction,
    /// A run long enough for a queue to grow.
    Full,
}

/// The burst credits that a load is simulated with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credits {
    /// None at any time: the layout has to carry the load with the limits that last.
    Never,
    /// None at the start, and no reserve. A disk accumulates credits whenever it runs below its limit, so few requests
    /// in flight reach the limit on average. A running server whose credits were emptied does the same.
    Spent,
    /// Those that the layout gives.
    Given,
}

/// Empties all buckets of credits. A reserve, which a limit under load has spent within seconds, is left out.
fn spend(layout: &mut Layout) {
    let spent = |limit: &mut Option<Limit>| {
        *limit = limit.map(|own| Limit { reserve: None, ..own });
    };
    for host in &mut layout.hosts {
        host.spec.credits = Share::NONE;
        let volumes = host.spec.volumes.iter_mut().map(|volume| {
            volume.credits = Share::NONE;
            &mut volume.limits.gate
        });
        let shared = [&mut host.spec.uncached, &mut host.spec.cached];
        for gate in volumes.chain(shared).chain(&mut host.spec.uncached_writes) {
            spent(&mut gate.iops);
            spent(&mut gate.bytes);
        }
    }
}

/// A load, and how it is simulated.
#[derive(Debug, Clone)]
pub struct Bench<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The load.
    pub load: Load,
    /// Seed of quick runs and predictions; full runs have the next one.
    pub seed: u64,
    /// Simulated time of jobs and databases; their own by default.
    pub runtime: Option<Span>,
    /// The burst credits of volumes and machines.
    pub credits: Credits,
}

impl Bench<'_> {
    /// Simulates the load on the layout in `text`, which messages call `name`.
    ///
    /// # Errors
    ///
    /// [`TuneError`] if the load does not run on the layout.
    pub fn measure(&self, name: &str, text: &str, effort: Effort) -> Result<Measured, TuneError> {
        let mut layout = Layout::parse(name, text, self.catalog)?;
        if self.load.is_nothing() {
            return Err(TuneError::NoLoad);
        }
        match (self.credits, &self.load) {
            (Credits::Given, _) => {}
            // Requests of a need that is met stay below the limits, and would accumulate credits for ever.
            (Credits::Spent, Load::Jobs(_)) => spend(&mut layout),
            (Credits::Spent | Credits::Never, _) => without_bursts(&mut layout, false),
        }
        let seed = match effort {
            Effort::Quick | Effort::Prediction => self.seed,
            Effort::Full => self.seed.wrapping_add(1),
        };
        let mut measured = match &self.load {
            Load::Needs(needs) => {
                let how = How {
                    seed,
                    bursts: self.credits == Credits::Given,
                    is_quick: effort == Effort::Quick,
                };
                let mut all = Measured::default();
                for need in needs {
                    all.take(self.need((name, text), &layout, need, how)?);
                }
                all
            }
            Load::Jobs(file) => {
                let file = file.clone().scale(None, self.runtime_of(effort));
                let placed = placed_on(&file, &devices(&layout), &[])?;
                let options = Options { seed, warm: cached(&layout), ..Options::default() };
                let mut simulation = Simulation::new(&layout, placed, &options)?;
                simulation.run_until(Instant::FAR)?;
                let mut measured = of_jobs(&simulation.report());
                measured.add_waits(&layout, &simulation.sample());
                measured
            }
            Load::Databases(databases, backups) => {
                let mut databases = databases.clone();
                for own in &mut databases {
                    own.duration = self.runtime_of(effort).unwrap_or(own.duration);
                }
                let edition = layout.edition.as_ref().map(|name| self.catalog.edition(name));
                let edition = edition.transpose()?;
                let options = OltpOptions { edition, seed, every: None, backups };
                let mut simulation = OltpSimulation::new(&layout, &databases, &options)?;
                simulation.run_until(Instant::FAR);
                let report = simulation.report();
                let (sample, elapsed) = (simulation.sample(), simulation.now());
                let mut measured = of_volumes(&sample, elapsed);
                measured.transactions_per_min =
                    Some(report.databases.iter().map(|own| own.load.transactions_per_min).sum());
                measured.response_ns = response(&report.databases);
                measured.add_waits(&layout, &sample);
                measured.take_sessions(&layout, &report.databases);
                measured
            }
        };
        measured.waits.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
        Ok(measured)
    }

    /// Returns the simulated time: half of it for a quick run.
    fn runtime_of(&self, effort: Effort) -> Option<Span> {
        match effort {
            Effort::Quick => self.runtime.map(|own| Span::from_nanos(own.nanos() / 2)),
            Effort::Prediction | Effort::Full => self.runtime,
        }
    }

    fn need(
        &self,
        (name, text): (&str, &str),
        layout: &Layout,
        need: &Need,
        how: How,
    ) -> Result<Measured, TuneError> {
        let lacks = place::lacks(layout, need);
        let mut need = with_promises(need, layout);
        // Requests go to the files as they are.
        for own in &mut need.roles {
            own.size = own.size.min(place::size_of_files(layout, own.role));
            own.working_set = own.working_set.map(|set| set.min(own.size));
        }
        let loads = [NeedLoad { database: None, need: &need }];
        let verified = verify_counted(name, text, &loads, self.catalog, how)?;
        let mut measured = Measured {
            roles: verified.roles.into_iter().map(|(_, got)| got).collect(),
            lacks,
            ..Measured::default()
        };
        let mut ns = 0.0;
        for got in &measured.roles {
            measured.iops += got.got;
            measured.bytes_per_s += got.got * float(got.request);
            measured.median_ns = measured.median_ns.max(got.median);
            measured.p99_ns = measured.p99_ns.max(got.p99);
            ns += got.got * got.latency;
        }
        measured.mean_ns = if measured.iops > 0.0 { ns / measured.iops } else { 0.0 };
        for sample in &verified.samples {
            measured.add_waits(layout, sample);
        }
        Ok(measured)
    }
}

/// Returns the exports with a host cache. Measurements are of the steady state, with warm caches.
fn cached(layout: &Layout) -> Vec<String> {
    let exports =
        layout.hosts.iter().flat_map(|host| host.exports.iter().map(move |own| (host, own)));
    let is_cached = |(host, export): &(&weir_layout::Host, &weir_layout::Export)| {
        let mut volumes = export.volumes.iter().map(|id| &host.spec.volumes[id.0]);
        volumes.any(|volume| volume.cache != weir_core::CacheMode::None)
    };
    exports.filter(is_cached).map(|(_, export)| export.name.clone()).collect()
}

/// Returns the note on predictions of a load with the host caches of a layout, if they rest on an assumption.
pub(crate) fn note_on_caches(layout: &Layout, load: &Load) -> Option<String> {
    let cached = cached(layout);
    let warm = "with a host cache, reads are predicted to hit a warm cache";
    let needs = match load {
        Load::Needs(needs) => needs,
        Load::Jobs(_) => return (!cached.is_empty()).then(|| warm.to_owned()),
        // Caches are as warm as the database makes them.
        Load::Databases(..) => return None,
    };
    let is_cached = |role| {
        layout.hosts.iter().any(|host| {
            let mut files = host.files.iter().filter(|file| file.role == role);
            files.any(|file| host.export_of(file).is_some_and(|own| cached.contains(&own.name)))
        })
    };
    let is_assumed =
        |own: &RoleNeed| own.reads > 0 && own.working_set.is_none() && is_cached(own.role);
    let is_any = needs.iter().flat_map(|need| &need.roles).any(is_assumed);
    is_any.then(|| {
        format!(
            "{warm} as far as the data fits into it; a need with working_set says how much of the data \
             is used"
        )
    })
}

/// Returns the mean response time of all transactions.
fn response(databases: &[DatabaseReport]) -> Option<f64> {
    let all: f64 = databases.iter().map(|own| own.load.batches_per_s).sum();
    let ns = databases.iter().map(|own| own.load.batches_per_s * own.load.response_mean_ns);
    (all > 0.0).then(|| ns.sum::<f64>() / all)
}

fn of_jobs(report: &RunReport) -> Measured {
    let mut measured = Measured::default();
    let mut ns = 0.0;
    for job in &report.jobs {
        for op in [&job.read, &job.write, &job.trim] {
            measured.iops += op.iops;
            measured.bytes_per_s += op.bytes_per_s;
            measured.median_ns = measured.median_ns.max(op.latency.p50);
            measured.p99_ns = measured.p99_ns.max(op.latency.p99);
            ns += op.iops * op.latency.mean;
        }
    }
    measured.mean_ns = if measured.iops > 0.0 { ns / measured.iops } else { 0.0 };
    measured
}

/// Returns the rates and the mean latency of all volumes. Counters have no percentiles.
fn of_volumes(sample: &Sample, elapsed: Instant) -> Measured {
    let seconds = float(elapsed.since(Instant::ZERO).nanos()) / 1e9;
    let (mut operations, mut bytes, mut ns) = (0, 0, 0);
    for own in &sample.volumes {
        operations += own.reads + own.writes;
        bytes += own.read_bytes + own.write_bytes;
        ns += own.medium_ns + own.waits.iter().map(|(_, ns)| ns).sum::<u64>();
    }
    let per_second = |n: u64| if seconds > 0.0 { float(n) / seconds } else { 0.0 };
    Measured {
        iops: per_second(operations),
        bytes_per_s: per_second(bytes),
        mean_ns: float(ns) / float(operations.max(1)),
        ..Measured::default()
    }
}

impl Measured {
    /// Adds the result of a need at another time: its roles, its waits, and the highest rates and
    /// latencies.
    fn take(&mut self, other: Self) {
        self.iops = self.iops.max(other.iops);
        self.bytes_per_s = self.bytes_per_s.max(other.bytes_per_s);
        self.median_ns = self.median_ns.max(other.median_ns);
        self.p99_ns = self.p99_ns.max(other.p99_ns);
        self.mean_ns = self.mean_ns.max(other.mean_ns);
        self.roles.extend(other.roles);
        self.lacks.extend(other.lacks);
        self.storage_ns += other.storage_ns;
        let mut all: BTreeMap<Place, u64> = self.waits.drain(..).collect();
        for (place, ns) in other.waits {
            *all.entry(place).or_default() += ns;
        }
        self.waits = all.into_iter().collect();
    }

    /// Replaces the waits of requests by those of transactions. A checkpoint may wait for a disk all
    /// the time while nobody waits for the checkpoint.
    fn take_sessions(&mut self, layout: &Layout, databases: &[DatabaseReport]) {
        let mut all: BTreeMap<Place, u64> = BTreeMap::new();
        let mut response = 0.0;
        for own in databases {
            response += float(own.load.batches) * own.load.response_mean_ns;
            let of = |prefix: &str| -> u64 {
                let waits = own.waits.iter().filter(|wait| wait.wait.starts_with(prefix));
                waits.map(|wait| wait.time_ns).sum()
            };
            for (waited, is_log) in [(of("PAGEIOLATCH"), false), (of("WRITELOG"), true)] {
                let files = own.files.iter().filter(|file| (file.role == "log") == is_log);
                let files: Vec<&FileReport> = files.collect();
                let at_limits = |file: &FileReport| file.waits_ns.values().sum::<u64>();
                let at_storage = files.iter().map(|file| at_limits(file) + file.medium_ns);
                let at_storage = u128::from(at_storage.sum::<u64>().max(1));
                for (file, (name, ns)) in
                    files.iter().flat_map(|file| file.waits_ns.iter().map(move |own| (file, own)))
                {
                    let part = u128::from(waited) * u128::from(*ns) / at_storage;
                    let cap = cap_named(name);
                    if let Some(place) = cap.and_then(|cap| Place::of_file(layout, &file.file, cap))
                    {
                        *all.entry(place).or_default() += u64::try_from(part).unwrap_or(u64::MAX);
                    }
                }
            }
            let mut logs = own.files.iter().filter(|file| file.role == "log");
            let log = logs.next().and_then(|file| Place::of_file(layout, &file.file, Cap::LogRate));
            if let Some(place) = log {
                *all.entry(place).or_default() += of("INSTANCE_LOG_RATE_GOVERNOR");
            }
        }
        if response > 0.0 {
            self.waits = all.into_iter().filter(|(_, ns)| *ns > 0).collect();
            self.storage_ns = weir_report::number::whole(response);
        }
    }

    /// Adds the waits of all volumes; those at a limit of the host are summed up.
    fn add_waits(&mut self, layout: &Layout, sample: &Sample) {
        let mut all: BTreeMap<Place, u64> = self.waits.drain(..).collect();
        let hosts = layout.hosts.iter().enumerate();
        let volumes =
            hosts.flat_map(|(at, host)| (0..host.volumes.len()).map(move |own| (at, own)));
        for ((host, volume), counters) in volumes.zip(&sample.volumes) {
            self.storage_ns += counters.medium_ns;
            for (name, ns) in &counters.waits {
                self.storage_ns += ns;
                let cap = cap_named(name);
                let place = cap.and_then(|cap| Place::of_volume(layout, host, volume, cap));
                if let Some(place) = place {
                    *all.entry(place).or_default() += ns;
                }
            }
        }
        self.waits = all.into_iter().filter(|(_, ns)| *ns > 0).collect();
    }
}
