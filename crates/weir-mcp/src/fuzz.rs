//! Calls made from arbitrary bytes, for fuzzers and tests.
//!
//! Invariants for any call: nothing panics, a refusal has a message, and no argument of the verb is a path
//! outside of the roots or an option that writes.

use crate::roots::Roots;
use crate::tools;
use rmcp::model::JsonObject;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

/// Size in bytes of the largest file that a call may name.
const LARGEST: u64 = 1 << 10;

/// A root with files, beside a file that no call may reach.
static PLACE: LazyLock<Option<(TempDir, PathBuf, Roots)>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().ok()?;
    let root = folder.path().canonicalize().ok()?.join("root");
    std::fs::create_dir(&root).ok()?;
    std::fs::write(root.join("a.toml"), "[host]\n").ok()?;
    std::fs::write(folder.path().join("secret"), "secret").ok()?;
    std::os::unix::fs::symlink("../secret", root.join("link")).ok()?;
    let roots = Roots::new(std::slice::from_ref(&root), LARGEST).ok()?;
    Some((folder, root, roots))
});

/// A call as a client sends it.
#[derive(Deserialize)]
struct Message {
    name: String,
    #[serde(default)]
    arguments: JsonObject,
}

/// Prepares the call in `data`, in JSON.
///
/// # Panics
///
/// If an invariant is violated.
pub fn call_bytes(data: &[u8]) {
    let Ok(Message { name, arguments }) = serde_json::from_slice(data) else { return };
    let Some((folder, root, roots)) = &*PLACE else { panic!("a folder for the files of calls") };
    let Some(tool) = tools::find(&name) else {
        assert!(tools::unknown(&name).contains("there is no tool"), "{name:?}");
        return;
    };
    let prepared = match tool.prepare(arguments, roots) {
        Err(refusal) => return assert!(!refusal.trim().is_empty(), "a refusal has no message"),
        Ok(prepared) => prepared,
    };
    let mut is_value = false;
    for argument in &prepared.arguments {
        let argument = argument.to_string_lossy();
        if argument == "--" {
            is_value = true;
            continue;
        }
        let value = match (is_value, argument.split_once('=')) {
            (true, _) => &*argument,
            (false, Some((option, value))) => {
                assert!(!matches!(option, "--out" | "--write-script"), "{argument:?} writes");
                value
            }
            (false, None) => continue,
        };
        let path = Path::new(value);
        // Files of the roots are named by their real paths, and texts of the call by their names.
        let is_inside = !path.starts_with(folder.path())
            || path.canonicalize().is_ok_and(|real| real.starts_with(root));
        assert!(is_inside, "{argument:?} is outside of the roots");
    }
}
