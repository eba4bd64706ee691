//! The families to search, and checks of the constraints before the search.

use super::kind::{IsUsed, Kind, stated_constraints};
use super::question::Question;
use super::search::{disk_families, services};
use crate::cost::Prices;
use crate::disks::{Market, credits};
use crate::error::PlanError;
use crate::filesystem::FileSystem;
use crate::keep::Kept;
use crate::machine::{licence_of_machine, runs_windows};
use crate::need::{Need, Wishes};
use weir_catalog::{Architecture, Edition};
use weir_layout::Role;

/// Returns the families to search, and checks that each constraint applies to one of them.
pub(super) fn families(question: &Question<'_>) -> Result<Vec<Kind>, PlanError> {
    if let Some(kept) = &question.wishes.keep {
        check_roles(kept, question.need)?;
        check_disks(kept, question)?;
        keeps_no_service(question.edition, kept)?;
    }
    let families = families_of(question)?;
    let (edition, wishes) = (question.edition, question.wishes);
    if families.iter().all(|family| *family == Kind::Machine) {
        let licence = licence_of_machine(edition, wishes);
        licence.map_err(|reason| PlanError::need("licence_owned", reason))?;
    }
    if families.contains(&Kind::Machine) {
        check_architecture(edition, wishes)?;
        check_file_system(edition, wishes)
            .map_err(|reason| PlanError::need("filesystem", reason))?;
    }
    let is_idle = |is_used: IsUsed| !families.iter().any(|family| is_used(question, *family));
    if let Some((key, _)) = stated_constraints(wishes).find(|(_, is_used)| is_idle(*is_used)) {
        let names: Vec<&str> = families.iter().map(|family| family.name()).collect();
        let reason = format!("does not apply to {}; leave it out", names.join(", "));
        return Err(PlanError::need(key, reason));
    }
    if families.contains(&Kind::Machine) {
        keeps_no_shared(question)?;
        last(question)?;
    }
    Ok(families)
}

/// Checks that a need covers all roles in use, so that none is dropped.
fn check_roles(kept: &Kept, need: &Need) -> Result<(), PlanError> {
    let of_pools = kept.pools.iter().flat_map(|pool| pool.roles.iter().copied());
    let mut there = of_pools.chain(kept.files.iter().map(|files| files.role));
    match there.find(|role| need.role(*role).is_none()) {
        Some(role) => {
            let what = format!("{} of the layout to keep", role.name());
            let reason =
                "is not in the need; add it there, at least with its size, so that it is kept";
            Err(PlanError::need(what, reason))
        }
        None => Ok(()),
    }
}

/// Checks that Windows Server is not asked for on Arm processors.
fn check_architecture(edition: &Edition, wishes: &Wishes) -> Result<(), PlanError> {
    if !runs_windows(edition, wishes) {
        return Ok(());
    }
    if wishes.architecture == Some(Architecture::Arm64) {
        let reason = "is arm64, and Windows Server needs x64; leave it out";
        return Err(PlanError::need("architecture", reason));
    }
    let in_use = wishes.keep.as_ref().and_then(|kept| edition.host(kept.host.as_ref()?).ok());
    let is_arm = in_use.is_some_and(|own| edition.architecture(own) == Architecture::Arm64);
    match is_arm && wishes.architecture.is_none() && wishes.host.is_none() {
        true => {
            let reason = "has a machine with Arm processors, and Windows Server needs x64; leave out os \
                          and ntfs, or state architecture = \"x64\" for a new machine";
            Err(PlanError::need("the layout to keep", reason))
        }
        false => Ok(()),
    }
}

/// Checks that disk families are not asked for where no disk is new.
fn check_disks(kept: &Kept, question: &Question<'_>) -> Result<(), PlanError> {
    let has_disks = |role: Role| kept.pools.iter().any(|pool| pool.roles.contains(&role));
    let is_kept = question.need.roles.iter().all(|own| has_disks(own.role));
    match is_kept && !question.wishes.disks.is_empty() {
        true => {
            let reason = "is for new disks, and every role of the need has disks in use, which keep their \
                          family; leave it out";
            Err(PlanError::need("disks", reason))
        }
        false => Ok(()),
    }
}

/// Checks that the machine's operating system has the file system, and that disks in use keep
/// theirs.
fn check_file_system(edition: &Edition, wishes: &Wishes) -> Result<(), String> {
    let (own, kept) = (wishes.file_system(), wishes.keep.as_ref().map(|kept| kept.filesystem));
    if let Some(kept) = kept.filter(|kept| *kept != FileSystem::None && *kept != own) {
        return Err(format!(
            "the disks in use have {}, and another file system would erase them; leave it out",
            kept.name()
        ));
    }
    if kept == Some(FileSystem::None) && own != FileSystem::None {
        return Err(format!(
            "the layout to keep does not state the file system of its disks; if it is {}, add \
             filesystem = {:?} to its [host], otherwise leave it out",
            own.name(),
            own.name()
        ));
    }
    let is = |name: &str| wishes.os.as_ref().is_some_and(|os| os.eq_ignore_ascii_case(name));
    let is_windows = is("windows") || licence_of_machine(edition, wishes) == Ok(true);
    match own {
        FileSystem::Ntfs if is("linux") => {
            Err("ntfs needs Windows, but os is linux; use os = \"windows\", or xfs or ext4"
                .to_owned())
        }
        FileSystem::Ext4 | FileSystem::Xfs if is_windows => Err(format!(
            "{} needs Linux, but the machine runs Windows; use ntfs, or leave out os and \
             licence_owned",
            own.name()
        )),
        _ => Ok(()),
    }
}

/// Rejects services in use: their storage cannot be attached to anything else.
fn keeps_no_service(edition: &Edition, kept: &Kept) -> Result<(), PlanError> {
    let host = kept.host.as_ref().and_then(|name| edition.host(name).ok());
    let service = host.and_then(|host| edition.series_of(host)?.service.clone());
    match (service, &kept.host) {
        (Some(service), Some(host)) => {
            let host = host.rsplit('/').next().unwrap_or(host);
            let reason = format!(
                "is a server of {service} ({host}), and plans do not extend services; leave out \
                 keep, and move the data"
            );
            Err(PlanError::need("the layout to keep", reason))
        }
        _ => Ok(()),
    }
}

/// Rejects disks in use that share their limits: their limits depend on the size of all of them.
fn keeps_no_shared(question: &Question<'_>) -> Result<(), PlanError> {
    let pools = || question.wishes.keep.iter().flat_map(|kept| &kept.pools);
    let shared = question.edition.pooled_families();
    match pools().find(|pool| shared.iter().any(|own| own.family == pool.family)) {
        Some(pool) => {
            let what = format!("{} of the layout to keep", pool.name);
            let reason = format!(
                "is on {}, whose disks share their limits, and plans do not extend those; leave \
                 out keep",
                pool.family
            );
            Err(PlanError::need(what, reason))
        }
        None => Ok(()),
    }
}

/// Checks that some burst credits last as long as peaks.
fn last(question: &Question<'_>) -> Result<(), PlanError> {
    let Some(peaks) = question.wishes.peaks else { return Ok(()) };
    let (edition, kept) = (question.edition, question.wishes.keep.as_ref());
    let is_new = |role: Role| kept.is_none_or(|kept| kept.pool(role).is_none());
    let mut families = match question.need.roles.iter().any(|own| is_new(own.role)) {
        true => disk_families(question)?,
        false => Vec::new(),
    };
    families.extend(kept.iter().flat_map(|kept| &kept.pools).map(|pool| pool.family.as_str()));
    let market = Market { edition, prices: Prices(question.prices), families: &families };
    let Some(longest) = market.tiers().filter_map(credits).max() else {
        let mut names: Vec<&str> = families.clone();
        names.dedup();
        let reason = format!("no disks of {} have burst credits; leave it out", names.join(", "));
        return Err(PlanError::need("bursting", reason));
    };
    if longest >= peaks {
        return Ok(());
    }
    let lasting = market.tiers().filter(|tier| credits(tier) == Some(longest));
    let names: Vec<&str> = lasting.map(|tier| tier.name.as_str()).collect();
    let reason = format!(
        "no burst credits last {peaks}; the longest last {longest} ({}); leave it out, or plan for \
         shorter peaks",
        names.join(", ")
    );
    Err(PlanError::need("bursting", reason))
}

pub(super) fn families_of(question: &Question<'_>) -> Result<Vec<Kind>, PlanError> {
    let has = |family: &Kind| family.is_in(question.edition);
    let own: Vec<Kind> = Kind::ALL.into_iter().filter(has).collect();
    let own: Vec<Kind> = own
        .into_iter()
        .filter(|kind| question.wishes.keep.as_ref().is_none_or(|kept| kind.extends(kept)))
        .collect();
    if let (true, Some(kept)) = (own.is_empty(), &question.wishes.keep) {
        let what = match kept.instance {
            Some((kind, ..)) => {
                format!("no {} instances, as the layout to keep has", kind.name())
            }
            None => "no machines, as the layout to keep has".to_owned(),
        };
        return Err(PlanError::Nothing { edition: question.edition.name().to_owned(), what });
    }
    let known = || own.iter().map(|family| family.name()).collect::<Vec<_>>().join(", ");
    let edition = question.edition.name();
    if own.is_empty() {
        let what = "neither machines nor instances; plan with another edition".to_owned();
        return Err(PlanError::Nothing { edition: edition.to_owned(), what });
    }
    let mut wanted = Vec::new();
    for name in &question.wishes.families {
        match own.iter().find(|family| family.name() == name) {
            Some(family) => wanted.push(*family),
            None => {
                let what = format!("no family {name:?}; it has {}", known());
                return Err(PlanError::Nothing { edition: edition.to_owned(), what });
            }
        }
    }
    // A named machine belongs to one family.
    if let Some(host) = &question.wishes.host {
        let size = question.edition.host(host)?;
        let series = question.edition.series_of(size);
        let named: Vec<Kind> = own
            .iter()
            .copied()
            .filter(|family: &Kind| series.is_some_and(|series| family.has(series)))
            .collect();
        if !wanted.is_empty() && !named.iter().any(|family| wanted.contains(family)) {
            let reason = format!("is not in the families {}", question.wishes.families.join(", "));
            return Err(PlanError::need(format!("host {host}"), reason));
        }
        return Ok(named);
    }
    if !wanted.is_empty() {
        return Ok(wanted);
    }
    // A service without the requested features is skipped if there is another family.
    let fit: Vec<Kind> = own
        .iter()
        .filter(|family: &&Kind| {
            !matches!(family, Kind::Service(_)) || has_what_is_asked(question, **family)
        })
        .copied()
        .collect();
    Ok(if fit.is_empty() { own } else { fit })
}

/// Returns whether a family has the roles and features of the question.
pub(super) fn has_what_is_asked(question: &Question<'_>, family: Kind) -> bool {
    match family {
        Kind::Machine => true,
        Kind::Instance(_) => question.need.role(Role::Backup).is_none(),
        Kind::Service(service) => {
            services(question, service, Vec::new()).check(question.need).is_ok()
        }
    }
}
