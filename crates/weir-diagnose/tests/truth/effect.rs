//! The truth about a system: the effect of higher limits, and the limits with the longest waits.
//!
//! The diagnosis goes by how much of the latency is waiting. This goes by what a user would notice:
//! the same load is run again with all limits four times as high.

use crate::tools::{Called, Tool};
use crate::world::{Culprit, Outcome, Run};
use std::collections::BTreeMap;
use std::fmt;

/// Factor of the limits in the second run.
pub(crate) const HIGHER: u64 = 4;

/// A job is throttled if higher limits let it do this much more ...
const MORE: f64 = 1.25;
/// Reduction of latency of a throttled system.
const FASTER: f64 = 2.0;

/// A job is healthy if higher limits let it do less than this much more ...
const HARDLY_MORE: f64 = 1.05;
/// Maximum reduction of latency of a healthy system.
const HARDLY_FASTER: f64 = 1.25;

/// A limit with this part of the longest wait time is right as well.
const NEARLY: f64 = 0.75;

/// A difference of fewer waiting requests on average is none: 1 % of the time.
const LEAST: f64 = 0.01;

/// The truth about a system.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Higher limits change nothing to speak of.
    Healthy,
    /// Higher limits change it a little.
    Between,
    /// Higher limits change it much. The first of these limits has the longest wait time, and the
    /// others nearly as much.
    Throttled(Vec<Culprit>),
}

impl Effect {
    pub(crate) fn new(run: &Run, higher: &Run) -> Self {
        let (mut is_healthy, mut waited) = (true, BTreeMap::new());
        for (job, freed) in run.jobs.iter().zip(&higher.jobs) {
            is_healthy &= is_free(job, freed);
            if is_throttled(job, freed) {
                for (cap, ns) in &job.waits {
                    let owner = match cap.starts_with("disk_") {
                        true => job.export.clone(),
                        false => run.hosts[0].clone(),
                    };
                    *waited.entry((cap.clone(), owner)).or_insert(0) += ns;
                }
            }
        }
        let mut all: Vec<(Culprit, u64)> = waited.into_iter().collect();
        all.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let most = all.first().map_or(0, |(_, ns)| *ns) as f64;
        all.retain(|(_, ns)| *ns as f64 >= NEARLY * most);
        match all.is_empty() {
            false => Self::Throttled(all.into_iter().map(|(culprit, _)| culprit).collect()),
            true if is_healthy => Self::Healthy,
            true => Self::Between,
        }
    }
}

/// Requests that wait on average, which would not with higher limits.
fn lost(job: &Outcome, freed: &Outcome) -> f64 {
    (job.latency_s - freed.latency_s) * job.iops
}

fn is_throttled(job: &Outcome, freed: &Outcome) -> bool {
    let is_more = freed.iops >= MORE * job.iops || job.latency_s >= FASTER * freed.latency_s;
    is_more && lost(job, freed) >= LEAST
}

fn is_free(job: &Outcome, freed: &Outcome) -> bool {
    let is_less =
        freed.iops < HARDLY_MORE * job.iops && job.latency_s < HARDLY_FASTER * freed.latency_s;
    is_less || lost(job, freed) < LEAST
}

/// The diagnoses of a tool's reports.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Score {
    pub(crate) throttled: u64,
    /// Named right as what throttles.
    pub(crate) named: u64,
    /// Named right as what may throttle.
    pub(crate) suspected: u64,
    pub(crate) healthy: u64,
    pub(crate) alarms: u64,
    pub(crate) suspicions: u64,
    pub(crate) between: u64,
    pub(crate) between_called: u64,
}

impl Score {
    /// Counts a system; says whether what it is called is right.
    pub(crate) fn count(&mut self, effect: &Effect, called: &Called, run: &Run) -> bool {
        match effect {
            Effect::Throttled(culprits) => {
                self.throttled += 1;
                let is_one = |cap: &Option<String>, subject: &str| {
                    culprits.iter().any(|culprit| is(culprit, cap, subject, run))
                };
                match called {
                    Called::Throttled { cap, subject } if is_one(cap, subject) => {
                        self.named += 1;
                        true
                    }
                    Called::Suspected { cap, subject } if is_one(cap, subject) => {
                        self.suspected += 1;
                        true
                    }
                    _ => false,
                }
            }
            Effect::Healthy => {
                self.healthy += 1;
                self.alarms += u64::from(matches!(called, Called::Throttled { .. }));
                self.suspicions += u64::from(matches!(called, Called::Suspected { .. }));
                !matches!(called, Called::Throttled { .. })
            }
            Effect::Between => {
                self.between += 1;
                self.between_called += u64::from(matches!(called, Called::Throttled { .. }));
                true
            }
        }
    }

    /// Returns the part of the throttled systems whose cap is named firmly.
    pub(crate) fn firm_share(&self) -> f64 {
        self.named as f64 / self.throttled.max(1) as f64
    }

    /// Returns the part of the throttled systems whose cap is named firmly or as a suspicion.
    pub(crate) fn named_share(&self) -> f64 {
        (self.named + self.suspected) as f64 / self.throttled.max(1) as f64
    }

    /// Returns the part of the systems between throttled and healthy that are called throttled.
    fn between_share(&self) -> f64 {
        self.between_called as f64 / self.between.max(1) as f64
    }

    pub(crate) fn alarm_share(&self) -> f64 {
        self.alarms as f64 / self.healthy.max(1) as f64
    }
}

/// Returns whether a finding names the right limit, and for a disk's limit the disk, its stripe or
/// its file.
fn is(culprit: &Culprit, cap: &Option<String>, subject: &str, run: &Run) -> bool {
    let (kind, owner) = culprit;
    if cap.as_ref() != Some(kind) {
        return false;
    }
    let name = subject.rsplit('.').next().unwrap_or(subject);
    let own = run.names.iter().zip(&run.owners).find(|(volume, _)| *volume == name);
    !kind.starts_with("disk_") || name == owner || own.is_some_and(|(_, of)| of == owner)
}

/// The table of the documentation.
pub(crate) struct Table<'a>(pub(crate) &'a [(Tool, Score)]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| sampled by | throttled | firmly named | named including suspicions | healthy | false \
             alarms | suspicions | between | of these called throttled |"
        )?;
        writeln!(f, "|---|--:|--:|--:|--:|--:|--:|--:|--:|")?;
        for (tool, score) in self.0 {
            writeln!(
                f,
                "| {} | {} | {} ({:.1} %) | {} ({:.1} %) | {} | {} ({:.1} %) | {} | {} | {} ({:.1} %) |",
                tool.name(),
                score.throttled,
                score.named,
                100.0 * score.firm_share(),
                score.named + score.suspected,
                100.0 * score.named_share(),
                score.healthy,
                score.alarms,
                100.0 * score.alarm_share(),
                score.suspicions,
                score.between,
                score.between_called,
                100.0 * score.between_share()
            )?;
        }
        Ok(())
    }
}
