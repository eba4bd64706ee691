//! `docs/layout.schema.json`, with which editors complete and check layout files. It is generated
//! from the types that parse layouts, and kept in the repository so that it has an address.

use crate::error::XtaskError;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the path of the schema below `root`.
#[must_use]
pub fn path(root: &Path) -> PathBuf {
    root.join("docs").join("layout.schema.json")
}

/// Returns the text of the schema.
#[must_use]
pub fn text() -> String {
    format!("{:#}\n", weir_layout::file::schema())
}

/// Writes the schema, and returns its path.
///
/// # Errors
///
/// [`XtaskError::File`] if it cannot be written.
pub fn write(root: &Path) -> Result<PathBuf, XtaskError> {
    let path = path(root);
    fs::write(&path, text()).map_err(XtaskError::file("writing", &path))?;
    Ok(path)
}

/// Compares the schema in the repository with that of [`write`](fn@write).
///
/// # Errors
///
/// [`XtaskError::Stale`] if they differ, [`XtaskError::File`] if there is none.
pub fn check(root: &Path) -> Result<PathBuf, XtaskError> {
    let path = path(root);
    let kept = fs::read_to_string(&path).map_err(XtaskError::file("reading", &path))?;
    let now = text();
    if kept == now {
        return Ok(path);
    }
    let same = kept.lines().zip(now.lines()).take_while(|(kept, now)| kept == now).count();
    Err(XtaskError::Stale { path, line: same + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_docs_is_up_to_date() {
        check(&crate::root()).unwrap();
    }

    #[test]
    fn what_was_written_is_up_to_date_until_it_is_changed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        assert!(matches!(check(root.path()), Err(XtaskError::File { doing: "reading", .. })));
        let path = write(root.path()).unwrap();
        assert_eq!(check(root.path()).unwrap(), path);

        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("}\n"));
        fs::write(&path, text.replacen("\"$schema\"", "\"$scheme\"", 1)).unwrap();
        let message = check(root.path()).unwrap_err().to_string();
        let line = text.lines().position(|line| line.contains("\"$schema\"")).unwrap() + 1;
        let place = format!("{}:{line} is out of date", path.display());
        assert!(message.starts_with(&place), "{message}");
        fs::write(&path, text.strip_suffix("}\n").unwrap()).unwrap();
        assert!(matches!(check(root.path()), Err(XtaskError::Stale { .. })));
    }
}
