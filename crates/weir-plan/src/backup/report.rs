//! Answers of the backup planner as the report type of `weir-report`.

use super::answer::{Answer, Binding, Choice, Outcome, Relaxation};
use super::question::Question;
use crate::report::{lines, month};
use crate::share::WHOLE;
use weir_report::backup_plan::{BackupChoice, BackupPlanReport, BackupRelaxation};
use weir_report::number::float;
use weir_units::{Bytes, BytesPerSec, Span};

fn seconds(span: Span) -> f64 {
    float(span.nanos()) / 1e9
}

/// Returns the report of an outcome, with notes that come before its own.
#[must_use]
pub fn backup_report(
    question: &Question<'_>,
    outcome: Outcome,
    notes: Vec<String>,
) -> BackupPlanReport {
    let size = question.size;
    let mut report = BackupPlanReport {
        size_bytes: size.get(),
        within_s: seconds(question.within),
        max_slowdown: question.beside.map(|own| float(own.max_slowdown) / float(WHOLE)),
        edition: question.edition.name().to_owned(),
        region: question.prices.map(|book| book.region().to_owned()),
        currency: question.prices.map(|book| book.currency().to_owned()),
        notes,
        ..BackupPlanReport::default()
    };
    match outcome {
        Outcome::Met(answer) => {
            let Answer { plan, cheaper, better, simulated, excluded, notes } = *answer;
            report.is_met = true;
            let mut own = choice(&plan, size);
            own.reasons = reasons(&plan, better.as_ref());
            report.plan = Some(own);
            report.cheaper = cheaper.map(|own| choice(&own, size));
            report.better = better.map(|own| choice(&own, size));
            (report.simulated, report.excluded) = (simulated, excluded);
            report.notes.extend(notes);
        }
        Outcome::NotMet(own) => {
            report.fastest = Some(choice(&own.fastest, size));
            let relaxation = |own: &Relaxation| BackupRelaxation {
                what: own.what.clone(),
                then: own.then.as_ref().map(|own| choice(own, size)),
            };
            report.relaxations = own.relaxations.iter().map(relaxation).collect();
            report.simulated = own.simulated;
            report.notes.extend(own.notes);
        }
    }
    report
}

fn choice(own: &Choice, size: Bytes) -> BackupChoice {
    let (binding, limit, words) = bound(&own.binding);
    BackupChoice {
        disks: own.disks.clone(),
        family: own.family.clone(),
        tier: own.tier.clone(),
        count: own.count,
        stripes_per_disk: own.settings.stripes,
        stripes: own.stripes(),
        max_transfer_bytes: own.settings.transfer.get(),
        buffer_count: own.buffer_count,
        limit_bytes_per_s: own.limit.map(BytesPerSec::get),
        duration_s: seconds(own.duration),
        mib_per_s: float(size.get()) / f64::from(1 << 20) / seconds(own.duration),
        is_extrapolated: own.is_extrapolated,
        month: month(own.cost.month, own.cost.unpriced),
        unpriced: own.cost.unpriced,
        binding: binding.to_owned(),
        binding_limit: limit,
        binding_words: words,
        slowdown_throughput: own.slowdown.map(|own| own.throughput),
        slowdown_response: own.slowdown.map(|own| own.response),
        lines: lines(&own.lines),
        reasons: Vec::new(),
        exports: Vec::new(),
        layout: own.layout.clone(),
        backup: own.backup.clone(),
    }
}

/// Returns what binds: its kind, its limit, and in words.
fn bound(binding: &Binding) -> (&'static str, Option<String>, String) {
    match binding {
        Binding::Machine { limit } => {
            let words = format!("the machine ({limit}, shared by reads and writes)");
            ("machine", Some(limit.clone()), words)
        }
        Binding::Source { place, limit } => {
            ("source", Some(limit.clone()), format!("the source {place} ({limit})"))
        }
        Binding::Target { limit, .. } => {
            ("target", Some(limit.clone()), format!("the targets ({limit} of each disk)"))
        }
        Binding::Compression => ("compression", None, "compression".to_owned()),
        Binding::Limit => ("limit", None, "the limit of the backup".to_owned()),
        Binding::Latency => ("latency", None, "the latency of transfers".to_owned()),
    }
}

fn reasons(plan: &Choice, better: Option<&Choice>) -> Vec<String> {
    let mut all = vec![format!(
        "no other stripes and transfers on these disks are faster by more than 1 %; buffers: {} of {} \
         each",
        plan.buffer_count, plan.settings.transfer
    )];
    if let Some(limit) = plan.limit {
        all.push(format!(
            "its reads are limited: weir backup run --limit \"{limit}\"; SQL Server has no such option"
        ));
    }
    if let Some(slowdown) = plan.slowdown {
        all.push(format!(
            "it costs the databases {} of their throughput and makes their transactions {} longer",
            weir_report::number::percent(slowdown.throughput),
            weir_report::number::percent(slowdown.response)
        ));
    }
    let fewer = better.filter(|own| own.cost.month < plan.cost.month);
    if let Some(better) = fewer {
        all.push(format!(
            "{} disks cost less than {} by less than 1 %: fewer disks are preferred",
            better.count, plan.count
        ));
    }
    if better.is_none() {
        all.push("no disks make it 5 % faster".to_owned());
    }
    all
}
