//! `weir run` of recorded traces, on volumes served in this process.

use super::counters::counters;
use crate::cli::RunArgs;
use crate::commands::page;
use crate::commands::sim::watch::{Drive, Ended, Watch};
use crate::commands::traces::{open_all, replay_options};
use crate::error::CliError;
use crate::input::{edition_of, read_layout, say_notes};
use crate::output;
use crate::progress::Progress;
use crate::signals::Signals;
use std::fs;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_observe::run::{Sample, Shape};
use weir_proto::Uri;
use weir_report::number::float;
use weir_report::run::VolumeReport;
use weir_report::status::VolumeStatus;
use weir_runner::{ReplayRun, ReplayRunOptions};
use weir_server::{Address, Listening, Options, Server};
use weir_sim::observing;
use weir_units::Instant;
use weir_workload::Device;

pub(super) fn run(args: &RunArgs, catalog: &Catalog) -> Result<u8, CliError> {
    check(args)?;
    let layout = read_layout(&args.layout, catalog)?;
    say_notes(&layout);
    check_data(args)?;
    let replay = replay_options(&args.replay, &args.map)?;
    let recordings = open_all(&args.jobs, &args.replay.part)?;
    let signals = Signals::catch()?;
    let folder = tempfile::tempdir()
        .map_err(|source| CliError::System { context: "making a folder for a socket", source })?;
    let options = Options {
        data: args.data.clone(),
        listen: vec![Address::Unix(folder.path().join("nbd"))],
        control: args.control.clone(),
        notices: Listening::with(|notice| output::talk(&format!("weir: {notice}"))),
        holder: Some("weir run".to_owned()),
        waiting: args.wait.waiting(),
        ..Options::default()
    };
    let server = Server::start(layout.clone(), edition_of(&layout, catalog)?, &options)?;
    let devices = devices(&layout, &server)?;
    let (seed, every) = (args.run.seed, args.run.every);
    let options = ReplayRunOptions { replay, devices: &devices, seed, every };
    let run = ReplayRun::open(recordings, &options)?;
    let mut wall = WallReplay { run, layout: &layout, server: &server };
    let watch = Watch::begin(args, &wall, &signals)?;
    wall.run.start();
    let ended = watch.drive(&mut wall, Progress::start(None, args.run.quiet));
    let (stopped, picture) = Ended::split(ended);
    if !matches!(stopped, Ok(None)) {
        // A trace that cannot be read further is the reason, or one that a signal left unread.
        let _ = wall.run.end_early();
    }
    let mut report = wall.run.report();
    report.run.volumes = volumes(&server, report.run.elapsed_s);
    report.run.notes.extend(match &stopped {
        Ok(stopped) => stopped.map(|stopped| stopped.to_string()),
        Err(error) => Some(format!("the run failed, and the report ends there: {error}")),
    });
    drop(wall);
    if report.requests > 0 || stopped.is_ok() {
        page::write_run(
            args.run.html.as_deref(),
            &report,
            Some((&layout, catalog)),
            picture.as_ref(),
        )?;
        output::print(&report, args.run.output.format())?;
    }
    server.stop()?;
    Ok(stopped?.map_or(0, |stopped| stopped.code))
}

/// Refuses options of databases.
fn check(args: &RunArgs) -> Result<(), CliError> {
    let options = [
        (args.recover_only, "--recover-only", "a trace leaves nothing to recover"),
        (args.acknowledged.is_some(), "--acknowledged", "a trace has no transactions"),
        (args.runtime.is_some(), "--runtime", "--from and --to select a window of a trace"),
    ];
    match options.iter().find(|(is_given, ..)| *is_given) {
        Some((_, option, instead)) => {
            Err(CliError::Refused(format!("{option} is for databases; {instead}")))
        }
        None => Ok(()),
    }
}

/// Refuses to write noise to volumes that are there, unless that is wanted.
fn check_data(args: &RunArgs) -> Result<(), CliError> {
    let Some(data) = args.data.as_ref().filter(|_| !args.overwrite) else { return Ok(()) };
    let has_volumes =
        fs::read_dir(data.join("volumes")).is_ok_and(|mut entries| entries.next().is_some());
    if has_volumes {
        return Err(CliError::Refused(format!(
            "--data {}: it holds volumes, and a replay writes noise to them; give another folder, or \
             --overwrite",
            data.display()
        )));
    }
    Ok(())
}

/// Returns the devices of the layout with the addresses at which they are served.
fn devices(layout: &Layout, server: &Server) -> Result<Vec<(Device, Uri)>, CliError> {
    if let Some(refused) = server.refused().first() {
        return Err(CliError::Refused(format!(
            "{} is not served: {}",
            refused.name, refused.reason
        )));
    }
    let uris = server.uris();
    let address = |device: Device| {
        let uri = uris.get(&device.name).and_then(|uris| uris.first()?.parse().ok());
        let missing = || CliError::Refused(format!("{} has no address", device.name));
        let uri: Uri = uri.ok_or_else(missing)?;
        Ok((device, uri))
    };
    weir_sim::devices(layout).into_iter().map(address).collect()
}

/// Reports the volumes of the server since its start.
fn volumes(server: &Server, seconds: f64) -> Vec<VolumeReport> {
    let per_s = |n: u64| if seconds > 0.0 { float(n) / seconds } else { 0.0 };
    let report = |host: &str, own: &VolumeStatus| VolumeReport {
        name: own.name.clone(),
        host: host.to_owned(),
        tier: own.tier.clone(),
        iops: per_s(own.reads + own.writes + own.discards),
        bytes_per_s: per_s(own.read_bytes + own.write_bytes),
        counted_iops: per_s(own.counted),
        hit_share: if own.reads > 0 { float(own.hits) / float(own.reads) } else { 0.0 },
        queue_depth: per_s(own.waits_ns.values().sum::<u64>() + own.medium_ns) / 1e9,
        waits_ns: own.waits_ns.clone(),
        medium_ns: own.medium_ns,
        writeback_iops: per_s(own.writebacks),
        writeback_bytes_per_s: per_s(own.written_back_bytes),
        writeback_waits_ns: own.writeback_waits_ns.clone(),
        ..VolumeReport::default()
    };
    let status = server.status();
    let hosts = status.hosts.iter();
    hosts.flat_map(|host| host.volumes.iter().map(|own| report(&host.name, own))).collect()
}

/// The replay behind the interface that the watch drives.
struct WallReplay<'a> {
    run: ReplayRun<'a>,
    layout: &'a Layout,
    server: &'a Server,
}

impl Drive for WallReplay<'_> {
    fn run_until(&mut self, until: Instant) -> Result<Option<Instant>, CliError> {
        Ok(self.run.run_until(until)?)
    }

    fn now(&self) -> Instant {
        self.run.now()
    }

    fn completed(&self) -> u64 {
        self.run.completed()
    }

    fn shape(&self) -> Shape {
        observing::shape(self.layout)
    }

    fn sample(&mut self) -> Sample {
        counters(&self.server.status(), self.layout)
    }
}
