//! The lines of a job file: comments, includes, sections and environment variables.

use super::source::Source;
use crate::error::{FioError, ValueError};
use crate::position::Position;
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum depth of includes.
pub(super) const MAX_INCLUDES: usize = 16;

/// A section with its lines, including those of its includes.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) at: Position,
    pub(super) lines: Vec<Line>,
}

/// `option` or `option=value`, with variables that are not expanded.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) at: Position,
    pub(super) text: String,
}

impl Section {
    /// Returns whether the section is global: fio checks only that its name starts with `global`.
    pub(super) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// Splits `text` into its sections.
pub(super) fn sections(
    file: &str,
    text: &str,
    source: &dyn Source,
) -> Result<Vec<Section>, FioError> {
    let mut sections: Vec<Section> = Vec::new();
    for line in content(file, text) {
        let Line { at, text } = line;
        if text.starts_with('[') {
            let name = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                return Err(FioError::BadSection { at, text });
            };
            sections.push(Section { name: name.to_owned(), at, lines: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(FioError::OutsideSection { at, text });
        };
        push(Line { at, text }, &mut section.lines, source, 0)?;
    }
    Ok(sections)
}

/// Adds a line to a section, or all lines of the file that it includes.
fn push(
    line: Line,
    into: &mut Vec<Line>,
    source: &dyn Source,
    depth: usize,
) -> Result<(), FioError> {
    let Some(name) = line.text.strip_prefix("include").filter(|t| t.starts_with([' ', '\t']))
    else {
        into.push(line);
        return Ok(());
    };
    let (at, name) = (line.at, name.trim().to_owned());
    if depth == MAX_INCLUDES {
        return Err(FioError::IncludeTooDeep { at, name, limit: MAX_INCLUDES });
    }
    let text = match source.include(&at.file, &name) {
        Ok(text) => text,
        Err(source) => return Err(FioError::Include { at, name, source }),
    };
    for line in content(&name, &text) {
        if line.text.starts_with('[') {
            return Err(FioError::SectionInInclude { at: line.at, text: line.text });
        }
        push(line, into, source, depth + 1)?;
    }
    Ok(())
}

/// Returns the lines with content. A comment starts at the first `;` or `#` anywhere in a line, as
/// in fio.
fn content(file: &str, text: &str) -> impl Iterator<Item = Line> {
    let file: Arc<str> = file.into();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.split('\n').zip(1..).filter_map(move |(line, number)| {
        let end = line.find([';', '#']).unwrap_or(line.len());
        let blank = |c: char| c.is_whitespace() || c.is_control();
        let text = line[..end].trim_matches(blank);
        let at = Position { file: Arc::clone(&file), line: number };
        (!text.is_empty()).then(|| Line { at, text: text.to_owned() })
    })
}

/// Replaces `${NAME}` by environment variables. An unset one is empty, as in fio; if the value is
/// then empty, the error names the variable.
pub(super) fn expand<'a>(value: &'a str, source: &dyn Source) -> Result<Cow<'a, str>, ValueError> {
    for keyword in ["$pagesize", "$mb_memory", "$ncpus"] {
        if value.contains(keyword) {
            return Err(ValueError::MachineFact { keyword });
        }
    }
    if !value.contains("${") {
        return Ok(Cow::Borrowed(value));
    }
    let (mut out, mut rest, mut unset) = (String::new(), value, None);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            return Err(ValueError::OpenVariable);
        };
        out.push_str(before);
        match source.env(name) {
            Some(text) => out.push_str(&text),
            None => unset = unset.or(Some(name)),
        }
        rest = after;
    }
    out.push_str(rest);
    match unset {
        Some(name) if out.is_empty() => Err(ValueError::Unset { name: name.to_owned() }),
        _ => Ok(Cow::Owned(out)),
    }
}
