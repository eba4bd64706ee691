//! Where the stripes go, and whether they have room.

use super::super::exports::{signature, warn};
use super::super::kept;
use super::served::Served;
use crate::cli::BackupRunArgs;
use crate::error::CliError;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use weir_backup::format::{Identity, Manifest, frame_room};
use weir_backup::place::Place;
use weir_backup::run::{Extent, undo};
use weir_backup::target::blob::{BlobKind, Container, MAX_BLOCKS, StripeBlob};
use weir_backup::target::file::{StripeFile, free};
use weir_backup::target::{PlaceSpec, StripeSink, raw};
use weir_backup::{BackupError, Cancel};
use weir_proto::Uri;
use weir_units::Bytes;

/// Room for the end of a stripe beyond the manifest as it is known before: the stripes' summaries.
const CLOSING: u64 = 64 << 10;

/// The targets of a backup.
#[derive(Debug)]
pub(super) struct Targets {
    specs: Vec<PlaceSpec>,
    /// The name of each, as the user gave it, without the signature of a URL.
    names: Vec<String>,
    /// The signature for containers, if it is in a file.
    sas: Option<String>,
    cancel: Cancel,
}

/// The room that stripes need.
#[derive(Debug)]
pub(super) struct Need {
    /// The most bytes that one stripe can have.
    stripe: u64,
    /// The most bytes of all stripes.
    all: u64,
    /// Whether stripes may stay shorter, because their contents are compressed.
    is_upper_bound: bool,
    stripes: u64,
    /// The most frames of a stripe.
    frames: u64,
    is_page_blob: bool,
}

impl Need {
    pub(super) fn new(
        args: &BackupRunArgs,
        extents: &[Extent],
        stripes: u64,
        manifest: &Manifest,
    ) -> Result<Self, CliError> {
        let sum = |of: fn(&Extent) -> u64| extents.iter().map(of).fold(0, u64::saturating_add);
        let (bytes, frames) = (sum(|own| own.bytes), sum(|own| own.frames));
        let transfer = args.max_transfer_size.get();
        let longest = frame_room(usize::try_from(transfer).unwrap_or(usize::MAX)) as u64;
        // Header and padding of a frame, and the tag of one that is encrypted.
        let around = longest - transfer + if args.encrypt { 512 } else { 0 };
        let end = manifest.encode()?.len() as u64 + CLOSING;
        let all = bytes.saturating_add(frames.saturating_mul(around));
        let stripe = frames.div_ceil(stripes).saturating_mul(longest + 512).min(all);
        Ok(Self {
            stripe: stripe.saturating_add(end),
            all: all.saturating_add(stripes.saturating_mul(end)),
            is_upper_bound: args.compress.is_some(),
            stripes,
            frames: frames.div_ceil(stripes),
            is_page_blob: args.page_blob,
        })
    }
}

impl Targets {
    pub(super) fn parse(args: &BackupRunArgs, cancel: &Cancel) -> Result<Self, CliError> {
        let mut specs: Vec<PlaceSpec> = Vec::new();
        let sas = signature(args.sas_file.as_deref())?;
        for text in &args.to {
            let spec = PlaceSpec::parse(text)?.with_sas(sas.as_deref()).with_cancel(cancel);
            warn(&spec);
            if specs.contains(&spec) {
                return Err(CliError::Refused(format!(
                    "{spec} is a target twice; give more stripes with --stripes"
                )));
            }
            if let PlaceSpec::Folder(path) = &spec {
                check_folder(path)?;
            }
            specs.push(spec);
        }
        let has_blobs = specs.iter().any(|spec| matches!(spec, PlaceSpec::Blobs(_)));
        if !has_blobs && (args.page_blob || args.sas_file.is_some()) {
            return Err(CliError::Refused(
                "--page-blob and --sas-file are for https:// targets, and there are none".into(),
            ));
        }
        let names = specs.iter().map(ToString::to_string).collect();
        Ok(Self { specs, names, sas, cancel: cancel.clone() })
    }

    pub(super) fn need_server(&self) -> bool {
        self.specs.iter().any(|spec| matches!(spec, PlaceSpec::Export(_)))
    }

    /// Finds the addresses of exports.
    pub(super) fn resolve(self, served: Option<&Served>) -> Result<Self, CliError> {
        let mut specs = Vec::new();
        for spec in self.specs {
            specs.push(spec.resolve(|name| find(name, served))?.with_cancel(&self.cancel));
        }
        Ok(Self { specs, ..self })
    }

    /// Returns what ends waits for the targets.
    pub(super) const fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns whether a target is the export of this name.
    pub(super) fn are_export(&self, name: &str) -> bool {
        self.specs.iter().zip(&self.names).any(|(spec, text)| {
            text == name && matches!(spec, PlaceSpec::Export(_) | PlaceSpec::Volume(_))
        })
    }

    /// Returns whether a target is the export at this address.
    pub(super) fn are_uri(&self, uri: &Uri) -> bool {
        let mut specs = self.specs.iter();
        specs.any(|spec| matches!(spec, PlaceSpec::Volume(export) if export.uri() == uri))
    }

    /// Returns the names of the targets that are exports of the server.
    pub(super) fn exports(&self) -> impl Iterator<Item = &str> {
        let own = self.specs.iter().zip(&self.names);
        own.filter(|(spec, text)| matches!(spec, PlaceSpec::Volume(_)) && !text.contains("://"))
            .map(|(_, text)| text.as_str())
    }

    /// Returns the target of each stripe.
    pub(super) fn names_of(&self, stripes: usize) -> Vec<String> {
        self.names.iter().cycle().take(stripes).cloned().collect()
    }

    /// Opens the targets, and other places, to read them.
    pub(super) fn open(
        &self,
        others: &[String],
        served: Option<&Served>,
    ) -> Result<Vec<Box<dyn Place>>, CliError> {
        let mut places =
            self.specs.iter().map(PlaceSpec::open).collect::<Result<Vec<_>, BackupError>>()?;
        for text in others {
            let spec = PlaceSpec::parse(text)?.with_sas(self.sas.as_deref());
            let spec = spec.resolve(|name| find(name, served))?;
            if !self.specs.contains(&spec) {
                warn(&spec);
                places.push(spec.with_cancel(&self.cancel).open()?);
            }
        }
        Ok(places)
    }

    /// Checks that each target can be reached and takes stripes. Nothing is written.
    pub(super) fn check(&self) -> Result<(), CliError> {
        for spec in &self.specs {
            match spec {
                PlaceSpec::Volume(export) => raw::check(export)?,
                PlaceSpec::Blobs(url) => Container::new(url.clone()).check()?,
                PlaceSpec::Folder(path) => check_folder(path)?,
                PlaceSpec::Export(_) => {}
            }
        }
        Ok(())
    }

    /// Makes the stripes, after the room for all of them was checked. Nothing is left if one fails.
    pub(super) fn create(
        &self,
        identity: &Identity,
        need: &Need,
    ) -> Result<Vec<Arc<dyn StripeSink>>, CliError> {
        self.check_room(need)?;
        let has_blocks =
            !need.is_page_blob && self.specs.iter().any(|spec| matches!(spec, PlaceSpec::Blobs(_)));
        if has_blocks && need.frames > MAX_BLOCKS - 2 {
            return Err(CliError::Refused(format!(
                "a stripe would have {} frames, and a block blob takes {MAX_BLOCKS} blocks; give \
                 more --stripes, a larger --max-transfer-size, or --page-blob",
                need.frames
            )));
        }
        let mut sinks: Vec<Option<Arc<dyn StripeSink>>> = vec![None; identity.stripes.into()];
        for (at, spec) in self.specs.iter().enumerate() {
            let own: Vec<u8> = (0..identity.stripes).skip(at).step_by(self.specs.len()).collect();
            match create(spec, identity, &own, need) {
                Ok(made) => {
                    for (stripe, sink) in own.iter().zip(made) {
                        sinks[usize::from(*stripe)] = Some(sink);
                    }
                }
                Err(error) => {
                    let made: Vec<_> = sinks.into_iter().flatten().collect();
                    return Err(undo(error, &made).into());
                }
            }
        }
        Ok(sinks.into_iter().flatten().collect())
    }

    /// Checks the room of folders, each file system once. Volumes reserve theirs.
    fn check_room(&self, need: &Need) -> Result<(), CliError> {
        if need.is_upper_bound {
            return Ok(());
        }
        let mut systems: Vec<(u64, &Path, u64)> = Vec::new();
        for (at, spec) in (0..).zip(&self.specs) {
            let PlaceSpec::Folder(path) = spec else { continue };
            let stripes = (need.stripes - at).div_ceil(self.specs.len() as u64);
            let bytes = need.stripe.saturating_mul(stripes).min(need.all);
            let device = std::fs::metadata(path).map(|about| about.dev()).unwrap_or_default();
            match systems.iter_mut().find(|(own, ..)| *own == device) {
                Some((.., needed)) => *needed = needed.saturating_add(bytes).min(need.all),
                None => systems.push((device, path, bytes)),
            }
        }
        for (_, path, needed) in systems {
            let free = free(path)?;
            if free < needed {
                return Err(CliError::Refused(format!(
                    "no room in {}: the backup needs {}, and {} are free; compress it, or give \
                     another target",
                    path.display(),
                    Bytes::new(needed),
                    Bytes::new(free)
                )));
            }
        }
        Ok(())
    }
}

/// Returns the address of an export of the server.
fn find(name: &str, served: Option<&Served>) -> Result<Uri, BackupError> {
    match served {
        Some(served) => served.uri(name).map_err(|error| match error {
            // A name without a slash is an export, unless there is a folder of that name.
            BackupError::Refused(why) => BackupError::Refused(format!(
                "{why}. For a folder write ./{name}, and make it first"
            )),
            other => other,
        }),
        None => Err(BackupError::Refused(format!("{name:?}: no server was found"))),
    }
}

fn create(
    spec: &PlaceSpec,
    identity: &Identity,
    stripes: &[u8],
    need: &Need,
) -> Result<Vec<Arc<dyn StripeSink>>, BackupError> {
    match spec {
        PlaceSpec::Folder(path) => each(stripes, |stripe| {
            Ok(Arc::new(StripeFile::create(path, &identity.file_name(stripe))?))
        }),
        PlaceSpec::Blobs(url) => each(stripes, |stripe| {
            let kind =
                if need.is_page_blob { BlobKind::Page(need.stripe) } else { BlobKind::Block };
            Ok(Arc::new(StripeBlob::create(url, &identity.file_name(stripe), kind)?))
        }),
        PlaceSpec::Volume(export) => {
            let room = raw::Room { stripe: need.stripe, may_be_less: need.is_upper_bound };
            let made = raw::reserve(export, identity, stripes, room)?;
            Ok(made.into_iter().map(|own| Arc::new(own) as Arc<dyn StripeSink>).collect())
        }
        PlaceSpec::Export(name) => {
            Err(BackupError::Refused(format!("{name:?}: no server was found that exports it")))
        }
    }
}

/// Makes stripes one after the other. Nothing is left if one fails.
fn each(
    stripes: &[u8],
    make: impl Fn(u8) -> Result<Arc<dyn StripeSink>, BackupError>,
) -> Result<Vec<Arc<dyn StripeSink>>, BackupError> {
    let mut made: Vec<Arc<dyn StripeSink>> = Vec::new();
    for stripe in stripes {
        match make(*stripe) {
            Ok(sink) => made.push(sink),
            Err(error) => return Err(undo(error, &made)),
        }
    }
    Ok(made)
}

/// Refuses a folder that does not exist, or in which a server keeps its data.
fn check_folder(path: &Path) -> Result<(), CliError> {
    let about = std::fs::metadata(path);
    if !about.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
        let reason = match about {
            Ok(_) => "it is not a folder; give the folder that is to hold the stripes".to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "there is no such folder; make it first".to_owned()
            }
            Err(error) => error.to_string(),
        };
        return Err(CliError::Refused(format!("cannot back up to {}: {reason}", path.display())));
    }
    kept::outside_of_data(path)
}
