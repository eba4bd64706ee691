//! Common blocks of all modules.

use crate::change::{Change, Fate};
use crate::quote::terraform;
use crate::script::Script;
use crate::site::Disk;

/// Writes a variable, which is mandatory unless it has a value.
pub(super) fn variable(script: &mut Script, name: &str, what: &str, value: Option<&String>) {
    let default =
        value.map(|value| format!("\n  default     = {}", terraform(value))).unwrap_or_default();
    script.lines(&format!(
        "variable \"{name}\" {{\n  description = {}\n  type        = string{default}\n}}",
        terraform(what)
    ));
    script.blank();
}

/// Writes the provider with its version, and further ones.
pub(super) fn providers(script: &mut Script, name: &str, version: &str, more: &str) {
    script.blank();
    script.lines(&format!(
        "terraform {{\n  required_version = \">= 1.3\"\n  required_providers {{\n    {name} = {{\n      \
         source  = \"hashicorp/{name}\"\n      version = \">= {version}\"\n    }}{more}\n  }}\n}}"
    ));
    script.blank();
}

/// Writes the table of disks, by name.
pub(super) fn disks(
    script: &mut Script,
    change: &Change,
    disks: &[Fate<'_, Disk>],
    row: impl Fn(&mut Script, &Change, Fate<'_, Disk>),
) {
    script.line("locals {");
    script.line("  disks = {");
    script.indent("    ");
    disks.iter().for_each(|fate| row(script, change, *fate));
    script.indent("");
    script.line("  }");
    script.line("}");
    script.blank();
}

/// Writes a comment about the size of the machine, which the module does not manage.
pub(super) fn machine_size(script: &mut Script, size: Option<&String>) {
    if let Some(size) = size {
        script.blank();
        script.comment("The machine size of the layout, which is managed elsewhere.");
        script.lines(&format!("output \"machine_size\" {{\n  value = {}\n}}", terraform(size)));
    }
}

/// Writes a note about a resize of the machine.
pub(super) fn resize(script: &mut Script, words: &str) {
    script.comment("");
    script.comment(&format!("{words}. Change it where the machine is managed."));
    script.note(words);
}

/// Returns a number, or `null` for the provider's default.
pub(super) fn number(n: Option<u64>) -> String {
    n.map_or_else(|| "null".to_owned(), |n| n.to_string())
}

/// Instruction for a row whose disk is no longer in the layout.
pub(super) const REMOVE: &str = "remove this row, and prevent_destroy for that apply.";
