//! Quoting in each language, so that any text in a name stays part of the name.
//!
//! Control characters are rejected earlier ([`crate::site`]), so that no language needs to escape
//! them.

/// Quotes an identifier of T-SQL, in brackets.
pub(crate) fn sql_name(text: &str) -> String {
    format!("[{}]", text.replace(']', "]]"))
}

/// Quotes a Unicode string of T-SQL.
pub(crate) fn sql(text: &str) -> String {
    format!("N'{}'", text.replace('\'', "''"))
}

/// Quotes a word of a shell, if necessary.
pub(crate) fn shell(text: &str) -> String {
    if !text.is_empty()
        && text
            .chars()
            .all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':'))
    {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Quotes a string of PowerShell without interpolation. PowerShell accepts five characters as a
/// quote.
pub(crate) fn powershell(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        if matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}') {
            quoted.push(c);
        }
        quoted.push(c);
    }
    quoted + "'"
}

/// Quotes a string of Bicep without interpolation.
pub(crate) fn bicep(text: &str) -> String {
    let text = text.replace('\\', r"\\").replace('\'', r"\'").replace("${", r"\${");
    format!("'{text}'")
}

/// Quotes a string of Terraform without interpolation.
pub(crate) fn terraform(text: &str) -> String {
    let text = text.replace('\\', r"\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace("${", "$${").replace("%{", "%%{"))
}

/// Escapes a field of /etc/fstab.
pub(crate) fn fstab(text: &str) -> String {
    text.replace('\\', r"\134").replace(' ', r"\040").replace('#', r"\043")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_keeps_its_own_signs_in_the_name() {
        let check = |quote: fn(&str) -> String, text: &str, expect: &str| {
            assert_eq!(quote(text), expect);
        };
        check(sql_name, "a]b]", "[a]]b]]]");
        check(sql_name, "a'b", "[a'b]");
        check(sql, "it's", "N'it''s'");
        check(shell, "data-1", "data-1");
        check(shell, "", "''");
        check(shell, "it's $(rm)", r"'it'\''s $(rm)'");
        check(shell, "a`b`", "'a`b`'");
        check(powershell, "it's $(x)", "'it''s $(x)'");
        check(powershell, "a\u{2019}b", "'a\u{2019}\u{2019}b'");
        check(bicep, r"a'b\c${d}", r"'a\'b\\c\${d}'");
        check(terraform, "a\"b\\c${d}%{e}", "\"a\\\"b\\\\c$${d}%%{e}\"");
        check(fstab, r"/mnt/a b\c#", r"/mnt/a\040b\134c\043");
    }
}
