//! A place of backups as a user writes it.

use super::blob::Container;
use super::http::ContainerUrl;
use super::raw::RawPlace;
use crate::cancel::Cancel;
use crate::error::BackupError;
use crate::export::Export;
use crate::place::{Folder, Place};
use std::fmt;
use std::path::{Path, PathBuf};
use weir_proto::Uri;

/// Returns a place as messages may show it: without the query of a URL, which can be a signature.
#[must_use]
pub fn shown(text: &str) -> &str {
    if text.contains("://") { text.split('?').next().unwrap_or(text) } else { text }
}

/// A place of backups.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PlaceSpec {
    /// A folder, or a stripe file in it.
    Folder(PathBuf),
    /// Blobs of a container.
    Blobs(ContainerUrl),
    /// A raw volume of any NBD server.
    Volume(Export),
    /// A raw volume of the layout, by the name of its export.
    Export(String),
}

impl PlaceSpec {
    /// Reads a place: `nbd://` and `nbd+unix://` are raw volumes, `https://` is a container, a path with a `/` or an existing
    /// folder or file is a folder, and anything else is the name of an export.
    ///
    /// # Errors
    /// [`BackupError::Refused`] for an address that is none.
    pub fn parse(text: &str) -> Result<Self, BackupError> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("nbd" | "nbd+unix" | "nbds" | "nbds+unix") => {
                let uri = text.parse();
                let uri = uri.map_err(|error: weir_proto::ProtoError| {
                    BackupError::Refused(error.to_string())
                })?;
                Ok(Self::Volume(Export::new(text, uri)))
            }
            Some("http" | "https") => Ok(Self::Blobs(ContainerUrl::parse(text)?)),
            Some(other) => Err(BackupError::Refused(format!(
                "{}: {other} is no kind of place; give a folder, an export, nbd:// or https://",
                shown(text)
            ))),
            None if text.contains('/') || Path::new(text).exists() => {
                Ok(Self::Folder(PathBuf::from(text)))
            }
            None if text.is_empty() => {
                Err(BackupError::Refused("a place of backups has no name".to_owned()))
            }
            None => Ok(Self::Export(text.to_owned())),
        }
    }

    /// Puts the address of an export in the place of its name.
    ///
    /// # Errors
    /// What `find` says of an export that is not served.
    pub fn resolve(
        self,
        find: impl FnOnce(&str) -> Result<Uri, BackupError>,
    ) -> Result<Self, BackupError> {
        match self {
            Self::Export(name) => find(&name).map(|uri| Self::Volume(Export::new(name, uri))),
            other => Ok(other),
        }
    }

    /// Lets `cancel` end the waits for a container or a volume.
    #[must_use]
    pub fn with_cancel(self, cancel: &Cancel) -> Self {
        match self {
            Self::Blobs(url) => Self::Blobs(url.with_cancel(cancel.clone())),
            Self::Volume(export) => Self::Volume(export.with_cancel(cancel)),
            other => other,
        }
    }

    /// Uses a signature for a container, if one is given.
    #[must_use]
    pub fn with_sas(self, sas: Option<&str>) -> Self {
        match (self, sas) {
            (Self::Blobs(url), Some(sas)) => Self::Blobs(url.with_sas(sas)),
            (other, _) => other,
        }
    }

    /// Returns a warning about a place that is used in an unsafe way.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Blobs(url) => url.warning(),
            _ => None,
        }
    }

    /// Opens it to read what is there.
    ///
    /// # Errors
    /// When there is no such folder, or the name of an export was not resolved.
    pub fn open(&self) -> Result<Box<dyn Place>, BackupError> {
        match self {
            Self::Folder(path) => Ok(Box::new(Folder::new(path)?)),
            Self::Blobs(url) => Ok(Box::new(Container::new(url.clone()))),
            Self::Volume(export) => Ok(Box::new(RawPlace::new(export.clone()))),
            Self::Export(name) => Err(BackupError::Refused(format!(
                "{name} is no folder; for the export of that name give --layout and --data, or \
                 --control"
            ))),
        }
    }
}

impl fmt::Display for PlaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blobs(url) => write!(f, "{url}"),
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Volume(export) => write!(f, "{export}"),
            Self::Export(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let parsed = PlaceSpec::parse(text).map(|spec| format!("{spec:?}"));
        let got = parsed.unwrap_or_else(|error| error.to_string());
        assert!(got.contains(expect), "{got}");
    }

    #[test]
    fn places_are_told_apart() {
        check("/mnt/backup", "Folder(\"/mnt/backup\")");
        check("./b", "Folder(\"./b\")");
        check("backup1", "Export(\"backup1\")");
        check("nbd://host/vol", "export: \"vol\"");
        check("nbd+unix:///vol?socket=/tmp/s", "socket: \"/tmp/s\"");
        check("ftp://host/x", "ftp is no kind of place");
        check("nbd+unix:///vol", "nbd+unix:///vol");
        check("http://127.0.0.1:1/a/c/x", "Blobs(ContainerUrl(http://127.0.0.1:1/a/c/x/))");
        check("", "has no name");
    }
}
