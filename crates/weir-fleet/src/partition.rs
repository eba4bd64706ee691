//! Names in a tree of Parquet: `server=NAME/day=YYYY-MM-DD`, as Hive wrote them first.

use std::fmt::Write;
use weir_observe::when::written;

/// The day of samples whose observation has no start. Readers of such trees take it as missing.
pub const NO_DAY: &str = "__HIVE_DEFAULT_PARTITION__";

/// Returns the name of a server's folder.
#[must_use]
pub fn server_folder(server: &str) -> String {
    format!("server={}", escaped(server))
}

/// Returns the name of a day's folder.
#[must_use]
pub fn day_folder(day: &str) -> String {
    format!("day={day}")
}

/// Returns the server or day that the name of a folder states.
#[must_use]
pub fn value(folder: &str, key: &str) -> Option<String> {
    Some(unescaped(folder.strip_prefix(key)?.strip_prefix('=')?))
}

/// Returns the day of a moment in UTC.
#[must_use]
pub fn day(unix_ns: Option<i64>) -> String {
    let Some(unix_ns) = unix_ns else { return NO_DAY.to_owned() };
    written(unix_ns, 0).chars().take(10).collect()
}

/// Escapes the characters that a folder's name cannot have, or that separate key and value.
fn escaped(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.char_indices() {
        let is_plain = c.is_alphanumeric() || matches!(c, '-' | '_' | ' ') || (c == '.' && at > 0);
        if is_plain {
            out.push(c);
            continue;
        }
        let mut bytes = [0; 4];
        for byte in c.encode_utf8(&mut bytes).bytes() {
            // A string takes every write.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let code = more.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|own| std::str::from_utf8(own).ok());
        match code.and_then(|own| u8::from_str_radix(own, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_name_returns(name in ".*") {
            let folder = server_folder(&name);
            prop_assert!(!folder.contains('/') && !folder.contains('\0'));
            prop_assert_eq!(value(&folder, "server"), Some(name));
        }
    }

    #[test]
    fn names_are_those_of_other_programs() {
        assert_eq!(server_folder("db1.eu-west"), "server=db1.eu-west");
        assert_eq!(server_folder("eu/db=1"), "server=eu%2Fdb%3D1");
        assert_eq!(day(Some(1_764_288_000_000_000_000)), "2025-11-28");
        assert_eq!(day(Some(1_764_287_999_999_999_999)), "2025-11-27");
        assert_eq!(day(None), NO_DAY);
        assert_eq!(value("day=2025-11-28", "server"), None);
    }
}
