//! `weir check`: whether the files of a data folder are what was written.

use crate::cli::CheckArgs;
use crate::error::{CliError, FAILED, NO};
use crate::output;
use weir_blob::endpoint::journal_in;
use weir_blob::journal;
use weir_report::check::{CheckReport, DamagedFile, JournalCheck, Unchecked, VolumeCheck};
use weir_server::ServerError;
use weir_store::{CheckedVolume, Damage, FolderCheck};

pub(crate) fn run(args: &CheckArgs) -> Result<u8, CliError> {
    let folder = FolderCheck::open(&args.dir, "weir check").map_err(ServerError::from)?;
    let names = folder.volumes().map_err(ServerError::from)?;
    let mut report =
        CheckReport { folder: args.dir.display().to_string(), ..CheckReport::default() };
    match &args.volume {
        Some(name) if !names.contains(name) => {
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let words = format!("{} has no volume {name:?}; there is {known}", report.folder);
            return Err(CliError::Refused(words));
        }
        Some(name) => check_volume(&folder, name, &mut report),
        None => {
            names.iter().for_each(|name| check_volume(&folder, name, &mut report));
            let strays = folder.strays().map_err(ServerError::from)?;
            report.ignored = strays.iter().map(|path| path.display().to_string()).collect();
            check_journal(args, &mut report);
        }
    }
    report.is_sound = report.damage.is_empty() && report.unchecked.is_empty();
    output::print(&report, args.output.format())?;
    Ok(match (report.damage.is_empty(), report.unchecked.is_empty()) {
        (false, _) => NO,
        (true, false) => FAILED,
        (true, true) => 0,
    })
}

fn check_volume(folder: &FolderCheck, name: &str, report: &mut CheckReport) {
    let before = report.damage.len();
    let damage = &mut report.damage;
    let checked = folder.check(name, &mut |found| damage.push(damaged(name, found)));
    let damaged = (report.damage.len() - before) as u64;
    match checked {
        Ok(None) => {}
        Ok(Some(checked)) => report.volumes.push(about(name, &checked, damaged)),
        Err(error) => {
            let reason = ServerError::from(error).to_string();
            report.unchecked.push(Unchecked { name: format!("volume {name}"), reason });
        }
    }
}

fn about(name: &str, checked: &CheckedVolume, damaged: u64) -> VolumeCheck {
    VolumeCheck {
        name: name.to_owned(),
        size_bytes: checked.size.map(weir_units::Bytes::get),
        checksums: checked.has_checksums,
        verified_bytes: checked.verified,
        unknown_bytes: checked.unknown,
        unverified_bytes: checked.unverified,
        damaged,
    }
}

fn damaged(volume: &str, found: Damage) -> DamagedFile {
    DamagedFile {
        volume: Some(volume.to_owned()),
        file: found.path.display().to_string(),
        offset: found.bytes.map(|bytes| bytes.offset),
        length: found.bytes.map(|bytes| bytes.len),
        volume_offset: found.bytes.and_then(|bytes| bytes.volume_offset),
        reason: found.what,
    }
}

fn check_journal(args: &CheckArgs, report: &mut CheckReport) {
    let path = journal_in(&args.dir);
    if !path.exists() {
        return;
    }
    let file = path.display().to_string();
    match journal::verify(&path) {
        Ok(records) => report.journal = Some(JournalCheck { file, records: records as u64 }),
        Err(error) => {
            let reason = error.to_string();
            report.damage.push(DamagedFile { file, reason, ..DamagedFile::default() });
        }
    }
}
