//! Invariants of a need file: it is read and planned for, or rejected with a message.

use super::plans;
use weir_plan::need::NeedFile;

const FILE: &str = "fuzz.toml";

pub(super) fn run(data: &[u8]) {
    match NeedFile::read(FILE, &String::from_utf8_lossy(data)) {
        Ok(file) => plans::plan(&file),
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with(FILE), "the message names no file: {message}");
        }
    }
}
