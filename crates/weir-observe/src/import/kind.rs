//! The kinds of input, and telling which one it is.

use super::compressed::{self, GZIP, XZ, ZSTD};
use super::merge::Options;
use super::sheet::ReadSamples;
use super::{ImportError, bench, cloud, linux, postgres, sql, text, trace, windows};
use std::fmt;
use std::io::{self, BufRead, Read};

/// An input that a reader takes.
pub type Bytes = Box<dyn BufRead>;

/// Returns the bytes of an input, decompressed if it was compressed with gzip, xz or zstd.
///
/// # Errors
///
/// [`io::Error`] if its beginning cannot be read.
pub fn bytes_of(input: impl Read + Send + 'static) -> io::Result<Bytes> {
    compressed::decompressed(input)
}

/// What an input is recognized by: whether one that begins so is of a kind.
#[derive(Clone, Copy)]
pub(super) enum By {
    Text(fn(&str) -> bool),
    /// Of what is no text. It is tried before all text.
    Bytes(fn(&[u8]) -> bool),
}

type Open = fn(Bytes, &Options) -> Result<Box<dyn ReadSamples>, ImportError>;

/// A kind of input.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name, as `--as` takes it.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    pub(super) recognizes: By,
    pub(super) open: Open,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kind").field(&self.name).finish()
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The kinds by where they come from, in the order in which they are looked for: what is known
/// by its own words comes before what is known by its shape.
const GROUPS: [&[Kind]; 7] = [
    cloud::KINDS,
    windows::KINDS,
    linux::KINDS,
    sql::KINDS,
    postgres::KINDS,
    trace::KINDS,
    bench::KINDS,
];

/// All kinds.
pub fn all() -> impl Iterator<Item = Kind> {
    GROUPS.into_iter().flatten().copied()
}

/// What is known and not read: what it begins with, what it is called, and why.
type RefusedBytes = (&'static [u8], &'static str, &'static str);

const REFUSED_BYTES: &[RefusedBytes] = &[
    (GZIP.1, "compressed with gzip once more", "decompress it, and import that"),
    (XZ.1, "compressed with xz once more", "decompress it, and import that"),
    (ZSTD.1, "compressed with zstd once more", "decompress it, and import that"),
];

/// What is known and not read, by what it is called, how it is recognized, and why.
type Refused = (&'static str, fn(&str) -> bool, &'static str);

const REFUSED: &[Refused] = &[
    (
        "iostat of macOS",
        |text| text.contains("KB/t") && text.contains("MB/s"),
        "it does not tell reads from writes",
    ),
    (
        "metrics in a format of OpenTelemetry",
        cloud::metric_stream::is_open_telemetry,
        "set the output format of the metric stream to JSON",
    ),
    (
        "the answer of describe-volumes of AWS",
        |text| text.contains("\"Volumes\"") && text.contains("\"VolumeType\""),
        "it says what volumes there are, and not what they did",
    ),
    (
        "the answer of describe-db-instances of AWS",
        |text| text.contains("\"DBInstances\"") && text.contains("\"AllocatedStorage\""),
        "it says what instances there are, and not what they did",
    ),
    (
        "a job file of fio",
        bench::fio::is_job_file,
        "it says what is to be run, and has no result; give it to `weir sim`",
    ),
    (
        "a result of Iometer",
        |text| text.contains("'Target Type,Target Name") || text.contains("'Test Type,Test Desc"),
        "only its access specifications (.icf) are",
    ),
    (
        "the terse output of fio",
        bench::fio::is_terse,
        "its fields have no names; run fio with --output-format=json",
    ),
    (
        "a log of single transactions of pgbench",
        bench::pgbench_log::is_of_transactions,
        "run pgbench with --aggregate-interval too",
    ),
];

impl Kind {
    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        all().find(|kind| kind.name == name)
    }

    /// The kind of an input that begins with `bytes`.
    ///
    /// # Errors
    ///
    /// [`ImportError::UnknownKind`], with what was looked for.
    pub fn of(bytes: &[u8]) -> Result<Self, ImportError> {
        let by_bytes = |kind: &Self| matches!(kind.recognizes, By::Bytes(is_it) if is_it(bytes));
        if let Some(kind) = all().find(by_bytes) {
            return Ok(kind);
        }
        let refused = REFUSED_BYTES.iter().find(|(begin, _, _)| bytes.starts_with(begin));
        if let Some((_, what, why)) = refused {
            return Err(ImportError::whole(format!("it is {what}, which is not read: {why}")));
        }
        let text = text::beginning(bytes);
        let by_text = |kind: &Self| matches!(kind.recognizes, By::Text(is_it) if is_it(&text));
        if let Some(kind) = all().find(by_text) {
            return Ok(kind);
        }
        if let Some((what, _, why)) = REFUSED.iter().find(|(_, is_it, _)| is_it(&text)) {
            return Err(ImportError::whole(format!("it is {what}, which is not read: {why}")));
        }
        let names: Vec<_> = all().map(|kind| kind.name).collect();
        Err(ImportError::UnknownKind { found: found(&text, bytes), looked_for: names.join(", ") })
    }

    /// A reader of `input`.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if its beginning is not what it must be.
    pub fn open(
        self,
        input: Bytes,
        options: &Options,
    ) -> Result<Box<dyn ReadSamples>, ImportError> {
        (self.open)(input, options)
    }
}

/// What an input begins with, for a person.
fn found(text: &str, bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "it is empty".to_owned();
    }
    let strange = text.chars().filter(|c| c.is_control() && !c.is_whitespace()).count();
    if strange * 20 > text.len() {
        return "it is no text".to_owned();
    }
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let short: String = first.trim().chars().take(60).collect();
    format!("it begins with {short:?}")
}
