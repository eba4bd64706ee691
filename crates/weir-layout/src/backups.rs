//! Volumes that backups are written to. By default no backup reads them.

use crate::file::Role;
use crate::files::Place;
use crate::layout::Layout;

impl Layout {
    /// Returns whether a file, volume or stripe is a target of backups: by the role of the file, or by
    /// the name of a volume without files.
    #[must_use]
    pub fn is_backup_target(&self, place: &Place) -> bool {
        place.role.map_or_else(|| is_backup_name(&place.name), |role| role == Role::Backup)
    }
}

/// Returns whether a name indicates a backup target: `backup`, `backup-2`, `backups`,
/// `target1`.
#[must_use]
pub fn is_backup_name(name: &str) -> bool {
    let end = name.find(|c: char| !c.is_alphabetic()).unwrap_or(name.len());
    let (word, rest) = name.split_at(end);
    let has_number_only = rest.chars().all(|c| c.is_ascii_digit() || c == '-' || c == '_');
    match word.to_ascii_lowercase().as_str() {
        "backup" | "backups" => true,
        "target" | "targets" => has_number_only,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_backup_name;

    #[test]
    fn a_name_says_whether_backups_are_written_there() {
        let check = |name: &str, expect: bool| assert_eq!(is_backup_name(name), expect, "{name}");
        check("backup", true);
        check("Backup-2", true);
        check("backups", true);
        check("backup_sales", true);
        check("target", true);
        check("target12", true);
        check("target-prices", false);
        check("data", false);
        check("backupdata", false);
    }
}
