//! `weir man`: the man pages, from the definition of the arguments.

use crate::cli::Cli;
use crate::error::CliError;
use crate::output;
use clap::CommandFactory;
use std::fs;
use std::path::Path;

/// Prints the page of `weir`, or writes the pages of all verbs to `dir`.
pub(crate) fn run(dir: Option<&Path>) -> Result<u8, CliError> {
    let Some(dir) = dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .map_err(|source| CliError::System { context: "writing the man page", source })?;
        return output::print_text(&String::from_utf8_lossy(&page)).map(|()| 0);
    };
    fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), dir))
        .map_err(|source| CliError::write(dir, source))?;
    Ok(0)
}
