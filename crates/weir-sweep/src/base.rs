//! The files that parameters change, and the inputs of one point.

use crate::edit::KeyPath;
use crate::file::{ParameterKeys, SweepFile, near};
use crate::replay::{ReplayKeys, TraceInputs};
use crate::surroundings::Surroundings;
use crate::value::Value;
use std::collections::BTreeMap;
use std::fmt;
use toml_edit::DocumentMut;
use weir_catalog::{Catalog, Edition};
use weir_layout::Layout;
use weir_oltp::error::OltpFault;
use weir_units::Span;
use weir_workload::fio::{self, Change};
use weir_workload::{FioError, JobFile, Source};

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedText {
    /// Its name in messages, and for a file of the workload its path in the sweep file.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The files of a workload.
#[derive(Debug)]
pub enum Load {
    /// Job files or descriptions.
    Texts(Vec<NamedText>),
    /// Traces.
    Traces(TraceInputs),
}

/// All inputs of a sweep.
pub struct Inputs<'a> {
    /// Version of the program, since another one may have other results.
    pub version: &'a str,
    /// The sweep file.
    pub sweep: NamedText,
    /// The layout.
    pub layout: NamedText,
    /// The workload.
    pub workload: Load,
    /// The edition that the sweep file names.
    pub edition: Option<NamedText>,
    /// The catalog, without that edition.
    pub catalog: Catalog,
    /// Texts of the user's own editions in the catalog.
    pub editions: Vec<String>,
    /// Environment and includes of job files.
    pub source: Box<dyn Source + Send + Sync>,
}

impl fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs").field("sweep", &self.sweep).finish_non_exhaustive()
    }
}

/// The workload of a point.
#[derive(Debug)]
pub(crate) enum Workload {
    /// Jobs of fio.
    Jobs(JobFile),
    /// Databases and backups.
    Descriptions(Vec<weir_oltp::Description>, Vec<weir_pipeline::Description>),
    /// Traces, with the options of their replay.
    Traces(TraceInputs, ReplayKeys),
}

/// The inputs of the simulation of a point.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) layout: Layout,
    pub(crate) workload: Workload,
    pub(crate) catalog: Catalog,
}

/// A reason why a point has no inputs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rejected {
    pub(crate) reason: String,
    /// True if no other value of another parameter can repair it.
    pub(crate) is_final: bool,
}

impl Rejected {
    pub(crate) fn here(reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), is_final: false }
    }

    fn always(reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), is_final: true }
    }
}

/// A file in TOML, read once.
#[derive(Debug)]
struct Document {
    name: String,
    content: DocumentMut,
}

impl Document {
    fn read(file: &NamedText) -> Result<Self, String> {
        let content = file.text.parse::<DocumentMut>();
        let content = content.map_err(|error| format!("{}: {error}", file.name))?;
        Ok(Self { name: file.name.clone(), content })
    }
}

#[derive(Debug)]
enum Files {
    Jobs(Vec<NamedText>),
    Descriptions(Vec<Document>),
    Traces(TraceInputs, ReplayKeys),
}

impl Files {
    fn read(load: Load, file: &SweepFile) -> Result<Self, String> {
        match load {
            Load::Traces(_) if file.runtime.is_some() => {
                Err("runtime is for jobs and databases; [replay] from and to select a window of a \
                     trace"
                    .to_owned())
            }
            Load::Traces(traces) => {
                Ok(Self::Traces(traces, file.replay.clone().unwrap_or_default()))
            }
            Load::Texts(_) if file.replay.is_some() => {
                Err("[replay] is for traces, and workload names none".to_owned())
            }
            Load::Texts(files) if files.iter().all(|own| own.name.ends_with(".toml")) => {
                let files = files.iter().map(Document::read);
                Ok(Self::Descriptions(files.collect::<Result<_, _>>()?))
            }
            Load::Texts(files) => Ok(Self::Jobs(files)),
        }
    }
}

/// A key that a parameter changes.
#[derive(Debug)]
pub(crate) enum Target {
    Layout(KeyPath),
    Edition(KeyPath),
    /// An option of a job file; without a section, that of each job.
    Option {
        file: usize,
        section: Option<String>,
        option: String,
    },
    Description {
        file: usize,
        path: KeyPath,
    },
    /// An option of the replay of traces.
    Replay(String),
}

/// The files that parameters change.
#[derive(Debug)]
pub(crate) struct Base {
    layout: Document,
    files: Files,
    edition: Option<Document>,
    catalog: Catalog,
    surroundings: Surroundings,
    runtime: Option<Span>,
}

impl Base {
    /// Reads the files of a sweep. They are valid TOML, or job files; [`case`](Self::case) checks the
    /// rest.
    pub(crate) fn new(inputs: Inputs<'_>, file: &SweepFile) -> Result<Self, String> {
        let files = Files::read(inputs.workload, file)?;
        Ok(Self {
            layout: Document::read(&inputs.layout)?,
            files,
            edition: inputs.edition.as_ref().map(Document::read).transpose()?,
            catalog: inputs.catalog,
            surroundings: Surroundings::new(inputs.source),
            runtime: file.runtime,
        })
    }

    /// Returns the environment and includes that were read so far.
    pub(crate) fn surroundings(&self) -> Vec<(String, Option<String>)> {
        self.surroundings.read()
    }

    /// Returns the keys that a parameter changes.
    pub(crate) fn targets(
        &self,
        keys: &ParameterKeys,
        file: &SweepFile,
    ) -> Result<Vec<Target>, String> {
        let places = [&keys.layout, &keys.workload, &keys.catalog];
        if places.into_iter().flatten().count() != 1 {
            return Err("give one of layout, workload and catalog: the keys that it changes".into());
        }
        if keys.file.is_some() && keys.workload.is_none() {
            return Err(
                "file selects a file of the workload, and the parameter changes another".into()
            );
        }
        let paths = places.into_iter().flatten().flat_map(|paths| paths.all());
        let paths = paths.map(|text| KeyPath::parse(text)).collect::<Result<Vec<_>, _>>()?;
        if paths.is_empty() {
            return Err("it names no key".to_owned());
        }
        if keys.layout.is_some() {
            return Ok(paths.into_iter().map(Target::Layout).collect());
        }
        if keys.catalog.is_some() {
            if self.edition.is_none() {
                return Err(
                    "catalog keys are those of an edition of your own; name its file at the \
                            top with catalog = \"FILE\" (the edition and region of a layout are \
                            layout = \"edition\" and layout = \"region\")"
                        .to_owned(),
                );
            }
            return Ok(paths.into_iter().map(Target::Edition).collect());
        }
        if matches!(self.files, Files::Traces(..)) {
            return replay_targets(keys, &paths);
        }
        let at = workload_file(keys.file.as_deref(), file.workload.all())?;
        if let Some(path) = paths.iter().find(|path| file.runtime.is_some() && path.is_runtime()) {
            return Err(format!("{path} is the runtime, which runtime at the top already sets"));
        }
        paths.into_iter().map(|path| self.workload_target(at, path)).collect()
    }

    fn workload_target(&self, file: usize, path: KeyPath) -> Result<Target, String> {
        match (&self.files, path.parts()) {
            (Files::Descriptions(_) | Files::Traces(..), _) => {
                Ok(Target::Description { file, path })
            }
            (Files::Jobs(_), [option]) => {
                Ok(Target::Option { file, section: None, option: option.clone() })
            }
            (Files::Jobs(_), [section, option]) => {
                let section = Some(section.clone());
                Ok(Target::Option { file, section, option: option.clone() })
            }
            (Files::Jobs(_), parts) => Err(format!(
                "{} names no option of a job file; write SECTION.OPTION, or OPTION for all jobs",
                parts.join(".")
            )),
        }
    }

    /// Returns the inputs with each target set to its value.
    pub(crate) fn case<'a>(
        &self,
        settings: impl Iterator<Item = (&'a Target, &'a Value)>,
    ) -> Result<Case, Rejected> {
        let mut layout: Option<DocumentMut> = None;
        let mut edition: Option<DocumentMut> = None;
        let mut descriptions: BTreeMap<usize, DocumentMut> = BTreeMap::new();
        let mut changes: BTreeMap<usize, Vec<Change>> = BTreeMap::new();
        let mut replay: Vec<(&str, &Value)> = Vec::new();
        for (target, value) in settings {
            let set = |document: &Document, changed: &mut DocumentMut, path: &KeyPath| {
                let named = |reason| Rejected::always(format!("{}: {reason}", document.name));
                path.set(changed, &value.toml()).map_err(named)
            };
            match (target, &self.files) {
                (Target::Layout(path), _) => {
                    let own = layout.get_or_insert_with(|| self.layout.content.clone());
                    set(&self.layout, own, path)?;
                }
                (Target::Edition(path), _) => {
                    if let Some(document) = &self.edition {
                        let own = edition.get_or_insert_with(|| document.content.clone());
                        set(document, own, path)?;
                    }
                }
                (Target::Description { file, path }, Files::Descriptions(files)) => {
                    let own =
                        descriptions.entry(*file).or_insert_with(|| files[*file].content.clone());
                    set(&files[*file], own, path)?;
                }
                (Target::Option { file, section, option }, _) => {
                    let (section, option, value) = (section.clone(), option.clone(), value.fio());
                    let change = Change { section, option, value };
                    changes.entry(*file).or_default().push(change);
                }
                (Target::Replay(key), _) => replay.push((key, value)),
                (Target::Description { .. }, Files::Jobs(_) | Files::Traces(..)) => {}
            }
        }
        let catalog = self.catalog_with(edition.as_ref())?;
        let text = layout.as_ref().unwrap_or(&self.layout.content).to_string();
        let layout = Layout::parse(&self.layout.name, &text, &catalog).map_err(|error| {
            let is_final = matches!(error.kind, weir_layout::error::Kind::Syntax { .. });
            Rejected { reason: error.to_string(), is_final }
        })?;
        let workload = match &self.files {
            Files::Jobs(files) => self.jobs(files, &changes)?,
            Files::Descriptions(files) => read_descriptions(files, &descriptions, self.runtime)?,
            Files::Traces(traces, keys) => {
                Workload::Traces(traces.clone(), replay_keys(keys.clone(), &replay)?)
            }
        };
        Ok(Case { layout, workload, catalog })
    }

    fn catalog_with(&self, changed: Option<&DocumentMut>) -> Result<Catalog, Rejected> {
        let mut catalog = self.catalog.clone();
        if let Some(document) = &self.edition {
            let text = changed.unwrap_or(&document.content).to_string();
            let edition = Edition::from_toml(&document.name, &text).map_err(Rejected::here)?;
            catalog.add(edition).map_err(Rejected::here)?;
        }
        Ok(catalog)
    }

    fn jobs(
        &self,
        files: &[NamedText],
        changes: &BTreeMap<usize, Vec<Change>>,
    ) -> Result<Workload, Rejected> {
        let mut all: Option<JobFile> = None;
        for (at, file) in files.iter().enumerate() {
            let changes = changes.get(&at).map_or(&[][..], Vec::as_slice);
            let next = fio::parse_changed(&file.name, &file.text, &self.surroundings, changes)
                .map_err(|error| {
                    let is_final = matches!(
                        error,
                        FioError::UnknownOption { .. }
                            | FioError::Unsupported { .. }
                            | FioError::BadValue { .. }
                            | FioError::NoSection { .. }
                    );
                    Rejected { reason: error.to_string(), is_final }
                })?;
            all = Some(match all {
                Some(jobs) => jobs.then(next),
                None => next,
            });
        }
        Ok(Workload::Jobs(all.unwrap_or_default().scale(None, self.runtime)))
    }
}

/// Returns the options of a replay that a parameter changes.
fn replay_targets(keys: &ParameterKeys, paths: &[KeyPath]) -> Result<Vec<Target>, String> {
    if let Some(file) = &keys.file {
        return Err(format!("file = {file:?}: options of a replay are those of all traces"));
    }
    let target = |path: &KeyPath| match path.parts() {
        [key] => Ok(Target::Replay(key.clone())),
        _ => Err(format!(
            "{path} names no option of a replay; write for example workload = \"pace\""
        )),
    };
    paths.iter().map(target).collect()
}

/// Sets options of a replay, and checks them together.
fn replay_keys(mut keys: ReplayKeys, changes: &[(&str, &Value)]) -> Result<ReplayKeys, Rejected> {
    for (key, value) in changes {
        keys.set(key, value).map_err(Rejected::always)?;
    }
    keys.options(&[]).map_err(Rejected::here)?;
    Ok(keys)
}

fn read_descriptions(
    files: &[Document],
    changed: &BTreeMap<usize, DocumentMut>,
    runtime: Option<Span>,
) -> Result<Workload, Rejected> {
    let (mut databases, mut backups) = (Vec::new(), Vec::new());
    for (at, file) in files.iter().enumerate() {
        let text = changed.get(&at).unwrap_or(&file.content).to_string();
        if weir_pipeline::Description::recognizes(&text) {
            let own = weir_pipeline::Description::parse(&file.name, &text);
            backups.push(own.map_err(Rejected::here)?);
        } else {
            let own = weir_oltp::Description::parse(&file.name, &text);
            let mut own = own.map_err(|error| {
                let is_final = matches!(error.fault, OltpFault::Syntax { .. });
                Rejected { reason: error.to_string(), is_final }
            })?;
            own.duration = runtime.unwrap_or(own.duration);
            databases.push(own);
        }
    }
    if databases.is_empty() && runtime.is_some() {
        let reason = "runtime is for databases and jobs; a backup ends when it is complete";
        return Err(Rejected::here(reason));
    }
    Ok(Workload::Descriptions(databases, backups))
}

/// Returns the place of a parameter's file in the workload.
fn workload_file(name: Option<&str>, files: &[String]) -> Result<usize, String> {
    let names = || files.iter().map(String::as_str);
    match name {
        None if files.len() == 1 => Ok(0),
        None => Err(format!(
            "the workload has several files; give file = \"..\", one of {}",
            files.join(", ")
        )),
        Some(name) => names().position(|file| file == name).ok_or_else(|| {
            let near = near(name, names());
            let near = weir_units::did_you_mean(&near).to_string();
            format!("file = {name:?} is not in workload{near}")
        }),
    }
}
