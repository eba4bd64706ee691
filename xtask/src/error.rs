//! Every way in which a chore can fail other than by finding what it looks for.

use crate::fuzz::Target;
use std::io;
use std::path::{Path, PathBuf};

/// Why a chore could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum XtaskError {
    /// A file or folder could not be read or written.
    #[error("{}: {doing} failed: {source}", path.display())]
    File {
        /// What was tried, as "reading".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A target has nothing to start from.
    #[error("{}: no corpus for {target}; run `cargo xtask fuzz-corpus` or add a file", path.display())]
    NoCorpus {
        /// The target.
        target: Target,
        /// Where its corpus should be.
        path: PathBuf,
    },
    /// A line of a dictionary that is not `"token"`.
    #[error("{}:{line}: {text} is not a token; write \"text\" with \\\" \\\\ or \\x41", path.display())]
    Dictionary {
        /// The dictionary.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// Replaying names an input of one target.
    #[error("--iteration and --input replay one input; say of which target with --target")]
    OneTarget,
    /// The operating system refused something.
    #[error("{doing} failed: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A generated file is not what would be generated now.
    #[error("{}:{line} is out of date; run `cargo xtask schema` and commit it", path.display())]
    Stale {
        /// The file.
        path: PathBuf,
        /// The first line that differs.
        line: usize,
    },
}

impl XtaskError {
    /// To be used in `map_err`.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { doing, path, source }
    }
}
