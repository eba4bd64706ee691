//! A random layout and backup, its simulation, and what limits it: which single change makes it faster.

use std::fmt;
use std::num::NonZeroU64;
use weir_catalog::Catalog;
use weir_core::{GateLimits, Limit};
use weir_layout::Layout;
use weir_observe::run::{Sample, Shape};
use weir_pipeline::Description;
use weir_random::Rng;
use weir_report::backup::BackupReport;
use weir_sim::{OltpOptions, OltpSimulation};
use weir_units::{Instant, Span};

/// Limits are raised by so much.
const HIGHER: u64 = 4;

/// A change that brings this part of what the best one brings names the limit, too.
const AS_GOOD: f64 = 0.75;

/// A backup that no single change makes so much faster has no single limit.
const FASTER: f64 = 1.05;

/// A single change of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Source,
    Target,
    Machine,
    Stripes,
    Transfers,
    Buffers,
    Compression,
}

impl Change {
    const ALL: [Self; 7] = [
        Self::Source,
        Self::Target,
        Self::Machine,
        Self::Stripes,
        Self::Transfers,
        Self::Buffers,
        Self::Compression,
    ];
}

/// Compression: the ratio in percent, MiB per second of each thread, and the number of threads.
type Compression = Option<(u64, u64, u64)>;

/// A layout and a backup.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) layout: Layout,
    pub(crate) layout_text: String,
    pub(crate) targets: Vec<String>,
    pub(crate) stripes: u64,
    pub(crate) transfer: u64,
    pub(crate) buffers: Option<u64>,
    pub(crate) compression: Compression,
    bytes: u64,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.layout_text, self.backup_text())
    }
}

/// The counters of a run in each second, and its report.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) shape: Shape,
    pub(crate) samples: Vec<(Instant, Sample)>,
    pub(crate) report: BackupReport,
}

impl World {
    pub(crate) fn random(seed: u64) -> Self {
        let mut rng = Rng::from_state(seed);
        let host = *rng.one(&["DS3", "DS4", "DS13", "DS14", "DS14", "", "", "", "", ""]);
        // Half of the machines have no limit, or it would limit most backups.
        let machine = match host {
            "" => "unlimited = true".to_owned(),
            size => format!("size = \"{size}\""),
        };
        let mut text = format!("edition = \"azure-premium-2015\"\n[host]\n{machine}\n");
        let latency = |rng: &mut Rng| match rng.chance(50) {
            true => format!(", latency = \"{} ms\"", rng.within(3, 40)),
            false => String::new(),
        };
        let (tier, disks) = (*rng.one(&["P10", "P20", "P30", "P30"]), rng.within(1, 8));
        // A DS3 takes eight disks.
        let disks = if host == "DS3" { disks.min(4) } else { disks };
        let medium = latency(&mut rng);
        text += &match disks {
            1 => format!(
                "[[volume]]\nname = \"data\"\ntier = \"{tier}\"\n{}\n",
                medium.replace(", ", "")
            ),
            disks => format!(
                "[[stripe]]\nname = \"data\"\nunit = \"64 KiB\"\nvolumes = {{ count = {disks}, tier = \
                 \"{tier}\"{medium} }}\n"
            ),
        };
        let (tier, disks) = (*rng.one(&["P10", "P20", "P30", "P30"]), rng.within(1, 4));
        let mut targets = Vec::new();
        if disks > 1 && rng.chance(40) {
            targets.push("target".to_owned());
            text += &format!(
                "[[stripe]]\nname = \"target\"\nunit = \"64 KiB\"\nvolumes = {{ count = {disks}, tier \
                 = \"{tier}\"{} }}\n",
                latency(&mut rng)
            );
        } else {
            let latency = latency(&mut rng).replace(", ", "");
            for disk in 1..=disks {
                let name = format!("target{disk}");
                text += &format!("[[volume]]\nname = \"{name}\"\ntier = \"{tier}\"\n{latency}\n");
                targets.push(name);
            }
        }
        let stripes = (*rng.one(&[1, 1, 1, 2, 4, 8, 16])).max(targets.len() as u64);
        let transfer = *rng.one(&[256 << 10, 1 << 20, 1 << 20, 1 << 20, 4 << 20]);
        let buffers = rng.chance(15).then(|| rng.within(2, 8));
        let compression =
            rng.chance(40).then(|| (rng.within(20, 80), rng.within(20, 250), rng.within(1, 8)));
        let layout = Layout::parse("layout.toml", &text, &Catalog::builtin());
        let layout = layout.unwrap_or_else(|error| panic!("{error}\n{text}"));
        Self {
            layout,
            layout_text: text,
            targets,
            stripes,
            transfer,
            buffers,
            compression,
            // Long enough for a rate: shorter ones are not judged.
            bytes: rng.within(16, 24) << 30,
        }
    }

    /// Returns a backup of `data` without compression.
    pub(crate) fn new(layout_text: &str, targets: &[&str], stripes: u64, bytes: u64) -> Self {
        let layout = Layout::parse("layout.toml", layout_text, &Catalog::builtin());
        let layout = layout.unwrap_or_else(|error| panic!("{error}\n{layout_text}"));
        Self {
            layout,
            layout_text: layout_text.to_owned(),
            targets: targets.iter().map(|name| (*name).to_owned()).collect(),
            stripes,
            transfer: 1 << 20,
            buffers: None,
            compression: None,
            bytes,
        }
    }

    fn backup_text(&self) -> String {
        let targets: Vec<String> = self.targets.iter().map(|name| format!("{name:?}")).collect();
        let mut text = format!(
            "[backup]\nsources = [\"data\"]\nto = [{}]\nstripes = {}\nsize = \"{} B\"\n\
             max_transfer_size = \"{} B\"\n",
            targets.join(", "),
            self.stripes,
            self.bytes,
            self.transfer
        );
        if let Some(buffers) = self.buffers {
            text += &format!("buffer_count = {buffers}\n");
        }
        if let Some((percent, rate, threads)) = self.compression {
            text += &format!(
                "compression = {{ ratio = {:.2}, rate = \"{rate} MiB\", threads = {threads} }}\n",
                percent as f64 / 100.0
            );
        }
        text
    }

    pub(crate) fn run(&self) -> Run {
        let text = self.backup_text();
        let backup = Description::parse("full.toml", &text);
        let backups = [backup.unwrap_or_else(|error| panic!("{error}\n{text}"))];
        let options = OltpOptions { backups: &backups, ..OltpOptions::default() };
        let mut simulation = OltpSimulation::new(&self.layout, &[], &options)
            .unwrap_or_else(|error| panic!("{error}\n{self}"));
        let mut samples = vec![(Instant::ZERO, simulation.sample())];
        for second in 1.. {
            let until = Instant::ZERO + Span::from_secs(second);
            let goes_on = simulation.run_until(until).is_some();
            samples.push((until, simulation.sample()));
            if !goes_on {
                break;
            }
        }
        let report = simulation.report().backups.remove(0);
        Run { shape: simulation.shape(), samples, report }
    }

    /// Returns the world with a change, or `None` if it cannot be changed so.
    fn with(&self, change: Change) -> Option<Self> {
        let mut own = self.clone();
        match change {
            Change::Source => own.raise(false, |_, name| name.starts_with("data")),
            Change::Target => own.raise(false, |_, name| name.starts_with("target")),
            Change::Machine => own.raise(true, |_, _| false),
            Change::Stripes => own.stripes = (own.stripes * HIGHER).min(64),
            Change::Transfers if own.transfer < 4 << 20 => own.transfer = 4 << 20,
            Change::Transfers => return None,
            Change::Buffers => own.buffers = Some(HIGHER * self.count()),
            Change::Compression => {
                let (_, _, threads) = own.compression.as_mut()?;
                *threads *= HIGHER;
            }
        }
        Some(own)
    }

    /// Returns its buffers: two per reader and five per stripe, unless they are set.
    fn count(&self) -> u64 {
        self.buffers.unwrap_or(5 * self.stripes + 2)
    }

    fn raise(&mut self, is_machine: bool, is_disk: impl Fn(usize, &str) -> bool) {
        let times = NonZeroU64::new(HIGHER).expect("not zero");
        let raised = |limit: Limit| Limit {
            rate: limit.rate.saturating_mul(times),
            burst: limit.burst.map(|(peak, span)| (peak.saturating_mul(times), span)),
            ..limit
        };
        let raise = |gate: &mut GateLimits| {
            gate.iops = gate.iops.map(raised);
            gate.bytes = gate.bytes.map(raised);
        };
        for host in &mut self.layout.hosts {
            if is_machine {
                raise(&mut host.spec.uncached);
                raise(&mut host.spec.cached);
            }
            let names = host.volumes.iter().map(|volume| volume.name.clone());
            for ((index, volume), name) in host.spec.volumes.iter_mut().enumerate().zip(names) {
                if is_disk(index, &name) {
                    raise(&mut volume.limits.gate);
                }
            }
        }
    }

    /// Returns the changes that make it faster, the best ones: it is limited by what they change.
    /// Nothing if no single change does.
    pub(crate) fn limits(&self, run: &Run) -> Option<Vec<Change>> {
        let gain = |change: Change| -> Option<(Change, f64)> {
            let after = self.with(change)?.run();
            Some((change, run.report.elapsed_s / after.report.elapsed_s))
        };
        let gains: Vec<(Change, f64)> = Change::ALL.into_iter().filter_map(gain).collect();
        let best = gains.iter().map(|(_, gain)| *gain).fold(1.0, f64::max);
        let is_best = |(change, gain): &(Change, f64)| {
            (gain - 1.0 >= AS_GOOD * (best - 1.0)).then_some(*change)
        };
        (best >= FASTER).then(|| gains.iter().filter_map(is_best).collect())
    }
}
