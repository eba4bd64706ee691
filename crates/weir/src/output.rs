//! The two output streams. A closed stdout is not an error: the reader has seen enough.

use crate::error::CliError;
use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};
use weir_report::screen::{PIPE_WIDTH, Screen};
use weir_report::{Format, Report};

/// Prints a report to stdout.
pub(crate) fn print(report: &impl Report, format: Format) -> Result<(), CliError> {
    print_text(&report.render_on(format, &screen()))
}

/// Prints a report to stdout, with or without the details that text leaves out by default.
pub(crate) fn print_detailed(
    report: &impl Report,
    format: Format,
    is_verbose: bool,
) -> Result<(), CliError> {
    print_text(&report.render_on(format, &screen().with_details(is_verbose)))
}

/// Returns the width and colours of stdout: `COLUMNS`, else the terminal's width, else 80.
pub(crate) fn screen() -> Screen {
    let stdout = io::stdout();
    let is_plain = is_plain();
    let stated = env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let measured = || terminal_size::terminal_size_of(&stdout).map(|(width, _)| width.0.into());
    let width = stated.filter(|width| *width > 0).or_else(measured).unwrap_or(PIPE_WIDTH);
    Screen::of_width(width).with_colours(stdout.is_terminal() && !is_plain)
}

/// Returns whether the user wants no colours.
pub(crate) fn is_plain() -> bool {
    env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || is_dumb()
}

/// Returns whether the terminal has no cursor that can be moved.
pub(crate) fn is_dumb() -> bool {
    env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Prints text to stdout.
pub(crate) fn print_text(text: &str) -> Result<(), CliError> {
    print_more(text).map(drop)
}

/// Prints text to stdout. Returns whether anybody reads it.
pub(crate) fn print_more(text: &str) -> Result<bool, CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(source) => Err(CliError::System { context: "writing the output", source }),
    }
}

/// Prints a message on stderr.
pub(crate) fn talk(text: &str) {
    // A closed stderr has no reader.
    drop(writeln!(io::stderr(), "{text}"));
}
