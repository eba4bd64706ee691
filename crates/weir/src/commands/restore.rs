//! `weir restore`: a backup into volumes, exports or images.

mod prove;
mod targets;

use super::backup::exports::{Exports, open_places};
use super::backup::kept::{self, Bar};
use super::backup::volumes::without_layouts;
use crate::cli::{DamagedArg, RestoreArgs};
use crate::error::{CliError, NO};
use crate::output;
use crate::signals::Signals;
use std::path::Path;
use targets::Goal;
use weir_backup::format::Manifest;
use weir_backup::restore::{HEAD, Target, check, prepare};
use weir_backup::verify::{Counts, Reached};
use weir_backup::{Assembly, BackupError, Library, RestoreOptions, Watch, restore};
use weir_catalog::Catalog;
use weir_report::backups::{RestoreReport, RestoreTargetLine};

pub(crate) fn run(args: &RestoreArgs, catalog: &Catalog) -> Result<u8, CliError> {
    targets::check_target(args)?;
    let keys = kept::keys(&args.key)?;
    let signals = Signals::catch()?;
    let places = without_layouts(&kept::places(&args.chosen)?, catalog)?;
    let cancel = signals.cancel();
    let ways = (&cancel, args.sas_file.as_deref());
    let opened = open_places(&places, ways, || source_exports(args, catalog));
    let (places, exports) = opened.map_err(|error| kept::interrupted(error, &signals))?;
    let mut library = Library::open(places).map_err(|error| kept::ended(error, &signals))?;
    let id = kept::chosen(&args.chosen, &library)?;
    let base = match library.by_id(id) {
        Some(entry) => library.base(entry)?.map(|base| base.identity.id),
        None => None,
    };
    let mut all = Vec::new();
    for id in base.into_iter().chain([id]) {
        all.push(Assembly::new(library.inputs(id)?, Some(id), keys.as_ref())?);
    }
    kept::check_keys(&args.key, &all)?;
    let options = RestoreOptions {
        is_damage_skipped: args.damaged == DamagedArg::Skip,
        is_proved: args.prove,
    };
    for own in &all {
        check(own, options)?;
    }
    let Some(manifest) = all.last().and_then(|own| own.manifest.clone()) else {
        return Err(CliError::from(BackupError::Unusable("the backup is incomplete".into())));
    };
    same_sources(&all, &manifest)?;
    let description = args.oltp.as_deref().map(prove::read).transpose()?;
    let manifests: Vec<&Manifest> = all.iter().filter_map(|own| own.manifest.as_ref()).collect();
    // With --from-control, the places have a server of their own.
    let exports = exports.filter(|_| args.from_control.is_none());
    let goal = Goal::open(args, catalog, &manifests, (exports, &signals.cancel()));
    let goal = goal.map_err(|error| kept::interrupted(error, &signals))?;
    let outcome = fill(args, &signals, &goal, &mut all, options);
    let (counts, elapsed_s) = match outcome {
        Ok(done) => done,
        Err(Failure::Before(error)) => return Err(*error),
        Err(Failure::During(error)) => return failed(error, goal, &signals),
    };
    let mut report = about(&all, &manifest, &goal, counts, elapsed_s);
    report.is_proved = args.prove && !report.is_lossy;
    report.is_scratch = !goal.is_kept();
    if let Some(description) = &description {
        report.notes.push(prove::recover(args, description, &goal, &signals)?);
    }
    goal.close()?;
    output::print(&report, args.output.format())?;
    Ok(if report.is_lossy { NO } else { 0 })
}

/// Ends a restore that failed, and says what it left.
fn failed(error: BackupError, goal: Goal, signals: &Signals) -> Result<u8, CliError> {
    if let Err(error) = goal.close() {
        output::talk(&format!(
            "weir: warning: the server of the targets did not end in order: {error}"
        ));
    }
    match signals.code() {
        Some(code) if matches!(error, BackupError::Untidy { .. }) && error.is_interrupted() => {
            output::talk(&format!("weir: {error}"));
            Ok(code)
        }
        _ => Err(kept::ended(error, signals)),
    }
}

/// Finds the server of places that are named by their export: the one that is stated, or that of the
/// targets.
fn source_exports(args: &RestoreArgs, catalog: &Catalog) -> Result<Exports, CliError> {
    if let Some(control) = &args.from_control {
        return Exports::served(control);
    }
    match (&args.to, &args.control) {
        (Some(to), _) if !targets::is_uri(to) => {
            Exports::offline(Path::new(to), targets::data_of(args, to)?, catalog)
        }
        (_, Some(control)) => Exports::served(control),
        // Where the other verbs look.
        _ => match std::env::var_os("WEIR_CONTROL") {
            Some(control) => Exports::served(Path::new(&control)),
            None => Exports::served(&weir_server::control::default_path()),
        },
    }
}

/// A failure, by whether anything may have been written.
enum Failure {
    Before(Box<CliError>),
    During(BackupError),
}

/// Restores to the targets of a goal; returns what was found, and the seconds that it took.
fn fill(
    args: &RestoreArgs,
    signals: &Signals,
    goal: &Goal,
    all: &mut [Assembly],
    options: RestoreOptions,
) -> Result<(Vec<Counts>, f64), Failure> {
    let watch = Watch::default();
    let passes = if args.prove { 2 } else { 1 };
    let total = all.iter().map(|own| own.length()).fold(0, u64::saturating_add);
    let bar = Bar::new(total.saturating_mul(passes), args.quiet);
    let filled = kept::watched(signals, &bar, &watch, || {
        let mut used = Vec::new();
        for target in goal.targets() {
            if !target.is_empty(&watch)? {
                used.push(target);
            }
        }
        Ok(used)
    });
    let filled = filled.map_err(|error| Failure::Before(Box::new(kept::ended(error, signals))))?;
    if let Some(first) = filled.first().filter(|_| !args.force) {
        return Err(Failure::Before(Box::new(CliError::Refused(format!(
            "{} is not empty; --force replaces what is there",
            first.name()
        )))));
    }
    let given: Vec<Option<&dyn Target>> = goal.by_source();
    let targets: Vec<&dyn Target> = goal.targets().collect();
    let id = all.last().map(|own| own.identity.id);
    let done = kept::watched(signals, &bar, &watch, || {
        id.map_or(Ok(()), |id| prepare(&targets, &filled, id, &watch))?;
        match all {
            [own] => restore(own, None, &given, options, &watch),
            [base, own] => restore(base, Some(own), &given, options, &watch),
            _ => Ok(Vec::new()),
        }
    });
    let done = done.map_err(|error| Failure::During(with_rest(error, args, goal, &watch)))?;
    Ok((done, bar.elapsed_s()))
}

/// Checks that a full backup has every source of the differential on it.
fn same_sources(all: &[Assembly], newest: &Manifest) -> Result<(), CliError> {
    for manifest in all.iter().filter_map(|own| own.manifest.as_ref()) {
        let has = |name: &str| manifest.sources.iter().any(|source| source.name == name);
        if let Some(source) = newest.sources.iter().find(|source| !has(&source.name)) {
            return Err(CliError::from(BackupError::Unusable(format!(
                "the differential has {}, and its full backup {} has not: they do not belong \
                 together",
                source.name, manifest.id
            ))));
        }
    }
    Ok(())
}

/// Adds to a failure how far each target came.
fn with_rest(error: BackupError, args: &RestoreArgs, goal: &Goal, watch: &Watch) -> BackupError {
    let is_said = matches!(error, BackupError::Untidy { .. });
    let left = match &args.image {
        _ if !goal.is_kept() => return error,
        // The error says which images are otherwise.
        Some(_) if is_said => return error,
        Some(folder) => format!(
            "the unfinished images in {} were removed, and images that were there before are as they \
             were",
            folder.display()
        ),
        None => rest(goal.targets().map(Target::name), |name| watch.reached(name)),
    };
    BackupError::Untidy { cause: Box::new(error), left }
}

/// Says how far each volume came.
fn rest<'a>(
    names: impl Iterator<Item = &'a str>,
    reached: impl Fn(&str) -> Option<Reached>,
) -> String {
    let all: Vec<(&str, Option<Reached>)> = names.map(|name| (name, reached(name))).collect();
    let of = |wanted: Option<Reached>| {
        let own = all.iter().filter(|(_, reached)| *reached == wanted).map(|(name, _)| *name);
        own.collect::<Vec<_>>().join(", ")
    };
    let head = weir_report::number::grouped(HEAD);
    let (whole, begun) = (of(Some(Reached::Whole)), of(Some(Reached::Begun)));
    let (unknown, untouched) = (of(Some(Reached::Unknown)), of(None));
    let mut parts = Vec::new();
    if !begun.is_empty() {
        parts.push(format!(
            "the restore is incomplete, do not use {begun}: the first {head} bytes hold the mark of an \
             unfinished restore"
        ));
    }
    if !unknown.is_empty() {
        parts.push(format!(
            "do not use {unknown}: the write of its first {head} bytes did not end, so it may be without \
             the mark of an unfinished restore"
        ));
    }
    if !whole.is_empty() {
        parts.push(format!("whole: {whole}"));
    }
    if !untouched.is_empty() {
        parts.push(format!("nothing was written to {untouched}"));
    }
    if !begun.is_empty() || !unknown.is_empty() {
        parts.push("restore again with --force".to_owned());
    }
    parts.join("; ")
}

fn about(
    all: &[Assembly],
    manifest: &Manifest,
    goal: &Goal,
    counts: Vec<Counts>,
    elapsed_s: f64,
) -> RestoreReport {
    let mut report = RestoreReport {
        id: manifest.id.to_string(),
        name: manifest.name.clone(),
        base: (all.len() > 1).then(|| all[0].identity.id.to_string()),
        elapsed_s,
        ..RestoreReport::default()
    };
    for own in counts {
        report.frames += own.frames;
        report.bytes = report.bytes.saturating_add(own.raw_bytes);
        report.lost_frames += own.lost_frames;
        report.is_lossy |= own.is_lossy;
        report.damage.extend(kept::damage(&own.damage));
        if own.unlisted > 0 {
            report.notes.push(format!("{} more damages are not listed", own.unlisted));
        }
    }
    report.targets = goal
        .pairs()
        .map(|(source, target)| RestoreTargetLine {
            source: manifest.sources[source].name.clone(),
            target: target.name().to_owned(),
            size_bytes: manifest.sources[source].size,
        })
        .collect();
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_restore_says_how_far_each_volume_came() {
        let reached = |name: &str| match name {
            "a" | "b" => Some(Reached::Begun),
            "c" => Some(Reached::Whole),
            "d" => Some(Reached::Unknown),
            _ => None,
        };
        let check = |names: &[&str], expect: &str| {
            assert_eq!(rest(names.iter().copied(), reached), expect);
        };
        check(&["e"], "nothing was written to e");
        check(
            &["a", "b", "c", "e"],
            "the restore is incomplete, do not use a, b: the first 4,096 bytes hold the mark of an \
             unfinished restore; whole: c; nothing was written to e; restore again with --force",
        );
        check(
            &["c", "d"],
            "do not use d: the write of its first 4,096 bytes did not end, so it may be without the \
             mark of an unfinished restore; whole: c; restore again with --force",
        );
    }
}
