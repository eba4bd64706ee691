//! The need of `weir plan`: a file, the command line, and an observation.

use crate::cli::PlanArgs;
use crate::commands::measured::{fill, measure_of};
use crate::error::CliError;
use crate::input::read_layout;
use std::fs;
use std::path::{Path, PathBuf};
use weir_catalog::Catalog;
use weir_plan::Measure;
use weir_plan::need::{NeedFile, RoleKeys, Vcpus};

/// Reads the need file, the command line and the observation; returns the notes about them.
pub(super) fn observed_need(
    args: &PlanArgs,
    catalog: &Catalog,
) -> Result<(NeedFile, Vec<String>), CliError> {
    let mut file = need_file(args)?;
    let notes = observed(&mut file, args, catalog)?;
    Ok((file, notes))
}

/// Fills the need from an observation, if there is one; returns the notes about it.
fn observed(
    file: &mut NeedFile,
    args: &PlanArgs,
    catalog: &Catalog,
) -> Result<Vec<String>, CliError> {
    let stray = [
        ("--as-observed", args.as_observed),
        ("--percentile", args.percentile.is_some()),
        ("--growth", args.growth.is_some()),
        ("--role", !args.role.is_empty()),
    ];
    if args.from.is_empty() {
        return match stray.into_iter().find(|(_, is_said)| *is_said) {
            Some((option, _)) => {
                let words = format!("{option} needs --from OBSERVATION");
                Err(CliError::Refused(words))
            }
            None => Ok(Vec::new()),
        };
    }
    let present = args.present.clone().or_else(|| file.keep.clone());
    let present = present.map(|path| read_layout(&path, catalog)).transpose()?;
    fill(file, &args.from, &measure_of_plan(args), (present, catalog))
}

/// Returns the measure that the command line asks for. A plan needs sizes.
pub(super) fn measure_of_plan(args: &PlanArgs) -> Measure {
    let own = measure_of(args.percentile, args.growth, &args.role, args.as_observed);
    Measure { is_size_asked: true, ..own }
}

/// Reads the need file and applies the command line to it.
fn need_file(args: &PlanArgs) -> Result<NeedFile, CliError> {
    let mut file = match &args.need {
        Some(path) => {
            let text = fs::read_to_string(path)
                .map_err(|source| CliError::Read { path: path.clone(), source })?;
            NeedFile::read(&path.display().to_string(), &text)?
        }
        None => NeedFile::default(),
    };
    let data = RoleKeys {
        size: args.size,
        iops: args.iops,
        throughput: args.throughput,
        request: args.request,
        reads: args.reads.clone(),
        latency: args.latency,
        working_set: args.working_set,
        file: None,
    };
    let says_data = args.size.is_some()
        || args.iops.is_some()
        || args.throughput.is_some()
        || args.request.is_some()
        || args.reads.is_some()
        || args.latency.is_some()
        || args.working_set.is_some();
    if says_data && file.data.is_some() {
        let path = args.need.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let words = format!("both {path} and the command line describe [data]; leave out one");
        return Err(CliError::Refused(words));
    }
    if says_data {
        file.data = Some(data);
    }
    let set = |own: &mut Option<String>, said: &Option<String>| {
        if said.is_some() {
            own.clone_from(said);
        }
    };
    set(&mut file.edition, &args.edition);
    set(&mut file.region, &args.region);
    set(&mut file.currency, &args.currency);
    set(&mut file.os, &args.os);
    set(&mut file.headroom, &args.headroom);
    set(&mut file.host, &args.host);
    file.architecture = args.architecture.or(file.architecture);
    file.vcpus = args.vcpus.map(Vcpus::whole).or(file.vcpus);
    set(&mut file.engine, &args.engine);
    file.memory = args.memory.or(file.memory);
    file.max_disks = args.max_disks.or(file.max_disks);
    file.max_files = args.max_files.or(file.max_files);
    file.storage = args.storage.or(file.storage);
    file.apart = args.apart.or(file.apart);
    file.filesystem = args.filesystem.or(file.filesystem);
    file.keep = args.keep.clone().or_else(|| beside(args.need.as_deref(), file.keep.take()));
    file.no_downtime |= args.no_downtime;
    file.bursting = args.bursting.or(file.bursting);
    file.licence_owned |= args.licence_owned;
    if !args.family.is_empty() {
        file.families.clone_from(&args.family);
    }
    if !args.disks.is_empty() {
        file.disks.clone_from(&args.disks);
    }
    Ok(file)
}

/// Resolves a path of a need file against the folder of that file.
fn beside(file: Option<&Path>, path: Option<PathBuf>) -> Option<PathBuf> {
    let folder = file.and_then(Path::parent);
    path.map(|path| folder.map_or(path.clone(), |folder| folder.join(&path)))
}
