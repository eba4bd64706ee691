//! Inputs of no known kind, and their nearest kinds.

use crate::bed::{input, refused, try_read};
use crate::samples::{corpus, expected, folder};
use std::fs;
use weir_import::{ImportError, Options, nearest as nearest_kinds};

/// Returns the kinds nearest to a text.
#[track_caller]
fn nearest(text: &str) -> Vec<&'static str> {
    match try_read(vec![input("input", text, None)], &Options::default()) {
        Err(ImportError::UnknownKind { nearest, .. }) => {
            nearest.iter().map(|own| own.kind).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_head_with_a_renamed_column_is_nearest_to_its_kind() {
    let iostat = "Disk r/s w/s rkB/s wkB/s %util\nsda 1.00 2.00 3.00 4.00 5.00\n";
    assert_eq!(nearest(iostat)[0], "iostat");
    let error = refused(iostat);
    assert!(
        error.starts_with(
            "unknown kind of input: it begins with \"Disk r/s w/s rkB/s wkB/s %util\"; \
             the nearest kinds are iostat (it has \"r/s\", \"w/s\", \"%util\", but lacks \"Device\")"
        ),
        "{error}"
    );
    assert!(error.contains("`weir observe kinds` lists what is read"), "{error}");
    let counters = "\"Timestamp\",\"Path\",\"Cooked\"\n\"1/2/2020\",\"a\",\"1\"\n";
    assert_eq!(nearest(counters)[0], "get-counter");
    let error = refused(counters);
    let lacks = "but lacks one of \"CookedValue\", \"CounterValue\", \"Value\")";
    assert!(error.contains(lacks), "{error}");
    let files = "database_id,file_id,num_of_reads,num_of_writes\n";
    assert!(nearest(&files.replace("reads", "rd")).contains(&"sqlserver"), "{files}");
    let trace = "time,op,position,size\n0.5,R,100,4096\n";
    assert_eq!(nearest(trace)[0], "trace-csv");
}

#[test]
fn json_of_another_tool_is_nearest_to_kinds_in_json() {
    let json = "{\"status\": \"success\", \"data\": {\"resultType\": \"matrix\"}}\n";
    let error = refused(json);
    assert_eq!(nearest(json).len(), 3, "{error}");
    assert_eq!(error.matches("it has the form of JSON, but lacks").count(), 3, "{error}");
    let stats = "{\"sysstat\": {\"hosts\": [{\"statistics\": []}]}}";
    assert!(["iostat-json", "sadf-j"].contains(&nearest(stats)[0]), "{:?}", nearest(stats));
}

#[test]
fn binary_and_unrelated_input_has_no_nearest_kind() {
    let check = |bytes: Vec<u8>, expect: &str| {
        let error = try_read(vec![input("input", bytes, None)], &Options::default());
        assert_eq!(error.expect_err("it is refused").to_string(), expect);
    };
    let none = "it resembles no kind; `weir observe kinds` lists what is read";
    let elf = [b"\x7fELF\x02\x01\x01".to_vec(), vec![0xb7, 1, 2, 3, 200, 5]].concat();
    check(elf, &format!("unknown kind of input: it is not text; {none}"));
    check(Vec::new(), &format!("unknown kind of input: it is empty; {none}"));
    check(
        b"Dear Sir,\n".to_vec(),
        &format!("unknown kind of input: it begins with \"Dear Sir,\"; {none}"),
    );
}

#[test]
fn the_head_of_iostat_shows_its_system() {
    let check = |head: &str, expect: &str| {
        let error = refused(&format!("              disk0\n{head}\n   26.49   18  0.47\n"));
        assert!(error.starts_with(expect), "{error}");
    };
    check("    KB/t  tps  MB/s  us sy id   1m   5m   15m", "it is iostat of macOS,");
    check(" tin  tout KB/t  tps  MB/s  us ni sy in id", "it is iostat of BSD,");
    check("a page that tells of KB/t tps MB/s and more", "unknown kind of input");
}

/// The same for the inputs of the corpus, except for those that have no sign of their kind in the text: one is
/// binary, one is wrapped in another format, and two are too short.
#[test]
fn inputs_of_the_corpus_are_near_to_their_own_kinds() {
    const WITHOUT_SIGNS: [&str; 4] =
        ["blktrace", "cloudwatch-firehose", "iostat-processors", "pgbench"];
    let far: Vec<String> = corpus()
        .filter(|(name, ..)| !WITHOUT_SIGNS.contains(name))
        .filter_map(|(name, own, bytes)| {
            let near: Vec<_> = nearest_kinds(&bytes).iter().map(|near| near.kind).collect();
            (!near.contains(&own)).then(|| format!("{name}: {own} is not in {near:?}"))
        })
        .collect();
    assert!(far.is_empty(), "{}", far.join("\n"));
}

/// The kind of each genuine file is among its three nearest kinds, which are rated by signs alone.
#[test]
fn genuine_files_are_near_to_their_own_kinds() {
    let Some(root) = folder() else { return };
    let mut far = Vec::new();
    for (path, own) in expected() {
        let bytes = fs::read(root.join(path)).expect(path);
        let near: Vec<_> = nearest_kinds(&bytes).iter().map(|near| near.kind).collect();
        if !near.contains(&own) {
            far.push(format!("{path}: {own} is not in {near:?}"));
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}
