//! A layout of a machine with disks, while it is compared with others.

use crate::cost::Cost;
use crate::demand::Demand;
use crate::disks::Disks;
use crate::need::Need;
use weir_catalog::{CacheMode, HostSize};
use weir_units::Bytes;

/// Disks of some roles, with cache mode and stripe.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Pool {
    /// Indices of the roles in the need.
    pub(super) roles: Vec<usize>,
    pub(super) mode: CacheMode,
    pub(super) place: Place,
}

/// The disks of a pool: one, a stripe, or the local disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// One disk.
    Single,
    /// A stripe with this unit.
    Striped(Bytes),
    /// The machine's local disk.
    Local,
}

/// A way to share, cache and stripe disks: one pool for each group of roles.
pub(super) type Arrangement = Vec<Pool>;

/// Disks for every pool of an arrangement.
#[derive(Debug, Clone)]
pub(super) struct Choice<'a> {
    pub(super) disks: Vec<Option<Disks<'a>>>,
    pub(super) count: u64,
    pub(super) cost: Cost,
    pub(super) is_bought: bool,
}

impl Choice<'_> {
    /// Returns whether the machine's limits for disks with bought limits apply.
    pub(super) fn passes_bought(&self) -> bool {
        self.is_bought && self.count > 0
    }
}

/// A machine with disks.
#[derive(Debug, Clone)]
pub(crate) struct Candidate<'a> {
    pub(super) host: &'a HostSize,
    pub(super) arrangement: Arrangement,
    pub(super) choice: Choice<'a>,
    pub(super) demands: Vec<Demand>,
    pub(super) hits: u64,
    pub(super) cost: Cost,
}

impl Pool {
    /// Returns the names of the roles.
    pub(super) fn names(&self, need: &Need, between: &str) -> String {
        let names: Vec<&str> =
            self.roles.iter().map(|role| need.roles[*role].role.name()).collect();
        names.join(between)
    }
}
