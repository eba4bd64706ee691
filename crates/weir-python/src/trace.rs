//! Recorded traces.

use crate::error::Failure;
use crate::text::parsed;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::path::{Path, PathBuf};
use weir_import::recorded;
use weir_sim::checks::MOST_DEPTH;
use weir_trace::{Sample, Selection, Window};
use weir_units::Span;
use weir_workload::replay::{Pace, Recording, ReplayOptions};

/// Recorded traces that `weir.simulate` replays side by side (docs/TRACES.md). It does not change.
///
/// `paths` are traces of Weir, or block traces of other tools. They are read when they are replayed, so a
/// pickled trace needs the same files. `pace` is `"recorded"`, a factor such as `"2x"`, or `"closed"`, for
/// which `depth` is the number of requests in flight. `window` selects a part by its start and end,
/// `sample` a share such as `"1/10"`, and `devices` those to replay. `wrap` moves requests beyond the end of
/// a volume into it.
#[pyclass(frozen, module = "weir", name = "Trace")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    paths: Vec<PathBuf>,
    pace: Pace,
    depth: Option<u32>,
    window: Window,
    sample: Option<Sample>,
    devices: Vec<String>,
    wrap: bool,
}

/// The arguments of [`Trace::from_parts`].
type Parts = (
    Vec<PathBuf>,
    Option<String>,
    Option<u32>,
    (Option<String>, Option<String>),
    Option<String>,
    Vec<String>,
    bool,
);

impl Trace {
    fn parse(parts: Parts) -> Result<Self, Failure> {
        let (paths, pace, depth, (from, to), sample, devices, wrap) = parts;
        if paths.is_empty() {
            let words =
                "a trace needs a file: one of weir record, or a block trace of another tool";
            return Err(Failure::Input(words.to_owned()));
        }
        let pace: Pace = parsed("pace", pace.as_deref())?.unwrap_or_default();
        match depth {
            Some(depth) if !matches!(pace, Pace::Closed { .. }) => {
                return Err(Failure::Input(format!(
                    "depth {depth}: with pace {pace}, requests are issued at their times; it needs \
                     pace=\"closed\""
                )));
            }
            Some(depth) if !(1..=MOST_DEPTH).contains(&depth) => {
                return Err(Failure::Input(format!("depth {depth}: give 1 to {MOST_DEPTH}")));
            }
            _ => {}
        }
        let from: Option<Span> = parsed("window", from.as_deref())?;
        let to: Option<Span> = parsed("window", to.as_deref())?;
        if let Some(to) = to.filter(|to| from.unwrap_or_default() >= *to) {
            return Err(Failure::Input(format!(
                "window from {} to {to}: it is empty; give an end after its start",
                from.unwrap_or_default()
            )));
        }
        let sample = parsed("sample", sample.as_deref())?;
        Ok(Self { paths, pace, depth, window: Window { from, to }, sample, devices, wrap })
    }

    /// Opens the traces at their first requests.
    pub(crate) fn open(&self) -> Result<Vec<Recording>, Failure> {
        let select = |own: recorded::Recorded| {
            let trace = Selection::new(own.trace, self.window, self.sample, self.devices.clone());
            Recording { name: own.name, trace: Box::new(trace) }
        };
        Ok(recorded::open_traces(&self.paths)?.into_iter().map(select).collect())
    }

    /// Returns the options of the replay.
    pub(crate) fn options(&self, map: &[(String, String)]) -> ReplayOptions {
        let pace = match self.pace {
            Pace::Closed { .. } => Pace::Closed { depth: self.depth },
            pace => pace,
        };
        ReplayOptions { pace, map: map.to_vec(), wrap: self.wrap }
    }

    /// Returns the paths as texts.
    pub(crate) fn names(&self) -> Vec<String> {
        self.paths.iter().map(|path| path.display().to_string()).collect()
    }

    fn parts(&self) -> Parts {
        let text = |time: Option<Span>| time.map(|time| time.to_string());
        (
            self.paths.clone(),
            Some(self.pace.to_string()),
            self.depth,
            (text(self.window.from), text(self.window.to)),
            self.sample.map(|sample| sample.to_string()),
            self.devices.clone(),
            self.wrap,
        )
    }
}

#[pymethods]
impl Trace {
    #[new]
    #[pyo3(signature = (*paths, pace=None, depth=None, window=(None, None), sample=None,
        devices=Vec::new(), wrap=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        python: Python<'_>,
        paths: Vec<PathBuf>,
        pace: Option<String>,
        depth: Option<u32>,
        window: (Option<Bound<'_, PyAny>>, Option<Bound<'_, PyAny>>),
        sample: Option<String>,
        devices: Vec<String>,
        wrap: bool,
    ) -> PyResult<Self> {
        let as_time = python.import("weir._inputs")?.getattr("as_time")?;
        let time = |own: Option<Bound<'_, PyAny>>| -> PyResult<Option<String>> {
            as_time.call1(("window", own))?.extract()
        };
        let window = (time(window.0)?, time(window.1)?);
        Ok(Self::parse((paths, pace, depth, window, sample, devices, wrap))?)
    }

    /// Restores a pickled trace.
    #[classmethod]
    fn from_parts(_class: &Bound<'_, PyType>, parts: Parts) -> Result<Self, Failure> {
        Self::parse(parts)
    }

    /// The files.
    #[getter]
    fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    fn __repr__(&self) -> String {
        let names: Vec<String> = self.names().iter().map(|name| format!("{name:?}")).collect();
        format!("Trace({})", names.join(", "))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self == other
    }

    fn __hash__(&self) -> u64 {
        crate::work::hash_of(&self.parts())
    }

    /// Supports pickling, so that Ray, Dask and multiprocessing can send traces.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Parts,))> {
        Ok((slf.get_type().getattr("from_parts")?, (slf.get().parts(),)))
    }
}

/// Returns whether a file is a trace, by its contents.
#[pyfunction]
pub(crate) fn _is_trace(python: Python<'_>, path: PathBuf) -> bool {
    python.detach(|| recorded::is_trace(Path::new(&path)))
}
