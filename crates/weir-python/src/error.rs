//! Exceptions. Their classes follow the exit codes of the command line, and so do the messages.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::path::Path;
use weir_report::causes::with_causes;

pyo3::create_exception!(weir, Error, PyException, "An error of Weir.");
pyo3::create_exception!(
    weir,
    InputError,
    Error,
    "An input that is wrong. The command line exits with 2 for it."
);
pyo3::create_exception!(
    weir,
    RunError,
    Error,
    "A failure while running. The command line exits with 3 for it."
);

/// A reason why there is no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An input that is wrong.
    Input(String),
    /// A failure while running.
    Run(String),
    /// The caller has stopped waiting.
    Stopped,
}

impl Failure {
    /// Describes a file that cannot be read.
    pub(crate) fn read(path: &Path, source: &std::io::Error) -> Self {
        Self::Input(format!("cannot read {}: {source}", path.display()))
    }

    /// Describes a file that cannot be written.
    pub(crate) fn write(path: &Path, source: &dyn std::fmt::Display) -> Self {
        Self::Run(format!("cannot write {}: {source}", path.display()))
    }
}

/// Errors of libraries, which are about the input.
macro_rules! of_input {
    ($($type:ty),* $(,)?) => {
        $(impl From<$type> for Failure {
            fn from(error: $type) -> Self {
                Self::Input(with_causes(&error))
            }
        })*
    };
}

of_input!(
    weir_catalog::CatalogError,
    weir_layout::LayoutError,
    weir_workload::FioError,
    weir_workload::PlaceError,
    weir_sim::SimError,
    weir_sim::OltpSimError,
    weir_sim::ReplaySimError,
    weir_import::recorded::RecordedError,
    weir_oltp::OltpError,
    weir_pipeline::BackupError,
    weir_diagnose::DiagnoseError,
    weir_compare::CompareError,
    weir_plan::PlanError,
    weir_plan::verify::VerifyError,
);

impl From<weir_plan::proof::ProofError> for Failure {
    fn from(error: weir_plan::proof::ProofError) -> Self {
        match error {
            weir_plan::proof::ProofError::Plan(error) => error.into(),
            weir_plan::proof::ProofError::Verify(error) => error.into(),
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Input(message) => InputError::new_err(message),
            Failure::Run(message) => RunError::new_err(message),
            Failure::Stopped => RunError::new_err("stopped"),
        }
    }
}
