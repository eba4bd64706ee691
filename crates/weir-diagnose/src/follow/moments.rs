//! The moments with the longest wait times.

use super::bins::NEAR;
use crate::system::Medium;
use weir_core::Cap as Kind;
use weir_observe::load::Load;
use weir_units::Instant;

/// Number of moments that are kept.
const KEPT: usize = 8;

/// Latency of at least this multiple of the medium's counts as high.
const RAISED: f64 = 2.0;

/// A time span with waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Start.
    pub from: Instant,
    /// End.
    pub to: Instant,
    /// The cap with the highest utilisation, if any is known: its index and kind.
    pub cap: Option<(usize, Kind)>,
    /// Its highest utilisation.
    pub utilisation: f64,
    /// Operations.
    pub operations: f64,
    /// Their total latency in nanoseconds.
    pub ns: f64,
    /// Wait time, as far as known at that time.
    pub wait_ns: f64,
}

impl Moment {
    /// Returns the mean latency in nanoseconds.
    #[must_use]
    pub fn latency_ns(&self) -> Option<f64> {
        (self.operations > 0.0 && self.ns > 0.0).then(|| self.ns / self.operations)
    }
}

/// Joins samples into moments and keeps those with most waiting.
#[derive(Debug, Default)]
pub(super) struct Moments {
    open: Option<Moment>,
    kept: Vec<Moment>,
}

impl Moments {
    pub(super) fn take(
        &mut self,
        load: &Load,
        medium: Option<Medium>,
        queued: Option<f64>,
        used: f64,
        cap: Option<(usize, Kind)>,
    ) {
        let operations = load.operations.unwrap_or(0.0);
        let ns = load.ns.unwrap_or(0.0);
        let unloaded = medium.map_or(0.0, |medium| medium.load_ns(load));
        let waited = queued.unwrap_or_else(|| (ns - unloaded).max(0.0));
        let is_raised = match queued {
            Some(queued) => queued > 0.5 * ns,
            None => unloaded > 0.0 && ns > RAISED * unloaded,
        };
        if operations <= 0.0 || !(used >= NEAR || is_raised) {
            self.close();
            return;
        }
        match &mut self.open {
            Some(open) if open.cap == cap && open.to == load.from => {
                open.to = load.to;
                open.utilisation = open.utilisation.max(used);
                open.operations += operations;
                open.ns += ns;
                open.wait_ns += waited;
            }
            _ => {
                self.close();
                let (from, to, wait_ns) = (load.from, load.to, waited);
                self.open =
                    Some(Moment { from, to, cap, utilisation: used, operations, ns, wait_ns });
            }
        }
    }

    fn close(&mut self) {
        let Some(moment) = self.open.take() else { return };
        self.kept.push(moment);
        if self.kept.len() > KEPT {
            let least = self.kept.iter().enumerate();
            let least = least.min_by(|(_, one), (_, other)| one.wait_ns.total_cmp(&other.wait_ns));
            if let Some((least, _)) = least {
                self.kept.remove(least);
            }
        }
    }

    /// Returns the moments by wait time, the longest first.
    pub(super) fn finish(mut self) -> Vec<Moment> {
        self.close();
        self.kept.sort_by(|one, other| other.wait_ns.total_cmp(&one.wait_ns));
        self.kept
    }
}
