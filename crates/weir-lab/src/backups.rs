//! Backups in wall time: the engine of `weir backup run` on volumes that are served for the run.
//!
//! A source has the size for wall time, and a few bytes of each MiB are written, so that it is read
//! completely and takes little memory. SQL Server's time before the first transfer (`setup`) is
//! shortened like the size, and added to the measured time, so that the rate is comparable with
//! that of the whole.

use crate::error::LabError;
use crate::oltp::Databases;
use crate::options::wall_size;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_backup::format::{BackupId, Identity, Kind, Manifest, ManifestSource, frame_room};
use weir_backup::run::{Job, Source, run};
use weir_backup::target::{StripeSink, raw};
use weir_backup::{BackupError, Export};
use weir_client::Connection;
use weir_layout::Layout;
use weir_pipeline::{Description, PlaceAbout, Plan};
use weir_proto::Uri;
use weir_report::backup::BackupReport;
use weir_report::number::float;
use weir_report::oltp::OltpReport;
use weir_report::run::ClockName;
use weir_report::status::Status;
use weir_server::{Address, Server};
use weir_sim::{OltpOptions, OltpSimulation};
use weir_units::Instant;

const MIB: u64 = 1 << 20;
/// Bytes to write into each MiB of a source, so that the whole MiB is read.
const MARK: [u8; 512] = [1; 512];
/// Number of marks in flight.
const MARKS: usize = 64;
/// Room of a stripe beyond its frames.
const CLOSING: u64 = 4 << 20;
/// Waits bind if they are at least this share of the transfers' time.
const BINDS: f64 = 0.1;

/// Results of backups in wall time.
pub(crate) struct Measured {
    /// The measured backups.
    pub(crate) run: OltpReport,
    /// The same backups at the same size in virtual time.
    pub(crate) simulated: Vec<BackupReport>,
}

/// Runs the backups of a lab's run one after the other, each on its own server.
pub(crate) fn measure(own: &Databases<'_>) -> Result<Measured, LabError> {
    let size = wall_size(own.lab, own.options);
    let places = places(&own.layout);
    let about: Vec<PlaceAbout<'_>> = places.iter().map(|(name, own)| own.about(name)).collect();
    let (mut backups, mut simulated) = (Vec::new(), Vec::new());
    for backup in &own.backups {
        let backup = backup.clone().scaled(&about, size)?;
        let plan = backup.plan(&about)?;
        let seconds = float(backup.setup.nanos()) / 1e9;
        backups.push(with_setup(serve(own, &backup, &plan)?, seconds));
        simulated.push(simulate(own, backup)?);
    }
    let run = OltpReport {
        clock: ClockName::Wall,
        seed: own.options.seed,
        trace_hash: None,
        databases: Vec::new(),
        backups,
        costs: Vec::new(),
        notes: Vec::new(),
    };
    Ok(Measured { run, simulated })
}

/// The size of a place and the bytes of it in use.
struct Room(weir_units::Bytes, Option<weir_units::Bytes>);

impl Room {
    const fn about<'a>(&self, name: &'a str) -> PlaceAbout<'a> {
        PlaceAbout { name, size: self.0, used: self.1 }
    }
}

fn places(layout: &Layout) -> Vec<(String, Room)> {
    let places = layout.places().into_iter();
    places.map(|place| (place.name.clone(), Room(place.size, place.used))).collect()
}

fn simulate(own: &Databases<'_>, backup: Description) -> Result<BackupReport, LabError> {
    let backups = [backup];
    let options =
        OltpOptions { seed: own.options.seed, backups: &backups, ..OltpOptions::default() };
    let mut simulation = OltpSimulation::new(&own.layout, &[], &options)?;
    simulation.run_until(Instant::FAR);
    let report = simulation.report().backups.into_iter().next();
    report.ok_or_else(|| own.wrong(&"the simulation has no backup"))
}

/// Adds the time before the first transfer to a measured backup.
fn with_setup(mut report: BackupReport, seconds: f64) -> BackupReport {
    report.elapsed_s += seconds;
    report.mib_per_s = Some(float(report.bytes_read) / float(MIB) / report.elapsed_s);
    report
}

/// Serves the layout in memory, fills the sources, and runs the backup.
fn serve(own: &Databases<'_>, backup: &Description, plan: &Plan) -> Result<BackupReport, LabError> {
    let folder = tempfile::tempdir().map_err(LabError::Temp)?;
    let socket = Address::Unix(folder.path().join("nbd"));
    let serving = weir_server::Options { listen: vec![socket], ..Default::default() };
    let server = Server::start(own.layout.clone(), own.edition()?, &serving)?;
    let report = back_up(own, backup, plan, &server);
    server.stop()?;
    report
}

fn back_up(
    own: &Databases<'_>,
    backup: &Description,
    plan: &Plan,
    server: &Server,
) -> Result<BackupReport, LabError> {
    let uris = server.uris();
    let names: Vec<String> = places(&own.layout).into_iter().map(|(name, _)| name).collect();
    let uri = |place: u32| -> Result<(Uri, &str), LabError> {
        let name = names[place as usize].as_str();
        let uri = uris
            .get(name)
            .and_then(|uris| uris.first())
            .ok_or_else(|| own.wrong(&format!("{name:?} is not served")))?;
        Ok((uri.parse().map_err(|error| own.wrong(&error))?, name))
    };
    let mut lengths: BTreeMap<u32, u64> = BTreeMap::new();
    for source in &plan.sources {
        let end = source.ranges.iter().map(|range| range.end).max().unwrap_or(0);
        let length = lengths.entry(source.place).or_default();
        *length = end.max(*length);
    }
    let mut sources = Vec::new();
    for (place, length) in lengths {
        let (uri, name) = uri(place)?;
        fill(&uri, length)?;
        let about = ManifestSource {
            name: name.to_owned(),
            size: length,
            role: None,
            tier: None,
            attributes: BTreeMap::new(),
            raw_bytes: length,
        };
        sources.push(Source::new(uri, about, None));
    }
    let created_unix_ms = weir_wall::calendar() / 1_000_000;
    let identity = Identity {
        id: BackupId::new(created_unix_ms).map_err(BackupError::from)?,
        name: backup.name(),
        kind: Kind::CopyOnly,
        base: None,
        stripes: u8::try_from(plan.stripes.len()).unwrap_or(u8::MAX),
        created_unix_ms,
        encryption: None,
    };
    let targets =
        plan.stripes.iter().map(|(place, _)| uri(*place)).collect::<Result<Vec<_>, _>>()?;
    let before = server.status();
    let job = Job {
        stripes: stripes(&identity, plan, &targets)?,
        targets: targets.iter().map(|(_, name)| (*name).to_owned()).collect(),
        manifest: Manifest::new(&identity, "weir lab".to_owned()),
        identity,
        key: None,
        compression: None,
        sources,
        bytes: plan.bytes(),
        buffers: plan.buffers,
        block: MIB,
        encoders: 1,
        limit: None,
    };
    let stop = &own.options.stop;
    let made = run(job, &mut |_| !stop.load(Ordering::Relaxed));
    let mut report = made?.report;
    report.binding_limit = binding(&before, &server.status(), &report);
    Ok(report)
}

/// Reserves the stripes on their targets.
fn stripes(
    identity: &Identity,
    plan: &Plan,
    targets: &[(Uri, &str)],
) -> Result<Vec<Arc<dyn StripeSink>>, LabError> {
    let transfer = plan.buffers.max_transfer.get();
    let frame = frame_room(usize::try_from(transfer).unwrap_or(usize::MAX)) as u64;
    let frames = plan.bytes().div_ceil(transfer).div_ceil(targets.len() as u64) + 1;
    let room = raw::Room { stripe: frames * frame + CLOSING, may_be_less: false };
    let mut made: BTreeMap<u8, Arc<dyn StripeSink>> = BTreeMap::new();
    for (at, (uri, name)) in targets.iter().enumerate() {
        if targets[..at].iter().any(|(_, before)| before == name) {
            continue;
        }
        let numbers = (0..).zip(targets).filter(|(_, (_, own))| own == name);
        let numbers: Vec<u8> = numbers.map(|(number, _)| number).collect();
        let export = Export::new(*name, uri.clone());
        let reserved = raw::reserve(&export, identity, &numbers, room)?;
        for (number, stripe) in numbers.into_iter().zip(reserved) {
            made.insert(number, Arc::new(stripe));
        }
    }
    Ok(made.into_values().collect())
}

/// Writes into each MiB of an export, up to `length`.
fn fill(uri: &Uri, length: u64) -> Result<(), LabError> {
    let mut connection = Connection::open(uri)?;
    let mut refused = None;
    for offset in (0..length).step_by(1 << 20) {
        connection.queue_write(offset, offset, &MARK, false)?;
        while connection.in_flight() >= MARKS {
            connection.flush_out()?;
            connection.receive(|_, answer| refused = answer.err().or(refused))?;
        }
    }
    while connection.in_flight() > 0 {
        connection.flush_out()?;
        connection.receive(|_, answer| refused = answer.err().or(refused))?;
    }
    match refused {
        Some(errno) => Err(LabError::Fill { export: uri.to_string(), errno: format!("{errno:?}") }),
        None => Ok(connection.close()?),
    }
}

/// Returns the limit with the longest waits during a backup; `None` without waits.
fn binding(before: &Status, after: &Status, report: &BackupReport) -> Option<String> {
    let mut waits: BTreeMap<&str, u64> = BTreeMap::new();
    let volumes = |status: &'_ Status| -> Vec<(String, BTreeMap<String, u64>)> {
        let volumes = status.hosts.iter().flat_map(|host| &host.volumes);
        volumes.map(|volume| (volume.name.clone(), volume.waits_ns.clone())).collect()
    };
    let (before, after) = (volumes(before), volumes(after));
    for (name, own) in &after {
        let earlier = before.iter().find(|(before, _)| before == name).map(|(_, waits)| waits);
        for (cap, nanos) in own {
            let earlier = earlier.and_then(|waits| waits.get(cap)).copied().unwrap_or(0);
            *waits.entry(cap).or_default() += nanos.saturating_sub(earlier);
        }
    }
    let took = report.places.iter().map(|own| own.latency_mean_ns * float(own.transfers));
    let (took, waited): (f64, u64) = (took.sum(), waits.values().sum());
    let longest = waits.into_iter().max_by_key(|(_, nanos)| *nanos);
    longest.filter(|_| float(waited) >= took * BINDS).map(|(cap, _)| cap.to_owned())
}

impl From<BackupError> for LabError {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Interrupted => Self::Interrupted,
            error => Self::Archive(Box::new(error)),
        }
    }
}
