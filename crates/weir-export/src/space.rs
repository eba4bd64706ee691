//! What becomes of stripes and single disks, whatever system makes them.

use crate::change::{Change, Fate};
use crate::error::ExportError;
use crate::script::Script;
use crate::site::{Site, Space};

/// How a device is to differ from what it is, where it does not shrink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// A disk alone has grown.
    Disk,
    /// The disks of a stripe have grown.
    Columns,
    /// It has other columns, or another unit.
    Shape,
}

impl Difference {
    /// What differs. No tool makes what is there smaller: that is told, and `None`.
    pub(crate) fn of(script: &mut Script, old: &Space, space: &Space) -> Option<Self> {
        script.blank();
        let is_same_shape = old.unit == space.unit && old.columns == space.columns;
        if is_same_shape && space.size < old.size {
            script.warn(&format!(
                "{}: it has {} and would have {}. Nothing is made smaller in place: make another beside \
                 it, copy, and change over.",
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

/// What becomes of the devices that are not the machine's own alone.
pub(crate) fn remote(change: &Change) -> Vec<Fate<'_, Space>> {
    let is_remote = |fate: &Fate<'_, Space>| !fate.subject().is_local;
    change.spaces().into_iter().filter(is_remote).collect()
}

/// What keeps a script from making or changing a device.
pub(crate) fn cannot(script: &Script, site: &Site, space: &Space, reason: String) -> ExportError {
    ExportError::Cannot {
        layout: site.layout.clone(),
        what: format!("stripe {:?}", space.own),
        kind: script.kind().name(),
        reason,
    }
}

/// What the layout has no more.
pub(crate) fn gone(script: &mut Script, space: &Space, steps: &[String]) {
    script.blank();
    let text = format!("{} is not in the layout any more, and is kept with its data", space.own);
    script.warn_with_steps(&text, "When nothing uses it and it is unmounted, to remove it:");
    steps.iter().for_each(|step| script.quiet(step));
}
