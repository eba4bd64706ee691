//! `weir observe between`: the activity between two snapshots or two times.

use super::import::{clock_of, offset};
use super::snapshot::{names, path_of};
use super::source::{Source, offset_in};
use crate::cli::{ImportArgs, ObserveBetweenArgs};
use crate::error::{CliError, NO};
use crate::output;
use std::fs;
use std::path::{Path, PathBuf};
use weir_observe::between::{Between, Did, Pair, Stretch, Waited, Who};
use weir_observe::load::{Load, mean};
use weir_observe::moment::Clock;
use weir_observe::snapshot::Newest;
use weir_observe::waits::{category, is_background};
use weir_observe::when::{Extent, When};
use weir_observe::{EntityKind, Header, Observation, attribute};
use weir_report::between::{BetweenReport, FileStats, IoFigures, IoStats, MomentReport, WaitStats};
use weir_units::{Instant, Span};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
const GIB: f64 = 1024.0 * MIB;
/// Maximum number of names in a note.
const NAMED: usize = 5;

/// One end of the interval, as given on the command line.
struct End {
    text: String,
    path: PathBuf,
    /// The time after the @.
    time: Option<String>,
}

impl End {
    fn parse(text: &str, dir: &Path) -> Result<Self, CliError> {
        let end = |path: PathBuf, time: Option<&str>| {
            let time = time.map(str::to_owned);
            Ok(Self { text: text.to_owned(), path, time })
        };
        let file = Path::new(text);
        let snapshot = path_of(dir, text).ok().filter(|path| path.exists());
        match (snapshot, file.is_file()) {
            (Some(path), true) => Err(CliError::Refused(format!(
                "{text}: it is both a snapshot, {}, and a file; give a path, for example ./{text}",
                path.display()
            ))),
            (Some(path), false) => end(path, None),
            (None, true) => end(file.to_owned(), None),
            (None, false) => match text.rsplit_once('@') {
                Some((path, time)) if Path::new(path).exists() => end(path.into(), Some(time)),
                Some((name, _)) if path_of(dir, name).is_ok_and(|path| path.exists()) => {
                    Err(CliError::Refused(format!(
                        "{text}: a snapshot has only one time; give its name alone, {name}"
                    )))
                }
                // A pipe exists without being a regular file.
                _ if file.exists() => end(file.to_owned(), None),
                _ => Err(no_snapshot(text, dir)),
            },
        }
    }

    fn is_same_file(&self, other: &Self) -> bool {
        match (fs::canonicalize(&self.path), fs::canonicalize(&other.path)) {
            (Ok(one), Ok(two)) => one == two,
            _ => self.path == other.path,
        }
    }
}

fn no_snapshot(text: &str, dir: &Path) -> CliError {
    let there = names(dir).unwrap_or_default();
    let there = match there.is_empty() {
        true => "there are none".to_owned(),
        false => format!("there are: {}", there.join(", ")),
    };
    CliError::Refused(format!(
        "{text}: it is neither a snapshot in {} ({there}) nor a file; write a time as FILE@TIME",
        dir.display()
    ))
}

/// The open input of one end.
struct Opened {
    source: Source,
    header: Header,
    extent: Extent,
    /// The clock in which its times are read and written.
    clock: Clock,
}

impl Opened {
    fn new(end: &End, args: &ObserveBetweenArgs) -> Result<Self, CliError> {
        // Used if the input is not an observation.
        let clock = args.clock.clone();
        let reading = ImportArgs { kind: None, clock, ..ImportArgs::default() };
        let source = Source::any(std::slice::from_ref(&end.path), &reading)?;
        let (header, extent) = source.survey()?;
        let Some(extent) = extent else {
            return Err(CliError::Refused(format!("{}: it has no samples", end.text)));
        };
        let said = offset(args.clock.utc_offset.as_ref())?;
        let offset = said.or_else(|| offset_in(&header)).unwrap_or(0);
        let clock = Clock { offset, ..clock_of(&args.clock)? };
        Ok(Self { source, header, extent, clock })
    }

    /// Returns the time of an end, by default that of the newest sample.
    fn time(&self, end: &End) -> Result<Instant, CliError> {
        let Some(text) = &end.time else { return Ok(self.extent.last) };
        let when = When::parse(text, self.clock);
        let at = when.and_then(|when| when.resolve(&self.extent, self.clock.offset));
        at.map_err(|error| CliError::Refused(format!("{}: {error}", end.text)))
    }

    /// Returns the newest sample of each entity at the time of an end.
    fn snapshot(&self, end: &End) -> Result<Observation, CliError> {
        let until = self.time(end)?;
        let mut newest = Newest::new(&self.header);
        self.source.each(|at, row| {
            if at <= until {
                newest.sample(at, row);
            }
        })?;
        Ok(newest.into_observation())
    }

    fn moment(&self, end: &End, at: Instant) -> MomentReport {
        let is_dated = self.extent.start_unix_ns.is_some();
        let text = self.extent.written(at, self.clock.offset);
        // Without a date, the time since the start of the snapshot has no meaning.
        let taken = Some(text).filter(|_| is_dated || self.extent.first < self.extent.last);
        MomentReport { name: end.text.clone(), taken }
    }
}

pub(super) fn run(args: &ObserveBetweenArgs) -> Result<u8, CliError> {
    let (from, to) = (End::parse(&args.from, &args.dir)?, End::parse(&args.to, &args.dir)?);
    let opened = Opened::new(&from, args)?;
    let mut report = if from.is_same_file(&to) {
        if args.apart.is_some() {
            let file = from.path.display();
            return Err(CliError::Refused(format!(
                "--apart: both times are of {file}, so the time between them is known; remove \
                 --apart"
            )));
        }
        of_one(&opened, (&from, &to), args)?
    } else {
        of_two((&opened, &from), (&Opened::new(&to, args)?, &to), args)?
    };
    let files = report.file_stats.iter().map(|own| own.figures);
    let mut io = files.chain(report.io_stats.iter().map(|own| own.figures));
    let is_known = io.any(|figures| IoFigures { size_gb: None, ..figures } != IoFigures::default())
        || report.wait_stats.iter().any(|own| own.wait_time_s.is_some());
    if !is_known {
        report.notes.push("nothing is known about this interval".to_owned());
    }
    output::print(&report, args.output.format())?;
    Ok(if is_known { 0 } else { NO })
}

/// Reports an interval of one observation.
fn of_one(
    own: &Opened,
    (from, to): (&End, &End),
    args: &ObserveBetweenArgs,
) -> Result<BetweenReport, CliError> {
    let (begin, until) = (own.time(from)?, own.time(to)?);
    let written = |at| own.extent.written(at, own.clock.offset);
    let refuse = |reason: String| Err(CliError::Refused(format!("{}: {reason}", to.text)));
    if begin > until {
        let (begin, until) = (written(begin), written(until));
        return refuse(format!("it is {until}, before {begin}: give the earlier time first"));
    }
    if begin == until {
        let at = written(begin);
        return refuse(format!(
            "both have the same time, {at}; give two different times, for example FILE@first \
             FILE@last"
        ));
    }
    let contents = &own.header.contents;
    let mut stretch = Stretch::new(contents, begin, until);
    own.source.each(|at, row| stretch.sample(at, row))?;
    let Some(between) = stretch.finish(contents) else {
        let (begin, until) = (written(begin), written(until));
        return refuse(format!(
            "there is no sample after {begin} until {until}, so both times select the same sample; \
             give times that are further apart"
        ));
    };
    let seconds = seconds(between.to - between.from);
    let mut report = BetweenReport {
        from: own.moment(from, between.from),
        to: own.moment(to, between.to),
        interval_s: Some(seconds),
        ..BetweenReport::default()
    };
    fill(&mut report, &between, args);
    Ok(report)
}

/// Reports the difference of two snapshots.
fn of_two(
    (first, from): (&Opened, &End),
    (second, to): (&Opened, &End),
    args: &ObserveBetweenArgs,
) -> Result<BetweenReport, CliError> {
    let (older, newer) = (first.snapshot(from)?, second.snapshot(to)?);
    let refuse = |reason: String| CliError::Refused(format!("{}: {reason}", to.text));
    let pair = Pair::new(&older, &newer, args.apart).map_err(|error| refuse(error.to_string()))?;
    if !pair.has_any() {
        return Err(refuse(why_nothing(&pair, from, &older, &newer)));
    }
    let mut stretch = Stretch::new(&pair.contents, pair.from, Instant::FAR);
    pair.rows.iter().for_each(|(at, row)| stretch.sample(*at, row));
    let between = stretch.finish(&pair.contents).unwrap_or_default();
    let mut report = BetweenReport {
        from: first.moment(from, last_time(&older)),
        to: second.moment(to, last_time(&newer)),
        interval_s: pair.apart.map(seconds),
        ..BetweenReport::default()
    };
    if pair.apart.is_none() {
        report.notes.push(format!(
            "rates are unknown, because {} and {} do not both state their time; give the time \
             between them with --apart",
            from.text, to.text
        ));
    }
    fill(&mut report, &between, args);
    for (which, end) in [from, to].into_iter().enumerate() {
        report.notes.extend(only_in(&pair, which, end));
    }
    if !pair.stale.is_empty() {
        let names = list(pair.stale.iter().map(full));
        report.notes.push(format!("no newer counters in {}: {names}", to.text));
    }
    if !pair.rates.is_empty() {
        let names = list(pair.rates.iter().map(full));
        report.notes.push(format!(
            "only rates, which say nothing about the time between two samples: {names}"
        ));
    }
    Ok(report)
}

/// Explains why two snapshots cannot be compared.
fn why_nothing(pair: &Pair, from: &End, older: &Observation, newer: &Observation) -> String {
    if !pair.rates.is_empty() {
        return format!(
            "it and {} have rates and no counters, and rates of two samples say nothing about the \
             time between them; give two times of one observation, for example FILE@first \
             FILE@last",
            from.text
        );
    }
    format!(
        "it and {} have no entity with counters in common: it has {}, the other {}",
        from.text,
        entity_names(newer),
        entity_names(older)
    )
}

fn entity_names(own: &Observation) -> String {
    let entities = &own.contents().entities;
    list(entities.iter().map(|own| format!("{} {}", own.kind.name(), own.name)))
}

fn last_time(own: &Observation) -> Instant {
    own.times.last().copied().unwrap_or_default()
}

/// Writes notes on the entities that are in only one of two snapshots.
fn only_in(pair: &Pair, which: usize, end: &End) -> Vec<String> {
    let mut notes = Vec::new();
    let io: Vec<_> = pair.only_io(which).map(full).collect();
    if !io.is_empty() {
        notes.push(format!("in {} only: {}", end.text, list(io.into_iter())));
    }
    let waits = pair.only[which].iter().filter(|(who, _)| *who.kind() == EntityKind::Wait);
    let mut waits: Vec<_> = waits.filter(|(who, _)| !is_background(who.name())).collect();
    if waits.is_empty() {
        return notes;
    }
    waits.sort_by(|one, other| other.1.unwrap_or(0.0).total_cmp(&one.1.unwrap_or(0.0)));
    // Counters start at zero, so the present value is an upper bound.
    let most =
        |ms: f64| if which == 1 { format!(" (at most {:.1} s)", ms / 1e3) } else { String::new() };
    let name = |(who, ms): &&(Who, Option<f64>)| {
        format!("{}{}", who.name(), ms.map(most).unwrap_or_default())
    };
    let names = list(waits.iter().map(name));
    notes.push(format!("waits only in {}, so their times are unknown: {names}", end.text));
    notes
}

/// Adds the differences to the report, with notes on missing data.
fn fill(report: &mut BetweenReport, between: &Between, args: &ObserveBetweenArgs) {
    let length = report.interval_s;
    for did in &between.io {
        let figures = figures(did, length.is_some());
        let who = &did.who;
        let parent = who.parent();
        if *who.kind() == EntityKind::File {
            report.file_stats.push(FileStats {
                db_name: parent
                    .filter(|(kind, _)| **kind == EntityKind::Database)
                    .map(|(_, name)| name.to_owned()),
                file_name: who.name().to_owned(),
                figures,
                r#type: did.entity.text(attribute::ROLE).map(type_of),
            });
        } else {
            report.io_stats.push(IoStats {
                kind: who.kind().name().to_owned(),
                parent: parent.map(|(_, name)| name.to_owned()),
                name: who.name().to_owned(),
                figures,
            });
        }
    }
    let is_shown = |own: &&Waited| args.all_waits || !is_background(own.who.name());
    let shown = between.waits.iter().filter(is_shown).filter(has_waited);
    report.wait_stats = shown.map(wait_stats).collect();
    report.wait_stats.sort_by(|one, other| {
        other.wait_time_s.unwrap_or(0.0).total_cmp(&one.wait_time_s.unwrap_or(0.0))
    });
    if !between.restarts.is_empty() {
        let names = list(between.restarts.iter().map(restarted));
        report.notes.push(format!(
            "counters decreased, as after a restart: {names}; the interval before that sample is \
             left out for all counters that are reset together"
        ));
    }
    report.notes.extend(partly(between, length));
    let unknown = between.waits.iter().filter(is_shown).filter(|own| own.wait.is_none()).count();
    if unknown > 0 {
        report.notes.push(format!("waits without known times: {unknown}"));
    }
    let hidden = between.waits.iter().filter(|own| !is_shown(own)).filter(has_waited).count();
    if hidden > 0 {
        report.notes.push(format!(
            "background waits left out, as in qpi.wait_stats: {hidden}; --all-waits lists them"
        ));
    }
}

fn has_waited(own: &&Waited) -> bool {
    own.wait.is_some_and(|wait| wait.tasks.is_none_or(|n| n > 0.0) || wait.ms > Some(0.0))
}

/// Returns the name of an entity whose counters were reset, with the number of resets.
fn restarted((who, times): &(Who, u64)) -> String {
    match times {
        1 => full(who),
        times => format!("{} ({times} times)", full(who)),
    }
}

/// Lists the entities whose data covers only a part of the interval, without a restart as reason.
fn partly(between: &Between, length: Option<f64>) -> Option<String> {
    let length = length?;
    let is_partly = |did: &&Did| did.load.is_some() && did.seconds < 0.99 * length;
    let name = |did: &Did| format!("{} ({:.0} s)", full(&did.who), did.seconds);
    let names: Vec<_> = between.io.iter().filter(is_partly).map(name).collect();
    if names.is_empty() {
        return None;
    }
    Some(format!("known for a part of the time only: {}", list(names.into_iter())))
}

fn in_units(value: Option<f64>, unit: f64) -> Option<f64> {
    value.map(|value| value / unit)
}

/// Computes the figures of an entity, in the units of qpi.
fn figures(did: &Did, has_length: bool) -> IoFigures {
    let size_gb = did.size.map(|size| size / GIB);
    let Some(load) = did.load else { return IoFigures { size_gb, ..IoFigures::default() } };
    let Load { reads, writes, operations, read_bytes, write_bytes, bytes, .. } = load;
    let per_s = |amount: Option<f64>| {
        amount.filter(|_| has_length && did.seconds > 0.0).map(|amount| amount / did.seconds)
    };
    let ms = |ns: Option<f64>, count: Option<f64>| in_units(mean(ns, count), 1e6);
    IoFigures {
        size_gb,
        throughput_mbps: in_units(per_s(bytes), MIB),
        read_mbps: in_units(per_s(read_bytes), MIB),
        write_mbps: in_units(per_s(write_bytes), MIB),
        iops: per_s(operations),
        read_iops: per_s(reads),
        write_iops: per_s(writes),
        latency_ms: ms(load.ns, operations),
        read_latency_ms: ms(load.read_ns, reads),
        write_latency_ms: ms(load.write_ns, writes),
        read_io_latency_ms: ms(load.read_io_ns, reads),
        write_io_latency_ms: ms(load.write_io_ns, writes),
        kb_per_read: in_units(mean(read_bytes, reads), KIB),
        kb_per_write: in_units(mean(write_bytes, writes), KIB),
        kb_per_io: in_units(mean(bytes, operations), KIB),
        read_mb: in_units(read_bytes, MIB),
        write_mb: in_units(write_bytes, MIB),
        num_of_reads: reads,
        num_of_writes: writes,
        interval_mi: Some(did.seconds / 60.0).filter(|_| has_length),
    }
}

fn wait_stats(own: &Waited) -> WaitStats {
    let category = category(own.who.name());
    let (tasks, ms, signal) =
        own.wait.map_or((None, None, None), |wait| (wait.tasks, wait.ms, wait.signal_ms));
    WaitStats {
        category: category.map(|own| own.name.to_owned()),
        wait_type: own.who.name().to_owned(),
        waiting_tasks_count: tasks,
        wait_time_s: ms.map(|ms| ms / 1e3),
        wait_per_task_ms: mean(ms, tasks),
        max_wait_time_ms: own.max_ms,
        signal_wait_time_s: signal.map(|ms| ms / 1e3),
        category_id: category.map(|own| own.id),
        info: format!("www.sqlskills.com/help/waits/{}", own.who.name()),
        parent: own.who.parent().map(|(_, name)| name.to_owned()),
    }
}

/// Returns the `type_desc` of a file with this role.
fn type_of(role: &str) -> String {
    match role {
        "data" | "tempdb" => "ROWS".to_owned(),
        other => other.to_uppercase(),
    }
}

/// Returns the name of an entity, qualified by that of its parent.
fn full(who: &Who) -> String {
    match who.parent() {
        Some((_, parent)) => format!("{parent}/{}", who.name()),
        None => who.name().to_owned(),
    }
}

/// Lists the first names, and counts the rest.
fn list(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let named = names.join(", ");
    match (named.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (_, 0) => named,
        (_, more) => format!("{named} and {more} more"),
    }
}

fn seconds(span: Span) -> f64 {
    weir_report::number::float(span.nanos()) / 1e9
}
