//! The file `oltp.toml`: the description of a database and its users.
//!
//! [`Description::parse`] checks the file on its own. [`Description::model`] places the database on
//! the files of a layout. Missing keys have defaults, whose reasons are at their constants.

use crate::error::{OltpError, OltpFault, OltpPlace};
use crate::limits::{MAX_MEAN, MAX_USERS, MAX_WORKING_SET, PAGE_SIZE};
use crate::log::{LOG_START, least_ring, record_bytes, ring};
use crate::model::{
    Checkpoint, Checkpoints, DataFile, EXTENT, Growth, Log, Model, PAGE, Tempdb, Transaction,
};
use crate::placement::Placement;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use weir_units::{Bytes, Span, nearest};

/// The ready-made mixes: their names and their `[[transaction]]`s.
pub(crate) const MIXES: [(&str, &str); 4] = [
    ("bulk-load", include_str!("../mixes/bulk-load.toml")),
    ("generic-oltp", include_str!("../mixes/generic-oltp.toml")),
    ("scan", include_str!("../mixes/scan.toml")),
    ("tpcc", include_str!("../mixes/tpcc.toml")),
];

const MAX_VCORES: u32 = 4096;
const MAX_WRITES: u32 = 4096;
const MAX_LOG: Bytes = Bytes::gib(1);
const SECTOR: u64 = 512;
/// Minimum time on a scheduler, so that time passes.
const LEAST_CPU: Span = Span::from_micros(1);
const LEAST_SKEW: f64 = 0.001;

/// Ten checkpoints.
const DURATION: Span = Span::from_secs(600);
/// The largest log block of SQL Server.
const LOG_BLOCK: Bytes = Bytes::kib(60);
/// In-flight log writes of SQL Server 2012 and later; 32 before (SQLCAT, "Diagnosing Transaction
/// Log Performance Issues and Limits of the Log Manager").
const LOG_WRITES: u32 = 112;
/// The target of databases that SQL Server 2016 or later created.
const TARGET_RECOVERY: Span = Span::from_secs(60);
/// Weir's own number: SQL Server adapts to the latency and publishes none.
const CHECKPOINT_WRITES: u32 = 32;
/// SQL Server writes up to 32 adjacent pages at once.
const COALESCE: Bytes = Bytes::kib(256);
/// The quantum of SQL Server's schedulers.
const QUANTUM: Span = Span::from_millis(4);
/// Time for which an allocation latches the allocation page: an assumption, a few thousand
/// instructions.
const LATCH: Span = Span::from_micros(2);
/// Uniform accesses, which assume nothing.
const EVEN: f64 = 0.5;

/// The keys with their positions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    mix: Option<Spanned<String>>,
    #[serde(default)]
    transaction: Vec<TransactionKeys>,
    users: Spanned<u32>,
    think_time: Option<Span>,
    duration: Option<Spanned<Span>>,
    ramp_time: Option<Span>,
    size: Spanned<Bytes>,
    working_set: Option<Spanned<Bytes>>,
    skew: Option<Spanned<f64>>,
    buffer_pool: Spanned<Bytes>,
    #[serde(default)]
    warm: bool,
    read_extents: Option<bool>,
    vcores: Spanned<u32>,
    data: Spanned<Vec<Spanned<String>>>,
    log: Spanned<String>,
    #[serde(default)]
    log_writer: LogWriterKeys,
    #[serde(default)]
    checkpoint: CheckpointKeys,
    tempdb: Option<TempdbKeys>,
}

impl Keys {
    /// Returns the names of all files.
    fn files(&self) -> impl Iterator<Item = &Spanned<String>> {
        let tempdb = self.tempdb.iter().flat_map(|tempdb| tempdb.data.get_ref());
        self.data.get_ref().iter().chain([&self.log]).chain(tempdb)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TransactionKeys {
    name: Spanned<String>,
    share: u32,
    batches: Option<u32>,
    reads: Spanned<f64>,
    writes: Spanned<f64>,
    new_pages: Option<Spanned<f64>>,
    #[serde(default)]
    hot_pages: u32,
    hot_writes: Option<Spanned<u32>>,
    #[serde(default)]
    sequential: bool,
    tempdb: Option<Spanned<Bytes>>,
    log: Spanned<Bytes>,
    cpu: Spanned<Span>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogWriterKeys {
    block: Option<Spanned<Bytes>>,
    writes: Option<Spanned<u32>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointKeys {
    target_recovery: Option<Spanned<Span>>,
    every: Option<Spanned<Span>>,
    writes: Option<Spanned<u32>>,
    coalesce: Option<Spanned<Bytes>>,
    latency: Option<Spanned<Span>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TempdbKeys {
    data: Spanned<Vec<Spanned<String>>>,
    size: Spanned<Bytes>,
    latch: Option<Span>,
}

/// A file of a ready-made mix.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct MixKeys {
    transaction: Vec<TransactionKeys>,
}

/// An OLTP description that is valid on its own.
#[derive(Debug, Clone)]
pub struct Description {
    /// The measured time.
    pub duration: Span,
    /// The time before that, which is not measured.
    pub ramp_time: Span,
    /// The name of the ready-made mix, if it is one.
    pub mix: Option<String>,
    file: String,
    text: String,
    keys: Keys,
    transactions: Vec<Transaction>,
    working_set: Bytes,
}

/// A file as a layout states it.
#[derive(Debug, Clone, Copy)]
pub struct FileAbout<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size.
    pub size: Bytes,
    /// Its allocated bytes; `None` for a share by size.
    pub used: Option<Bytes>,
    /// Its growth when it is full; `None` if it does not grow.
    pub growth: Option<Growth>,
    /// Its role.
    pub role: Option<&'a str>,
    /// Its database.
    pub database: Option<&'a str>,
}

impl<'a> FileAbout<'a> {
    /// Makes a file, volume or stripe without further attributes.
    #[must_use]
    pub fn new(name: &'a str, size: Bytes) -> Self {
        Self { name, size, used: None, growth: None, role: None, database: None }
    }
}

/// A file and its text, for positions in messages.
#[derive(Clone, Copy)]
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn error(&self, span: Option<Range<usize>>, fault: OltpFault) -> OltpError {
        let place = |span: Range<usize>| {
            let before = self.text.get(..span.start).unwrap_or(self.text);
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
            (before.matches('\n').count() + 1, column + 1)
        };
        let place = OltpPlace { file: self.file.to_owned(), at: span.map(place) };
        OltpError { place: Box::new(place), fault }
    }

    fn syntax(&self, error: &toml::de::Error) -> OltpError {
        let message = weir_units::parser_message(error.message());
        self.error(error.span(), OltpFault::Syntax { message })
    }

    /// Returns an error at `value` unless it `holds`.
    fn check<T>(
        &self,
        value: &Spanned<T>,
        holds: impl FnOnce(&T) -> bool,
        fault: impl FnOnce(&T) -> OltpFault,
    ) -> Result<(), OltpError> {
        let inner = value.get_ref();
        if holds(inner) { Ok(()) } else { Err(self.error(Some(value.span()), fault(inner))) }
    }
}

impl Description {
    /// Reads a description. `file` is the name to use in messages.
    ///
    /// # Errors
    ///
    /// [`OltpError`], with file, line and column.
    pub fn parse(file: &str, text: &str) -> Result<Self, OltpError> {
        let source = Source { file, text };
        let keys: Keys = toml::from_str(text).map_err(|error| source.syntax(&error))?;
        let working_set = keys.working_set.as_ref().unwrap_or(&keys.size);
        check_load(source, &keys)?;
        check_memory(source, &keys, working_set)?;
        check_writers(source, &keys)?;
        let transactions = transactions(source, &keys, working_set.get_ref().get() / PAGE)?;
        check_tempdb(source, &keys)?;
        Ok(Self {
            duration: keys.duration.as_ref().map_or(DURATION, |time| *time.get_ref()),
            ramp_time: keys.ramp_time.unwrap_or_default(),
            mix: keys.mix.as_ref().map(|mix| mix.get_ref().clone()),
            file: file.to_owned(),
            text: text.to_owned(),
            working_set: *working_set.get_ref(),
            transactions,
            keys,
        })
    }

    /// Places the database on `files`: the files, volumes and stripes of a layout, in its order.
    ///
    /// # Errors
    ///
    /// [`OltpError`] for a file that is missing, is too small or has no room for new pages.
    pub fn model(&self, files: &[FileAbout<'_>], seed: u64) -> Result<Model, OltpError> {
        let source = Source { file: &self.file, text: &self.text };
        let keys = &self.keys;
        let mut data = data_files(source, "data", &keys.data, files)?;
        let working_set = self.working_set.get() / PAGE;
        self.fill(source, &mut data, files)?;
        let placement = Placement::new(&data, working_set);
        check_files(source, "size", &keys.size, &keys.data, (&placement, &data))?;
        for (index, data) in data.iter_mut().enumerate() {
            // The last round of the pattern counts as a whole, even if it is not full.
            let pages = placement.range(index);
            data.used = data.used.max(Bytes::new(u64::from(pages.end - pages.start) * PAGE));
        }
        let model = Model {
            users: *keys.users.get_ref(),
            think_time: keys.think_time.unwrap_or_default(),
            vcores: *keys.vcores.get_ref(),
            quantum: QUANTUM,
            mix: self.transactions.clone(),
            working_set,
            skew: keys.skew.as_ref().map_or(EVEN, |skew| *skew.get_ref()),
            buffer_pool: keys.buffer_pool.get_ref().get() / PAGE,
            warm: keys.warm,
            read_extents: keys.read_extents.unwrap_or(true),
            log: self.log(source, files)?,
            checkpoint: checkpoint(&keys.checkpoint),
            tempdb: self.tempdb(source, files)?,
            data,
            seed,
        };
        self.check_room(source, &model)?;
        Ok(model)
    }

    /// Sets the bytes in use of each data file: as the layout states them, or in proportion to the
    /// sizes.
    fn fill(
        &self,
        source: Source<'_>,
        data: &mut [DataFile],
        files: &[FileAbout<'_>],
    ) -> Result<(), OltpError> {
        let names = &self.keys.data;
        let size = *self.keys.size.get_ref();
        let stated = data.iter().map(|data| files[data.file as usize].used);
        let stated: Vec<Option<Bytes>> = stated.collect();
        if stated.iter().all(Option::is_none) {
            let sum: u128 = data.iter().map(|data| u128::from(data.size.get())).sum();
            for data in data {
                let part = u128::from(size.get()) * u128::from(data.size.get()) / sum.max(1);
                data.used = Bytes::new(u64::try_from(part).unwrap_or(u64::MAX));
            }
            return Ok(());
        }
        let mut sum = Bytes::ZERO;
        for ((data, used), name) in data.iter_mut().zip(stated).zip(names.get_ref()) {
            let Some(used) = used else {
                let fault = OltpFault::UsedOfSome { name: name.get_ref().clone() };
                return Err(source.error(Some(name.span()), fault));
            };
            (data.used, data.weight) = (used, used);
            sum = Bytes::new(sum.get().saturating_add(used.get()));
        }
        source.check(
            &self.keys.size,
            |size| *size == sum,
            |size: &Bytes| OltpFault::Used { size: *size, used: sum },
        )
    }

    /// Checks that there is room for a new page if transactions add any.
    fn check_room(&self, source: Source<'_>, model: &Model) -> Result<(), OltpError> {
        let extent = PAGE * u64::from(EXTENT);
        if !model.grows()
            || model.data.iter().any(|data: &DataFile| {
                let most = data.growth.map_or(data.size, |growth| growth.most.max(data.size));
                most.get().saturating_sub(data.new_from()) >= extent
            })
        {
            return Ok(());
        }
        let adds = model.mix.iter().find(|kind| kind.share > 0 && kind.new_pages > 0.0);
        let transaction = adds.map(|kind| kind.name.clone()).unwrap_or_default();
        Err(source.error(Some(self.keys.data.span()), OltpFault::NoRoom { transaction }))
    }

    /// Returns the name of the database: that of its file, without the extension.
    #[must_use]
    pub fn name(&self) -> String {
        let stem = Path::new(&self.file).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Returns the name of the log file.
    #[must_use]
    pub fn log_name(&self) -> &str {
        self.keys.log.get_ref()
    }

    /// Returns the names of its files without those of tempdb, whose contents are not kept.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        let data = self.keys.data.get_ref().iter();
        data.chain([&self.keys.log]).map(|name| name.get_ref().as_str())
    }

    /// Makes the error for a file that another database of the run has.
    #[must_use]
    pub fn shared(&self, name: &str) -> OltpError {
        let source = Source { file: &self.file, text: &self.text };
        let span = self.keys.files().find(|own| own.get_ref() == name).map(Spanned::span);
        source.error(span, OltpFault::Shared { name: name.to_owned() })
    }

    /// Checks the roles of its files in the layout: data in data files, the log in a log file, all
    /// of one database. A database whose files are all tempdb's is tempdb itself.
    ///
    /// # Errors
    ///
    /// [`OltpError`] for the first file with another role or database.
    pub fn check_roles(&self, files: &[FileAbout<'_>]) -> Result<(), OltpError> {
        let source = Source { file: &self.file, text: &self.text };
        let about = |name: &Spanned<String>| files.iter().find(|f| f.name == name.get_ref());
        let data = self.keys.data.get_ref();
        let own = || data.iter().chain([&self.keys.log]);
        let is_tempdb = own().all(|name| about(name).is_some_and(|f| f.role == Some("tempdb")));
        let role = |wanted| if is_tempdb { "tempdb" } else { wanted };
        let tempdb = self.keys.tempdb.iter().flat_map(|keys| keys.data.get_ref());
        let data = data.iter().map(|name| ("data", role("data"), name));
        let tempdb = tempdb.map(|name| ("tempdb.data", "tempdb", name));
        for (key, wanted, name) in data.chain([("log", role("log"), &self.keys.log)]).chain(tempdb)
        {
            let other = about(name).and_then(|file| file.role).filter(|role| *role != wanted);
            if let Some(is) = other {
                let name_of = name.get_ref().clone();
                let fault = OltpFault::Role { key, name: name_of, is: is.to_owned(), wanted };
                return Err(source.error(Some(name.span()), fault));
            }
        }
        let mut first: Option<&str> = None;
        for name in own() {
            let Some(database) = about(name).and_then(|file| file.database) else { continue };
            let of = *first.get_or_insert(database);
            if of != database {
                let (name_of, of, is) =
                    (name.get_ref().clone(), of.to_owned(), database.to_owned());
                let fault = OltpFault::OtherDatabase { name: name_of, is, of };
                return Err(source.error(Some(name.span()), fault));
            }
        }
        Ok(())
    }

    /// Returns the number of schedulers.
    #[must_use]
    pub fn vcores(&self) -> u32 {
        *self.keys.vcores.get_ref()
    }

    /// Makes the error for a database that has, together with `others`, more vCores than the
    /// `instance`.
    #[must_use]
    pub fn too_many_vcores(&self, others: u32, instance: u32) -> OltpError {
        let source = Source { file: &self.file, text: &self.text };
        let fault = OltpFault::Vcores { vcores: self.vcores(), others, instance };
        source.error(Some(self.keys.vcores.span()), fault)
    }

    /// Places tempdb, if a transaction uses it.
    fn tempdb(
        &self,
        source: Source<'_>,
        files: &[FileAbout<'_>],
    ) -> Result<Option<Tempdb>, OltpError> {
        let Some(keys) = &self.keys.tempdb else { return Ok(None) };
        let data = data_files(source, "tempdb.data", &keys.data, files)?;
        let size = *keys.size.get_ref();
        let placement = Placement::new(&data, size.get() / PAGE);
        check_files(source, "tempdb.size", &keys.size, &keys.data, (&placement, &data))?;
        Ok(Some(Tempdb { data, size, latch: keys.latch.unwrap_or(LATCH) }))
    }

    fn log(&self, source: Source<'_>, files: &[FileAbout<'_>]) -> Result<Log, OltpError> {
        let keys = &self.keys.log_writer;
        let file = find(source, "log", &self.keys.log, files)?;
        let size = files[file as usize].size;
        let block = keys.block.as_ref().map_or(LOG_BLOCK, |block| *block.get_ref());
        let name = || self.keys.log.get_ref().clone();
        if block.get() > ring(size.get()) {
            let at = keys.block.as_ref().map_or_else(|| self.keys.log.span(), Spanned::span);
            return Err(source.error(Some(at), OltpFault::LogFile { block, name: name(), size }));
        }
        let writes = keys.writes.as_ref().map_or(LOG_WRITES, |writes| *writes.get_ref());
        let log = Log { file, size, block, writes };
        for kind in &self.transactions {
            let needs = LOG_START + least_ring(&log, most_log(kind));
            if needs > size.get() {
                let (transaction, needs) = (kind.name.clone(), Bytes::new(needs));
                let fault = OltpFault::LogTransaction { transaction, needs, name: name(), size };
                return Err(source.error(Some(self.keys.log.span()), fault));
            }
        }
        Ok(log)
    }
}

fn data_files(
    source: Source<'_>,
    key: &'static str,
    names: &Spanned<Vec<Spanned<String>>>,
    files: &[FileAbout<'_>],
) -> Result<Vec<DataFile>, OltpError> {
    let mut data = Vec::new();
    for name in names.get_ref() {
        let file = find(source, key, name, files)?;
        let FileAbout { size, growth, .. } = files[file as usize];
        data.push(DataFile { growth, ..DataFile::new(file, size) });
    }
    Ok(data)
}

fn checkpoint(keys: &CheckpointKeys) -> Checkpoint {
    Checkpoint {
        kind: match &keys.every {
            Some(every) => Checkpoints::Automatic { every: *every.get_ref() },
            None => Checkpoints::Indirect {
                target_recovery: keys
                    .target_recovery
                    .as_ref()
                    .map_or(TARGET_RECOVERY, |target| *target.get_ref()),
            },
        },
        writes: keys.writes.as_ref().map_or(CHECKPOINT_WRITES, |writes| *writes.get_ref()),
        coalesce: keys.coalesce.as_ref().map_or(COALESCE, |coalesce| *coalesce.get_ref()),
        latency: keys.latency.as_ref().map(|latency| *latency.get_ref()),
    }
}

/// Checks users, vCores and duration.
fn check_load(source: Source<'_>, keys: &Keys) -> Result<(), OltpError> {
    source.check(&keys.users, |n| (1..=MAX_USERS).contains(n), |n| OltpFault::users(*n))?;
    source.check(
        &keys.vcores,
        |n| (1..=MAX_VCORES).contains(n),
        |n: &u32| OltpFault::range("vcores", n, format!("1 to {MAX_VCORES}"), ""),
    )?;
    if let Some(duration) = &keys.duration {
        let fault =
            |time: &Span| OltpFault::range("duration", time, "more than zero, like \"10min\"", "");
        source.check(duration, |time| *time > Span::ZERO, fault)?;
    }
    let mut names = BTreeSet::new();
    source.check(&keys.data, |data| !data.is_empty(), |_| OltpFault::NoData)?;
    if let Some(tempdb) = &keys.tempdb {
        source.check(&tempdb.data, |data| !data.is_empty(), |_| OltpFault::NoTempdbData)?;
        source.check(
            &tempdb.size,
            |size| (PAGE_SIZE..=MAX_WORKING_SET).contains(size),
            |size| OltpFault::pages("tempdb.size", *size),
        )?;
    }
    for name in keys.files() {
        source.check(
            name,
            |name| names.insert(name.clone()),
            |name: &String| OltpFault::FileTwice { name: name.clone() },
        )?;
    }
    Ok(())
}

/// Checks sizes and memory.
fn check_memory(
    source: Source<'_>,
    keys: &Keys,
    working_set: &Spanned<Bytes>,
) -> Result<(), OltpError> {
    let size = *keys.size.get_ref();
    source.check(
        &keys.size,
        |size| *size >= PAGE_SIZE,
        |size| OltpFault::range("size", size, format!("{PAGE_SIZE} or more"), ""),
    )?;
    source.check(
        working_set,
        |set| *set <= size,
        |set| OltpFault::WorkingSet { working_set: *set, size },
    )?;
    source.check(
        working_set,
        |set| (PAGE_SIZE..=MAX_WORKING_SET).contains(set),
        |set| OltpFault::pages("working_set", *set),
    )?;
    source.check(
        &keys.buffer_pool,
        |pool| *pool >= PAGE_SIZE,
        |pool| OltpFault::range("buffer_pool", pool, format!("{PAGE_SIZE} or more"), ""),
    )?;
    if let Some(skew) = &keys.skew {
        let allowed = format!("{LEAST_SKEW} to {EVEN}");
        let why = "; 0.2 is 80 % of the accesses on 20 % of the pages, 0.5 is even";
        source.check(
            skew,
            |skew| (LEAST_SKEW..=EVEN).contains(skew),
            |skew| OltpFault::range("skew", skew, allowed, why),
        )?;
    }
    Ok(())
}

/// Checks that tempdb exists and has room for each transaction that uses it.
fn check_tempdb(source: Source<'_>, keys: &Keys) -> Result<(), OltpError> {
    let size = keys.tempdb.as_ref().map(|tempdb| *tempdb.size.get_ref());
    for transaction in &keys.transaction {
        let Some(bytes) = &transaction.tempdb else { continue };
        let name = || transaction.name.get_ref().clone();
        source.check(
            bytes,
            |bytes| *bytes <= size.unwrap_or(Bytes::ZERO),
            |bytes: &Bytes| OltpFault::Tempdb { name: name(), bytes: *bytes, size },
        )?;
    }
    Ok(())
}

/// Checks the log writer and the checkpoints.
fn check_writers(source: Source<'_>, keys: &Keys) -> Result<(), OltpError> {
    let (log, checkpoint) = (&keys.log_writer, &keys.checkpoint);
    if let Some(block) = &log.block {
        let fits = |b: &Bytes| b.get() > 0 && b.get().is_multiple_of(SECTOR) && *b <= MAX_LOG;
        let allowed = format!("a multiple of {} up to {MAX_LOG}", Bytes::new(SECTOR));
        source.check(block, fits, |b| OltpFault::range("log_writer.block", b, allowed, ""))?;
    }
    for (key, writes) in
        [("log_writer.writes", &log.writes), ("checkpoint.writes", &checkpoint.writes)]
    {
        if let Some(writes) = writes {
            source.check(
                writes,
                |n| (1..=MAX_WRITES).contains(n),
                |n: &u32| OltpFault::range(key, n, format!("1 to {MAX_WRITES}"), ""),
            )?;
        }
    }
    if let (Some(_), Some(target)) = (&checkpoint.every, &checkpoint.target_recovery) {
        return Err(source.error(Some(target.span()), OltpFault::TwoCheckpoints));
    }
    for (key, time) in [
        ("checkpoint.every", &checkpoint.every),
        ("checkpoint.target_recovery", &checkpoint.target_recovery),
        ("checkpoint.latency", &checkpoint.latency),
    ] {
        if let Some(time) = time {
            source.check(
                time,
                |time| *time > Span::ZERO,
                |t: &Span| OltpFault::range(key, t, "more than zero", ""),
            )?;
        }
    }
    if let Some(coalesce) = &checkpoint.coalesce {
        let most = Bytes::mib(1);
        let fits = |bytes: &Bytes| (PAGE_SIZE..=most).contains(bytes);
        let allowed = format!("{PAGE_SIZE} to {most}");
        source
            .check(coalesce, fits, |b| OltpFault::range("checkpoint.coalesce", b, allowed, ""))?;
    }
    Ok(())
}

/// Returns the transactions of the ready-made mix, or those of the file.
fn transactions(
    source: Source<'_>,
    keys: &Keys,
    working_set: u64,
) -> Result<Vec<Transaction>, OltpError> {
    let known = || MIXES.map(|(name, _)| name).join(", ");
    let Some(mix) = &keys.mix else {
        if keys.transaction.is_empty() {
            return Err(source.error(None, OltpFault::NoMix { known: known() }));
        }
        return read_mix(source, &keys.transaction, working_set);
    };
    let name = mix.get_ref();
    if !keys.transaction.is_empty() {
        let fault = OltpFault::TwoMixes { name: name.clone() };
        return Err(source.error(Some(mix.span()), fault));
    }
    let Some((name, text)) = MIXES.into_iter().find(|(known, _)| known == name) else {
        let near = nearest(name, MIXES.map(|(name, _)| name)).map(str::to_owned);
        let fault = OltpFault::UnknownMix { name: name.clone(), near, known: known() };
        return Err(source.error(Some(mix.span()), fault));
    };
    let source = Source { file: name, text };
    let mix: MixKeys = toml::from_str(text).map_err(|error| source.syntax(&error))?;
    read_mix(source, &mix.transaction, working_set)
}

fn read_mix(
    source: Source<'_>,
    keys: &[TransactionKeys],
    working_set: u64,
) -> Result<Vec<Transaction>, OltpError> {
    let mix: Result<Vec<Transaction>, OltpError> =
        keys.iter().map(|keys| transaction(source, keys, working_set)).collect();
    let mix = mix?;
    if mix.iter().all(|transaction| transaction.share == 0) {
        let at = keys.first().map(|keys| keys.name.span());
        return Err(source.error(at, OltpFault::NoShares));
    }
    Ok(mix)
}

fn transaction(
    source: Source<'_>,
    keys: &TransactionKeys,
    working_set: u64,
) -> Result<Transaction, OltpError> {
    let name = keys.name.get_ref().clone();
    let means = [("reads", Some(&keys.reads)), ("writes", Some(&keys.writes))];
    for (key, mean) in means.into_iter().chain([("new_pages", keys.new_pages.as_ref())]) {
        let Some(mean) = mean else { continue };
        let fits = |mean: &f64| (0.0..=MAX_MEAN).contains(mean);
        source.check(mean, fits, |mean| OltpFault::mean(key, *mean))?;
    }
    source.check(
        &keys.log,
        |log| *log <= MAX_LOG,
        |log| OltpFault::range("log", log, format!("up to {MAX_LOG}"), ""),
    )?;
    source.check(
        &keys.cpu,
        |cpu| *cpu >= LEAST_CPU,
        |cpu| {
            let why = "; with transactions that take no time, the run would never end";
            OltpFault::range("cpu", cpu, format!("{LEAST_CPU} or more"), why)
        },
    )?;
    let hot_writes = keys.hot_writes.as_ref().map_or(0, |writes| *writes.get_ref());
    let pages = keys.hot_pages;
    if let Some(writes) = &keys.hot_writes {
        source.check(
            writes,
            |writes| pages > 0 || *writes == 0,
            |writes: &u32| OltpFault::NoHotPages { name: name.clone(), writes: *writes },
        )?;
    }
    if u64::from(pages) > working_set {
        let fault = OltpFault::TooManyHotPages { name, pages, all: working_set };
        return Err(source.error(Some(keys.name.span()), fault));
    }
    // A sequential transaction changes only new pages.
    let (writes, new_pages) = (*keys.writes.get_ref(), keys.new_pages.as_ref());
    let new_pages = new_pages.map_or(0.0, |mean| *mean.get_ref());
    let (writes, new_pages) =
        if keys.sequential { (0.0, writes + new_pages) } else { (writes, new_pages) };
    Ok(Transaction {
        name,
        share: keys.share,
        batches: keys.batches.unwrap_or(1),
        reads: *keys.reads.get_ref(),
        writes,
        new_pages,
        hot_pages: pages,
        hot_writes,
        sequential: keys.sequential,
        tempdb_pages: keys.tempdb.as_ref().map_or(0, |bytes| tempdb_pages(*bytes.get_ref())),
        log: *keys.log.get_ref(),
        cpu: *keys.cpu.get_ref(),
    })
}

/// Returns the pages of tempdb. The size of tempdb is checked elsewhere.
fn tempdb_pages(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get().div_ceil(PAGE)).unwrap_or(u32::MAX)
}

/// Returns the maximum log of one transaction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "means are checked to be from 0 to a million"
)]
fn most_log(kind: &Transaction) -> u64 {
    let pages = kind.writes.ceil() as u64 + kind.new_pages.ceil() as u64;
    record_bytes(kind.log.get(), pages + u64::from(kind.hot_writes))
}

/// Returns the number of the file of that name.
fn find(
    source: Source<'_>,
    key: &'static str,
    name: &Spanned<String>,
    files: &[FileAbout<'_>],
) -> Result<u32, OltpError> {
    let wanted = name.get_ref();
    let at = files.iter().position(|file| file.name == *wanted);
    at.and_then(|at| u32::try_from(at).ok()).ok_or_else(|| {
        let names = || files.iter().map(|file| file.name);
        let known = names().collect::<Vec<_>>().join(", ");
        let near = nearest(wanted, names()).map(str::to_owned);
        let fault = OltpFault::NoFile { key, name: wanted.clone(), near, known };
        source.error(Some(name.span()), fault)
    })
}

/// Checks that all pages have a place in the data files.
fn check_files(
    source: Source<'_>,
    key: &'static str,
    size: &Spanned<Bytes>,
    names: &Spanned<Vec<Spanned<String>>>,
    (placement, data): (&Placement, &[DataFile]),
) -> Result<(), OltpError> {
    let sum = data.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size.get()));
    source.check(
        size,
        |size| size.get() <= sum,
        |size| OltpFault::DataFiles { key, size: *size, files: Bytes::new(sum) },
    )?;
    for (index, (file, name)) in data.iter().zip(names.get_ref()).enumerate() {
        let pages = placement.range(index);
        let needs = Bytes::new(u64::from(pages.end - pages.start) * PAGE);
        let size = file.size;
        source.check(
            name,
            |_| needs <= size,
            |name| OltpFault::DataFile { name: name.clone(), size, needs },
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
