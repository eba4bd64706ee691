//! Every way in which a layout cannot be exported. A message says what, and what to do.

/// Why there is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The kind has nothing to do for the layout.
    #[error("{layout}: nothing to export as {kind}: {reason}")]
    Nothing {
        /// The layout.
        layout: String,
        /// The kind of script.
        kind: &'static str,
        /// What is not there, and what to do.
        reason: String,
    },
    /// Something of the layout that the kind cannot build.
    #[error("{layout}: {what} cannot be exported as {kind}: {reason}")]
    Cannot {
        /// The layout.
        layout: String,
        /// The host, volume, stripe or file.
        what: String,
        /// The kind of script.
        kind: &'static str,
        /// Why, and what to do.
        reason: String,
    },
    /// A name that the target cannot have.
    #[error("{what}: {name:?} is no name for it: {rule}; give another with --name {own}=NAME")]
    BadName {
        /// What has the name.
        what: &'static str,
        /// The name.
        name: String,
        /// What a name is there.
        rule: &'static str,
        /// The name in the layout.
        own: String,
    },
    /// Two things that the target would have under one name.
    #[error(
        "{first:?} and {second:?} would both be called {name:?}; give one another name with --name"
    )]
    SameName {
        /// The name in the target.
        name: String,
        /// One name in the layout.
        first: String,
        /// The other.
        second: String,
    },
    /// An option that says nothing to the kind, or to the layout.
    #[error("{option}: {reason}")]
    Option {
        /// The option, as it was given.
        option: String,
        /// Why, and what to do.
        reason: String,
    },
}
