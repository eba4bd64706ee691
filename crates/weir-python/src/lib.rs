//! The native part of the Python package `weir`.
//!
//! ```text
//!   python/weir: names, types, docstrings  -->  this crate: inputs, work, errors  -->  libraries
//!                JSON of the command line  <--  report                            <--
//! ```
//!
//! Results leave this crate as the JSON that `--output json` prints, so names and units are those of the
//! command line. Work runs on a thread of its own without the interpreter's lock ([`work`]), and an
//! observation is Arrow arrays from the start, which other libraries read in place ([`observation`]).
//!
//! | module | holds |
//! |---|---|
//! | `error` | exceptions, by the exit codes of the command line |
//! | `work` | work without the interpreter's lock, until Ctrl-C |
//! | `drive` | simulations in slices, and their observations |
//! | `text` | files and mappings as texts |
//! | `catalog`, `layout`, `workload`, `trace`, `observation` | the inputs as Python classes |
//! | `simulate`, `plan`, `diagnose`, `compare` | one verb each |

mod catalog;
mod compare;
mod diagnose;
mod drive;
mod error;
mod layout;
mod observation;
mod plan;
mod simulate;
mod text;
mod trace;
mod work;
mod workload;

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_weir")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let python = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", python.get_type::<error::Error>())?;
    module.add("InputError", python.get_type::<error::InputError>())?;
    module.add("RunError", python.get_type::<error::RunError>())?;
    module.add_class::<catalog::Catalog>()?;
    module.add_class::<layout::Layout>()?;
    module.add_class::<workload::Workload>()?;
    module.add_class::<trace::Trace>()?;
    module.add_class::<observation::Observation>()?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::_seconds_without_python, module)?)?;
    module.add_function(wrap_pyfunction!(trace::_is_trace, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan, module)?)?;
    module.add_function(wrap_pyfunction!(diagnose::diagnose, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    Ok(())
}
