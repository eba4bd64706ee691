//! A random layout and load, its run, and what a real system would have counted of it.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use weir_catalog::Catalog;
use weir_core::{CacheMode, GateLimits, Latency, Limit};
use weir_diagnose::follow;
use weir_diagnose::system::{Mapping, Owner, SubjectId, System};
use weir_diagnose::verdict::{self, CapWait};
use weir_diagnose::{Facts, Follow};
use weir_import::Sheet;
use weir_layout::Layout;
use weir_observe::metric as m;
use weir_observe::run::VolumeCounters;
use weir_observe::{Block, Counting, EntityKind, Series, SeriesId, Unit};
use weir_random::Rng;
use weir_report::number::whole;
use weir_report::run::JobReport;
use weir_sim::{Options, Simulation, devices};
use weir_units::{Instant, Span};
use weir_workload::{Isolated, fio, place};

/// Duration of a run in seconds.
pub(crate) const RUN: u64 = 180;

/// A limit: name and owner.
pub(crate) type Culprit = (String, String);

/// A layout and jobs.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) layout_text: String,
    pub(crate) jobs_text: String,
    pub(crate) layout: Layout,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.layout_text, self.jobs_text)
    }
}

/// The counters of a run in each second.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) volumes: Vec<Vec<VolumeCounters>>,
    /// The stripe of each volume, otherwise its own name.
    pub(crate) owners: Vec<String>,
    pub(crate) hosts: Vec<String>,
    /// The name of each volume.
    pub(crate) names: Vec<String>,
    /// Results of the jobs.
    pub(crate) jobs: Vec<Outcome>,
}

/// The result of a job.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The disk, stripe or file that it used.
    pub(crate) export: String,
    /// Operations per second, and their mean latency in seconds.
    pub(crate) iops: f64,
    pub(crate) latency_s: f64,
    /// Reads and writes, each with their number, their bytes and their latency in nanoseconds.
    pub(crate) sides: [(f64, f64, f64); 2],
    /// Wait time at each limit in nanoseconds.
    pub(crate) waits: BTreeMap<String, u64>,
}

/// The verdict.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) culprit: Option<Culprit>,
    /// Returns whether the verdict is throttled, and not only suspected.
    pub(crate) is_certain: bool,
}

const BLOCKS: [(&str, u64); 8] = [
    ("4k", 4),
    ("8k", 8),
    ("8k", 8),
    ("16k", 16),
    ("64k", 64),
    ("128k", 128),
    ("512k", 512),
    ("1m", 1024),
];

impl World {
    pub(crate) fn random(seed: u64) -> Self {
        let mut rng = Rng::from_state(seed);
        let kind = rng.within(1, 10);
        let layout_text = match kind {
            1..=4 => machine(&mut rng, "azure-premium-2015", &["DS1", "DS2", "DS3", "DS4"], &TIERS),
            5..=6 => stripe(&mut rng),
            7..=8 => machine(
                &mut rng,
                "azure-now",
                &["Standard_D4s_v3", "Standard_E8s_v3", "Standard_D2s_v3"],
                &["P4", "P10", "P15", "P20", "P30"],
            ),
            _ => instance(&mut rng),
        };
        let layout = Layout::parse("layout.toml", &layout_text, &Catalog::builtin());
        let layout = layout.unwrap_or_else(|error| panic!("{error}\n{layout_text}"));
        let jobs_text = jobs(&mut rng, &layout);
        Self { layout_text, jobs_text, layout }
    }

    /// Returns whether this is a managed instance.
    pub(crate) fn is_instance(&self) -> bool {
        self.layout.hosts.iter().any(|host| host.instance.is_some())
    }

    /// Runs the world with latencies that are `media` times those of the edition.
    pub(crate) fn run(&self, seed: u64, media: f64) -> Run {
        let mut layout = self.layout.clone();
        if media != 1.0 {
            with_media(&mut layout, media);
        }
        self.run_on(&layout, seed)
    }

    /// Runs the world with limits that are `times` as high.
    pub(crate) fn run_with_limits(&self, seed: u64, times: u64) -> Run {
        let mut layout = self.layout.clone();
        with_limits(&mut layout, times);
        self.run_on(&layout, seed)
    }

    fn run_on(&self, layout: &Layout, seed: u64) -> Run {
        let file = fio::parse("jobs.fio", &self.jobs_text, &Isolated);
        let file = file.unwrap_or_else(|error| panic!("{error}\n{}", self.jobs_text));
        let placed = place(&file, &devices(layout), &[]).expect("jobs are placed");
        let options = Options { seed, ..Options::default() };
        let mut simulation = Simulation::new(layout, placed, &options).expect("a run");
        let mut volumes = vec![simulation.sample().volumes];
        for second in 1..=RUN {
            let until = Instant::ZERO + Span::from_secs(second);
            simulation.run_until(until).expect("goes on");
            volumes.push(simulation.sample().volumes);
        }
        let mut owners = Vec::new();
        for host in &self.layout.hosts {
            for (index, volume) in host.volumes.iter().enumerate() {
                let stripe = host.exports.iter().find(|export| {
                    export.unit.is_some() && export.volumes.iter().any(|v| v.0 == index)
                });
                owners.push(stripe.map_or(volume.name.clone(), |stripe| stripe.name.clone()));
            }
        }
        let hosts = self.layout.hosts.iter().map(|host| host.name.clone()).collect();
        let disks = || self.layout.hosts.iter().flat_map(|host| &host.volumes);
        let names = disks().map(|volume| volume.name.clone()).collect();
        let report = simulation.report();
        let jobs = report.jobs.iter().map(|job| self.outcome(job)).collect();
        Run { volumes, owners, hosts, names, jobs }
    }

    fn outcome(&self, job: &JobReport) -> Outcome {
        let header = format!("[{}]\nfilename=/dev/", job.name);
        let text = self.jobs_text.split(&header).nth(1).expect("a job of the file");
        let export = text.lines().next().unwrap_or_default().to_owned();
        let iops = job.read.iops + job.write.iops;
        let ns = job.read.iops * job.read.latency.mean + job.write.iops * job.write.latency.mean;
        let latency_s = if iops > 0.0 { ns / iops / 1e9 } else { 0.0 };
        let sides = [&job.read, &job.write];
        let sides = sides.map(|op| {
            let count = op.ios as f64;
            (count, op.bytes as f64, count * op.latency.mean)
        });
        Outcome { export, iops, latency_s, sides, waits: job.waits_ns.clone() }
    }

    /// Returns the stripes with names, columns, and the size of requests in bytes.
    fn stripes(&self) -> Vec<(String, Vec<usize>, u64)> {
        let exports = self.layout.hosts.iter().flat_map(|host| &host.exports);
        let striped = exports.filter(|export| export.unit.is_some());
        striped
            .filter_map(|export| {
                let job =
                    self.jobs_text.split(&format!("filename=/dev/{}\n", export.name)).nth(1)?;
                let block = job.lines().find_map(|line| line.strip_prefix("bs="))?;
                let (_, kib) = BLOCKS.iter().find(|(name, _)| *name == block)?;
                let columns = export.volumes.iter().map(|volume| volume.0).collect();
                Some((export.name.clone(), columns, kib * 1024))
            })
            .collect()
    }

    /// Returns the view of iostat: counts, bytes, latency and, if it reports them, busy times,
    /// without limits.
    pub(crate) fn diagnose(&self, run: &Run, every: Span, says_busy: bool) -> Said {
        let step = usize::try_from(every.nanos() / 1_000_000_000).expect("seconds");
        let mut sheet = Sheet::default();
        let host = sheet.entity(EntityKind::Host, "host", None);
        let names = self.layout.hosts.iter().flat_map(|host| &host.volumes);
        let measures =
            [m::READS, m::WRITES, m::READ_BYTES, m::WRITE_BYTES, m::IO_STALL_MS, m::BUSY_MS];
        let measures = if says_busy { &measures[..] } else { &measures[..5] };
        let mut series: Vec<Vec<SeriesId>> = Vec::new();
        let mut cached = Vec::new();
        for volume in names {
            let entity = sheet.entity(EntityKind::Volume, &volume.name, Some(host));
            let own = measures.iter().map(|measure| sheet.series(entity, measure));
            series.push(own.collect());
            cached.push((volume.spec.cache != CacheMode::None).then_some(entity));
        }
        // A stripe is a device above its columns, which counts whole requests.
        let stripes: Vec<_> = self.stripes();
        let mut of_stripes: Vec<[SeriesId; 4]> = Vec::new();
        for (name, ..) in &stripes {
            let entity = sheet.entity(EntityKind::Volume, name, Some(host));
            let four = [m::READS, m::WRITES, m::READ_BYTES, m::WRITE_BYTES];
            of_stripes.push(four.map(|measure| sheet.series(entity, &measure)));
        }
        let mut contents = sheet.contents().clone();
        // Only a cloud reports cache hits.
        let hits: Vec<Option<SeriesId>> = cached
            .into_iter()
            .map(|entity| {
                Some(contents.add_series(Series {
                    entity: entity?,
                    metric: "cache_hits".to_owned(),
                    unit: Unit::Count,
                    counting: Counting::Cumulative,
                    scale: 0,
                }))
            })
            .collect();
        let loads = follow::loads(&contents);
        let (system, unmatched) =
            System::from_layout(&contents, &loads, &self.layout, &Mapping::new())
                .expect("names are the layout's");
        assert_eq!(unmatched, []);
        let mut pass = Follow::new(&system, &contents);
        let mut block = Block::new(contents.series.len());
        for (second, volumes) in run.volumes.iter().enumerate().step_by(step) {
            let mut row = vec![None; contents.series.len()];
            for (counters, series) in volumes.iter().zip(&series) {
                let ns: u64 = counters.waits.iter().map(|(_, ns)| ns).sum();
                let values = [
                    counters.reads,
                    counters.writes,
                    counters.read_bytes,
                    counters.write_bytes,
                    (ns + counters.medium_ns) / 1_000_000,
                    counters.busy_ns / 1_000_000,
                ];
                for ((id, measure), value) in series.iter().zip(measures).zip(values) {
                    row[id.0 as usize] = measure.stored(value as f64);
                }
            }
            for ((_, columns, block), series) in stripes.iter().zip(&of_stripes) {
                let own = || columns.iter().map(|column| &volumes[*column]);
                let read: u64 = own().map(|counters| counters.read_bytes).sum();
                let written: u64 = own().map(|counters| counters.write_bytes).sum();
                let values = [read / block, written / block, read, written];
                let four = [m::READS, m::WRITES, m::READ_BYTES, m::WRITE_BYTES];
                for ((id, measure), value) in series.iter().zip(&four).zip(values) {
                    row[id.0 as usize] = measure.stored(value as f64);
                }
            }
            for (counters, id) in volumes.iter().zip(&hits) {
                if let Some(id) = id {
                    row[id.0 as usize] = i64::try_from(counters.cache_hits).ok();
                }
            }
            block.push(Instant::ZERO + Span::from_secs(second as u64), row);
        }
        pass.samples(&block);
        said(&system, &pass.finish())
    }
}

/// Gives all volumes media that take `times` what theirs do, with another distribution.
fn with_media(layout: &mut Layout, times: f64) {
    // Shares in millionths, and times beside a mean of 1.
    const SHAPE: [(u32, f64); 5] =
        [(0, 0.47), (500_000, 0.85), (900_000, 1.32), (990_000, 2.8), (1_000_000, 7.5)];
    let scaled = |of: &Latency| {
        let mean = times * of.mean().nanos() as f64;
        let quantiles = SHAPE.map(|(share, part)| (share, Span::from_nanos(whole(part * mean))));
        let latency = Latency::from_quantiles(&quantiles).expect("they ascend");
        match of.transfer() {
            Some(rate) => latency.with_transfer(rate),
            None => latency,
        }
    };
    for host in &mut layout.hosts {
        for volume in &mut host.spec.volumes {
            volume.medium.read = scaled(&volume.medium.read);
            volume.medium.write = scaled(&volume.medium.write);
        }
    }
}

/// Raises all limits, those that last and those of bursts.
fn with_limits(layout: &mut Layout, times: u64) {
    let times = NonZeroU64::new(times).expect("not zero");
    let raised = |limit: Limit| Limit {
        rate: limit.rate.saturating_mul(times),
        burst: limit.burst.map(|(peak, span)| (peak.saturating_mul(times), span)),
        ..limit
    };
    let raise = |gate: &mut GateLimits| {
        gate.iops = gate.iops.map(raised);
        gate.bytes = gate.bytes.map(raised);
    };
    for host in &mut layout.hosts {
        raise(&mut host.spec.uncached);
        raise(&mut host.spec.cached);
        host.spec.log_rate = host.spec.log_rate.map(raised);
        host.spec.volumes.iter_mut().for_each(|volume| raise(&mut volume.limits.gate));
    }
}

/// Returns the limit with the longest wait time of throttled subjects, otherwise the suspected one.
fn said(system: &System, facts: &Facts) -> Said {
    let judged = verdict::judge(system, facts);
    let named = || system.subjects.iter().zip(&judged).filter(|(subject, _)| subject.is_named);
    assert!(
        named().all(|(subject, _)| matches!(subject.id, SubjectId::Disk(_))),
        "disks are observed"
    );
    let is_certain = named().any(|(_, own)| own.throttled().is_some());
    let mut waited: BTreeMap<Culprit, f64> = BTreeMap::new();
    for (_, own) in named() {
        let held: Vec<&CapWait> = match is_certain {
            true if own.throttled().is_some() => own.waits.iter().collect(),
            true => Vec::new(),
            false => own.suspected.iter().collect(),
        };
        for CapWait { cap, kind, wait_ns, .. } in held {
            let owner = match system.caps[*cap].owner {
                Owner::Host(host) => system.hosts[host].name.clone(),
                Owner::Disk(disk) => match system.disks[disk].stripe {
                    Some(stripe) => system.stripes[stripe].name.clone(),
                    None => system.disks[disk].name.clone(),
                },
            };
            *waited.entry((kind.name().to_owned(), owner)).or_default() += wait_ns;
        }
    }
    let most = waited.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
    Said { culprit: most.map(|(culprit, _)| culprit), is_certain }
}

const TIERS: [&str; 4] = ["P10", "P10", "P20", "P30"];

fn machine(rng: &mut Rng, edition: &str, sizes: &[&str], tiers: &[&str]) -> String {
    let mut text = format!("edition = \"{edition}\"\nhost = {{ size = \"{}\" }}\n", rng.one(sizes));
    for index in 0..rng.within(1, 2) {
        let cache = if rng.chance(20) { "cache = \"read-only\"\n" } else { "" };
        let tier = rng.one(tiers);
        text += &format!("[[volume]]\nname = \"disk{index}\"\ntier = \"{tier}\"\n{cache}");
    }
    text
}

fn stripe(rng: &mut Rng) -> String {
    let size = rng.one(&["DS3", "DS4", "DS13", "DS14"]);
    let (count, tier) = (rng.within(2, 4), rng.one(&["P10", "P10", "P20", "P30"]));
    let unit = rng.one(&["64 KiB", "256 KiB"]);
    format!(
        "edition = \"azure-premium-2015\"\nhost = {{ size = \"{size}\" }}\n[[stripe]]\nname = \
         \"pool\"\nunit = \"{unit}\"\nvolumes = {{ count = {count}, tier = \"{tier}\" }}\n"
    )
}

fn instance(rng: &mut Rng) -> String {
    let vcores = rng.one(&[8, 16]);
    let mut text = format!(
        "edition = \"azure-mi-2018\"\nhost = {{ managed_instance = \"gp\", vcores = {vcores} }}\n"
    );
    for index in 0..rng.within(1, 3) {
        let size = rng.one(&[32, 100, 200, 400, 900, 1500]);
        let name = format!("data{index}");
        text += &format!("[[file]]\nname = \"{name}\"\nrole = \"data\"\nsize = \"{size} GiB\"\n");
    }
    let size = rng.one(&[32, 300, 900]);
    text + &format!("[[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"{size} GiB\"\n")
}

/// Writes a job for most exports: closed loop, fixed rate, or bursts.
fn jobs(rng: &mut Rng, layout: &Layout) -> String {
    let mut text = format!("[global]\nioengine=libaio\ndirect=1\ntime_based\nruntime={RUN}\n");
    // Many systems have no trouble.
    let most = if rng.chance(40) { 35 } else { 130 };
    let is_calm = most < 100;
    let exports: Vec<_> = layout.hosts.iter().flat_map(|host| &host.exports).collect();
    for (index, export) in exports.iter().enumerate() {
        if index > 0 && rng.chance(15) {
            continue;
        }
        let volumes = layout.hosts[0].volumes.iter();
        let own = volumes.enumerate().filter(|(at, _)| export.volumes.iter().any(|v| v.0 == *at));
        let limits: u64 = own
            .map(|(_, volume)| volume.spec.limits.gate.iops.map_or(5_000, |limit| limit.rate.get()))
            .sum();
        let is_log = export.name == "log";
        let (bs, kib) = *rng.one(&BLOCKS);
        let rw = if is_log { "write" } else { *rng.one(&["randread", "randwrite", "randrw"]) };
        text += &format!("[job{index}]\nfilename=/dev/{}\nrw={rw}\nbs={bs}\n", export.name);
        if rw == "randrw" {
            text += &format!("rwmixread={}\n", rng.within(10, 90));
        }
        if rng.chance(30) {
            text += "size=4g\n";
        }
        // The rate must also fit the throughput limit.
        let fitting = limits.min(100 * 1024 / kib).max(1);
        // Some loads are not continuous.
        if rng.chance(20) {
            let (from, to) = (rng.within(0, 60), rng.within(20, 120));
            text += &format!("startdelay={from}s\nruntime={to}s\n");
        }
        match if is_calm { 5 } else { rng.within(1, 10) } {
            1..=3 => text += &format!("iodepth={}\n", rng.one(&[1, 2, 8, 32, 64])),
            4..=8 => {
                let rate = (fitting * rng.within(5, most) / 100).max(1);
                text += &format!("iodepth=64\nrate_iops={rate}\n");
                if rng.chance(50) {
                    text += "io_submit_mode=offload\nrate_process=poisson\n";
                }
            }
            _ => {
                let blocks = rng.one(&[20, 100, 400]);
                let think = rng.one(&["500ms", "1s", "5s"]);
                text += &format!("iodepth=32\nthinktime={think}\nthinktime_blocks={blocks}\n");
            }
        }
    }
    text
}
