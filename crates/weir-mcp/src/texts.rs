//! Files that name other files or the environment, which would be read without a check.

use crate::arguments::Arguments;
use crate::call::{Given, one_of};
use crate::roots::Roots;
use std::fs;
use std::path::{Path, PathBuf};

/// Largest job file, description or need, in bytes.
const LARGEST: u64 = 1 << 20;

/// Reads a text that is small by its nature.
fn read(path: &Path) -> Result<String, String> {
    let named = path.display();
    let failed = |error| format!("{named}: {error}");
    if fs::metadata(path).map_err(failed)?.len() > LARGEST {
        return Err(format!("{named} is larger than {LARGEST} bytes, which no such file is"));
    }
    fs::read_to_string(path).map_err(failed)
}

/// Checks a file of a workload.
pub(crate) fn check_jobs_file(path: &Path) -> Result<(), String> {
    check_jobs(&path.display().to_string(), &read(path)?)
}

/// Refuses job files that include others or read the environment.
pub(crate) fn check_jobs(name: &str, text: &str) -> Result<(), String> {
    for (line, own) in text.lines().enumerate() {
        let own = own.trim_start();
        let is_include = own
            .strip_prefix("include")
            .is_some_and(|rest| rest.starts_with(char::is_whitespace) || rest.is_empty());
        if is_include {
            return Err(format!(
                "{name}:{}: this server reads no included files; write the options into the job file",
                line + 1
            ));
        }
        if own.contains("${") {
            return Err(format!(
                "{name}:{}: this server reads no environment variables; write the value instead",
                line + 1
            ));
        }
    }
    Ok(())
}

/// Adds a need that a call names or contains.
pub(crate) fn add_need(
    path: Option<&str>,
    text: Option<&str>,
    arguments: &mut Arguments<'_>,
) -> Result<(), String> {
    match one_of(path, text, "need")? {
        Given::Path(path) => {
            let path = arguments.file_option("need", path)?;
            check_need_file(&path, arguments.roots())
        }
        Given::Text(text) => {
            check_need(text)?;
            arguments.text_option("need", "need.toml", text)
        }
    }
}

/// Adds needs of other times.
pub(crate) fn add_also(
    paths: &[String],
    texts: &[String],
    arguments: &mut Arguments<'_>,
) -> Result<(), String> {
    for path in paths {
        let path = arguments.file_option("also", path)?;
        check_need_file(&path, arguments.roots())?;
    }
    for (at, text) in (1..).zip(texts) {
        check_need(text)?;
        arguments.text_option("also", &format!("also-{at}.toml"), text)?;
    }
    Ok(())
}

/// Checks a need file: the layout that it keeps must be below a root.
fn check_need_file(path: &Path, roots: &Roots) -> Result<(), String> {
    let text = read(path)?;
    let Some(kept) = kept(&text) else { return Ok(()) };
    let beside: PathBuf = path.parent().unwrap_or(Path::new("")).join(&kept);
    roots.resolve(&beside.display().to_string()).map(drop)
}

/// Refuses a need in a call that names a file.
fn check_need(text: &str) -> Result<(), String> {
    match kept(text) {
        None => Ok(()),
        Some(kept) => Err(format!(
            "keep = {kept:?}: a need in a call names no files; give the layout as keep of the call"
        )),
    }
}

/// Returns the layout that a need keeps. A text that is no TOML is refused by the planner.
fn kept(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    table.get("keep")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_files_read_nothing_else() {
        let check = |text: &str, expect: Option<&str>| match (check_jobs("a.fio", text), expect) {
            (Ok(()), None) => {}
            (Err(words), Some(expect)) => assert!(words.contains(expect), "{words}"),
            other => panic!("{text}: {other:?}"),
        };
        check("[a]\nrw=read\n; include x\n", None);
        check("[includes]\nrw=read\n", None);
        check("[a]\n  include\t/etc/passwd\n", Some("a.fio:2: this server reads no included"));
        check("[a]\nfilename=${HOME}\n", Some("a.fio:2: this server reads no environment"));
    }

    #[test]
    fn a_need_keeps_no_layout_outside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(folder.path().join("out.toml"), "").unwrap();
        fs::write(root.join("in.toml"), "").unwrap();
        let roots = Roots::new(std::slice::from_ref(&root), 100).unwrap();
        let check = |text: &str| {
            fs::write(root.join("need.toml"), text).unwrap();
            check_need_file(&root.join("need.toml"), &roots)
        };
        assert_eq!(check("keep = \"in.toml\"\n[data]\nsize = \"1 TiB\"\n"), Ok(()));
        assert_eq!(check("[data]\nsize = \"1 TiB\"\n"), Ok(()));
        assert!(check("keep = \"../out.toml\"\n").is_err());
        assert!(check_need("keep = \"in.toml\"").is_err());
        assert_eq!(check_need("[data]\nsize = \"1 TiB\"\n"), Ok(()));
    }
}
