//! The sources of a backup.

use super::super::volumes::{is_for_backups, is_left_out};
use super::served::{Freeze, Served};
use super::targets::Targets;
use crate::cli::BackupRunArgs;
use crate::error::CliError;
use crate::input::read;
use std::path::Path;
use weir_backup::format::{BackupId, ManifestSource};
use weir_backup::run::Source;
use weir_backup::{Cancel, Export};
use weir_layout::Layout;
use weir_oltp::Description;
use weir_proto::Uri;
use weir_report::status::{Refused, VolumeStatus};

/// A source as it was found.
#[derive(Debug)]
struct Found {
    about: ManifestSource,
    uri: Uri,
    /// True for an export of the server, which freezes it.
    is_served: bool,
}

/// The sources of a backup.
#[derive(Debug, Default)]
pub(super) struct Sources {
    all: Vec<Found>,
    /// The description of the database that they hold.
    pub(super) oltp: Option<String>,
    database: Option<String>,
    pub(super) notes: Vec<String>,
    /// Volumes and stripes that are not served, and are neither targets nor for backups.
    pub(super) missing: Vec<Refused>,
}

impl Sources {
    /// Finds the sources that the arguments name.
    pub(super) fn find(
        args: &BackupRunArgs,
        targets: &Targets,
        served: Option<&Served>,
        layout: Option<&Layout>,
    ) -> Result<Self, CliError> {
        let mut own = Self::default();
        for text in &args.sources {
            if text.contains("://") {
                own.add_foreign(text, targets.cancel())?;
            } else if Path::new(text).extension().is_some_and(|end| end == "toml") {
                own.add_database(text, served, layout)?;
            } else {
                own.add_export(text, served, layout)?;
            }
        }
        if let Some(served) = served.filter(|_| args.sources.is_empty()) {
            own.add_all(targets, served, layout)?;
        }
        own.check(args, targets)?;
        Ok(own)
    }

    /// Adds every export of the server, except targets and volumes for backups.
    fn add_all(
        &mut self,
        targets: &Targets,
        served: &Served,
        layout: Option<&Layout>,
    ) -> Result<(), CliError> {
        let names: Vec<&str> = served.exports().map(|export| export.name.as_str()).collect();
        let mut left_out = Vec::new();
        for name in names.iter().filter(|name| !targets.are_export(name)) {
            let export = Export::new(*name, served.uri(name)?).with_cancel(targets.cancel());
            match is_left_out(&export, layout)? {
                true => left_out.push(*name),
                false => self.add_export(name, Some(served), layout)?,
            }
        }
        let is_source =
            |own: &&Refused| !targets.are_export(&own.name) && !is_for_backups(&own.name, layout);
        self.missing = served.before.refused.iter().filter(is_source).cloned().collect();
        let left_out = left_out.join(", ");
        if names.is_empty() {
            return Err(CliError::Refused(format!(
                "there is nothing to back up: the server has no exports{}",
                self.missing_words()
            )));
        }
        if self.all.is_empty() {
            let others = match left_out.is_empty() {
                true => String::new(),
                false => format!(" or for backups ({left_out})"),
            };
            return Err(CliError::Refused(format!(
                "there is nothing to back up: every export of the server is a target{others}{}; name \
                 the exports to back up",
                self.missing_words()
            )));
        }
        if !left_out.is_empty() {
            self.notes.push(format!(
                "left out as volumes for backups: {left_out}; name them to back them up too"
            ));
        }
        Ok(())
    }

    fn missing_words(&self) -> String {
        self.missing.iter().map(|own| format!("; {} is not served", own.name)).collect()
    }

    fn add_export(
        &mut self,
        name: &str,
        served: Option<&Served>,
        layout: Option<&Layout>,
    ) -> Result<(), CliError> {
        let Some(served) = served else {
            return Err(CliError::Refused(format!(
                "{name:?}: no server was found that exports it"
            )));
        };
        if self.all.iter().any(|own| own.is_served && own.about.name == name) {
            return Ok(());
        }
        let uri = served.uri(name)?;
        let size = served.exports().find(|own| own.name == name).map_or(0, |own| own.size_bytes);
        let volumes = served.before.hosts.iter().flat_map(|host| &host.volumes);
        let volume = volumes.into_iter().find(|volume| volume.name == name);
        let places = layout.map(Layout::places).unwrap_or_default();
        let role = places.iter().find(|place| place.name == name).and_then(|place| place.role);
        let about = ManifestSource {
            name: name.to_owned(),
            size,
            role: role.map(|role| role.name().to_owned()),
            tier: volume.and_then(|volume| volume.tier.clone()),
            attributes: volume.map(attributes).unwrap_or_default(),
            raw_bytes: 0,
        };
        self.all.push(Found { about, uri, is_served: true });
        Ok(())
    }

    fn add_foreign(&mut self, text: &str, cancel: &Cancel) -> Result<(), CliError> {
        let uri: Uri = text
            .parse()
            .map_err(|error: weir_proto::ProtoError| CliError::Refused(error.to_string()))?;
        let export = Export::new(text, uri.clone()).with_cancel(cancel);
        let size = export.open()?.size().get();
        let name = if uri.export.is_empty() { "default".to_owned() } else { uri.export.clone() };
        if self.all.iter().any(|own| own.about.name == name) {
            return Err(CliError::Refused(format!("two sources are called {name:?}")));
        }
        self.notes.push(format!(
            "{text} is another server's: it was not frozen, so stop its writers for a consistent \
             backup"
        ));
        let about = ManifestSource { name, size, ..ManifestSource::default() };
        self.all.push(Found { about, uri, is_served: false });
        Ok(())
    }

    /// Adds the exports on which the data files and the log of a database lie.
    fn add_database(
        &mut self,
        file: &str,
        served: Option<&Served>,
        layout: Option<&Layout>,
    ) -> Result<(), CliError> {
        let text = read(Path::new(file), "OLTP description")?;
        let description = Description::parse(file, &text)?;
        if self.oltp.is_some() {
            return Err(CliError::Refused(format!(
                "{file}: a backup has one database; back up each on its own"
            )));
        }
        for name in description.file_names() {
            let export = layout.and_then(|layout| export_of(layout, name));
            self.add_export(export.as_deref().unwrap_or(name), served, layout)?;
        }
        self.oltp = Some(text);
        self.database = stem(Path::new(file));
        Ok(())
    }

    fn check(&self, args: &BackupRunArgs, targets: &Targets) -> Result<(), CliError> {
        for own in &self.all {
            let name = &own.about.name;
            if (own.is_served && targets.are_export(name)) || targets.are_uri(&own.uri) {
                return Err(CliError::Refused(format!(
                    "{name} is a source and a target; write to another place"
                )));
            }
            if args.differential && !own.is_served {
                return Err(CliError::Refused(format!(
                    "{name} is another server's, which does not tell what changed; leave out \
                     --differential"
                )));
            }
        }
        if self.all.len() > usize::from(u16::MAX) {
            return Err(CliError::Refused("65,535 sources are the most".into()));
        }
        Ok(())
    }

    /// Returns the name of a backup that is given none.
    pub(super) fn name(&self, args: &BackupRunArgs) -> String {
        let layout = || args.layout.as_deref().and_then(stem);
        self.database.clone().or_else(layout).unwrap_or_else(|| "backup".to_owned())
    }

    /// Returns the names of all sources.
    pub(super) fn names(&self) -> Vec<String> {
        self.all.iter().map(|own| own.about.name.clone()).collect()
    }

    /// Returns the exports that are frozen.
    pub(super) fn frozen(&self) -> Vec<String> {
        self.all.iter().filter(|own| own.is_served).map(|own| own.about.name.clone()).collect()
    }

    /// Returns the names of the exports that the server has.
    pub(super) fn exports(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter(|own| own.is_served).map(|own| own.about.name.as_str())
    }

    /// Returns the full backup that a differential builds on: one for all sources.
    pub(super) fn base(
        &self,
        args: &BackupRunArgs,
        freeze: Option<&Freeze>,
    ) -> Result<Option<BackupId>, CliError> {
        if !args.differential {
            return Ok(None);
        }
        let mut base: Option<(&str, &str)> = None;
        for own in freeze.into_iter().flat_map(|freeze| &freeze.answer.exports) {
            let known = own.base.as_deref().filter(|_| own.tracked);
            let Some(known) = known else {
                return Err(CliError::Refused(format!(
                    "{}: its changes since a full backup are not known; take a full backup first",
                    own.name
                )));
            };
            match base {
                Some((first, id)) if id != known => {
                    return Err(CliError::Refused(format!(
                        "{first} and {} have different full backups, {id} and {known}; take a \
                         full backup of both",
                        own.name
                    )));
                }
                _ => base = Some((&own.name, known)),
            }
        }
        let parsed = base.map(|(_, id)| id.parse::<BackupId>()).transpose();
        parsed.map_err(|error| CliError::Refused(error.to_string()))
    }

    /// Returns the sources for the engine: frozen views, and others as they are.
    pub(super) fn open(
        &self,
        args: &BackupRunArgs,
        freeze: Option<&Freeze>,
        cancel: &Cancel,
    ) -> Vec<Source> {
        let open = |own: &Found| {
            let view = freeze.filter(|_| own.is_served).and_then(|freeze| {
                let mut views = freeze.answer.exports.iter();
                views.find(|view| view.name == own.about.name)
            });
            let mut about = own.about.clone();
            let mut uri = own.uri.clone();
            if let Some(view) = view {
                uri.export.clone_from(&view.frozen);
                about.size = view.size;
            }
            let changes = freeze.filter(|_| args.differential && own.is_served);
            let changes = changes.map(|freeze| freeze.changes(&own.about.name));
            let read_done = freeze.filter(|_| own.is_served);
            let read_done = read_done.map(|freeze| freeze.read_done(&own.about.name));
            Source::new(uri, about, changes).with_read_done(read_done).with_cancel(cancel)
        };
        self.all.iter().map(open).collect()
    }
}

fn stem(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_string_lossy().into_owned())
}

/// Returns the export on which a file of the layout lies.
fn export_of(layout: &Layout, file: &str) -> Option<String> {
    let places = layout.places();
    let place = places.iter().find(|place| place.name == file)?;
    let host = &layout.hosts[place.host];
    let export = host.exports.iter().find(|export| export.device == place.device)?;
    Some(export.name.clone())
}

fn attributes(volume: &VolumeStatus) -> std::collections::BTreeMap<String, String> {
    [("cache".to_owned(), volume.cache.clone())].into()
}
