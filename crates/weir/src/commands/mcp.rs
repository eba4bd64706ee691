//! `weir mcp`: the verbs as tools of assistants.

use crate::cli::McpArgs;
use crate::error::CliError;
use std::path::PathBuf;

#[cfg(feature = "mcp")]
pub(crate) fn run(args: &McpArgs, editions: &[PathBuf]) -> Result<u8, CliError> {
    use std::time::Duration;
    let failed = |context| move |source| CliError::System { context, source };
    let program = std::env::current_exe().map_err(failed("finding this program"))?;
    let mut arguments = Vec::new();
    for path in editions {
        // A call runs in a folder of its own.
        let failed = |source| CliError::Read { path: path.clone(), source };
        let real = std::fs::canonicalize(path).map_err(failed)?;
        arguments.extend(["--catalog".into(), real.into()]);
    }
    let limits = weir_mcp::Limits {
        time: Duration::from_nanos(args.timeout.nanos()),
        output: usize::try_from(args.max_output.get()).unwrap_or(usize::MAX),
        memory: args.max_memory.get(),
        file: args.max_file.get(),
        calls: args.calls,
        ..weir_mcp::Limits::default()
    };
    weir_mcp::serve(weir_mcp::Settings { program, arguments, roots: args.roots.clone(), limits })
        .map(|()| 0)
        .map_err(CliError::Mcp)
}

#[cfg(not(feature = "mcp"))]
pub(crate) fn run(_args: &McpArgs, _editions: &[PathBuf]) -> Result<u8, CliError> {
    Err(CliError::Refused(
        "mcp: this build of weir lacks the Model Context Protocol; build it with: \
         cargo build --release --features mcp"
            .to_owned(),
    ))
}
