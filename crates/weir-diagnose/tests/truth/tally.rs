//! The truth and the verdicts, counted.

use crate::world::{Culprit, Run, Said};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use weir_observe::run::VolumeCounters;

/// Share of wait time in the latency above which a system is throttled.
const HELD: f64 = 1.0 / 3.0;

/// Share below which a system is healthy.
const HEALTHY: f64 = 0.1;

/// Mean waits in nanoseconds, for both.
const LEAST_NS: f64 = 1_000_000.0;

/// Seconds of throttling that make a system throttled.
const HELD_S: usize = 30;

/// The waits of a volume between two moments.
#[derive(Debug, Default)]
struct Waits {
    at: BTreeMap<&'static str, f64>,
    medium_ns: f64,
    operations: f64,
}

impl Waits {
    fn between(before: &VolumeCounters, after: &VolumeCounters) -> Self {
        let was = |cap: &str| before.waits.iter().find(|(own, _)| *own == cap).map_or(0, |w| w.1);
        let at = after.waits.iter().map(|(cap, ns)| (*cap, (ns - was(cap)) as f64)).collect();
        let operations = after.reads + after.writes - before.reads - before.writes;
        let medium_ns = (after.medium_ns - before.medium_ns) as f64;
        Self { at, medium_ns, operations: operations as f64 }
    }

    fn and(mut self, other: Self) -> Self {
        for (cap, ns) in other.at {
            *self.at.entry(cap).or_default() += ns;
        }
        self.medium_ns += other.medium_ns;
        self.operations += other.operations;
        self
    }

    fn share(&self) -> f64 {
        let all: f64 = self.at.values().sum();
        all / (all + self.medium_ns).max(1.0)
    }

    fn mean_ns(&self) -> f64 {
        self.at.values().sum::<f64>() / self.operations.max(1.0)
    }

    fn is_held(&self) -> bool {
        self.share() >= HELD && self.mean_ns() >= LEAST_NS
    }

    fn is_some(&self) -> bool {
        self.share() >= HEALTHY && self.mean_ns() >= LEAST_NS / 2.0
    }
}

/// The truth.
#[derive(Debug)]
pub(crate) enum Truth {
    /// No notable waits.
    Healthy,
    /// Neither throttled nor healthy.
    Between,
    /// Throttled by these limits, by wait time.
    CapWait(Vec<(Culprit, f64)>),
}

impl Truth {
    pub(crate) fn new(run: &Run) -> Self {
        let mut waited: BTreeMap<Culprit, f64> = BTreeMap::new();
        let (mut is_held, mut is_healthy) = (false, true);
        for (index, owner) in run.owners.iter().enumerate() {
            let all = |second: usize| &run.volumes[second][index];
            let whole = Waits::between(all(0), all(run.volumes.len() - 1));
            is_healthy &= !whole.is_some();
            let mut own = Some(whole).filter(Waits::is_held);
            // Throttling for a part of the time is not healthy either.
            if own.is_none() {
                let seconds = (1..run.volumes.len()).map(|s| Waits::between(all(s - 1), all(s)));
                let held: Vec<Waits> = seconds.filter(Waits::is_held).collect();
                is_healthy &= held.len() < HELD_S / 3;
                own = (held.len() >= HELD_S)
                    .then(|| held.into_iter().fold(Waits::default(), Waits::and));
            }
            for (cap, ns) in own.iter().flat_map(|own| &own.at) {
                let whose = if cap.starts_with("disk_") { owner } else { &run.hosts[0] };
                *waited.entry(((*cap).to_owned(), whose.clone())).or_default() += ns;
            }
            is_held |= own.is_some();
        }
        match (is_held, is_healthy) {
            (true, _) => {
                let mut all: Vec<_> = waited.into_iter().collect();
                all.sort_by(|one, other| other.1.total_cmp(&one.1));
                Self::CapWait(all)
            }
            (false, true) => Self::Healthy,
            (false, false) => Self::Between,
        }
    }

    pub(crate) fn agrees(&self, said: &Said) -> bool {
        match self {
            Self::Healthy => !said.is_certain,
            Self::Between => true,
            Self::CapWait(all) => said.culprit.as_ref() == all.first().map(|(culprit, _)| culprit),
        }
    }
}

/// The name of nothing.
const NOTHING: &str = "nothing";

/// Counts by truth and verdict.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    cells: BTreeMap<(String, String), u64>,
    held: u64,
    /// Correct names, and those of them with the verdict throttled.
    named: (u64, u64),
    healthy: Called,
    between: Called,
}

/// Systems, and what they were called.
#[derive(Debug, Default)]
struct Called {
    all: u64,
    held: u64,
    suspected: u64,
}

impl Called {
    fn count(&mut self, said: &Said) {
        self.all += 1;
        self.held += u64::from(said.is_certain);
        self.suspected += u64::from(!said.is_certain && said.culprit.is_some());
    }
}

impl Matrix {
    pub(crate) fn count(&mut self, truth: &Truth, said: &Said) {
        let word = said.culprit.as_ref().map_or(NOTHING, |(cap, _)| cap);
        let row = match truth {
            Truth::Healthy => {
                self.healthy.count(said);
                NOTHING
            }
            Truth::Between => {
                self.between.count(said);
                return;
            }
            Truth::CapWait(all) => {
                self.held += 1;
                self.named.0 += u64::from(truth.agrees(said));
                self.named.1 += u64::from(truth.agrees(said) && said.is_certain);
                all.first().map_or(NOTHING, |((cap, _), _)| cap)
            }
        };
        *self.cells.entry((row.to_owned(), word.to_owned())).or_default() += 1;
    }

    pub(crate) fn named_share(&self) -> f64 {
        self.named.0 as f64 / self.held.max(1) as f64
    }

    /// Returns the number of firm names, without suspicions.
    pub(crate) fn held_share(&self) -> f64 {
        self.named.1 as f64 / self.held.max(1) as f64
    }

    pub(crate) fn false_alarms(&self) -> f64 {
        self.healthy.held as f64 / self.healthy.all.max(1) as f64
    }

    pub(crate) fn throttled(&self) -> u64 {
        self.held
    }

    pub(crate) fn healthy(&self) -> u64 {
        self.healthy.all
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said: BTreeSet<&String> = self.cells.keys().map(|(_, said)| said).collect();
        let rows: BTreeSet<&String> = self.cells.keys().map(|(so, _)| so).collect();
        write!(f, "| waited most at |")?;
        said.iter().try_for_each(|name| write!(f, " {name} |"))?;
        write!(f, "\n|---|")?;
        said.iter().try_for_each(|_| write!(f, "--:|"))?;
        writeln!(f)?;
        for row in rows {
            write!(f, "| {row} |")?;
            for name in &said {
                match self.cells.get(&(row.clone(), (*name).clone())) {
                    Some(count) => write!(f, " {count} |")?,
                    None => write!(f, " |")?,
                }
            }
            writeln!(f)?;
        }
        let Self { held, named, healthy, between, .. } = self;
        writeln!(
            f,
            "\nNamed: {} of {held} ({:.1} %), {} of them as attribution and {} as suspected. False alarms: \
             {} of {} healthy systems ({:.1} %), and {} suspicions. Between the two: {}, of which {} \
             were called held back, and {} suspected.",
            named.0,
            100.0 * self.named_share(),
            named.1,
            named.0 - named.1,
            healthy.held,
            healthy.all,
            100.0 * self.false_alarms(),
            healthy.suspected,
            between.all,
            between.held,
            between.suspected,
        )
    }
}
