//! A volume with its counters and its dirty blocks.

use super::above::AboveTarget;
use super::merge::Run;
use super::types::Totals;
use crate::spec::VolumeSpec;
use crate::writeback::Dirty;
use weir_units::Instant;

/// A volume of the host, with its counters.
#[derive(Debug)]
pub(super) struct Volume {
    pub(super) spec: VolumeSpec,
    pub(super) totals: Totals,
    pub(super) dirty: Dirty,
    pub(super) run: Run,
    /// In-flight requests, and the start of the busy period not yet added to `totals.busy`.
    pub(super) in_flight: u64,
    pub(super) busy_from: Instant,
    /// Billing counter for on-demand bursting; `None` for other volumes.
    pub(super) above: Option<AboveTarget>,
}

impl Volume {
    pub(super) fn new(spec: VolumeSpec) -> Self {
        let above = AboveTarget::of(&spec.limits);
        Self {
            spec,
            totals: Totals::default(),
            dirty: Dirty::default(),
            run: Run::default(),
            in_flight: 0,
            busy_from: Instant::ZERO,
            above,
        }
    }

    pub(super) fn begin(&mut self, now: Instant) {
        if self.in_flight == 0 {
            self.busy_from = now;
        }
        self.in_flight += 1;
    }

    pub(super) fn end(&mut self, now: Instant) {
        self.in_flight -= 1;
        self.totals.busy += now - self.busy_from;
        self.busy_from = now;
    }
}
