//! Commands in the documentation and in help texts must parse.

use super::Cli;
use clap::{CommandFactory, Parser};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the Markdown files that show commands.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "labs"] {
        for entry in fs::read_dir(root.join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            let readme = path.join("README.md");
            if path.extension().is_some_and(|end| end == "md") {
                paths.push(path);
            } else if readme.is_file() {
                paths.push(readme);
            }
        }
    }
    paths
}

/// Returns the commands of the console blocks, with continuation lines joined.
fn console_commands(text: &str) -> Vec<String> {
    let blocks = text.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut commands = Vec::new();
    for block in blocks {
        let joined = block.replace("\\\n", " ");
        commands
            .extend(joined.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned));
    }
    commands
}

/// Collects the examples in the help of a command and of all below it.
fn help_examples(command: &clap::Command, examples: &mut Vec<String>) {
    if let Some(help) = command.get_after_help() {
        let help = help.to_string();
        examples.extend(
            help.lines()
                .filter_map(|line| line.strip_prefix("  "))
                .map(|line| line.trim().to_owned()),
        );
    }
    for below in command.get_subcommands() {
        help_examples(below, examples);
    }
}

/// Parses each call of `weir` in a shell command; returns the number of calls.
fn check(command: &str, place: &str) -> usize {
    let words = shlex::split(command).unwrap_or_else(|| panic!("{place}: quotes in {command}"));
    let ends = |word: &String| matches!(word.as_str(), "&&" | "|" | "&" | ";" | ">" | "2>" | "<");
    let mut calls = 0;
    for call in words.split(ends) {
        let start = call.iter().position(|word| !word.contains('=') || word.starts_with('-'));
        let Some(call) = start.and_then(|start| call.get(start..)) else { continue };
        let call = match call {
            [cargo, run, rest @ ..] if cargo == "cargo" && run == "run" => {
                let is_weir = !rest.iter().any(|word| word == "-p");
                match rest.iter().position(|word| word == "--") {
                    Some(at) if is_weir => [&["weir".to_owned()], &rest[at + 1..]].concat(),
                    _ => continue,
                }
            }
            call => call.to_vec(),
        };
        if call.first().is_none_or(|program| program != "weir") {
            continue;
        }
        if let Err(error) = Cli::try_parse_from(&call) {
            let is_answer = !error.use_stderr();
            assert!(is_answer, "{place}: {command}\n{error}");
        }
        calls += 1;
    }
    calls
}

#[test]
fn every_documented_command_parses() {
    let mut calls = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        for command in console_commands(&text) {
            calls += check(&command, &path.display().to_string());
        }
    }
    assert!(calls >= 70, "only {calls} commands were found");
}

#[test]
fn every_example_in_the_help_parses() {
    let mut examples = Vec::new();
    help_examples(&Cli::command(), &mut examples);
    let calls: usize = examples.iter().map(|example| check(example, "help")).sum();
    assert!(calls >= 60, "only {calls} examples were found");
}
