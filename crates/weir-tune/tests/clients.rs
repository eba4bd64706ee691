//! Clients that wait for each answer and take time of their own.

use weir_catalog::Catalog;
use weir_diagnose::Change;
use weir_layout::Layout;
use weir_report::tune::TuneEnd;
use weir_tune::measure::Effort;
use weir_tune::{
    Bench, Credits, Goal, Load, Measured, System, SystemError, TuneOptions, Tuned, tune_on,
};
use weir_workload::{Isolated, fio};

const LAYOUT: &str =
    "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"data\"\ntier = \"P20\"\n";

/// A running system: what its clients do on it is a simulation of other jobs.
struct Running<'a> {
    clients: Bench<'a>,
    connected: u64,
    /// The only tier that it takes.
    only: Option<&'static str>,
}

impl System for Running<'_> {
    fn is_simulated(&self) -> bool {
        false
    }

    fn tolerance(&self) -> f64 {
        0.05
    }

    fn can_apply(&self, change: &Change, _layout: &Layout) -> bool {
        let Change::Tier { tier, .. } = change else { return false };
        self.only.is_none_or(|only| only == tier)
    }

    fn measure(
        &mut self,
        text: &str,
        _layout: &Layout,
        _predicted: &Measured,
    ) -> Result<Measured, SystemError> {
        let clients = Some(self.connected);
        Ok(Measured { clients, ..self.clients.measure("layout.toml", text, Effort::Full)? })
    }

    fn apply(&mut self, _change: &Change, _before: &Layout) -> Result<(), SystemError> {
        Ok(())
    }
}

fn bench<'a>(catalog: &'a Catalog, options: &str) -> Bench<'a> {
    let text = format!(
        "[data]\nfilename=/dev/data\nrw=randread\nbs=8k\ndirect=1\nioengine=psync\nruntime=20\ntime_based\n{options}"
    );
    let file = fio::parse("job.fio", &text, &Isolated).expect("a job");
    Bench { catalog, load: Load::Jobs(file), seed: 1, runtime: None, credits: Credits::Spent }
}

/// Tunes a system whose clients are those of `clients`, described by `described`.
fn tuned(described: &str, clients: (u64, &str), goal: &str) -> Tuned {
    tuned_on((LAYOUT, None), described, clients, goal)
}

/// Does the same on a system that may take one tier only.
fn tuned_on(
    (layout, only): (&str, Option<&'static str>),
    described: &str,
    (connected, clients): (u64, &str),
    goal: &str,
) -> Tuned {
    let catalog = Catalog::builtin();
    let bench = bench(&catalog, described);
    let mut system = Running { clients: self::bench(&catalog, clients), connected, only };
    let goal = Goal { targets: vec![goal.parse().expect("a target")] };
    tune_on(&mut system, ("layout.toml", layout), &bench, &goal, TuneOptions::default())
        .expect("a walk")
}

#[test]
fn the_time_of_clients_that_wait_for_each_answer_is_a_part_of_the_predictions() {
    let tuned = tuned("numjobs=6\n", (6, "numjobs=6\nthinktime=400us\n"), "iops=2400");
    let report = &tuned.report;
    assert_eq!(report.end, TuneEnd::Reached, "{} {:?}", report.verdict, report.notes);
    let note = "clients take 400 us from an answer to their next request";
    assert!(report.notes.iter().any(|own| own.starts_with(note)), "{:?}", report.notes);
    let [step] = &report.steps[..] else { panic!("{:?}", report.steps) };
    assert!(step.deviation.is_some_and(|off| off < 0.02), "{step:?}");
}

#[test]
fn clients_that_do_less_than_is_described_are_not_explained_by_their_own_time() {
    // Fewer clients, slow clients, clients with several requests in flight, and clients that flush.
    for (described, clients) in [
        ("numjobs=6\n", (3, "numjobs=3\n")),
        ("numjobs=6\n", (5, "numjobs=5\n")),
        ("numjobs=8\n", (7, "numjobs=7\n")),
        ("numjobs=6\n", (6, "numjobs=6\nthinktime=2ms\n")),
        ("ioengine=libaio\niodepth=6\n", (1, "ioengine=libaio\niodepth=4\n")),
        ("numjobs=6\nfsync=4\n", (6, "numjobs=6\nthinktime=900us\n")),
    ] {
        let tuned = tuned(described, clients, "iops=4000");
        assert_eq!(tuned.report.end, TuneEnd::Unpredicted, "{clients:?}: {}", tuned.report.verdict);
        assert!(tuned.report.steps.is_empty());
    }
}

/// A limit of AWS lets a second of itself pass at once from an idle start. A server under load has spent that.
#[test]
fn a_server_under_load_has_no_reserve() {
    let catalog = Catalog::builtin();
    let layout = "edition = \"aws\"\n[host]\nunlimited = true\n[[volume]]\nname = \"data\"\nfamily = \"gp3\"\n\
        size = \"100 GiB\"\n";
    let rate = |credits| {
        let bench = Bench { credits, ..bench(&catalog, "numjobs=32\n") };
        bench.measure("layout.toml", layout, Effort::Prediction).expect("a rate").iops
    };
    let (given, spent) = (rate(Credits::Given), rate(Credits::Spent));
    assert!((2_990.0..3_010.0).contains(&spent), "{spent}");
    assert!((3_140.0..3_160.0).contains(&given), "a second of the limit more in 20 s: {given}");
}

/// P20 has 98.5 % of the goal: within the tolerance, and not sure. It is chosen only where nothing else is left.
#[test]
fn a_layout_at_the_edge_of_the_goal_is_the_last_resort() {
    let clients = (32, "numjobs=32\n");
    let change = |only| {
        let layout = LAYOUT.replace("P20", "P10");
        let tuned = tuned_on((&layout, only), clients.1, clients, "iops=2335");
        assert_eq!(tuned.report.end, TuneEnd::Reached, "{}", tuned.report.verdict);
        let [step] = &tuned.report.steps[..] else { panic!("{:?}", tuned.report.steps) };
        step.change.clone()
    };
    assert_eq!(change(None), "data as P30");
    assert_eq!(change(Some("P20")), "data as P20");
}
