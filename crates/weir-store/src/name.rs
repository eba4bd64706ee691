//! Volume names become folder names, so they are checked before anything else.

use crate::{Result, StoreError};

const MAX_LEN: usize = 128;

/// Refuses a name that could climb out of the data directory, hide in it, or
/// need quoting in a shell.
pub(crate) fn check(name: &str) -> Result<()> {
    let refuse = |problem| Err(StoreError::Name { name: name.to_owned(), problem });
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() {
        refuse("is empty")
    } else if name.len() > MAX_LEN {
        refuse("is longer than 128 characters")
    } else if name.starts_with('.') {
        refuse("starts with a dot")
    } else if !name.chars().all(allowed) {
        refuse("has a character that is not a letter, digit, '.', '_' or '-'")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(name: &str, expect: &str) {
        let got = super::check(name).map_or_else(|e| e.to_string(), |()| "ok".to_owned());
        assert_eq!(got, expect);
    }

    #[test]
    fn names_that_are_folders_and_nothing_else() {
        check("db", "ok");
        check("nocache-0", "ok");
        check("Data_1.mdf", "ok");
        check(&"a".repeat(128), "ok");
    }

    #[test]
    fn names_that_climb_hide_or_need_quoting() {
        let foreign = "has a character that is not a letter, digit, '.', '_' or '-'";
        check("", "volume name \"\" is empty");
        check(".", "volume name \".\" starts with a dot");
        check("..", "volume name \"..\" starts with a dot");
        check(".hidden", "volume name \".hidden\" starts with a dot");
        check("a/../b", &format!("volume name \"a/../b\" {foreign}"));
        check("/etc", &format!("volume name \"/etc\" {foreign}"));
        check("a b", &format!("volume name \"a b\" {foreign}"));
        check("a\0", &format!("volume name \"a\\0\" {foreign}"));
        check("größe", &format!("volume name \"größe\" {foreign}"));
        let long = "a".repeat(129);
        check(&long, &format!("volume name {long:?} is longer than 128 characters"));
    }
}
