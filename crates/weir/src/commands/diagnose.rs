//! `weir diagnose`: which cap holds a system back, or what else.

use crate::cli::DiagnoseArgs;
use crate::commands::{observe, read_layout_text};
use crate::error::{CliError, NO};
use crate::output;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use weir_catalog::Catalog;
use weir_diagnose::system::{Mapping, Unmatched};
use weir_diagnose::{DiagnoseError, Facts, Follow, Question, question};
use weir_layout::Layout;
use weir_observe::joined::{Joined, ahead};
use weir_observe::{Block, Ending, Header, ReadError, Reader};
use weir_report::diagnosis::DiagnosisReport;

pub(crate) fn run(args: &DiagnoseArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let inputs = args.files.iter().map(|path| Input::open(path, args));
    let inputs = inputs.collect::<Result<Vec<_>, CliError>>()?;
    let inputs = put_together(inputs, args)?;
    let limits = Limits::of(args, &inputs, catalog)?;
    let mapping = mapping(&args.map)?;
    let question = Question {
        layout: limits.layout.as_ref(),
        edition: limits.edition(catalog)?,
        catalog,
        mapping: &mapping,
    };
    let observed: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let notes: Vec<String> = inputs.iter().flat_map(|input| input.notes.clone()).collect();
    let (mut report, unmatched) = diagnose(&question, inputs, &limits)?;
    report.observed = observed;
    limits.words.clone_into(&mut report.limits_from);
    report.notes.extend(notes);
    report.notes.extend(words_of(&unmatched));
    if let Some(path) = &args.html {
        let page = report.html()?;
        fs::write(path, page).map_err(|source| CliError::write(path, source))?;
    }
    output::print(&report, args.output.format())?;
    Ok(if report.is_throttled() { NO } else { 0 })
}

/// An observation, as it is or as it was imported.
struct Input {
    path: PathBuf,
    is_observation: bool,
    name: String,
    file: File,
    header: Header,
    notes: Vec<String>,
}

impl Input {
    fn open(path: &Path, args: &DiagnoseArgs) -> Result<Self, CliError> {
        if !observe::is_observation(path)? {
            return Self::import(&[path.to_owned()], args);
        }
        let file = File::open(path);
        let file = file.map_err(|source| CliError::Read { path: path.to_owned(), source })?;
        Self::read(path, path.display().to_string(), file, Vec::new(), true)
    }

    /// Files of other systems, as one observation.
    fn import(paths: &[PathBuf], args: &DiagnoseArgs) -> Result<Self, CliError> {
        let (file, notes) = observe::imported(paths, &args.import)?;
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let first = paths.first().cloned().unwrap_or_default();
        Self::read(&first, names.join(", "), file, notes, false)
    }

    fn read(
        path: &Path,
        name: String,
        mut file: File,
        mut notes: Vec<String>,
        is_observation: bool,
    ) -> Result<Self, CliError> {
        let failed = |source| CliError::Read { path: path.to_owned(), source };
        let wrong = |source: ReadError| CliError::Observation { path: path.to_owned(), source };
        let mut reader = Reader::open(BufReader::new(&file)).map_err(wrong)?;
        reader.skip_to_end().map_err(wrong)?;
        let (header, said, ending) = reader.into_parts();
        if ending != Ending::Complete {
            notes.push(format!("{name}: {ending}"));
        }
        // What an import has said is in its observation, too.
        let said = said.into_iter().filter(|_| is_observation);
        notes.extend(said.map(|note| format!("{name}: {}", note.text)));
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(Self { path: path.to_owned(), is_observation, name, file, header, notes })
    }
}

/// Files that say the same of the same at other times, like two copies of counters, are one
/// observation: read together, what lies between them is known.
fn put_together(inputs: Vec<Input>, args: &DiagnoseArgs) -> Result<Vec<Input>, CliError> {
    let (raw, mut rest): (Vec<Input>, Vec<Input>) =
        inputs.into_iter().partition(|input| !input.is_observation);
    let mut known = BTreeSet::new();
    let is_twice = raw.iter().any(|input| {
        let own: BTreeSet<_> = input.header.contents.paths_of_series().collect();
        let is_twice = !known.is_disjoint(&own);
        known.extend(own);
        is_twice
    });
    if !is_twice {
        // As they were given.
        let mut all: Vec<Input> = raw.into_iter().chain(rest).collect();
        all.sort_by_key(|input| args.files.iter().position(|path| *path == input.path));
        return Ok(all);
    }
    let paths: Vec<PathBuf> = raw.iter().map(|input| input.path.clone()).collect();
    rest.insert(0, Input::import(&paths, args)?);
    Ok(rest)
}

/// Where limits come from.
struct Limits {
    layout: Option<Layout>,
    /// The layout as it is written, to try changes of it.
    text: Option<String>,
    edition: Option<String>,
    words: String,
}

impl Limits {
    /// The layout that is given, else that of the run that was observed; or an edition alone.
    fn of(args: &DiagnoseArgs, inputs: &[Input], catalog: &Catalog) -> Result<Self, CliError> {
        if let Some(path) = &args.layout {
            let (text, layout) = read_layout_text(path, catalog)?;
            let edition = layout.edition.clone();
            let words = format!("the layout {}", path.display());
            return Ok(Self { layout: Some(layout), text: Some(text), edition, words });
        }
        if let Some(name) = &args.edition {
            let words = format!("the edition {name}, and what the observation says");
            return Ok(Self { layout: None, text: None, edition: Some(name.clone()), words });
        }
        let kept = inputs.iter().find_map(|input| input.header.layout.as_ref());
        let parsed = kept.map(|kept| (kept, Layout::parse(&kept.name, &kept.text, catalog)));
        Ok(match parsed {
            Some((kept, Ok(layout))) => Self {
                edition: layout.edition.clone(),
                layout: Some(layout),
                text: Some(kept.text.clone()),
                words: format!("the layout of the run, {}", kept.name),
            },
            Some((kept, Err(error))) => Self {
                layout: None,
                text: None,
                edition: None,
                words: format!(
                    "what the observation says; the layout of the run, {}, is not one any more \
                     ({error}; --catalog or --layout may have what it lacks)",
                    kept.name
                ),
            },
            None => Self {
                layout: None,
                text: None,
                edition: None,
                words: "what the observation says".to_owned(),
            },
        })
    }

    fn edition<'a>(
        &self,
        catalog: &'a Catalog,
    ) -> Result<Option<&'a weir_catalog::Edition>, CliError> {
        Ok(self.edition.as_ref().map(|name| catalog.edition(name)).transpose()?)
    }
}

/// Pairs of names, as `OBSERVED=LAYOUT`.
fn mapping(all: &[String]) -> Result<Mapping, CliError> {
    all.iter()
        .map(|pair| match pair.rsplit_once('=') {
            Some((observed, layout)) if !observed.is_empty() && !layout.is_empty() => {
                Ok((observed.to_owned(), layout.to_owned()))
            }
            _ => Err(CliError::Refused(format!(
                "--map {pair}: it is not of the form OBSERVED=LAYOUT, like sdc=data"
            ))),
        })
        .collect()
}

fn diagnose(
    question: &Question<'_>,
    inputs: Vec<Input>,
    limits: &Limits,
) -> Result<(DiagnosisReport, Vec<Unmatched>), CliError> {
    let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let failed = |index: usize, source: ReadError| CliError::Observation {
        path: names[index].clone().into(),
        source,
    };
    let mut parts = Vec::new();
    for (index, input) in inputs.into_iter().enumerate() {
        let reader = Reader::open(BufReader::with_capacity(1 << 20, input.file));
        let reader = reader.map_err(|source| failed(index, source))?;
        parts.push((input.header, ahead(reader)));
    }
    let mut joined = Joined::new(parts);
    // What gauges say of sizes and limits is known from the first samples on.
    let (mut first, mut block) = (Block::new(joined.contents().series.len()), Block::default());
    let next = |joined: &mut Joined, most, block: &mut Block| {
        joined.next_block(most, block).map_err(|(index, source)| failed(index, source))
    };
    while first.len() < FIRST {
        next(&mut joined, FIRST - first.len(), &mut block)?;
        if block.is_empty() {
            break;
        }
        block.iter().for_each(|(at, row)| first.push(at, row.iter().copied()));
    }
    let rows = first.iter().map(|(_, row)| row);
    let contents = question::with_gauges(joined.contents(), rows);
    let (system, unmatched) = question.system(&contents)?;
    let mut pass = Follow::new(&system, &contents);
    pass.samples(&first);
    while !block.is_empty() {
        next(&mut joined, Block::MOST, &mut block)?;
        pass.samples(&block);
    }
    let facts: Facts = pass.finish();
    let text = limits.text.as_deref();
    let mut report = question.answer(&contents, &system, &facts, |case, mut found| {
        let notes = text.map(|text| weir_diagnose::effect::estimate(case, text, &mut found));
        let mut report = weir_diagnose::report::report(case, found);
        report.notes.extend(notes.into_iter().flatten());
        report
    });
    report.notes.extend(joined.notes());
    Ok((report, unmatched))
}

/// So many samples are looked at for gauges of sizes and limits.
const FIRST: usize = 8;

/// Whom the layout does not have.
fn words_of(unmatched: &[Unmatched]) -> Option<String> {
    if unmatched.is_empty() {
        return None;
    }
    let names: Vec<String> = unmatched
        .iter()
        .map(|own| match &own.near {
            Some(near) => format!("{} (nearest: {near})", own.name),
            None => own.name.clone(),
        })
        .collect();
    Some(format!(
        "not in the layout, and left out: {}; --map OBSERVED=LAYOUT says who is who",
        names.join(", ")
    ))
}

impl From<DiagnoseError> for CliError {
    fn from(error: DiagnoseError) -> Self {
        Self::Diagnose(error)
    }
}
