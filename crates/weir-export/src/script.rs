//! The kinds of scripts, and how one is put together: comments that are wrapped and cannot be
//! broken out of, blank lines, and notes for the person.

use crate::change::Change;
use std::fmt;

/// A kind of script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Database files, in T-SQL.
    Tsql,
    /// Disks and machines, or instances, by Azure's command line.
    Az,
    /// The same in Bicep.
    Bicep,
    /// The same in Terraform, and disks of AWS and Google Cloud.
    Terraform,
    /// The same by the Az module of PowerShell.
    Powershell,
    /// Stripes and file systems on Linux, by mdadm.
    Mdadm,
    /// The same by LVM.
    Lvm,
    /// Stripes and file systems on Windows.
    StorageSpaces,
    /// What Linux mounts.
    Fstab,
    /// A backup, in T-SQL.
    TsqlBackup,
    /// The same by Ola Hallengren's DatabaseBackup.
    Ola,
    /// The same by dbatools.
    Dbatools,
    /// The same as settings of pgBackRest.
    Pgbackrest,
}

impl Kind {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 13] = [
        Self::Tsql,
        Self::Az,
        Self::Bicep,
        Self::Terraform,
        Self::Powershell,
        Self::Mdadm,
        Self::Lvm,
        Self::StorageSpaces,
        Self::Fstab,
        Self::TsqlBackup,
        Self::Ola,
        Self::Dbatools,
        Self::Pgbackrest,
    ];

    /// As `--as` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsql => "tsql",
            Self::Az => "az",
            Self::Bicep => "bicep",
            Self::Terraform => "terraform",
            Self::Powershell => "powershell",
            Self::Mdadm => "mdadm",
            Self::Lvm => "lvm",
            Self::StorageSpaces => "storage-spaces",
            Self::Fstab => "fstab",
            Self::TsqlBackup => "tsql-backup",
            Self::Ola => "ola",
            Self::Dbatools => "dbatools",
            Self::Pgbackrest => "pgbackrest",
        }
    }

    /// Whether it makes what a cloud sells.
    pub(crate) fn is_cloud(self) -> bool {
        matches!(self, Self::Az | Self::Bicep | Self::Terraform | Self::Powershell)
    }

    /// Returns whether it backs up what a layout has.
    #[must_use]
    pub fn is_backup(self) -> bool {
        matches!(self, Self::TsqlBackup | Self::Ola | Self::Dbatools | Self::Pgbackrest)
    }

    /// Whether it finds attached disks by their numbers.
    pub(crate) fn finds_disks(self) -> bool {
        matches!(self, Self::Mdadm | Self::Lvm | Self::StorageSpaces)
    }

    /// Whether it says all that is to be, so that what is missing from it is detached or destroyed.
    pub(crate) fn is_module(self) -> bool {
        matches!(self, Self::Bicep | Self::Terraform)
    }

    fn comment(self) -> &'static str {
        match self {
            Self::Tsql | Self::TsqlBackup | Self::Ola => "-- ",
            Self::Bicep => "// ",
            _ => "# ",
        }
    }

    /// The first line of what a shell runs.
    fn interpreter(self) -> Option<&'static str> {
        matches!(self, Self::Az | Self::Mdadm | Self::Lvm).then_some("#!/usr/bin/env bash")
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A script, and what whoever runs it should know before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The script.
    pub text: String,
    /// What is not done, and why.
    pub notes: Vec<String>,
}

/// The width of comments, their sign included.
const WIDTH: usize = 98;

/// A script that is being written.
#[derive(Debug)]
pub(crate) struct Script {
    kind: Kind,
    text: String,
    notes: Vec<String>,
    /// What stands before comments.
    indent: &'static str,
}

impl Script {
    /// A script that says where it is from.
    pub(crate) fn new(kind: Kind, change: &Change) -> Self {
        let mut script = Self { kind, text: String::new(), notes: Vec::new(), indent: "" };
        if let Some(line) = kind.interpreter() {
            script.line(line);
        }
        let new = &change.new;
        let edition = new.edition.as_deref();
        let edition = edition.map(|name| format!(", edition {name}")).unwrap_or_default();
        script.comment(&format!(
            "Made by weir export {} --as {kind} from {} (host {}{edition}).",
            env!("CARGO_PKG_VERSION"),
            new.layout,
            new.host
        ));
        if let Some(old) = &change.old {
            let text = match kind.is_module() {
                true => format!(
                    "It holds all of the layout; {} is what is there at present.",
                    old.layout
                ),
                false => format!(
                    "It holds what changes where {} is what is there at present.",
                    old.layout
                ),
            };
            script.comment(&text);
        }
        script
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// What it needs, does and does not do.
    pub(crate) fn header(&mut self, needs: &str, does: &str, does_not: &str) {
        for (head, text) in [("Needs", needs), ("Does", does), ("Does not", does_not)] {
            self.comment("");
            self.comment(&format!("{head}: {text}"));
        }
    }

    /// A line as it is.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Lines as they are.
    pub(crate) fn lines(&mut self, text: &str) {
        self.line(text.trim_matches('\n'));
    }

    /// An empty line, if the last one is not.
    pub(crate) fn blank(&mut self) {
        if !self.text.ends_with("\n\n") && !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// A comment, wrapped; whatever it holds stays one.
    pub(crate) fn comment(&mut self, text: &str) {
        let (sign, indent) = (self.kind.comment(), self.indent);
        let mut line = format!("{indent}{}", sign.trim_end());
        let mut is_empty = true;
        for word in printable(text).split_whitespace() {
            if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line = format!("{indent}{}", sign.trim_end());
            }
            line.push(' ');
            line.push_str(word);
            is_empty = false;
        }
        self.line(&line);
    }

    /// A line of a script that is not to run as it is.
    pub(crate) fn quiet(&mut self, line: &str) {
        let sign = self.kind.comment().trim_end();
        let line = format!("{}{sign}    {}", self.indent, printable(line));
        self.line(&line);
    }

    /// What is not done, as a comment and for the person.
    pub(crate) fn warn(&mut self, text: &str) {
        self.comment(&format!("NOT DONE: {text}"));
        self.note(text);
    }

    /// The same, where steps follow that do it.
    pub(crate) fn warn_with_steps(&mut self, text: &str, steps: &str) {
        self.comment(&format!("NOT DONE: {text}. {steps}"));
        self.note(&format!("{text}; the steps are in the script"));
    }

    /// From here on comments stand behind so much.
    pub(crate) fn indent(&mut self, indent: &'static str) {
        self.indent = indent;
    }

    /// Something that the person should know.
    pub(crate) fn note(&mut self, text: &str) {
        self.notes.push(printable(text));
    }

    /// Says that a module, which follows all the same, differs in nothing from what is there.
    pub(crate) fn same(&mut self, change: &Change) {
        let old = change.old.as_ref().map_or("what is there", |old| old.layout.as_str());
        let text = format!(
            "nothing differs: {} and {old} are the same to {}; the module is written all the same, for \
             what is missing from one is detached or destroyed",
            change.new.layout, self.kind
        );
        self.comment("");
        self.comment(&text);
        self.note(&text);
    }

    /// Says that there is nothing to do.
    pub(crate) fn nothing(&mut self, change: &Change) {
        let old = change.old.as_ref().map_or("what is there", |old| old.layout.as_str());
        let text =
            format!("nothing to do: {} and {old} are the same to {}", change.new.layout, self.kind);
        self.blank();
        self.comment(&text);
        self.note(&text);
    }

    pub(crate) fn finish(self) -> Export {
        Export { text: self.text, notes: self.notes }
    }
}

/// Text of one line: what breaks a line or moves the cursor becomes a question mark.
pub(crate) fn printable(text: &str) -> String {
    let one =
        |c: char| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { '?' } else { c };
    text.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(kind: Kind) -> Script {
        Script { kind, text: String::new(), notes: Vec::new(), indent: "" }
    }

    #[test]
    fn a_comment_stays_one_whatever_it_holds() {
        let check = |kind: Kind, text: &str, expect: &str| {
            let mut script = script(kind);
            script.comment(text);
            assert_eq!(script.text, expect);
        };
        check(Kind::Az, "a\nrm -rf /", "# a?rm -rf /\n");
        check(Kind::Tsql, "a\r\nDROP", "-- a??DROP\n");
        check(Kind::Bicep, "a\u{2028}b\u{85}c", "// a?b?c\n");
        check(Kind::Terraform, "", "#\n");
        let long = "word ".repeat(30);
        check(Kind::Fstab, &long, &format!("#{}\n#{}\n", " word".repeat(19), " word".repeat(11)));
    }
}
