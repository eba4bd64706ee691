//! The traces and options of a replay.

use super::pace::Pace;
use weir_trace::ReadTrace;

/// A trace to replay.
pub struct Recording {
    /// Its name in messages and reports.
    pub name: String,
    /// Its requests.
    pub trace: Box<dyn ReadTrace>,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Options of a replay.
#[derive(Debug, Clone, Default)]
pub struct ReplayOptions {
    /// The times of issue.
    pub pace: Pace,
    /// Devices of traces, and the devices of the layout that they stand for. A device that is not
    /// listed stands for the one with its name, or for the only one.
    pub map: Vec<(String, String)>,
    /// Move requests that lie beyond the end of a device, instead of refusing them.
    pub wrap: bool,
}
