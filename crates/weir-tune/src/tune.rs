//! From a layout that misses its goal to the cheapest one that reaches it, step by step.

use crate::clients;
use crate::counters::decide_within_buckets;
use crate::downtime::{LEFT_OUT, downtime};
use crate::error::TuneError;
use crate::fit::smaller;
use crate::goal::Goal;
use crate::limit::{Place, words};
use crate::load::Load;
use crate::measure::{Bench, Effort, Measured, note_on_caches};
use crate::price::Price;
use crate::search::{Allows, Bounds, Found, Outcome, Search, Stop};
use crate::system::{Simulated, System, SystemError, Undone};
use weir_diagnose::Change;
use weir_layout::{File, Layout};
use weir_report::number::{Amount, Delta, float, percent, rate, time};
use weir_report::tune::{TuneEnd, TuneMetric, TunePrice, TuneReport, TuneState, TuneStep};
use weir_units::Money;

/// Most steps.
pub const MOST_STEPS: usize = 5;

/// A step did not bring what was predicted if a rate or latency differs by more than this share.
pub const ALIKE: f64 = 0.05;

/// The note on latencies that counters cannot tell apart from their target.
const BUCKETS: &str = "a server counts latencies in buckets that end at 1, 2, 5, 10 ms and so on; one in \
    the bucket of its target counts as met";

/// Options of a search for changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TuneOptions {
    /// Highest price per month.
    pub budget: Option<Money>,
    /// Most layouts to simulate; 400 by default.
    pub simulations: Option<usize>,
    /// True if changes with downtime are left out.
    pub no_downtime: bool,
    /// True if changes stay on a running system although they do not reach the goal.
    pub keeps: bool,
}

/// A tuned layout: its text, and the record of how it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The text of the layout after the last step.
    pub text: String,
    /// The record.
    pub report: TuneReport,
}

/// Changes the layout in `text`, which messages call `name`, step by step in simulation until the
/// goal is reached.
///
/// # Errors
///
/// [`TuneError`] if the load does not run on the layout, or the goal does not fit the load.
pub fn tune(
    name: &str,
    text: &str,
    bench: &Bench<'_>,
    goal: &Goal,
    options: TuneOptions,
) -> Result<Tuned, TuneError> {
    tune_on(&mut Simulated::new(bench), (name, text), bench, goal, options)
}

/// Changes a system, whose layout is in the text after its name, step by step until the goal is
/// reached. Effects are predicted by simulations of the load.
///
/// Changes of a running system are undone unless they reach the goal, or the options keep them.
///
/// # Errors
///
/// [`TuneError`] if the load does not run on the layout, the goal does not fit the load, or the
/// system cannot be measured. No change is applied then.
pub fn tune_on(
    system: &mut dyn System,
    (name, text): (&str, &str),
    bench: &Bench<'_>,
    goal: &Goal,
    options: TuneOptions,
) -> Result<Tuned, TuneError> {
    goal.check(&bench.load)?;
    let layout = Layout::parse(name, text, bench.catalog)?;
    let predicted = match system.is_simulated() {
        true => Measured::default(),
        false => bench.measure(name, text, Effort::Prediction)?,
    };
    let price = Price::of_layout(&layout, bench.catalog)?;
    if options.budget.is_some() && price.currency.is_none() {
        return Err(TuneError::NoPrices);
    }
    let present = Present { text: text.to_owned(), layout, measured: Measured::default(), price };
    let too_small = too_small(&present.layout, bench);
    let is_too_small = !too_small.is_empty();
    let mut report = TuneReport {
        goal: goal.words(&bench.load),
        budget: options.budget.map(Amount),
        notes: too_small,
        ..TuneReport::default()
    };
    report.notes.extend(note_on_caches(&present.layout, &bench.load));
    let start = present.clone();
    let bench = bench.clone();
    let mut walk = Walk { system, bench, goal, start, present, is_measured: false, report };
    if walk.begin(&predicted)? {
        walk.search(options)?;
    }
    if walk.report.end != TuneEnd::Reached {
        if !options.keeps {
            walk.undo();
        }
    } else if is_too_small {
        walk.report.verdict.push_str(", but the machine is smaller than the need");
    }
    Ok(walk.finish())
}

/// Says what a machine has less of than the need asks for.
fn too_small(layout: &Layout, bench: &Bench<'_>) -> Vec<String> {
    let needs = match &bench.load {
        Load::Needs(needs) => needs.as_slice(),
        Load::Jobs(_) | Load::Databases(..) => &[],
    };
    let all = needs.iter().flat_map(|own| smaller(layout, own, bench.catalog));
    all.map(|own| format!("{own}; tune does not change that")).collect()
}

/// A layout with its load.
#[derive(Clone)]
struct Present {
    text: String,
    layout: Layout,
    measured: Measured,
    price: Price,
}

/// The walk from layout to layout.
struct Walk<'a> {
    system: &'a mut dyn System,
    bench: Bench<'a>,
    goal: &'a Goal,
    start: Present,
    present: Present,
    /// Set once the present layout was measured.
    is_measured: bool,
    report: TuneReport,
}

impl Walk<'_> {
    /// Measures the system before any change. Returns whether changes are to be searched for.
    fn begin(&mut self, predicted: &Measured) -> Result<bool, TuneError> {
        if self.system.is_interrupted() {
            self.interrupted();
            return Ok(false);
        }
        let measured = self.system.measure(&self.present.text, &self.present.layout, predicted);
        match measured {
            Ok(measured) => self.present.measured = self.decided(measured),
            Err(SystemError::Tune(error)) => return Err(*error),
            Err(SystemError::Failed(reason)) => return Err(TuneError::System(reason)),
            Err(SystemError::Interrupted) => {
                self.interrupted();
                return Ok(false);
            }
        }
        if self.present.measured.iops <= 0.0 {
            return Err(TuneError::NoLoad);
        }
        self.is_measured = true;
        self.start = self.present.clone();
        self.report.before = self.state();
        // Nothing was predicted for a simulated system.
        if !self.system.is_simulated() {
            let predicted = self.predict_with_clients(predicted.clone())?;
            let (apart, _) = deviation(&predicted, &self.present.measured, false);
            if apart > self.system.tolerance() {
                let words = format!(
                    "the simulation of the load differs from the measurement by {} before any change \
                     ({} predicted, {} measured); the load or the layout is not that of the server",
                    percent(apart),
                    figures(&predicted),
                    figures(&self.present.measured)
                );
                self.end(TuneEnd::Unpredicted, words);
                return Ok(false);
            }
        }
        if self.goal.is_met(&self.present.measured) {
            self.end(TuneEnd::Reached, "the goal is reached already".to_owned());
            return Ok(false);
        }
        if let Some(lack) = self.lack().filter(|_| !self.system.is_simulated()) {
            let words =
                format!("{lack}: resize the volume first, which tune does not do on a server");
            self.end(TuneEnd::Exhausted, words);
            return Ok(false);
        }
        Ok(true)
    }

    /// Includes the clients' own time in all further predictions, if the one for the present layout then deviates
    /// less than `predicted`. Returns the better one.
    fn predict_with_clients(&mut self, predicted: Measured) -> Result<Measured, TuneError> {
        let Some(own) = clients::time_of(&self.bench.load, &self.present.measured) else {
            return Ok(predicted);
        };
        let load = clients::with_time(&self.bench.load, own);
        let bench = Bench { load, ..self.bench.clone() };
        let with_clients = bench.measure("layout.toml", &self.present.text, Effort::Prediction)?;
        let apart = |own| deviation(own, &self.present.measured, false).0;
        if apart(&with_clients) > apart(&predicted) {
            return Ok(predicted);
        }
        self.report.notes.push(format!(
            "clients take {} from an answer to their next request, fitted to the measurement before any change; \
             predictions include it",
            time(float(own.nanos()))
        ));
        self.bench = bench;
        Ok(with_clients)
    }

    /// Searches for changes that reach the goal, and applies them.
    fn search(&mut self, options: TuneOptions) -> Result<(), TuneError> {
        let bounds = Bounds {
            budget: options.budget,
            changes: MOST_STEPS,
            simulations: options.simulations.unwrap_or(400),
            must_be_sure: !self.system.is_simulated(),
            no_downtime: options.no_downtime,
            avoids_outages: true,
        };
        let (outcome, visits, obstacle) = {
            let system = &*self.system;
            let allows = |change: &Change, layout: &Layout| system.can_apply(change, layout);
            let stop = || system.is_interrupted();
            let start = (self.present.text.as_str(), &self.present.measured);
            let limits: (Bounds, Allows<'_>, Stop<'_>) = (bounds, &allows, &stop);
            let mut search = Search::from(&self.bench, self.goal, limits, start)?;
            let outcome = search.run()?;
            self.report.simulated = search.simulations;
            let is_short = !matches!(outcome, Outcome::Reached(_)) && search.left_out > 0;
            self.report.notes.extend(is_short.then(|| LEFT_OUT.to_owned()));
            let too_low = search.too_low.map(|limit| {
                format!("the need exceeds the {limit}, and nothing on offer raises it far enough")
            });
            (outcome, search.visits, search.out_of_reach.or(too_low))
        };
        match outcome {
            Outcome::Reached(found) => {
                if let Err(error) = self.follow(found) {
                    return Err(match self.system.undo() {
                        Ok(_) => error,
                        Err(reason) => TuneError::System(format!("{error}; {reason}")),
                    });
                }
            }
            Outcome::BeyondBudget(found) => self.beyond(&found, options.budget),
            Outcome::Exhausted => self.exhausted(obstacle),
            Outcome::Interrupted => self.interrupted(),
            Outcome::Stopped => {
                let words = format!(
                    "none of the {visits} cheapest changed layouts reaches the goal ({} were \
                     simulated, the others are below a limit that is too low); raise --simulations \
                     to look further",
                    self.report.simulated
                );
                self.end(TuneEnd::Stopped, words);
            }
        }
        Ok(())
    }

    fn end(&mut self, end: TuneEnd, verdict: String) {
        (self.report.end, self.report.verdict) = (end, verdict);
    }

    /// Returns a measurement, with the latencies of a running system judged as far as they are known.
    fn decided(&mut self, mut measured: Measured) -> Measured {
        let has_unsure =
            !self.system.is_simulated() && decide_within_buckets(&mut measured, self.goal);
        let is_new = self.report.notes.iter().all(|own| own != BUCKETS);
        if has_unsure && is_new {
            self.report.notes.push(BUCKETS.to_owned());
        }
        measured
    }

    fn interrupted(&mut self) {
        self.end(TuneEnd::Interrupted, "interrupted".to_owned());
    }

    /// Undoes all changes of a running system.
    fn undo(&mut self) {
        match self.system.undo() {
            Ok(Undone { changes, .. }) if changes.is_empty() => {}
            Ok(Undone { changes, stay }) => {
                self.report.verdict.push_str("; all changes are undone");
                if !stay.is_empty() {
                    self.report.verdict +=
                        &format!(", except for files in use, which stay: {}", stay.join(", "));
                }
                self.report.undone = changes;
                self.present = self.start.clone();
                self.is_measured = true;
            }
            Err(reason) => {
                let verdict = &mut self.report.verdict;
                let is_known = verdict.contains(&reason);
                verdict.push_str("; the changes could not be undone");
                if !is_known {
                    verdict.push_str(": ");
                    verdict.push_str(&reason);
                }
            }
        }
    }

    /// Describes the present layout.
    fn state(&self) -> TuneState {
        let place = self.present.measured.binding();
        TuneState {
            metrics: metrics(self.goal, &self.bench.load, &self.present.measured),
            waited: self.present.measured.waited(),
            binding_limit: place.map(|(place, _)| place.cap.name().to_owned()),
            limit_of: place.map(|(place, _)| place.name(&self.present.layout)),
            month: self.month(),
        }
    }

    fn month(&self) -> Option<Amount> {
        let price = &self.present.price;
        price.currency.as_ref().map(|_| Amount(price.month()))
    }

    /// Applies the changes that a search found, and measures after each.
    fn follow(&mut self, found: Found) -> Result<(), TuneError> {
        let Found { changes: mut rest, text, .. } = found;
        while !rest.is_empty() {
            let next = self.next(&rest, &text);
            let change = rest.remove(next);
            if !self.step(&change)? {
                return Ok(());
            }
            // A step may have brought more than was predicted.
            if self.goal.is_met(&self.present.measured) {
                break;
            }
        }
        let count = self.report.steps.len();
        let words =
            format!("the goal is reached in {count} {}", if count == 1 { "step" } else { "steps" });
        match self.goal.is_met(&self.present.measured) {
            true => self.end(TuneEnd::Reached, words),
            false => self.end(
                TuneEnd::Unpredicted,
                "the last layout reaches the goal in one run and misses it in another: it is at \
                 the edge"
                    .to_owned(),
            ),
        }
        Ok(())
    }

    /// Returns the change that raises the limit that binds now, if the others can follow it to the
    /// layout in `last`; or the first one.
    fn next(&self, rest: &[Change], last: &str) -> usize {
        let Some((place, _)) = self.present.measured.binding() else { return 0 };
        let name = place.name(&self.present.layout);
        // A file that is moved relieves the disk that it is on.
        let files = self.present.layout.hosts.get(place.host).into_iter().flat_map(|host| {
            let of = |file: &&File| {
                host.export_of(file).is_some_and(|own| place.export.is_some() && own.name == name)
            };
            host.files.iter().filter(of).map(|file| file.name.as_str())
        });
        let names: Vec<&str> = files.chain([name.as_str()]).collect();
        let is_about = |change: &Change| subjects(change).iter().any(|own| names.contains(own));
        let all = rest.iter().enumerate().filter(|(_, change)| is_about(change));
        all.map(|(at, _)| at).find(|at| self.can_begin_with(*at, rest, last)).unwrap_or(0)
    }

    /// Returns whether the changes lead to the layout in `last` if one of them comes first, by
    /// layouts that are valid.
    fn can_begin_with(&self, first: usize, rest: &[Change], last: &str) -> bool {
        let others = rest.iter().enumerate().filter(|(at, _)| *at != first);
        let mut order = std::iter::once(&rest[first]).chain(others.map(|(_, change)| change));
        let apply = |text: String, change: &Change| {
            let text = change.apply(&text)?;
            Layout::parse("layout.toml", &text, self.bench.catalog).ok().map(|_| text)
        };
        order.try_fold(self.present.text.clone(), apply).is_some_and(|text| text == last)
    }

    /// Says which role lacks room.
    fn lack(&self) -> Option<String> {
        let own = self.present.measured.lacks.first()?;
        Some(format!("{} needs {} of room, and has {}", own.role.name(), own.size, own.room))
    }

    /// Applies a change, and returns whether it brought what was predicted. If not, the walk ends.
    fn step(&mut self, change: &Change) -> Result<bool, TuneError> {
        let because =
            self.lack().or_else(|| self.present.measured.binding().map(|own| self.because(own)));
        let Some(text) = change.apply(&self.present.text) else {
            self.end(TuneEnd::Failed, format!("{}: the layout has changed", change.words()));
            return Ok(false);
        };
        let layout = Layout::parse("layout.toml", &text, self.bench.catalog)?;
        let note = note_on_caches(&layout, &self.bench.load);
        self.report.notes.extend(note.filter(|own| !self.report.notes.contains(own)));
        let price = Price::of_layout(&layout, self.bench.catalog)?;
        let predicted = self.bench.measure("layout.toml", &text, Effort::Prediction)?;
        let failed = |walk: &mut Self, error| match error {
            SystemError::Tune(error) => Err(*error),
            SystemError::Interrupted => {
                walk.interrupted();
                Ok(false)
            }
            SystemError::Failed(reason) => {
                walk.end(TuneEnd::Failed, format!("{}: {reason}", change.words()));
                Ok(false)
            }
        };
        if let Err(error) = self.system.apply(change, &self.present.layout) {
            return failed(self, error);
        }
        // From here on the system has the change, whatever happens.
        let downtime = downtime(change, (&self.present.layout, &layout), self.bench.catalog);
        let is_known = self.present.price.bill.is_comparable(&price.bill);
        let cost = (is_known && price.currency.is_some())
            .then(|| Delta::between(self.present.price.month(), price.month()));
        let before = std::mem::take(&mut self.present.measured);
        self.present = Present { text, layout, measured: before, price };
        self.is_measured = false;
        let predicted_metrics = metrics(self.goal, &self.bench.load, &predicted);
        self.report.steps.push(TuneStep {
            change: change.words(),
            because,
            downtime,
            cost,
            predicted: predicted_metrics,
            measured: Vec::new(),
            deviation: None,
            state: TuneState { month: self.month(), ..TuneState::default() },
        });
        let measured = self.system.measure(&self.present.text, &self.present.layout, &predicted);
        match measured {
            Ok(measured) => self.present.measured = self.decided(measured),
            Err(error) => return failed(self, error),
        }
        self.is_measured = true;
        let (deviation, what) =
            deviation(&predicted, &self.present.measured, self.system.is_simulated());
        let state = self.state();
        if let Some(step) = self.report.steps.last_mut() {
            step.measured = metrics(self.goal, &self.bench.load, &self.present.measured);
            (step.deviation, step.state) = (Some(deviation), state);
        }
        if deviation <= self.system.tolerance() {
            return Ok(true);
        }
        let words = format!(
            "{}: {what} differs from its prediction by {} ({} predicted in all, {} measured)",
            change.words(),
            percent(deviation),
            figures(&predicted),
            figures(&self.present.measured)
        );
        if self.goal.is_met(&self.present.measured) {
            self.report.notes.push(words);
            return Ok(true);
        }
        self.end(TuneEnd::Unpredicted, format!("{words}; the walk ends there"));
        Ok(false)
    }

    fn because(&self, (place, share): (Place, f64)) -> String {
        format!(
            "{} of the {} is waiting at the {} of {}",
            percent(share),
            self.bench.load.time(),
            words(place.cap),
            place.name(&self.present.layout)
        )
    }

    fn beyond(&mut self, found: &Found, budget: Option<Money>) {
        let currency = found.price.currency.clone().unwrap_or_default();
        let changes: Vec<String> = found.changes.iter().map(Change::words).collect();
        let words = format!(
            "nothing within the budget of {} {currency} reaches the goal; the cheapest layout that \
             does costs {} {currency} a month: {}",
            budget.unwrap_or(Money::ZERO),
            found.price.month(),
            changes.join(", ")
        );
        self.end(TuneEnd::BeyondBudget, words);
    }

    /// Ends the walk, with the obstacle that a search met, if it is known.
    fn exhausted(&mut self, obstacle: Option<String>) {
        if let Some(obstacle) = obstacle.or_else(|| self.lack()) {
            let words = format!("no change of this layout reaches the goal: {obstacle}");
            self.end(TuneEnd::Exhausted, words);
            return;
        }
        match self.present.measured.binding() {
            Some((place, share)) if self.present.measured.waited() > crate::goal::WAITED => {
                let words = format!(
                    "no change of this layout reaches the goal: {}, and nothing on offer raises \
                     it far enough",
                    self.because((place, share))
                );
                self.end(TuneEnd::Exhausted, words);
            }
            _ => {
                let words = format!(
                    "the limit is not a cap of storage: only {} of the {} is waiting at limits; \
                     more requests in flight, a faster kind of disk or the application decide",
                    percent(self.present.measured.waited()),
                    self.bench.load.time()
                );
                self.end(TuneEnd::NotStorage, words);
            }
        }
    }

    fn finish(mut self) -> Tuned {
        self.report.undo = self.system.undo_commands();
        self.report.is_simulated = self.system.is_simulated();
        let before = &self.start.price;
        self.report.is_met = self.is_measured && self.goal.is_met(&self.present.measured);
        self.report.after = match self.is_measured {
            true => self.state(),
            false => TuneState { month: self.month(), ..TuneState::default() },
        };
        let is_priced = before.currency.is_some() && self.present.price.currency.is_some();
        self.report.price = is_priced.then(|| TunePrice {
            currency: before.currency.clone().unwrap_or_default(),
            region: before.region.clone().unwrap_or_default(),
            before: Amount(before.month()),
            after: Amount(self.present.price.month()),
            difference: before
                .bill
                .is_comparable(&self.present.price.bill)
                .then(|| Delta::between(before.month(), self.present.price.month())),
            unknown: self.present.price.bill.unknown().map(|line| line.what.clone()).collect(),
        });
        let emptied = emptied(&self.start.layout, &self.present.layout);
        self.report.notes.extend(emptied.map(|name| {
            format!("{name} no longer holds a file but is still billed; delete it if nothing else uses it")
        }));
        self.report.layout.clone_from(&self.present.text);
        Tuned { text: self.present.text, report: self.report }
    }
}

/// Returns the volumes and stripes that had files before changes, and have none after them.
fn emptied<'l>(before: &'l Layout, after: &'l Layout) -> impl Iterator<Item = &'l str> {
    let has_file = |layout: &Layout, name: &str| {
        let mut files =
            layout.hosts.iter().flat_map(|host| host.files.iter().map(move |own| (host, own)));
        files.any(|(host, file)| host.export_of(file).is_some_and(|own| own.name == name))
    };
    let exports = after.hosts.iter().flat_map(|host| &host.exports).map(|own| own.name.as_str());
    exports.filter(move |name| has_file(before, name) && !has_file(after, name))
}

/// Returns the names of files, disks, stripes and hosts that a change is about.
pub(crate) fn subjects(change: &Change) -> Vec<&str> {
    match change {
        Change::Size { name, .. }
        | Change::Tier { name, .. }
        | Change::PerformanceTier { name, .. }
        | Change::Cache { name, .. }
        | Change::Columns { name, .. }
        | Change::Unit { name, .. }
        | Change::Stripe { name, .. }
        | Change::Bought { name, .. } => vec![name],
        Change::HostSize { host, .. }
        | Change::Storage { host, .. }
        | Change::Vcores { host, .. }
        | Change::InstanceIops { host, .. } => vec![host],
        Change::Move { file, .. } => vec![file],
        Change::File { name, .. } => vec![name],
        Change::All(all) => all.iter().flat_map(subjects).collect(),
    }
}

/// Returns the metrics of the goal, or those that describe the load.
fn metrics(goal: &Goal, load: &Load, measured: &Measured) -> Vec<TuneMetric> {
    let mut all: Vec<TuneMetric> = Vec::new();
    for got in &measured.roles {
        let role = got.role.name();
        let is_bytes = got.bytes.is_some();
        let factor = if is_bytes { float(got.request) } else { 1.0 };
        let asked = got.bytes.map_or_else(|| float(got.asked), float);
        let name = if is_bytes { "bytes_per_s" } else { "iops" };
        all.push(TuneMetric {
            name: format!("{role} {name}"),
            value: got.got * factor,
            target: Some(asked),
            is_met: got.has_rate(),
        });
        all.push(TuneMetric {
            name: format!("{role} latency_ns"),
            value: float(got.median),
            target: got.asked_latency.map(|own| float(own.nanos())),
            is_met: got.is_fast(),
        });
    }
    for target in &goal.targets {
        let Some(value) = target.value(measured) else { continue };
        let one = Goal { targets: vec![*target] };
        all.push(TuneMetric {
            name: match target.name() {
                "throughput" => "bytes_per_s".to_owned(),
                "latency" => "latency_ns".to_owned(),
                "p99" => "p99_ns".to_owned(),
                "transactions" => "transactions_per_min".to_owned(),
                "response" => "response_ns".to_owned(),
                name => name.to_owned(),
            },
            value,
            target: Some(target.asked()),
            is_met: one.is_met(measured),
        });
    }
    let more = [
        ("iops", Some(measured.iops)),
        ("transactions_per_min", measured.transactions_per_min),
        ("response_ns", measured.response_ns),
        ("mean_ns", Some(measured.mean_ns)),
    ];
    let is_need = matches!(load, Load::Needs(_));
    for (name, value) in more.into_iter().filter(|_| !is_need) {
        if let Some(value) = value.filter(|_| all.iter().all(|own| own.name != name)) {
            all.push(TuneMetric { name: name.to_owned(), value, target: None, is_met: true });
        }
    }
    all
}

/// Returns the rate and the mean latency in words.
fn figures(own: &Measured) -> String {
    format!("{} IOPS at {}", rate(own.iops), time(own.mean_ns))
}

/// The fewest requests per second whose median is accurate to a few per cent after a run of a minute.
const MIN_RATE_FOR_MEDIAN: f64 = 20.0;

/// Returns the largest of the relative differences of rates and latencies, and what differs. Of a role, the latency counts
/// only if it has a target and meets its need: otherwise its queue grows, and the latency says how long the run was. The
/// median of few requests is left out, since it differs from run to run.
///
/// Measurements of a running system have exact means, and percentiles of coarse counters.
fn deviation(predicted: &Measured, measured: &Measured, has_percentiles: bool) -> (f64, String) {
    let apart = |one: f64, other: f64| (one / other.max(1e-9) - 1.0).abs();
    let mut all = Vec::new();
    if measured.roles.is_empty() {
        all.push((apart(predicted.iops, measured.iops), "the rate".to_owned()));
        all.push((apart(predicted.mean_ns, measured.mean_ns), "the latency".to_owned()));
    }
    for (one, other) in predicted.roles.iter().zip(&measured.roles) {
        let role = one.role.name();
        all.push((apart(one.got, other.got), format!("the rate of {role}")));
        let is_many = one.got.min(other.got) >= MIN_RATE_FOR_MEDIAN;
        let latency = match has_percentiles {
            true => is_many.then(|| apart(float(one.median), float(other.median))),
            false => Some(apart(one.latency, other.latency)),
        };
        let counts = one.asked_latency.is_some() && one.is_met() && other.is_met();
        all.extend(latency.filter(|_| counts).map(|own| (own, format!("the latency of {role}"))));
    }
    all.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_layout::Role;
    use weir_plan::verify::Got;
    use weir_units::Span;

    fn measured(rate: f64, median: u64, mean: f64, target: Option<Span>) -> Measured {
        let got = Got {
            role: Role::Log,
            request: 8 << 10,
            asked: 100,
            bytes: None,
            got: rate,
            latency: mean,
            median,
            p99: 0,
            asked_latency: target,
            grows: false,
        };
        Measured { roles: vec![got], ..Measured::default() }
    }

    #[test]
    fn a_latency_counts_if_it_has_a_target_and_enough_requests() {
        let check = |(rate, target): (f64, Option<Span>), percentiles, expect: f64, words: &str| {
            let before = measured(rate, 1_000_000, 1_000_000.0, target);
            let after = measured(rate * 1.01, 1_100_000, 1_300_000.0, target);
            let (share, what) = deviation(&before, &after, percentiles);
            assert!((share - expect).abs() < 1e-6, "{share} {what}");
            assert_eq!(what, words);
        };
        let target = Some(Span::from_millis(5));
        // Medians in simulation, means of a server.
        check((100.0, target), true, 1.0 / 11.0, "the latency of log");
        check((100.0, target), false, 3.0 / 13.0, "the latency of log");
        check((100.0, None), true, 1.0 / 101.0, "the rate of log");
        // The rate is met, but ten requests a second have no accurate median.
        let few = |rate| measured(rate, 1, 1.0, target);
        let [mut before, mut after] = [few(10.0), few(10.0)];
        (before.roles[0].asked, after.roles[0].asked, after.roles[0].median) = (10, 10, 3);
        assert_eq!(deviation(&before, &after, true).0, 0.0);
        after.roles[0].latency = 2.0;
        assert!((deviation(&before, &after, false).0 - 0.5).abs() < 1e-6);
    }
}
