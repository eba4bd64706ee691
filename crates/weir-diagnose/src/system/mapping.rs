//! Names of the observation and of the layout.

/// Pairs of a name in the observation and a name in the layout.
pub type Mapping = Vec<(String, String)>;

/// An entity with observed I/O that is not in the layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// The observation's name.
    pub name: String,
    /// The nearest of the layout's.
    pub near: Option<String>,
}
