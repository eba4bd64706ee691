//! A kind of input: how an importer describes itself.

use crate::error::ImportError;
use crate::options::Options;
use crate::sheet::ReadSamples;
use std::fmt;
use std::io::BufRead;

/// The bytes of an input.
pub type Bytes = Box<dyn BufRead>;

/// A test of the beginning of an input.
#[derive(Clone, Copy)]
pub(crate) enum By {
    Text(fn(&str) -> bool),
    /// For binary input; tried before all text.
    Bytes(fn(&[u8]) -> bool),
    /// For text that shows no kind: the user states it.
    Stated,
}

type Open = fn(Bytes, &Options) -> Result<Box<dyn ReadSamples>, ImportError>;

/// A kind of input.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name, as `--as` takes it.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    pub(crate) recognizes: By,
    pub(crate) open: Open,
    /// The signs of its tables, which suggest it for an input of no known kind. None if the kind is
    /// binary or stated.
    pub(crate) signs: &'static [&'static [Sign]],
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

impl Kind {
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

/// The most alternatives of a sign that are named.
const ALTERNATIVES: usize = 4;

/// A sign of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sign {
    /// One of these words, without regard to case.
    Word(&'static [&'static str]),
    /// One of these texts.
    Text(&'static [&'static str]),
    Json,
    Xml,
    /// A first row of mostly numbers: separator, least and most fields.
    Rows(char, usize, usize),
}

impl Sign {
    /// Returns the weight of a sign: many inputs are JSON, or rows of numbers.
    pub(crate) const fn points(self) -> u32 {
        match self {
            Self::Word(_) | Self::Text(_) => 2,
            Self::Json | Self::Xml | Self::Rows(..) => 1,
        }
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(all) | Self::Text(all) => {
                let named: Vec<_> =
                    all.iter().take(ALTERNATIVES).map(|text| format!("{text:?}")).collect();
                let one = if named.len() > 1 { "one of " } else { "" };
                write!(f, "{one}{}", named.join(", "))
            }
            Self::Json => f.write_str("the form of JSON"),
            Self::Xml => f.write_str("the form of XML"),
            Self::Rows(separator, least, most) => {
                let between = match separator {
                    ' ' => "spaces",
                    '\t' => "tabs",
                    _ => "commas",
                };
                match least == most {
                    true => write!(f, "rows of {least} fields between {between}"),
                    false => write!(f, "rows of {least} to {most} fields between {between}"),
                }
            }
        }
    }
}
