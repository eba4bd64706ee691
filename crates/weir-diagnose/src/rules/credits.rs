//! Burst credits: from a gauge of the cloud, otherwise from the model of the limiter.

use super::signs::entity_name;
use crate::case::Case;
use crate::follow::{DEPLETED, Gauged};
use crate::seconds::at_s;
use crate::system::{Cap, Owner};
use weir_core::Cap as Kind;
use weir_observe::EntityId;
use weir_observe::metric as m;

/// The credits of a disk or machine.
#[derive(Debug, Clone)]
pub(super) struct Balance {
    /// The entity.
    pub(super) subject: String,
    /// The cap whose burst they pay for, if its limit is known.
    pub(super) cap: Option<usize>,
    /// Kind of that limit.
    pub(super) kind: Option<Kind>,
    /// The part of a full bucket that there was at first.
    pub(super) first: f64,
    /// The part of a full bucket at the end.
    pub(super) last: f64,
    /// The least.
    pub(super) least: f64,
    /// Time from the first to the last value, in seconds.
    pub(super) between_s: f64,
    /// Observed time in seconds.
    pub(super) seconds: f64,
    /// The part of that in which there were none.
    pub(super) out_share: f64,
    /// Set if the cloud reports the credits, and not the model.
    pub(super) is_said: bool,
}

/// Returns all known credits. Gauges take precedence over the model.
pub(super) fn balances(case: &Case<'_>) -> Vec<Balance> {
    let mut all: Vec<Balance> =
        case.facts.others.gauged.iter().filter_map(|gauge| of_gauge(case, gauge)).collect();
    for (index, cap) in case.system.caps.iter().enumerate() {
        let said = all.iter().any(|balance| balance.is_said && balance.cap == Some(index));
        if !said {
            all.extend(of_model(case, index, cap));
        }
    }
    all
}

fn of_gauge(case: &Case<'_>, gauge: &Gauged) -> Option<Balance> {
    let counts_bytes = match gauge.metric {
        name if name == m::BURST_BALANCE.name => false,
        name if name == m::BURST_BYTES_BALANCE.name => true,
        _ => return None,
    };
    let ((from, first), (to, last)) = (gauge.first?, gauge.last?);
    let cap = cap_of(case, gauge.entity, counts_bytes);
    let kind = cap.map(|cap| case.system.caps[cap].kind);
    Some(Balance {
        subject: entity_name(case, gauge.entity),
        cap,
        kind,
        first,
        last,
        least: gauge.least,
        between_s: at_s(to) - at_s(from),
        seconds: gauge.seconds,
        out_share: gauge.depleted_share(),
        is_said: true,
    })
}

/// Returns the cap of an entity that bursts.
fn cap_of(case: &Case<'_>, entity: EntityId, counts_bytes: bool) -> Option<usize> {
    let is = |cap: &Cap| {
        let own = match cap.owner {
            Owner::Host(host) => case.system.hosts[host].entity,
            Owner::Disk(disk) => case.system.disks[disk].entity,
        };
        own == Some(entity) && cap.counts_bytes() == counts_bytes && cap.limit.burst.is_some()
    };
    case.system.caps.iter().position(is)
}

fn of_model(case: &Case<'_>, index: usize, cap: &Cap) -> Option<Balance> {
    let facts = &case.facts.caps[index];
    let credits = facts.credits.filter(|credits| credits.full > 0.0 && facts.seconds > 0.0)?;
    Some(Balance {
        subject: case.system.owner_name(cap).to_owned(),
        cap: Some(index),
        kind: Some(cap.kind),
        first: 1.0,
        last: credits.left / credits.full,
        least: credits.least / credits.full,
        between_s: facts.seconds,
        seconds: facts.seconds,
        out_share: credits.out_s / facts.seconds,
        is_said: false,
    })
}

impl Balance {
    /// Returns the kind of credits in words.
    pub(super) fn words(&self) -> &'static str {
        match self.kind.map(Kind::counts_bytes) {
            Some(true) => "throughput burst credits",
            Some(false) => "IOPS burst credits",
            None => "burst credits",
        }
    }

    /// Returns the source of the balance in words.
    pub(super) fn basis(&self) -> &'static str {
        if self.is_said {
            "metric of the cloud"
        } else {
            "model of the limiter, with a full bucket at the start"
        }
    }

    /// Returns whether there are none at the end.
    pub(super) fn is_out(&self) -> bool {
        self.last <= DEPLETED
    }
}
