//! Files with the credentials of a login.

use std::path::PathBuf;

/// Files that contain the credentials of a login.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// A password in the first line.
    pub password_file: Option<PathBuf>,
    /// A token of Microsoft Entra in the first line. It is read again on each reconnect.
    pub token_file: Option<PathBuf>,
}
