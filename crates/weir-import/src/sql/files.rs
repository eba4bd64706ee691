//! Files: counters since the start of the server (`sys.dm_io_virtual_file_stats`), and sizes with
//! their limits (`sys.master_files`, `sys.database_files`, files of an assessment).

use super::identity::{Identity, Numbers};
use crate::error::ImportError;
use crate::results::{ResultSet, Row};
use crate::rows::{Columns, Meaning, ReadRows, Rows, columns};
use std::collections::HashMap;
use weir_observe::header::EntityId;
use weir_observe::metric as m;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
const PAGE: f64 = 8192.0;
const MS: f64 = 1e6;

const COUNTERS: &[Meaning] = &[
    (&["numofreads", "numberreads"], &m::NUM_OF_READS, 1.0),
    (&["numofwrites", "numberwrites"], &m::NUM_OF_WRITES, 1.0),
    (&["numofbytesread", "bytesread"], &m::NUM_OF_BYTES_READ, 1.0),
    (&["numofmbread", "mbread"], &m::NUM_OF_BYTES_READ, MIB),
    (&["numofbyteswritten", "byteswritten"], &m::NUM_OF_BYTES_WRITTEN, 1.0),
    (&["numofmbwritten", "mbwritten"], &m::NUM_OF_BYTES_WRITTEN, MIB),
    (&["iostallreadms", "iostallread"], &m::IO_STALL_READ_MS, 1.0),
    (&["iostallwritems", "iostallwrite"], &m::IO_STALL_WRITE_MS, 1.0),
    (&["iostallqueuedreadms"], &m::IO_STALL_QUEUED_READ_MS, 1.0),
    (&["iostallqueuedwritems"], &m::IO_STALL_QUEUED_WRITE_MS, 1.0),
    (&["iostall", "iostallms"], &m::IO_STALL_MS, 1.0),
];

/// Means since the start of the server, used only if the counters are missing.
const MEANS: &[Meaning] = &[
    (
        &["avgreadlatencyms", "avgreadstallms", "readlatencyms", "readlatency", "avgreadlatency"],
        &m::READ_LATENCY_NS,
        MS,
    ),
    (
        &[
            "avgwritelatencyms",
            "avgwritestallms",
            "writelatencyms",
            "writelatency",
            "avgwritelatency",
        ],
        &m::WRITE_LATENCY_NS,
        MS,
    ),
];

const SIZES: &[Meaning] = &[
    (&["sizeondiskbytes", "bytesondisk", "sizebytes"], &m::SIZE_ON_DISK_BYTES, 1.0),
    (&["sizemb", "sizeinmb", "sizeondiskmb", "filesizemb"], &m::SIZE_ON_DISK_BYTES, MIB),
    (&["sizekb", "sizeinkb", "filesizekb"], &m::SIZE_ON_DISK_BYTES, KIB),
    (&["sizegb", "sizeingb", "filesizegb"], &m::SIZE_ON_DISK_BYTES, GIB),
    (&["size", "sizepages", "sizeinpages"], &m::SIZE_ON_DISK_BYTES, PAGE),
];

/// Columns of `sys.master_files` in pages, or in units that their names say.
const MOST: &[(&[&str], f64)] = &[(&["maxsizemb"], MIB), (&["maxsize"], PAGE)];
const GROWTH: &[(&[&str], f64)] = &[(&["growthmb"], MIB), (&["growth"], PAGE)];

struct Files {
    identity: Identity,
    counters: Columns,
    sizes: Columns,
    most: Option<(usize, f64)>,
    growth: Option<(usize, f64)>,
    is_percent: Option<usize>,
    files: HashMap<String, EntityId>,
    key: String,
    numbers: Numbers,
    told: bool,
}

pub(super) fn plan(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    let identity = Identity::new(set);
    let counters = columns(set, COUNTERS);
    let sizes = columns(set, SIZES);
    let is_counted = counters.iter().any(|(_, measure, _)| {
        [m::IO_STALL_READ_MS, m::IO_STALL_WRITE_MS, m::IO_STALL_MS, m::NUM_OF_READS]
            .contains(measure)
    });
    let is_somebody = identity.database.is_some() || identity.database_id.is_some();
    let is_layout = !sizes.is_empty()
        && identity.names_files()
        && identity.kind.is_some()
        && (identity.path.is_some() || set.has(&["maxsize", "growth"]));
    if !(is_counted && (is_somebody || identity.names_files()) || is_layout) {
        return None;
    }
    let of =
        |all: &[(&[&str], f64)]| all.iter().find_map(|(names, by)| Some((set.column(names)?, *by)));
    Some(Box::new(Files {
        counters: with_means(set, counters),
        sizes,
        most: of(MOST),
        growth: of(GROWTH),
        is_percent: set.column(&["ispercentgrowth"]),
        identity,
        files: HashMap::new(),
        key: String::new(),
        numbers: Numbers::default(),
        told: false,
    }))
}

/// Adds means that no counters give, and leaves out sums of other columns.
fn with_means(set: &ResultSet, mut counters: Columns) -> Columns {
    let has = |counters: &Columns, wanted: &m::Metric| {
        counters.iter().any(|(_, measure, _)| *measure == wanted)
    };
    if has(&counters, &m::IO_STALL_READ_MS) || has(&counters, &m::IO_STALL_WRITE_MS) {
        counters.retain(|(_, measure, _)| **measure != m::IO_STALL_MS);
    }
    for (at, measure, by) in columns(set, MEANS) {
        let (count, stall) = match *measure {
            m::READ_LATENCY_NS => (&m::NUM_OF_READS, &m::IO_STALL_READ_MS),
            _ => (&m::NUM_OF_WRITES, &m::IO_STALL_WRITE_MS),
        };
        if !(has(&counters, count) && has(&counters, stall)) {
            counters.push((at, measure, by));
        }
    }
    counters
}

impl Files {
    /// Notes unused columns and unknown figures.
    fn tell(&mut self, rows: &mut Rows, set: &ResultSet) {
        if self.told {
            return;
        }
        self.told = true;
        let own = self.counters.iter().chain(&self.sizes).map(|(at, _, _)| *at);
        let more = [self.most, self.growth].into_iter().flatten().map(|(at, _)| at);
        let mut used: Vec<_> = own.chain(more).chain(self.is_percent).collect();
        used.extend(self.identity.used());
        used.extend(set.column(&["iostall", "iostallms"]));
        used.extend(set.column(&["size", "sizepages", "sizeinpages"]));
        rows.tell_unused(set, &used);
        if !self.identity.names_files() {
            rows.sheet.note("it does not name its files: they are numbered in order");
        }
        let is_numbered = self.identity.file.is_none() && self.identity.path.is_none();
        if is_numbered && self.identity.names_files() && rows.names.is_empty() {
            rows.sheet.note("its files are shown by number: no table before it names them");
        }
        let has = |wanted: &m::Metric| self.counters.iter().any(|(_, own, _)| *own == wanted);
        for (stall, count, mean, what) in [
            (&m::IO_STALL_READ_MS, &m::NUM_OF_READS, &m::READ_LATENCY_NS, "reads"),
            (&m::IO_STALL_WRITE_MS, &m::NUM_OF_WRITES, &m::WRITE_LATENCY_NS, "writes"),
        ] {
            if has(stall) && !has(count) && !has(mean) {
                let counted = count.name;
                rows.sheet.note(format!(
                    "the latency of {what} is unknown: there is no {counted} to divide by"
                ));
            }
            if has(mean) {
                rows.sheet.note(format!(
                    "the latency of {what} is a mean since the server started, since there are no sums"
                ));
            }
        }
    }

    fn file(
        &mut self,
        rows: &mut Rows,
        set: &ResultSet,
        row: &Row,
    ) -> Result<EntityId, ImportError> {
        self.identity.key(row, &mut self.key);
        if !self.identity.names_files() {
            let number = self.numbers.next(&self.identity, rows, row);
            self.key.push_str(&number.to_string());
            return self.known(rows, set, row, number);
        }
        self.known(rows, set, row, 0)
    }

    /// Returns the file of the current key.
    fn known(
        &mut self,
        rows: &mut Rows,
        set: &ResultSet,
        row: &Row,
        number: u64,
    ) -> Result<EntityId, ImportError> {
        if let Some(file) = self.files.get(&self.key) {
            return Ok(*file);
        }
        let file = self.identity.file(rows, row, number);
        self.describe(rows, set, row, file)?;
        self.files.insert(self.key.clone(), file);
        Ok(file)
    }

    /// Records the size of a file and its limits; -1 is no limit, and 0 no growth.
    fn describe(
        &self,
        rows: &mut Rows,
        set: &ResultSet,
        row: &Row,
        file: EntityId,
    ) -> Result<(), ImportError> {
        if let Some((at, _, by)) = self.sizes.first() {
            let size = row.number(set, Some(*at))?;
            rows.attribute(file, "size_bytes", size.map(|size| size * by));
        }
        // Some queries print words here: unlimited, 10%.
        let number = |column: Option<(usize, f64)>| {
            let (at, by) = column?;
            let number = row.number(set, Some(at)).ok()??;
            (number > 0.0).then_some((number, by))
        };
        let most = number(self.most).map(|(most, by)| most * by);
        rows.attribute(file, "max_size_bytes", most);
        let is_percent = row.text(self.is_percent).is_some_and(|is| is == "1" || is == "True");
        match number(self.growth) {
            Some((growth, _)) if is_percent => {
                rows.attribute(file, "growth_percent", Some(growth));
            }
            growth => rows.attribute(file, "growth_bytes", growth.map(|(growth, by)| growth * by)),
        }
        Ok(())
    }
}

impl ReadRows for Files {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        self.tell(rows, set);
        let file = self.file(rows, set, row)?;
        let what = if self.counters.is_empty() { "layout" } else { "counters" };
        let at = rows.stamp(row, file, what)?;
        rows.set_all(at, file, (set, row), &self.counters)?;
        rows.set_all(at, file, (set, row), &self.sizes)
    }
}
