//! `--html` of the verbs that run: pages that need no other file.

use crate::common::{Place, run};
use crate::observe::OLTP;
use std::fs;

/// A disk whose name has to be escaped in a page, beside a fast one.
const LAYOUT: &str = "edition = \"azure-now\"\nregion = \"westeurope\"\n[[host]]\nname = \"vm\"\n\
    size = \"Standard_D8ds_v5\"\n[[volume]]\nname = \"data\"\nhost = \"vm\"\ntier = \"P10\"\n\
    credits = \"0 %\"\n[[volume]]\nname = \"log\"\nhost = \"vm\"\ntier = \"P30\"\n";

const JOB: &str = "[<b>]\nfilename=data\nrw=randread\nbs=8k\nsize=8g\nruntime=5\ntime_based\n\
    direct=1\nioengine=libaio\niodepth=32\n";

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("job.fio", JOB);
    place.file("oltp.toml", OLTP);
    place
}

/// Runs a verb with `--html`, and returns the page, which has to be whole and load nothing.
#[track_caller]
fn page(place: &Place, args: &[&str]) -> String {
    let (_, stderr, code) = run(place.weir(&[args, &["--html", "page.html"]].concat()));
    assert_eq!(code, Some(0), "{stderr}");
    let page = fs::read_to_string(place.path("page.html")).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    assert!(page.contains("prefers-color-scheme:dark"), "{page}");
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    for part in ["http:", "https:", "<script", "<link", "<img", "url("] {
        assert!(!outside.contains(part), "{part} is in the page");
    }
    assert!(page.contains("<footer>Written by weir "), "{page}");
    page
}

#[track_caller]
fn in_order(page: &str, parts: &[&str]) {
    let mut rest = page;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part} is not there, in order: {page}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn a_simulation_has_its_verdict_money_tables_and_charts_on_a_page() {
    let place = place();
    let page = page(&place, &["sim", "layout.toml", "job.fio"]);
    let parts = [
        "<h1>data is throttled by disk_iops, where its requests spend 9",
        "% of their time; it does 500 IOPS and 3.91 MiB/s.</h1>",
        " USD a month, in westeurope</p>",
        "<td>&lt;b&gt;</td>",
        "<h2>Over time</h2>",
        "data: IOPS (limit 500; burst limit 3500)",
    ];
    in_order(&page, &parts);
}

#[test]
fn a_database_and_a_trace_have_pages_in_virtual_and_wall_time() {
    let place = place();
    for verb in ["sim", "run"] {
        let page = page(&place, &[verb, "layout.toml", "oltp.toml", "--runtime", "2s"]);
        let parts =
            ["<h1>oltp does ", " transactions a minute, ", " USD a month", "batch requests/s"];
        in_order(&page, &parts);
    }
    place.file("t.csv", "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
        128166372003061629,host,0,Read,0,8192,1000\n128166372013061629,host,0,Read,8192,8192,1000\n");
    for verb in ["sim", "run"] {
        let page = page(&place, &[verb, "layout.toml", "t.csv", "--map", "host/0=data"]);
        in_order(&page, &["<h1>It keeps up: 2 requests", " USD a month", "<h2>Over time</h2>"]);
    }
}

#[test]
fn a_page_replaces_no_file_of_the_run() {
    let place = place();
    let check = |args: &[&str], expect: &str| {
        let (stdout, stderr, code) =
            run(place.weir(&[&["sim", "layout.toml", "job.fio"], args].concat()));
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
        assert!(stderr.contains(expect), "{stderr}");
    };
    check(&["--html", "layout.toml"], "--html layout.toml: is another file of this run");
    check(&["--html", "job.fio"], "--html job.fio: is another file of this run");
    check(&["--html", "a.html", "--plot", "a.html"], "is another file of this run");
    check(&["--html", "."], "is a folder");
    assert_eq!(fs::read_to_string(place.path("layout.toml")).expect("text"), LAYOUT);
    assert_eq!(fs::read_to_string(place.path("job.fio")).expect("text"), JOB);
}
