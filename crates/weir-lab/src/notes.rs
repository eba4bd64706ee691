//! Notes of a report about the execution of a lab: scaled sizes and runtimes, and figures that were
//! not measured.

use crate::file::{Lab, LabFile};
use crate::metric;
use crate::options::{Clocks, Driver, Options, WALL_RAMP, wall_runtime, wall_size};
use crate::work::Work;
use weir_report::lab::{Basis, Figure, Verdict};

/// Returns the notes of a lab with these runs.
pub(crate) fn collect<'a>(
    lab: &Lab,
    options: &Options,
    works: impl Iterator<Item = &'a Work<'a>> + Clone,
) -> Vec<String> {
    let databases = works.clone().filter_map(|work| match work {
        Work::Databases(databases) => Some(databases),
        Work::Jobs(_) | Work::Layout(_) | Work::Plan(_) | Work::Tune(_) => None,
    });
    let mut wall_notes: Vec<String> = databases.map(|own| own.wall_note()).collect();
    wall_notes.dedup();
    let has_jobs = works.clone().any(|work| matches!(work, Work::Jobs(_)));
    let mut notes = Vec::new();
    if options.clocks != Clocks::Wall {
        notes.extend(has_jobs.then(|| jobs_virtually(&lab.file)));
        for work in works {
            if let Work::Databases(databases) = work {
                notes.push(databases.note());
            }
        }
        notes.dedup();
    }
    if options.clocks != Clocks::Virtual {
        notes.extend(has_jobs.then(|| jobs_really(lab, options)));
        notes.extend(wall_notes);
        let figures = lab.file.figure.iter();
        let unseen = figures.filter(|figure| metric::virtual_only(&figure.metric));
        notes.extend(unseen.map(|f| format!("{}: only measured in virtual time", f.id)));
    }
    notes
}

/// Counts the figures that hold by their class, and of those the ones that nothing was fitted to.
pub(crate) fn by_class(figures: &[Figure]) -> Vec<String> {
    let mut classes: Vec<&str> = Vec::new();
    for class in figures.iter().filter_map(|figure| figure.class.as_deref()) {
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    let count = |class: &str, is: &dyn Fn(&Figure) -> bool| {
        let own = figures.iter().filter(|own| own.class.as_deref() == Some(class) && is(own));
        own.fold((0, 0), |(hold, all), own| {
            (hold + u32::from(own.verdict == Verdict::Holds), all + 1)
        })
    };
    let note = |class: &str| {
        let (hold, all) = count(class, &|_| true);
        let (predicted, predictions) = count(class, &|own| own.basis != Basis::Calibrated);
        let tolerance = figures.iter().find(|own| own.class.as_deref() == Some(class));
        let tolerance = tolerance.map(|own| own.tolerance.to_string()).unwrap_or_default();
        match predictions == all {
            true => format!("{class}: {hold} of {all} hold within {tolerance}"),
            false => format!(
                "{class}: {hold} of {all} hold within {tolerance}; of the {predictions} that \
                 nothing was fitted to, {predicted}"
            ),
        }
    };
    classes.into_iter().map(note).collect()
}

fn jobs_virtually(file: &LabFile) -> String {
    let warm = file.run.iter().any(|run| run.warm_up.is_some());
    let warm = if warm { ", with the cache warmed by one pass of 1 MiB reads" } else { "" };
    match file.runtime {
        Some(runtime) => format!("virtual: {runtime} per run{warm}"),
        None => format!("virtual: as long as the jobs state{warm}"),
    }
}

fn jobs_really(lab: &Lab, options: &Options) -> String {
    let LabFile { wall_size: size, wall_runtime: runtime, run, .. } = &lab.file;
    let says = |own: bool, option| if own { "set by the lab" } else { option };
    let ramp = match run.iter().any(|run| run.every.is_none()) {
        true => format!(" after a ramp of {WALL_RAMP}"),
        false => String::new(),
    };
    let driver = match options.driver {
        Driver::Weir => "Weir's runner",
        Driver::Fio => "fio",
    };
    format!(
        "wall: files limited to {most} ({}), {} per run ({}){ramp}, driven by {driver} over NBD",
        says(size.is_some(), "--size"),
        wall_runtime(lab, options),
        says(runtime.is_some(), "--runtime"),
        most = wall_size(lab, options),
    )
}
