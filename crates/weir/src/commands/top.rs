//! `weir top`.

use crate::cli::TopArgs;
use crate::error::CliError;
use crate::output;
use std::io::{self, IsTerminal};
use std::time::Duration;
use weir_top::Options;
use weir_units::Span;

pub(crate) fn run(args: &TopArgs) -> Result<u8, CliError> {
    if args.interval < Span::from_millis(100) || args.interval > Span::from_secs(3_600) {
        return Err(CliError::Refused(format!(
            "--interval {}: must be from 100ms to 1h",
            args.interval
        )));
    }
    let missing = match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
        (_, false) => Some("stdout is not a terminal"),
        (false, _) => Some("stdin is not a terminal, so no keys can be read"),
        _ if output::is_dumb() => Some("TERM is dumb, so the cursor cannot be moved"),
        _ => None,
    };
    if let Some(reason) = missing {
        return Err(CliError::Refused(format!("{reason}; use weir status --watch")));
    }
    weir_top::run(&Options {
        control: args.control().to_owned(),
        every: Duration::from_nanos(args.interval.nanos()),
        is_plain: output::is_plain(),
    })?;
    Ok(0)
}
