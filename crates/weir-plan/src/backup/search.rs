//! The search: the cheapest disks first, until a backup fits its window.

use super::answer::{Answer, Choice, Outcome, Relaxation, Shortest, Slowdown};
use super::beside::Alone;
use super::ground::Ground;
use super::question::Question;
use super::settings::{MOST_STRIPES, Settings, TRANSFERS};
use super::streams::{Candidate, Least, Streams, below, fastest};
use super::trial::{Bench, Built, Measured, Targets};
use crate::cost::Prices;
use crate::disks::{Disk, Market, usable_families};
use crate::error::PlanError;
use crate::share::WHOLE;
use weir_layout::file::VolumeKeys;
use weir_units::{Bytes, BytesPerSec, Span};

/// Error margin of an extrapolated duration, in millionths.
const MARGIN: u64 = 10_000;
/// Durations this close to the shortest count as equal, in millionths; then fewer stripes win.
const CLOSE: u64 = 10_000;
/// Slowdowns this close to the lowest count as equal; then fewer stripes win.
const CLOSE_SLOWDOWN: f64 = 0.01;
/// Minimum gain of the next better choice, in millionths.
const BETTER: u64 = 50_000;
/// Maximum number of simulations of a search.
const MOST_SIMULATED: u64 = 6_000;
/// The maximum beside databases, whose simulations take longer.
const MOST_BESIDE: u64 = 240;
/// Maximum number of disks, if the edition does not state that of the machine.
const MOST_DISKS: u64 = 64;
/// Number of cheaper choices that are simulated to find the fastest.
const CHEAPER: usize = 4;
/// A limit of a backup is this much above the rate that its window needs, in hundredths.
const SPARE: u64 = 2;
/// Limits of a backup are multiples of this, in bytes per second.
const LIMIT_STEP: u64 = 100_000;
/// Number of ideal targets, which have no limits.
const IDEAL: u64 = 8;

/// Finds the cheapest disks with which a backup meets its window.
///
/// # Errors
///
/// [`PlanError`] for a contradictory question or an unknown name.
pub fn plan(question: &Question<'_>) -> Result<Outcome, PlanError> {
    let ground = Ground::new(&question.base, question.edition, question.catalog, question.latency)?;
    let families = usable_families(question.edition, &question.families)?;
    let taken = ground.size().map(|size| question.edition.takes(size)).unwrap_or_default();
    let families: Vec<&str> = families
        .into_iter()
        .filter(|own| taken.is_empty() || taken.iter().any(|taken| taken == own))
        .collect();
    let market =
        Market { edition: question.edition, prices: Prices(question.prices), families: &families };
    let bench = Bench::new(question, &ground);
    let mut search =
        Search { bench, market: &market, alone: None, is_patient: false, has_given_up: false };
    search.check()?;
    if let Some(beside) = question.beside {
        search.alone = Some(search.bench.alone(beside)?);
    }
    match search.cheapest(question.within)? {
        Some(plan) => search.met(plan),
        None => search.not_met(),
    }
}

struct Search<'s, 'q, 'a> {
    bench: Bench<'q, 'a>,
    market: &'s Market<'a, 's>,
    alone: Option<Alone>,
    /// True if databases may be slowed down without limit.
    is_patient: bool,
    has_given_up: bool,
}

/// Stripes and transfers with their simulation.
type Tried = (Settings, Measured, Option<Slowdown>);

impl<'a> Search<'_, '_, 'a> {
    /// Checks everything that does not depend on the disks.
    fn check(&self) -> Result<(), PlanError> {
        let question = self.bench.question;
        if question.within <= question.setup {
            let reason =
                format!("is not longer than the setup of {}; allow more time", question.setup);
            return Err(PlanError::need(format!("a window of {}", question.within), reason));
        }
        if self.most() == 0 {
            let host = self.bench.ground.host();
            let reason = match question.max_disks {
                Some(_) => "leaves no disk to write to; allow at least 1".to_owned(),
                None => {
                    "cannot take another disk; use one of its disks as the target, or a larger \
                         machine"
                        .to_owned()
                }
            };
            return Err(PlanError::need(format!("host {}", host.name), reason));
        }
        // Missing or too small sources are an error with any targets.
        let built = self.bench.build(self.ideal())?;
        self.bench.bound(&built, Settings { stripes: 1, transfer: TRANSFERS[0], limit: None })?;
        Ok(())
    }

    fn most(&self) -> u64 {
        let free = self.bench.ground.free().unwrap_or(MOST_DISKS).min(MOST_STRIPES);
        self.bench.question.max_disks.map_or(free, |own| own.min(free))
    }

    /// Returns targets without limits.
    fn ideal(&self) -> Targets {
        let gib = self.bench.question.size.get().div_ceil(1 << 30) + 1;
        let size = Some(Bytes::gib(gib));
        let keys = VolumeKeys { size, unlimited: true, ..VolumeKeys::default() };
        Targets { keys, count: IDEAL.min(self.most()) }
    }

    /// Returns the minimum requirements of targets for a window.
    fn least(&self, within: Span) -> Least {
        let question = self.bench.question;
        let ratio = question.compression.map_or(1.0, |own| own.ratio);
        // A stripe is at most one transfer smaller than its share.
        let less = TRANSFERS[TRANSFERS.len() - 1].get() * MOST_STRIPES;
        let written = part_of(question.size.get(), ratio).saturating_sub(less);
        let time = within.saturating_sub(question.setup).nanos().max(1);
        let rate = u128::from(written) * 1_000_000_000 / u128::from(time);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        Least { room: question.size, rate, most: self.most() }
    }

    /// Finds the cheapest disks for a window.
    fn cheapest(&mut self, within: Span) -> Result<Option<Choice>, PlanError> {
        if self.alone.is_none() && !self.could_be(within)? {
            return Ok(None);
        }
        let most = self.bench.simulated + self.most_simulated();
        for candidate in Streams::new(self.market, self.least(within)) {
            if self.bench.simulated > most {
                self.has_given_up = true;
                return Ok(None);
            }
            if let Some(choice) = self.fits(&candidate, within)? {
                return self.with_fewer_disks(choice, within).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the fewest disks that also meet the window within 1 % of the cheapest price, as for
    /// other plans.
    fn with_fewer_disks(&mut self, cheapest: Choice, within: Span) -> Result<Choice, PlanError> {
        let most = self.bench.simulated + self.most_simulated();
        let limit = cheapest.cost.month.micros();
        let mut best = cheapest;
        for candidate in Streams::new(self.market, self.least(within)) {
            let (own, unpriced) = (candidate.cost.month.micros(), candidate.cost.unpriced);
            let is_close = u128::from(own) * 100 <= u128::from(limit) * 101;
            if !is_close || unpriced > best.cost.unpriced || self.bench.simulated > most {
                break;
            }
            if candidate.count < best.count
                && let Some(choice) = self.fits(&candidate, within)?
            {
                best = choice;
            }
        }
        Ok(best)
    }

    /// Returns the maximum number of simulations of a search.
    fn most_simulated(&self) -> u64 {
        if self.alone.is_some() { MOST_BESIDE } else { MOST_SIMULATED }
    }

    /// Returns whether targets without limits would meet the window; otherwise no disks can.
    fn could_be(&mut self, within: Span) -> Result<bool, PlanError> {
        let targets = self.ideal();
        let stripes = MOST_STRIPES / targets.count;
        let built = self.bench.build(targets)?;
        let own = Settings { stripes, transfer: TRANSFERS[2], limit: None };
        let ideal = self.bench.measure(&built, own, false)?;
        Ok(ideal.is_none_or(|own| own.duration <= longer(within, 2 * MARGIN)))
    }

    /// Returns the best stripes and transfers on some disks that meet the window.
    fn fits(
        &mut self,
        candidate: &Candidate<'a>,
        within: Span,
    ) -> Result<Option<Choice>, PlanError> {
        let built = self.build(candidate)?;
        let mut tried = self.tried(&built, within)?;
        let most = |own: &Measured| match own.is_extrapolated && self.alone.is_none() {
            true => longer(within, MARGIN),
            false => within,
        };
        tried.retain(|(_, own, _)| own.duration <= most(own));
        for (settings, own, slowdown) in best_first(tried) {
            let whole = match own.is_extrapolated && self.alone.is_none() {
                true => self.bench.measure(&built, settings, true)?,
                false => Some(own),
            };
            if let Some(whole) = whole.filter(|own| own.duration <= within) {
                return Ok(Some(self.choice(candidate, &built, (settings, whole, slowdown))));
            }
        }
        Ok(None)
    }

    fn build(&self, candidate: &Candidate<'_>) -> Result<Built, PlanError> {
        self.bench.build(Targets { keys: candidate.disk.keys(), count: candidate.count })
    }

    /// Simulates all stripes and transfers whose lower bound meets a window. Beside databases,
    /// choices that slow them down too much are left out.
    fn tried(&mut self, built: &Built, within: Span) -> Result<Vec<Tried>, PlanError> {
        let mut all = Vec::new();
        for own in Settings::all(built.targets.count) {
            let Some(bound) = self.bench.bound(built, own)? else { continue };
            if bound > within {
                self.bench.excluded += 1;
                continue;
            }
            let Some(alone) = &self.alone else {
                all.extend(self.bench.measure(built, own, false)?.map(|had| (own, had, None)));
                continue;
            };
            let found = self.bench.measure_beside(built, own, alone)?;
            let Some((had, slowdown)) = found else { continue };
            if self.is_kind(&slowdown) {
                all.push((own, had, Some(slowdown)));
                continue;
            }
            let Some(limit) = self.lowest_limit(within, had.duration) else { continue };
            let own = Settings { limit: Some(limit), ..own };
            let found = self.bench.measure_beside(built, own, alone)?;
            let found = found.filter(|(_, slowdown)| self.is_kind(slowdown));
            all.extend(found.map(|(had, slowdown)| (own, had, Some(slowdown))));
        }
        Ok(all)
    }

    /// Returns whether databases are slowed down no more than is acceptable.
    fn is_kind(&self, slowdown: &Slowdown) -> bool {
        let most = self.bench.question.beside.map_or(0, |own| own.max_slowdown);
        self.is_patient || slowdown.worst() <= weir_report::number::float(most) / 1e6
    }

    /// Returns the lowest limit with which a backup that takes `duration` at full speed meets a window:
    /// nothing if a limit is stated, or the window leaves no time to spare.
    fn lowest_limit(&self, within: Span, duration: Span) -> Option<BytesPerSec> {
        let question = self.bench.question;
        let is_far = within >= Span::from_secs(FAR_SECONDS);
        if is_far || question.limit.is_some() || duration >= shorter(within, BETTER) {
            return None;
        }
        let time = u128::from(within.saturating_sub(question.setup).nanos().max(1));
        let rate = u128::from(question.size.get()) * 1_000_000_000 / time;
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        // Time for the last transfers, and a number that people can read.
        let spare = rate.saturating_add(rate / 100 * SPARE);
        BytesPerSec::new(spare.div_ceil(LIMIT_STEP).saturating_mul(LIMIT_STEP))
    }

    fn choice(&self, candidate: &Candidate<'_>, built: &Built, tried: Tried) -> Choice {
        let (settings, own, slowdown) = tried;
        let Candidate { disk, count, cost } = *candidate;
        let tier = disk.chosen().map(|own| own.tier.name.clone());
        Choice {
            disks: words(&disk, count),
            family: disk.family().to_owned(),
            tier,
            count,
            settings,
            limit: settings.limit.or(self.bench.question.limit),
            buffer_count: own.buffer_count,
            cost,
            lines: disk.lines("backup", count, self.market.prices),
            duration: own.duration,
            is_extrapolated: own.is_extrapolated,
            binding: own.binding,
            slowdown,
            layout: self.bench.ground.text(&built.targets.keys, count),
            backup: self.bench.text(&built.targets, settings, self.bench.question.size),
        }
    }

    fn met(mut self, mut plan: Choice) -> Result<Outcome, PlanError> {
        let better = loop {
            match self.cheapest(shorter(plan.duration, BETTER))? {
                // The simulation of databases is not monotone: a faster backup may cost them less.
                Some(better) if dominates(&better, &plan) => plan = better,
                better => break better,
            }
        };
        let cheaper = self.cheaper(&plan)?;
        let notes = self.notes();
        let (simulated, excluded) = (self.bench.simulated, self.bench.excluded);
        Ok(Outcome::Met(Box::new(Answer { plan, cheaper, better, simulated, excluded, notes })))
    }

    /// Finds the fastest of the cheaper choices, if it misses the window. One that meets it was
    /// passed over for fewer disks, at less than 1 % of the price.
    fn cheaper(&mut self, plan: &Choice) -> Result<Option<Choice>, PlanError> {
        let least = self.least(Span::from_nanos(u64::MAX));
        let candidates = below(self.market, least, plan.cost);
        let fastest = self.fastest_of(candidates, CHEAPER)?;
        Ok(fastest.filter(|own| own.duration > self.bench.question.within))
    }

    /// Returns the fastest of some candidates. The `most` candidates with the lowest bounds are
    /// simulated, and further ones only while their bound is below the best duration.
    fn fastest_of(
        &mut self,
        candidates: Vec<Candidate<'a>>,
        most: usize,
    ) -> Result<Option<Choice>, PlanError> {
        let mut bounded = Vec::new();
        for candidate in candidates {
            let built = self.build(&candidate)?;
            let mut least: Option<Span> = None;
            for own in Settings::all(candidate.count) {
                let bound = self.bench.bound(&built, own)?;
                least = bound.map(|own| least.map_or(own, |least| least.min(own))).or(least);
            }
            bounded.extend(least.map(|least| (least, candidate, built)));
        }
        bounded.sort_by_key(|(least, own, _)| (*least, own.cost));
        let mut fastest: Option<Choice> = None;
        for (least, candidate, built) in bounded.into_iter().take(most) {
            if fastest.as_ref().is_some_and(|own| longer(least, CLOSE) >= own.duration) {
                break;
            }
            let tried = self.tried(&built, Span::from_nanos(u64::MAX))?;
            let Some(best) = best_first(tried).into_iter().next() else { continue };
            if fastest.as_ref().is_none_or(|own| best.1.duration < own.duration) {
                fastest = Some(self.choice(&candidate, &built, best));
            }
        }
        Ok(fastest)
    }

    fn not_met(mut self) -> Result<Outcome, PlanError> {
        let question = self.bench.question;
        if self.alone.is_some()
            && let Some(shortest) = self.too_slow_beside()?
        {
            return Ok(shortest);
        }
        let least = self.least(Span::from_nanos(u64::MAX));
        let candidates = fastest(self.market, least);
        let Some(fastest) = self.fastest_of(candidates, usize::MAX)? else {
            let reason = format!(
                "finds no disks with room for {} among {}; allow more disks or other families",
                question.size,
                self.market.families.join(", ")
            );
            return Err(PlanError::need("the plan", reason));
        };
        // The same duration may be cheaper with other disks.
        let within = longer(fastest.duration, CLOSE / 2);
        let fastest = self.cheapest(within)?.unwrap_or(fastest);
        let mut relaxations = vec![Relaxation {
            what: format!("--within {}", minutes(fastest.duration)),
            then: Some(fastest.clone()),
        }];
        let setup = question.setup;
        let part = |span: Span| u128::from(span.saturating_sub(setup).nanos().max(1));
        let fit = u128::from(question.size.get()) * part(question.within) / part(fastest.duration);
        let gib = u64::try_from(fit >> 30).unwrap_or(u64::MAX);
        if gib > 0 {
            relaxations.push(Relaxation { what: format!("--size {gib}GiB"), then: None });
        }
        Ok(self.shortest(fastest, relaxations))
    }

    /// Returns the possible changes if the backup meets the window only without the databases.
    fn too_slow_beside(&mut self) -> Result<Option<Outcome>, PlanError> {
        self.is_patient = true;
        let fast = self.cheapest(self.bench.question.within)?;
        self.is_patient = false;
        let Some(fast) = fast else { return Ok(None) };
        let kind = self.cheapest(Span::from_secs(FAR_SECONDS))?;
        let percent = fast.slowdown.unwrap_or_default().worst() * 100.0;
        let mut relaxations = vec![Relaxation {
            what: format!("--max-slowdown {:.1}%", (percent * 10.0).ceil() / 10.0),
            then: Some(fast.clone()),
        }];
        relaxations.extend(kind.map(|kind| Relaxation {
            what: format!("--within {}", minutes(kind.duration)),
            then: Some(kind),
        }));
        Ok(Some(self.shortest(fast, relaxations)))
    }

    fn shortest(&self, fastest: Choice, relaxations: Vec<Relaxation>) -> Outcome {
        let simulated = self.bench.simulated;
        let notes = self.notes();
        Outcome::NotMet(Box::new(Shortest { fastest, relaxations, simulated, notes }))
    }

    fn notes(&self) -> Vec<String> {
        let question = self.bench.question;
        let mut notes = Vec::new();
        if question.base.is_assumed {
            notes.push(
                "the source is assumed to have no limits, so only the machine and the targets \
                 limit the backup; plan with the source's disks with --layout"
                    .to_owned(),
            );
        }
        if self.bench.ground.host().spec.uncached.bytes.is_none() {
            notes.push("the layout has no throughput limit of the machine".to_owned());
        }
        notes.push("burst credits of disks and machines are not counted on".to_owned());
        if self.alone.is_some() {
            notes.push(
                "durations beside databases follow from the backup's rate during their runtime"
                    .to_owned(),
            );
        }
        if question.prices.is_none() {
            notes.push("the edition has no prices, so fewer disks rank first".to_owned());
        }
        if self.has_given_up {
            notes.push(format!(
                "the search ended after {} simulations; more expensive choices were not tried",
                self.most_simulated()
            ));
        }
        notes
    }
}

/// An unlimited window: a hundred days.
const FAR_SECONDS: u64 = 8_640_000;

/// Returns whether a faster choice costs no more, has no more disks and slows databases down no
/// more.
fn dominates(faster: &Choice, plan: &Choice) -> bool {
    let slowdown = |own: &Choice| own.slowdown.map_or(0.0, |own| own.worst());
    faster.cost.unpriced <= plan.cost.unpriced
        && faster.cost.month <= plan.cost.month
        && faster.count <= plan.count
        && slowdown(faster) <= slowdown(plan)
}

/// Sorts simulated choices: those close to the shortest duration by preference (few stripes, large
/// transfers), then the others by duration. Beside databases, those close to the lowest slowdown
/// come first, since all of them meet the window.
fn best_first(mut tried: Vec<Tried>) -> Vec<Tried> {
    let slowdown = |own: &Tried| own.2.map_or(0.0, |own| own.worst());
    if tried.iter().any(|own| own.2.is_some()) {
        let least = tried.iter().map(slowdown).fold(f64::INFINITY, f64::min);
        let rank =
            |own: &Tried| if slowdown(own) <= least + CLOSE_SLOWDOWN { 0.0 } else { slowdown(own) };
        tried.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
        return tried;
    }
    let Some(least) = tried.iter().map(|(_, own, _)| own.duration).min() else { return tried };
    let close = longer(least, CLOSE);
    // Settings come in order of preference, and the sort is stable.
    tried.sort_by_key(|(_, own, _)| if own.duration <= close { Span::ZERO } else { own.duration });
    tried
}

/// Returns the disks in words.
fn words(disk: &Disk<'_>, count: u64) -> String {
    let each = match disk {
        Disk::Bought { family, size, iops, throughput } => format!(
            "{} of {size}, {} IOPS and {throughput}",
            family.family,
            weir_report::number::grouped(iops.get())
        ),
        other => {
            let own = other.chosen();
            let plus =
                if own.is_some_and(|own| own.is_plus) { " with performance plus" } else { "" };
            format!("{}{plus}", own.map_or(other.family(), |own| &own.tier.name))
        }
    };
    format!("{count} x {each}")
}

fn scaled(span: Span, millionths: u64) -> Span {
    let nanos = u128::from(span.nanos()) * u128::from(millionths) / u128::from(WHOLE);
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn longer(span: Span, millionths: u64) -> Span {
    scaled(span, WHOLE + millionths)
}

fn shorter(span: Span, millionths: u64) -> Span {
    scaled(span, WHOLE - millionths)
}

/// Formats a duration in whole minutes, or in seconds if it is short, rounded up.
fn minutes(span: Span) -> String {
    let seconds = span.nanos().div_ceil(1_000_000_000);
    if seconds < 600 { format!("{seconds}s") } else { format!("{}min", seconds.div_ceil(60)) }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a size, rounded down to stay a bound"
)]
fn part_of(bytes: u64, ratio: f64) -> u64 {
    // A description rounds the ratio to thousandths.
    let per_mille = ((ratio.clamp(0.0, 1.0) * 1000.0).round() as u64).min(1000);
    bytes / 1000 * per_mille
}
