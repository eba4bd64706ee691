//! `weir observe --sqlserver URL --every 1s --for 30m --out FILE`: record running systems.

use super::mirror::Mirror;
use crate::cli::ObserveLiveArgs;
use crate::error::CliError;
use crate::output;
use crate::progress::Live as Progress;
use crate::signals::Signals;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use weir_import::live::Feed;
use weir_live::{Credentials, Diskstats, LiveError, Recording, System, Ticks, Watcher};
use weir_observe::{Contents, Header, Source, SourceKind};
use weir_units::Instant;
use weir_wall::{Clock, calendar};
use weir_web::Bound;

pub(super) fn run(args: &ObserveLiveArgs) -> Result<u8, CliError> {
    let Some(out) = &args.out else { return Err(refused("--out FILE is missing")) };
    let mut systems = systems(args)?;
    if systems.is_empty() {
        return Err(refused("name a system: --sqlserver URL, --postgres URL or --diskstats"));
    }
    let signals = Signals::catch()?;
    let Some(greeting) = weir_live::connect(&mut systems, || signals.code().is_some())? else {
        output::talk("weir: interrupted before the first sample");
        return Ok(signals.code().unwrap_or(0));
    };
    let clock = Clock::start();
    let kind = SourceKind::Other("live".to_owned());
    let by = concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned();
    let about = greeting.about.into_iter().collect();
    let header = Header {
        start_unix_ns: i64::try_from(calendar()).ok(),
        interval_ns: Some(args.every.nanos()),
        ..Header::new(Source { kind, by, about })
    };
    let web = args.web.as_ref().map(|address| Bound::new(address, args.web_remote)).transpose()?;
    let mirror = Arc::new(Mirror::default());
    // It lasts as long as the recording.
    let _endpoint = web.map(|web| mirror.serve(web, args.every)).transpose()?;
    let file =
        File::create(out).map_err(|source| CliError::write(out, source)).map(BufWriter::new)?;
    let failed = |error| match error {
        LiveError::Write(source) => CliError::Observe { path: out.clone(), source },
        error => CliError::Live(error),
    };
    let progress = Progress::start(args.duration, args.quiet);
    let mut terminal = Terminal { progress, signals: &signals, mirror: &mirror };
    let mut recording =
        Recording::start(file, &header, &greeting.notes, &mut terminal).map_err(failed)?;
    let ticks =
        Ticks { clock, every: args.every, until: args.duration.map(|time| Instant::ZERO + time) };
    let result = recording.run(systems, ticks, &mut terminal);
    let interrupted = signals.code().filter(|_| args.duration.is_some());
    let is_complete = result.is_ok() && interrupted.is_none();
    let mut finished = recording.finish(is_complete).map_err(failed)?;
    let synced = finished.out.flush().and_then(|()| finished.out.get_ref().sync_all());
    synced.map_err(|source| CliError::write(out, source))?;
    drop(terminal);
    finished.notes.iter().for_each(|note| output::talk(note));
    let counts = finished.counts;
    output::print_text(&format!(
        "{}: samples: {}, entities: {}, series: {}; {}\n",
        out.display(),
        counts.samples,
        counts.entities,
        counts.series,
        if is_complete { "complete" } else { "incomplete" },
    ))?;
    result.map_err(failed)?;
    Ok(interrupted.unwrap_or(0))
}

/// The terminal of a recording: notes and progress on stderr, Ctrl-C to stop.
struct Terminal<'a> {
    progress: Progress,
    signals: &'a Signals,
    mirror: &'a Mirror,
}

impl Watcher for Terminal<'_> {
    fn note(&mut self, text: &str) {
        self.progress.aside(|| output::talk(&format!("weir: {text}")));
    }

    fn progress(&mut self, at: Instant, samples: u64, missed: u64) {
        self.progress.at(at, samples, missed);
    }

    fn sample(&mut self, contents: &Contents, at: Instant, row: &[Option<i64>]) {
        self.mirror.take(contents, at, row);
    }

    fn should_stop(&self) -> bool {
        self.signals.code().is_some()
    }
}

/// Builds a client for each system that the arguments name.
fn systems(args: &ObserveLiveArgs) -> Result<Vec<System>, CliError> {
    if args.password_file.is_some() && (args.sqlserver.is_some() == args.postgres.is_some()) {
        return Err(refused(match args.sqlserver {
            Some(_) => {
                "--password-file applies to one server, and there are two; give their passwords in \
                 WEIR_SQLSERVER_PASSWORD and WEIR_POSTGRES_PASSWORD"
            }
            None => "--password-file needs --sqlserver or --postgres",
        }));
    }
    let credentials = Credentials {
        password_file: args.password_file.clone(),
        token_file: args.token_file.clone(),
    };
    let mut systems = Vec::new();
    if let Some(url) = &args.sqlserver {
        systems.push(sqlserver(url, &credentials)?);
    }
    if let Some(url) = &args.postgres {
        systems.push(postgres(url, &credentials)?);
    }
    if let Some(path) = &args.diskstats {
        systems.push(System::new(Feed::diskstats("diskstats"), Box::new(Diskstats::new(path))));
    }
    Ok(systems)
}

#[cfg(feature = "sqlserver")]
fn sqlserver(url: &str, credentials: &Credentials) -> Result<System, CliError> {
    let server = weir_live::SqlServer::new(url, credentials)?;
    Ok(System::new(Feed::sqlserver("sqlserver", server.host()), Box::new(server)))
}

#[cfg(not(feature = "sqlserver"))]
fn sqlserver(_url: &str, _credentials: &Credentials) -> Result<System, CliError> {
    Err(not_built("sqlserver"))
}

#[cfg(feature = "postgres")]
fn postgres(url: &str, credentials: &Credentials) -> Result<System, CliError> {
    let server = weir_live::Postgres::new(url, credentials)?;
    Ok(System::new(Feed::postgres("postgres", server.host()), Box::new(server)))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_url: &str, _credentials: &Credentials) -> Result<System, CliError> {
    Err(not_built("postgres"))
}

#[cfg(not(all(feature = "sqlserver", feature = "postgres")))]
fn not_built(feature: &str) -> CliError {
    refused(&format!(
        "--{feature}: this build of weir lacks the client; build it with: \
         cargo build --release --features {feature}"
    ))
}

fn refused(reason: &str) -> CliError {
    CliError::Refused(reason.to_owned())
}
