//! The layout that a backup is planned on: its sources at their machine, and room for targets.

use crate::error::PlanError;
use crate::verify::without_bursts;
use weir_catalog::{Catalog, Edition, HostSize};
use weir_core::Place as Where;
use weir_layout::file::{HostKeys, LatencyKeys, VolumeKeys};
use weir_layout::files::Place;
use weir_layout::{Host, Layout, LayoutText, Role};
use weir_units::{Bytes, Span};

/// The text of a layout that has the sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Its name in messages.
    pub name: String,
    /// The layout.
    pub text: String,
    /// True if the source in it is assumed, not given.
    pub is_assumed: bool,
}

/// The name of the assumed source.
pub const ASSUMED: &str = "data";

impl Base {
    /// Returns a machine with a source that has no limits of its own; the machine's limits still
    /// apply.
    #[must_use]
    pub fn assumed(edition: &Edition, host: &HostSize, size: Bytes) -> Self {
        let gib = size.get().div_ceil(1 << 30).max(1);
        let mut text = LayoutText::new(edition.name());
        text.host(&HostKeys { size: Some(host.qualified()), ..HostKeys::default() });
        text.volume(&VolumeKeys {
            name: Some(ASSUMED.to_owned()),
            size: Some(Bytes::gib(gib)),
            unlimited: true,
            ..VolumeKeys::default()
        });
        let text = text.finish();
        Self { name: "the plan's layout".to_owned(), text, is_assumed: true }
    }
}

/// A parsed base.
#[derive(Debug)]
pub struct Ground<'a> {
    catalog: &'a Catalog,
    base: &'a Base,
    latency: Option<Span>,
    /// The layout without targets and without bursts.
    pub(super) layout: Layout,
    /// The prefix of target names.
    prefix: String,
    /// The edition of the layout.
    pub(super) edition: &'a Edition,
}

impl<'a> Ground<'a> {
    /// Reads a base.
    ///
    /// # Errors
    ///
    /// [`PlanError`] for an invalid layout, or one to which no disks can be added.
    pub fn new(
        base: &'a Base,
        edition: &'a Edition,
        catalog: &'a Catalog,
        latency: Option<Span>,
    ) -> Result<Self, PlanError> {
        let layout = read(&base.name, &base.text, catalog)?;
        let refused = |reason: &str| Err(PlanError::need(base.name.clone(), reason));
        match &layout.hosts[..] {
            [host] if host.instance.is_some() => {
                return refused(
                    "is a managed instance, which has no disks and backs up to URL only; give the \
                     layout of a machine",
                );
            }
            [_] => {}
            _ => return refused("has several hosts; give a layout with the one that is backed up"),
        }
        let places = layout.places();
        let is_free = |prefix: &str| {
            let name = |name: &str| !name.starts_with(prefix);
            places.iter().all(|place| name(&place.name))
                && layout.hosts[0].volumes.iter().all(|volume| name(&volume.name))
        };
        let names = ["backup", "backup-target", "weir-backup-target"];
        let prefix = names
            .into_iter()
            .find(|own| is_free(&format!("{own}-")))
            .unwrap_or("weir-planned-backup-target")
            .to_owned();
        Ok(Self { catalog, base, latency, layout, prefix, edition })
    }

    /// Returns the machine.
    pub(super) fn host(&self) -> &Host {
        &self.layout.hosts[0]
    }

    /// Returns the size of the machine in the edition, if it has one there.
    pub(super) fn size(&self) -> Option<&'a HostSize> {
        self.edition.host(&self.host().qualified_size()?).ok()
    }

    /// Returns how many more disks can be attached, if the edition says so.
    pub(super) fn free(&self) -> Option<u64> {
        let most = u64::from(self.edition.most_data_disks(self.size()?)?);
        let volumes = self.host().volumes.iter();
        let there = volumes.filter(|own| own.spec.place == Where::Remote).count() as u64;
        Some(most.saturating_sub(there))
    }

    /// Returns the name of a target, counted from 1.
    pub(super) fn target(&self, at: u64) -> String {
        format!("{}-{at}", self.prefix)
    }

    /// Writes the layout with `count` disks that have these keys.
    pub(super) fn text(&self, keys: &VolumeKeys, count: u64) -> String {
        let mut text = LayoutText::after(&self.base.text);
        for at in 1..=count {
            let keys = VolumeKeys { name: Some(self.target(at)), ..keys.clone() };
            let latency = self.latency.map(LatencyKeys::Fixed).or(keys.latency.clone());
            text.volume(&VolumeKeys { latency, ..keys });
        }
        text.finish()
    }

    /// Resolves the layout with `count` disks that have these keys, without bursts.
    pub(super) fn with(&self, keys: &VolumeKeys, count: u64) -> Result<Layout, PlanError> {
        read(&self.base.name, &self.text(keys, count), self.catalog)
    }
}

/// Reads a layout and removes its bursts: a plan must hold when credits are spent.
fn read(name: &str, text: &str, catalog: &Catalog) -> Result<Layout, PlanError> {
    let mut layout = Layout::parse(name, text, catalog)?;
    without_bursts(&mut layout, false);
    Ok(layout)
}

/// The sources of a backup for which none are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultSources {
    /// The names of the sources.
    pub names: Vec<String>,
    /// Targets of backups, which are not read.
    pub left_out: Vec<String>,
}

impl DefaultSources {
    /// Finds the files with one of these roles; in a layout without such files everything except for
    /// targets of backups.
    #[must_use]
    pub fn new(layout: &Layout, roles: &[Role]) -> Self {
        let places = layout.places();
        let name = |own: &Place| own.name.clone();
        let has_role = |own: &&Place| own.role.is_some_and(|role| roles.contains(&role));
        let files: Vec<String> = places.iter().filter(has_role).map(name).collect();
        if !files.is_empty() {
            return Self { names: files, left_out: Vec::new() };
        }
        let (targets, others): (Vec<&Place>, Vec<&Place>) =
            places.iter().partition(|own| layout.is_backup_target(own));
        match others.is_empty() {
            true => Self { names: places.iter().map(name).collect(), left_out: Vec::new() },
            false => Self {
                names: others.into_iter().map(name).collect(),
                left_out: targets.into_iter().map(name).collect(),
            },
        }
    }

    /// Says which sources are counted, and which are not.
    #[must_use]
    pub fn note(&self) -> String {
        let names = self.names.join(", ");
        match self.left_out.is_empty() {
            true => format!("sources: {names}; --sources names others"),
            false => format!(
                "sources: {names}; {} left out as backup targets by name or role; --sources names \
                 others",
                self.left_out.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DefaultSources;
    use weir_catalog::Catalog;
    use weir_layout::{Layout, Role};

    const VOLUMES: &str = "[[volume]]\nname = \"data\"\nsize = \"4 GiB\"\nunlimited = true\n\
        [[volume]]\nname = \"backup1\"\nsize = \"4 GiB\"\nunlimited = true\n";

    #[track_caller]
    fn check(text: &str, names: &[&str], left_out: &[&str]) {
        let layout = Layout::parse("l.toml", text, &Catalog::builtin()).expect("a layout");
        let own = DefaultSources::new(&layout, &[Role::Data, Role::Log]);
        assert_eq!(
            (&own.names[..], &own.left_out[..]),
            (&strings(names)[..], &strings(left_out)[..])
        );
    }

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn backup_targets_are_not_sources() {
        check(VOLUMES, &["data"], &["backup1"]);
        let file = |name: &str, role: &str, on: &str| {
            format!(
                "[[file]]\nname = \"{name}\"\nrole = \"{role}\"\nsize = \"1 GiB\"\non = \"{on}\"\n"
            )
        };
        let backup = file("full", "backup", "backup1");
        check(&format!("{VOLUMES}{backup}"), &["data"], &["full"]);
        let data = file("prices", "data", "data");
        check(&format!("{VOLUMES}{data}{backup}"), &["prices"], &[]);
        // A layout of nothing else has sources too.
        let only = "[[volume]]\nname = \"target\"\nsize = \"4 GiB\"\nunlimited = true\n";
        check(only, &["target"], &[]);
    }
}
