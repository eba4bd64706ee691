//! The machines to consider: those that may be used and are large enough, with their prices.

use crate::cost::{Cost, Prices, gib};
use crate::filesystem::FileSystem;
use crate::keep::{Kept, KeptPool};
use crate::need::{Need, Wishes};
use weir_catalog::{Architecture, Edition, HostSize, Price};
use weir_units::Bytes;

/// Maximum number of disks, if nothing else limits it.
const MOST_DISKS: u64 = 1024;

/// Maximum number of disks for editions that publish no limit. The figure is Weir's own; every
/// machine of a useful size takes as many.
pub(crate) const UNPUBLISHED_DISKS: u64 = 16;

/// The search among machines with disks.
#[derive(Debug)]
pub(crate) struct Machines<'a> {
    /// The edition.
    pub(crate) edition: &'a Edition,
    /// The prices.
    pub(crate) prices: Prices<'a>,
    /// The stripe units to try.
    pub(crate) units: Vec<Bytes>,
    /// The disk families to use.
    pub(crate) families: Vec<&'a str>,
    /// The constraints.
    pub(crate) wishes: &'a Wishes,
    /// The machine that the user names.
    named: Option<&'a HostSize>,
    /// The machine in use.
    in_use: Option<&'a HostSize>,
    /// True if the need states that the machine runs Windows Server.
    runs_windows: bool,
    /// Maximum number of disks of any machine.
    most_disks: u64,
    publishes_disks: bool,
}

/// Returns whether a machine's Windows Server licence is owned.
///
/// # Errors
///
/// A message if an owned licence does not apply to the machines of the edition.
pub(crate) fn licence_of_machine(edition: &Edition, wishes: &Wishes) -> Result<bool, String> {
    let is_linux = wishes.os.as_ref().is_some_and(|os| os.eq_ignore_ascii_case("linux"));
    let is_kept = wishes.keep.as_ref().is_some_and(|kept| kept.has_licence);
    match wishes.owns_licence() {
        false => Ok(false),
        true if is_linux && is_kept => Err(
            "the machine to keep has an owned Windows Server licence; use os = \"windows\", or \
             remove licence_owned from its layout"
                .to_owned(),
        ),
        true if is_linux => Err(
            "for machines it means the Windows Server licence; use os = \"windows\", or leave it out"
                .to_owned(),
        ),
        true if edition.licence_programme().is_some() => Ok(true),
        true => Err(format!(
            "for machines it means a programme such as Azure Hybrid Benefit, which {} does not have; \
             leave it out",
            edition.name()
        )),
    }
}

/// Returns whether the need states that machines run Windows Server.
pub(crate) fn runs_windows(edition: &Edition, wishes: &Wishes) -> bool {
    let is_named = wishes.os.as_ref().is_some_and(|os| os.eq_ignore_ascii_case("windows"));
    is_named
        || wishes.file_system() == FileSystem::Ntfs
        || licence_of_machine(edition, wishes) == Ok(true)
}

/// Returns whether a machine is a certain one of the edition.
fn is_same(one: Option<&HostSize>, host: &HostSize) -> bool {
    one.is_some_and(|one| std::ptr::eq(one, host))
}

impl<'a> Machines<'a> {
    /// Builds the search with the stripe units and disk families to use.
    pub(crate) fn new(
        edition: &'a Edition,
        prices: Prices<'a>,
        wishes: &'a Wishes,
        (units, families): (Vec<Bytes>, Vec<&'a str>),
    ) -> Self {
        let host = |name: &String| edition.host(name).ok();
        let named = wishes.host.as_ref().and_then(host);
        let in_use = wishes.keep.as_ref().and_then(|kept| kept.host.as_ref()).and_then(host);
        let counts = || edition.hosts().filter_map(|host| host.max_data_disks);
        let publishes_disks = counts().next().is_some();
        let is_uncounted = named.is_some_and(|host| host.max_data_disks.is_none());
        let most_disks = match counts().max() {
            None => UNPUBLISHED_DISKS,
            Some(_) if is_uncounted => MOST_DISKS,
            Some(most) => u64::from(most).min(MOST_DISKS),
        };
        let most_disks = wishes.max_disks.map_or(most_disks, |wished| match publishes_disks {
            true => wished.min(most_disks),
            false => wished.min(MOST_DISKS),
        });
        Self {
            edition,
            prices,
            units,
            families,
            wishes,
            named,
            in_use,
            runs_windows: runs_windows(edition, wishes),
            most_disks,
            publishes_disks,
        }
    }

    /// Returns the machines to consider, the cheapest first, and of equal prices the one in use first.
    pub(crate) fn hosts(&self, need: &Need) -> Vec<&'a HostSize> {
        let mut hosts: Vec<&HostSize> =
            self.edition.hosts().filter(|host| self.is_fit(need, host)).collect();
        let is_other =
            |host: &HostSize| self.in_use.is_none_or(|own| own.qualified() != host.qualified());
        hosts.sort_by_cached_key(|host| (self.host_cost(host), is_other(host)));
        hosts
    }

    fn is_fit(&self, need: &Need, host: &HostSize) -> bool {
        // Disks can only be attached to machines with a known number of them.
        let is_named = self.wishes.host.is_some() && !self.wishes.needs_limits;
        let is_counted = is_named || self.is_counted(host);
        is_counted && self.is_large_enough(need, host)
    }

    /// Returns whether a machine may be used and has the processors and the memory, whatever limits
    /// are published.
    pub(super) fn is_large_enough(&self, need: &Need, host: &HostSize) -> bool {
        let is_wished = match self.wishes.host {
            Some(_) => is_same(self.named, host),
            None => {
                let is_preview = self.edition.series_of(host).is_some_and(|own| own.preview);
                !is_preview && (!host.stands_for_others || self.is_chosen(host))
            }
        };
        let vcpus = need.vcpus == 0 || host.vcpus.is_some_and(|vcpus| vcpus >= need.vcpus);
        let memory =
            need.memory == Bytes::ZERO || host.memory.is_some_and(|own| own >= need.memory);
        is_wished
            && self.has_processors(host)
            && self.stays(host)
            && self.is_own(host)
            && self.has_kept(host)
            && vcpus
            && memory
    }

    /// Returns whether the machine has the processors that the need asks for, or else those of the machine in use or of
    /// Windows Server. If the need names a machine, only the architecture that it states counts.
    fn has_processors(&self, host: &HostSize) -> bool {
        let is = |wanted: Architecture| self.edition.architecture(host) == wanted;
        let stated = self.wishes.architecture;
        if self.wishes.host.is_some() {
            return stated.is_none_or(is);
        }
        let in_use = || self.in_use.map(|own| self.edition.architecture(own));
        let windows = || self.runs_windows.then_some(Architecture::X64);
        stated.or_else(in_use).or_else(windows).is_none_or(is)
            && self.edition.may_replace(self.in_use, host)
    }

    /// Returns whether the machine takes the disks in use.
    fn has_kept(&self, host: &HostSize) -> bool {
        let takes = self.edition.takes(host);
        let mut kept = self.wishes.keep.iter().flat_map(|kept| &kept.pools);
        takes.is_empty() || kept.all(|pool| pool.is_local || takes.contains(&pool.family))
    }

    /// Returns whether the machine may change, or is the one in use.
    fn stays(&self, host: &HostSize) -> bool {
        let kept = self.wishes.keep.as_ref().filter(|kept| kept.is_up);
        kept.is_none_or(|_| is_same(self.in_use, host))
    }

    /// Returns whether the machine is rented as such, and not as part of a service.
    fn is_own(&self, host: &HostSize) -> bool {
        self.edition.series_of(host).is_none_or(|series| series.service.is_none())
    }

    /// Returns whether the machine's number of disks is published, or that of no machine is.
    pub(super) fn is_counted(&self, host: &HostSize) -> bool {
        host.max_data_disks.is_some() || !self.publishes_disks
    }

    /// Returns the maximum number of disks of any machine.
    pub(super) fn most_disks(&self) -> u64 {
        self.most_disks
    }

    /// Returns the maximum number of disks to plan on a machine.
    pub(super) fn most_disks_of(&self, host: &HostSize) -> u64 {
        self.edition.most_data_disks(host).map_or(MOST_DISKS, u64::from).min(self.most_disks)
    }

    pub(crate) fn host_cost(&self, host: &HostSize) -> Cost {
        let size = host.vcpus.map_or(0, u64::from) << 32 | host.memory.map_or(0, gib);
        Cost::of_units(self.host_price(host), 1, size << 8)
    }

    /// Returns the price of a machine, without the licence of its operating system if that is
    /// owned.
    pub(crate) fn host_price(&self, host: &HostSize) -> Option<&'a Price> {
        match self.has_licence() {
            true => self.prices.unlicensed_host(&host.name),
            false => self.prices.host(&host.name),
        }
    }

    /// Returns the machine in use.
    pub(super) fn in_use(&self) -> Option<&'a HostSize> {
        self.in_use
    }

    /// Returns whether the licence of Windows Server is owned.
    pub(crate) fn has_licence(&self) -> bool {
        licence_of_machine(self.edition, self.wishes).unwrap_or(false)
    }

    pub(crate) fn is_named(&self, host: &HostSize) -> bool {
        let is_named = match self.wishes.host {
            Some(_) => is_same(self.named, host),
            None => self.is_counted(host) && self.is_own(host),
        };
        is_named && self.stays(host)
    }

    /// Returns whether the user named this machine or has it in use.
    pub(super) fn is_chosen(&self, host: &HostSize) -> bool {
        is_same(self.named, host) || is_same(self.in_use, host)
    }

    /// Returns whether a machine carries any load where its limits are not published.
    pub(super) fn is_counted_on(&self, host: &HostSize) -> bool {
        !self.wishes.needs_limits && self.is_chosen(host)
    }

    /// Returns the disk families to use that a machine takes.
    pub(super) fn taken(&self, host: &HostSize) -> Vec<&'a str> {
        let takes = self.edition.takes(host);
        self.families
            .iter()
            .filter(|family: &&&str| takes.is_empty() || takes.iter().any(|own| own == *family))
            .copied()
            .collect()
    }

    /// Returns the disks in use of some roles.
    pub(super) fn kept(&self, need: &Need, roles: &[usize]) -> Option<&'a KeptPool> {
        self.wishes.keep.as_ref()?.pool(need.roles[*roles.first()?].role)
    }

    /// Returns whether disks in use may get another cache mode, for which they are detached.
    pub(super) fn may_recache(&self) -> bool {
        self.wishes.keep.as_ref().is_some_and(|kept| !kept.is_up)
    }

    /// Returns whether a stripe in use may be rebuilt with another unit.
    pub(super) fn may_rebuild(&self) -> bool {
        self.wishes.keep.as_ref().is_some_and(Kept::may_rebuild)
    }
}
