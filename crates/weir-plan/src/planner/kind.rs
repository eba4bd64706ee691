//! The families that a plan chooses from, and the constraints that apply to each.

use super::question::Question;
use crate::filesystem::FileSystem;
use crate::keep::Kept;
use crate::machine::{self, licence_of_machine};
use crate::need::Wishes;
use crate::service::Service;
use weir_catalog::{Edition, Series};
use weir_layout::ManagedInstance;

/// A family of layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Machine,
    Instance(ManagedInstance),
    Service(Service),
}

/// General Purpose, the only family with a limit for each file.
pub(super) const GP: Kind = Kind::Instance(ManagedInstance::Gp);

impl Kind {
    pub(super) const ALL: [Self; 6] = [
        Self::Machine,
        Self::Instance(ManagedInstance::Gp),
        Self::Instance(ManagedInstance::NextGenGp),
        Self::Instance(ManagedInstance::Bc),
        Self::Service(Service::Rds),
        Self::Service(Service::Postgres),
    ];

    /// Returns the family of a plan.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Machine => machine::NAME,
            Self::Instance(kind) => kind.name(),
            Self::Service(service) => service.name(),
        }
    }

    pub(super) fn is_in(self, edition: &Edition) -> bool {
        edition.series().iter().any(|series| self.has(series))
    }

    /// Returns whether a series belongs to this family.
    pub(super) fn has(self, series: &Series) -> bool {
        let is_instance = Self::ALL
            .into_iter()
            .any(|family| matches!(family, Self::Instance(_)) && family.name() == series.name);
        match self {
            Self::Machine => !is_instance && series.service.is_none(),
            Self::Instance(kind) => series.name == kind.name(),
            Self::Service(service) => series.service.as_deref() == Some(service.name()),
        }
    }

    /// Returns whether plans of this family can extend a layout in use.
    pub(super) fn extends(self, kept: &Kept) -> bool {
        match self {
            Self::Machine => kept.instance.is_none(),
            Self::Instance(kind) => kept.instance.is_some_and(|(own, ..)| own == kind),
            Self::Service(_) => false,
        }
    }
}

/// Tells whether a constraint applies to a family.
pub(super) type IsUsed = fn(&Question<'_>, Kind) -> bool;

/// Lists the stated constraints and the families that they apply to.
pub(super) fn stated_constraints(wishes: &Wishes) -> impl Iterator<Item = (&'static str, IsUsed)> {
    let machine: IsUsed = |_, family| family == Kind::Machine;
    let service: IsUsed = |_, family| matches!(family, Kind::Service(_));
    let licence: IsUsed = |question, family| {
        family != Kind::Machine || licence_of_machine(question.edition, question.wishes).is_ok()
    };
    let all: [(_, _, IsUsed); 12] = [
        ("os", wishes.os.is_some(), machine),
        ("architecture", wishes.architecture.is_some(), |_, own| !matches!(own, Kind::Instance(_))),
        ("disks", !wishes.disks.is_empty(), |_, own| !matches!(own, Kind::Instance(_))),
        ("max_disks", wishes.max_disks.is_some(), machine),
        ("apart", wishes.is_apart || wishes.shares_backup, machine),
        ("filesystem", wishes.filesystem != FileSystem::None, machine),
        ("max_files", wishes.max_files.is_some(), |_, own| own == GP),
        ("storage", wishes.storage.is_some(), |_, own| own != Kind::Machine),
        ("licence_owned", wishes.owns_licence(), licence),
        ("engine", wishes.engine.is_some(), service),
        ("keep", wishes.keep.is_some(), |_, own| !matches!(own, Kind::Service(_))),
        ("bursting", wishes.peaks.is_some(), machine),
    ];
    all.into_iter().filter(|(_, is_said, _)| *is_said).map(|(key, _, is_used)| (key, is_used))
}
