//! The two output streams. A closed stdout is not an error: the reader has seen enough.

use crate::error::CliError;
use std::io::{self, ErrorKind, Write};
use weir_report::{Format, Report};

/// Prints a report to stdout.
pub(crate) fn print(report: &impl Report, format: Format) -> Result<(), CliError> {
    print_text(&report.render(format))
}

/// Prints text to stdout.
pub(crate) fn print_text(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::System { context: "writing the output", source: error })
        }
        _ => Ok(()),
    }
}

/// Prints a message on stderr.
pub(crate) fn talk(text: &str) {
    // A closed stderr has no reader.
    drop(writeln!(io::stderr(), "{text}"));
}
