//! The checkouts of suites. A suite runs programs of its checkout, and must not run those of another project.

use super::Suite;
use crate::error::XtaskError;
use std::path::{Path, PathBuf};

/// The source of a suite.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// A file that only its checkout has.
    file: &'static str,
    /// The command that gets it.
    command: &'static str,
}

/// Returns the source of a suite; suites of installed packages have none.
pub(super) const fn source_of(suite: Suite) -> Option<Source> {
    let (file, command) = match suite {
        Suite::StressNg | Suite::Mariadb => return None,
        Suite::Pjdfstest => ("pjdfstest.c", "git clone https://github.com/pjd/pjdfstest"),
        Suite::Xfstests | Suite::Fsx | Suite::FsOverNbd | Suite::XfstestsOverNbd => {
            ("ltp/fsx.c", "git clone https://github.com/kdave/xfstests")
        }
        Suite::Postgres => ("src/test/regress/pg_regress.c", "apt-get source postgresql-15"),
        Suite::Sqllogictest => {
            ("src/slt_sqlite.c", "git clone https://github.com/gregrahn/sqllogictest")
        }
        Suite::Nbd => {
            ("tests/run/nbd-tester-client.c", "git clone https://github.com/NetworkBlockDevice/nbd")
        }
        Suite::Libnbd => ("interop/interop.c", "git clone https://gitlab.com/nbdkit/libnbd"),
        Suite::QemuIotests => ("tests/qemu-iotests/common.rc", "apt-get source qemu"),
        Suite::Azurite => {
            ("tests/BlobTestServerFactory.ts", "git clone https://github.com/Azure/Azurite")
        }
        Suite::AzureSdkPython => (
            "tests/test_page_blob.py",
            "pip download --no-deps --no-binary :all: azure-storage-blob",
        ),
    };
    Some(Source { file, command })
}

/// Returns the full path of a checkout, or nothing if none is named.
pub(super) fn check(
    name: &str,
    source: Option<Source>,
    checkout: Option<&Path>,
) -> Result<Option<PathBuf>, XtaskError> {
    let Some(folder) = checkout else { return Ok(None) };
    let Some(Source { file, command }) = source else {
        return Err(XtaskError::Suite(format!(
            "{name} tests with an installed package; leave out --checkout {}",
            folder.display()
        )));
    };
    if folder.join(file).is_file() {
        return folder.canonicalize().map(Some).map_err(XtaskError::file("finding", folder));
    }
    Err(XtaskError::Suite(format!(
        "{}: not a checkout of {name}, which has a file {file}; get it with `{command}`, and name its folder with \
         --checkout",
        folder.display()
    )))
}

/// Returns the error of a suite that needs a checkout and got none.
pub(super) fn missing(name: &str, source: Option<Source>) -> XtaskError {
    let command = source.map_or("", |source| source.command);
    XtaskError::Suite(format!(
        "{name} needs its checkout; get it with `{command}`, and name its folder with --checkout"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use std::fs;

    #[test]
    fn a_folder_of_another_project_is_refused() {
        let root = tempfile::tempdir().expect("a folder");
        // Programs that a suite would run.
        for file in ["Makefile", "configure", "autogen.sh", "check"] {
            fs::write(root.path().join(file), "").expect("a file");
        }
        for suite in Suite::value_variants() {
            let name = format!("{suite:?}");
            let said =
                check(&name, source_of(*suite), Some(root.path())).expect_err("it is refused");
            let said = said.to_string();
            assert!(said.contains(&name), "{said}");
            assert!(said.contains(&root.path().display().to_string()), "{said}");
            let Some(source) = source_of(*suite) else {
                assert!(said.contains("leave out --checkout"), "{said}");
                continue;
            };
            assert!(said.contains(source.file) && said.contains(source.command), "{said}");
            let file = root.path().join(source.file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
            fs::write(&file, "").expect("a file");
            let found = check(&name, source_of(*suite), Some(root.path())).expect("it is taken");
            assert_eq!(found, root.path().canonicalize().ok());
            fs::remove_file(&file).expect("it is removed");
        }
    }
}
