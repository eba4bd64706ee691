//! The arguments of a call as they are built.

use crate::call::{Given, one_of};
use crate::output::Output;
use crate::roots::Roots;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of a call.
const MOST_FILES: usize = 64;

/// Arguments of a verb, with a folder for texts that came with the call.
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    roots: &'a Roots,
    folder: &'a Path,
    options: Vec<OsString>,
    positionals: Vec<OsString>,
    files: usize,
}

impl<'a> Arguments<'a> {
    /// Begins the arguments of a verb.
    pub(crate) fn new(verb: &[&str], output: Output, roots: &'a Roots, folder: &'a Path) -> Self {
        let mut options: Vec<OsString> = verb.iter().map(OsString::from).collect();
        options.push(format!("--output={}", output.name()).into());
        Self { roots, folder, options, positionals: Vec::new(), files: 0 }
    }

    /// Returns the folders whose files may be read.
    pub(crate) const fn roots(&self) -> &'a Roots {
        self.roots
    }

    /// Adds an option with a value, if there is one. Both are one argument, so that no value is taken
    /// for an option.
    pub(crate) fn option<T: Display>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.options.push(format!("--{name}={value}").into());
        }
    }

    /// Adds an option for each value.
    pub(crate) fn options<T: Display>(&mut self, name: &str, values: &[T]) {
        values.iter().for_each(|value| self.option(name, Some(value)));
    }

    /// Adds an option without a value.
    pub(crate) fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.options.push(format!("--{name}").into());
        }
    }

    /// Adds a value that is not an option.
    pub(crate) fn value(&mut self, value: &str) {
        self.positionals.push(value.into());
    }

    /// Resolves a file that the call names.
    pub(crate) fn resolve(&mut self, named: &str) -> Result<PathBuf, String> {
        self.files += 1;
        if self.files > MOST_FILES {
            return Err(format!("a call reads at most {MOST_FILES} files"));
        }
        self.roots.resolve(named)
    }

    /// Adds a file that the call names.
    pub(crate) fn file(&mut self, named: &str) -> Result<PathBuf, String> {
        let path = self.resolve(named)?;
        self.positionals.push(path.clone().into());
        Ok(path)
    }

    /// Adds a layout that the call names or contains.
    pub(crate) fn layout(&mut self, path: Option<&str>, text: Option<&str>) -> Result<(), String> {
        match one_of(path, text, "layout")? {
            Given::Path(path) => self.file(path).map(drop),
            Given::Text(text) => self.text("layout.toml", text),
        }
    }

    /// Adds an option whose value is a file.
    pub(crate) fn file_option(&mut self, name: &str, named: &str) -> Result<PathBuf, String> {
        let path = self.resolve(named)?;
        let mut option = OsString::from(format!("--{name}="));
        option.push(&path);
        self.options.push(option);
        Ok(path)
    }

    /// Stores a text of the call, and returns its path.
    pub(crate) fn store(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        fs::write(&path, text)
            .map_err(|error| format!("storing the {name} of the call: {error}"))?;
        // The verb runs in this folder, so that messages name the file alone.
        Ok(PathBuf::from(name))
    }

    /// Adds a text of the call as a file.
    pub(crate) fn text(&mut self, name: &str, text: &str) -> Result<(), String> {
        let path = self.store(name, text)?;
        self.positionals.push(path.into());
        Ok(())
    }

    /// Adds an option whose value is a text of the call as a file.
    pub(crate) fn text_option(
        &mut self,
        option: &str,
        name: &str,
        text: &str,
    ) -> Result<(), String> {
        let path = self.store(name, text)?;
        self.option(option, Some(path.display()));
        Ok(())
    }

    /// Returns all arguments.
    pub(crate) fn finish(self) -> Vec<OsString> {
        let mut all = self.options;
        if !self.positionals.is_empty() {
            // No value is taken for an option.
            all.push("--".into());
            all.extend(self.positionals);
        }
        all
    }
}
