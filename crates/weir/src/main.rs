//! The command line: the only crate that prints.
//!
//! stdout is data, stderr is talk. Exit codes: 0 it worked, 1 a negative answer
//! (a figure missed its tolerance or was not measured), 2 the input or the usage is
//! wrong, 3 something failed while running, 130 Ctrl-C ended it.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod error;
mod input;
mod output;
mod progress;
mod signals;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap knows where each goes.
            let code = if error.use_stderr() { error::USAGE } else { 0 };
            drop(error.print());
            return ExitCode::from(code);
        }
    };
    match commands::run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            output::talk(&format!("weir: {}", error.with_causes()));
            ExitCode::from(error.code())
        }
    }
}
