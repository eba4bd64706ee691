//! The diagnosis of an observation as a row of results.

use crate::fleet::{Fleet, Observed};
use crate::histogram::Latencies;
use crate::opened::{Opened, open};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use weir_catalog::Catalog;
use weir_diagnose::{Case, Question, diagnose};
use weir_layout::Layout;
use weir_observe::joined::Joined;
use weir_report::diagnosis::{DiagnosisReport, EffectReport, Finding, Group, VerdictName};

/// The status of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A whole observation was diagnosed.
    Ok,
    /// The readable part of a truncated or damaged observation was diagnosed.
    Partial,
    /// There is no diagnosis.
    #[default]
    Failed,
}

/// A row of results. `docs/DIAGNOSIS.md` describes the columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The identity of the fleet.
    pub fleet: String,
    /// Number of observations of the fleet.
    pub observations: u64,
    /// Number of this one, from 0 on.
    pub observation: u64,
    /// The server.
    pub server: String,
    /// The day of a partition.
    pub day: Option<String>,
    /// The file or the folder of the partition.
    pub file: String,
    /// Whether it was diagnosed.
    pub status: Status,
    /// The reason why it was not, or not as a whole.
    pub reason: Option<String>,
    /// The verdict.
    pub verdict: Option<String>,
    /// The verdict in a sentence.
    pub summary: Option<String>,
    /// The file, disk or stripe with the longest wait at the cap.
    pub subject: Option<String>,
    /// The cap with the longest wait time of throttled subjects.
    pub cap: Option<String>,
    /// The limit of the subject, in operations or bytes per second.
    pub limit: Option<f64>,
    /// Whether the limit is in bytes per second.
    pub limit_is_bytes: Option<bool>,
    /// The longest time in which a subject was slow, or at 90 % of that cap or more.
    pub throttled_s: Option<f64>,
    /// The wait time of all requests of throttled subjects.
    pub wait_s: Option<f64>,
    /// The part of it at each cap, as `CAP:SECONDS`, the longest first.
    pub waits: Option<String>,
    /// Number of samples.
    pub samples: Option<u64>,
    /// The observed time.
    pub span_s: Option<f64>,
    /// Completed operations.
    pub operations: Option<f64>,
    /// Mean IOPS.
    pub iops: Option<f64>,
    /// Mean throughput.
    pub throughput_bytes_per_s: Option<f64>,
    /// Mean latency.
    pub latency_mean_ns: Option<f64>,
    /// Mean latencies of the samples of all files or disks: [`Latencies`].
    pub latency_histogram: Option<String>,
    /// The change that relieves it, or what to do.
    pub fix: Option<String>,
    /// Monthly price of the layout.
    pub fix_price_before: Option<String>,
    /// Monthly price with the change.
    pub fix_price_after: Option<String>,
    /// Currency of the prices.
    pub currency: Option<String>,
}

/// Returns the name of a verdict in results.
const fn verdict_name(verdict: VerdictName) -> &'static str {
    match verdict {
        VerdictName::Throttled => "throttled",
        VerdictName::NotTheStorage => "not-the-storage",
        VerdictName::Healthy => "healthy",
        VerdictName::NotEnoughEvidence => "not-enough-evidence",
    }
}

impl Row {
    /// Returns whether a cap throttles the server.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        self.verdict.as_deref() == Some(verdict_name(VerdictName::Throttled))
    }
}

/// Diagnoses an observation of a fleet.
#[must_use]
pub fn row(fleet: &Fleet, number: u64) -> Row {
    let Some(observed) = fleet.observation(number) else { return Row::default() };
    let row = Row {
        fleet: fleet.identity().to_owned(),
        observations: fleet.count(),
        observation: number,
        server: observed.server.clone(),
        day: observed.day.clone(),
        file: observed.path.display().to_string(),
        ..Row::default()
    };
    match caught(|| diagnosed(fleet, observed, row.clone())) {
        Ok(row) => row,
        Err(reason) => Row { status: Status::Failed, reason: Some(reason), ..row },
    }
}

/// Does the work of one row. A panic is the reason why there is none, and does not end the fleet.
fn caught(work: impl FnOnce() -> Result<Row, String>) -> Result<Row, String> {
    // The work shares nothing that it changes.
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Err(format!("the diagnosis failed: {}", text.unwrap_or_else(|| "a panic".to_owned())))
    })
}

fn diagnosed(fleet: &Fleet, observed: &Observed, row: Row) -> Result<Row, String> {
    let Opened { header, damage, chunks } = open(fleet, observed)?;
    let options = fleet.options();
    let (limits, unusable) = Limits::resolve(&header, options);
    let question = Question {
        layout: limits.layout(),
        edition: limits.edition(&options.catalog)?,
        catalog: &options.catalog,
        mapping: &options.mapping,
    };
    let mut joined = Joined::new(vec![(header, chunks)]);
    let found =
        diagnose(&question, &mut joined, limits.text(), |case, report| filled(row, case, &report));
    let (row, unmatched) = found.map_err(|failure| failure.to_string())?;
    let left_out = (!unmatched.is_empty()).then(|| {
        let names: Vec<&str> = unmatched.iter().map(|own| &*own.name).collect();
        format!("not in the layout and left out: {}", names.join(", "))
    });
    let status = if damage.is_some() { Status::Partial } else { Status::Ok };
    let reasons: Vec<String> = [damage, unusable, left_out].into_iter().flatten().collect();
    let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    Ok(Row { status, reason, ..row })
}

/// The limits of an observation.
enum Limits<'a> {
    Given(&'a Layout, &'a str),
    Own(Box<Layout>, String),
    Edition(&'a str),
    Observed,
}

impl<'a> Limits<'a> {
    /// Takes the limits from the options, or from the observation. Also returns the reason why its
    /// layout is of no use.
    fn resolve(
        header: &weir_observe::Header,
        options: &'a crate::fleet::Options,
    ) -> (Self, Option<String>) {
        if let Some((layout, text)) = &options.layout {
            return (Self::Given(layout, text), None);
        }
        if let Some(edition) = &options.edition {
            return (Self::Edition(edition), None);
        }
        let Some(kept) = &header.layout else { return (Self::Observed, None) };
        match Layout::parse(&kept.name, &kept.text, &options.catalog) {
            Ok(layout) => (Self::Own(Box::new(layout), kept.text.clone()), None),
            Err(error) => {
                let words = format!("the layout of the run is invalid now: {error}");
                (Self::Observed, Some(words))
            }
        }
    }

    fn layout(&self) -> Option<&Layout> {
        match self {
            Self::Given(layout, _) => Some(layout),
            Self::Own(layout, _) => Some(layout),
            Self::Edition(_) | Self::Observed => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Given(_, text) => Some(text),
            Self::Own(_, text) => Some(text),
            Self::Edition(_) | Self::Observed => None,
        }
    }

    fn edition<'c>(
        &self,
        catalog: &'c Catalog,
    ) -> Result<Option<&'c weir_catalog::Edition>, String> {
        let name = match self {
            Self::Edition(name) => Some(*name),
            _ => self.layout().and_then(|layout| layout.edition.as_deref()),
        };
        name.map(|name| catalog.edition(name).map_err(|error| error.to_string())).transpose()
    }
}

fn filled(row: Row, case: &Case<'_>, report: &DiagnosisReport) -> Row {
    let throttling = report.findings.iter().find(|own| own.group == Group::Throttling);
    let waits =
        Waits::new(case).or_else(|| throttling.map(Waits::without_caps)).unwrap_or_default();
    let load = Measured::new(case);
    let fix = fix(report);
    let price = fix.and_then(|own| own.effect.as_ref()?.price.as_ref());
    let price = price.filter(|own| own.difference.is_some());
    let change = |own: &Finding| match &own.effect {
        Some(EffectReport { change, .. }) => change.clone(),
        None => own.action.clone(),
    };
    let amount = |own: weir_report::number::Amount| own.exact().to_string();
    Row {
        verdict: Some(verdict_name(report.verdict).to_owned()),
        summary: Some(report.summary.clone()),
        subject: waits.subject,
        cap: waits.cap,
        limit: waits.limit,
        limit_is_bytes: waits.limit.map(|_| waits.limit_is_bytes),
        throttled_s: waits.throttled_s,
        wait_s: waits.wait_s,
        waits: waits.text,
        samples: Some(report.samples),
        span_s: Some(report.span_s.1 - report.span_s.0),
        operations: load.operations,
        iops: load.operations.filter(|_| load.seconds > 0.0).map(|n| n / load.seconds),
        throughput_bytes_per_s: load.bytes.filter(|_| load.seconds > 0.0).map(|n| n / load.seconds),
        latency_mean_ns: (load.timed > 0.0).then(|| load.ns / load.timed),
        latency_histogram: (load.latencies.count() > 0).then(|| load.latencies.text()),
        fix: fix.map(change),
        fix_price_before: price.map(|own| amount(own.before)),
        fix_price_after: price.map(|own| amount(own.after)),
        currency: price.map(|own| own.currency.clone()),
        ..row
    }
}

/// Returns the first finding of throttling whose change was simulated and has a price; otherwise the
/// first. Changes of several findings may be alternatives, so only one counts.
fn fix(report: &DiagnosisReport) -> Option<&Finding> {
    let own = || report.findings.iter().filter(|finding| finding.group == Group::Throttling);
    let has_price = |finding: &&Finding| {
        let price = finding.effect.as_ref().and_then(|effect| effect.price.as_ref());
        price.is_some_and(|price| price.difference.is_some())
    };
    own().find(has_price).or_else(|| own().next())
}

/// The cap of a server whose limits are not known.
const UNKNOWN: &str = "unknown";

/// The waits of throttled subjects.
#[derive(Default)]
struct Waits {
    subject: Option<String>,
    cap: Option<String>,
    limit: Option<f64>,
    limit_is_bytes: bool,
    throttled_s: Option<f64>,
    wait_s: Option<f64>,
    text: Option<String>,
}

impl Waits {
    /// Adds up the waits by cap; `None` if no subject is throttled by a cap that is known.
    fn new(case: &Case<'_>) -> Option<Self> {
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (judged, _) in case.throttled() {
            for wait in &judged.waited.waits {
                *sums.entry(wait.kind.name()).or_default() += wait.wait_ns;
            }
        }
        let mut sums: Vec<(&str, f64)> = sums.into_iter().collect();
        sums.sort_by(|one, other| other.1.total_cmp(&one.1));
        let (cap, _) = sums.first().copied()?;
        let mut longest: Option<(f64, String, f64)> = None;
        let mut limit_is_bytes = false;
        let mut throttled_s = 0.0_f64;
        for (judged, _) in case.throttled() {
            let own = judged.waited.waits.iter().find(|wait| wait.kind.name() == cap);
            let Some(wait) = own else { continue };
            let slow_s = judged.facts.slow.seconds;
            throttled_s = throttled_s.max(slow_s).max(wait.near_limit_s);
            if longest.as_ref().is_none_or(|(ns, ..)| *ns < wait.wait_ns) {
                let (own, facts) = case.cap(wait.cap);
                let limit = if wait.kind.is_burst() { own.limit.peak() } else { facts.limit };
                longest = Some((wait.wait_ns, judged.name(case), limit));
                limit_is_bytes = wait.kind.counts_bytes();
            }
        }
        let texts = sums.iter().map(|(cap, ns)| format!("{cap}:{}", ns / 1e9));
        Some(Self {
            subject: longest.as_ref().map(|(_, name, _)| name.clone()),
            cap: Some(cap.to_owned()),
            limit: longest.map(|(.., limit)| limit),
            limit_is_bytes,
            throttled_s: Some(throttled_s),
            wait_s: Some(sums.iter().map(|(_, ns)| ns / 1e9).sum()),
            text: Some(texts.collect::<Vec<_>>().join(" ")),
        })
    }

    /// Takes the waits of a finding without wait times by cap, such as the queue of a governor whose
    /// limits are not known, or a backup.
    fn without_caps(finding: &Finding) -> Self {
        let cap = finding.cap.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        let wait_s = finding.wait_ns / 1e9;
        Self {
            subject: Some(finding.subject.clone()),
            limit: finding.limit,
            limit_is_bytes: finding.is_bytes,
            throttled_s: None,
            wait_s: Some(wait_s),
            text: Some(format!("{cap}:{wait_s}")),
            cap: Some(cap),
        }
    }
}

/// The load of the subjects whose requests are counted once.
#[derive(Default)]
struct Measured {
    seconds: f64,
    operations: Option<f64>,
    bytes: Option<f64>,
    timed: f64,
    ns: f64,
    latencies: Latencies,
}

impl Measured {
    fn new(case: &Case<'_>) -> Self {
        let mut all = Self::default();
        for judged in case.all().filter(|judged| judged.subject.is_meter) {
            let facts = judged.facts;
            all.seconds = all.seconds.max(facts.seconds());
            let add = |sum: &mut Option<f64>, own: Option<f64>| {
                *sum = own.map(|own| own + sum.unwrap_or(0.0)).or(*sum);
            };
            add(&mut all.operations, facts.total.operations);
            add(&mut all.bytes, facts.total.bytes);
            let whole = facts.whole.all();
            all.timed += whole.operations;
            all.ns += whole.ns;
            all.latencies.add(&facts.latency);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_the_reason_of_a_row() {
        let check = |result: Result<Row, String>, expect: &str| {
            assert_eq!(result.expect_err("a reason"), expect);
        };
        check(caught(|| Err("no file".to_owned())), "no file");
        check(caught(|| panic!("out of bounds")), "the diagnosis failed: out of bounds");
        check(caught(|| panic!("sample {}", 7)), "the diagnosis failed: sample 7");
        assert_eq!(caught(|| Ok(Row::default())), Ok(Row::default()));
    }
}
