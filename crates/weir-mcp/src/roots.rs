//! The folders whose files may be read.

use crate::error::ServeError;
use std::fs;
use std::path::{Path, PathBuf};

/// Files in a folder that is read as a whole.
const MOST_FILES: usize = 1000;

/// The folders whose files may be read, without links.
#[derive(Debug, Clone)]
pub(crate) struct Roots {
    folders: Vec<PathBuf>,
    /// Largest file, in bytes.
    largest: u64,
}

impl Roots {
    /// Resolves the folders.
    pub(crate) fn new(folders: &[PathBuf], largest: u64) -> Result<Self, ServeError> {
        let resolved = folders.iter().map(|path| {
            let failed = |reason: String| ServeError::Root { path: path.clone(), reason };
            let real = fs::canonicalize(path)
                .map_err(|error| failed(format!("it cannot be opened: {error}")))?;
            if !real.is_dir() {
                return Err(failed("it is not a folder".to_owned()));
            }
            if real.parent().is_none() {
                return Err(failed("it is the whole file system; name a folder in it".to_owned()));
            }
            Ok(real)
        });
        Ok(Self { folders: resolved.collect::<Result<_, _>>()?, largest })
    }

    /// Resolves a file or folder that a client named.
    ///
    /// # Errors
    ///
    /// A message for the client if it is outside of the roots, missing or too large.
    pub(crate) fn resolve(&self, named: &str) -> Result<PathBuf, String> {
        let path = Path::new(named);
        let candidates: Vec<PathBuf> = match path.is_absolute() {
            true => vec![path.to_owned()],
            false => self.folders.iter().map(|root| root.join(path)).collect(),
        };
        let found = candidates.iter().find_map(|path| fs::canonicalize(path).ok());
        let Some(real) = found else {
            // Nothing is said about files outside of the roots, not even whether they exist.
            return Err(format!(
                "{named:?} does not exist in the folders of this server: {}",
                self.listed()
            ));
        };
        if !self.contain(&real) {
            return Err(format!(
                "{named:?} does not exist in the folders of this server: {}",
                self.listed()
            ));
        }
        if real.is_dir() {
            self.check_folder(&real)?
        } else {
            self.check_file(&real)?
        }
        Ok(real)
    }

    fn contain(&self, real: &Path) -> bool {
        self.folders.iter().any(|root| real.starts_with(root))
    }

    fn listed(&self) -> String {
        if self.folders.is_empty() {
            return "none; start weir mcp with --root DIR".to_owned();
        }
        let all = self.folders.iter().map(|root| root.display().to_string());
        all.collect::<Vec<_>>().join(", ")
    }

    fn check_file(&self, real: &Path) -> Result<(), String> {
        let named = real.display();
        let about = fs::metadata(real).map_err(|error| format!("{named}: {error}"))?;
        if !about.is_file() {
            return Err(format!("{named} is neither a file nor a folder"));
        }
        if about.len() > self.largest {
            return Err(format!(
                "{named} has {} bytes, and this server reads files of at most {} bytes; start it with a \
                 larger --max-file, or use weir itself",
                about.len(),
                self.largest
            ));
        }
        Ok(())
    }

    /// Checks each file of a folder, which is read as a whole.
    fn check_folder(&self, folder: &Path) -> Result<(), String> {
        let named = folder.display();
        let failed = |error| format!("{named}: {error}");
        for (place, entry) in fs::read_dir(folder).map_err(failed)?.enumerate() {
            if place >= MOST_FILES {
                return Err(format!("{named} has more than {MOST_FILES} files"));
            }
            let path = entry.map_err(failed)?.path();
            // Nothing is said about files outside of the roots, not even whether they exist.
            let real = fs::canonicalize(&path).ok().filter(|real| self.contain(real));
            let Some(real) = real else {
                return Err(format!(
                    "{} does not lead to a file in the folders of this server",
                    path.display()
                ));
            };
            if real.is_file() {
                self.check_file(&real)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Returns a root with a file, and a file outside of it.
    fn place() -> (tempfile::TempDir, Roots) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("runs")).unwrap();
        fs::write(root.join("a.toml"), "a").unwrap();
        fs::write(root.join("runs/1.json"), "1").unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        let roots = Roots::new(&[root], 100).unwrap();
        (folder, roots)
    }

    #[test]
    fn files_below_a_root_are_found_by_either_path() {
        let (folder, roots) = place();
        let real = fs::canonicalize(folder.path().join("root/a.toml")).unwrap();
        assert_eq!(roots.resolve("a.toml"), Ok(real.clone()));
        assert_eq!(roots.resolve(&real.display().to_string()), Ok(real.clone()));
        assert_eq!(roots.resolve("runs/../a.toml"), Ok(real));
        assert!(roots.resolve("runs").is_ok());
    }

    #[test]
    fn whatever_leads_outside_is_refused_alike() {
        let (folder, roots) = place();
        let root = folder.path().join("root");
        symlink(folder.path().join("secret"), root.join("link")).unwrap();
        symlink(folder.path(), root.join("up")).unwrap();
        let outside = folder.path().join("secret").display().to_string();
        let missing = folder.path().join("nothing").display().to_string();
        for named in ["../secret", "link", "up/secret", "/etc/passwd", &outside, &missing, ""] {
            let refused = roots.resolve(named);
            let words = refused.expect_err(named);
            assert!(
                words.contains("does not exist in the folders") || named.is_empty(),
                "{named}: {words}"
            );
            assert!(!words.contains("secret\n"), "{words}");
        }
        // A folder is read as a whole, so a link in it counts, too.
        for outside in ["secret", "nothing"] {
            symlink(folder.path().join(outside), root.join("runs/2.json")).unwrap();
            let words = roots.resolve("runs").expect_err("a link outside");
            assert!(
                words.ends_with("2.json does not lead to a file in the folders of this server"),
                "{words}"
            );
            fs::remove_file(root.join("runs/2.json")).unwrap();
        }
    }

    #[test]
    fn a_root_with_a_similar_name_is_another_folder() {
        let (folder, roots) = place();
        fs::create_dir(folder.path().join("root2")).unwrap();
        fs::write(folder.path().join("root2/b"), "b").unwrap();
        let named = folder.path().join("root2/b").display().to_string();
        assert!(roots.resolve(&named).is_err());
    }

    #[test]
    fn large_and_special_files_are_refused() {
        let (folder, roots) = place();
        fs::write(folder.path().join("root/large"), vec![0; 101]).unwrap();
        let words = roots.resolve("large").expect_err("too large");
        assert!(words.contains("101 bytes") && words.contains("--max-file"), "{words}");
        let wrong = [folder.path().join("root/a.toml"), folder.path().join("none"), "/".into()];
        for root in wrong {
            assert!(Roots::new(std::slice::from_ref(&root), 1).is_err(), "{}", root.display());
        }
        let none = Roots::new(&[], 1).unwrap();
        assert!(none.resolve("a.toml").expect_err("no root").contains("--root DIR"));
    }
}
