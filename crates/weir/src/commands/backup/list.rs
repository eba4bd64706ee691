//! `weir backup list` and `weir backup show`: the backups in some places.

use super::exports::Exports;
use super::kept;
use crate::cli::{BackupListArgs, BackupShowArgs};
use crate::error::{CliError, NO};
use crate::output;
use weir_backup::Cancel;
use weir_backup::place::FoundStripe;
use weir_catalog::Catalog;
use weir_report::backups::{
    BackupListReport, BackupShowReport, BackupSourceLine, BackupStripeLine,
};

pub(super) fn list(args: &BackupListArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let (library, exports) =
        kept::library(&args.places, &args.server, catalog, &Cancel::default())?;
    let report = BackupListReport {
        places: kept::place_names(&args.places),
        backups: library.entries().iter().map(kept::line).collect(),
        notes: library.strangers().map(stranger).collect(),
    };
    output::print(&report, args.output.format())?;
    exports.map_or(Ok(()), Exports::close)?;
    Ok(if report.backups.is_empty() { NO } else { 0 })
}

fn stranger(found: &FoundStripe) -> String {
    match &found.problem {
        Some(problem) => problem.clone(),
        None => format!("{} belongs to no backup", found.name),
    }
}

pub(super) fn show(args: &BackupShowArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let places = kept::places(&args.chosen)?;
    let (library, exports) = kept::library(&places, &args.server, catalog, &Cancel::default())?;
    let id = kept::chosen(&args.chosen, &library)?;
    let Some(entry) = library.by_id(id) else { return Ok(0) };
    let manifest = entry.manifest.as_ref();
    let mut report = BackupShowReport { backup: kept::line(entry), ..BackupShowReport::default() };
    if let Some(manifest) = manifest {
        report.frozen = manifest.frozen_unix_ms.map(kept::moment);
        report.finished = Some(kept::moment(manifest.finished_unix_ms));
        report.tool = Some(manifest.tool.clone());
        report.layout.clone_from(&manifest.layout);
        report.sources = manifest
            .sources
            .iter()
            .map(|source| BackupSourceLine {
                source: source.name.clone(),
                size_bytes: source.size,
                bytes: source.raw_bytes,
                role: source.role.clone(),
                tier: source.tier.clone(),
            })
            .collect();
        let options = &manifest.options;
        report.max_transfer_bytes = (options.max_transfer > 0).then_some(options.max_transfer);
        let others = options.others.iter();
        report.options = others.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    report.stripe_files = library
        .stripes(entry)
        .map(|found| {
            let stripe = found.stripe();
            let summary = manifest
                .zip(stripe)
                .and_then(|(manifest, stripe)| manifest.stripes.get(usize::from(stripe)));
            BackupStripeLine {
                stripe: stripe.map(|stripe| u32::from(stripe) + 1),
                name: found.name.clone(),
                state: match (found.is_complete(), found.is_truncated()) {
                    (true, _) => "complete",
                    (_, true) => "truncated",
                    _ => "unfinished",
                }
                .to_owned(),
                is_complete: found.is_complete(),
                stored_bytes: found.length,
                frames: summary.map(|summary| summary.frames),
            }
        })
        .collect();
    report.stripe_files.sort_by_key(|own| own.stripe);
    output::print(&report, args.output.format())?;
    exports.map_or(Ok(()), Exports::close)?;
    Ok(0)
}
