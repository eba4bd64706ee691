//! What was so, and what was said.

use crate::world::{Culprit, Run, Said};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Of waits above this part of the latency somebody is held back.
const HELD: f64 = 1.0 / 3.0;

/// Below this nobody is.
const HEALTHY: f64 = 0.1;

/// Mean waits in nanoseconds, for both.
const LEAST_NS: f64 = 1_000_000.0;

/// What was so.
#[derive(Debug)]
pub(crate) enum Truth {
    /// Nobody waited to speak of.
    Healthy,
    /// Too little to be called held back, too much to be called healthy.
    Between,
    /// Somebody was held back: at these caps, with what was waited there, the most first.
    Held(Vec<(Culprit, f64)>),
}

impl Truth {
    pub(crate) fn of(run: &Run) -> Self {
        let last = run.volumes.last().expect("samples");
        let mut waited: BTreeMap<Culprit, f64> = BTreeMap::new();
        let (mut is_held, mut is_healthy) = (false, true);
        for (volume, owner) in last.iter().zip(&run.owners) {
            let all: f64 = volume.waits.iter().map(|(_, ns)| *ns as f64).sum();
            let operations = (volume.reads + volume.writes).max(1) as f64;
            let share = all / (all + volume.medium_ns as f64).max(1.0);
            let own = share >= HELD && all / operations >= LEAST_NS;
            is_held |= own;
            is_healthy &= share < HEALTHY || all / operations < LEAST_NS / 2.0;
            if !own {
                continue;
            }
            for (cap, ns) in &volume.waits {
                let whose = if cap.starts_with("disk_") { owner } else { &run.hosts[0] };
                *waited.entry(((*cap).to_owned(), whose.clone())).or_default() += *ns as f64;
            }
        }
        match (is_held, is_healthy) {
            (true, _) => {
                let mut all: Vec<_> = waited.into_iter().collect();
                all.sort_by(|one, other| other.1.total_cmp(&one.1));
                Self::Held(all)
            }
            (false, true) => Self::Healthy,
            (false, false) => Self::Between,
        }
    }

    pub(crate) fn agrees(&self, said: &Said) -> bool {
        match self {
            Self::Healthy => said.culprit.is_none(),
            Self::Between => true,
            Self::Held(all) => said.culprit.as_ref() == all.first().map(|(culprit, _)| culprit),
        }
    }
}

/// The name of nothing.
const NOTHING: &str = "nothing";

/// What was so by what was said.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    cells: BTreeMap<(String, String), u64>,
    held: u64,
    named: u64,
    healthy: u64,
    alarms: u64,
    between: (u64, u64),
}

impl Matrix {
    pub(crate) fn count(&mut self, truth: &Truth, said: &Said) {
        let word = said.culprit.as_ref().map_or(NOTHING, |(cap, _)| cap);
        let row = match truth {
            Truth::Healthy => {
                self.healthy += 1;
                self.alarms += u64::from(said.culprit.is_some());
                NOTHING
            }
            Truth::Between => {
                self.between.0 += 1;
                self.between.1 += u64::from(said.culprit.is_some());
                return;
            }
            Truth::Held(all) => {
                self.held += 1;
                self.named += u64::from(truth.agrees(said));
                all.first().map_or(NOTHING, |((cap, _), _)| cap)
            }
        };
        *self.cells.entry((row.to_owned(), word.to_owned())).or_default() += 1;
    }

    pub(crate) fn named_share(&self) -> f64 {
        self.named as f64 / self.held.max(1) as f64
    }

    pub(crate) fn false_alarms(&self) -> f64 {
        self.alarms as f64 / self.healthy.max(1) as f64
    }

    pub(crate) fn throttled(&self) -> u64 {
        self.held
    }

    pub(crate) fn healthy(&self) -> u64 {
        self.healthy
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
        writeln!(
            f,
            "\nNamed: {} of {} ({:.1} %). False alarms: {} of {} healthy runs ({:.1} %). Between \
             the two: {}, of which {} were called held back.",
            self.named,
            self.held,
            100.0 * self.named_share(),
            self.alarms,
            self.healthy,
            100.0 * self.false_alarms(),
            self.between.0,
            self.between.1
        )
    }
}
