//! The secret of clients that may change something.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;

/// A random secret. Its file is removed at the end.
pub struct Token {
    secret: String,
    file: PathBuf,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Token {
    /// Creates a secret and writes it to a file that only its owner can read. An older file is
    /// replaced.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the system gives no random numbers or the file cannot be written.
    pub fn create(file: &Path) -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut written = options.write(true).create_new(true).mode(0o600).open(file)?;
        writeln!(written, "{secret}")?;
        Ok(Self { secret, file: file.to_owned() })
    }

    /// Returns the secret, to be shown once to the operator.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Returns whether a client has the secret, in a time that does not depend on the answer.
    #[must_use]
    pub fn is(&self, given: &[u8]) -> bool {
        self.secret.as_bytes().ct_eq(given).into()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // It is worthless from now on.
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_new_each_time_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        fs::write(&path, "old").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("its owner");
        let token = Token::create(&path).expect("a token");
        assert_eq!(fs::read_to_string(&path).expect("text"), format!("{}\n", token.secret()));
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(token.secret().len(), 64);
        assert!(token.is(token.secret().as_bytes()));
        for wrong in [&token.secret().as_bytes()[..63], b"", b"old"] {
            assert!(!token.is(wrong));
        }
        assert!(!format!("{token:?}").contains(token.secret()));
        let first = token.secret().to_owned();
        drop(token);
        assert!(!path.exists());
        assert_ne!(Token::create(&path).expect("a token").secret(), first);
    }
}
