//! Fleets: many databases on the cheapest managed instances, or the fewest.
//!
//! The databases of an instance share all its limits, and their peaks are assumed to coincide.
//! General Purpose files have limits of their own, so each database keeps the files that take the
//! least storage, on any instance. The rest is a bin packing problem with vectors and several kinds
//! of bins ([`weir_pack`]), which is solved as an integer program with a lower bound.

use crate::answer::{CapUnit, CapUse, Line, Plan};
use crate::cost::{Cost, Prices, gib};
use crate::demand::Flow;
use crate::error::PlanError;
use crate::instance::{self, Candidate, Files, Instances, Offer};
use crate::need::{Member, Need, Wishes};
use weir_catalog::{Catalog, Edition, HostSize, PriceBook};
use weir_layout::instance::Measure;
use weir_layout::{ManagedInstance, Role};
pub use weir_pack::{Effort, Phase, Progress};
use weir_pack::{Fit, Item, Kind, PackError, Problem};
use weir_units::{Bytes, Money};

/// A question to the fleet planner.
#[derive(Debug, Clone, Copy)]
pub struct FleetQuestion<'a> {
    /// All editions.
    pub catalog: &'a Catalog,
    /// The edition to plan with.
    pub edition: &'a Edition,
    /// The prices, if they are known.
    pub prices: Option<&'a PriceBook<'a>>,
    /// The databases.
    pub members: &'a [Member],
    /// The constraints.
    pub wishes: &'a Wishes,
    /// Find the fewest instances, whatever they cost.
    pub is_fewest: bool,
    /// The effort of the search.
    pub effort: Effort,
}

/// The objective of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The price per month.
    Price,
    /// The vCores, if prices are missing.
    Vcores,
    /// The number of instances, then their vCores.
    Instances,
}

impl Goal {
    /// Returns the objective in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Price => "price per month",
            Self::Vcores => "vCores (prices are missing)",
            Self::Instances => "number of instances",
        }
    }
}

/// A fleet on its instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetPlan {
    /// The instances, the most expensive first.
    pub instances: Vec<FleetInstance>,
    /// The price of all instances.
    pub cost: Cost,
    /// The objective.
    pub goal: Goal,
    /// The lower bound of the price per month, if prices are the objective.
    pub bound: Option<Money>,
    /// The optimality gap, in millionths of the price.
    pub gap: u64,
    /// Notes about assumptions.
    pub notes: Vec<String>,
}

/// An instance of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetInstance {
    /// Its databases, as indices of the members.
    pub members: Vec<usize>,
    /// The instance and its layout.
    pub plan: Plan,
}

/// The outcome of a fleet plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetOutcome {
    /// Every database fits an instance.
    Met(Box<FleetPlan>),
    /// These databases fit no instance, each with the limits that it exceeds on the nearest one.
    NotMet(Vec<(String, Vec<CapUse>)>),
}

/// A limit that all databases of an instance share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    Vcores,
    Storage,
    Blobs,
    Tempdb,
    Files,
    Databases,
    Log,
    Operations,
    Bytes,
}

impl Shared {
    const ALL: [Self; 9] = [
        Self::Vcores,
        Self::Storage,
        Self::Blobs,
        Self::Tempdb,
        Self::Files,
        Self::Databases,
        Self::Log,
        Self::Operations,
        Self::Bytes,
    ];

    fn cap(self, of: &str, used: u64, most: u64) -> CapUse {
        let own = |cap, unit, is_rate| CapUse { of: of.to_owned(), cap, unit, is_rate, used, most };
        match self {
            Self::Vcores => own("vCores", CapUnit::Thousandths, true),
            Self::Storage => CapUse::size(of, "storage", Bytes::gib(used), Bytes::gib(most)),
            Self::Blobs => {
                CapUse::size(of, "size of all blobs", Bytes::new(used), Bytes::new(most))
            }
            Self::Tempdb => CapUse::size(of, "size of tempdb", Bytes::new(used), Bytes::new(most)),
            Self::Files => CapUse::number(of, "number of files", used, most),
            Self::Databases => CapUse::number(of, "number of databases", used, most),
            Self::Log => own("log rate", CapUnit::Rate, true),
            Self::Operations => own("instance operations", CapUnit::Iops, true),
            Self::Bytes => own("instance bytes", CapUnit::Rate, true),
        }
    }
}

/// A size of instance, which is a kind of bin.
struct Size<'a> {
    of: usize,
    host: &'a HostSize,
    offer: Offer,
    /// Maximum storage in GiB.
    storage: u64,
}

/// The files and load of a database on a kind of instance.
struct Footprint<'a> {
    files: Vec<Files<'a>>,
    gib: u64,
    peaks: Vec<Flow>,
}

/// Plans a fleet.
///
/// # Errors
///
/// [`PlanError`] for unknown families, and for needs that no instance can have.
pub fn plan_fleet(question: &FleetQuestion<'_>) -> Result<FleetOutcome, PlanError> {
    plan_fleet_watched(question, &|_| {})
}

/// Plans a fleet like [`plan_fleet`], and reports its progress.
///
/// # Errors
///
/// As [`plan_fleet`].
pub fn plan_fleet_watched(
    question: &FleetQuestion<'_>,
    watch: &dyn Fn(Progress),
) -> Result<FleetOutcome, PlanError> {
    if question.members.len() > MOST_MEMBERS {
        let count = question.members.len();
        let reason =
            format!("has {count} databases, above the maximum of {MOST_MEMBERS}; split it");
        return Err(PlanError::need("the fleet", reason));
    }
    for member in question.members {
        instance::check(&member.need)
            .map_err(|error| PlanError::need(member.name.clone(), error.to_string()))?;
    }
    let (kinds, goal, notes) = kinds(question)?;
    Fleet::new(question, kinds, goal).plan(notes, watch)
}

/// Returns the kinds of instances to use, the objective, and notes about both.
fn kinds<'a>(
    question: &FleetQuestion<'a>,
) -> Result<(Vec<Instances<'a>>, Goal, Vec<String>), PlanError> {
    let (catalog, edition, wishes) = (question.catalog, question.edition, question.wishes);
    let prices = Prices(question.prices);
    let all = [ManagedInstance::Gp, ManagedInstance::NextGenGp, ManagedInstance::Bc];
    let of = |kind| Instances { kind, catalog, edition, prices, wishes };
    let mut own: Vec<Instances<'a>> =
        all.into_iter().map(of).filter(|own| own.series().next().is_some()).collect();
    let known = own.iter().map(|own| own.kind.name()).collect::<Vec<_>>().join(", ");
    let edition = edition.name().to_owned();
    if own.is_empty() {
        let what = "no managed instances; plan a fleet with another edition, like azure-mi-now";
        return Err(PlanError::Nothing { edition, what: what.to_owned() });
    }
    if let Some(name) =
        wishes.families.iter().find(|name| !own.iter().any(|own| own.kind.name() == *name))
    {
        let what = format!("no instances of the family {name:?}; it has {known}");
        return Err(PlanError::Nothing { edition, what });
    }
    own.retain(|own: &Instances<'_>| {
        wishes.families.is_empty() || wishes.families.iter().any(|name| own.kind.name() == name)
    });
    let mut notes = Vec::new();
    if question.is_fewest {
        return Ok((own, Goal::Instances, notes));
    }
    let is_priced = |own: &Instances<'_>| {
        let host = own.series().next();
        host.is_some_and(|host| {
            let candidate = candidate(own, host, Vec::new(), 1_024, Some(100_000));
            own.bill(&candidate).iter().all(|line| line.each.is_some())
        })
    };
    let without: Vec<&str> =
        own.iter().filter(|own| !is_priced(own)).map(|own| own.kind.name()).collect();
    if without.len() == own.len() {
        return Ok((own, Goal::Vcores, notes));
    }
    if !without.is_empty() {
        let without = without.join(", ");
        notes.push(format!(
            "{without}: left out because prices are missing (add prices with --prices FILE)"
        ));
    }
    own.retain(is_priced);
    Ok((own, Goal::Price, notes))
}

fn candidate<'a>(
    of: &Instances<'a>,
    host: &'a HostSize,
    files: Vec<Files<'a>>,
    storage: u64,
    iops: Option<u64>,
) -> Candidate<'a> {
    let iops = iops.filter(|_| of.kind == ManagedInstance::NextGenGp);
    Candidate { host, files, storage, iops, cost: Cost::default() }
}

struct Fleet<'q, 'a> {
    question: &'q FleetQuestion<'a>,
    kinds: Vec<Instances<'a>>,
    goal: Goal,
    sizes: Vec<Size<'a>>,
    /// By kind, then by member; `None` if the member does not fit.
    footprints: Vec<Vec<Option<Footprint<'a>>>>,
}

impl<'q, 'a> Fleet<'q, 'a> {
    fn new(question: &'q FleetQuestion<'a>, kinds: Vec<Instances<'a>>, goal: Goal) -> Self {
        let mut sizes = Vec::new();
        for (of, kind) in kinds.iter().enumerate() {
            let hosts = kind.series().filter(|host| match &question.wishes.host {
                Some(name) => question.edition.host(name).is_ok_and(|own| own == *host),
                None => true,
            });
            for host in hosts {
                let most = host.storage.unwrap_or(Bytes::ZERO);
                let most = question.wishes.storage.map_or(most, |own| own.min(most));
                let storage = (most.get() >> 30) / kind.step() * kind.step();
                let iops = host.uncached.map(|most| most.iops.get());
                let offer = kind.offer(&candidate(kind, host, Vec::new(), storage.max(1), iops));
                sizes.extend(offer.map(|offer| Size { of, host, offer, storage }));
            }
        }
        let footprint = |kind: &Instances<'a>, member: &Member| footprint(kind, &member.need);
        let footprints = kinds
            .iter()
            .map(|kind| question.members.iter().map(|member| footprint(kind, member)).collect())
            .collect();
        Self { question, kinds, goal, sizes, footprints }
    }

    /// Returns the demand of a database for each shared limit; `None` if it exceeds a limit of its
    /// own.
    fn takes(&self, size: &Size<'_>, member: usize) -> Option<Vec<u64>> {
        let footprint = self.footprints[size.of][member].as_ref()?;
        let own = &self.question.members[member];
        for bound in &size.offer.bounds {
            let used = match bound.measure {
                Measure::DataFile | Measure::LogFile | Measure::FilesOfDatabase => {
                    instance::measured(bound.measure, &footprint.files)
                }
                _ => 0,
            };
            if used > bound.most {
                return None;
            }
        }
        let of = |measure| instance::measured(measure, &footprint.files);
        let most = Flow::most(&footprint.peaks);
        Some(
            Shared::ALL
                .iter()
                .map(|shared: &Shared| match shared {
                    Shared::Vcores => own.millicores,
                    Shared::Storage => footprint.gib,
                    Shared::Blobs => of(Measure::Blobs),
                    Shared::Tempdb => of(Measure::Tempdb),
                    Shared::Files => of(Measure::FileCount),
                    Shared::Databases => 1,
                    Shared::Log => own.need.role(Role::Log).map_or(0, |log| log.throughput),
                    Shared::Operations => most.operations,
                    Shared::Bytes => most.bytes,
                })
                .collect(),
        )
    }

    /// Returns the shared limits of an instance.
    fn room(size: &Size<'_>) -> Vec<u64> {
        let bound = |measure: Measure| {
            let own = size.offer.bounds.iter().filter(move |bound| bound.measure == measure);
            own.map(|bound| bound.most).min()
        };
        let of = |shared: &Shared| match shared {
            Shared::Vcores => size.host.vcpus.map_or(0, u64::from) * 1_000,
            Shared::Storage => {
                let files = bound(Measure::Files).map_or(u64::MAX, |most| most >> 30);
                size.storage.min(files)
            }
            Shared::Blobs => bound(Measure::Blobs).unwrap_or(MOST),
            Shared::Tempdb => bound(Measure::Tempdb).unwrap_or(MOST),
            Shared::Files => bound(Measure::FileCount).unwrap_or(MOST),
            Shared::Databases => bound(Measure::Databases).unwrap_or(MOST),
            Shared::Log => size.offer.log_bytes.min(MOST),
            Shared::Operations => size.offer.all.operations.min(MOST),
            Shared::Bytes => size.offer.all.bytes.min(MOST),
        };
        Shared::ALL.iter().map(of).collect()
    }

    /// Returns an instance with some databases.
    fn candidate(&self, size: &Size<'a>, members: &[usize]) -> Candidate<'a> {
        let kind = &self.kinds[size.of];
        let footprints =
            members.iter().filter_map(|member| self.footprints[size.of][*member].as_ref());
        let least: u64 = footprints.clone().map(|footprint| footprint.gib).sum();
        let first = least.max(1).next_multiple_of(kind.step());
        if kind.kind == ManagedInstance::NextGenGp {
            let mut peaks = [Flow::default(), Flow::default()];
            for footprint in footprints {
                for (at, all) in peaks.iter_mut().enumerate() {
                    // A database with a single peak has it at both times.
                    let own = footprint.peaks.get(at).or_else(|| footprint.peaks.first());
                    own.into_iter().for_each(|own| *all += own);
                }
            }
            // More storage includes more IOPS and may be cheaper than buying them. The cost is
            // convex in the storage, so its minimum is at the first size or where no IOPS are
            // bought.
            let needed = kind.iops(size.host, first, &peaks).unwrap_or(0);
            let enough = kind.storage_for(needed).clamp(first, size.storage.max(first));
            let with = |storage: u64| {
                let iops = kind.iops(size.host, storage, &peaks);
                candidate(kind, size.host, Vec::new(), storage, iops)
            };
            let below = enough.saturating_sub(kind.step()).max(first);
            let ways = [with(first), with(below), with(enough)];
            return ways
                .into_iter()
                .min_by_key(|own| kind.bill_total(own))
                .unwrap_or_else(|| with(first));
        }
        candidate(kind, size.host, Vec::new(), first, None)
    }

    /// Returns the value of an instance in the objective.
    fn bill(&self, size: &Size<'a>, members: &[usize]) -> u64 {
        let vcores = size.host.vcpus.map_or(0, u64::from);
        match self.goal {
            Goal::Price => {
                let candidate = self.candidate(size, members);
                let lines = self.kinds[size.of].bill(&candidate);
                let month: Money = lines.iter().filter_map(Line::month).sum();
                month.micros()
            }
            Goal::Vcores => vcores * 1_000_000 + self.gib(size, members),
            Goal::Instances => 1_000_000_000_000 + vcores * 100_000,
        }
    }

    fn gib(&self, size: &Size<'_>, members: &[usize]) -> u64 {
        let footprints =
            members.iter().filter_map(|member| self.footprints[size.of][*member].as_ref());
        footprints.map(|footprint| footprint.gib).sum()
    }

    /// Returns the price of an instance without storage, less the value of the included storage,
    /// and the price of each GiB.
    fn linear(&self, size: &Size<'a>) -> (u64, u64) {
        match self.goal {
            Goal::Price => {
                let kind = &self.kinds[size.of];
                let lines = kind.bill(&candidate(kind, size.host, Vec::new(), 0, Some(0)));
                let storage = lines.iter().find(|line| line.what == instance::STORAGE);
                let each = storage.and_then(|line| line.each).map_or(0, Money::micros);
                let free = storage.map_or(0, |line| line.free);
                let month: Money = lines.iter().filter_map(Line::month).sum();
                // The lower bound must not exceed the bill. If the included storage is worth more
                // than the instance, it is not subtracted.
                match month.micros().checked_sub(each.saturating_mul(free)) {
                    Some(cost) => (cost, each),
                    None => (month.micros(), 0),
                }
            }
            Goal::Vcores => (size.host.vcpus.map_or(0, u64::from) * 1_000_000, 1),
            Goal::Instances => (self.bill(size, &[]), 0),
        }
    }

    fn plan(
        &self,
        mut notes: Vec<String>,
        watch: &dyn Fn(Progress),
    ) -> Result<FleetOutcome, PlanError> {
        let linear: Vec<(u64, u64)> = self.sizes.iter().map(|size| self.linear(size)).collect();
        let kinds = self
            .sizes
            .iter()
            .zip(&linear)
            .map(|(size, (cost, _))| Kind { cost: *cost, capacity: Self::room(size) });
        let fit = |(size, (_, each)): (&Size<'_>, &(u64, u64)), member: usize| {
            let takes = self.takes(size, member)?;
            let gib = self.footprints[size.of][member].as_ref()?.gib;
            Some(Fit { cost: each.saturating_mul(gib), demand: takes })
        };
        let bill = |kind: usize, members: &[usize]| self.bill(&self.sizes[kind], members);
        let problem = Problem {
            kinds: kinds.collect(),
            items: (0..self.question.members.len())
                .map(|member: usize| Item {
                    fits: self.sizes.iter().zip(&linear).map(|size| fit(size, member)).collect(),
                })
                .collect(),
            bin_cost: &bill,
        };
        let packing = match weir_pack::solve_watched(&problem, &self.question.effort, watch) {
            Ok(packing) => packing,
            Err(PackError::NoBin { items }) => {
                return Ok(FleetOutcome::NotMet(
                    items
                        .iter()
                        .map(|member: &usize| {
                            (self.question.members[*member].name.clone(), self.lacks(*member))
                        })
                        .collect(),
                ));
            }
            Err(error) => return Err(PlanError::need("the fleet", error.to_string())),
        };
        let instances: Vec<FleetInstance> =
            packing.bins.iter().map(|bin| self.instance(bin.kind, &bin.items)).collect();
        let cost = instances.iter().fold(Cost::default(), |sum, own| sum + own.plan.cost);
        notes.push("the peaks of all databases are assumed to coincide".to_owned());
        Ok(FleetOutcome::Met(Box::new(FleetPlan {
            instances,
            cost,
            goal: self.goal,
            bound: (self.goal == Goal::Price).then(|| Money::from_micros(packing.bound)),
            gap: packing.gap(),
            notes,
        })))
    }

    fn instance(&self, kind: usize, members: &[usize]) -> FleetInstance {
        let size = &self.sizes[kind];
        let of = &self.kinds[size.of];
        let mut candidate = self.candidate(size, members);
        candidate.cost = of.bill_total(&candidate);
        let mut text = of.host_table(&candidate);
        let mut tempdb = 0;
        for member in members {
            let Some(footprint) = &self.footprints[size.of][*member] else { continue };
            for files in &footprint.files {
                match files.role {
                    Role::Tempdb => tempdb += files.gib,
                    _ => {
                        let name = self.question.members[*member].name.as_str();
                        instance::write_files(&mut text, files, Some(name));
                    }
                }
            }
        }
        if tempdb > 0 {
            let files = Files { role: Role::Tempdb, count: 1, gib: tempdb, tier: None };
            instance::write_files(&mut text, &files, None);
        }
        let room = Self::room(size);
        let mut used = vec![0_u64; room.len()];
        for takes in members.iter().filter_map(|member| self.takes(size, *member)) {
            used.iter_mut().zip(takes).for_each(|(used, own)| *used += own);
        }
        let caps = Shared::ALL
            .iter()
            .zip(used)
            .zip(room)
            .filter(|((_, used), most)| *used > 0 && *most < MOST);
        let name = &size.host.name;
        let caps = caps.map(|((shared, used), most)| shared.cap(name, used, most)).collect();
        let iops = candidate.iops.map(|iops| format!(", {iops} IOPS")).unwrap_or_default();
        let plan = Plan {
            family: of.kind.name().to_owned(),
            title: format!(
                "{} with {} vCores, {}{iops}: {}",
                of.kind.name(),
                size.host.vcpus.unwrap_or_default(),
                Bytes::gib(candidate.storage),
                match members.len() {
                    1 => "1 database".to_owned(),
                    n => format!("{n} databases"),
                }
            ),
            layout: text.finish(),
            lines: of.bill(&candidate),
            cost: candidate.cost,
            caps,
            reasons: Vec::new(),
            disks: 0,
            passed_over: None,
        };
        FleetInstance { members: members.to_vec(), plan }
    }

    /// Returns the limits that a database exceeds on the nearest instance.
    fn lacks(&self, member: usize) -> Vec<CapUse> {
        let lacking = self.sizes.iter().filter_map(|size| {
            let name = &size.host.name;
            let Some(takes) = self.takes(size, member) else {
                // Limits of single files or databases.
                let files = &self.footprints[size.of][member].as_ref()?.files;
                let bounds = size.offer.bounds.iter().filter_map(|bound| {
                    let used = instance::measured(bound.measure, files);
                    let cap = bound.measure.name();
                    match bound.measure.is_bytes() {
                        true => CapUse::size(name, cap, Bytes::new(used), Bytes::new(bound.most)),
                        false => CapUse::number(name, cap, used, bound.most),
                    }
                    .lacking()
                });
                let caps: Vec<CapUse> = bounds.collect();
                return Some((caps.iter().map(CapUse::share).max().unwrap_or(0), caps.len(), caps));
            };
            let caps: Vec<CapUse> = Shared::ALL
                .iter()
                .zip(takes)
                .zip(Self::room(size))
                .filter(|((_, used), most)| used > most)
                .map(|((shared, used), most)| shared.cap(name, used, most))
                .collect();
            Some((caps.iter().map(CapUse::share).max().unwrap_or(0), caps.len(), caps))
        });
        let nearest = lacking.min_by_key(|(share, count, _)| (*share, *count));
        nearest.map(|(.., caps)| caps).unwrap_or_default()
    }
}

/// Maximum number of databases of a fleet.
pub const MOST_MEMBERS: usize = 2_000;

/// A limit above all sums of demands.
const MOST: u64 = 1 << 60;

/// Returns the files of a need that take the least storage on a kind of instance, the fewest among
/// equals.
fn footprint<'a>(kind: &Instances<'a>, need: &Need) -> Option<Footprint<'a>> {
    if kind.is_slow(need) {
        return None;
    }
    let mut files = Vec::new();
    for own in &need.roles {
        if own.role == Role::Tempdb {
            let size = gib(own.size);
            files.push(Files { role: Role::Tempdb, count: 1, gib: size, tier: None });
            continue;
        }
        let ways = kind.files(own).into_iter().flatten();
        files.push(ways.min_by_key(|files| (files.count * files.gib, files.count))?);
    }
    let gib = files.iter().map(|files| files.count * files.gib).sum();
    Some(Footprint { files, gib, peaks: kind.peaks(need) })
}
