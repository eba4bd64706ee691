//! Checks of an image.

use crate::error::XtaskError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A check of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// The file system's own, after it was recovered as a mount recovers it.
    ByFileSystem,
    /// A line for the shell, in which `{}` is the path of a copy.
    Line(String),
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Sound,
    /// There is no file system.
    Empty,
    Unsound {
        said: String,
    },
}

/// A known file system: the place of its magic number, and the check of the image in `$0`.
struct Known {
    at: u64,
    magic: &'static [u8],
    line: &'static str,
}

/// `e2fsck -p` recovers the journal and the list of orphans as the kernel does, which may be code 1, and
/// refuses everything else. Afterwards nothing may be left to repair.
///
/// `xfs_repair` does not read a journal, and only the kernel does.
const KNOWN: [Known; 3] = [
    Known {
        at: 1080,
        magic: &[0x53, 0xef],
        line: "{ e2fsck -p \"$0\" || [ $? -eq 1 ]; } && e2fsck -fn \"$0\"",
    },
    Known {
        at: 0,
        magic: b"XFSB",
        line: "d=$(mktemp -d) && mount -o loop,nouuid \"$0\" \"$d\" && umount \"$d\" && rmdir \"$d\" && \
               xfs_repair -n \"$0\"",
    },
    Known { at: 0x1_0040, magic: b"_BHRfS_M", line: "btrfs check --readonly \"$0\"" },
];

impl Check {
    /// Reads a line for the shell.
    ///
    /// # Errors
    ///
    /// A hint, if the line does not name the image.
    pub fn parse(line: &str) -> Result<Self, String> {
        if line.contains("{}") {
            Ok(Self::Line(line.to_owned()))
        } else {
            Err("write {} where the path of the image goes, for example 'e2fsck -fn {}'".to_owned())
        }
    }

    /// Checks a copy of an image.
    pub(super) fn run(&self, image: &Path) -> Result<Verdict, XtaskError> {
        let line = match self {
            Self::ByFileSystem => match known(image)? {
                Some(known) => known.line.to_owned(),
                None => return Ok(Verdict::Empty),
            },
            Self::Line(line) => line.replace("{}", "\"$0\""),
        };
        let copy = Copy::make(image)?;
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).arg(&copy.0).stdin(Stdio::null());
        let output = shell.output().map_err(system("running a check"))?;
        if output.status.success() {
            return Ok(Verdict::Sound);
        }
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        Ok(Verdict::Unsound { said: format!("{line}: {}\n{}", output.status, text.trim_end()) })
    }
}

fn known(image: &Path) -> Result<Option<&'static Known>, XtaskError> {
    let file = File::open(image).map_err(XtaskError::file("reading", image))?;
    for known in &KNOWN {
        let mut found = vec![0; known.magic.len()];
        match file.read_exact_at(&mut found, known.at) {
            Ok(()) if found == known.magic => return Ok(Some(known)),
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(XtaskError::file("reading", image)(error));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// A copy beside the image, gone at the end.
struct Copy(PathBuf);

impl Copy {
    fn make(image: &Path) -> Result<Self, XtaskError> {
        let mut name = image.file_name().unwrap_or_default().to_owned();
        name.push(".checked");
        let copy = Self(image.with_file_name(name));
        let mut cp = Command::new("cp");
        cp.args(["--reflink=auto", "--sparse=always", "--"]).arg(image).arg(&copy.0);
        let output = cp.output().map_err(system("copying the image"))?;
        if output.status.success() {
            return Ok(copy);
        }
        let said = io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        Err(XtaskError::file("copying", image)(said))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // The next copy replaces it.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn system(doing: &'static str) -> impl Fn(io::Error) -> XtaskError {
    move |source| XtaskError::System { doing, source }
}
