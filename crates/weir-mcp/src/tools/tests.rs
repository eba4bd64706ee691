//! Calls and the arguments that they become.

use super::*;
use serde_json::json;
use std::fs;
use std::path::Path;

struct Place {
    folder: TempDir,
    roots: Roots,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.weirobs", ""), ("layout.toml", ""), ("job.fio", "[a]\nrw=read\n")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let roots = Roots::new(&[folder.path().to_owned()], 1000).unwrap();
    Place { folder, roots }
}

impl Place {
    fn prepare(&self, tool: &str, call: Value) -> Result<Prepared, String> {
        let Value::Object(call) = call else { panic!("no object") };
        find(tool).unwrap().prepare(call, &self.roots)
    }

    /// Checks the arguments of a call, with the folder as `ROOT`.
    #[track_caller]
    fn check(&self, tool: &str, call: Value, expect: &str) {
        let prepared = self.prepare(tool, call).unwrap();
        let root = fs::canonicalize(self.folder.path()).unwrap().display().to_string();
        let all = prepared.arguments.iter().map(|own| own.to_str().unwrap().replace(&root, "ROOT"));
        assert_eq!(all.collect::<Vec<_>>().join(" "), expect);
    }

    #[track_caller]
    fn refused(&self, tool: &str, call: Value, expect: &str) {
        let words = self.prepare(tool, call).expect_err("a refusal");
        assert!(words.contains(expect), "{words}");
    }
}

#[test]
fn calls_become_arguments_of_the_verb() {
    let place = place();
    place.check(
        "diagnose",
        json!({"observations": ["a.weirobs"], "layout": "layout.toml", "map": {"sdc": "data"}}),
        "diagnose --output=text --layout=ROOT/layout.toml --map=sdc=data -- ROOT/a.weirobs",
    );
    place.check(
        "compare",
        json!({"sides": ["a.weirobs", "a.weirobs"], "metrics": ["iops"], "output": "json"}),
        "compare --output=json --metric=iops -- ROOT/a.weirobs ROOT/a.weirobs",
    );
    place.check(
        "catalog",
        json!({"what": "show", "name": "--help"}),
        "catalog show --output=text -- --help",
    );
    place.check(
        "prices",
        json!({"name": "P30", "region": "westeurope"}),
        "prices --output=text --region=westeurope -- P30",
    );
    place.check(
        "fit",
        json!({"layout": "layout.toml", "load": {"observations": ["a.weirobs"], "growth": "30%"}}),
        "fit --output=text --load=ROOT/a.weirobs --growth=30% -- ROOT/layout.toml",
    );
    place.check(
        "tune",
        json!({"layout": "layout.toml", "workload": ["job.fio"], "goals": ["iops=900", "p99=9ms"],
            "budget": "300"}),
        "tune --output=text --workload=ROOT/job.fio --goal=iops=900 --goal=p99=9ms --budget=300 \
         -- ROOT/layout.toml",
    );
    place.check(
        "plan",
        json!({"size": "4TiB", "iops": 16000, "compare": ["azure=West Europe", "aws"]}),
        "plan --output=text --iops=16000 --size=4TiB --compare=azure=West Europe --compare=aws",
    );
}

#[test]
fn texts_of_a_call_are_files_in_its_folder() {
    let place = place();
    let call = json!({"layout_text": "[[volume]]", "job_text": "[a]\nrw=read\n", "runtime": "1s"});
    let prepared = place.prepare("simulate", call.clone()).unwrap();
    let read = |name: &str| fs::read_to_string(prepared.folder.path().join(name)).unwrap();
    assert_eq!(
        (read("layout.toml"), read("jobs.fio")),
        ("[[volume]]".into(), "[a]\nrw=read\n".into())
    );
    place.check("simulate", call, "sim --output=text --runtime=1s --quiet -- layout.toml jobs.fio");
    let folder = prepared.folder.path().to_owned();
    drop(prepared);
    assert!(!folder.exists(), "the texts of a call outlive it");
}

#[test]
fn wrong_calls_are_refused_with_the_reason() {
    let place = place();
    place.refused("diagnose", json!({}), "missing field `observations`");
    place.refused("diagnose", json!({"observations": "a"}), "invalid type: string");
    place.refused("diagnose", json!({"observations": ["a"], "html": "x"}), "unknown field `html`");
    place.refused("diagnose", json!({"observations": ["../../etc/passwd"]}), "does not exist in");
    place.refused("compare", json!({"sides": ["a.weirobs", "/etc"]}), "does not exist in");
    place.refused("simulate", json!({"layout": "layout.toml"}), "give one of jobs");
    let both = json!({"layout": "layout.toml", "layout_text": "", "jobs": ["job.fio"]});
    place.refused("simulate", both, "not both");
    let include = json!({"layout": "layout.toml", "job_text": "include /etc/passwd\n"});
    place.refused("simulate", include, "no included files");
    place.refused("plan", json!({"need_text": "keep = \"/etc/x\""}), "names no files");
    place.refused("catalog", json!({"what": "tiers"}), "name the edition");
    place.refused("catalog", json!({"what": "all"}), "unknown variant `all`");
    place.refused("prices", json!({"name": "P30", "output": "html"}), "unknown variant `html`");
    let no_load = json!({"layout": "layout.toml", "load": {}});
    place.refused("fit", no_load, "give need, need_text or observations");
    let unknown_key = json!({"layout": "layout.toml", "load": {"need": "x", "html": "y"}});
    place.refused("fit", unknown_key, "unknown field `html`");
    let keeps = json!({"layout": "layout.toml", "load": {"need_text": "keep = \"/etc/x\""}});
    place.refused("fit", keeps, "names no files");
    place.refused("tune", json!({"layout": "layout.toml"}), "give one of load, workload");
    let many: Vec<&str> = vec!["a.weirobs"; 65];
    place.refused("diagnose", json!({"observations": many}), "at most 64 files");
    let near = unknown("simulat");
    assert!(near.contains("did you mean \"simulate\""), "{near}");
}

#[test]
fn no_tool_has_a_parameter_that_names_an_output() {
    for tool in all() {
        let definition = tool.definition();
        let schema = Value::Object((*definition.input_schema).clone());
        assert_eq!(schema["type"], "object", "{}", tool.name);
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        let properties = schema["properties"].as_object().unwrap();
        assert!(!properties.is_empty(), "{}", tool.name);
        for (name, about) in properties {
            assert!(!["out", "html", "plot", "observe", "data"].contains(&name.as_str()), "{name}");
            let described = about["description"].as_str().unwrap_or_default();
            assert!(!described.is_empty() || about.get("$ref").is_some(), "{}: {name}", tool.name);
        }
        assert_eq!(definition.annotations.unwrap().read_only_hint, Some(true));
        assert!(Path::new(tool.name).components().count() == 1);
    }
}
