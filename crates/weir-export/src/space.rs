//! Changes of stripes and single disks, for all systems.

use crate::change::{Change, Fate};
use crate::error::ExportError;
use crate::script::Script;
use crate::site::{Site, Space};

/// The difference between a device in use and its new state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// A single disk has grown.
    Disk,
    /// The disks of a stripe have grown.
    Columns,
    /// Columns or unit differ.
    Shape,
}

impl Difference {
    /// Returns the difference. A smaller size is reported instead, because no tool shrinks a device
    /// in use.
    pub(crate) fn between(script: &mut Script, old: &Space, space: &Space) -> Option<Self> {
        script.blank();
        let is_same_shape = old.unit == space.unit && old.columns == space.columns;
        if is_same_shape && space.size < old.size {
            script.warn(&format!(
                "{}: it has {} and would have {}. Nothing shrinks in place: create another one, \
                 copy, and switch over.",
                space.own, old.size, space.size
            ));
            return None;
        }
        Some(match (is_same_shape, space.unit) {
            (false, _) => Self::Shape,
            (true, None) => Self::Disk,
            (true, Some(_)) => Self::Columns,
        })
    }
}

/// Returns the changes of all devices except those on the machine's local disk.
pub(crate) fn remote(change: &Change) -> Vec<Fate<'_, Space>> {
    change.spaces().into_iter().filter(|fate: &Fate<'_, Space>| !fate.subject().is_local).collect()
}

/// Returns the error for a device that the script cannot create or change.
pub(crate) fn cannot(script: &Script, site: &Site, space: &Space, reason: String) -> ExportError {
    ExportError::Cannot {
        layout: site.layout.clone(),
        what: format!("stripe {:?}", space.own),
        kind: script.kind().name(),
        reason,
    }
}

/// Writes a note about a device that is no longer in the layout.
pub(crate) fn gone(script: &mut Script, space: &Space, steps: &[String]) {
    script.blank();
    let text = format!("{} is no longer in the layout; it is kept with its data", space.own);
    script.warn_with_steps(&text, "To remove it once it is unused and unmounted:");
    steps.iter().for_each(|step| script.quiet(step));
}
