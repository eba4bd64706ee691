//! `weir lab`.

use crate::cli::{ClockArg, DriverArg, LabCommand, LabRunArgs};
use crate::error::{CliError, FAILED, NO};
use crate::output;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_catalog::Catalog;
use weir_lab::{Clocks, Driver, Options};
use weir_report::cells;
use weir_report::lab::{LabReport, LabReports};
use weir_report::number::grouped;
use weir_report::table::{Listing, Table};

pub(crate) fn run(command: &LabCommand, catalog: &Catalog) -> Result<u8, CliError> {
    match command {
        LabCommand::List { output } => {
            let mut table = Table::new("", &["lab", "article", ">figures", "what it shows"]);
            for lab in weir_lab::all()? {
                let figures = grouped(lab.file.figure.len() as u64);
                table.row(cells![lab.name, lab.file.article, figures, lab.file.title]);
            }
            output::print(&Listing(vec![table]), output.format())?;
            Ok(0)
        }
        LabCommand::Run(args) => rerun(args, catalog),
    }
}

/// Set by the first Ctrl-C or SIGTERM, so that what is being served is stopped in
/// order; the second ends the program at once.
fn interruptible() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, i32::from(FAILED), Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|source| CliError::System { context: "catching signals", source })?;
    }
    Ok(stop)
}

fn rerun(args: &LabRunArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let labs = if args.all {
        weir_lab::all()?
    } else {
        args.names.iter().map(|name| weir_lab::find(name)).collect::<Result<Vec<_>, _>>()?
    };
    let options = Options {
        clocks: match args.clock {
            ClockArg::Virtual => Clocks::Virtual,
            ClockArg::Wall => Clocks::Wall,
            ClockArg::Both => Clocks::Both,
        },
        driver: match args.driver {
            DriverArg::Weir => Driver::Weir,
            DriverArg::Fio => Driver::Fio,
        },
        size: args.size,
        runtime: args.runtime,
        seed: args.seed,
        stop: interruptible()?,
    };
    let mut reports = Vec::new();
    for lab in &labs {
        reports.push(weir_lab::run(lab, catalog, &options, &mut output::talk)?);
    }
    let holds = reports.iter().all(LabReport::holds);
    output::print(&LabReports(reports), args.output.format())?;
    Ok(if holds { 0 } else { NO })
}
