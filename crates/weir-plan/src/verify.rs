//! A need simulated on a layout: whether it lets through what is asked of it.
//!
//! Requests arrive as the need says, whether or not those before are done, evenly spread over each
//! role's files, and caches are warm. Bursts are left out: a plan holds when credits are used up.
//! Where the throughput is more than the operations bring, it is simulated for itself, in the
//! largest requests that count once.
//!
//! A latency of a need is a median, so it is the median that is held against it: of reads and of
//! writes, whichever takes longer, as media are chosen. The mean is told beside it; media with long
//! tails have one that is half as much again.

use crate::demand::LARGEST;
use crate::need::{Need, RoleNeed, WHOLE};
use std::fmt::Write as _;
use weir_catalog::{Catalog, Edition};
use weir_core::{GateLimits, Limit};
use weir_layout::{Export, Host, Layout, LayoutError, Role};
use weir_sim::{Options, SimError, devices, simulate};
use weir_units::{Bytes, Span};
use weir_workload::{FioError, Isolated, PlaceError, fio, place};

/// What is missing of a rate may be so much, in millionths, and the rate is met; a latency may be so
/// much longer, for percentiles of a run are within 1 %.
pub const TOLERANCE: u64 = 20_000;

/// So many requests are simulated of the whole need, as far as that is between two and ten seconds.
const REQUESTS: u64 = 400_000;

/// What is met or missed by so little, in millionths, is looked at for longer; how much longer.
const NEAR: u64 = 10_000;
const LONGER: u64 = 6;

/// A median that is longer by more than such a part in a longer run grows with the queue.
const GROWS: u64 = 4;

/// Fewer requests per second than this come in whole numbers: in a run of seconds a part of one would
/// pass for a rate that is missed.
const FEW: u64 = 20;

/// How long a run takes to come to what it does all the time, in seconds.
const RAMP: u64 = 1;

/// What a role got of what it asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Got {
    /// The role.
    pub role: Role,
    /// The bytes of a request.
    pub request: u64,
    /// What was asked, in requests per second, to the nearest one.
    pub asked: u64,
    /// The bytes per second that were asked, where they are no whole number of requests.
    pub bytes: Option<u64>,
    /// What was got, in requests per second.
    pub got: f64,
    /// The mean latency of all, in nanoseconds.
    pub latency: f64,
    /// What half of the reads or of the writes take at most, whichever is longer, in nanoseconds.
    pub median: u64,
    /// What that may be, if it was said.
    pub asked_latency: Option<Span>,
    /// Whether it was longer in a longer run: requests queue, and the queue grows.
    pub grows: bool,
}

impl Got {
    /// Whether that is what was asked for.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.has_rate() && self.is_fast()
    }

    /// Whether the rate is what was asked for.
    #[must_use]
    pub fn has_rate(&self) -> bool {
        self.part() >= 1.0 - part_of(TOLERANCE)
    }

    /// Whether requests take no longer than they may.
    #[must_use]
    pub fn is_fast(&self) -> bool {
        self.asked_latency.is_none_or(|most| {
            let most = u128::from(most.nanos()) * u128::from(WHOLE + TOLERANCE);
            !self.grows && u128::from(self.median) * u128::from(WHOLE) <= most
        })
    }

    /// The part that was got.
    #[must_use]
    pub fn part(&self) -> f64 {
        let asked = self
            .bytes
            .map_or_else(|| float(self.asked), |bytes| float(bytes) / float(self.request.max(1)));
        if asked > 0.0 { self.got / asked } else { 1.0 }
    }
}

fn part_of(millionths: u64) -> f64 {
    float(millionths) / float(WHOLE)
}

#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^52")]
fn float(n: u64) -> f64 {
    n as f64
}

/// Why a need could not be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The layout is not one.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The jobs do not fit it.
    #[error("simulating the need: {0}")]
    Jobs(#[from] FioError),
    /// The jobs do not fit it.
    #[error("simulating the need: {0}")]
    Place(#[from] PlaceError),
    /// The run is not possible.
    #[error("simulating the need: {0}")]
    Run(#[from] SimError),
    /// A role has no place there.
    #[error("{role} of the need has no file in the layout")]
    NoPlace {
        /// The role.
        role: &'static str,
    },
}

/// What is asked of a layout by one of its databases, or by all that is on it.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// The database, where there are several.
    pub database: Option<&'a str>,
    /// What it asks.
    pub need: &'a Need,
}

/// How to simulate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct How {
    /// The seed.
    pub seed: u64,
    /// Whether volumes burst, from full credits.
    pub bursts: bool,
}

/// Simulates `need` on the layout in `text`; `name` is its name in messages. What each role gets,
/// a second time for those whose throughput is more than their operations bring.
///
/// # Errors
///
/// [`VerifyError`] if the layout cannot carry it at all.
pub fn verify(
    name: &str,
    text: &str,
    need: &Need,
    catalog: &Catalog,
    how: How,
) -> Result<Vec<Got>, VerifyError> {
    let loads = [Load { database: None, need }];
    Ok(verify_all(name, text, &loads, catalog, how)?.into_iter().map(|(_, got)| got).collect())
}

/// As [`verify`], for several databases at once, each with its place in `loads`.
///
/// # Errors
///
/// As [`verify`].
pub fn verify_all(
    name: &str,
    text: &str,
    loads: &[Load<'_>],
    catalog: &Catalog,
    how: How,
) -> Result<Vec<(usize, Got)>, VerifyError> {
    let mut layout = Layout::parse(name, text, catalog)?;
    let edition = layout.edition.as_ref().and_then(|name| catalog.edition(name).ok());
    without_bursts(&mut layout, how.bursts);
    let mut all = run(&layout, loads, how.seed, Arrivals::at_operations)?;
    let once = |own: &RoleNeed| {
        Arrivals::at_throughput(own.throughput, largest(&layout, own.role, edition))
    };
    let is_more = |own: &&RoleNeed| own.throughput > own.iops.saturating_mul(own.request);
    if loads.iter().flat_map(|load| &load.need.roles).any(|own| is_more(&own)) {
        let own = |own: &RoleNeed| match is_more(&own) {
            true => once(own),
            false => Arrivals::at_operations(own),
        };
        let got = run(&layout, loads, how.seed, own)?;
        let is_own = |(at, got): &(usize, Got)| {
            loads[*at].need.role(got.role).is_some_and(|own| is_more(&own))
        };
        all.extend(got.into_iter().filter(is_own));
    }
    Ok(all)
}

/// The requests of a role as they are simulated.
#[derive(Debug, Clone, Copy)]
struct Arrivals {
    /// Requests per second, to the nearest one.
    rate: u64,
    /// The bytes of each.
    request: u64,
    /// Bytes per second, where they are no whole number of requests.
    bytes: Option<u64>,
}

impl Arrivals {
    /// Returns the requests at the peak of operations.
    fn at_operations(own: &RoleNeed) -> Self {
        match own.throughput < own.iops.saturating_mul(own.request) {
            true => Self::at_throughput(own.throughput, own.request),
            false => Self { rate: own.iops, request: own.request, bytes: None },
        }
    }

    /// Returns so many bytes per second in requests of `request` bytes.
    fn at_throughput(bytes: u64, request: u64) -> Self {
        let rate = bytes.div_ceil(request);
        match rate < FEW {
            true => Self { rate, request, bytes: None },
            false => {
                let nearest = bytes.saturating_add(request / 2) / request;
                Self { rate: nearest, request, bytes: Some(bytes) }
            }
        }
    }

    /// Returns the part of one of `files`; the first ones take the remainder.
    fn of_file(self, at: u64, files: u64) -> Self {
        let part = |all: u64| all / files + u64::from(at < all % files);
        match self.bytes {
            Some(bytes) => Self::at_throughput(part(bytes), self.request),
            None => Self { rate: part(self.rate), ..self },
        }
    }
}

/// The largest request of a role that counts as one operation.
fn largest(layout: &Layout, role: Role, edition: Option<&Edition>) -> u64 {
    let unit = edition.and_then(Edition::io_unit).unwrap_or(LARGEST).get();
    let stripes = places(layout, role, None).into_iter().filter_map(|(_, export, _)| export.unit);
    stripes.map(Bytes::get).fold(unit, u64::min)
}

/// A plan holds when credits are spent; those of machines are never counted on.
pub(crate) fn without_bursts(layout: &mut Layout, of_hosts_alone: bool) {
    let base = |limit: Option<Limit>| limit.map(|limit| Limit { burst: None, ..limit });
    let without = |gate: &mut GateLimits| {
        *gate = GateLimits { iops: base(gate.iops), bytes: base(gate.bytes) };
    };
    for host in &mut layout.hosts {
        without(&mut host.spec.uncached);
        without(&mut host.spec.cached);
        for volume in host.spec.volumes.iter_mut().filter(|_| !of_hosts_alone) {
            without(&mut volume.limits.gate);
        }
    }
}

/// The exports that the files of a role are on, and where those begin; of one database, if it is
/// said which. All databases share tempdb.
fn places<'l>(
    layout: &'l Layout,
    role: Role,
    database: Option<&str>,
) -> Vec<(&'l Host, &'l Export, u64)> {
    let mut found = Vec::new();
    for host in &layout.hosts {
        let is_own =
            |own: Option<&str>| database.is_none() || role == Role::Tempdb || own == database;
        let files = host.files.iter().filter(|file| file.role == role);
        for file in files.filter(|file| is_own(file.database.as_deref())) {
            if let Some(export) = host.export_of(file) {
                found.push((host, export, file.base.get()));
            }
        }
    }
    found
}

/// A job of a role on one of its files.
struct Job<'j> {
    name: String,
    role: &'j RoleNeed,
    arrivals: Arrivals,
    files: u64,
}

impl Job<'_> {
    /// Writes the job, and says whether its file is cached.
    fn write(&self, text: &mut String, host: &Host, export: &Export, start: u64) -> bool {
        let (Arrivals { rate, request, bytes }, own) = (self.arrivals, self.role);
        let (option, pace) = bytes.map_or(("rate_iops", rate), |bytes| ("rate", bytes));
        let reads = u64::try_from(u128::from(pace) * u128::from(own.reads) / u128::from(WHOLE));
        let reads = reads.unwrap_or(0).min(pace);
        let (rw, paces) = match (reads, pace - reads) {
            (0, _) => ("randwrite", format!("{pace},{pace}")),
            (_, 0) => ("randread", format!("{pace},{pace}")),
            (reads, writes) => ("randrw", format!("{reads},{writes}")),
        };
        let mut volumes = export.volumes.iter().map(|volume| &host.spec.volumes[volume.0]);
        let is_cached = volumes.any(|volume| volume.cache != weir_core::CacheMode::None);
        let set = own.working_set.unwrap_or(own.size).get() / self.files;
        let size = if is_cached { set } else { own.size.get() / self.files };
        if rate > 0 {
            // Whole requests from a border on, for that is how databases place them.
            let start = start.next_multiple_of(request);
            let size = (size / request).max(1) * request;
            let job = write!(
                text,
                "[{}]\nfilename=/dev/{}\noffset={start}\nsize={size}\nbs={request}\nrw={rw}\n\
                 {option}={paces}\n",
                self.name, export.name
            );
            // Writing to a string does not fail.
            debug_assert!(job.is_ok());
        }
        is_cached
    }
}

/// Of many columns some get more requests than others for a while; what just misses a rate, or just
/// meets it, is given the time for that to even out.
fn run(
    layout: &Layout,
    loads: &[Load<'_>],
    seed: u64,
    of: impl Fn(&RoleNeed) -> Arrivals,
) -> Result<Vec<(usize, Got)>, VerifyError> {
    let all: u64 = roles(loads).map(|(.., own)| of(own).rate).sum();
    let seconds = (REQUESTS / all.max(1)).clamp(2, 10);
    let got = run_for(seconds, layout, loads, seed, &of)?;
    let is_near = |got: &Got| (got.part() - (1.0 - part_of(TOLERANCE))).abs() < part_of(NEAR);
    // At a limit that is used up a queue grows for as long as one looks: what is fast in a short run
    // must be so in a longer one.
    let is_fast = |got: &Got| got.asked_latency.is_some() && got.is_fast();
    if !got.iter().any(|(_, got)| is_near(got) || is_fast(got)) {
        return Ok(got);
    }
    let mut longer = run_for(seconds * LONGER, layout, loads, seed, &of)?;
    for ((_, own), (_, before)) in longer.iter_mut().zip(&got) {
        own.grows = own.median > before.median + before.median / GROWS;
    }
    Ok(longer)
}

/// Each role with its load, by place, and its database.
fn roles<'l>(
    loads: &'l [Load<'l>],
) -> impl Iterator<Item = (usize, Option<&'l str>, &'l RoleNeed)> {
    let all = loads.iter().enumerate();
    all.flat_map(|(at, load)| load.need.roles.iter().map(move |own| (at, load.database, own)))
}

fn run_for(
    seconds: u64,
    layout: &Layout,
    loads: &[Load<'_>],
    seed: u64,
    of: &impl Fn(&RoleNeed) -> Arrivals,
) -> Result<Vec<(usize, Got)>, VerifyError> {
    let mut text = format!(
        "[global]\nioengine=libaio\ndirect=1\ntime_based\nruntime={seconds}\nramp_time={RAMP}\n\
         io_submit_mode=offload\niodepth=4096\n"
    );
    let mut warm = Vec::new();
    for (load, database, own) in roles(loads).filter(|(.., own)| of(own).rate > 0) {
        let places = places(layout, own.role, database);
        if places.is_empty() {
            return Err(VerifyError::NoPlace { role: own.role.name() });
        }
        let files = places.len() as u64;
        for (at, (host, export, start)) in places.into_iter().enumerate() {
            let arrivals = of(own).of_file(at as u64, files);
            let name = format!("{}{at}", prefix(load, own.role));
            let job = Job { name, role: own, arrivals, files };
            if job.write(&mut text, host, export, start) {
                warm.push(export.name.clone());
            }
        }
    }
    let file = fio::parse("the need", &text, &Isolated)?;
    let placed = place(&file, &devices(layout), &[])?;
    warm.dedup();
    let report = simulate(layout, placed, &Options { seed, warm, ..Options::default() })?;
    let got = roles(loads).map(|(load, _, own)| {
        let Arrivals { rate: asked, request, bytes } = of(own);
        let prefix = prefix(load, own.role);
        let (mut got, mut time, mut median) = (0.0, 0.0, 0);
        for job in report.jobs.iter().filter(|job| job.name.starts_with(&prefix)) {
            for op in [&job.read, &job.write] {
                got += op.iops;
                time += op.iops * op.latency.mean;
                median = median.max(op.latency.p50);
            }
        }
        let latency = if got > 0.0 { time / got } else { 0.0 };
        // Larger requests than the need's are longer under way.
        let asked_latency = own.latency.filter(|_| request == own.request);
        let role = own.role;
        let grows = false;
        let own = Got { role, request, asked, bytes, got, latency, median, asked_latency, grows };
        (load, own)
    });
    Ok(got.collect())
}

/// What the names of the jobs of a role begin with, and no others.
fn prefix(load: usize, role: Role) -> String {
    format!("{load}-{}-", role.name())
}
