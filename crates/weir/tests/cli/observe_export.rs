//! `weir observe export`: an observation as Parquet, read by a program that is not Weir's.

use crate::common::{Place, run};

const LAYOUT: &str = "edition = \"azure-now\"\nhost = { size = \"D8s_v3\" }\n[[volume]]\n\
    name = \"data\"\ntier = \"P20\"\n";
const JOB: &str = "[job]\nfilename=/mnt/data\nrw=randread\nbs=8k\nruntime=5\ntime_based\ndirect=1\n\
    ioengine=libaio\niodepth=8\nsize=1g\n";

/// Observes a simulation.
fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("job.fio", JOB);
    let (_, stderr, code) =
        run(place.weir(&["sim", "layout.toml", "job.fio", "--observe", "run.weirobs"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    place
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_how_to_get_it() {
    let place = place();
    let args = ["observe", "export", "run.weirobs", "--parquet", "run.parquet"];
    let (stdout, stderr, code) = run(place.weir(&args));
    assert_eq!((stdout.as_str(), code), ("", Some(2)));
    assert!(stderr.contains("cargo build --release --features parquet"), "{stderr}");
    assert!(!place.path("run.parquet").exists());
}

#[cfg(feature = "parquet")]
mod with_parquet {
    use super::{Place, place, run};
    use crate::tools::python_with;
    use std::fs::File;
    use std::process::Command;
    use weir_parquet::Values;

    fn export(place: &Place, args: &[&str]) -> (String, String, Option<i32>) {
        run(place.weir(&[&["observe", "export"], args].concat()))
    }

    /// Returns the values of a metric of the volume, in the order of the table.
    fn values(table: &[(String, Values)], metric: &str) -> Vec<f64> {
        let text = |name: &str| match table.iter().find(|(own, _)| own == name) {
            Some((_, Values::Text(all))) => all.clone(),
            _ => panic!("{name} is no column of texts"),
        };
        let (kinds, names, metrics) = (text("kind"), text("name"), text("metric"));
        let Some((_, Values::Number(all))) = table.last() else { panic!("no column of values") };
        let is_own = |at: &usize| {
            let own = [&kinds[*at], &names[*at], &metrics[*at]];
            own.map(|text| text.as_deref()) == [Some("volume"), Some("data"), Some(metric)]
        };
        (0..all.len()).filter(is_own).filter_map(|at| all[at]).collect()
    }

    #[test]
    fn every_value_is_a_row() {
        let place = place();
        assert_eq!(export(&place, &["run.weirobs", "--parquet", "run.parquet"]).2, Some(0));
        let table = weir_parquet::read(File::open(place.path("run.parquet")).expect("a file"));
        let table = table.expect("a table");
        let (shown, ..) = run(place.weir(&["observe", "show", "run.weirobs", "-o", "json"]));
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let reads = values(&table, "reads");
        assert!(reads.len() == 7 && reads.is_sorted() && reads[0] == 0.0, "{reads:?}");
        let last = *reads.last().expect("a sample");
        let bytes = values(&table, "read_bytes");
        assert_eq!(bytes.last().copied(), Some(last * 8_192.0), "{shown}");
        let Some(python) = python_with("duckdb") else { return };
        let query = "import duckdb\nprint(duckdb.sql(\"select max(value), count(*), typeof(any_value(time)), \
            typeof(any_value(offset_ns)), any_value(unit), any_value(counting), any_value(parent) \
            from 'run.parquet' where metric = 'reads' and kind = 'volume'\").fetchall())\n";
        let mut command = Command::new(python);
        let output = command.args(["-c", query]).current_dir(place.dir()).output();
        let output = output.expect("a program");
        let told = String::from_utf8_lossy(&output.stdout);
        let expect = format!(
            "[({last:.1}, 7, 'TIMESTAMP WITH TIME ZONE', 'BIGINT', 'count', 'cumulative', 'host')]\n"
        );
        assert_eq!(told, expect, "{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn an_export_checks_all_days_first() {
        let place = place();
        let check = |args: &[&str], expect: &str| {
            let (stdout, stderr, code) = export(&place, args);
            assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
            assert!(stderr.contains(expect) && stderr.lines().count() == 1, "{stderr}");
        };
        assert_eq!(export(&place, &["run.weirobs", "--parquet", "tree/"]).2, Some(0));
        let day = "tree/server=run/day=__HIVE_DEFAULT_PARTITION__";
        assert!(place.path(day).join("part.parquet").is_file());
        std::fs::copy(place.path("run.weirobs"), place.path("a.weirobs")).expect("a copy");
        let both = ["a.weirobs", "run.weirobs", "--parquet", "tree"];
        check(&both, "has this day already");
        std::fs::write(place.path(day).join("more.parquet"), "hello").expect("a file");
        check(&[&both[..], &["--replace"]].concat(), "--replace leaves (more.parquet)");
        assert!(!place.path("tree/server=a").exists());
        // Several observations make a folder.
        assert_eq!(export(&place, &["a.weirobs", "run.weirobs", "--parquet", "new"]).2, Some(0));
        assert!(place.path("new/server=a").is_dir() && place.path("new/server=run").is_dir());
        check(&["a.weirobs", "run.weirobs", "--parquet", "run.weirobs"], "is a file");
        let empty =
            weir_fleet::example::Example { samples: 0, ..weir_fleet::example::Example::day(1) };
        let file = File::create(place.path("empty.weirobs")).expect("a file");
        empty.observation(0).write(file).expect("an observation");
        check(&["empty.weirobs", "--parquet", "none/"], "has no samples");
        assert!(!place.path("none").exists());
    }

    #[test]
    fn a_foreign_table_leaves_no_observation_behind() {
        let place = place();
        let columns = [("time", weir_parquet::Kind::Time), ("reads", weir_parquet::Kind::Whole)];
        let file = File::create(place.path("foreign.parquet")).expect("a file");
        let mut table = weir_parquet::Writer::new(file, &columns, &[]).expect("a table");
        let column = || Values::Whole(vec![Some(1)]);
        table.rows(&[column(), column()]).expect("a row");
        table.finish().expect("a file");
        place.file("text.parquet", "hello");
        for (name, expect) in [("foreign.parquet", "column"), ("text.parquet", "text.parquet")] {
            let args = ["observe", "import", "--parquet", name, "--out", "new.weirobs"];
            let (stdout, stderr, code) = run(place.weir(&args));
            assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
            assert!(stderr.contains(expect) && stderr.lines().count() == 1, "{stderr}");
            assert!(!place.path("new.weirobs").exists());
        }
    }

    #[test]
    fn wrong_files_are_refused_and_nothing_is_written() {
        let place = place();
        place.file("notes.txt", "hello");
        let check = |args: &[&str], expect_code: i32, expect: &str| {
            let (stdout, stderr, code) = export(&place, args);
            assert_eq!((stdout.as_str(), code), ("", Some(expect_code)), "{stderr}");
            assert!(stderr.contains(expect) && stderr.lines().count() == 1, "{stderr}");
            assert!(!place.path("x.parquet").exists());
        };
        check(&["notes.txt", "--parquet", "x.parquet"], 2, "notes.txt: ");
        check(&["none.weirobs", "--parquet", "x.parquet"], 2, "cannot read none.weirobs");
        check(&["run.weirobs", "--parquet", "run.weirobs"], 2, "is the observation");
        check(&["run.weirobs", "--parquet", "none/x.parquet"], 3, "make it first");
    }
}
