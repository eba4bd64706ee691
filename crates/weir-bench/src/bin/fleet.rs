//! Writes a synthetic fleet for `weir diagnose --fleet`: database servers with ten files each and a
//! day of samples at 60 s.
//!
//! ```text
//! cargo run --release -p weir-bench --bin fleet -- SERVERS DIR
//! cargo run --release -p weir-bench --features parquet --bin fleet -- SERVERS DIR --parquet
//! ```

use std::env;
use std::path::Path;
use std::process::ExitCode;
use weir_fleet::FleetError;
use weir_fleet::example::Example;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (servers, folder, is_parquet) = match args[..] {
        [servers, folder] => (servers, folder, false),
        [servers, folder, "--parquet"] => (servers, folder, true),
        _ => return usage(),
    };
    let Ok(servers) = servers.parse() else { return usage() };
    match write(&Example::day(servers), Path::new(folder), is_parquet) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(3)
        }
    }
}

#[cfg(feature = "parquet")]
fn write(fleet: &Example, folder: &Path, is_parquet: bool) -> Result<(), FleetError> {
    if is_parquet { fleet.write_tables(folder) } else { fleet.write(folder) }
}

#[cfg(not(feature = "parquet"))]
fn write(fleet: &Example, folder: &Path, is_parquet: bool) -> Result<(), FleetError> {
    if is_parquet {
        let reason = "this build lacks Parquet; build it with --features parquet".to_owned();
        return Err(FleetError::Fleet { path: folder.to_owned(), reason });
    }
    fleet.write(folder)
}

fn usage() -> ExitCode {
    say("usage: fleet SERVERS DIR [--parquet]");
    ExitCode::from(2)
}

#[expect(clippy::print_stderr, reason = "a program for developers")]
fn say(text: &str) {
    eprintln!("fleet: {text}");
}
