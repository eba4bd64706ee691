//! `weir diagnose`: the limit that throttles a system, or another cause.

mod fleet;

use super::page;
use crate::cli::DiagnoseArgs;
use crate::commands::observe;
use crate::error::{CliError, NO};
use crate::input::read_layout_text;
use crate::output;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use weir_catalog::Catalog;
use weir_diagnose::system::{Mapping, Unmatched};
use weir_diagnose::{DiagnoseError, Failure, Question};
use weir_layout::Layout;
use weir_observe::joined::{Joined, ahead};
use weir_observe::{Ending, Header, ReadError, Reader};
use weir_report::diagnosis::DiagnosisReport;

pub(crate) fn run(
    args: &DiagnoseArgs,
    catalog: &Catalog,
    editions: &[String],
) -> Result<u8, CliError> {
    if args.fleet.is_some() || !args.merge.is_empty() {
        return fleet::run(args, catalog, editions);
    }
    // The parser ignores that an option requires --fleet where files exclude it.
    let of_fleets = [
        ("--by", args.by.is_some()),
        ("--jobs", args.jobs.is_some()),
        ("--shard", args.shard.is_some()),
    ];
    if let Some((option, _)) = of_fleets.iter().find(|(_, is_given)| *is_given) {
        return Err(CliError::Refused(format!("{option} needs --fleet DIR, and files are given")));
    }
    let inputs = args.files.iter().map(|path| Input::open(path, args));
    let inputs = inputs.collect::<Result<Vec<_>, CliError>>()?;
    if let (Some(option), true) = (args.import.given(), inputs.iter().all(|own| own.is_observation))
    {
        let words = format!(
            "{option} is for files of other tools, and all inputs are observations; leave it out"
        );
        return Err(CliError::Refused(words));
    }
    let inputs = merged(inputs, args)?;
    let limits = Limits::resolve(args, &inputs, catalog)?;
    let mapping = mapping(&args.map)?;
    let question = Question {
        layout: limits.layout.as_ref(),
        edition: limits.edition(catalog)?,
        catalog,
        mapping: &mapping,
    };
    let inputs_names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let notes: Vec<String> = inputs.iter().flat_map(|input| input.notes.clone()).collect();
    let (mut report, unmatched) = diagnose(&question, inputs, &limits)?;
    report.inputs = inputs_names;
    limits.words.clone_into(&mut report.limits_source);
    report.notes.extend(notes);
    report.notes.extend(unmatched_note(&unmatched));
    if let Some(path) = &args.html {
        page::write(path, &report.page()?)?;
    }
    output::print_detailed(&report, args.output.format(), args.verbose)?;
    Ok(if report.is_throttled() { NO } else { 0 })
}

/// An observation, or an imported input.
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

    /// Imports files of other systems as one observation.
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
        // The notes of an import are in its observation as well.
        let said = said.into_iter().filter(|_| is_observation);
        notes.extend(said.map(|note| format!("{name}: {}", note.text)));
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(Self { path: path.to_owned(), is_observation, name, file, header, notes })
    }
}

/// Imports files with the same series as one observation. Two copies of counters, for example, give
/// the rates of the time between them.
fn merged(inputs: Vec<Input>, args: &DiagnoseArgs) -> Result<Vec<Input>, CliError> {
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
        // In the order of the arguments.
        let mut all: Vec<Input> = raw.into_iter().chain(rest).collect();
        all.sort_by_key(|input| args.files.iter().position(|path| *path == input.path));
        return Ok(all);
    }
    let paths: Vec<PathBuf> = raw.iter().map(|input| input.path.clone()).collect();
    rest.insert(0, Input::import(&paths, args)?);
    Ok(rest)
}

/// The limits and their source.
struct Limits {
    layout: Option<Layout>,
    /// The text of the layout, to simulate changes.
    text: Option<String>,
    edition: Option<String>,
    words: String,
}

impl Limits {
    /// Takes the limits from the given layout, the given edition, or the layout of the observed run,
    /// in this order.
    fn resolve(args: &DiagnoseArgs, inputs: &[Input], catalog: &Catalog) -> Result<Self, CliError> {
        if let Some(path) = &args.layout {
            let (text, layout) = read_layout_text(path, catalog)?;
            let edition = layout.edition.clone();
            let words = format!("the layout {}", path.display());
            return Ok(Self { layout: Some(layout), text: Some(text), edition, words });
        }
        if let Some(name) = &args.edition {
            let words = format!("the edition {name} and the observation");
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
                    "the observation; the layout of the run, {}, is invalid now ({error}; try --catalog \
                     or --layout)",
                    kept.name
                ),
            },
            None => Self {
                layout: None,
                text: None,
                edition: None,
                words: "the observation".to_owned(),
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

/// Parses pairs of names, `OBSERVED=LAYOUT`.
fn mapping(all: &[String]) -> Result<Mapping, CliError> {
    all.iter()
        .map(|pair| match pair.rsplit_once('=') {
            Some((observed, layout)) if !observed.is_empty() && !layout.is_empty() => {
                Ok((observed.to_owned(), layout.to_owned()))
            }
            _ => Err(CliError::Refused(format!(
                "--map {pair}: expected OBSERVED=LAYOUT, for example sdc=data"
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
    let text = limits.text.as_deref();
    let diagnosed = weir_diagnose::diagnose(question, &mut joined, text, |_, report| report);
    diagnosed.map_err(|failure| match failure {
        Failure::Read(index, source) => failed(index, source),
        Failure::Diagnose(error) => error.into(),
    })
}

/// Returns a note on entities that are not in the layout.
fn unmatched_note(unmatched: &[Unmatched]) -> Option<String> {
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
        "not in the layout and left out: {}; map names with --map OBSERVED=LAYOUT",
        names.join(", ")
    ))
}

impl From<DiagnoseError> for CliError {
    fn from(error: DiagnoseError) -> Self {
        Self::Diagnose(error)
    }
}
