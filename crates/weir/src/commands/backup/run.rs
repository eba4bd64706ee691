//! `weir backup run`: exports into stripes.
//!
//! | module | holds |
//! |---|---|
//! | `served` | the server of the sources, its freeze, its counters |
//! | `sources` | what is backed up |
//! | `targets` | where the stripes go, and whether they have room |
//! | `base` | the full backup that a differential builds on |
//! | `after` | what follows a complete backup |
//! | `limits` | the limit that binds, by the server's counters |

mod after;
mod base;
mod limits;
mod served;
mod sources;
mod targets;

use super::kept;
use crate::cli::{BackupRunArgs, KeyArgs};
use crate::commands::page;
use crate::error::{CliError, FAILED, NO};
use crate::output;
use crate::progress::Moving;
use crate::signals::Signals;
use limits::Limits;
use served::{Freeze, Served};
use sources::Sources;
use std::sync::Arc;
use targets::Targets;
use weir_backup::BackupError;
use weir_backup::format::{BackupId, Identity, Kind, Manifest};
use weir_backup::key::{Key, Keys};
use weir_backup::run::{Extent, Finished, Job, Progress, Source};
use weir_backup::target::StripeSink;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_pipeline::Buffers;
use weir_pipeline::buffers::{LARGEST_TRANSFER, MIN_TRANSFER};
use weir_report::backup_run::{BackupRunReport, BackupStripeReport};
use weir_server::control::Purpose;
use weir_units::Span;

/// The most stripes of a backup.
const MAX_STRIPES: u64 = 64;
/// Interval of reading the server's counters.
const READING: Span = Span::from_secs(1);

pub(super) fn run(args: &BackupRunArgs, catalog: &Catalog) -> Result<u8, CliError> {
    check(args)?;
    page::check(args.html.as_deref(), args.layout.as_deref())?;
    let signals = Signals::catch()?;
    let targets = Targets::parse(args, &signals.cancel())?;
    let keys = args.encrypt.then(|| key_of(args)).transpose()?;
    let (served, layout) = serve(args, &targets, catalog)?;
    let done = back_up(args, (targets, keys), (served.as_ref(), layout.as_ref()), &signals);
    let stopped = served.map_or(Ok(()), Served::stop);
    match done {
        Err(CliError::Stripes(error)) if error.is_interrupted() => {
            stopped?;
            output::talk(&match error {
                BackupError::Untidy { left, .. } => {
                    format!("weir: interrupted; no backup was made, and not all is removed: {left}")
                }
                _ => "weir: interrupted; no backup was made, and what was written is removed"
                    .to_owned(),
            });
            Ok(signals.code().unwrap_or(FAILED))
        }
        Err(error) => Err(error),
        Ok((mut report, code)) => {
            if let Err(error) = stopped {
                let what = "the server of the sources did not end in order";
                after::warn(&mut report, &format!("{what}: {error}"));
            }
            let priced = layout.as_ref().map(|own| (own, catalog));
            page::write_run(args.html.as_deref(), &report, priced, None)?;
            output::print(&report, args.output.format())?;
            Ok(code)
        }
    }
}

fn key_of(args: &BackupRunArgs) -> Result<Keys, CliError> {
    kept::keys(&KeyArgs { key_file: args.key_file.clone() })?.ok_or_else(|| {
        CliError::Refused(
            "--encrypt needs a key: give --key-file FILE, or set WEIR_BACKUP_KEY; weir backup key \
             makes one"
                .to_owned(),
        )
    })
}

fn check(args: &BackupRunArgs) -> Result<(), CliError> {
    let refused = |text: String| Err(CliError::Refused(text));
    if let Some(stripes) = args.stripes.filter(|own| !(1..=MAX_STRIPES).contains(own)) {
        return refused(format!("--stripes {stripes}: a backup has 1 to {MAX_STRIPES} stripes"));
    }
    let stripes = args.stripes.unwrap_or(args.to.len() as u64);
    if stripes > MAX_STRIPES {
        return refused(format!(
            "{stripes} targets: a backup has 1 to {MAX_STRIPES} stripes; give fewer targets"
        ));
    }
    if stripes < args.to.len() as u64 {
        let unused =
            weir_backup::target::spec::shown(&args.to[usize::try_from(stripes).unwrap_or(0)]);
        return refused(format!(
            "{unused} gets none of the {stripes} stripes; give more stripes or fewer targets"
        ));
    }
    let transfer = args.max_transfer_size;
    if !(MIN_TRANSFER..=LARGEST_TRANSFER).contains(&transfer)
        || !transfer.get().is_multiple_of(MIN_TRANSFER.get())
    {
        return refused(format!(
            "--max-transfer-size {transfer}: give a multiple of {MIN_TRANSFER} up to \
             {LARGEST_TRANSFER}"
        ));
    }
    let block = args.block_size;
    if !(512..=1 << 20).contains(&block.get()) || !block.get().is_power_of_two() {
        return refused(format!("--block-size {block}: give a power of two, 512 B to 1 MiB"));
    }
    let level = args.sources.iter().find(|own| own.parse::<u32>().is_ok());
    if let Some(level) = level.filter(|_| args.compress.is_some()) {
        return refused(format!("{level} is taken as a source; write --compress={level}"));
    }
    if args.checksum {
        output::talk("weir: note: checksums are always written");
    }
    Ok(())
}

/// Finds the server of the sources and targets, if any of them needs one.
fn serve(
    args: &BackupRunArgs,
    targets: &Targets,
    catalog: &Catalog,
) -> Result<(Option<Served>, Option<Layout>), CliError> {
    if let (Some(layout), Some(data)) = (&args.layout, &args.data) {
        let (served, layout) = Served::start(layout, data, catalog)?;
        return Ok((Some(served), Some(layout)));
    }
    let layout = args.layout.as_deref().map(|path| crate::input::read_layout(path, catalog));
    let layout = layout.transpose()?;
    let needs = args.sources.is_empty()
        || args.sources.iter().any(|own| !own.contains("://"))
        || targets.need_server();
    let served = needs.then(|| Served::connect(&args.control.control)).transpose()?;
    Ok((served, layout))
}

/// Makes the backup and checks it; returns its report and the exit code.
fn back_up(
    args: &BackupRunArgs,
    (targets, keys): (Targets, Option<Keys>),
    (served, layout): (Option<&Served>, Option<&Layout>),
    signals: &Signals,
) -> Result<(BackupRunReport, u8), CliError> {
    let targets = targets.resolve(served)?;
    let sources = Sources::find(args, &targets, served, layout)?;
    let created_unix_ms = weir_wall::calendar() / 1_000_000;
    let id = BackupId::new(created_unix_ms).map_err(BackupError::from)?;
    let (encryption, key) = match &keys {
        Some(keys) => keys.fresh().map(|(encryption, key)| (Some(encryption), Some(key)))?,
        None => (None, None),
    };
    let stripes = args.stripes.unwrap_or(args.to.len() as u64);
    let identity = Identity {
        id,
        name: args.name.clone().unwrap_or_else(|| sources.name(args)),
        kind: Kind::Full,
        base: None,
        stripes: u8::try_from(stripes).unwrap_or(u8::MAX),
        created_unix_ms,
        encryption,
    };
    // Whatever can be wrong without a freeze is found before clients pay for one.
    identity.check()?;
    targets.check()?;
    let places = base::open(args, &targets, served)?;
    let freeze = freeze(args, &sources, served, id)?;
    let base = sources.base(args, freeze.as_ref())?;
    let identity = Identity { kind: kind(args), base, ..identity };
    identity.check()?;
    let mut base = base::find(places, &identity, keys.as_ref(), sources.names())?;
    let mut all = sources.open(args, freeze.as_ref(), targets.cancel());
    let transfer = args.max_transfer_size.get();
    let mut extents = Vec::new();
    for source in &mut all {
        source.check()?;
        extents.push(source.measure(args.block_size.get(), transfer)?);
    }
    let manifest = manifest(args, &identity, (&all, &extents), freeze.as_ref(), &sources)?;
    let need = targets::Need::new(args, &extents, stripes, &manifest)?;
    let sinks = targets.create(&identity, &need)?;
    if let Some(base) = &mut base {
        base.hold(&identity, &sinks, targets.cancel())?;
    }
    let limits = Limits::new(served, layout, &sources, &targets);
    let made = make(
        args,
        (identity, key, manifest),
        (all, &extents),
        (&targets, &sinks),
        (signals, &limits),
    )?;
    let mut report = report(args, &made, &sinks, freeze.as_ref());
    report.notes.extend(sources.notes.iter().cloned());
    let mut code = after::finish(
        args,
        &mut report,
        after::Rest { limits: &limits, base, targets: &targets, served, keys: keys.as_ref() },
        (freeze, signals),
    );
    for own in &sources.missing {
        after::warn_of_missing(&mut report, own);
        code = code.max(NO);
    }
    Ok((report, code))
}

const fn kind(args: &BackupRunArgs) -> Kind {
    match (args.differential, args.copy_only) {
        (true, _) => Kind::Differential,
        (_, true) => Kind::CopyOnly,
        _ => Kind::Full,
    }
}

/// Freezes the sources that the server has, all at one instant.
fn freeze(
    args: &BackupRunArgs,
    sources: &Sources,
    served: Option<&Served>,
    id: BackupId,
) -> Result<Option<Freeze>, CliError> {
    let names = sources.frozen();
    let Some(served) = served.filter(|_| !names.is_empty()) else { return Ok(None) };
    let purpose = match kind(args) {
        Kind::Full => Purpose::Full,
        Kind::Differential => Purpose::Differential,
        Kind::CopyOnly => Purpose::CopyOnly,
    };
    served.freeze(names, purpose, id.to_string()).map(Some)
}

fn manifest(
    args: &BackupRunArgs,
    identity: &Identity,
    (all, extents): (&[Source], &[Extent]),
    freeze: Option<&Freeze>,
    sources: &Sources,
) -> Result<Manifest, CliError> {
    let mut manifest = Manifest::new(identity, format!("weir {}", env!("CARGO_PKG_VERSION")));
    manifest.frozen_unix_ms = freeze.map(|freeze| freeze.answer.at_unix_ms);
    manifest.options.compression = args.compress;
    manifest.options.max_transfer = args.max_transfer_size.get();
    manifest.options.others.insert("block_size".to_owned(), args.block_size.to_string());
    if let Some(limit) = args.limit {
        manifest.options.others.insert("limit".to_owned(), limit.to_string());
    }
    for (source, extent) in all.iter().zip(extents) {
        let raw_bytes = extent.bytes.saturating_add(extent.zeros);
        let about = source.about.clone();
        manifest.sources.push(weir_backup::format::ManifestSource { raw_bytes, ..about });
    }
    manifest.layout =
        args.layout.as_deref().map(|path| crate::input::read(path, "layout")).transpose()?;
    manifest.oltp.clone_from(&sources.oltp);
    Ok(manifest)
}

type Facts = (Identity, Option<Arc<Key>>, Manifest);

/// Runs the engine, with progress.
fn make(
    args: &BackupRunArgs,
    (identity, key, manifest): Facts,
    (sources, extents): (Vec<Source>, &[Extent]),
    (targets, sinks): (&Targets, &[Arc<dyn StripeSink>]),
    (signals, limits): (&Signals, &Limits<'_>),
) -> Result<Finished, CliError> {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let processors = std::thread::available_parallelism().map_or(1, |n| count(n.get()));
    let bytes = extents.iter().map(|own| own.bytes).fold(0, u64::saturating_add);
    let buffers = Buffers::new(
        (count(sources.len()), count(sinks.len())),
        args.compress.is_some(),
        args.max_transfer_size,
        args.buffer_count,
    );
    let job = Job {
        identity,
        key,
        compression: args.compress,
        sources,
        bytes,
        stripes: sinks.to_vec(),
        targets: targets.names_of(sinks.len()),
        buffers,
        block: args.block_size.get(),
        encoders: processors,
        limit: args.limit,
        manifest,
    };
    let bar = Moving::start(bytes, args.quiet);
    let mut next = Span::ZERO;
    let mut binding = None;
    let mut watch = |progress: &Progress| {
        if progress.elapsed >= next {
            next = progress.elapsed + READING;
            binding = limits.binding();
        }
        bar.at(progress.read, progress.total, progress.elapsed, binding.as_deref());
        signals.code().is_none()
    };
    Ok(weir_backup::run::run(job, &mut watch)?)
}

fn report(
    args: &BackupRunArgs,
    made: &Finished,
    sinks: &[Arc<dyn StripeSink>],
    freeze: Option<&Freeze>,
) -> BackupRunReport {
    let Finished { report, manifest } = made;
    let stripe = |(at, own): (usize, &Arc<dyn StripeSink>)| {
        let about = &manifest.stripes[at];
        BackupStripeReport {
            place: own.name(),
            stripe: u32::try_from(at + 1).unwrap_or(u32::MAX),
            frames: about.frames,
            raw_bytes: about.raw_bytes,
            bytes: about.length,
        }
    };
    BackupRunReport {
        id: manifest.id.to_string(),
        kind: manifest.kind.to_string(),
        base: manifest.base.map(|base| base.to_string()),
        frozen_unix_ms: manifest.frozen_unix_ms,
        pause_ns: freeze.map(|freeze| freeze.answer.pause_ns),
        kept_bytes: None,
        compression: args.compress,
        is_encrypted: manifest.encryption.is_some(),
        stored_bytes: manifest.stripes.iter().map(|own| own.length).sum(),
        is_verified: None,
        stripe_files: sinks.iter().enumerate().map(stripe).collect(),
        notes: Vec::new(),
        run: report.clone(),
    }
}
