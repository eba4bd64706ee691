//! One module per verb.

mod backup;
mod catalog;
mod catalog_update;
mod cert;
mod check;
mod compare;
mod diagnose;
mod export;
mod fit;
mod kept;
mod lab;
mod layout;
mod layout_files;
mod man;
mod mcp;
mod measured;
mod mount;
mod needs;
mod observe;
mod page;
mod plan;
mod prices;
mod record;
mod restore;
mod run;
mod serve;
mod sim;
mod status;
mod sweep;
mod top;
mod traces;
mod tune;
mod waiting;
mod watch;
mod web;
mod whole_file;

use crate::cli::{Cli, Command};
use crate::error::CliError;
use crate::input::read;
use crate::output;
use clap::CommandFactory;
use std::path::PathBuf;
use weir_catalog::{Catalog, Edition};

/// Runs the verb and returns the exit code.
pub(crate) fn run(cli: Cli) -> Result<u8, CliError> {
    let catalog = || catalog_with(&cli.editions);
    match cli.command {
        Command::Serve(args) => serve::run(&args, &catalog()?),
        Command::Mount(args) => mount::run(&args, &catalog()?),
        Command::Cert(args) => cert::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Sim(args) => sim::run(&args, &catalog()?),
        Command::Run(args) => run::run(&args, &catalog()?),
        Command::Record(args) => record::run(&args),
        Command::Observe(command) => observe::run(&command),
        Command::Diagnose(args) => {
            diagnose::run(&args, &catalog()?, &edition_texts(&cli.editions)?)
        }
        Command::Compare(args) => compare::run(&args, &catalog()?),
        Command::Sweep(args) => sweep::run(&args, &catalog()?, &edition_texts(&cli.editions)?),
        Command::Plan(args) => plan::run(&args, &catalog()?),
        Command::Fit(args) => fit::run(&args, &catalog()?),
        Command::Tune(args) => tune::run(&args, &catalog()?),
        Command::Export(args) => export::run(&args, &catalog()?),
        Command::Backup(command) => backup::run(&command, &catalog()?),
        Command::Restore(args) => restore::run(&args, &catalog()?),
        Command::Lab(command) => lab::run(&command, &catalog()?),
        Command::Status(args) => match args.watch {
            Some(every) => watch::run(&args, every),
            None => status::run(&args),
        },
        Command::Top(args) => top::run(&args),
        Command::Volume(command) => status::volume(&command),
        Command::Host(command) => status::host(&command),
        Command::Catalog(command) => catalog::run(&command, &catalog()?),
        Command::Prices(args) => prices::run(&args, &catalog()?),
        Command::Layout(command) => layout::run(&command, &catalog()?),
        Command::Mcp(args) => {
            catalog()?;
            mcp::run(&args, &cli.editions)
        }
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "weir", &mut text);
            output::print_text(&String::from_utf8_lossy(&text)).map(|()| 0)
        }
        Command::Man { dir } => man::run(dir.as_deref()),
    }
}

/// Reads the editions of the user.
fn edition_texts(files: &[PathBuf]) -> Result<Vec<String>, CliError> {
    files.iter().map(|path| read(path, "catalog edition")).collect()
}

/// Loads the built-in editions and those of the user.
fn catalog_with(files: &[PathBuf]) -> Result<Catalog, CliError> {
    let mut catalog = Catalog::builtin();
    for (path, text) in files.iter().zip(edition_texts(files)?) {
        let edition = Edition::from_toml(&path.display().to_string(), &text)?;
        catalog.add(edition)?;
    }
    Ok(catalog)
}
