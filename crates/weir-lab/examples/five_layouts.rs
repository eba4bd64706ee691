//! Scans the parameters of `mi-file-size` for sets that predict layouts they were not fitted to.
//!
//! `cargo run -p weir-lab --example five_layouts -- 60 1 10s` draws 60 sets with seed 1 and
//! runs each layout for 10 s. Every set runs on the article's layouts; the third and the fourth
//! have the same limits and are run once. The result is a table in Markdown:
//!
//! - the smallest possible maximum error over all five layouts,
//! - for each pair of layouts, the set that is nearest to that pair in all its figures, and its
//!   largest error on the other three.

use std::fmt::Write as _;
use std::io::{Write as _, stdout};
use weir_catalog::Catalog;
use weir_lab::figure::ByRun;
use weir_lab::file::OneOrMore;
use weir_lab::{Clocks, Lab, Options, find, run};
use weir_random::Rng;
use weir_report::lab::Figure;

/// The parameters: name in the table, line of the description they replace, range, unit.
const PARAMETERS: [(&str, &str, f64, f64, &str); 7] = [
    ("think_time", "think_time = \"3500us\"", 2_000.0, 6_000.0, "us"),
    ("working_set", "working_set = \"52 MiB\"", 26.0, 104.0, " MiB"),
    ("target_recovery", "target_recovery = \"550ms\"", 275.0, 1_100.0, "ms"),
    ("checkpoint.writes", "writes = 220", 110.0, 440.0, ""),
    ("checkpoint.latency", "latency = \"250ms\"", 125.0, 500.0, "ms"),
    ("log_writer.writes", "writes = 8\n", 4.0, 16.0, ""),
    ("batch.writes", "writes = 6.7", 3.35, 13.4, ""),
];

/// The runs of the lab that are scanned. The fourth stands for the third as well.
const RUNS: [&str; 4] =
    ["3 x 32 GB, log 32", "3 x 32 GB, log 512", "3 x 512 GB, log 512", "3 x 1.1 TB, log 2 TB"];

/// For each published layout, the run whose result it has.
const LAYOUTS: [(usize, f64); 5] =
    [(0, 1457.0), (1, 1732.0), (2, 2422.0), (2, 2706.0), (3, 7022.0)];

/// The published shares of WRITELOG and PAGEIOLATCH of each layout.
const WAITS: [(f64, f64); 5] =
    [(21.0, 70.0), (13.0, 85.0), (12.0, 80.0), (12.0, 77.0), (74.0, 4.0)];

/// The figures that are read.
const METRICS: [&str; 3] = ["batch requests/s", "WRITELOG", "PAGEIOLATCH"];

/// Result of one run: batch requests a second, share of WRITELOG, share of PAGEIOLATCH.
type Measured = [f64; 3];

/// A drawn set and its results by run.
struct Drawn {
    values: Vec<f64>,
    measured: Vec<Measured>,
}

impl Drawn {
    /// Returns the relative error of batch requests on a layout.
    fn error(&self, layout: usize) -> f64 {
        let (run, published) = LAYOUTS[layout];
        self.measured[run][0] / published - 1.0
    }

    /// Returns the distance from all figures of a layout: a share for batch requests, and
    /// points of 100 for the waits.
    fn distance(&self, layout: usize) -> f64 {
        let [_, log, page] = self.measured[LAYOUTS[layout].0];
        let (own_log, own_page) = WAITS[layout];
        let waits = ((log - own_log) / 100.0).abs().max(((page - own_page) / 100.0).abs());
        self.error(layout).abs().max(waits)
    }

    fn worst(&self, layouts: impl Iterator<Item = usize>) -> f64 {
        layouts.map(|layout| self.error(layout).abs()).fold(0.0, f64::max)
    }
}

/// Replaces the parameters of the lab's description.
fn description(values: &[f64], duration: &str) -> String {
    let mut text = include_str!("../../../labs/mi-file-size/oltp.toml").to_owned();
    text = text
        .replace("duration = \"5min\"", &format!("duration = \"{duration}\"\nramp_time = \"5s\""));
    for ((_, line, _, _, unit), value) in PARAMETERS.iter().zip(values) {
        let key = line.split(" = ").next().unwrap_or_default();
        let value = match (*unit, line.contains('.')) {
            ("", true) => format!("{value:.2}"),
            ("", false) => format!("{value:.0}"),
            (unit, _) => format!("\"{value:.0}{unit}\""),
        };
        assert!(text.contains(line), "the description has no {line:?}");
        let end = if line.ends_with('\n') { "\n" } else { "" };
        text = text.replacen(line, &format!("{key} = {value}{end}"), 1);
    }
    text
}

/// Runs the four distinct layouts with a description.
fn measure(lab: &Lab, text: &str, catalog: &Catalog) -> Result<Vec<Measured>, weir_lab::LabError> {
    let mut lab = lab.clone();
    lab.file.run.retain(|run| RUNS.contains(&run.id.as_str()));
    lab.file.figure.retain(|figure| METRICS.contains(&figure.id.as_str()));
    for figure in &mut lab.file.figure {
        figure.explained = None;
        if let Some(ByRun::Each(values)) = &mut figure.published {
            values.retain(|run, _| RUNS.contains(&run.as_str()));
        }
    }
    for run in &mut lab.file.run {
        run.oltp = None;
        run.oltp_text = Some(OneOrMore::One(text.to_owned()));
    }
    let options = Options { clocks: Clocks::Virtual, ..Options::default() };
    let reports = run(&[lab], catalog, &options, &mut |_| ())?;
    let figures = reports.0.first().map(|report| report.figures.as_slice()).unwrap_or_default();
    let value = |metric: &str, run: &str| {
        let id = format!("{metric}: {run}");
        let figure = figures.iter().find(|figure: &&Figure| figure.id == id);
        figure.and_then(|f| f.virtual_time.as_ref()?.number()).unwrap_or(f64::NAN)
    };
    Ok(RUNS.iter().map(|run| METRICS.map(|metric| value(metric, run))).collect())
}

/// Draws a set evenly on a logarithmic scale.
fn draw(random: &mut Rng) -> Vec<f64> {
    let one =
        |(_, _, least, most, _): &(_, _, f64, f64, _)| least * (most / least).powf(random.unit());
    PARAMETERS.iter().map(one).collect()
}

/// Writes the result table.
fn table(drawn: &[Drawn]) -> String {
    let mut out = String::from(
        "| fitted to | error on these | largest error on the others | errors 1 to 5 |\n|---|---|---|---|\n",
    );
    let mut row = |name: String, fitted: &[usize], best: Option<&Drawn>| {
        let Some(best) = best else { return };
        let others = (0..5).filter(|layout| !fitted.contains(layout));
        let errors: Vec<String> =
            (0..5).map(|layout| format!("{:+.0} %", best.error(layout) * 100.0)).collect();
        let [own, other] = [best.worst(fitted.iter().copied()), best.worst(others)];
        let _ = writeln!(
            out,
            "| {name} | {:.0} % | {:.0} % | {} |",
            own * 100.0,
            other * 100.0,
            errors.join(", ")
        );
    };
    let least =
        |cost: &dyn Fn(&Drawn) -> f64| drawn.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
    row("all five".into(), &[0, 1, 2, 3, 4], least(&|set| set.worst(0..5)));
    for first in 0..5 {
        for second in first + 1..5 {
            let pair = [first, second];
            let cost = |set: &Drawn| set.distance(first).max(set.distance(second));
            row(format!("{} and {}", first + 1, second + 1), &pair, least(&cost));
        }
    }
    out
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let sets: usize = arguments.next().as_deref().unwrap_or("60").parse()?;
    let seed: u64 = arguments.next().as_deref().unwrap_or("1").parse()?;
    let duration = arguments.next().unwrap_or_else(|| "10s".to_owned());
    let (lab, catalog) = (find("mi-file-size")?, Catalog::builtin());
    let (mut random, mut drawn) = (Rng::new(&[seed]), Vec::new());
    for _ in 0..sets {
        let values = draw(&mut random);
        let measured = measure(&lab, &description(&values, &duration), &catalog)?;
        let rates: Vec<String> = measured.iter().map(|m| format!("{:.0}", m[0])).collect();
        let shown: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
        writeln!(stdout(), "{}: {}", shown.join(" "), rates.join(" "))?;
        drawn.push(Drawn { values, measured });
    }
    writeln!(stdout(), "\n{}", table(&drawn))?;
    if let Some(best) = drawn.iter().min_by(|a, b| a.worst(0..5).total_cmp(&b.worst(0..5))) {
        for ((name, ..), value) in PARAMETERS.iter().zip(&best.values) {
            writeln!(stdout(), "{name} {value:.1}")?;
        }
    }
    Ok(())
}
