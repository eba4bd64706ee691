//! Reasons why a layout cannot be exported. Each message names the object and the remedy.

/// A reason why a layout cannot be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The kind does not apply to the layout.
    #[error("{layout}: nothing to export as {kind}: {reason}")]
    Nothing {
        /// The layout.
        layout: String,
        /// The kind of script.
        kind: &'static str,
        /// The missing item and the remedy.
        reason: String,
    },
    /// The kind cannot build an item of the layout.
    #[error("{layout}: {what} cannot be exported as {kind}: {reason}")]
    Cannot {
        /// The layout.
        layout: String,
        /// The host, volume, stripe or file.
        what: String,
        /// The kind of script.
        kind: &'static str,
        /// The reason and the remedy.
        reason: String,
    },
    /// The target does not allow a name.
    #[error("{what}: {name:?} is not a valid name: {rule}; give another with --name {own}=NAME")]
    BadName {
        /// The named object.
        what: &'static str,
        /// The name.
        name: String,
        /// The rule for names.
        rule: &'static str,
        /// The name in the layout.
        own: String,
    },
    /// Two items would have the same name in the target.
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
    /// An option that does not apply to the kind or the layout.
    #[error("{option}: {reason}")]
    Option {
        /// The option, as given.
        option: String,
        /// The reason and the remedy.
        reason: String,
    },
}
