//! `weir lab`.

use super::page;
use crate::cli::{ClockArg, DriverArg, LabCommand, LabRunArgs};
use crate::error::{CliError, NO};
use crate::output;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_catalog::Catalog;
use weir_lab::{Clocks, Driver, Lab, LabError, Options};
use weir_report::cells;
use weir_report::number::grouped;
use weir_report::table::{Listing, Table};

pub(crate) fn run(command: &LabCommand, catalog: &Catalog) -> Result<u8, CliError> {
    match command {
        LabCommand::List { output } => {
            let mut table = Table::new("", &["lab", "article", ">figures", "what it shows"]);
            for lab in weir_lab::all()? {
                let figures = grouped(lab.figures() as u64);
                table.row(cells![lab.name, lab.file.article, figures, lab.file.title]);
            }
            output::print(&Listing(vec![table]), output.format())?;
            Ok(0)
        }
        LabCommand::Run(args) => rerun(args, catalog),
    }
}

/// Flags that Ctrl-C and SIGTERM set.
struct Ending {
    /// Set by either signal, so that servers shut down in order. Further signals change nothing,
    /// because some programs send two at once.
    stop: Arc<AtomicBool>,
    /// Set by SIGTERM.
    terminated: Arc<AtomicBool>,
}

impl Ending {
    fn catch() -> Result<Self, CliError> {
        let ending = Self { stop: Arc::default(), terminated: Arc::default() };
        let stop = &ending.stop;
        for (signal, own) in [(SIGTERM, &ending.terminated), (SIGINT, stop), (SIGTERM, stop)] {
            flag::register(signal, Arc::clone(own))
                .map_err(|source| CliError::System { context: "catching signals", source })?;
        }
        Ok(ending)
    }

    /// Returns the error of an interrupted run.
    fn error(&self, error: LabError) -> CliError {
        let signal = if self.terminated.load(Ordering::Relaxed) { SIGTERM } else { SIGINT };
        match error {
            LabError::Interrupted => CliError::Ended(signal),
            error => error.into(),
        }
    }
}

fn chosen(args: &LabRunArgs) -> Result<Vec<Lab>, CliError> {
    let all = weir_lab::all()?;
    if args.all {
        return Ok(all);
    }
    if args.names.is_empty() {
        let known: Vec<&str> = all.iter().map(|lab| lab.name.as_str()).collect();
        let known = known.join(", ");
        return Err(CliError::Refused(format!(
            "no lab was named: give one or more, or --all; there are: {known}"
        )));
    }
    Ok(args.names.iter().map(|name| weir_lab::find(name)).collect::<Result<_, _>>()?)
}

/// Rejects options that have no effect without a run in wall time.
fn check_clock(args: &LabRunArgs) -> Result<(), CliError> {
    let for_wall = [
        ("--with", args.driver.is_some()),
        ("--size", args.size.is_some()),
        ("--runtime", args.runtime.is_some()),
        ("--tries", args.tries.is_some()),
    ];
    let given: Vec<&str> = for_wall.iter().filter(|(_, given)| *given).map(|(o, _)| *o).collect();
    if !matches!(args.clock, ClockArg::Virtual) || given.is_empty() {
        return Ok(());
    }
    Err(CliError::Refused(format!(
        "--clock virtual: only runs in wall time use {}; leave it out, or use --clock wall or both",
        given.join(", ")
    )))
}

fn rerun(args: &LabRunArgs, catalog: &Catalog) -> Result<u8, CliError> {
    check_clock(args)?;
    let labs = chosen(args)?;
    let ending = Ending::catch()?;
    let usual = Options::default();
    let options = Options {
        clocks: match args.clock {
            ClockArg::Virtual => Clocks::Virtual,
            ClockArg::Wall => Clocks::Wall,
            ClockArg::Both => Clocks::Both,
        },
        driver: match args.driver {
            None => usual.driver,
            Some(DriverArg::Weir) => Driver::Weir,
            Some(DriverArg::Fio) => Driver::Fio,
        },
        size: args.size.unwrap_or(usual.size),
        runtime: args.runtime.unwrap_or(usual.runtime),
        tries: args.tries.unwrap_or(usual.tries),
        seed: args.seed,
        stop: Arc::clone(&ending.stop),
    };
    let reports = weir_lab::run(&labs, catalog, &options, &mut output::talk)
        .map_err(|error| ending.error(error))?;
    if let Some(path) = &args.html {
        page::write(path, &reports.page())?;
    }
    if let Some(path) = &args.plot {
        fs::write(path, reports.plot()?).map_err(|source| CliError::write(path, source))?;
    }
    output::print(&reports, args.output.format())?;
    Ok(if reports.hold() { 0 } else { NO })
}
