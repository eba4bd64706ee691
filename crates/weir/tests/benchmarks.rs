//! Checks that each figure of docs/BENCHMARKS.md can be measured again: a section with figures names its
//! command, the programs exist, and tables that a program writes have its columns.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Sections whose tables are the output of their program.
const WRITTEN: [&str; 9] = [
    "Virtual time",
    "Wall time",
    "Latency",
    "Speed of the server, compared with its peers",
    "Volumes on another NBD server",
    "NBD over TLS, compared with nbdkit",
    "Import",
    "Diagnosis",
    "A fleet of observations",
];

/// Sections whose tables were arranged by hand, from lines that their program prints or from several runs.
const ARRANGED: [&str; 15] = [
    "Checksums at rest",
    "First build",
    "Labs before and after the redesign of 0.2.0",
    "Limits through another server",
    "Page blobs, compared with Azurite",
    "Mount, compared with bindfs",
    "The pause of a freeze",
    "Beside other programs",
    "Predicted and measured",
    "Speed of the simulator",
    "Where the time goes",
    "Backups in the simulator",
    "The two clocks",
    "Fleets",
    "Live page",
];

/// Programs that a command of the document may begin with.
const PROGRAMS: [&str; 8] =
    ["cargo ", "weir ", "python", "node ", "fio ", ".ci/", "pip ", "/usr/bin/time "];

struct Section<'a> {
    title: &'a str,
    text: &'a str,
}

impl<'a> Section<'a> {
    fn all(document: &'a str) -> Vec<Self> {
        let starts = document.match_indices("\n## ").chain(document.match_indices("\n### "));
        let mut starts: Vec<usize> = starts.map(|(at, _)| at).collect();
        starts.sort_unstable();
        let ends = starts.iter().skip(1).copied().chain([document.len()]);
        let text = starts.iter().zip(ends).map(|(start, end)| document[*start..end].trim_start());
        text.map(|text| {
            let (title, text) = text.split_once('\n').unwrap_or((text, ""));
            Self { title: title.trim_start_matches('#').trim(), text }
        })
        .collect()
    }

    /// Returns the commands, in blocks and in sentences.
    fn commands(&self) -> Vec<String> {
        let blocks = self.text.split("```console\n").skip(1);
        let blocks = blocks.filter_map(|rest| rest.split("```").next());
        let joined: Vec<String> = blocks.map(|block| block.replace("\\\n", " ")).collect();
        let lines = joined.iter().flat_map(|block| block.lines());
        let lines = lines.filter_map(|line| line.strip_prefix("$ "));
        let steps = lines.flat_map(|line| line.split("&&")).map(|step| step.trim().to_owned());
        let prose = self.text.split("```").step_by(2).collect::<String>();
        let spans = prose.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " "));
        let is_command = |text: &String| PROGRAMS.iter().any(|program| text.starts_with(program));
        steps.chain(spans.filter(is_command)).collect()
    }

    /// Returns the heads of its tables.
    fn tables(&self) -> Vec<Vec<&'a str>> {
        let lines: Vec<&str> = self.text.lines().collect();
        let is_rule = |line: &str| line.starts_with("|-") || line.starts_with("|:");
        let heads = lines.windows(2).filter(|pair| pair[0].starts_with('|') && is_rule(pair[1]));
        let cells = |line: &'a str| line.trim_matches('|').split('|').map(str::trim);
        heads.map(|pair| cells(pair[0]).filter(|cell| !cell.is_empty()).collect()).collect()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> String {
    std::fs::read_to_string(root().join("docs/BENCHMARKS.md")).expect("the document")
}

/// Returns the files of the repository that a command runs.
fn programs(command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let after = |flag: &str| {
        let at = words.iter().position(|word| *word == flag)?;
        words.get(at + 1).copied()
    };
    let mut found = Vec::new();
    if let (true, Some(package)) = (command.starts_with("cargo run"), after("-p")) {
        let bin = after("--bin").map(|name| format!("crates/{package}/src/bin/{name}.rs"));
        let example = after("--example").map(|name| format!("crates/{package}/examples/{name}.rs"));
        found.extend(bin.or(example));
    }
    let is_script = |word: &&&str| word.starts_with("crates/") || word.starts_with(".ci/");
    found.extend(words.iter().filter(is_script).map(|word| (*word).to_owned()));
    found
}

/// Returns whether a section has figures: a digit, in a text that has more than headings.
fn has_figures(section: &Section<'_>) -> bool {
    section.text.lines().filter(|line| !line.starts_with('$')).any(|line| {
        line.split_whitespace().any(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[test]
fn each_section_with_figures_names_a_command_whose_programs_exist() {
    let document = document();
    let sections = Section::all(&document);
    assert!(sections.len() > 25, "{}", sections.len());
    let mut named = 0;
    for section in sections.iter().filter(|section| has_figures(section)) {
        let commands = section.commands();
        let refers = ["The same script", "All figures of this section"];
        let refers = refers.iter().any(|words| section.text.contains(words));
        assert!(!commands.is_empty() || refers, "no command in {:?}", section.title);
        for path in commands.iter().flat_map(|command| programs(command)) {
            assert!(root().join(&path).exists(), "{:?} names {path}", section.title);
            named += 1;
        }
    }
    assert!(named > 20, "{named} programs");
}

#[test]
fn tables_that_programs_write_have_their_columns() {
    let document = document();
    let mut left: BTreeSet<&str> = WRITTEN.into_iter().chain(ARRANGED).collect();
    for section in Section::all(&document) {
        let tables = section.tables();
        let title = section.title;
        assert_eq!(
            left.remove(title),
            !tables.is_empty(),
            "{title:?}: list each section with tables"
        );
        if !WRITTEN.contains(&title) {
            continue;
        }
        let files = section.commands().into_iter().flat_map(|command| programs(&command));
        let source: String = files
            .filter_map(|path| std::fs::read_to_string(root().join(path)).ok())
            .collect::<Vec<_>>()
            .join("\n");
        for column in tables.into_iter().flatten() {
            // Rust programs mark columns of numbers; scripts write the row as a whole.
            let forms = [
                format!("\"{column}\""),
                format!("\">{column}\""),
                format!("| {column} |"),
                format!("| {column} \""),
            ];
            assert!(forms.iter().any(|form| source.contains(form)), "{title}: {column:?}");
        }
    }
    assert!(left.is_empty(), "no tables in {left:?}");
}
