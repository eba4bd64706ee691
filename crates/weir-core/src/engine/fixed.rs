//! An engine of fixed limits, which admits requests ahead where it can.

use super::Engine;
use super::ahead::Ahead;
use super::types::{Event, Request};
use crate::spec::{HostSpec, SpecError};
use weir_units::Instant;

impl Engine {
    /// Compiles `spec` for a driver that gives no commands: limits, sizes and cache modes stay,
    /// no volume is added or removed, and the host does not crash. If nothing bursts, there is no
    /// cache and a medium takes its time, a striped request has one alarm for its completion, and
    /// costs little more than one that is not striped if only disks have limits.
    ///
    /// The completions are the same as of [`Engine::new`]. [`poll_deadline`](Self::poll_deadline)
    /// tells of no completion of a piece, and [`totals`](Self::totals) needs
    /// [`settle_totals`](Self::settle_totals) first.
    ///
    /// Commands to an engine that admits ahead panic.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if a device or a cache mode does not fit the rest.
    pub fn with_fixed_limits(spec: HostSpec) -> Result<Self, SpecError> {
        let ahead = Ahead::new(&spec);
        let engine = Self::new(spec)?;
        Ok(Self { ahead, ..engine })
    }

    /// Counts all that is done until `now`, which must not be later than the driver has come to.
    /// An engine from [`Engine::new`] has counted it already.
    pub fn settle_totals(&mut self, now: Instant) {
        if let Some(ahead) = &mut self.ahead {
            ahead.settle(&mut self.volumes, now);
        }
    }

    /// Checks that a driver of fixed limits gives no commands.
    pub(super) fn assert_not_fixed(&self) {
        assert!(self.ahead.is_none(), "a host with fixed limits takes no commands");
    }

    /// Takes a request that was checked.
    pub(super) fn admit_ahead(&mut self, request: &Request, now: Instant) {
        let Self { devices, gates, timers, ahead: Some(ahead), .. } = self else { return };
        let spec = &devices[request.device.0];
        if let Some(number) = ahead.arrive((gates, timers), spec, request, now) {
            self.finish_ahead(number);
        }
    }

    pub(super) fn release_ahead(&mut self, gate: usize, now: Instant) {
        let Self { gates, timers, ahead: Some(ahead), .. } = self else { return };
        ahead.release((gates, timers), gate, now);
    }

    pub(super) fn finish_ahead(&mut self, number: usize) {
        if let Some(ahead) = &mut self.ahead {
            let completion = ahead.take(number, &mut self.volumes);
            self.events.push_back(Event::Completed(completion));
        }
    }
}
