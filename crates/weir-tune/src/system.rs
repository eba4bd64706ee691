//! Systems on which changes are applied and measured.

use crate::error::TuneError;
use crate::measure::{Bench, Effort, Measured};
use weir_diagnose::Change;
use weir_layout::Layout;

/// A measurement on a running or real system may differ from its prediction by this share: clients and
/// the machine take time of their own.
pub const ALIKE: f64 = 0.1;

/// A system that carries a load: a simulated or a running one.
pub trait System {
    /// Returns whether the system is a simulation, whose changes need not be undone.
    fn is_simulated(&self) -> bool;

    /// Returns the largest share by which a measurement may differ from its prediction.
    fn tolerance(&self) -> f64;

    /// Returns whether the user asked to stop.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Returns whether the system can take the change.
    fn can_apply(&self, change: &Change, layout: &Layout) -> bool;

    /// Measures the load. The system has the layout in `text`, for which `predicted` was simulated.
    ///
    /// # Errors
    ///
    /// [`SystemError`] if there is nothing to measure, or the system has gone.
    fn measure(
        &mut self,
        text: &str,
        layout: &Layout,
        predicted: &Measured,
    ) -> Result<Measured, SystemError>;

    /// Applies a change as a whole, or not at all.
    ///
    /// # Errors
    ///
    /// [`SystemError`] if the system refuses it, or has gone.
    fn apply(&mut self, change: &Change, before: &Layout) -> Result<(), SystemError>;

    /// Undoes all changes, the last first. By default there is nothing to undo.
    ///
    /// # Errors
    ///
    /// The reason for which some are still applied.
    fn undo(&mut self) -> Result<Undone, String> {
        Ok(Undone::default())
    }

    /// Returns the commands that undo what is applied, in their order.
    fn undo_commands(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Changes that were undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// The changes in words.
    pub changes: Vec<String>,
    /// Files that were added and stay, since they are in use.
    pub stay: Vec<String>,
}

/// A failure of a system.
#[derive(Debug)]
pub enum SystemError {
    /// The load does not run on the layout.
    Tune(Box<TuneError>),
    /// The user asked to stop.
    Interrupted,
    /// The system has gone, refused a change or has no load.
    Failed(String),
}

impl From<TuneError> for SystemError {
    fn from(error: TuneError) -> Self {
        Self::Tune(Box::new(error))
    }
}

/// A simulated system. Its measurements have another seed than predictions.
#[derive(Debug, Clone, Copy)]
pub struct Simulated<'a> {
    bench: &'a Bench<'a>,
    moves_files: bool,
}

impl<'a> Simulated<'a> {
    /// Returns a system that takes all changes.
    #[must_use]
    pub fn new(bench: &'a Bench<'a>) -> Self {
        Self { bench, moves_files: true }
    }

    /// Returns a system whose files stay on their disks.
    #[must_use]
    pub fn without_moves(bench: &'a Bench<'a>) -> Self {
        Self { bench, moves_files: false }
    }
}

fn moves_a_file(change: &Change) -> bool {
    match change {
        Change::Move { .. } => true,
        Change::All(all) => all.iter().any(moves_a_file),
        _ => false,
    }
}

impl System for Simulated<'_> {
    fn is_simulated(&self) -> bool {
        true
    }

    fn tolerance(&self) -> f64 {
        crate::tune::ALIKE
    }

    fn can_apply(&self, change: &Change, _layout: &Layout) -> bool {
        self.moves_files || !moves_a_file(change)
    }

    fn measure(
        &mut self,
        text: &str,
        _layout: &Layout,
        _predicted: &Measured,
    ) -> Result<Measured, SystemError> {
        Ok(self.bench.measure("layout.toml", text, Effort::Full)?)
    }

    fn apply(&mut self, _change: &Change, _before: &Layout) -> Result<(), SystemError> {
        Ok(())
    }
}
