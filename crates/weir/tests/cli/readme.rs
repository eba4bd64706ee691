//! The commands of the README run, and print what it shows.

use crate::common::{IOSTAT, Place, run};
use std::os::unix::fs::symlink;
use std::path::Path;

/// Commands that other tests run: they serve, need a server, run for minutes, or are no `weir`.
const RUN_ELSEWHERE: [&str; 22] = [
    "cargo run --release -- lab run ds14-benchmark",
    "cargo test --workspace",
    "weir serve",
    "weir volume resize",
    "weir check",
    "weir top",
    "weir status --watch",
    "weir mount",
    "weir run",
    "iostat",
    "weir observe --diskstats",
    "mkdir backups",
    "weir backup run",
    "weir backup verify",
    "weir restore",
    "weir lab run",
    // One second instead of a minute; see `SHORTER`.
    "weir sim instance.toml",
    "weir diagnose --fleet",
    "weir compare",
    "weir record",
    "weir sim p40.toml",
    "weir export instance.toml --as tsql",
];
/// Shorter forms of some of these, which later commands need.
const SHORTER: [(&str, &str); 2] = [
    (
        "weir sim instance.toml",
        "weir sim instance.toml labs/mi-file-size/oltp.toml --runtime 2s --observe run.weirobs",
    ),
    (
        "weir export instance.toml --as tsql",
        "weir export instance.toml --as tsql --database sales --out files.sql",
    ),
];

/// A command and the lines that the README shows below it.
struct Shown {
    command: String,
    lines: Vec<String>,
}

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    std::fs::read_to_string(path).expect("the README")
}

fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    text.split(start.as_str()).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

fn commands(text: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for line in blocks(text, "console").iter().flat_map(|block| block.lines()) {
        if let Some(command) = line.strip_prefix("$ ") {
            let command = command.split("  #").next().unwrap_or(command).trim().to_owned();
            shown.push(Shown { command, lines: Vec::new() });
        } else if let Some(last) = shown.last_mut()
            && !matches!(line.trim(), "..." | "")
        {
            last.lines.push(line.trim().to_owned());
        }
    }
    shown
}

#[test]
fn every_command_of_the_readme_runs() {
    let text = readme();
    let place = Place::new();
    let layouts = blocks(&text, "toml");
    place.file("layout.toml", layouts[0]);
    place.file("instance.toml", layouts[1]);
    place.file("sweep.toml", layouts[2]);
    // The README names the disk of its own example.
    place.file("iostat.txt", &IOSTAT.replace("sda", "sdc"));
    let labs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs");
    symlink(labs, place.path("labs")).expect("a link");
    let mut ran = 0;
    for Shown { command, lines } in commands(&text) {
        let is_elsewhere = RUN_ELSEWHERE.iter().any(|prefix| command.starts_with(prefix));
        let shorter = SHORTER.iter().find(|(prefix, _)| command.starts_with(prefix));
        let command = match shorter {
            Some((_, shorter)) => *shorter,
            None if is_elsewhere => continue,
            None => &command,
        };
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        let (stdout, stderr, code) = run(place.weir(&words));
        // A diagnosis that finds a throttled system exits with 1, as does a fit of its load.
        let is_answer = matches!(words[0], "diagnose" | "fit");
        let is_fine = code == Some(0) || (code == Some(1) && is_answer);
        assert!(is_fine, "{command}: {code:?}\n{stdout}\n{stderr}");
        let printed: Vec<&str> = stdout.lines().map(str::trim).collect();
        for line in &lines {
            assert!(
                printed.contains(&line.as_str()),
                "{command} does not print {line:?}:\n{stdout}"
            );
        }
        ran += 1;
    }
    assert!(ran >= 12, "only {ran} commands ran");
}
