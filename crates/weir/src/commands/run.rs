//! `weir run`: a database workload in wall time, on volumes served in this process.

mod counters;
mod owner;
mod replay;

use super::page;
use super::sim::watch::{Drive, Ended, Watch, Watched};
use super::web::Web;
use crate::cli::RunArgs;
use crate::error::{CliError, FAILED};
use crate::input::{edition_of, read, read_layout, say_notes};
use crate::output;
use crate::progress::Progress;
use crate::signals::Signals;
use counters::{counters, limits_now};
use owner::{Geometry, Owner};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_catalog::Catalog;
use weir_core::VolumeId;
use weir_layout::Layout;
use weir_layout::files::Place;
use weir_observe::run::{DatabaseCounters, Sample, Shape};
use weir_oltp::model::PAGE;
use weir_oltp::{Description, FileAbout};
use weir_report::number::{float, grouped, rate};
use weir_report::recovery::RecoveryReport;
use weir_runner::oltp::serving::served_files;
use weir_runner::{OltpOptions, OltpRun, OltpRunError, RunnerError, ServiceTimes};
use weir_server::{Address, Listening, Observer, Options, Server};
use weir_sim::observing::{self, DatabaseAbout};
use weir_units::{Instant, Span};

pub(crate) fn run(args: &RunArgs, catalog: &Catalog) -> Result<u8, CliError> {
    Watched::from(args).check()?;
    if super::traces::are_traces(&args.jobs)? {
        return replay::run(args, catalog);
    }
    let oltp = check(args)?;
    let layout = read_layout(&args.layout, catalog)?;
    say_notes(&layout);
    let text = read(oltp, "workload description")?;
    let mut description = Description::parse(&oltp.display().to_string(), &text)?;
    description.duration = args.runtime.unwrap_or(description.duration);
    // Reports a mismatch before anything is served.
    let places = layout.places();
    let files: Vec<FileAbout<'_>> = places.iter().map(weir_sim::about).collect();
    let model = description.model(&files, args.run.seed)?;
    weir_sim::check_databases(&layout, std::slice::from_ref(&description))?;
    if let Some(data) = &args.data {
        check_volumes(data, &layout, &model.files())?;
    }
    let web = Web::bind(&args.web, args.control.as_deref())?;
    let signals = Signals::catch()?;
    let folder = tempfile::tempdir()
        .map_err(|source| CliError::System { context: "making a folder for a socket", source })?;
    let edition = edition_of(&layout, catalog)?;
    let book = Arc::new(ServiceTimes::default());
    let options = Options {
        data: args.data.clone(),
        listen: vec![Address::Unix(folder.path().join("nbd"))],
        control: args.control.clone(),
        notices: Listening::with(|notice| output::talk(&format!("weir: {notice}"))),
        holder: Some("weir run".to_owned()),
        observer: Observer::with(book.writer()),
        waiting: args.wait.waiting(),
        ..Options::default()
    };
    let geometry = Geometry { layout: &layout, places: &places, model: &model };
    let find = |data: &Path| Owner::find(data, &description, &geometry);
    // A new folder has no records.
    let old = args.data.as_deref().filter(|data| data.exists());
    old.map(find).transpose()?;
    let server = Server::start(layout.clone(), edition, &options)?;
    let owner = args.data.as_deref().map(find).transpose()?;
    if let Some(owner) = &owner {
        if owner.is_known && log_is_gone(&layout, &server, &description) {
            output::talk(&format!(
                "weir: the database ran here before, and its log {:?} is empty: the log is lost",
                description.log_name()
            ));
            return Ok(1);
        }
        owner.keep()?;
    }
    let web = web.serve(&server.handle())?;
    let code = drive(args, (&layout, catalog), &description, &server, &signals, &book)?;
    drop(web);
    server.stop()?;
    Ok(code)
}

/// Returns whether the log's volume is empty and a data volume is not. The log is written ahead
/// of the pages, so such a database has lost its log.
fn log_is_gone(layout: &Layout, server: &Server, description: &Description) -> bool {
    let status = server.status();
    let used = |name: &str| {
        let places = layout.places();
        let place = places.iter().find(|place| place.name == name)?;
        let host = &layout.hosts[place.host];
        let export = host.exports.iter().find(|export| export.device == place.device)?;
        let volumes = export.volumes.iter().map(|id| host.volumes[id.0].name.as_str());
        let own: Vec<&str> = volumes.collect();
        let all = status.hosts.iter().flat_map(|host| &host.volumes);
        Some(all.filter(|v| own.contains(&v.name.as_str())).any(|v| v.allocated_bytes > 0))
    };
    let log = description.log_name();
    used(log) == Some(false)
        && description.file_names().any(|name| name != log && used(name) == Some(true))
}

/// Checks the options of a database, and returns its description.
fn check(args: &RunArgs) -> Result<&Path, CliError> {
    let [oltp] = args.jobs.as_slice() else {
        return Err(CliError::Refused(
            "weir run takes one OLTP description, or traces; give one description".to_owned(),
        ));
    };
    let map = (!args.map.is_empty()).then_some("--map");
    let overwrite = args.overwrite.then_some("--overwrite");
    let trace_option = map.or(overwrite).or_else(|| args.replay.given());
    if let Some(option) = trace_option {
        return Err(CliError::Refused(format!("{option} is for traces, and none is given")));
    }
    if oltp.extension().is_none_or(|end| end != "toml") {
        return Err(CliError::Refused(format!(
            "{}: weir run takes an OLTP description, a file that ends in .toml; serve the layout \
             with weir serve and run fio there",
            oltp.display()
        )));
    }
    if let Some(every) = args.run.every.filter(|every| *every < Span::from_millis(1)) {
        return Err(CliError::Refused(format!("--every {every}: must be at least 1 ms")));
    }
    if let Some(file) = args.data.as_ref().filter(|path| path.exists() && !path.is_dir()) {
        return Err(CliError::Refused(format!(
            "--data {}: is a file; give a folder, or a path where one can be created",
            file.display()
        )));
    }
    if let Some(data) = args.data.as_ref().filter(|_| args.recover_only) {
        let shown = data.display();
        if !data.exists() {
            return Err(CliError::Refused(format!("{shown}: there is no such folder")));
        }
        if !data.join("format").exists() {
            return Err(CliError::Refused(format!("{shown} holds no data of weir")));
        }
    }
    Ok(oltp)
}

/// Refuses a folder that has the log and lacks data: the server would create the missing volumes
/// empty, and the database would be lost. `files` are those of the model, the log last.
fn check_volumes(data: &Path, layout: &Layout, files: &[(u32, &str)]) -> Result<(), CliError> {
    let places = layout.places();
    let missing = |file: u32| {
        let place = &places[file as usize];
        let host = &layout.hosts[place.host];
        let mut exports = host.exports.iter();
        let export = exports.find(|export| export.device == place.device)?;
        let folder = |id: &VolumeId| data.join("volumes").join(&host.volumes[id.0].name);
        export.volumes.iter().map(folder).find(|folder| !folder.exists())
    };
    let has_log = files.last().is_some_and(|(log, _)| missing(*log).is_none());
    for (file, _) in files.iter().filter(|(_, role)| has_log && *role == "data") {
        if let Some(missing) = missing(*file) {
            return Err(CliError::Run(RunnerError::NotServed {
                file: places[*file as usize].name.clone(),
                reason: format!(
                    "{} is missing, but the log exists; restore it, or give another folder",
                    missing.display()
                ),
            }));
        }
    }
    Ok(())
}

/// Recovers the database and runs it. Returns the exit code.
fn drive(
    args: &RunArgs,
    (layout, catalog): (&Layout, &Catalog),
    description: &Description,
    server: &Server,
    signals: &Signals,
    book: &ServiceTimes,
) -> Result<u8, CliError> {
    let files = served_files(layout, &server.uris(), server.refused());
    let resize = |volume: &str, size| {
        let tiers = server.resize(volume, size).map_err(|error| error.to_string())?;
        Ok(tiers.before.zip(tiers.after))
    };
    let acknowledged = acknowledged(args, description);
    let options = OltpOptions {
        files: &files,
        seed: args.run.seed,
        every: args.run.every,
        acknowledged: acknowledged.as_deref(),
        is_stopped: Some(&|| signals.code().is_some()),
        service: Some(book),
        resize: Some(&resize),
    };
    let opened = match OltpRun::open(description, options) {
        Err(OltpRunError::Runner(RunnerError::RecoveryInterrupted)) => None,
        other => Some(other?),
    };
    let Some((run, recovery)) = opened.filter(|_| signals.code().is_none()) else {
        output::talk(&format!("weir: {}", RunnerError::RecoveryInterrupted));
        return Ok(signals.code().unwrap_or(FAILED));
    };
    if args.recover_only {
        output::print(&recovery, args.run.output.format())?;
        return Ok(0);
    }
    say_recovery(&recovery);
    let mut wall = WallRun { run, layout, places: &layout.places(), server };
    let watch = Watch::begin(args, &wall, signals)?;
    let length = description.ramp_time + description.duration;
    let ended = watch.drive(&mut wall, Progress::start(Some(length), args.run.quiet));
    let (stopped, picture) = Ended::split(ended);
    let mut report = wall.run.report();
    report.notes.extend(layout.hosts.iter().flat_map(|host| host.notes.clone()));
    report.notes.extend(match &stopped {
        Ok(stopped) => stopped.map(|stopped| stopped.to_string()),
        Err(error) => Some(format!("the run failed, and the report ends there: {error}")),
    });
    page::write_run(args.run.html.as_deref(), &report, Some((layout, catalog)), picture.as_ref())?;
    output::print(&report, args.run.output.format())?;
    let stopped = stopped?;
    Ok(stopped.map_or(0, |stopped| stopped.code))
}

/// Returns the file that records the newest acknowledged transaction, by default beside the data.
/// Its name contains that of the log, so that two databases can share a folder.
fn acknowledged(args: &RunArgs, description: &Description) -> Option<PathBuf> {
    let beside = |data: &PathBuf| data.join(format!("acknowledged-{}", description.log_name()));
    args.acknowledged.clone().or_else(|| args.data.as_ref().map(beside))
}

fn proved(recovery: &RecoveryReport) -> String {
    match recovery.acknowledged {
        Some(_) => "; nothing that was acknowledged is lost".to_owned(),
        None => recovery.notes.iter().map(|note| format!("; {note}")).collect(),
    }
}

fn say_recovery(recovery: &RecoveryReport) {
    if !recovery.is_new {
        let proved = proved(recovery);
        output::talk(&format!(
            "recovered in {} s: {} transactions replayed from {} MiB of log, {} of {} pages \
             rebuilt{proved}",
            rate(recovery.seconds),
            grouped(recovery.transactions),
            rate(float(recovery.log_bytes) / f64::from(1 << 20)),
            grouped(recovery.pages_rebuilt),
            grouped(recovery.pages_read),
        ));
    }
}

/// The run behind the interface that the watch drives.
struct WallRun<'a> {
    run: OltpRun<'a>,
    layout: &'a Layout,
    places: &'a [Place],
    server: &'a Server,
}

impl Drive for WallRun<'_> {
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
        let mut shape = observing::shape(self.layout);
        let tally = self.run.tally();
        let files: Vec<_> = self.run.tallies().map(|(place, role, ..)| (place, role)).collect();
        let about = DatabaseAbout {
            name: tally.name(),
            mix: tally.mix(),
            users: tally.users(),
            vcores: tally.vcores(),
            files: &files,
        };
        observing::declare_database(&mut shape, self.layout, self.places, &about);
        shape
    }

    fn sample(&mut self) -> Sample {
        let status = self.server.status();
        let database = self.run.database();
        let mut sample = counters(&status, self.layout);
        sample.databases.push(DatabaseCounters {
            buffer_bytes: (database.pages_in_memory() as u64).saturating_mul(PAGE),
            dirty_bytes: database.pages_dirty().saturating_mul(PAGE),
            ..observing::database_counters(&self.run.tally().counters(database))
        });
        let volumes = || status.hosts.iter().flat_map(|host| &host.volumes);
        for (place, _, tally, size) in self.run.tallies() {
            let name = &self.places[place as usize].name;
            let status = volumes().find(|volume| volume.name == *name);
            let limits = status.map(limits_now).unwrap_or_default();
            sample.files.push(observing::file_counters(tally, size, limits));
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::error::USAGE;
    use clap::Parser;
    use std::fs;

    const LAYOUT: &str = "[[volume]]\nname = \"data\"\nsize = \"8 MiB\"\nunlimited = true\n\
        [[volume]]\nname = \"log\"\nsize = \"1 MiB\"\nunlimited = true\n";

    #[test]
    fn a_recovery_of_what_is_not_there_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        let refused = |data: &Path| {
            let args = ["weir", "run", "l.toml", "o.toml", "--recover-only", "--data"];
            let args = args.map(std::ffi::OsString::from).into_iter().chain([data.into()]);
            let Command::Run(args) = Cli::parse_from(args).command else { panic!("it is run") };
            let error = run(&args, &Catalog::builtin()).unwrap_err();
            (error.to_string(), error.code())
        };
        let said = format!("{}: there is no such folder", none.display());
        assert_eq!(refused(&none), (said, USAGE));
        let said = format!("{} holds no data of weir", folder.path().display());
        assert_eq!(refused(folder.path()), (said, USAGE));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_log_without_its_data_is_told_and_nothing_made() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::parse("layout.toml", LAYOUT, &Catalog::builtin()).unwrap();
        let check = || check_volumes(folder.path(), &layout, &[(0, "data"), (1, "log")]);
        // A new folder has neither volume.
        check().unwrap();
        let volumes = folder.path().join("volumes");
        fs::create_dir_all(volumes.join("log")).unwrap();
        let error = check().unwrap_err();
        let said = format!(
            "database file \"data\" is not served: {} is missing, but the log exists; restore it, \
             or give another folder",
            volumes.join("data").display()
        );
        assert_eq!((error.to_string(), error.code()), (said, FAILED));
        assert!(!volumes.join("data").exists());
        fs::create_dir(volumes.join("data")).unwrap();
        check().unwrap();
    }

    #[test]
    fn the_message_of_a_recovery_claims_only_proved_facts() {
        let found = |acknowledged, notes: &[&str]| RecoveryReport {
            acknowledged,
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            ..RecoveryReport::default()
        };
        assert_eq!(proved(&found(Some(1), &[])), "; nothing that was acknowledged is lost");
        assert_eq!(proved(&found(None, &["no number"])), "; no number");
    }
}
