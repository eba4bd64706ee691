//! Layouts.

use crate::catalog::Catalog;
use crate::error::Failure;
use crate::text::{self, Given};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::path::Path;
use std::sync::Arc;

/// A layout: machines and their disks, checked. It does not change.
///
/// `source` is the path of a layout file, or a dict with its keys (docs/LAYOUT.md).
#[pyclass(frozen, module = "weir", name = "Layout")]
#[derive(Debug, Clone)]
pub(crate) struct Layout(pub(crate) Arc<Held>);

/// A layout with its text and its catalog.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) layout: weir_layout::Layout,
    pub(crate) catalog: Catalog,
}

impl Layout {
    /// Reads a layout file, unless it is too large for one.
    pub(crate) fn read(path: &Path, catalog: &Catalog) -> Result<Self, Failure> {
        let most = weir_layout::Layout::MAX_SIZE.get();
        let text = text::read_at_most(path, "layout", most)?;
        let name = path.display().to_string();
        if text.len() as u64 > most {
            return Err(weir_layout::Layout::too_large(&name).into());
        }
        Self::parse(&name, &text, catalog)
    }

    pub(crate) fn parse(name: &str, text: &str, catalog: &Catalog) -> Result<Self, Failure> {
        let layout = weir_layout::Layout::parse(name, text, &catalog.0.catalog)?;
        let (name, text, catalog) = (name.to_owned(), text.to_owned(), catalog.clone());
        Ok(Self(Arc::new(Held { name, text, layout, catalog })))
    }
}

#[pymethods]
impl Layout {
    #[new]
    #[pyo3(signature = (source, catalog = None))]
    fn new(source: &Bound<'_, PyAny>, catalog: Option<&Catalog>) -> PyResult<Self> {
        let catalog = Catalog::or_builtin(catalog);
        match Given::from_value("layout", source)? {
            Given::File(path) => Ok(Self::read(&path, &catalog)?),
            Given::Mapping(mapping) => {
                let text = text::toml_of("layout", &mapping)?;
                Ok(Self::parse("layout", &text, &catalog)?)
            }
        }
    }

    /// Checks the text of a layout file. `name` stands for the file in messages.
    #[classmethod]
    #[pyo3(signature = (text, name = "layout", catalog = None))]
    fn from_text(
        _class: &Bound<'_, PyType>,
        text: &str,
        name: &str,
        catalog: Option<&Catalog>,
    ) -> Result<Self, Failure> {
        Self::parse(name, text, &Catalog::or_builtin(catalog))
    }

    /// The name in messages: the file, if there is one.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The text of the layout file.
    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    /// The edition of the catalog, if the layout names one.
    #[getter]
    fn edition(&self) -> Option<&str> {
        self.0.layout.edition.as_deref()
    }

    /// The names of the exports: volumes and stripes that a workload can use.
    #[getter]
    fn exports(&self) -> Vec<&str> {
        let exports = self.0.layout.hosts.iter().flat_map(|host| &host.exports);
        exports.map(|export| export.name.as_str()).collect()
    }

    /// Notes on the layout that affect results.
    #[getter]
    fn notes(&self) -> Vec<String> {
        let hosts = &self.0.layout.hosts;
        let note = |host: &weir_layout::Host, note: &String| format!("host {}: {note}", host.name);
        hosts.iter().flat_map(|host| host.notes.iter().map(move |own| note(host, own))).collect()
    }

    fn __repr__(&self) -> String {
        format!("Layout({:?})", self.0.name)
    }

    fn __eq__(&self, other: &Self) -> bool {
        (&self.0.text, &self.0.name) == (&other.0.text, &other.0.name)
    }

    fn __hash__(&self) -> u64 {
        crate::work::hash_of(&(&self.0.name, &self.0.text))
    }

    /// Supports pickling, so that Ray, Dask and multiprocessing can send layouts.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, String, Catalog))> {
        let held = &slf.get().0;
        let make = slf.get_type().getattr("from_text")?;
        Ok((make, (held.text.clone(), held.name.clone(), held.catalog.clone())))
    }
}
