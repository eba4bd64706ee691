//! Errors of the tasks. A finding is not an error.

use crate::fuzz::Target;
use std::io;
use std::path::{Path, PathBuf};

/// An error of a task.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum XtaskError {
    /// A file or folder could not be read or written.
    #[error("{}: {doing} failed: {source}", path.display())]
    File {
        /// The action, as "reading".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The program to test is not there.
    #[error("{}: {source}; build it with `cargo build --release -p weir`, or name another program with --weir", path.display())]
    Program {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A target has no corpus.
    #[error("{}: no corpus for {target}; run `cargo xtask fuzz-corpus` or add a file", path.display())]
    NoCorpus {
        /// The target.
        target: Target,
        /// The folder of the corpus.
        path: PathBuf,
    },
    /// A line of a dictionary that is not `"token"`.
    #[error("{}:{line}: {text} is not a token; write \"text\" with \\\" \\\\ or \\x41", path.display())]
    Dictionary {
        /// The dictionary.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// Replaying names an input of one target.
    #[error("--iteration and --input replay one input; say of which target with --target")]
    OneTarget,
    /// A system call failed.
    #[error("{doing} failed: {source}")]
    System {
        /// The action.
        doing: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A file of facts has another form than expected.
    #[error("{file}: {reason}")]
    Facts {
        /// The file.
        file: String,
        /// The difference.
        reason: String,
    },
    /// Labs that cannot be compared.
    #[error("{0}; give the output of `weir lab run NAME --clock both --output json`")]
    Labs(String),
    /// A campaign of crashes found something that is lost, or a server that does not work.
    #[error("{0}")]
    Lost(String),
    /// A check of a replayed write log failed.
    #[error(
        "entry {entry}, point {point}: {said}\n{} has the content of this point",
        image.display()
    )]
    Unsound {
        /// The number of the entry.
        entry: u64,
        /// The number of the point, from 1.
        point: u64,
        /// The image.
        image: PathBuf,
        /// The check and its output.
        said: String,
    },
    /// A write log or an image cannot be read or written.
    #[error("{0}{hint}", hint = .0.hint().map_or_else(String::new, |hint| format!("; {hint}")))]
    Store(#[from] weir_store::StoreError),
    /// A suite cannot be built or run.
    #[error("{0}")]
    Suite(String),
    /// A generated file is out of date.
    #[error("{}:{line} is out of date; run `cargo xtask schema` and commit it", path.display())]
    Stale {
        /// The file.
        path: PathBuf,
        /// The first line that differs.
        line: usize,
    },
}

impl XtaskError {
    /// Returns a function for `map_err`.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { doing, path, source }
    }
}
