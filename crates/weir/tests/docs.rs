//! Checks of the documentation: examples, links, and the names of tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_catalog::{Catalog, Edition};
use weir_layout::Layout;

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The blocks of a Markdown file that are marked as `language`.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    text.split(&start)
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .map(str::to_owned)
        .collect()
}

/// An edition or a sweep file, which are TOML too.
fn is_no_layout(text: &str) -> bool {
    text.contains("[[tier_set]]") || text.contains("[[parameter]]")
}

#[test]
fn every_layout_in_the_documentation_resolves() {
    let mut count = 0;
    let mut catalog = Catalog::builtin();
    let own = Edition::from_toml("catalog/example.toml", &read("catalog/example.toml"));
    catalog.add(own.expect("an edition")).expect("a name of its own");
    for file in ["docs/LAYOUT.md", "docs/SCALE.md", "README.md"] {
        for (n, text) in blocks(&read(file), "toml").iter().enumerate() {
            if is_no_layout(text) {
                continue;
            }
            let place = format!("{file}, block {}", n + 1);
            if let Err(error) = Layout::parse(&place, text, &catalog) {
                panic!("{error}\n{text}");
            }
            count += 1;
        }
    }
    assert!(count >= 7, "{count} layouts were found");
}

/// `weir`, as a reader would run it in a folder with the files of the documentation.
fn weir(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let output = command.args(args).current_dir(folder).output().expect("a program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "weir {}: {said}", args.join(" "));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_edition_in_the_documentation_is_the_example_and_is_read() {
    let text = read("docs/LAYOUT.md");
    let section = text.split("\n## Your own edition\n").nth(1).expect("the section");
    let blocks = blocks(section, "toml");
    assert_eq!(blocks[0], read("catalog/example.toml").trim_end());
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("my-cloud.toml"), &blocks[0]).expect("a file");
    std::fs::write(folder.path().join("layout.toml"), &blocks[1]).expect("a file");
    let weir = |args: &[&str]| {
        weir(folder.path(), &[&["--catalog", "my-cloud.toml"], args, &["-o", "csv"]].concat())
    };
    let tiers = weir(&["catalog", "tiers", "my-cloud"]);
    assert!(
        tiers.contains("\ntiers,F1,fast-disk,fast-disk,107374182400,1000,50000000,"),
        "{tiers}"
    );
    let layout = weir(&["layout", "check", "layout.toml"]);
    assert!(layout.contains("\nvolumes,host,,,6000,250000000,,,,,,,data,F2,"), "{layout}");
}

/// The exit codes are said in two places, which must not drift apart.
#[test]
fn the_readme_and_the_help_have_the_same_exit_codes() {
    let codes = |text: &str| {
        let start = text.find("Exit codes: ").expect("the exit codes");
        let sentence = text[start..].split('.').next().unwrap_or_default();
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let sentence = words.join(" ");
        // The help says more of what "no" means.
        match (sentence.find(" ("), sentence.find(')')) {
            (Some(from), Some(to)) => format!("{}{}", &sentence[..from], &sentence[to + 1..]),
            _ => sentence,
        }
    };
    let help = weir(Path::new("."), &["--help"]);
    assert_eq!(
        codes(&help),
        "Exit codes: 0 success; 1 a negative answer; 2 wrong input or usage; 3 failure while \
         running; 130 interrupted by Ctrl-C; 143 by SIGTERM"
    );
    assert_eq!(codes(&read("README.md")), codes(&help));
}

#[test]
fn every_key_of_the_schema_is_explained() {
    let schema = weir_layout::file::schema();
    let text = read("docs/LAYOUT.md");
    let mut keys = Vec::new();
    collect_keys(&schema, &mut keys);
    assert!(keys.len() > 30, "{keys:?}");
    for key in keys {
        let shown = [format!("`{key}`"), format!("{key} ="), format!("{key},"), format!("[{key}]")];
        assert!(shown.iter().any(|s| text.contains(s)), "docs/LAYOUT.md does not explain {key}");
    }
}

fn collect_keys(schema: &serde_json::Value, keys: &mut Vec<String>) {
    if let Some(properties) = schema.get("properties").and_then(|p| p.as_object()) {
        keys.extend(properties.keys().cloned());
    }
    match schema {
        serde_json::Value::Object(map) => map.values().for_each(|v| collect_keys(v, keys)),
        serde_json::Value::Array(list) => list.iter().for_each(|v| collect_keys(v, keys)),
        _ => {}
    }
}

/// Returns whether a source has a function of this name that is marked as a test. In Python, its name is
/// the mark.
fn has_test(source: &str, name: &str) -> bool {
    if name.starts_with("test_") {
        let head = format!("def {name}(");
        return source.lines().any(|line| line.starts_with(&head));
    }
    let head = format!("fn {name}(");
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_test = |at: usize| {
        let above = lines[..at].iter().rev();
        let mut marks = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        marks.any(|line| *line == "#[test]")
    };
    (0..lines.len()).any(|at| lines[at].starts_with(&head) && is_test(at))
}

/// The sources of a crate, its tests included.
fn sources(name: &str) -> Vec<String> {
    let mut folders =
        vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crates").join(name)];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs" || e == "py") {
                sources.extend(std::fs::read_to_string(&path));
            }
        }
    }
    sources
}

#[test]
fn every_promise_names_a_test_that_there_is() {
    let source = "/// Says.\n#[test]\n#[ignore]\nfn one() {}\n\nfn two() {}\n";
    assert!(has_test(source, "one") && !has_test(source, "two") && !has_test(source, "on"));
    let source = "def test_three() -> None:\n    def test_four(): ...\n";
    assert!(has_test(source, "test_three") && !has_test(source, "test_four"));
    let text = read("docs/SEMANTICS.md");
    let mut crates: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut missing = Vec::new();
    let mut count = 0;
    for word in text.split('`').filter(|word| word.starts_with("weir")) {
        let Some((of, test)) = word.split_once("::") else { continue };
        let sources = crates.entry(of).or_insert_with(|| sources(of));
        if !sources.iter().any(|source| has_test(source, test)) {
            missing.push(word);
        }
        count += 1;
    }
    assert!(missing.is_empty(), "docs/SEMANTICS.md names what is no test: {missing:?}");
    assert!(count > 20, "{count} tests are named");
}

/// Reads the crates of this workspace in a table of dependencies, by their names without `weir-`.
fn workspace_dependencies(manifest: &str) -> BTreeSet<String> {
    let manifest: toml::Table = manifest.parse().expect("a manifest");
    let Some(toml::Value::Table(dependencies)) = manifest.get("dependencies") else {
        return BTreeSet::new();
    };
    dependencies
        .keys()
        .filter_map(|name| name.strip_prefix("weir-"))
        .filter(|name| *name != "units")
        .map(str::to_owned)
        .collect()
}

/// The crate table of the architecture says what each crate depends on.
#[test]
fn the_crate_table_matches_the_manifests() {
    let text = read("docs/ARCHITECTURE.md");
    let mut listed = BTreeSet::new();
    for line in text.lines() {
        let Some((name, rest)) = line
            .strip_prefix("| `")
            .and_then(|line| line.split_once("` | "))
            .filter(|(name, _)| name.starts_with("weir"))
        else {
            continue;
        };
        listed.insert(name.to_owned());
        let column = rest.split(" | ").next().unwrap_or_default();
        // A remark in parentheses says why.
        let knows: BTreeSet<String> = column
            .split(", ")
            .map(|word| word.split(" (").next().unwrap_or(word).to_owned())
            .filter(|word| word != "nothing")
            .collect();
        if column != "everything" {
            let manifest = read(&format!("crates/{name}/Cargo.toml"));
            assert_eq!(knows, workspace_dependencies(&manifest), "{name}");
        }
    }
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").read_dir().expect("the crates");
    let crates: BTreeSet<String> = folders
        .map(|entry| entry.expect("a crate").file_name().to_string_lossy().into_owned())
        .filter(|name| name != "weir-bench")
        .collect();
    assert_eq!(listed, crates);
}
