//! `weir serve`.

use super::{read_layout, say_notes};
use crate::cli::ServeArgs;
use crate::error::{CliError, FAILED};
use crate::output;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_catalog::Catalog;
use weir_server::{Options, Server};

pub(crate) fn run(args: &ServeArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let layout = read_layout(&args.layout, catalog)?;
    say_notes(&layout);
    // Caught from here on, so that a signal during the start is not lost.
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|source| CliError::System { context: "catching signals", source })?;
    let edition = match &layout.edition {
        Some(name) => Some(catalog.edition(name)?),
        None => None,
    };
    let options = Options {
        data: args.data.clone(),
        listen: args.nbd.clone(),
        control: Some(args.control.path()),
    };
    let server = Server::start(layout, edition, &options)?;
    for refused in server.refused() {
        output::talk(&format!("weir: not served: {}: {}", refused.name, refused.reason));
    }
    for (name, uris) in server.uris() {
        for uri in uris {
            output::print_text(&format!("{name} {uri}\n"))?;
        }
    }
    if args.data.is_none() {
        output::talk("data is in memory and gone at the end; keep it with --data DIR");
    }
    output::talk(&format!("ready; control socket {}", args.control.path().display()));
    signals.forever().next();
    // The next one ends it at once: a medium may hang.
    let impatient = Arc::new(AtomicBool::new(true));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, i32::from(FAILED), Arc::clone(&impatient))
            .map_err(|source| CliError::System { context: "catching signals", source })?;
    }
    output::talk("stopping: completing what is under way; once more to end at once");
    server.stop()?;
    Ok(0)
}
