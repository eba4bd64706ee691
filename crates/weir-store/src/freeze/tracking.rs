//! The state of change tracking.

/// The state of a volume's change tracking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracking {
    /// True if changes are known since the base, or since the volume was made if it has none.
    pub known: bool,
    /// The last completed full backup.
    pub base: Option<String>,
}
