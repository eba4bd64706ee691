//! A need simulated on a layout: whether it lets through what is asked of it.
//!
//! Requests arrive as the need says, whether or not those before are done, evenly spread over each
//! role's files, and caches are warm. Bursts are left out: a plan holds when credits are used up.
//! Where the throughput is more than the operations bring, it is simulated for itself, in the
//! largest requests that count once.

use crate::demand::LARGEST;
use crate::need::{Need, RoleNeed, WHOLE};
use std::fmt::Write as _;
use weir_catalog::{Catalog, Edition};
use weir_core::{GateLimits, Limit};
use weir_layout::{Export, Host, Layout, LayoutError, Role};
use weir_sim::{Options, SimError, devices, simulate};
use weir_units::Bytes;
use weir_workload::{FioError, Isolated, PlaceError, fio, place};

/// What is missing of a rate may be so much, in millionths, and the rate is met.
pub const TOLERANCE: u64 = 20_000;

/// So many requests are simulated of the whole need, as far as that is between two and ten seconds.
const REQUESTS: u64 = 400_000;

/// What is missing at most, in millionths, of what is looked at for longer, and how much longer.
const NEAR: u64 = 30_000;
const LONGER: u64 = 6;

/// How long a run takes to come to what it does all the time, in seconds.
const RAMP: u64 = 1;

/// What a role got of what it asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Got {
    /// The role.
    pub role: Role,
    /// The bytes of a request.
    pub request: u64,
    /// What was asked, in requests per second.
    pub asked: u64,
    /// What was got, in requests per second.
    pub got: f64,
    /// The mean latency of all, in nanoseconds.
    pub latency: f64,
}

impl Got {
    /// Whether that is what was asked for.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.part() >= 1.0 - part_of(TOLERANCE)
    }

    /// The part that was got.
    #[must_use]
    pub fn part(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "rates are far below 2^52")]
        let asked = self.asked as f64;
        if self.asked == 0 { 1.0 } else { self.got / asked }
    }
}

fn part_of(millionths: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a million is exact")]
    let part = millionths as f64 / WHOLE as f64;
    part
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
    seed: u64,
) -> Result<Vec<Got>, VerifyError> {
    let mut layout = Layout::parse(name, text, catalog)?;
    let edition = layout.edition.as_ref().and_then(|name| catalog.edition(name).ok());
    without_bursts(&mut layout);
    let mut all = run(&layout, need, seed, |own| (own.iops, own.request))?;
    let once = |own: &RoleNeed| {
        let unit = largest(&layout, own.role, edition);
        (own.throughput.div_ceil(unit), unit)
    };
    let is_more = |own: &&RoleNeed| own.throughput > own.iops.saturating_mul(own.request);
    if need.roles.iter().any(|own| is_more(&own)) {
        let own = |own: &RoleNeed| if is_more(&own) { once(own) } else { (own.iops, own.request) };
        let got = run(&layout, need, seed, own)?;
        let is_own = |got: &Got| need.role(got.role).is_some_and(|own| is_more(&own));
        all.extend(got.into_iter().filter(is_own));
    }
    Ok(all)
}

/// The largest request of a role that counts as one operation.
fn largest(layout: &Layout, role: Role, edition: Option<&Edition>) -> u64 {
    let unit = edition.and_then(Edition::io_unit).unwrap_or(LARGEST).get();
    let stripes = places(layout, role).into_iter().filter_map(|(_, export, _)| export.unit);
    stripes.map(Bytes::get).fold(unit, u64::min)
}

fn without_bursts(layout: &mut Layout) {
    let base = |limit: Option<Limit>| limit.map(|limit| Limit { burst: None, ..limit });
    let without = |gate: &mut GateLimits| {
        *gate = GateLimits { iops: base(gate.iops), bytes: base(gate.bytes) };
    };
    for host in &mut layout.hosts {
        without(&mut host.spec.uncached);
        without(&mut host.spec.cached);
        for volume in &mut host.spec.volumes {
            without(&mut volume.limits.gate);
        }
    }
}

/// The exports that the files of a role are on, and where those begin.
fn places(layout: &Layout, role: Role) -> Vec<(&Host, &Export, u64)> {
    let mut found = Vec::new();
    for host in &layout.hosts {
        for file in host.files.iter().filter(|file| file.role == role) {
            if let Some(export) = host.export_of(file) {
                found.push((host, export, file.base.get()));
            }
        }
    }
    found
}

/// Of many columns some get more requests than others for a while; what just misses a rate is given
/// the time for that to even out.
fn run(
    layout: &Layout,
    need: &Need,
    seed: u64,
    of: impl Fn(&RoleNeed) -> (u64, u64),
) -> Result<Vec<Got>, VerifyError> {
    let all: u64 = need.roles.iter().map(|own| of(own).0).sum();
    let seconds = (REQUESTS / all.max(1)).clamp(2, 10);
    let got = run_for(seconds, layout, need, seed, &of)?;
    let misses = |got: &Got| !got.is_met() && got.part() >= 1.0 - part_of(NEAR);
    match got.iter().any(misses) {
        true => run_for(seconds * LONGER, layout, need, seed, &of),
        false => Ok(got),
    }
}

fn run_for(
    seconds: u64,
    layout: &Layout,
    need: &Need,
    seed: u64,
    of: &impl Fn(&RoleNeed) -> (u64, u64),
) -> Result<Vec<Got>, VerifyError> {
    let mut text = format!(
        "[global]\nioengine=libaio\ndirect=1\ntime_based\nruntime={seconds}\nramp_time={RAMP}\n\
         io_submit_mode=offload\niodepth=4096\n"
    );
    let mut warm = Vec::new();
    for own in need.roles.iter().filter(|own| of(own).0 > 0) {
        let role = own.role.name();
        let places = places(layout, own.role);
        if places.is_empty() {
            return Err(VerifyError::NoPlace { role });
        }
        let (rate, request) = of(own);
        let count = places.len() as u64;
        for (at, (host, export, start)) in places.into_iter().enumerate() {
            // What is left over goes to the first.
            let rate = rate / count + u64::from((at as u64) < rate % count);
            let reads = u64::try_from(u128::from(rate) * u128::from(own.reads) / u128::from(WHOLE));
            let reads = reads.unwrap_or(0).min(rate);
            let (rw, rates) = match (reads, rate - reads) {
                (0, _) => ("randwrite", format!("{rate},{rate}")),
                (_, 0) => ("randread", format!("{rate},{rate}")),
                (reads, writes) => ("randrw", format!("{reads},{writes}")),
            };
            let is_cached = export
                .volumes
                .iter()
                .any(|volume| host.spec.volumes[volume.0].cache != weir_core::CacheMode::None);
            let set = own.working_set.unwrap_or(own.size).get() / count;
            let size = if is_cached { set } else { own.size.get() / count };
            if is_cached {
                warm.push(export.name.clone());
            }
            if rate > 0 {
                // Whole requests from a border on, for that is how databases place them.
                let start = start.next_multiple_of(request);
                let size = (size / request).max(1) * request;
                let job = write!(
                    text,
                    "[{role}{at}]\nfilename=/dev/{}\noffset={start}\nsize={size}\nbs={request}\n\
                     rw={rw}\nrate_iops={rates}\n",
                    export.name
                );
                // Writing to a string does not fail.
                debug_assert!(job.is_ok());
            }
        }
    }
    let file = fio::parse("the need", &text, &Isolated)?;
    let placed = place(&file, &devices(layout), &[])?;
    warm.dedup();
    let report = simulate(layout, placed, &Options { seed, warm, ..Options::default() })?;
    let got = need.roles.iter().map(|own| {
        let (asked, request) = of(own);
        let jobs = report.jobs.iter();
        let jobs =
            jobs.filter(|job| job.name.trim_end_matches(char::is_numeric) == own.role.name());
        let (mut got, mut time) = (0.0, 0.0);
        for job in jobs {
            for op in [&job.read, &job.write] {
                got += op.iops;
                time += op.iops * op.latency.mean;
            }
        }
        let latency = if got > 0.0 { time / got } else { 0.0 };
        Got { role: own.role, request, asked, got, latency }
    });
    Ok(got.collect())
}
