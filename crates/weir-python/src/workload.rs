//! Workloads: fio jobs, or databases and backups.

use crate::error::Failure;
use crate::text::{self, Given};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::Path;
use std::sync::Arc;
use weir_units::Span;
use weir_workload::{JobFile, Source, fio};

/// The workload of a simulation or a comparison, parsed. It does not change.
///
/// `sources` are paths of fio job files, which run one after the other, or descriptions of databases and
/// backups: paths of `.toml` files, or dicts with their keys (docs/OLTP.md, docs/BACKUP.md).
#[pyclass(frozen, module = "weir", name = "Workload")]
#[derive(Debug, Clone)]
pub(crate) struct Workload(pub(crate) Arc<Held>);

/// A workload with its texts, from which another process can make it again.
#[derive(Debug)]
pub(crate) struct Held {
    /// Name and text of each file.
    texts: Vec<(String, String)>,
    surroundings: Surroundings,
    pub(crate) kind: Kind,
}

/// The kinds of workloads.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// Jobs of fio.
    Jobs(JobFile),
    /// Databases and backups.
    Descriptions(Vec<weir_oltp::Description>, Vec<weir_pipeline::Description>),
}

/// The environment variables and include files that job files refer to. They are pickled, so that the
/// workload is the same on a machine with other variables and files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
struct Surroundings {
    /// The value of each variable; `None` if it is not set.
    variables: BTreeMap<String, Option<String>>,
    /// The text of each include file, by the file that includes it and the name there.
    includes: BTreeMap<(String, String), String>,
}

impl Source for Surroundings {
    fn env(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned().flatten()
    }

    fn include(&self, from: &str, name: &str) -> io::Result<String> {
        let text = self.includes.get(&(from.to_owned(), name.to_owned()));
        text.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The variables and files of this process, and those that were read so far.
#[derive(Default)]
struct Recorder(RefCell<Surroundings>);

impl Source for Recorder {
    fn env(&self, name: &str) -> Option<String> {
        let mut read = self.0.borrow_mut();
        let value = || std::env::var(name).ok();
        read.variables.entry(name.to_owned()).or_insert_with(value).clone()
    }

    fn include(&self, from: &str, name: &str) -> io::Result<String> {
        let mut read = self.0.borrow_mut();
        Ok(match read.includes.entry((from.to_owned(), name.to_owned())) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => {
                let beside = Path::new(from).parent().unwrap_or(Path::new(""));
                new.insert(std::fs::read_to_string(beside.join(name))?).clone()
            }
        })
    }
}

fn is_description(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "toml")
}

impl Workload {
    /// Parses texts. As on the command line, those named `.toml` are descriptions of databases and
    /// backups, and others are fio job files, which run one after the other. Job files refer to
    /// `surroundings`, or else to those of this process.
    fn parse(
        texts: Vec<(String, String)>,
        surroundings: Option<Surroundings>,
    ) -> Result<Self, Failure> {
        let recorder = Recorder::default();
        let source: &dyn Source = match &surroundings {
            Some(given) => given,
            None => &recorder,
        };
        let description = texts.iter().find(|(name, _)| is_description(name));
        let job = texts.iter().find(|(name, _)| !is_description(name));
        let kind = match (description, job) {
            (Some((one, _)), Some((other, _))) => {
                return Err(Failure::Input(format!(
                    "{one} describes a database or backup (.toml) and {other} is a fio job file; give \
                     the one or the other"
                )));
            }
            (Some(_), None) => descriptions(&texts)?,
            (None, Some(_)) => jobs(&texts, source)?,
            (None, None) => {
                let words =
                    "the workload has no files; give a fio job file or a description (.toml)";
                return Err(Failure::Input(words.to_owned()));
            }
        };
        let surroundings = surroundings.unwrap_or_else(|| recorder.0.into_inner());
        Ok(Self(Arc::new(Held { texts, surroundings, kind })))
    }

    /// Returns the workload with other sizes and runtimes.
    pub(crate) fn scaled(
        &self,
        size: Option<weir_units::Bytes>,
        runtime: Option<Span>,
    ) -> Result<Kind, Failure> {
        match self.0.kind.clone() {
            Kind::Jobs(jobs) => Ok(Kind::Jobs(jobs.scale(size, runtime))),
            Kind::Descriptions(..) if size.is_some() => Err(Failure::Input(
                "size is for fio job files; give size and working_set in the OLTP description"
                    .to_owned(),
            )),
            Kind::Descriptions(databases, _) if databases.is_empty() && runtime.is_some() => {
                Err(Failure::Input(
                    "runtime is for databases and jobs; a backup ends when it is complete"
                        .to_owned(),
                ))
            }
            Kind::Descriptions(mut databases, backups) => {
                for own in &mut databases {
                    own.duration = runtime.unwrap_or(own.duration);
                }
                Ok(Kind::Descriptions(databases, backups))
            }
        }
    }

    /// Returns the names of its files.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.texts.iter().map(|(name, _)| name.clone()).collect()
    }
}

fn jobs(texts: &[(String, String)], source: &dyn Source) -> Result<Kind, Failure> {
    let mut all: Option<JobFile> = None;
    for (name, text) in texts {
        let next = fio::parse(name, text, source)?;
        all = Some(match all {
            Some(jobs) => jobs.then(next),
            None => next,
        });
    }
    Ok(Kind::Jobs(all.unwrap_or_default()))
}

fn descriptions(texts: &[(String, String)]) -> Result<Kind, Failure> {
    let (mut databases, mut backups) = (Vec::new(), Vec::new());
    for (name, text) in texts {
        if weir_pipeline::Description::recognizes(text) {
            backups.push(weir_pipeline::Description::parse(name, text)?);
        } else {
            databases.push(weir_oltp::Description::parse(name, text)?);
        }
    }
    Ok(Kind::Descriptions(databases, backups))
}

#[pymethods]
impl Workload {
    #[new]
    #[pyo3(signature = (*sources))]
    fn new(sources: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let count = sources.len();
        let read =
            |(at, source): (usize, &Bound<'_, PyAny>)| match Given::from_value("workload", source)?
            {
                Given::File(path) => {
                    let name = path.display().to_string();
                    let what = match is_description(&name) {
                        true => "description of a database or backup",
                        false => "job file",
                    };
                    Ok((name, text::read(&path, what)?))
                }
                Given::Mapping(mapping) => {
                    let name =
                        if count == 1 { "workload".to_owned() } else { format!("workload-{at}") };
                    Ok((format!("{name}.toml"), text::toml_of(&name, &mapping)?))
                }
            };
        let texts = sources.iter().enumerate().map(read).collect::<PyResult<_>>()?;
        Ok(Self::parse(texts, None)?)
    }

    /// Parses the text of a fio job file.
    #[classmethod]
    #[pyo3(signature = (text, name = "workload.fio"))]
    fn from_fio(_class: &Bound<'_, PyType>, text: &str, name: &str) -> Result<Self, Failure> {
        if is_description(name) {
            let words =
                format!("name {name}: a fio job file never ends in .toml; use another name");
            return Err(Failure::Input(words));
        }
        Self::parse(vec![(name.to_owned(), text.to_owned())], None)
    }

    /// Makes a workload from the names and texts of its files. `surroundings` are the environment variables
    /// and include files of a pickled workload.
    #[classmethod]
    #[pyo3(signature = (texts, surroundings = None))]
    fn from_texts(
        _class: &Bound<'_, PyType>,
        texts: Vec<(String, String)>,
        surroundings: Option<Surroundings>,
    ) -> Result<Self, Failure> {
        Self::parse(texts, surroundings)
    }

    /// Names and texts of the files.
    #[getter]
    fn texts(&self) -> Vec<(String, String)> {
        self.0.texts.clone()
    }

    fn __repr__(&self) -> String {
        let names: Vec<String> = self.names().iter().map(|name| format!("{name:?}")).collect();
        format!("Workload({})", names.join(", "))
    }

    fn __eq__(&self, other: &Self) -> bool {
        (&self.0.texts, &self.0.surroundings) == (&other.0.texts, &other.0.surroundings)
    }

    fn __hash__(&self) -> u64 {
        crate::work::hash_of(&(&self.0.texts, &self.0.surroundings))
    }

    /// Supports pickling, so that Ray, Dask and multiprocessing can send workloads.
    #[expect(clippy::type_complexity, reason = "a callable and its arguments, as pickle asks for")]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Vec<(String, String)>, Surroundings))> {
        let held = &slf.get().0;
        let make = slf.get_type().getattr("from_texts")?;
        Ok((make, (held.texts.clone(), held.surroundings.clone())))
    }
}
