//! The kinds of input, and their detection.

use super::compressed::{self, GZIP, XZ, ZSTD};
use super::linux::stamped;
use super::merge::Options;
use super::near::{self, Nearest};
use super::sheet::ReadSamples;
use super::{ImportError, backup, bench, cloud, linux, postgres, sql, text, trace, windows};
use std::fmt;
use std::io::{self, BufRead, Read};
use weir_observe::moment::Clock;

/// The bytes of an input.
pub type Bytes = Box<dyn BufRead>;

/// Returns the bytes of an input, decompressed if it was compressed with gzip, xz or zstd.
///
/// # Errors
///
/// [`io::Error`] if its beginning cannot be read.
pub fn bytes_of(input: impl Read + Send + 'static) -> io::Result<Bytes> {
    compressed::decompressed(input)
}

/// A test of the beginning of an input.
#[derive(Clone, Copy)]
pub(super) enum By {
    Text(fn(&str) -> bool),
    /// For binary input; tried before all text.
    Bytes(fn(&[u8]) -> bool),
}

type Open = fn(Bytes, &Options) -> Result<Box<dyn ReadSamples>, ImportError>;

/// A kind of input.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name, as `--as` takes it.
    pub name: &'static str,
    /// Its description.
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

/// The kinds by origin, in the order of detection. Kinds with distinctive words come before kinds
/// known by their shape.
const GROUPS: [&[Kind]; 8] = [
    cloud::KINDS,
    windows::KINDS,
    linux::KINDS,
    backup::KINDS,
    sql::KINDS,
    postgres::KINDS,
    trace::KINDS,
    bench::KINDS,
];

/// Returns all kinds.
pub fn all() -> impl Iterator<Item = Kind> {
    GROUPS.into_iter().flatten().copied()
}

/// Binary formats that are recognized and not read: first bytes, name, and reason.
type RefusedBytes = (&'static [u8], &'static str, &'static str);

const REFUSED_BYTES: &[RefusedBytes] = &[
    (GZIP.1, "compressed with gzip", "decompress it, and take that"),
    (XZ.1, "compressed with xz", "decompress it, and take that"),
    (ZSTD.1, "compressed with zstd", "decompress it, and take that"),
];

/// Text formats that are recognized and not read: name, test, and reason.
type Refused = (&'static str, fn(&str) -> bool, &'static str);

const REFUSED: &[Refused] = &[
    (
        "iostat of macOS",
        |text| is_foreign_iostat(text, false),
        "it does not tell reads from writes",
    ),
    ("iostat of BSD", |text| is_foreign_iostat(text, true), "it does not tell reads from writes"),
    (
        "the aggregated counters of a SKU assessment of SQL Server",
        is_aggregated_assessment,
        "the meaning and the units of its counters (FNR, FRM, FRL and others) are not published, and \
         it has only their extremes and means over minutes; collect counters with PerfMon or \
         Get-Counter, and import these beside the files _CommonDbLevel_Counters.csv",
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
    /// Returns the kind of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        all().find(|kind| kind.name == name)
    }

    /// Detects the kind of an input that begins with `bytes`.
    ///
    /// # Errors
    ///
    /// [`ImportError::UnknownKind`], with the nearest kinds.
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
        let (found, is_text) = found(&text, bytes);
        let nearest = if is_text { near::nearest(&text) } else { Vec::new() };
        Err(ImportError::UnknownKind { found, nearest })
    }

    /// Opens a reader of `input`.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if the beginning of the input does not fit the kind.
    pub fn open(
        self,
        input: Bytes,
        options: &Options,
    ) -> Result<Box<dyn ReadSamples>, ImportError> {
        (self.open)(input, options)
    }
}

/// Describes the beginning of an input, and whether it is text.
fn found(text: &str, bytes: &[u8]) -> (String, bool) {
    if bytes.is_empty() {
        return ("it is empty".to_owned(), false);
    }
    let strange = text.chars().filter(|c| c.is_control() && !c.is_whitespace()).count();
    if strange * 20 > text.len() {
        return ("it is no text".to_owned(), false);
    }
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let short: String = first.trim().chars().take(60).collect();
    (format!("it begins with {short:?}"), true)
}

/// Returns the kinds nearest to an input that begins with `bytes`, the nearest first.
#[must_use]
pub fn nearest(bytes: &[u8]) -> Vec<Nearest> {
    near::nearest(&text::beginning(bytes))
}

/// Returns whether a text has the head of iostat on another system: on BSD, with columns of
/// terminals or of niced processes, or else on macOS.
fn is_foreign_iostat(text: &str, is_bsd: bool) -> bool {
    const DISK: [&str; 3] = ["KB/t", "tps", "MB/s"];
    const BSD: [&str; 4] = ["tin", "tout", "ni", "in"];
    const OTHERS: [&str; 7] = ["us", "sy", "id", "1m", "5m", "15m", "xfrs"];
    text.lines().any(|line| {
        let words: Vec<_> = stamped(line, Clock::default()).1.split_whitespace().collect();
        let has_bsd = words.iter().any(|word| BSD.contains(word));
        DISK.iter().all(|name| words.contains(name))
            && has_bsd == is_bsd
            && words
                .iter()
                .all(|word| DISK.contains(word) || BSD.contains(word) || OTHERS.contains(word))
    })
}

/// Returns whether a text is the aggregated counters of a SKU assessment of SQL Server.
fn is_aggregated_assessment(text: &str) -> bool {
    let head = text.lines().next().unwrap_or_default().to_ascii_lowercase();
    let names: Vec<_> =
        head.split(',').map(|name| name.trim_matches(['"', ' ', '\u{feff}'])).collect();
    let has = |name: &str| names.iter().any(|own| own.contains(name));
    has("countername") && (has("aggregatortype") || has("max") && (has("mean") || has("variance")))
}
