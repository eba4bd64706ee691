//! Differences, their test, the verdict and the report.

use crate::error::CompareError;
use crate::measured::Measured;
use crate::profile::{Data, Profile, Row, Subject};
use crate::side::{Kind, Options, Request};
use crate::stats::{
    BATCHES, FLOOR, LEAST_SAMPLES, SIGNIFICANCE, Tested, Untested, corrected, test,
};
use std::collections::{BTreeMap, BTreeSet};
use weir_report::comparison::{
    Better, ComparisonReport, DecidingMetric, DifferenceOutcome, MetricReport, PairReport,
    SideReport,
};
use weir_report::number::{Amount, Delta, percent};

/// Subjects that are compared unless some are named, those with the most load.
const SUBJECTS: usize = 6;

/// Difference of a wait, in requests, below which it is never reported.
const WAIT_FLOOR: f64 = 0.05;

/// Names listed in a message.
const LISTED: usize = 6;

/// A metric that both sides have.
struct Pair<'a> {
    one: &'a Row,
    other: &'a Row,
    tested: Result<Tested, Untested>,
}

/// Builds the report of measured sides.
pub(crate) fn report(
    kind: Kind,
    mut sides: Vec<Measured>,
    request: &Request<'_>,
) -> Result<ComparisonReport, CompareError> {
    let options = request.options;
    rename(&mut sides, &options.map)?;
    let Some((first, others)) = sides.split_first() else { return Err(CompareError::OneSide) };
    let mut all: Vec<Vec<Pair<'_>>> = Vec::new();
    for other in others {
        all.push(pairs(first, other, options)?);
    }
    let probabilities: Vec<f64> =
        all.iter().flatten().filter_map(|pair| pair.tested.ok()).map(|own| own.p).collect();
    if probabilities.is_empty() {
        return Err(nothing_tested(kind, first, others));
    }
    let tested = probabilities.len();
    let mut probabilities = corrected(&probabilities).into_iter();
    let mut comparisons = Vec::new();
    for (place, own) in all.iter().enumerate() {
        let metrics = own.iter().map(|pair| {
            let p = pair.tested.ok().and_then(|_| probabilities.next());
            metric(pair, p, options)
        });
        comparisons.push(PairReport { side: letter(place + 1), metrics: metrics.collect() });
    }
    let decided_by = deciding(&comparisons, options.tolerance);
    let undecided = match decided_by {
        Some(_) => None,
        None => undecided(&comparisons, options.tolerance),
    };
    let mut notes: Vec<String> = sides.iter().flat_map(|side| side.notes.clone()).collect();
    let is_selected = options.total_only || !options.subjects.is_empty();
    for (place, other) in others.iter().enumerate().filter(|_| !is_selected) {
        notes.extend(not_common(first, other, &letter(place + 1)));
    }
    notes.extend(unjudged(&all));
    notes.dedup();
    Ok(ComparisonReport {
        is_worse: decided_by.is_some(),
        is_undecided: undecided.is_some(),
        verdict: undecided
            .unwrap_or_else(|| verdict(&comparisons, decided_by.as_ref(), options.tolerance)),
        decided_by,
        tolerance: options.tolerance,
        significance: SIGNIFICANCE,
        test: words_of_test(kind, &all),
        tested,
        sides: side_reports(&sides),
        comparisons,
        notes,
    })
}

/// Returns the letter of a side.
fn letter(place: usize) -> String {
    let letter = u8::try_from(place).ok().and_then(|place| b'A'.checked_add(place));
    match letter.filter(u8::is_ascii_uppercase) {
        Some(letter) => char::from(letter).to_string(),
        None => format!("S{}", place + 1),
    }
}

/// Gives subjects of later sides the names that they have in the first, all at once, so that two
/// can exchange their names.
fn rename(sides: &mut [Measured], map: &[(String, String)]) -> Result<(), CompareError> {
    for (at, (from, to)) in map.iter().enumerate() {
        let twice = map[..at].iter().find(|(own, other)| own == from || other == to);
        if let Some((own, _)) = twice {
            let name = if own == from { from } else { to };
            return Err(CompareError::MappedTwice { name: name.clone() });
        }
    }
    let (mut found, mut known) = (BTreeSet::new(), BTreeSet::new());
    for side in sides.iter_mut().skip(1) {
        let mut names: BTreeMap<(String, String), String> = BTreeMap::new();
        for row in &mut side.profile.rows {
            let subject = &mut row.subject;
            if subject.is_sum() {
                continue;
            }
            let old = subject.name.clone();
            known.insert(old.clone());
            if let Some((from, to)) = map.iter().find(|(from, _)| *from == old) {
                found.insert(from.clone());
                subject.name.clone_from(to);
            }
            let key = (subject.kind.clone(), subject.name.clone());
            let before = names.entry(key).or_insert_with(|| old.clone());
            if *before != old {
                let name = subject.name.clone();
                let (one, other) = (before.clone(), old);
                return Err(CompareError::SameName { side: side.name.clone(), name, one, other });
            }
        }
    }
    match map.iter().find(|(from, _)| !found.contains(from)) {
        Some((from, _)) => Err(unknown("--map", "subject", from, &known)),
        None => Ok(()),
    }
}

/// Names the subjects that only one of two sides has.
fn not_common(first: &Measured, other: &Measured, letter: &str) -> Vec<String> {
    let note = |own: &Measured, than: &Measured, letter: &str| {
        let known = than.profile.subjects();
        let subjects = own.profile.subjects().into_iter();
        let only = subjects.filter(|own| !own.is_sum() && own.kind != "layout");
        let only = only.filter(|own| !known.contains(own));
        let names: Vec<String> = only.map(|own| format!("{} {own}", own.kind)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (!names.is_empty())
            .then(|| format!("not compared, since only {letter} has them: {}", listed(&names)))
    };
    [note(first, other, "A"), note(other, first, letter)].into_iter().flatten().collect()
}

fn unknown(
    option: &'static str,
    what: &'static str,
    name: &str,
    known: &BTreeSet<String>,
) -> CompareError {
    let near = weir_units::nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    CompareError::Unknown { option, what, name: name.to_owned(), near, known: listed(&known) }
}

/// Joins the first names, and counts the rest.
fn listed(names: &[&str]) -> String {
    let more = match names.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    if first.is_empty() { "none".to_owned() } else { format!("{first}{more}") }
}

/// Pairs the metrics of the compared subjects, and tests each.
fn pairs<'a>(
    first: &'a Measured,
    other: &'a Measured,
    options: &Options,
) -> Result<Vec<Pair<'a>>, CompareError> {
    let subjects = subjects(first, other, options)?;
    let mut all = Vec::new();
    let mut metrics = BTreeSet::new();
    for row in first.profile.rows.iter().filter(|row| subjects.contains(&row.subject)) {
        let Some(counterpart) = other.profile.find(&row.subject, &row.metric.name) else {
            continue;
        };
        metrics.insert(row.metric.name.clone().into_owned());
        let values = [row.data.value(), counterpart.data.value()];
        // Waits that neither side has would only be a burden of the correction.
        if !row.metric.decides && values.iter().all(|own| own.is_none_or(|own| own.abs() < 1e-3)) {
            continue;
        }
        all.push(Pair {
            one: row,
            other: counterpart,
            tested: tested(&row.data, &counterpart.data),
        });
    }
    if let Some(missing) = options.metrics.iter().find(|own| !metrics.contains(*own)) {
        return Err(unknown("--metric", "metric", missing, &metrics));
    }
    Ok(all)
}

/// Tests a pair of values. Values with a stated tolerance differ if they differ by more.
fn tested(one: &Data, other: &Data) -> Result<Tested, Untested> {
    if let (Data::One(one, Some(allowed)), Data::One(other, Some(_))) = (one, other) {
        let is_within = (other - one).abs() <= allowed * one.abs();
        return Ok(Tested { p: if is_within { 1.0 } else { 0.0 }, interval: None });
    }
    let values = one.values(other).zip(other.values(one));
    let (one, other) = values.ok_or(Untested::TooFew)?;
    test(&one, &other)
}

/// Returns the subjects to compare: those that are asked for, or the sums and those with the most
/// load.
fn subjects(
    first: &Measured,
    other: &Measured,
    options: &Options,
) -> Result<Vec<Subject>, CompareError> {
    let of_other = other.profile.subjects();
    let common: Vec<&Subject> = first.profile.subjects();
    let common: Vec<&Subject> = common.into_iter().filter(|own| of_other.contains(own)).collect();
    let is_load = |own: &&&Subject| own.kind != "layout" && !own.is_sum();
    let named: BTreeSet<String> =
        common.iter().filter(is_load).map(|own| own.name.clone()).collect();
    if let Some(missing) = options.subjects.iter().find(|own| !named.contains(*own)) {
        return Err(unknown("--subject", "subject", missing, &named));
    }
    let is_wanted = |own: &&Subject| own.kind != "layout" && own.is_sum() == options.total_only;
    let has_run = common.iter().any(|own| own.is_sum() && own.kind == "job");
    if !common.iter().any(is_wanted) && !has_run {
        return Err(CompareError::NothingCommon {
            one: first.name.clone(),
            of_one: names_of(&first.profile),
            other: other.name.clone(),
            of_other: names_of(&other.profile),
        });
    }
    let is_asked = |own: &Subject| match () {
        () if own.kind == "layout" => true,
        () if options.total_only => own.is_sum(),
        () if options.subjects.is_empty() => true,
        () => options.subjects.contains(&own.name),
    };
    let mut kept: Vec<&Subject> = common.into_iter().filter(|own| is_asked(own)).collect();
    if options.subjects.is_empty() {
        let profiles = [&first.profile, &other.profile];
        let busiest = busiest(&kept, profiles);
        // The sum of one subject is that subject.
        let is_sum_of_several = |sum: &Subject| {
            let is_part = |own: &&Subject| own.kind == sum.kind && !own.is_sum();
            let count = |own: &Profile| own.subjects().into_iter().filter(is_part).count();
            sum.kind == "job"
                || options.total_only
                || profiles.into_iter().any(|own| count(own) > 1)
        };
        kept.retain(|own| match own.is_sum() {
            true => is_sum_of_several(own),
            false => own.kind == "layout" || busiest.contains(own),
        });
    }
    Ok(kept.into_iter().cloned().collect())
}

fn names_of(profile: &Profile) -> String {
    let subjects = profile.subjects().into_iter();
    let names = subjects.filter(|own| own.kind != "layout" && !own.is_sum());
    let names: Vec<String> = names.map(|own| format!("{} {own}", own.kind)).collect();
    listed(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns the subjects of each kind with the most load on both sides.
fn busiest<'a>(subjects: &[&'a Subject], profiles: [&Profile; 2]) -> Vec<&'a Subject> {
    let mut kinds: BTreeMap<&str, Vec<(f64, &Subject)>> = BTreeMap::new();
    for own in subjects.iter().filter(|own| !own.is_sum()) {
        let load = |metric: &str, unit: f64| -> f64 {
            let rows = profiles.iter().filter_map(|profile| profile.find(own, metric));
            rows.filter_map(|row| row.data.value()).sum::<f64>() / unit
        };
        // A request of 64 KiB counts as much as an operation.
        let load = load("iops", 1.0) + load("throughput", f64::from(1 << 16));
        kinds.entry(&own.kind).or_default().push((load, own));
    }
    for all in kinds.values_mut() {
        all.sort_by(|one, other| other.0.total_cmp(&one.0));
        all.truncate(SUBJECTS);
    }
    kinds.into_values().flatten().map(|(_, own)| own).collect()
}

fn metric(pair: &Pair<'_>, p: Option<f64>, options: &Options) -> MetricReport {
    let Pair { one, other, tested } = pair;
    let (a, b) = (one.data.value().unwrap_or(0.0), other.data.value().unwrap_or(0.0));
    let change = (a != 0.0).then(|| (b - a) / a.abs());
    let is_above_floor = match one.metric.name.starts_with("waiting ") {
        true => (b - a).abs() >= WAIT_FLOOR && change.is_none_or(|own| own.abs() >= FLOOR),
        false => change.is_none_or(|own| own.abs() >= FLOOR),
    };
    let outcome = match (p, one.metric.better) {
        (None, _) => DifferenceOutcome::NotTested,
        (Some(p), _) if p >= SIGNIFICANCE || !is_above_floor => DifferenceOutcome::Noise,
        (Some(_), Better::Neither) => DifferenceOutcome::Different,
        (Some(_), Better::Higher) if b > a => DifferenceOutcome::Better,
        (Some(_), Better::Lower) if b < a => DifferenceOutcome::Better,
        (Some(_), _) => DifferenceOutcome::Worse,
    };
    let interval = tested.ok().and_then(|own| own.interval);
    let decides = match options.metrics.is_empty() {
        true => one.metric.decides,
        false => options.metrics.contains(one.metric.name.as_ref()),
    };
    MetricReport {
        kind: one.subject.kind.clone(),
        subject: one.subject.to_string(),
        metric: one.metric.name.clone().into_owned(),
        unit: one.metric.unit,
        better: one.metric.better,
        decides,
        a,
        b,
        change,
        change_low: interval.map(|own| own.0),
        change_high: interval.map(|own| own.1),
        p,
        outcome,
    }
}

/// Returns the metric that is worse by the most, if that is more than the tolerance.
fn deciding(comparisons: &[PairReport], tolerance: f64) -> Option<DecidingMetric> {
    let is_sum = |own: &&MetricReport| own.subject == Subject::sum(&own.kind).to_string();
    let mut worst: Option<(f64, DecidingMetric)> = None;
    for pair in comparisons {
        let deciding = pair.metrics.iter().filter(|own| own.decides);
        // A sum ties with the only disk that has a load, whose name says more.
        let (sums, single): (Vec<_>, Vec<_>) = deciding.partition(is_sum);
        for own in single.into_iter().chain(sums) {
            let is_worse =
                matches!(own.outcome, DifferenceOutcome::Worse | DifferenceOutcome::Different);
            // Without a first value, any value is more than every share of it.
            let change = own.change.unwrap_or(f64::INFINITY);
            if !is_worse || change.abs() <= tolerance {
                continue;
            }
            // A rate can fall by its whole, a latency can grow by any factor.
            let factor = factor(change);
            if worst.as_ref().is_none_or(|(known, _)| factor > *known) {
                let metric = DecidingMetric {
                    side: pair.side.clone(),
                    subject: own.subject.clone(),
                    metric: own.metric.clone(),
                    change: if change.is_finite() { change } else { f64::MAX },
                };
                worst = Some((factor, metric));
            }
        }
    }
    worst.map(|(_, own)| own)
}

/// Returns the verdict of a comparison that cannot decide: a metric that decides has moved by more
/// than the tolerance and was not tested, or none of a side was tested.
fn undecided(comparisons: &[PairReport], tolerance: f64) -> Option<String> {
    for pair in comparisons {
        let deciding = || pair.metrics.iter().filter(|own| own.decides);
        let is_untested = |own: &&MetricReport| own.outcome == DifferenceOutcome::NotTested;
        let moved = |own: &MetricReport| match own.change {
            Some(change) => factor(change),
            None if own.a == own.b => 1.0,
            None => f64::INFINITY,
        };
        let is_beyond = |own: &&MetricReport| match own.change {
            Some(change) => change.abs() > tolerance,
            None => own.a != own.b,
        };
        let untested = deciding().filter(is_untested).filter(is_beyond);
        let most = untested.max_by(|one, other| moved(one).total_cmp(&moved(other)));
        let side = &pair.side;
        if let Some(own) = most {
            let change = match own.change {
                Some(change) => {
                    let direction = if change < 0.0 { "lower" } else { "higher" };
                    format!("is {} {direction}", percent(change.abs()))
                }
                None => "is not zero".to_owned(),
            };
            return Some(format!(
                "Cannot tell whether {side} is worse than A: {} of {} {change}, more than the \
                 tolerance of {}, and could not be tested",
                own.metric,
                own.subject,
                percent(tolerance)
            ));
        }
        if deciding().all(|own| own.outcome == DifferenceOutcome::NotTested) {
            return Some(format!(
                "Cannot tell whether {side} is worse than A: no metric that decides could be tested"
            ));
        }
    }
    None
}

/// Returns the factor by which a value differs, above 1 in both directions.
fn factor(change: f64) -> f64 {
    let ratio = (1.0 + change).max(1e-9);
    ratio.max(1.0 / ratio)
}

fn verdict(
    comparisons: &[PairReport],
    decided_by: Option<&DecidingMetric>,
    tolerance: f64,
) -> String {
    if let Some(own) = decided_by {
        let direction = if own.change < 0.0 { "lower" } else { "higher" };
        return format!(
            "{} is worse than A: {} of {} is {} {direction}, more than noise and than the tolerance of {}",
            own.side,
            own.metric,
            own.subject,
            percent(own.change.abs()),
            percent(tolerance)
        );
    }
    let others: Vec<&str> = comparisons.iter().map(|pair| pair.side.as_str()).collect();
    let (others, verb) = (others.join(", "), if others.len() > 1 { "are" } else { "is" });
    let all = || comparisons.iter().flat_map(|pair| &pair.metrics);
    let count = |outcome| all().filter(|own| own.decides && own.outcome == outcome).count();
    let (better, worse) = (count(DifferenceOutcome::Better), count(DifferenceOutcome::Worse));
    let within = format!("within the tolerance of {}", percent(tolerance));
    match (better, worse + count(DifferenceOutcome::Different)) {
        (0, 0) => {
            format!("{others} {verb} like A: no tested rate or latency differs by more than noise")
        }
        (0, worse) => {
            format!("{others} {verb} worse than A, {within}: metrics that are worse: {worse}")
        }
        (better, 0) => format!("{others} {verb} better than A: metrics that are better: {better}"),
        (better, worse) => format!(
            "{others} {verb} better and worse than A, {within}: metrics that are better: {better}, worse: \
             {worse}"
        ),
    }
}

/// Explains why differences were not judged.
fn unjudged(all: &[Vec<Pair<'_>>]) -> Vec<String> {
    let count =
        |reason: Untested| all.iter().flatten().filter(|pair| pair.tested == Err(reason)).count();
    let mut notes = Vec::new();
    let dependent = count(Untested::TooDependent);
    if dependent > 0 {
        notes.push(format!(
            "not tested: {dependent}, since they drift or change slowly for the length of the \
             observation; observe longer"
        ));
    }
    let few = count(Untested::TooFew);
    if few > 0 {
        notes.push(format!(
            "not tested: {few}, of which there is one value or too few samples; compare folders with \
             repeated runs to test them"
        ));
    }
    notes
}

fn nothing_tested(kind: Kind, first: &Measured, others: &[Measured]) -> CompareError {
    let sides = std::iter::once(first).chain(others);
    let shortest = sides.min_by_key(|side| side.profile.samples).unwrap_or(first);
    let (has, needs) = match kind {
        Kind::Observation => (
            "no metric has enough independent samples".to_owned(),
            format!(
                "at least {LEAST_SAMPLES} samples with reads or writes are needed, over a time in which the \
                 load does not drift; observe longer"
            ),
        ),
        Kind::Result | Kind::Layout => (
            match shortest.profile.samples {
                0 | 1 => "it has one value of each metric".to_owned(),
                n => format!("it has {n} values of each metric"),
            },
            format!(
                "noise is judged by several: give folders with at least 3 results each, or give --every to \
                 the runs so that they have at least {LEAST_SAMPLES} intervals"
            ),
        ),
    };
    CompareError::TooShort { name: shortest.name.clone(), has, needs }
}

fn words_of_test(kind: Kind, all: &[Vec<Pair<'_>>]) -> String {
    let mut pairs = all.iter().flatten();
    let test = match kind {
        _ if pairs.clone().all(|pair| matches!(pair.one.data, Data::One(..))) => {
            return "Test: a figure differs if it moves by more than its own tolerance.".to_owned();
        }
        Kind::Layout => "Welch's t test of simulations with different seeds",
        _ if pairs.any(|pair| matches!(pair.one.data, Data::Separate(_))) => {
            "Welch's t test of repeated runs"
        }
        _ => {
            return format!(
                "Test: Welch's t test of {BATCHES} batch means for each metric, corrected for dependent \
                 samples, and by Holm's method for several metrics."
            );
        }
    };
    format!("Test: {test}, corrected for several metrics by Holm's method.")
}

fn side_reports(sides: &[Measured]) -> Vec<SideReport> {
    let first = sides.first().and_then(|side| side.price.as_ref());
    let report = |(place, side): (usize, &Measured)| {
        let price = side.price.as_ref();
        let difference = first.zip(price).filter(|_| place > 0).and_then(|(first, own)| {
            let is_comparable =
                first.currency == own.currency && first.bill.is_comparable(&own.bill);
            is_comparable.then(|| Delta::between(first.month, own.month))
        });
        SideReport {
            side: letter(place),
            name: side.name.clone(),
            samples: side.profile.samples,
            seconds: side.profile.seconds,
            diagnosis: side.verdict.as_ref().map(|own| own.verdict.words()),
            diagnosis_summary: side.verdict.as_ref().map(|own| own.summary.clone()),
            month: price.map(|own| Amount(own.month)),
            unpriced: price.map_or(0, |own| own.unpriced),
            currency: price.map(|own| own.currency.clone()),
            price_basis: price.map(|own| own.basis.clone()),
            month_difference: difference,
        }
    };
    sides.iter().enumerate().map(report).collect()
}
