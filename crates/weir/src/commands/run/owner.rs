//! Whose the files of a data directory are: beside the volumes stands, for each database
//! that ran there, which files it has. So a database never takes over the files of
//! another, and one whose log is gone is told from one that never ran.

use crate::error::CliError;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use weir_workload::oltp::Description;

/// What the name of such a record begins with; the name of the log follows.
const PREFIX: &str = "database-";

/// The record of a database.
pub(super) struct Owner {
    path: PathBuf,
    text: String,
    /// It ran here before.
    pub(super) is_known: bool,
}

impl Owner {
    /// Reads the records of `data`; refused if a file that `description` names is another
    /// database's.
    pub(super) fn find(data: &Path, description: &Description) -> Result<Self, CliError> {
        let failed = |path: &Path| {
            let context = format!("reading {}", path.display());
            move |source| CliError::Folder { context, source }
        };
        let own = format!("{PREFIX}{}", description.log_name());
        let path = data.join(&own);
        for entry in fs::read_dir(data).map_err(failed(data))? {
            let entry = entry.map_err(failed(data))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with(PREFIX) || name == own {
                continue;
            }
            let text = fs::read_to_string(entry.path()).map_err(failed(&entry.path()))?;
            if let Some(file) = description.file_names().find(|own| text.lines().any(|l| l == *own))
            {
                return Err(CliError::Refused(format!(
                    "file {file:?} in {} is of the database whose log is {:?}; give this one files \
                     of its own, or another folder",
                    data.display(),
                    &name[PREFIX.len()..],
                )));
            }
        }
        let text: String = description.file_names().map(|name| format!("{name}\n")).collect();
        let is_known = path.exists();
        Ok(Self { path, text, is_known })
    }

    /// Writes the record, before the database writes anything.
    pub(super) fn keep(&self) -> Result<(), CliError> {
        let write = || {
            let mut file = fs::File::create(&self.path)?;
            file.write_all(self.text.as_bytes())?;
            file.sync_all()
        };
        let context = || format!("writing {}", self.path.display());
        write().map_err(|source| CliError::Folder { context: context(), source })
    }
}
