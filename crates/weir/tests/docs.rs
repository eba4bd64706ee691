//! What the documentation shows must be so.

use std::path::PathBuf;
use weir_catalog::Catalog;
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

#[test]
fn every_layout_in_the_documentation_resolves() {
    let mut count = 0;
    for file in ["docs/LAYOUT.md", "README.md"] {
        for (n, text) in blocks(&read(file), "toml").iter().enumerate() {
            let place = format!("{file}, block {}", n + 1);
            if let Err(error) = Layout::parse(&place, text, &Catalog::builtin()) {
                panic!("{error}\n{text}");
            }
            count += 1;
        }
    }
    assert!(count >= 6, "{count} layouts were found");
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

#[test]
fn every_promise_names_a_test_that_there_is() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut sources = String::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                sources += &std::fs::read_to_string(&path).unwrap_or_default();
            }
        }
    }
    let text = read("docs/SEMANTICS.md");
    let mut count = 0;
    for word in text.split('`').filter(|word| word.starts_with("weir") && word.contains("::")) {
        let name = word.rsplit("::").next().unwrap_or_default();
        let known = sources.contains(&format!("fn {name}("));
        assert!(known, "docs/SEMANTICS.md names {word}, which is no test");
        count += 1;
    }
    assert!(count > 20, "{count} tests are named");
}
