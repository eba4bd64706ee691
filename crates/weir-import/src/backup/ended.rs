//! A finished backup or restore, and its conversion to a sample.

use crate::sheet::{At, Sheet};
use std::collections::HashMap;
use weir_observe::attribute;
use weir_observe::header::{Attribute, EntityId, EntityKind};
use weir_observe::metric as m;

/// Nanoseconds in a second.
pub(super) const SECOND: f64 = 1e9;

/// The most targets of a backup that are kept.
const MOST_TARGETS: usize = 64;

/// Attributes of a backup by name.
pub(super) type Facts = Vec<(&'static str, Attribute)>;

/// A finished backup or restore.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Ended {
    /// Tool that made it.
    pub(super) tool: &'static str,
    /// `full`, `differential`, `incremental`, `log`, `file`.
    pub(super) what: &'static str,
    pub(super) is_restore: bool,
    pub(super) host: Option<String>,
    pub(super) database: Option<String>,
    /// Bytes of the database in it.
    pub(super) bytes: Option<f64>,
    /// Bytes written to all targets.
    pub(super) written: Option<f64>,
    pub(super) seconds: Option<f64>,
    /// End of the backup, in nanoseconds since 1970.
    pub(super) ended: Option<i64>,
    /// Folders, URLs or devices with its parts.
    pub(super) targets: Vec<String>,
    pub(super) facts: Facts,
}

impl Ended {
    /// Sets a number, if it is known and not set already.
    pub(super) fn number(&mut self, name: &'static str, value: Option<u64>) {
        let is_new = !self.facts.iter().any(|(own, _)| *own == name);
        self.facts.extend(value.filter(|_| is_new).map(|value| (name, value.into())));
    }

    /// Sets a text, if it is known and not set already.
    pub(super) fn text(&mut self, name: &'static str, value: Option<&str>) {
        let is_new = !self.facts.iter().any(|(own, _)| *own == name);
        self.facts.extend(value.filter(|_| is_new).map(|value| (name, value.into())));
    }

    /// Adds the location of a target: the folder of a file, or a URL without its last part and its
    /// query.
    pub(super) fn target(&mut self, path: &str) {
        let place = place_of(path);
        if !place.is_empty() && !self.targets.contains(&place) && self.targets.len() < MOST_TARGETS
        {
            self.targets.push(place);
        }
    }

    /// Returns the name of its entity.
    fn name(&self) -> String {
        let of = self.database.as_deref().unwrap_or(self.tool);
        match (self.is_restore, self.what) {
            (false, what) => format!("{of} {what}"),
            (true, "full") => format!("{of} restore"),
            (true, what) => format!("{of} {what} restore"),
        }
    }
}

/// Returns the location of a target: the folder of a file, or the container of a blob.
fn place_of(path: &str) -> String {
    let path = path.trim();
    // A query may contain a signature, which must not be stored.
    let path = path.split('?').next().unwrap_or_default();
    match path.rsplit_once(['\\', '/']) {
        Some((folder, _)) if folder.ends_with(':') => format!("{folder}\\"),
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => path.to_owned(),
    }
}

/// A backup with its attributes.
type Known = (Facts, EntityId);

/// A writer of backups into a sheet.
///
/// Backups of a database with the same settings are samples of one entity. Another number of
/// stripes or another transfer size makes another entity.
#[derive(Debug, Default)]
pub(super) struct Backups {
    known: HashMap<(String, Option<EntityId>), Vec<Known>>,
    /// True if the first backup has a time.
    is_dated: Option<bool>,
    /// End of the last backup.
    end: i64,
}

impl Backups {
    /// Writes a backup into the current sample.
    pub(super) fn put(&mut self, sheet: &mut Sheet, own: &Ended) -> At {
        let host = own.host.as_deref();
        let host = host.map(|name| sheet.entity(EntityKind::Host, name, None));
        for target in &own.targets {
            sheet.entity(EntityKind::BackupTarget, target, host);
        }
        let id = self.entity(sheet, host, own);
        let nanos = own.seconds.filter(|seconds| *seconds > 0.0).map(|own| own * SECOND);
        for (measure, value) in [
            (&m::BACKUP_BYTES, own.bytes),
            (&m::BACKUP_WRITTEN_BYTES, own.written),
            (&m::INTERVAL_NS, nanos),
        ] {
            if let Some(value) = value {
                sheet.set(id, measure, value);
            }
        }
        let nanos = m::INTERVAL_NS.stored(nanos.unwrap_or(0.0)).unwrap_or(0).max(0);
        if sheet.held.is_none() && nanos > 0 {
            sheet.held = Some(nanos);
        }
        self.end(own.ended, nanos)
    }

    fn entity(&mut self, sheet: &mut Sheet, host: Option<EntityId>, own: &Ended) -> EntityId {
        let mut facts = own.facts.clone();
        facts
            .push((attribute::OPERATION, if own.is_restore { "restore" } else { "backup" }.into()));
        facts.push((attribute::BACKUP_TYPE, own.what.into()));
        facts.push((attribute::TOOL, own.tool.into()));
        facts.extend(own.database.as_deref().map(|name| (attribute::DATABASE, name.into())));
        if !own.targets.is_empty() {
            facts.push((attribute::TARGETS, own.targets.join("; ").as_str().into()));
        }
        facts.sort_by_key(|(name, _)| *name);
        let name = own.name();
        let same = self.known.entry((name.clone(), host)).or_default();
        if let Some((_, id)) = same.iter().find(|(known, _)| *known == facts) {
            return *id;
        }
        let name = match same.len() {
            0 => name,
            others => format!("{name} #{}", others + 1),
        };
        let id = sheet.entity(EntityKind::Backup, &name, host);
        for (what, value) in &facts {
            sheet.attribute(id, what, value.clone());
        }
        same.push((facts, id));
        id
    }

    /// Returns the end of a backup: its own, or one after the previous backup.
    fn end(&mut self, ended: Option<i64>, nanos: i64) -> At {
        let is_dated = *self.is_dated.get_or_insert(ended.is_some());
        // Two samples never have the same time, or one of them would be lost.
        let next = self.end.saturating_add(nanos.max(1));
        match ended.filter(|_| is_dated) {
            Some(at) => self.end = at.max(self.end.saturating_add(1)),
            None => self.end = next,
        }
        if is_dated { At::Wall(self.end) } else { At::Since(self.end.unsigned_abs()) }
    }
}

/// Returns the number at the beginning of a text.
pub(super) fn leading(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Returns the text between two marks.
pub(super) fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split_once(behind).map(|(own, _)| own)
}

/// Converts a count to a float for arithmetic.
#[expect(clippy::cast_precision_loss, reason = "bytes and pages of a log are far below 2^53")]
pub(super) const fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_targets() {
        let check = |path: &str, expect: &str| assert_eq!(place_of(path), expect, "{path}");
        check(r"F:\backup\sales_1.bak", r"F:\backup");
        check(r"F:\1.bak", r"F:\");
        check("/var/opt/1.bak", "/var/opt");
        check("https://a.blob.core.windows.net/c/1.bak?sig=x", "https://a.blob.core.windows.net/c");
        check("NUL", "NUL");
        check("", "");
    }

    #[test]
    fn consecutive_backups() {
        let mut backups = Backups::default();
        assert_eq!(backups.end(None, 5), At::Since(5));
        assert_eq!(backups.end(Some(7), 5), At::Since(10));
        let mut backups = Backups::default();
        assert_eq!(backups.end(Some(1000), 5), At::Wall(1000));
        assert_eq!(backups.end(Some(1000), 5), At::Wall(1001));
        assert_eq!(backups.end(None, 5), At::Wall(1006));
    }
}
