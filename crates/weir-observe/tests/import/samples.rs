//! The genuine files that lie beside the project, each read right or refused with a reason.

use crate::bed::{Read, try_read};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;
use weir_observe::import::{ImportError, Input, Options};

/// The folder of the samples; says so aloud if it is not there.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so aloud")]
pub(crate) fn folder() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    if !root.is_dir() {
        println!("skipped: needs the samples beside the project");
        return None;
    }
    Some(root)
}

/// Reads a sample.
pub(crate) fn try_sample(path: &str) -> Option<Result<Read, ImportError>> {
    let file = File::open(folder()?.join(path)).expect(path);
    let input = Input { name: path.to_owned(), bytes: Box::new(BufReader::new(file)), kind: None };
    Some(try_read(vec![input], &Options::default()))
}

/// Reads a sample that can be read.
#[track_caller]
pub(crate) fn sample(path: &str) -> Option<Read> {
    Some(try_sample(path)?.unwrap_or_else(|error| panic!("{path}: {error}")))
}

/// Nothing panics, and what is refused is so with words.
#[test]
fn every_sample_is_read_or_refused() {
    let Some(root) = folder() else { return };
    let mut folders = vec![root.clone()];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    paths.sort();
    for path in paths {
        let name = path.strip_prefix(&root).expect("within").display().to_string();
        match try_sample(&name).expect("the samples") {
            Ok(read) => {
                let (kind, summary) = (read.kind().to_owned(), &read.summary);
                println!("{name}: {kind}, {} samples, {} series", summary.samples, summary.series);
                for note in &summary.notes {
                    println!("    {}", note.chars().take(200).collect::<String>());
                }
            }
            Err(error) => {
                assert!(!error.to_string().trim().is_empty(), "{name} is refused without a word");
                println!("{name}: refused: {error}");
            }
        }
    }
}
