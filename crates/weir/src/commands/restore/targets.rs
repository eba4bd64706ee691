//! The targets of a restore: where each source of the backup goes.

use crate::cli::RestoreArgs;
use crate::commands::backup::exports::{Exports, Own};
use crate::commands::backup::kept::outside_of_data;
use crate::error::CliError;
use crate::input::{read_layout, say_notes};
use std::collections::BTreeSet;
use std::path::Path;
use weir_backup::format::Manifest;
use weir_backup::restore::Target;
use weir_backup::restore::image::{ImageTarget, check_room};
use weir_backup::restore::nbd::NbdTarget;
use weir_backup::target::spec::shown;
use weir_backup::{Cancel, Export};
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_proto::Uri;

/// The targets of a restore, with whatever must live as long as they do.
pub(super) struct Goal {
    /// Each with the index of its source.
    targets: Vec<(usize, Box<dyn Target>)>,
    sources: usize,
    exports: Option<Exports>,
    scratch: Option<tempfile::TempDir>,
    /// Ends waits for the targets.
    cancel: Cancel,
}

impl Goal {
    /// Finds the target of each source. Nothing on them is changed. `exports` is the server of
    /// the places, if they have one: it is the server of the targets too.
    pub(super) fn open(
        args: &RestoreArgs,
        catalog: &Catalog,
        manifests: &[&Manifest],
        (exports, cancel): (Option<Exports>, &Cancel),
    ) -> Result<Self, CliError> {
        let Some(manifest) = manifests.last().copied() else {
            return Err(CliError::Refused("the backup is incomplete".to_owned()));
        };
        let wanted = wanted(args, manifest)?;
        let sources = manifest.sources.len();
        let cancel = cancel.clone();
        let mut goal = Self { targets: Vec::new(), sources, exports, scratch: None, cancel };
        if let Some(folder) = &args.image {
            outside_of_data(folder)?;
            if !args.force {
                check_room(folder, image_bytes(&wanted, manifests))?;
            }
            goal.images(folder, &wanted, manifest, args.force)?;
        } else if let Some(control) = &args.control {
            if goal.exports.is_none() {
                goal.exports = Some(Exports::served(control)?);
            }
            goal.connect(&wanted)?;
        } else if let Some(to) = &args.to {
            goal.named(args, catalog, to, &wanted)?;
        } else if args.prove {
            goal.scratch(args, catalog, &wanted, manifests)?;
        } else if wanted.iter().all(|(_, target)| is_uri(target)) {
            goal.connect(&wanted)?;
        } else {
            return Err(CliError::Refused(
                "say where to restore to: --to LAYOUT --data DIR, --to nbd://HOST/NAME, --control \
                 SOCKET, --image DIR, or --prove to try it out"
                    .to_owned(),
            ));
        }
        goal.check(manifest)?;
        Ok(goal)
    }

    fn named(
        &mut self,
        args: &RestoreArgs,
        catalog: &Catalog,
        to: &str,
        wanted: &[(usize, String)],
    ) -> Result<(), CliError> {
        if is_uri(to) {
            let [(source, _)] = wanted else {
                return Err(CliError::Refused(format!(
                    "--to {to} is one export, and the backup has {} sources; choose one with \
                     --only, or give each its export with --map SOURCE=URI",
                    wanted.len()
                )));
            };
            return self.connect(&[(*source, to.to_owned())]);
        }
        let data = data_of(args, to)?;
        // The folder itself may be a link into another.
        let folder = data.canonicalize().unwrap_or_else(|_| data.to_owned());
        if let Some(parent) = folder.parent() {
            outside_of_data(parent)?;
        }
        if self.exports.is_none() {
            let layout = read_layout(Path::new(to), catalog)?;
            say_notes(&layout);
            self.start(layout, catalog, data, wanted, to)?;
        }
        self.connect(wanted)
    }

    /// Serves a layout in this process, if it has the targets: nothing is made for one that has
    /// not.
    fn start(
        &mut self,
        layout: Layout,
        catalog: &Catalog,
        data: &Path,
        wanted: &[(usize, String)],
        place: &str,
    ) -> Result<(), CliError> {
        let hosts = layout.hosts.iter();
        let known: BTreeSet<&str> =
            hosts.flat_map(|host| host.exports.iter().map(|own| own.name.as_str())).collect();
        let mut names = wanted.iter().map(|(_, name)| name.as_str()).filter(|name| !is_uri(name));
        if let Some(name) = names.find(|name| !known.contains(name)) {
            let all: Vec<&str> = known.into_iter().collect();
            return Err(CliError::Refused(format!(
                "{place} has no export {name:?} to restore to; it has {}; give the source another \
                 target with --map {name}=TARGET, or leave it out with --only",
                all.join(", ")
            )));
        }
        self.exports = Some(Exports::start(layout, data, catalog, place.to_owned())?);
        Ok(())
    }

    /// Connects to the targets: exports by name, or addresses.
    fn connect(&mut self, wanted: &[(usize, String)]) -> Result<(), CliError> {
        for (source, name) in wanted {
            let uri = match &self.exports {
                Some(exports) if !is_uri(name) => exports.find(name)?,
                _ => name
                    .parse::<Uri>()
                    .map_err(|error| CliError::Refused(format!("{name}: {error}")))?,
            };
            let export = Export::new(name, uri).with_cancel(&self.cancel);
            self.targets.push((*source, Box::new(NbdTarget::connect(export)?)));
        }
        Ok(())
    }

    fn images(
        &mut self,
        folder: &Path,
        wanted: &[(usize, String)],
        manifest: &Manifest,
        is_replaced: bool,
    ) -> Result<(), CliError> {
        for (source, name) in wanted {
            let size = manifest.sources[*source].size;
            let image = ImageTarget::create(folder, name, size, is_replaced)?;
            self.targets.push((*source, Box::new(image)));
        }
        Ok(())
    }

    /// Makes volumes that are removed at the end: of the backup's layout, if a database is to
    /// run on them, otherwise images.
    fn scratch(
        &mut self,
        args: &RestoreArgs,
        catalog: &Catalog,
        wanted: &[(usize, String)],
        manifests: &[&Manifest],
    ) -> Result<(), CliError> {
        let Some(manifest) = manifests.last().copied() else { return Ok(()) };
        if let Some(folder) = args.scratch.as_deref().filter(|folder| !folder.is_dir()) {
            return Err(CliError::Refused(format!(
                "--scratch {}: there is no such folder; make it first",
                folder.display()
            )));
        }
        args.scratch.as_deref().map_or(Ok(()), outside_of_data)?;
        let made = match &args.scratch {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        };
        let folder = made.map_err(|source| CliError::Folder {
            context: "making a folder for scratch volumes".to_owned(),
            source,
        })?;
        if args.oltp.is_none() {
            if !args.force {
                check_room(folder.path(), image_bytes(wanted, manifests))?;
            }
            self.images(folder.path(), wanted, manifest, false)?;
        } else {
            let Some(text) = &manifest.layout else {
                return Err(CliError::Refused(
                    "the backup has no layout to recover the database on; give one with --to \
                     LAYOUT --data DIR"
                        .to_owned(),
                ));
            };
            let place = "the backup's layout";
            let layout = Layout::parse(place, text, catalog)?;
            self.start(layout, catalog, &folder.path().join("data"), wanted, place)?;
            self.connect(wanted)?;
        }
        self.scratch = Some(folder);
        Ok(())
    }

    /// Checks that each target has room, and is the target of one source.
    fn check(&self, manifest: &Manifest) -> Result<(), CliError> {
        let mut seen = BTreeSet::new();
        for (source, target) in &self.targets {
            let source = &manifest.sources[*source];
            if target.size() < source.size {
                return Err(CliError::Refused(format!(
                    "{} has {} bytes, and {} has {}: choose a larger target",
                    target.name(),
                    target.size(),
                    source.name,
                    source.size
                )));
            }
            if !seen.insert(target.name()) {
                return Err(CliError::Refused(format!(
                    "two sources go to {}; give each a target of its own with --map",
                    target.name()
                )));
            }
        }
        Ok(())
    }

    pub(super) fn targets(&self) -> impl Iterator<Item = &dyn Target> {
        self.targets.iter().map(|(_, target)| target.as_ref())
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, &dyn Target)> {
        self.targets.iter().map(|(source, target)| (*source, target.as_ref()))
    }

    /// Returns the target of each source.
    pub(super) fn by_source(&self) -> Vec<Option<&dyn Target>> {
        let mut all: Vec<Option<&dyn Target>> = vec![None; self.sources];
        for (source, target) in self.pairs() {
            all[source] = Some(target);
        }
        all
    }

    /// Returns whether the targets outlive the command.
    pub(super) const fn is_kept(&self) -> bool {
        self.scratch.is_none()
    }

    /// Returns the server in this process that has the targets.
    pub(super) fn own(&self) -> Option<&Own> {
        self.exports.as_ref().and_then(Exports::own)
    }

    /// Ends whatever serves the targets, in order.
    pub(super) fn close(self) -> Result<(), CliError> {
        let Self { targets, exports, scratch, .. } = self;
        drop(targets);
        let closed = exports.map_or(Ok(()), Exports::close);
        drop(scratch);
        closed
    }
}

/// Returns the sources to restore: the index and the name of the target.
fn wanted(args: &RestoreArgs, manifest: &Manifest) -> Result<Vec<(usize, String)>, CliError> {
    let names: Vec<&str> = manifest.sources.iter().map(|source| source.name.as_str()).collect();
    let asked = args.map.iter().map(|(source, _)| source).chain(&args.only);
    for name in asked {
        if !names.contains(&name.as_str()) {
            return Err(CliError::Refused(format!(
                "the backup has no source {name:?}; it has {}",
                names.join(", ")
            )));
        }
    }
    let is_wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|own| own == name);
    let target = |name: &str| {
        let mapped = args.map.iter().find(|(source, _)| source == name);
        mapped.map_or(name, |(_, target)| target).to_owned()
    };
    let all = names.iter().enumerate().filter(|(_, name)| is_wanted(name));
    let all: Vec<(usize, String)> = all.map(|(source, name)| (source, target(name))).collect();
    let mut seen = BTreeSet::new();
    if let Some((_, twice)) = all.iter().find(|(_, target)| !seen.insert(target)) {
        return Err(CliError::Refused(format!(
            "two sources go to {twice}; give each a target of its own with --map SOURCE=TARGET, or leave \
             one out with --only"
        )));
    }
    Ok(all)
}

/// Returns the bytes that images of the wanted sources take at least: of a source, the larger of what
/// the full backup has and what the differential on it has.
fn image_bytes(wanted: &[(usize, String)], manifests: &[&Manifest]) -> u64 {
    let Some(newest) = manifests.last() else { return 0 };
    let bytes = |(source, _): &(usize, String)| {
        let own = &newest.sources[*source];
        let same = manifests.iter().flat_map(|manifest| &manifest.sources);
        let most = same.filter(|other| other.name == own.name).map(|other| other.raw_bytes).max();
        most.unwrap_or(0).min(own.size)
    };
    wanted.iter().map(bytes).fold(0, u64::saturating_add)
}

/// Refuses targets of which no restore is possible.
pub(super) fn check_target(args: &RestoreArgs) -> Result<(), CliError> {
    let mapped = args.map.iter().map(|(_, target)| target);
    let mut all = args.to.iter().chain(mapped);
    let Some(wrong) = all.find(|own| own.contains("://") && !is_uri(own)) else { return Ok(()) };
    let name = shown(wrong);
    let is_blob = name.starts_with("https://") || name.starts_with("http://");
    let why =
        if is_blob { "a blob is no target of a restore" } else { "it is no target of a restore" };
    Err(CliError::Refused(format!(
        "{name}: {why}; restore to the volumes of a layout (--to LAYOUT --data DIR), to a running server \
         (--control SOCKET; page blobs of weir serve are exports of it), to an NBD export (--to \
         nbd://HOST/NAME), or to raw images (--image DIR)"
    )))
}

pub(super) fn is_uri(text: &str) -> bool {
    ["nbd://", "nbd+unix://", "nbds://", "nbds+unix://"].iter().any(|own| text.starts_with(own))
}

/// Returns the data folder of a layout.
pub(super) fn data_of<'a>(args: &'a RestoreArgs, to: &str) -> Result<&'a Path, CliError> {
    args.data.as_deref().ok_or_else(|| {
        CliError::Refused(format!(
            "--to {to} is a layout: give the folder for its data with --data DIR, or restore to a \
             server that runs with --control SOCKET"
        ))
    })
}
