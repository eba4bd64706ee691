//! The two streams. Data that nobody reads any more is no error: the reader has
//! seen enough.

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

/// Says something to the person, on stderr.
pub(crate) fn talk(text: &str) {
    // Where there is no stderr, nobody listens.
    drop(writeln!(io::stderr(), "{text}"));
}
