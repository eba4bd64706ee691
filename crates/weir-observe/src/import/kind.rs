//! The kinds of input, and telling which one it is.

use super::merge::Options;
use super::sheet::ReadSamples;
use super::{ImportError, linux, text};
use flate2::bufread::MultiGzDecoder;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// An input that a reader takes.
pub type Bytes = Box<dyn BufRead>;

/// Bytes that an input is read in, and that its kind is found by.
const BUFFER: usize = 1 << 18;

/// An input, and what is in it if it was compressed with gzip.
///
/// # Errors
///
/// [`io::Error`] if its beginning cannot be read.
pub fn bytes_of(input: impl Read + 'static) -> io::Result<Bytes> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    if !input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(input));
    }
    Ok(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input))))
}

type Open = fn(Bytes, &Options) -> Result<Box<dyn ReadSamples>, ImportError>;

/// A kind of input.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name, as `--as` takes it.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// Whether an input that begins so is one.
    recognizes: fn(&str) -> bool,
    open: Open,
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

/// All kinds, the more special ones first.
pub const ALL: &[Kind] = &[Kind {
    name: "iostat",
    about: "iostat of sysstat, as text",
    recognizes: linux::iostat::recognizes,
    open: linux::iostat::open,
}];

/// What is known and not read, by what it is called, how it is recognized, and why.
type Refused = (&'static str, fn(&str) -> bool, &'static str);

const REFUSED: &[Refused] = &[(
    "iostat of macOS",
    |text| text.contains("KB/t") && text.contains("MB/s"),
    "it does not tell reads from writes",
)];

impl Kind {
    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().find(|kind| kind.name == name).copied()
    }

    /// The kind of an input that begins with `bytes`.
    ///
    /// # Errors
    ///
    /// [`ImportError::UnknownKind`], with what was looked for.
    pub fn of(bytes: &[u8]) -> Result<Self, ImportError> {
        let text = text::beginning(bytes);
        if let Some(kind) = ALL.iter().find(|kind| (kind.recognizes)(&text)) {
            return Ok(*kind);
        }
        if let Some((what, _, why)) = REFUSED.iter().find(|(_, is_it, _)| is_it(&text)) {
            return Err(ImportError::whole(format!("it is {what}, which is not read: {why}")));
        }
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
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
