//! The reader of fio job files.
//!
//! [`parse`] turns the text of a job file into a [`JobFile`]. The table of the `options` module has
//! four kinds of options. An option is read into the [`JobSpec`](crate::JobSpec); or it does not
//! change the I/O and is listed in [`JobFile::ignored`]; or it changes the I/O in a way that is not
//! modelled and is an error; or only its harmless values are accepted. The rules are those of fio
//! 3.33, from its manual and checked against the program. If both differ, the program counts.
//!
//! ```text
//! text --lines--> sections --options--> Draft (globals, then each job's own) --finish--> JobSpec
//! ```

mod change;
mod draft;
mod lines;
mod options;
mod set;
mod source;
mod value;

use crate::error::{FioError, ValueError};
use crate::job::{Ignored, JobFile};
use crate::position::Position;
pub use change::Change;
pub use source::{Isolated, Source};

use draft::Draft;
use lines::{Line, Section};
use options::Meaning;
use value::Value;

/// Reads the job file `text`; `name` is its name in messages.
///
/// # Errors
/// The first fault, with file and line.
pub fn parse(name: &str, text: &str, source: &dyn Source) -> Result<JobFile, FioError> {
    parse_changed(name, text, source, &[])
}

/// Reads the job file `text` with options that are changed or added.
///
/// # Errors
/// The first fault, with file and line, or a change of a section that the file does not have.
pub fn parse_changed(
    name: &str,
    text: &str,
    source: &dyn Source,
    changes: &[Change],
) -> Result<JobFile, FioError> {
    let mut sections = lines::sections(name, text, source)?;
    for change in changes {
        change.apply(name, &mut sections)?;
    }
    let mut file = JobFile::default();
    let mut globals = Draft::default();
    for section in &sections {
        if section.is_global() {
            apply(section, &mut globals, source, &mut file.ignored)?;
        } else {
            let mut draft = globals.clone();
            apply(section, &mut draft, source, &mut file.ignored)?;
            let previous = file.jobs.last();
            let job = draft.finish(section, previous)?;
            if job.time_based && job.runtime.is_none() {
                // fio 3.33 prints this, and continues without it.
                let at = draft.places.get("time_based").unwrap_or(&section.at);
                let why = "it needs a runtime, as in fio; the job ends when its size is done";
                ignore(&mut file.ignored, Ignored { option: "time_based", at: at.clone(), why });
            }
            if job.cuts_at_touched_blocks() && !job.smallest_blocks_agree() {
                let at = draft.places.get("size").unwrap_or(&section.at);
                let why = "the smallest blocks of reads, writes and trims differ, used or not, and \
                           fio's random map then ends a pass before its size is done; give \
                           norandommap to do all of it";
                ignore(&mut file.ignored, Ignored { option: "size", at: at.clone(), why });
            }
            if job.depth > 1 && !job.engine.queued {
                let at = draft.places.get("iodepth").unwrap_or(&section.at);
                let why = "a synchronous ioengine, which is fio's default, has one I/O in flight; \
                           give ioengine=libaio or io_uring";
                ignore(&mut file.ignored, Ignored { option: "iodepth", at: at.clone(), why });
            }
            file.jobs.push(job);
        }
    }
    if file.jobs.is_empty() {
        return Err(FioError::NoJobs { file: name.into() });
    }
    Ok(file)
}

/// Applies a section's options in their order, `kb_base` first: it determines how the others are
/// read, wherever it is.
fn apply(
    section: &Section,
    draft: &mut Draft,
    source: &dyn Source,
    ignored: &mut Vec<Ignored>,
) -> Result<(), FioError> {
    let is_base = |line: &&Line| split(&line.text).0 == "kb_base";
    let base = section.lines.iter().filter(is_base);
    let others = section.lines.iter().filter(|line| !is_base(line));
    for line in base.chain(others) {
        apply_line(line, draft, source, ignored)?;
    }
    Ok(())
}

fn apply_line(
    line: &Line,
    draft: &mut Draft,
    source: &dyn Source,
    ignored: &mut Vec<Ignored>,
) -> Result<(), FioError> {
    let (name, text) = split(&line.text);
    let at = || line.at.clone();
    let Some((option, meaning)) = options::find(name) else {
        let nearest = weir_units::nearest(name, options::names());
        return Err(FioError::UnknownOption { at: at(), option: name.to_owned(), nearest });
    };
    let unsupported = |why| {
        let text = line.text.clone();
        Err(FioError::Unsupported { at: at(), option, text, why })
    };
    let value = |text: Option<&str>| text.unwrap_or_default().trim().to_owned();
    let bad_value =
        |value, kind: ValueError| Err(FioError::BadValue { at: at(), option, value, kind });
    match meaning {
        Meaning::Refused(why) => unsupported(why),
        Meaning::Ignored(why) => {
            ignore(ignored, Ignored { option, at: at(), why });
            Ok(())
        }
        Meaning::Only(allowed, why) => {
            if allowed.contains(&value(text).as_str()) {
                Ok(())
            } else {
                unsupported(why)
            }
        }
        Meaning::Set(set) => {
            let expanded = match text.map(|text| check_text(text, source)).transpose() {
                Ok(expanded) => expanded,
                Err(kind) => return bad_value(value(text), kind),
            };
            let given = Value::new(expanded.as_deref(), draft.kb_base);
            draft.last_place(option, &line.at);
            set(draft, given).or_else(|kind| bad_value(value(expanded.as_deref()), kind))
        }
    }
}

/// Lists an option, if it is not yet listed.
fn ignore(ignored: &mut Vec<Ignored>, option: Ignored) {
    if !ignored.iter().any(|known| known.option == option.option) {
        ignored.push(option);
    }
}

/// Expands `text`, and rejects a value that fio would misread.
fn check_text<'a>(
    text: &'a str,
    source: &dyn Source,
) -> Result<std::borrow::Cow<'a, str>, ValueError> {
    if text.starts_with(char::is_whitespace) {
        return Err(ValueError::LeadingBlank);
    }
    let enclosed = |open, close| text.starts_with(open) && text.ends_with(close);
    let unfilled = text.contains("{{") || text.contains("$(") || text.contains("@@");
    if unfilled || enclosed("<", ">") || enclosed("{", "}") || enclosed("[", "]") {
        return Err(ValueError::Placeholder);
    }
    lines::expand(text, source)
}

/// Splits `option=value` or `option`. Blanks before the `=` are dropped.
fn split(line: &str) -> (&str, Option<&str>) {
    match line.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value)),
        None => (line, None),
    }
}

impl Draft {
    /// Records the last position of an option, for errors about two options.
    fn last_place(&mut self, option: &'static str, at: &Position) {
        self.places.insert(option, at.clone());
    }
}
