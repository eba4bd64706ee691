//! Arguments of the commands that watch a running server.

use super::{ControlArgs, OutputArgs, some_time};
use clap::Args;
use std::path::{Path, PathBuf};
use weir_units::Span;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Control socket of the server, instead of --control.
    #[arg(value_name = "SOCKET")]
    socket: Option<PathBuf>,
    /// Read new figures at this interval, from 100ms to 1h, for example 500ms or 5s.
    #[arg(
        long,
        default_value = "1s",
        value_name = "TIME",
        value_parser = some_time
    )]
    pub(crate) interval: Span,
    #[command(flatten)]
    control: ControlArgs,
}

impl TopArgs {
    pub(crate) fn control(&self) -> &Path {
        self.socket.as_ref().unwrap_or(&self.control.control)
    }
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Measure rates over this time, at most 1h, for example 500ms or 5s.
    #[arg(
        long,
        default_value = "1s",
        value_name = "TIME",
        value_parser = some_time
    )]
    pub(crate) interval: Span,
    /// Report again and again, at this interval [default: 1s], until Ctrl-C or until the server
    /// stops. A terminal shows the newest report; otherwise each report follows the line of its
    /// time, or with -o json it is one line.
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        default_missing_value = "1s",
        value_parser = some_time,
        conflicts_with = "interval"
    )]
    pub(crate) watch: Option<Span>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
