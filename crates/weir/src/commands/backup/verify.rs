//! `weir backup verify`: whether a restore would succeed, without writing anything.

use super::exports::Exports;
use super::kept::{self, Bar};
use crate::cli::BackupVerifyArgs;
use crate::error::{CliError, NO};
use crate::output;
use crate::signals::Signals;
use weir_backup::verify::verify_assembly;
use weir_backup::{Assembly, Verified, Watch};
use weir_catalog::Catalog;
use weir_report::backups::{BackupVerifyReport, BackupVerifyReports};

pub(super) fn run(args: &BackupVerifyArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let keys = kept::keys(&args.key)?;
    let places = kept::places(&args.chosen)?;
    let signals = Signals::catch()?;
    let opened = kept::library(&places, &args.server, catalog, &signals.cancel());
    let (mut library, exports) = opened.map_err(|error| kept::interrupted(error, &signals))?;
    let id = kept::chosen(&args.chosen, &library)?;
    // A differential is worth nothing without its full backup.
    let base = match library.by_id(id) {
        Some(entry) => library.base(entry)?.map(|base| base.identity.id),
        None => None,
    };
    let mut report = BackupVerifyReports::default();
    for id in base.into_iter().chain([id]) {
        let assembly = Assembly::new(library.inputs(id)?, Some(id), keys.as_ref())?;
        kept::check_keys(&args.key, std::slice::from_ref(&assembly))?;
        let (length, watch) = (assembly.length(), Watch::default());
        let bar = Bar::new(length, args.quiet);
        let verified = kept::watched(&signals, &bar, &watch, || verify_assembly(assembly, &watch));
        let elapsed_s = bar.elapsed_s();
        drop(bar);
        let verified = verified.map_err(|error| kept::ended(error, &signals))?;
        report.verified.push(about(&verified, length, elapsed_s));
    }
    exports.map_or(Ok(()), Exports::close)?;
    output::print(&report, args.output.format())?;
    let is_sound = report.verified.iter().all(|own| own.is_sound);
    Ok(if is_sound { 0 } else { NO })
}

fn about(verified: &Verified, stored_bytes: u64, elapsed_s: f64) -> BackupVerifyReport {
    let counts = &verified.counts;
    let mut notes = Vec::new();
    if verified.manifest.is_none() {
        notes.push("no stripe has a footer and a sound manifest: nothing can be restored".into());
    }
    if !verified.is_decrypted {
        notes.push(
            "no key was given; --key-file FILE or WEIR_BACKUP_KEY lets it check the contents too"
                .into(),
        );
    }
    BackupVerifyReport {
        id: verified.identity.id.to_string(),
        name: verified.identity.name.clone(),
        is_sound: verified.is_sound(),
        is_restorable: verified.is_restorable(),
        is_decrypted: verified.is_decrypted,
        stripes: verified.identity.stripes.into(),
        frames: counts.frames,
        bytes: counts.raw_bytes,
        stored_bytes,
        lost_frames: counts.lost_frames,
        elapsed_s,
        damage: kept::damage(&counts.damage),
        unlisted_damage: counts.unlisted,
        notes,
    }
}
