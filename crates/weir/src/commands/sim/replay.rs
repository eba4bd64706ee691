//! `weir sim` of recorded traces.

use super::watch::{Drive, Ended, Watch};
use crate::cli::SimArgs;
use crate::commands::page;
use crate::commands::traces::{open_all, replay_options};
use crate::error::CliError;
use crate::input::read_layout;
use crate::output;
use crate::progress::Progress;
use crate::signals::Signals;
use weir_catalog::Catalog;
use weir_observe::run::{Sample, Shape};
use weir_sim::checks::check_warm_replay;
use weir_sim::{ReplaySimOptions, ReplaySimulation};
use weir_units::Instant;

pub(super) fn run(args: &SimArgs, catalog: &Catalog) -> Result<u8, CliError> {
    check_options(args)?;
    let layout = read_layout(&args.layout, catalog)?;
    check_warm_replay("--warm", &args.warm, &layout).map_err(CliError::Refused)?;
    let options = ReplaySimOptions {
        replay: replay_options(&args.replay, &args.map)?,
        warm: args.warm.clone(),
        every: args.run.every,
    };
    let recordings = open_all(&args.jobs, &args.replay.part)?;
    let mut simulation = ReplaySimulation::new(&layout, recordings, &options)?;
    let signals = Signals::catch()?;
    let watch = Watch::begin(args, &simulation, &signals)?;
    let Ended { stopped, picture } =
        watch.drive(&mut simulation, Progress::start(None, args.run.quiet))?;
    if stopped.is_some() {
        simulation.end_early()?;
    }
    let mut report = simulation.report(args.run.seed);
    if simulation.completed() == 0 && stopped.is_none() {
        // A trace that was cut off says so in a note.
        let reasons = report.run.notes.iter().map(|note| format!("; {note}"));
        return Err(CliError::Refused(format!(
            "there are no requests to replay{}; another --from, --to, --sample or --device may \
             select some",
            reasons.collect::<String>()
        )));
    }
    report.run.notes.extend(stopped.map(|stopped| stopped.to_string()));
    page::write_run(args.run.html.as_deref(), &report, Some((&layout, catalog)), picture.as_ref())?;
    output::print(&report, args.run.output.format())?;
    Ok(stopped.map_or(0, |stopped| stopped.code))
}

impl Drive for ReplaySimulation<'_> {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, CliError> {
        Ok(Self::run_until(self, until)?)
    }

    fn now(&self) -> Instant {
        Self::now(self)
    }

    fn completed(&self) -> u64 {
        Self::completed(self)
    }

    fn shape(&self) -> Shape {
        Self::shape(self)
    }

    fn sample(&mut self) -> Sample {
        Self::sample(self)
    }
}

/// Refuses options that do not apply to traces.
fn check_options(args: &SimArgs) -> Result<(), CliError> {
    let refuse = |option: &str, instead: &str| {
        Err(CliError::Refused(format!("{option} is for jobs; {instead}")))
    };
    if args.size.is_some() {
        return refuse("--size", "a trace has its own offsets");
    }
    if args.runtime.is_some() {
        return refuse("--runtime", "--from and --to select a window of a trace");
    }
    if args.crash.is_some() {
        return refuse("--crash", "a replay does not crash hosts");
    }
    Ok(())
}
