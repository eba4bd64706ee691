//! Whether a layout carries a need.

use crate::downtime::downtime;
use crate::error::TuneError;
use crate::goal::Goal;
use crate::limit::{self, Place};
use crate::load::Load;
use crate::measure::{Bench, Effort, Measured, with_promises};
use crate::price::Price;
use crate::search::{Bounds, Outcome, Search};
use weir_catalog::Catalog;
use weir_diagnose::Change;
use weir_layout::{Layout, Role};
use weir_plan::Need;
use weir_plan::share::WHOLE;
use weir_plan::verify::Got;
use weir_report::fit::{FitAnswer, FitChange, FitLimit, FitReport, FitRole};
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
    /// True if volumes and machines burst, from the credits that the layout gives them.
    pub bursts: bool,
}

/// Answers whether the layout in `text`, which messages call `name`, carries a need.
///
/// # Errors
///
/// [`TuneError`] if the need does not run on the layout.
pub fn fit(
    name: &str,
    text: &str,
    need: &Need,
    catalog: &Catalog,
    options: FitOptions,
) -> Result<FitReport, TuneError> {
    let layout = Layout::parse(name, text, catalog)?;
    let question = Question { name, text, layout: &layout, catalog, options };
    let (is_stated, need) = (need, &with_promises(need, &layout));
    let measured = question.measure(need, Effort::Full)?;
    if measured.iops <= 0.0 {
        return Err(TuneError::NoLoad);
    }
    let mut roles: Vec<FitRole> = Vec::new();
    for got in &measured.roles {
        let mut role = question.role(need, got)?;
        role.is_latency_assumed = is_stated.role(got.role).is_some_and(|own| own.latency.is_none());
        roles.push(role);
    }
    let answer = roles.iter().map(|role| role.answer).max().unwrap_or_default();
    let change = match answer {
        FitAnswer::Yes => None,
        _ => question.change(need)?,
    };
    let price = Price::of_layout(&layout, catalog)?;
    Ok(FitReport {
        answer,
        roles,
        is_change_missing: answer != FitAnswer::Yes && change.is_none(),
        change,
        month: price.currency.as_ref().map(|_| Amount(price.month())),
        currency: price.currency,
        notes: Vec::new(),
    })
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
    fn bench(&self, need: &Need) -> Bench<'_> {
        Bench {
            catalog: self.catalog,
            load: Load::Need(need.clone()),
            seed: self.options.seed,
            runtime: None,
            bursts: self.options.bursts,
        }
    }

    fn measure(&self, need: &Need, effort: Effort) -> Result<Measured, TuneError> {
        self.bench(need).measure(self.name, self.text, effort)
    }

    /// Answers for a role, at one of its peaks.
    fn role(&self, need: &Need, got: &Got) -> Result<FitRole, TuneError> {
        let carried = self.carried(need, got)?;
        let answer = match () {
            () if !got.is_met() => FitAnswer::No,
            () if carried < WHOLE + BARELY => FitAnswer::Barely,
            () => FitAnswer::Yes,
        };
        // Just above the edge, the limit that ends the headroom has the longest waits.
        let over = scaled(need, got.role, carried.saturating_add(2 * EXACT));
        let limit = self.measure(&over, Effort::Quick)?.binding();
        let factor = if got.bytes.is_some() { float(got.request) } else { 1.0 };
        Ok(FitRole {
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
            headroom: float(carried) / float(WHOLE) - 1.0,
            is_headroom_beyond: carried >= MOST,
            limit: limit.filter(|_| carried < MOST).map(|(place, _)| self.limit(place)),
        })
    }

    fn limit(&self, place: Place) -> FitLimit {
        FitLimit {
            name: place.cap.name().to_owned(),
            words: limit::words(place.cap).to_owned(),
            of: place.name(self.layout),
            is_bytes: place.cap.counts_bytes(),
            rate: place.rate(self.layout),
        }
    }

    /// Returns the multiple of a role's rates that the layout carries, in millionths, while the other
    /// roles have their need.
    fn carried(&self, need: &Need, got: &Got) -> Result<u64, TuneError> {
        let is_met = |part: u64| -> Result<bool, TuneError> {
            let measured = self.measure(&scaled(need, got.role, part), Effort::Quick)?;
            let own = measured.roles.iter().filter(|own| own.role == got.role);
            Ok(own.filter(|own| own.bytes.is_some() == got.bytes.is_some()).all(Got::is_met))
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

    /// Returns the cheapest single change with which the layout carries the need with headroom, or
    /// else barely.
    fn change(&self, need: &Need) -> Result<Option<FitChange>, TuneError> {
        for (part, then) in [(WHOLE + BARELY, FitAnswer::Yes), (WHOLE, FitAnswer::Barely)] {
            let need = need.scaled(part);
            let (bench, goal) = (self.bench(&need), Goal::default());
            let measured = self.measure(&need, Effort::Full)?;
            if goal.is_met(&measured) {
                continue;
            }
            let bounds = Bounds { budget: None, changes: 1, simulations: SIMULATIONS };
            let mut search = Search::from(&bench, &goal, bounds, (self.text, &measured))?;
            if let Outcome::Reached(found) = search.run()? {
                let after = Layout::parse("layout.toml", &found.text, self.catalog)?;
                let change = Change::All(found.changes);
                let before = Price::of_layout(self.layout, self.catalog)?;
                let is_known =
                    found.price.currency.is_some() && before.bill.is_comparable(&found.price.bill);
                let unknown = found.price.bill.unknown().map(|line| line.what.clone());
                return Ok(Some(FitChange {
                    what: change.words(),
                    then,
                    downtime: downtime(&change, self.layout, &after),
                    cost: is_known.then(|| Delta::between(before.month(), found.price.month())),
                    unknown: unknown.collect(),
                }));
            }
        }
        Ok(None)
    }
}

/// Returns the need with the rates of one role scaled to `part` millionths.
fn scaled(need: &Need, role: Role, part: u64) -> Need {
    let mut need = need.clone();
    for own in need.roles.iter_mut().filter(|own| own.role == role) {
        *own = own.scaled(part);
    }
    need
}
