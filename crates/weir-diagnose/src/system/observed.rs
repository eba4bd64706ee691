//! Files, roles and attributes as the observation states them.

use super::model::{File, On};
use weir_layout::Role;
use weir_observe::{Attribute, Entity, EntityId, EntityKind, attribute};

/// Returns whether an entity has I/O of storage. Jobs of a benchmark have that of their files.
pub(crate) const fn is_storage(kind: &EntityKind) -> bool {
    matches!(kind, EntityKind::File | EntityKind::Volume | EntityKind::Stripe | EntityKind::Job)
}

/// Makes a file of a job of a benchmark, whose I/O it stands for.
pub(super) fn job_file(job: &Entity, id: EntityId, on: Option<On>) -> File {
    let name = job.name.clone();
    let size = job.number(attribute::SIZE_BYTES);
    File { name, database: None, entity: Some(id), role: None, size, on }
}

/// Returns the role of a file: from its attribute, otherwise from its database or name.
#[must_use]
pub(super) fn role_of(entity: &Entity, database: Option<&Entity>) -> Option<Role> {
    let said = entity.attributes.get(attribute::ROLE).map(|role| words(role).to_ascii_lowercase());
    let is_tempdb = database.is_some_and(|database| database.name.eq_ignore_ascii_case("tempdb"));
    match said.as_deref() {
        _ if is_tempdb => Some(Role::Tempdb),
        Some("data" | "rows") => Some(Role::Data),
        Some("log") => Some(Role::Log),
        Some("tempdb") => Some(Role::Tempdb),
        Some("backup") => Some(Role::Backup),
        _ => role_by_name(&entity.name),
    }
}

/// Derives the role from a file name.
#[must_use]
fn role_by_name(name: &str) -> Option<Role> {
    let lower = name.to_ascii_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| lower.ends_with(end));
    if lower.starts_with("tempdb") || lower.starts_with("tempdev") {
        Some(Role::Tempdb)
    } else if ends(&[".ldf", "_log", " log"]) {
        Some(Role::Log)
    } else if ends(&[".mdf", ".ndf", "_data"]) {
        Some(Role::Data)
    } else {
        None
    }
}

/// Returns an attribute as text.
#[must_use]
pub(super) fn words(attribute: &Attribute) -> String {
    match attribute {
        Attribute::Text(text) => text.clone(),
        Attribute::Number(number) => number.to_string(),
    }
}
