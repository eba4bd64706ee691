//! The backup history of SQL Server: `msdb.dbo.backupset`, with one row per backup, and
//! `msdb.dbo.backupmediafamily`, with one row per stripe, as two results or joined.
//!
//! Queries list the newest first as often as the oldest, so the history is kept in memory. The
//! table of stripes can be an input of its own.

use super::client::TOOL;
use super::ended::{Backups, Ended};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::{Media, Options, Stripes};
use crate::results::{ResultSet, ResultSets, Row, heads};
use crate::sheet::{At, ReadSamples, Sheet};
use std::collections::{BTreeMap, VecDeque};
use weir_observe::attribute;
use weir_observe::metric as m;
use weir_observe::moment::Clock;

pub(crate) const MEDIA_KIND: Kind = Kind {
    name: "backup-media",
    about: "msdb.dbo.backupmediafamily of SQL Server, beside a history of backups",
    recognizes: By::Text(recognizes_media),
    open: open_media,
    signs: &[&[Sign::Word(&["media_set_id"]), Sign::Word(&["physical_device_name"])]],
};

pub(crate) const KIND: Kind = Kind {
    name: "backup-history",
    about: "msdb.dbo.backupset of SQL Server, alone or joined with backupmediafamily",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["backup_start_date"]),
        Sign::Word(&["backup_finish_date"]),
        Sign::Word(&["backup_size", "compressed_backup_size", "backup_set_id"]),
    ]],
};

/// The most rows of a history.
const MOST: usize = 500_000;

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1_073_741_824.0;
/// Value of a column for an unknown zone; zones are in quarters of an hour.
const QUARTER: i64 = 900;
const NO_ZONE: f64 = 127.0;

const START: &[&str] = &["backupstartdate", "backupstart", "startdate"];
const FINISH: &[&str] = &["backupfinishdate", "backupfinish", "finishdate"];
const SIZE: &[(&[&str], f64)] = &[
    (&["backupsize", "backupsizebytes"], 1.0),
    (&["backupsizemb", "backupsizeinmb"], MIB),
    (&["backupsizegb", "backupsizeingb"], GIB),
];
const COMPRESSED: &[(&[&str], f64)] = &[
    (&["compressedbackupsize", "compressedbackupsizebytes"], 1.0),
    (&["compressedbackupsizemb", "compressedsizemb"], MIB),
    (&["compressedbackupsizegb", "compressedsizegb"], GIB),
];
const DATABASE: &[&str] = &["databasename", "dbname", "database"];
const TYPE: &[&str] = &["type", "backuptype"];
const DEVICE: &[&str] = &["physicaldevicename", "devicename", "device"];
const MEDIA_SET: &[&str] = &["mediasetid"];
const BACKUP_SET: &[&str] = &["backupsetid"];

fn recognizes(text: &str) -> bool {
    heads(text).iter().any(is_history)
}

fn recognizes_media(text: &str) -> bool {
    heads(text).iter().any(is_media)
}

fn is_history(set: &ResultSet) -> bool {
    let has_size = SIZE.iter().chain(COMPRESSED).any(|(names, _)| set.has(names));
    set.has(START) && set.has(FINISH) && (has_size || set.has(BACKUP_SET))
}

fn is_media(set: &ResultSet) -> bool {
    set.has(MEDIA_SET) && set.has(DEVICE) && !is_history(set)
}

/// Describes the stripes of a backup.
fn describe(stripes: &Stripes, own: &mut Ended) {
    let count = u64::try_from(stripes.families.len()).ok().filter(|count| *count > 0);
    own.number(attribute::STRIPES, count);
    own.number(attribute::BLOCK_BYTES, stripes.block);
    for device in &stripes.devices {
        own.target(device);
    }
}

/// Reads the tables of stripes of an input.
pub(crate) fn read_media(input: Bytes) -> Result<Media, ImportError> {
    let mut history = History::default();
    history.read(input, Clock::default())?;
    Ok(history.media)
}

/// Opens a history.
fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let mut history = History { media: (*options.media.0).clone(), ..History::default() };
    history.read(input, options.clock)?;
    if history.rows == 0 {
        return Err(ImportError::Empty { reason: "the table of backups has no row".to_owned() });
    }
    Ok(Box::new(Reader {
        notes: history.notes(),
        ended: history.ended(),
        backups: Backups::default(),
    }))
}

/// Rejects a table of stripes without a history.
fn open_media(_: Bytes, _: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let reason = "it states where backups are, but not how long they took: give \
                  msdb.dbo.backupset, too";
    Err(ImportError::Empty { reason: reason.to_owned() })
}

struct Reader {
    ended: VecDeque<Ended>,
    notes: Vec<String>,
    backups: Backups,
}

impl ReadSamples for Reader {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        for note in self.notes.drain(..) {
            sheet.note(note);
        }
        Ok(self.ended.pop_front().map(|own| self.backups.put(sheet, &own)))
    }
}

/// A row of `backupset` and its stripes.
#[derive(Debug, Default)]
struct Set {
    ended: Ended,
    media: Option<String>,
    stripes: Stripes,
}

/// The contents of all tables.
#[derive(Debug, Default)]
struct History {
    /// Backups by their identifying columns.
    sets: BTreeMap<String, Set>,
    media: Media,
    rows: usize,
    without_end: u64,
    without_zone: bool,
    backwards: u64,
}

impl History {
    fn read(&mut self, input: Bytes, clock: Clock) -> Result<(), ImportError> {
        let mut sets = ResultSets::new(input)?;
        while let Some(set) = sets.next_set()? {
            let is_history = is_history(&set);
            let is_media = is_media(&set);
            while let Some(row) = sets.next_row(&set)? {
                if is_history {
                    self.backup(&set, &row, clock)?;
                } else if is_media {
                    let Some(id) = row.text(set.column(MEDIA_SET)).map(str::to_owned) else {
                        continue;
                    };
                    stripe(self.media.entry(id).or_default(), &set, &row)?;
                }
                self.rows += 1;
                if self.rows > MOST {
                    return Err(row.wrong(format!(
                        "a history of more than {MOST} rows is not read: leave out the older ones, \
                         or log backups"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Takes a row of a backup, which a join repeats for each stripe.
    fn backup(&mut self, set: &ResultSet, row: &Row, clock: Clock) -> Result<(), ImportError> {
        let text = |names: &[&str]| row.text(set.column(names));
        let zone = row.number(set, set.column(&["timezone"])).ok().flatten();
        let zone = zone.filter(|zone| *zone != NO_ZONE && zone.abs() <= 60.0);
        #[expect(clippy::cast_possible_truncation, reason = "a zone is within a day")]
        let offset = zone.map(|zone| zone as i64 * QUARTER);
        let clock = Clock { offset: offset.unwrap_or(clock.offset), ..clock };
        let time = |names: &[&str]| -> Result<Option<i64>, ImportError> {
            let Some(text) = row.text(set.column(names)) else { return Ok(None) };
            let wrong = || row.wrong(format!("{} is {text:?}, which is not a time", names[0]));
            clock.moment(text).map(Some).ok_or_else(wrong)
        };
        let (start, finish) = (time(START)?, time(FINISH)?);
        let Some(finish) = finish else {
            self.without_end += 1;
            return Ok(());
        };
        self.without_zone |= offset.is_none();
        let joined = [DATABASE, START, FINISH, TYPE, MEDIA_SET, &["position"]];
        let key = match text(BACKUP_SET) {
            Some(id) => format!("{} {id}", text(&["servername"]).unwrap_or_default()),
            None => joined.map(|names| text(names).unwrap_or_default()).join("\u{1f}"),
        };
        let size = |all: &[(&[&str], f64)]| -> Result<Option<f64>, ImportError> {
            let found = all.iter().find_map(|(names, by)| Some((set.column(names)?, by)));
            let Some((at, by)) = found else { return Ok(None) };
            let number = row.number(set, Some(at))?;
            if number.is_some_and(|number| number < 0.0) {
                return Err(row.wrong("a backup has a negative size".to_owned()));
            }
            Ok(number.map(|number| number * by))
        };
        let (bytes, written) = (size(SIZE)?, size(COMPRESSED)?);
        let own = self.sets.entry(key).or_default();
        stripe(&mut own.stripes, set, row)?;
        own.media = text(MEDIA_SET).map(str::to_owned);
        let nanos = start.map(|start| finish.saturating_sub(start));
        if nanos.is_some_and(|nanos| nanos < 0) {
            self.backwards += 1;
        }
        let is_compressed = bytes.zip(written).is_some_and(|(bytes, written)| written < bytes);
        #[expect(clippy::cast_precision_loss, reason = "for rates, 53 bits are enough")]
        let seconds = nanos.filter(|nanos| *nanos > 0).map(|nanos| nanos as f64 / 1e9);
        own.ended = Ended {
            tool: TOOL,
            what: what(text(TYPE).unwrap_or("D")),
            host: text(&["servername", "machinename"]).map(str::to_owned),
            database: text(DATABASE).map(str::to_owned),
            bytes,
            written,
            seconds,
            ended: Some(finish),
            ..Ended::default()
        };
        let algorithm = text(&["compressionalgorithm"]).or(is_compressed.then_some("on"));
        own.ended.text(attribute::COMPRESSION, algorithm);
        let is_copy = text(&["iscopyonly"])
            .is_some_and(|flag| flag == "1" || flag.eq_ignore_ascii_case("true"));
        own.ended.number("copy_only", is_copy.then_some(1));
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.without_zone {
            notes.push(
                "times in msdb are local to the server, and no column time_zone states its zone: \
                 UTC is assumed unless --utc-offset is given"
                    .to_owned(),
            );
        }
        let is_short = |set: &&Set| {
            set.ended.seconds.is_none_or(|seconds| seconds <= 1.0) && set.ended.bytes.is_some()
        };
        let short = self.sets.values().filter(is_short).count();
        if short > 0 {
            notes.push(format!(
                "msdb stores whole seconds: the rates of {short} backups of one second or less are \
                 inexact"
            ));
        }
        if self.without_end > 0 {
            notes.push(format!("{} rows without an end are left out", self.without_end));
        }
        if self.backwards > 0 {
            let count = self.backwards;
            notes.push(format!(
                "{count} backups end before they begin, because the clock was changed: their \
                 duration is unknown"
            ));
        }
        notes
    }

    /// Returns the backups in the order of their ends.
    fn ended(self) -> VecDeque<Ended> {
        let media = self.media;
        let whole = |set: Set| {
            let mut own = set.ended;
            let of_media = set.media.and_then(|id| media.get(&id));
            match of_media.filter(|_| set.stripes.families.is_empty()) {
                Some(stripes) => describe(stripes, &mut own),
                None => describe(&set.stripes, &mut own),
            }
            own
        };
        let mut all: Vec<Ended> = self.sets.into_values().map(whole).collect();
        all.sort_by(|one, other| {
            let key = |own: &Ended| (own.ended, own.database.clone());
            key(one).cmp(&key(other))
        });
        all.into()
    }
}

/// Adds the stripe of a row.
fn stripe(own: &mut Stripes, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
    let device = row.text(set.column(DEVICE));
    let is_copy = row.number(set, set.column(&["mirror"]))?.is_some_and(|copy| copy > 0.0);
    let Some(device) = device.filter(|_| !is_copy) else { return Ok(()) };
    let number = row.text(set.column(&["familysequencenumber"])).unwrap_or(device);
    if own.families.len() < 64 {
        own.families.insert(number.to_owned());
        own.devices.insert(device.to_owned());
    }
    let block = row.number(set, set.column(&["physicalblocksize"]))?;
    let block = block.and_then(|bytes| m::BACKUP_BYTES.stored(bytes));
    own.block = own.block.or(block.and_then(|bytes| u64::try_from(bytes).ok()));
    Ok(())
}

/// Returns the kind of a backup by its letter, or by a word that a query uses instead.
fn what(letter: &str) -> &'static str {
    let lower = letter.trim().to_ascii_lowercase();
    match lower.as_str() {
        "i" | "differential" | "diff" | "q" => "differential",
        "l" | "log" | "transaction log" => "log",
        "f" | "g" | "file" | "filegroup" => "file",
        "p" | "partial" => "partial",
        _ => "full",
    }
}
