//! Whether a layout carries a need.

use crate::downtime::{LEFT_OUT, downtime};
use crate::error::TuneError;
use crate::goal::{Goal, WAITED};
use crate::limit::{self, Place};
use crate::load::Load;
use crate::measure::{Bench, Credits, Effort, Measured, note_on_caches};
use crate::price::Price;
use crate::search::{Bounds, Outcome, Search, Stop};
use weir_catalog::Catalog;
use weir_diagnose::Change;
use weir_layout::{Host, Instance, Layout, Role};
use weir_plan::Need;
use weir_plan::promise::with_promises;
use weir_plan::share::WHOLE;
use weir_plan::verify::Got;
use weir_report::fit::{FitAnswer, FitChange, FitLimit, FitReport, FitRole, FitRoom};
use weir_report::number::{Amount, Delta, float};

/// A role with less headroom than this, in millionths, is carried barely.
pub const BARELY: u64 = 100_000;

/// The headroom is searched up to this multiple of the need.
const MOST: u64 = 16 * WHOLE;

/// The headroom is found to this share of the need, in millionths.
const EXACT: u64 = 5_000;

/// Most single changes to simulate.
const SIMULATIONS: usize = 200;

/// Options of a fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FitOptions {
    /// Seed of the simulations.
    pub seed: u64,
    /// True if changes with downtime are left out.
    pub no_downtime: bool,
}

/// A need of a layout, with a name if there are several.
#[derive(Debug, Clone)]
pub struct NamedNeed {
    /// The name, for example `night`.
    pub name: Option<String>,
    /// The need.
    pub need: Need,
    /// True if volumes and machines burst, from the credits that the layout gives them.
    pub bursts: bool,
}

/// Answers whether the layout in `text`, which messages call `name`, carries each of the needs, one
/// at a time.
///
/// # Errors
///
/// [`TuneError`] if a need does not run on the layout.
pub fn fit(
    name: &str,
    text: &str,
    needs: &[NamedNeed],
    catalog: &Catalog,
    options: FitOptions,
) -> Result<FitReport, TuneError> {
    let layout = Layout::parse(name, text, catalog)?;
    let question = Question { name, text, layout: &layout, catalog, options };
    let (mut roles, mut too_small, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for own in needs {
        let need = with_promises(&own.need, &layout);
        roles.extend(question.roles(own, &need)?);
        for words in smaller(&layout, &own.need, catalog) {
            if !too_small.contains(&words) {
                too_small.push(words);
            }
        }
        all.push(need);
    }
    let answer = match too_small.is_empty() {
        true => roles.iter().map(|role| role.answer).max().unwrap_or_default(),
        false => FitAnswer::No,
    };
    let single = match answer {
        FitAnswer::Yes => Single::default(),
        // Another machine is needed first.
        _ if !too_small.is_empty() => Single::default(),
        // A change has to serve all; one that counts on credits does so only where all do.
        _ => question.change(&all, needs.iter().all(|own| own.bursts))?,
    };
    let load = Load::Needs(all);
    let Single { change, left_out, out_of_reach } = single;
    let changed = change.as_ref().map(|(_, changed)| changed);
    let note = changed.into_iter().chain([&layout]).find_map(|own| note_on_caches(own, &load));
    let change = change.map(|(change, _)| change);
    let may_change = too_small.is_empty() && out_of_reach.is_none();
    let is_change_missing = answer != FitAnswer::Yes && change.is_none() && may_change;
    let left_out = (is_change_missing && left_out > 0).then(|| LEFT_OUT.to_owned());
    let price = Price::of_layout(&layout, catalog)?;
    Ok(FitReport {
        answer,
        roles,
        is_change_missing,
        change,
        month: price.currency.as_ref().map(|_| Amount(price.month())),
        currency: price.currency,
        too_small,
        notes: note.into_iter().chain(left_out).chain(out_of_reach).collect(),
    })
}

/// Returns what no machine of the layout has enough of, in words.
pub(crate) fn smaller(layout: &Layout, need: &Need, catalog: &Catalog) -> Vec<String> {
    let edition = layout.edition.as_deref().and_then(|name| catalog.edition(name).ok());
    let size = |host: &Host| edition?.host(&host.qualified_size()?).ok();
    let mut words = Vec::new();
    for host in &layout.hosts {
        let cores = |own: &Instance| own.vcores;
        let vcpus =
            host.instance.as_ref().map(cores).or_else(|| size(host).and_then(|own| own.vcpus));
        let memory = size(host).and_then(|own| own.memory);
        if let Some(vcpus) = vcpus.filter(|own| *own < need.vcpus) {
            words.push(format!(
                "{} has {vcpus} vCPUs, and the need asks for {}",
                host.name, need.vcpus
            ));
        }
        if let Some(memory) = memory.filter(|own| *own < need.memory) {
            words.push(format!(
                "{} has {memory} of memory, and the need asks for {}",
                host.name, need.memory
            ));
        }
    }
    words
}

/// A need with the latencies that the disks promise, and whether it counts on bursts.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    need: &'a Need,
    bursts: bool,
}

/// A layout that is asked about.
struct Question<'a> {
    name: &'a str,
    text: &'a str,
    layout: &'a Layout,
    catalog: &'a Catalog,
    options: FitOptions,
}

impl Question<'_> {
    fn bench(&self, needs: Vec<Need>, bursts: bool) -> Bench<'_> {
        Bench {
            catalog: self.catalog,
            load: Load::Needs(needs),
            seed: self.options.seed,
            runtime: None,
            credits: if bursts { Credits::Given } else { Credits::Never },
        }
    }

    fn measure(&self, own: &Asked<'_>, effort: Effort) -> Result<Measured, TuneError> {
        self.bench(vec![own.need.clone()], own.bursts).measure(self.name, self.text, effort)
    }

    /// Answers for the roles of a need. `need` has the latencies that the disks promise, too.
    fn roles(&self, named: &NamedNeed, need: &Need) -> Result<Vec<FitRole>, TuneError> {
        let asked = Asked { need, bursts: named.bursts };
        let measured = self.measure(&asked, Effort::Full)?;
        if measured.iops <= 0.0 {
            return Err(TuneError::NoLoad);
        }
        // The headroom of a role is its own; a yes needs some for all roles at once.
        let more = need.scaled(WHOLE + BARELY);
        let more = self.measure(&Asked { need: &more, ..asked }, Effort::Quick)?;
        let mut roles = Vec::new();
        for (at, got) in measured.roles.iter().enumerate() {
            // A role has a second row if its peak of throughput is apart from that of operations.
            let before = &measured.roles[..at];
            let row = before.iter().filter(|other| other.role == got.role).count();
            let mut role = self.role(&asked, got, row)?;
            if role.answer == FitAnswer::Yes && !more.roles.get(at).is_some_and(Got::is_met) {
                role.answer = FitAnswer::Barely;
            }
            let lack = measured.lacks.iter().find(|own| own.role == got.role);
            if let Some(lack) = lack {
                role.answer = FitAnswer::No;
                role.lack =
                    Some(FitRoom { size_bytes: lack.size.get(), room_bytes: lack.room.get() });
            }
            role.need.clone_from(&named.name);
            let stated = named.need.role(got.role).and_then(|own| own.latency);
            role.is_latency_assumed = stated.is_none() && role.latency_target_ns.is_some();
            roles.push(role);
        }
        Ok(roles)
    }

    /// Answers for a role, at one of its peaks.
    fn role(&self, asked: &Asked<'_>, got: &Got, row: usize) -> Result<FitRole, TuneError> {
        let carried = self.carried(asked, got, row)?;
        let answer = match () {
            () if !got.is_met() => FitAnswer::No,
            () if carried < WHOLE + BARELY => FitAnswer::Barely,
            () => FitAnswer::Yes,
        };
        // Just above the edge, the limit that ends the headroom has the longest waits.
        let over = scaled(asked.need, got.role, carried.saturating_add(2 * EXACT));
        let over = self.measure(&Asked { need: &over, ..*asked }, Effort::Quick)?;
        // If no rate is carried, other roles use a limit up, or else the medium is too slow.
        let is_throttled = carried > 0 || over.waited() > WAITED;
        let mut waits = over.waits.into_iter();
        let limit = waits.find(|(place, _)| place.limits(self.layout, got.role));
        let limit = limit.filter(|_| is_throttled && carried < MOST);
        let factor = if got.bytes.is_some() { float(got.request) } else { 1.0 };
        Ok(FitRole {
            need: None,
            role: got.role.name().to_owned(),
            answer,
            is_bytes: got.bytes.is_some(),
            asked: got.bytes.map_or_else(|| float(got.asked), float),
            delivered: got.got * factor,
            median_ns: got.median,
            p99_ns: got.p99,
            latency_target_ns: got.asked_latency.map(weir_units::Span::nanos),
            is_latency_assumed: false,
            is_queue_growing: got.grows,
            lack: None,
            headroom: float(carried) / float(WHOLE) - 1.0,
            is_headroom_beyond: carried >= MOST,
            limit: limit.map(|(place, _)| self.limit(place)),
        })
    }

    fn limit(&self, place: Place) -> FitLimit {
        FitLimit {
            name: place.cap.name().to_owned(),
            words: limit::words(place.cap).to_owned(),
            of: place.name(self.layout),
            is_bytes: place.cap.counts_bytes(),
            rate: place.stated(self.layout),
        }
    }

    /// Returns the multiple of a role's rates that the layout carries, in millionths, while the other
    /// roles have their need.
    fn carried(&self, asked: &Asked<'_>, got: &Got, row: usize) -> Result<u64, TuneError> {
        let is_met = |part: u64| -> Result<bool, TuneError> {
            let need = scaled(asked.need, got.role, part);
            let measured = self.measure(&Asked { need: &need, ..*asked }, Effort::Quick)?;
            let mut own = measured.roles.iter().filter(|own| own.role == got.role);
            Ok(own.nth(row).is_some_and(Got::is_met))
        };
        let (mut low, mut high) = (0, WHOLE);
        if got.is_met() {
            (low, high) = (WHOLE, 2 * WHOLE);
            while is_met(high)? {
                (low, high) = (high, 2 * high);
                if low >= MOST {
                    return Ok(MOST);
                }
            }
        }
        while high - low > EXACT {
            let middle = low + (high - low) / 2;
            match is_met(middle)? {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// Returns the cheapest single change with which the layout carries all needs with headroom, or
    /// else barely.
    fn change(&self, needs: &[Need], bursts: bool) -> Result<Single, TuneError> {
        let mut left_out = 0;
        for (part, then) in [(WHOLE + BARELY, FitAnswer::Yes), (WHOLE, FitAnswer::Barely)] {
            let needs = needs.iter().map(|need| need.scaled(part)).collect();
            let (bench, goal) = (self.bench(needs, bursts), Goal::default());
            let measured = bench.measure(self.name, self.text, Effort::Full)?;
            if goal.is_met(&measured) {
                continue;
            }
            let bounds = Bounds {
                budget: None,
                changes: 1,
                simulations: SIMULATIONS,
                must_be_sure: false,
                no_downtime: self.options.no_downtime,
                avoids_outages: false,
            };
            let all: &dyn Fn(&Change, &Layout) -> bool = &|_, _| true;
            let bounds = (bounds, all, &(|| false) as Stop<'_>);
            let mut search = Search::from(&bench, &goal, bounds, (self.text, &measured))?;
            let outcome = search.run()?;
            left_out += search.left_out;
            if let Some(words) = search.out_of_reach {
                return Ok(Single { out_of_reach: Some(words), ..Single::default() });
            }
            if let Outcome::Reached(found) = outcome {
                let after = Layout::parse("layout.toml", &found.text, self.catalog)?;
                let change = Change::All(found.changes);
                let before = Price::of_layout(self.layout, self.catalog)?;
                let is_known =
                    found.price.currency.is_some() && before.bill.is_comparable(&found.price.bill);
                let unknown = found.price.bill.unknown().map(|line| line.what.clone());
                let change = FitChange {
                    what: change.words(),
                    then,
                    downtime: downtime(&change, (self.layout, &after), self.catalog),
                    cost: is_known.then(|| Delta::between(before.month(), found.price.month())),
                    unknown: unknown.collect(),
                };
                return Ok(Single { change: Some((change, after)), left_out, out_of_reach: None });
            }
        }
        Ok(Single { left_out, ..Single::default() })
    }
}

/// The result of a search for a single change.
#[derive(Debug, Default)]
struct Single {
    /// The change, with the layout after it.
    change: Option<(FitChange, Layout)>,
    /// Number of changes left out because they have downtime.
    left_out: usize,
    /// Why no change helps, if the media are too slow.
    out_of_reach: Option<String>,
}

/// Returns the need with the rates of one role scaled to `part` millionths.
fn scaled(need: &Need, role: Role, part: u64) -> Need {
    let mut need = need.clone();
    for own in need.roles.iter_mut().filter(|own| own.role == role) {
        *own = own.scaled(part);
    }
    need
}
