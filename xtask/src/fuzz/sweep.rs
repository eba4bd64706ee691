//! Invariants of a sweep file: it is read, or rejected with a message, and each point has a value for
//! each parameter.

use super::plans::catalog;
use weir_sweep::{Inputs, Load, NamedText, Sweep, SweepFile};
use weir_workload::Isolated;

const FILE: &str = "fuzz.toml";
const LAYOUT: &str =
    "[host]\nunlimited = true\n[[volume]]\nname = \"d\"\nsize = \"1 GiB\"\niops = 500\n";
const JOB: &str = "[j]\nrw=randread\nfilename=d\nruntime=1\niodepth=4\n";
/// Sweeps with more points are only read.
const MAX_POINTS: u64 = 10_000;

pub(super) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let file = match SweepFile::parse(FILE, &text) {
        Ok(file) => file,
        Err(error) => return said(&error),
    };
    let named = |name: &str, text: &str| NamedText { name: name.to_owned(), text: text.to_owned() };
    let jobs = file.workload.all().iter().map(|name| named(name, JOB)).collect();
    let inputs = Inputs {
        version: "0",
        sweep: named(FILE, &text),
        layout: named("layout.toml", LAYOUT),
        workload: Load::Texts(jobs),
        edition: None,
        catalog: catalog().clone(),
        editions: Vec::new(),
        source: Box::new(Isolated),
    };
    match Sweep::new(inputs) {
        Err(error) => said(&error),
        Ok(sweep) if sweep.points() <= MAX_POINTS => {
            assert!(sweep.points() > 0, "a sweep without points");
        }
        Ok(_) => {}
    }
}

fn said(error: &weir_sweep::SweepError) {
    assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
}
