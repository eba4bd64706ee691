//! `weir observe`.

mod backups;
mod between;
mod checklist;
mod figures;
pub(super) mod import;
mod live;
mod mirror;
mod percentiles;
pub(crate) mod picture;
mod requirements;
mod snapshot;
mod source;
mod tables;

use crate::cli::{ImportArgs, ObserveArgs, ObserveCommand, ObserveShowArgs};
use crate::error::CliError;
use crate::output;
use figures::Figures;
use picture::Picture;
pub(crate) use source::{Source, is_observation};
use std::fs::File;
use std::path::PathBuf;

/// An input of another tool as a temporary observation, with its notes.
pub(crate) fn imported(
    paths: &[PathBuf],
    args: &ImportArgs,
) -> Result<(File, Vec<String>), CliError> {
    let (file, summary) = import::imported(paths, args)?;
    let read = summary.inputs.iter().map(|(name, kind, _)| format!("{name} is {kind}"));
    Ok((file, read.chain(summary.notes.iter().cloned()).collect()))
}

pub(crate) fn run(args: &ObserveArgs) -> Result<u8, CliError> {
    let Some(command) = &args.command else { return live::run(&args.live) };
    match command {
        ObserveCommand::Show(args) => show(args),
        ObserveCommand::Checklist(args) => checklist::run(args),
        ObserveCommand::Snapshot(args) => snapshot::run(args),
        ObserveCommand::Snapshots { dir, output } => snapshot::list(dir, output),
        ObserveCommand::Between(args) => between::run(args),
        ObserveCommand::Percentiles(args) => percentiles::run(args),
        ObserveCommand::Import(args) => import::run(args),
        ObserveCommand::Export(args) => tables::export(args),
        ObserveCommand::Script { sqlserver: _ } => {
            output::print_text(weir_import::live::sqlserver::SCRIPT)?;
            Ok(0)
        }
        ObserveCommand::Kinds { output } => import::kinds(output),
    }
}

fn show(args: &ObserveShowArgs) -> Result<u8, CliError> {
    let source = Source::observation(&args.file)?;
    let (header, _) = source.survey()?;
    let mut figures = Figures::new(&header);
    let mut picture = args.plot.as_ref().map(|_| Picture::new(&header));
    let (notes, ending) = source.each(|at, row| {
        figures.sample(at, row);
        if let Some(picture) = &mut picture {
            picture.sample(at, row);
        }
    })?;
    if let (Some(path), Some(picture)) = (&args.plot, picture) {
        picture.write(path)?;
    }
    output::print(&figures.report(&header, &notes, &ending), args.output.format())?;
    Ok(0)
}
