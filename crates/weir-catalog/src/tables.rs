//! The tables of machines and prices in `catalog/data`, compressed in the library. A table is unpacked
//! only when a machine or a price of its edition is asked for.
//!
//! `cargo xtask catalog-data` generates the tables, and a test reads each of them. A table that cannot
//! be read is therefore a defect of the build.

use crate::provenance::Citation;
use csv::StringRecord;
use flate2::read::ZlibDecoder;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

/// A compressed table with one line of headings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packed {
    /// Name of the file, for messages.
    pub(crate) name: &'static str,
    bytes: &'static [u8],
}

macro_rules! packed {
    ($name:literal) => {
        Packed {
            name: concat!("catalog/data/", $name, ".csv"),
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".z")),
        }
    };
}

/// The machines of editions.
pub(crate) const HOSTS: [(&str, Packed); 3] = [
    ("azure-now", packed!("azure-hosts")),
    ("aws", packed!("aws-hosts")),
    ("gcp", packed!("gcp-hosts")),
];

/// The prices of editions.
pub(crate) const PRICES: [(&str, Packed); 5] = [
    ("azure-now", packed!("azure-prices")),
    ("azure-mi-now", packed!("azure-mi-prices")),
    ("azure-postgres", packed!("azure-postgres-prices")),
    ("aws", packed!("aws-prices")),
    ("gcp", packed!("gcp-prices")),
];

/// The figures on which sources disagree.
pub(crate) const CONFLICTS: Packed = packed!("conflicts");
const SOURCES: Packed = packed!("sources");

impl Packed {
    /// Returns the text.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        let read = ZlibDecoder::new(self.bytes).read_to_string(&mut text);
        assert!(read.is_ok(), "{} is broken: {read:?}", self.name);
        text
    }

    /// Returns the headings and the rows.
    pub(crate) fn unpack(self) -> (Heads, Vec<StringRecord>) {
        let text = self.text();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let heads = reader.headers().cloned();
        let rows: Result<Vec<StringRecord>, csv::Error> = reader.records().collect();
        match (heads, rows) {
            (Ok(heads), Ok(rows)) => (Heads::index(&heads), rows),
            (heads, rows) => {
                let error = heads.err().or(rows.err());
                unreachable!("{} is broken: {error:?}", self.name)
            }
        }
    }
}

/// The headings of a table. There are few, so a search is faster than a hash, above all from the column after the last
/// one that was asked for, since most readers ask in order.
#[derive(Debug)]
pub(crate) struct Heads {
    names: Vec<String>,
    next: Cell<usize>,
}

impl Heads {
    pub(crate) fn index(heads: &StringRecord) -> Self {
        Self { names: heads.iter().map(str::to_owned).collect(), next: Cell::new(0) }
    }

    /// Returns a cell; empty if the table has no such column.
    pub(crate) fn cell<'a>(&self, row: &'a StringRecord, head: &str) -> &'a str {
        let (before, after) = self.names.split_at(self.next.get().min(self.names.len()));
        let of = |part: &[String]| part.iter().position(|own| own == head);
        let index = of(after).map(|index| before.len() + index).or_else(|| of(before));
        let Some(index) = index else { return "" };
        self.next.set(index + 1);
        row.get(index).unwrap_or_default()
    }
}

/// Returns the document that a key of the tables stands for.
pub(crate) fn citation(key: &str) -> Citation {
    static ALL: LazyLock<BTreeMap<String, Citation>> = LazyLock::new(|| {
        let (heads, rows) = SOURCES.unpack();
        let of = |row: &StringRecord| {
            let text = |head| heads.cell(row, head);
            (text("key").to_owned(), Citation::new(text("source"), text("as_of")))
        };
        rows.iter().map(of).collect()
    });
    let Some(citation) = ALL.get(key) else {
        unreachable!("{} has no {key:?}", SOURCES.name);
    };
    citation.clone()
}
