//! One module per verb.

mod backup;
mod catalog;
mod cert;
mod diagnose;
mod export;
mod kept;
mod lab;
mod layout;
mod layout_files;
mod man;
mod mount;
mod observe;
mod plan;
mod restore;
mod run;
mod serve;
mod sim;
mod status;
mod waiting;

use crate::cli::{Cli, Command};
use crate::error::CliError;
use crate::output;
use clap::CommandFactory;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use weir_catalog::{Catalog, Edition};
use weir_layout::Layout;

/// Runs the verb and returns the exit code.
pub(crate) fn run(cli: Cli) -> Result<u8, CliError> {
    let catalog = || catalog_with(&cli.editions);
    match cli.command {
        Command::Serve(args) => serve::run(&args, &catalog()?),
        Command::Mount(args) => mount::run(&args, &catalog()?),
        Command::Cert(args) => cert::run(&args),
        Command::Sim(args) => sim::run(&args, &catalog()?),
        Command::Run(args) => run::run(&args, &catalog()?),
        Command::Observe(command) => observe::run(&command),
        Command::Diagnose(args) => diagnose::run(&args, &catalog()?),
        Command::Plan(args) => plan::run(&args, &catalog()?),
        Command::Export(args) => export::run(&args, &catalog()?),
        Command::Backup(command) => backup::run(&command, &catalog()?),
        Command::Restore(args) => restore::run(&args, &catalog()?),
        Command::Lab(command) => lab::run(&command, &catalog()?),
        Command::Status(args) => status::run(&args),
        Command::Volume(command) => status::volume(&command),
        Command::Host(command) => status::host(&command),
        Command::Catalog(command) => catalog::run(&command, &catalog()?),
        Command::Layout(command) => layout::run(&command, &catalog()?),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "weir", &mut text);
            output::print_text(&String::from_utf8_lossy(&text)).map(|()| 0)
        }
        Command::Man { dir } => man::run(dir.as_deref()),
    }
}

/// Loads the built-in editions and those of the user.
fn catalog_with(files: &[PathBuf]) -> Result<Catalog, CliError> {
    let mut catalog = Catalog::builtin();
    for path in files {
        let edition =
            Edition::from_toml(&path.display().to_string(), &read(path, "catalog edition")?)?;
        catalog.add(edition)?;
    }
    Ok(catalog)
}

/// Reads a text file; `what` names its kind in messages.
pub(crate) fn read(path: &Path, what: &'static str) -> Result<String, CliError> {
    fs::read_to_string(path).map_err(|source| match source.kind() {
        ErrorKind::InvalidData => CliError::NotText { path: path.to_owned(), what },
        _ => CliError::Read { path: path.to_owned(), source },
    })
}

/// Reads and resolves a layout file.
pub(crate) fn read_layout(path: &Path, catalog: &Catalog) -> Result<Layout, CliError> {
    Ok(read_layout_text(path, catalog)?.1)
}

/// Reads a layout file and returns its text, too.
pub(crate) fn read_layout_text(
    path: &Path,
    catalog: &Catalog,
) -> Result<(String, Layout), CliError> {
    let text = read(path, "layout")?;
    let layout = Layout::parse(&path.display().to_string(), &text, catalog)?;
    Ok((text, layout))
}

/// Returns the edition of a layout, if it has one.
pub(crate) fn edition_of<'a>(
    layout: &Layout,
    catalog: &'a Catalog,
) -> Result<Option<&'a Edition>, CliError> {
    let edition = layout.edition.as_ref().map(|name| catalog.edition(name));
    Ok(edition.transpose()?)
}

/// Prints the notes on a layout that affect the results.
pub(crate) fn say_notes(layout: &Layout) {
    for host in &layout.hosts {
        host.notes
            .iter()
            .for_each(|note| output::talk(&format!("note: host {}: {note}", host.name)));
    }
}
