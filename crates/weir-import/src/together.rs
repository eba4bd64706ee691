//! Inputs that are read together: the files of a binary trace, and the tables of stripes beside a
//! history of backups.

use crate::backup::history;
use crate::detect::detect;
use crate::error::ImportError;
use crate::input::{Failure, Input};
use crate::options::{BackupMedia, Media, Options};
use crate::trace::blktrace;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

/// Joins the files of a binary trace, `NAME.blktrace.0` and so on, into one input.
pub(crate) fn with_traces_together(inputs: Vec<Input>) -> Result<Vec<Input>, Failure> {
    let mut rest = Vec::new();
    let mut traces: BTreeMap<String, Vec<Input>> = BTreeMap::new();
    for mut input in inputs {
        let begin = input.bytes.fill_buf();
        let failed = |error: std::io::Error| (input.name.clone(), ImportError::from(error));
        let is_trace = match input.kind {
            Some(kind) => kind == blktrace::KIND,
            // A processor without requests has an empty file.
            None => {
                let begin = begin.map_err(failed)?;
                begin.is_empty() || blktrace::recognizes(begin)
            }
        };
        match input.name.rsplit_once(".blktrace.").filter(|_| is_trace) {
            Some((name, _)) => traces.entry(name.to_owned()).or_default().push(input),
            None => rest.push(input),
        }
    }
    for (name, mut parts) in traces {
        if parts.len() == 1 {
            rest.append(&mut parts);
            continue;
        }
        let name = format!("{name}.blktrace.*");
        let kind = Some(blktrace::KIND);
        let files = parts.into_iter().map(|part| part.bytes).collect();
        let bytes = blktrace::merged(files);
        let bytes = bytes.map_err(|error| (name.clone(), ImportError::from(error)))?;
        rest.push(Input { name, bytes, kind });
    }
    Ok(rest)
}

/// Inputs, the options with their tables of stripes, and the name, kind and number of samples of
/// each table.
type WithMedia = (Vec<Input>, Options, Vec<(String, &'static str, u64)>);

/// Moves the tables of stripes from the inputs to the options, for the other inputs.
///
/// # Errors
///
/// The table at fault, and the reason.
pub(crate) fn with_media(inputs: Vec<Input>, options: &Options) -> Result<WithMedia, Failure> {
    let mut options = options.clone();
    if inputs.len() < 2 {
        return Ok((inputs, options, Vec::new()));
    }
    let (mut rest, mut media, mut read) = (Vec::new(), Media::new(), Vec::new());
    for mut input in inputs {
        let kind = match input.kind {
            Some(kind) => Some(kind),
            None => {
                let begin = input.bytes.fill_buf();
                let begin = begin.map_err(|error| (input.name.clone(), error.into()))?;
                detect(begin).ok()
            }
        };
        match kind.filter(|kind| *kind == history::MEDIA_KIND) {
            Some(kind) => {
                let name = input.name.clone();
                let own =
                    history::read_media(input.bytes).map_err(|error| (name.clone(), error))?;
                media.extend(own);
                read.push((name, kind.name, 0));
            }
            None => rest.push(input),
        }
    }
    options.media = BackupMedia(Arc::new(media));
    Ok((rest, options, read))
}
