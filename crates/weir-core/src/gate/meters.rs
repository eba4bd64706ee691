//! The meters of a gate, with the caps that they stand for.

use super::passes::Passes;
use crate::meter::Meter;
use crate::spec::{GateLimits, Limit};
use crate::waits::Cap;
use alloc::vec::Vec;
#[cfg(test)]
use weir_units::Instant;
use weir_units::time::NANOS_PER_SEC;

/// Two sides, each with its burst.
pub(super) const MOST_METERS: usize = 4;

/// The unit that a meter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Operations,
    Bytes,
}

/// A meter with the cap it stands for.
#[derive(Debug)]
pub(super) struct Metered {
    pub(super) meter: Meter,
    pub(super) cap: Cap,
    pub(super) counts: Counts,
    /// Charged costs, which the tests compare with its rate.
    #[cfg(test)]
    pub(super) passed: Vec<(Instant, u64)>,
}

impl Metered {
    fn new(meter: Meter, cap: Cap, counts: Counts) -> Self {
        Self {
            meter,
            cap,
            counts,
            #[cfg(test)]
            passed: Vec::new(),
        }
    }

    pub(super) fn cost(&self, part: &impl Passes) -> u64 {
        u64::from(match self.counts {
            Counts::Operations => part.operations(),
            Counts::Bytes => part.bytes(),
        })
    }
}

/// The four caps of one gate: of its operations and bytes, lasting and at the
/// most while bursting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GateCaps {
    pub(crate) iops: Cap,
    pub(crate) burst_iops: Cap,
    pub(crate) bytes: Cap,
    pub(crate) burst_bytes: Cap,
}

pub(super) fn burst_of(caps: GateCaps, cap: Cap) -> Cap {
    if cap == caps.iops { caps.burst_iops } else { caps.burst_bytes }
}

/// Makes the meters of a gate, in the order in which a request passes them.
pub(super) fn meters(caps: GateCaps, limits: &GateLimits) -> Vec<Metered> {
    let sides = [
        (limits.iops, caps.iops, caps.burst_iops, Counts::Operations),
        (limits.bytes, caps.bytes, caps.burst_bytes, Counts::Bytes),
    ];
    let mut meters = Vec::new();
    for (limit, cap, burst_cap, counts) in sides {
        let Some(Limit { rate, burst, reserve }) = limit else { continue };
        let with_reserve = |rate| Meter::new(rate).with_reserve(reserve);
        if let Some((peak, _)) = burst {
            meters.push(Metered::new(with_reserve(peak), burst_cap, counts));
        }
        let meter = match burst {
            None => with_reserve(rate),
            Some((_, Limit::ON_DEMAND)) => continue,
            Some((peak, duration)) => {
                let surplus = u128::from(peak.get().saturating_sub(rate.get()));
                let credits = surplus * u128::from(duration.nanos()) / u128::from(NANOS_PER_SEC);
                Meter::with_credits(rate, u64::try_from(credits).unwrap_or(u64::MAX))
            }
        };
        meters.push(Metered::new(meter, cap, counts));
    }
    meters
}
