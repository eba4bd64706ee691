//! The families of managed instances: vCores, storage, and number and size of files.
//!
//! A General Purpose file has the limits of the tier of its size, so the smallest size of a tier
//! (one GiB above the tier below) has the same limits as the largest. For each tier, every number
//! of equal data files is tried; the log is a single file. The next generation has one quota for
//! all files, by reserved storage or bought on top of it. The limits of Business Critical come with
//! its vCores.

use crate::answer::{CapUnit, CapUse, Line, Reason};
use crate::cost::{Cost, Prices, gib};
use crate::demand::{self, Flow, Limits, Peak};
use crate::disks::typical;
use crate::error::PlanError;
use crate::family::{Family, Searched};
use crate::keep::KeptFiles;
use crate::need::{MOST_FILES, Need, RoleNeed, Wishes};
use crate::rank::Aim;
use weir_catalog::{Catalog, Edition, HostSize, Per, RuleValue, Tier, TierSet};
use weir_core::Limit;
use weir_layout::file::{FileKeys, HostKeys};
use weir_layout::instance::{Bound, Measure};
use weir_layout::{LayoutText, ManagedInstance, Role};
use weir_units::{Bytes, Iops};

/// The line of the bill for storage.
pub(crate) const STORAGE: &str = "GiB of storage";

/// The search among instances of one kind.
#[derive(Debug)]
pub(crate) struct Instances<'a> {
    /// The kind.
    pub(crate) kind: ManagedInstance,
    /// All editions, which resolve the layouts.
    pub(crate) catalog: &'a Catalog,
    /// The edition.
    pub(crate) edition: &'a Edition,
    /// The prices.
    pub(crate) prices: Prices<'a>,
    /// The constraints.
    pub(crate) wishes: &'a Wishes,
}

/// Equal files of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Files<'a> {
    pub(crate) role: Role,
    pub(crate) count: u64,
    /// The size of each in GiB.
    pub(crate) gib: u64,
    pub(crate) tier: Option<&'a Tier>,
}

/// An instance with its files.
#[derive(Debug, Clone)]
pub(crate) struct Candidate<'a> {
    pub(crate) host: &'a HostSize,
    pub(crate) files: Vec<Files<'a>>,
    /// Reserved storage in GiB.
    pub(crate) storage: u64,
    /// IOPS including those bought, for kinds that sell IOPS.
    pub(crate) iops: Option<u64>,
    pub(crate) cost: Cost,
}

/// Limits of an instance and of its files.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) all: Limits,
    pub(crate) log_bytes: u64,
    pub(crate) bounds: Vec<Bound>,
}

impl<'a> Instances<'a> {
    /// Finds the cheapest layout.
    ///
    /// # Errors
    ///
    /// [`PlanError::Need`] for roles that an instance does not have.
    pub(crate) fn search(&self, need: &Need, aim: Aim) -> Result<Searched, PlanError> {
        check(need)?;
        if self.is_slow(need) {
            return Ok(Searched::default());
        }
        let hosts = self.hosts(need).into_iter();
        let candidates = hosts.flat_map(|host| self.candidates(need, host));
        Ok(self.pick(need, candidates, aim))
    }

    /// Returns the sizes of this kind.
    pub(crate) fn series(&self) -> impl Iterator<Item = &'a HostSize> {
        let name = self.kind.name();
        let series = self.edition.series().iter().filter(move |series| series.name == name);
        series.flat_map(|series| &series.hosts)
    }

    fn hosts(&self, need: &Need) -> Vec<&'a HostSize> {
        self.series()
            .filter(|host: &&HostSize| match &self.wishes.host {
                Some(name) => self.edition.host(name).is_ok_and(|own| own == *host),
                None => true,
            })
            .filter(|host: &&HostSize| self.stays(host) && self.has_kept_iops(host))
            .filter(|host: &&HostSize| host.vcpus.is_some_and(|own| own >= need.vcpus))
            .collect()
    }

    /// Returns whether the vCores may change, or are those in use.
    fn stays(&self, host: &HostSize) -> bool {
        match &self.wishes.keep {
            Some(kept) if kept.is_up => {
                kept.instance.is_some_and(|(_, vcores, _)| host.vcpus == Some(vcores))
            }
            _ => true,
        }
    }

    /// Returns the total IOPS that the instance in use has bought.
    fn kept_iops(&self) -> u64 {
        self.wishes.keep.as_ref().and_then(|kept| kept.iops).unwrap_or(0)
    }

    /// Returns whether these vCores allow the IOPS that the instance in use has bought.
    fn has_kept_iops(&self, host: &HostSize) -> bool {
        host.uncached.is_none_or(|most| most.iops.get() >= self.kept_iops())
    }

    /// Returns the storage in use, in GiB.
    fn reserved(&self) -> u64 {
        let kept = self.wishes.keep.as_ref().and_then(|kept| kept.instance);
        kept.map_or(0, |(.., storage)| gib(storage))
    }

    /// Returns whether limits of the instance count the requests of tempdb.
    fn counts_tempdb(&self) -> bool {
        self.kind == ManagedInstance::Bc
    }

    fn set(&self) -> Option<&'a TierSet> {
        let kept = self.wishes.keep.as_ref().and_then(|own| own.tiers.as_deref());
        let kept = kept.and_then(|name| self.edition.tier_set(name).ok());
        kept.or(self.edition.default_set()).filter(|_| self.kind == ManagedInstance::Gp)
    }

    /// Lists the candidates with these vCores.
    fn candidates(&self, need: &Need, host: &'a HostSize) -> Vec<Candidate<'a>> {
        // The limits of tempdb are not published, other than on Business Critical.
        let mut rates = need.roles.iter().filter(|own| own.throughput > 0);
        let is_unknown = rates.all(|own| own.role == Role::Tempdb && !self.counts_tempdb());
        if self.wishes.needs_limits && is_unknown {
            return Vec::new();
        }
        let of = |role: Role| match need.role(role) {
            Some(own) => self.files(own),
            None => vec![None],
        };
        let mut all = Vec::new();
        for data in of(Role::Data) {
            for log in of(Role::Log) {
                let tempdb = need.role(Role::Tempdb).map(|own| Files {
                    role: Role::Tempdb,
                    count: 1,
                    gib: gib(own.size),
                    tier: None,
                });
                let files: Vec<Files<'_>> = [data, log, tempdb].into_iter().flatten().collect();
                let least: u64 = files.iter().map(|files| files.count * files.gib).sum();
                all.extend(
                    self.storages(least, host)
                        .into_iter()
                        .map(|storage| self.candidate(need, host, files.clone(), storage)),
                );
            }
        }
        all
    }

    /// Lists the sizes of storage to reserve: the smallest, or all of them where more storage
    /// includes more IOPS.
    fn storages(&self, least: u64, host: &HostSize) -> Vec<u64> {
        let step = self.step();
        let first = least.max(self.reserved()).max(1).next_multiple_of(step);
        let most = host.storage.map_or(first, |most| most.get() >> 30);
        match self.kind {
            ManagedInstance::NextGenGp if first < most => {
                (first..=most).step_by(usize::try_from(step).unwrap_or(usize::MAX)).collect()
            }
            _ => vec![first],
        }
    }

    pub(crate) fn step(&self) -> u64 {
        match self.edition.rule("storage-step").and_then(|rule| rule.value) {
            Some(RuleValue::Size(step)) => gib(step).max(1),
            _ => 1,
        }
    }

    /// Lists the possible files of a role.
    pub(crate) fn files(&self, need: &RoleNeed) -> Vec<Option<Files<'a>>> {
        let role = need.role;
        let kept = self.wishes.keep.as_ref().and_then(|kept| kept.files(role));
        let (there, large) = kept.map_or((1, 0), |kept| (kept.count, kept.gib));
        let Some(set) = self.set() else {
            let size = gib(need.size).div_ceil(there).max(large);
            return vec![Some(Files { role, count: there, gib: size, tier: None })];
        };
        let peaks = self.peaks_of(need);
        let wished = self.wishes.max_files.unwrap_or(MOST_FILES);
        let most = if role == Role::Data { self.most_files().min(wished) } else { 1 };
        let most = most.max(there);
        let mut all = Vec::new();
        let mut below = 0;
        for tier in &set.tiers {
            let limits = Limits { operations: tier.iops.get(), bytes: tier.throughput.get() };
            let least = peaks.iter().map(|flow| flow.fewest(limits)).max().unwrap_or(0).max(there);
            for count in least..=most {
                let size = gib(need.size).div_ceil(count).max(below + 1).max(large);
                if size <= tier.holds.get() >> 30 {
                    all.push(Some(Files { role, count, gib: size, tier: Some(tier) }));
                }
                // More files would each have the smallest size of the tier and only take more
                // storage.
                if size == below + 1 && count > least {
                    break;
                }
            }
            below = tier.holds.get() >> 30;
        }
        all
    }

    fn most_files(&self) -> u64 {
        match self.edition.rule("max-files").and_then(|rule| rule.value) {
            Some(RuleValue::Count(most)) => most,
            _ => 1024,
        }
    }

    fn candidate(
        &self,
        need: &Need,
        host: &'a HostSize,
        files: Vec<Files<'a>>,
        storage: u64,
    ) -> Candidate<'a> {
        let iops = self.iops(host, storage, &self.peaks(need));
        let mut candidate = Candidate { host, files, storage, iops, cost: Cost::default() };
        candidate.cost = self.bill_total(&candidate);
        candidate
    }

    /// Returns the IOPS of a next-generation instance: those included with its storage, or more if
    /// the load needs them. If no number carries the load, the maximum is returned.
    pub(crate) fn iops(&self, host: &HostSize, storage: u64, peaks: &[Flow]) -> Option<u64> {
        if self.kind != ManagedInstance::NextGenGp {
            return None;
        }
        // The storage of a large instance may include more IOPS than its vCores allow.
        let most = host.uncached.map_or(u64::MAX, |most| most.iops.get());
        let included = self.included(storage).min(most).max(self.kept_iops());
        let fits = |iops: u64| peaks.iter().all(|flow| flow.fits(self.quota(host, iops), 1));
        if fits(included) || !fits(most) {
            // For a load that no number carries, the limits of the plan say so.
            return Some(if fits(included) { included } else { most });
        }
        let (mut low, mut high) = (included, most);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }

    /// Returns the quota for a number of IOPS.
    fn quota(&self, host: &HostSize, iops: u64) -> Limits {
        let per_mb = self.number("quota-iops-per-throughput").unwrap_or(1).max(1);
        let bytes = u64::try_from(u128::from(iops) * 1_000_000 / u128::from(per_mb));
        let bytes = bytes.unwrap_or(u64::MAX).max(self.number("quota-throughput-min").unwrap_or(0));
        let most = host.uncached.map_or(u64::MAX, |most| most.throughput.get());
        Limits { operations: iops, bytes: bytes.min(most) }
    }

    fn number(&self, rule: &str) -> Option<u64> {
        Some(self.edition.rule(rule)?.value?.number())
    }

    /// Returns the load on a role's files, at each of its peaks.
    fn peaks_of(&self, need: &RoleNeed) -> Vec<Flow> {
        let of = |peak| demand::flow(need, peak, self.edition.io_unit(), None);
        match demand::has_more_throughput(need) {
            true => vec![of(Peak::Operations), of(Peak::Throughput)],
            false => vec![of(Peak::Operations)],
        }
    }

    /// Returns the load on the instance, at each peak of the need.
    pub(crate) fn peaks(&self, need: &Need) -> Vec<Flow> {
        // tempdb is on local SSD, as are all files of Business Critical.
        let is_counted = |role| role != Role::Tempdb || self.kind == ManagedInstance::Bc;
        Peak::of_need(need)
            .iter()
            .map(|peak: &Peak| {
                let mut all = Flow::default();
                for own in need.roles.iter().filter(|own| is_counted(own.role)) {
                    all += &demand::flow(own, *peak, self.edition.io_unit(), None);
                }
                all
            })
            .collect()
    }

    /// Returns the sum of the bill.
    pub(crate) fn bill_total(&self, candidate: &Candidate<'_>) -> Cost {
        let lines = self.bill(candidate);
        // IOPS without a price count even if none are bought. Otherwise a candidate without bought
        // IOPS would rank first, whatever its storage.
        let unpriced = lines.iter().filter(|line| line.each.is_none()).count();
        let files: u64 = candidate.files.iter().map(|files| files.count).sum();
        let vcores = candidate.host.vcpus.map_or(0, u64::from);
        Cost {
            unpriced: u32::try_from(unpriced).unwrap_or(u32::MAX),
            month: lines.iter().filter_map(Line::month).sum(),
            size: vcores << 48
                | candidate.storage << 24
                | candidate.iops.unwrap_or(0).min(0xFFFF) << 8
                | files.min(0xFF),
        }
    }

    /// Returns the bill: vCores, licence, storage, and IOPS.
    pub(crate) fn bill(&self, candidate: &Candidate<'_>) -> Vec<Line> {
        let series = self.kind.name();
        let vcores = candidate.host.vcpus.map_or(0, u64::from);
        let line = |what: &str, units: u64, per: Per| {
            Line::of(what.to_owned(), units, self.prices.unit(series, per))
        };
        let mut lines = vec![line("vCores", vcores, Per::Vcore)];
        if !self.wishes.owns_licence() {
            lines.push(line("vCores, licence of SQL Server", vcores, Per::Licence));
        }
        lines.push(line(STORAGE, candidate.storage, Per::Gib));
        if let Some(iops) = candidate.iops {
            let included = self.included(candidate.storage);
            lines.push(line("IOPS bought", iops.saturating_sub(included), Per::Iops));
        }
        lines
    }

    /// Returns the storage that includes this many IOPS, in GiB.
    pub(crate) fn storage_for(&self, iops: u64) -> u64 {
        let per_gib = self.number("quota-iops-per-gb").unwrap_or(0).max(1);
        iops.div_ceil(per_gib).next_multiple_of(self.step())
    }

    fn included(&self, storage: u64) -> u64 {
        let by_storage = storage * self.number("quota-iops-per-gb").unwrap_or(0);
        by_storage.max(self.number("quota-iops-min").unwrap_or(0))
    }

    /// Returns the limits of a candidate; `None` if it cannot be built.
    pub(crate) fn offer(&self, candidate: &Candidate<'_>) -> Option<Offer> {
        let keys = HostKeys {
            vcores: candidate.host.vcpus,
            storage: Some(Bytes::gib(candidate.storage)),
            iops: candidate.iops.and_then(Iops::new),
            ..HostKeys::default()
        };
        let (instance, _, spec) =
            weir_layout::instance::resolve(self.kind, &keys, self.edition, self.catalog).ok()?;
        let rate = |limit: Option<Limit>| limit.map_or(u64::MAX, |limit| limit.rate.get());
        let gate = match self.kind {
            ManagedInstance::Bc => spec.cached,
            ManagedInstance::Gp | ManagedInstance::NextGenGp => spec.uncached,
        };
        let all = Limits { operations: rate(gate.iops), bytes: rate(gate.bytes) };
        Some(Offer { all, log_bytes: rate(spec.log_rate), bounds: instance.bounds })
    }

    /// Returns the use of every limit.
    fn cap_uses(&self, need: &Need, candidate: &Candidate<'_>) -> Vec<CapUse> {
        let of = &candidate.host.name;
        let mut caps = Vec::new();
        let most = candidate.host.storage.unwrap_or(Bytes::ZERO);
        let most = self.wishes.storage.map_or(most, |own| own.min(most));
        caps.push(CapUse::size(of, "storage", Bytes::gib(candidate.storage), most));
        for files in &candidate.files {
            let Some(own) = need.role(files.role) else { continue };
            let name = files.role.name();
            let room = Bytes::gib(files.count * files.gib);
            caps.push(CapUse::size(name, "size", own.size, room));
            if let Some(tier) = files.tier {
                let peaks = self.peaks_of(own);
                let peaks: Vec<&Flow> = peaks.iter().collect();
                let each = Limits { operations: tier.iops.get(), bytes: tier.throughput.get() };
                let names = ["file operations", "file bytes"];
                caps.extend(CapUse::rates(name, &peaks, each, files.count, names));
            }
        }
        let Some(offer) = self.offer(candidate) else { return caps };
        if offer.all.operations < u64::MAX {
            let peaks = self.peaks(need);
            let peaks: Vec<&Flow> = peaks.iter().collect();
            let names = ["instance operations", "instance bytes"];
            caps.extend(CapUse::rates(of, &peaks, offer.all, 1, names));
        }
        if let Some(log) = need.role(Role::Log).filter(|_| offer.log_bytes < u64::MAX) {
            let (used, most) = (log.throughput, offer.log_bytes);
            let (cap, unit, is_rate) = ("log rate", CapUnit::Rate, true);
            caps.push(CapUse { of: of.clone(), cap, unit, is_rate, used, most });
        }
        for Bound { measure, most } in offer.bounds {
            let used = measured(measure, &candidate.files);
            if used == 0 || measure == Measure::Files {
                continue;
            }
            let (cap, size) = (measure.name(), Bytes::new);
            caps.push(match measure.is_bytes() {
                true => CapUse::size(of, cap, size(used), size(most)),
                false => CapUse::number(of, cap, used, most),
            });
        }
        caps
    }

    /// Returns whether the medium is slower than a role's maximum latency, whatever is bought.
    pub(crate) fn is_slow(&self, need: &Need) -> bool {
        let family = match self.set() {
            Some(set) => set.family.clone(),
            None => format!("mi-{}", self.kind.name()),
        };
        let remote = need.roles.iter().filter(|own| own.role != Role::Tempdb);
        let mut limited = remote.filter_map(|own| Some((own.latency?, own.request)));
        limited.any(|(most, request)| {
            typical(self.edition, &family, request).is_none_or(|own| own > most)
        })
    }

    /// Describes a candidate in one line.
    fn describe(&self, candidate: &Candidate<'_>) -> String {
        let files = candidate
            .files
            .iter()
            .map(|files| {
                let tier = files.tier.map(|tier| format!(" ({})", tier.name)).unwrap_or_default();
                let size = Bytes::gib(files.gib);
                format!("{} {} x {size}{tier}", files.role.name(), files.count)
            })
            .collect::<Vec<_>>()
            .join(", ");
        let iops = candidate.iops.map(|iops| format!(", {iops} IOPS")).unwrap_or_default();
        let storage = Bytes::gib(candidate.storage);
        let (kind, vcores) = (self.kind.name(), candidate.host.vcpus.unwrap_or_default());
        format!("{kind} with {vcores} vCores, {storage}{iops}: {files}")
    }

    /// Writes the layout file.
    fn layout_file(&self, candidate: &Candidate<'_>) -> String {
        let mut text = self.host_table(candidate);
        for files in &candidate.files {
            let kept = self.wishes.keep.as_ref().and_then(|kept| kept.files(files.role));
            match kept {
                Some(kept) => write_kept(&mut text, files, kept),
                None => write_files(&mut text, files, None),
            }
        }
        text.finish()
    }

    /// Returns the name of the tier set, if it is not that of the edition.
    fn stated_set(&self) -> Option<String> {
        let default = self.edition.default_set().map(|own| &own.name);
        self.set().map(|own| &own.name).filter(|own| Some(*own) != default).cloned()
    }

    /// Begins a layout with its edition and its instance.
    pub(crate) fn host_table(&self, candidate: &Candidate<'_>) -> LayoutText {
        let included = self.included(candidate.storage);
        let mut text =
            LayoutText::new(self.edition.name()).in_region(self.wishes.region.as_deref());
        text.host(&HostKeys {
            managed_instance: Some(self.kind),
            tiers: self.stated_set(),
            vcores: Some(candidate.host.vcpus.unwrap_or_default()),
            storage: Some(Bytes::gib(candidate.storage)),
            iops: candidate.iops.filter(|iops| *iops > included).and_then(Iops::new),
            licence_owned: self.wishes.owns_licence(),
            ..HostKeys::default()
        });
        text
    }

    /// Returns the reasons for the files and the limits.
    fn all_reasons(&self, need: &Need, candidate: &Candidate<'_>) -> Vec<Reason> {
        let mut all = Vec::new();
        for files in &candidate.files {
            let (Some(tier), Some(own)) = (files.tier, need.role(files.role)) else { continue };
            let peaks = self.peaks_of(own);
            let most = Flow::most(&peaks);
            let (name, size) = (files.role.name(), Bytes::gib(files.gib));
            all.push(Reason::detail(format!(
                "{name}: needs {} IOPS and {}; {} x {size} are of tier {}, with {} and {} each",
                most.operations,
                crate::need::rate_words(most.bytes),
                files.count,
                tier.name,
                tier.iops,
                tier.throughput,
            )));
            if Bytes::gib(files.gib * files.count) > own.size {
                let room = Bytes::gib(files.gib * files.count);
                all.push(Reason::detail(format!(
                    "{name}: {room} for {} of data, because the limits depend on the size",
                    own.size
                )));
            }
        }
        if candidate.files.iter().any(|files| files.role == Role::Data && files.count > 1) {
            all.push(Reason::detail(
                "data files have equal sizes: writes are distributed by free space, so the \
                 smallest file would throttle all",
            ));
        }
        if need.role(Role::Tempdb).is_some_and(|own| own.throughput > 0) && !self.counts_tempdb() {
            let words = "tempdb: on the local disk of the instance, whose limits are not published \
                         and not checked";
            all.push(Reason::key(words));
        }
        let kept = Some(self.kept_iops()).filter(|kept| *kept > self.included(candidate.storage));
        let words = kept.map(|kept| match candidate.iops {
            Some(iops) if iops > kept => {
                format!("the instance in use goes from {kept} to {iops} IOPS")
            }
            _ => format!("the instance in use keeps its {kept} IOPS"),
        });
        all.extend(words.map(Reason::key));
        all.extend(self.growth(candidate).into_iter().map(Reason::key));
        let log = candidate.files.iter().find(|files| files.role == Role::Log);
        if log.is_some_and(|files| files.tier.is_some()) {
            all.push(Reason::detail(
                "SQL Server writes to one log file at a time, so grow it first",
            ));
        }
        all
    }

    /// Returns the order in which to grow files in use: by IOPS gained per GiB, the log first among
    /// equals.
    fn growth(&self, candidate: &Candidate<'_>) -> Vec<String> {
        let Some(kept) = &self.wishes.keep else { return Vec::new() };
        let mut steps: Vec<(u64, u64, String)> = Vec::new();
        for files in &candidate.files {
            let (Some(old), Some(tier)) = (kept.files(files.role), files.tier) else { continue };
            let of = |gib: u64| self.set().and_then(|set| set.snap(Bytes::gib(gib)));
            let before: u64 =
                old.each.iter().filter_map(|(_, gib)| of(*gib)).map(|tier| tier.iops.get()).sum();
            let after = tier.iops.get() * files.count;
            let takes = (files.count * files.gib).saturating_sub(old.total);
            if takes == 0 {
                continue;
            }
            let gain = after.saturating_sub(before) * 1_000 / takes;
            let more = match files.count - old.count {
                0 => String::new(),
                n => format!(", plus {n} more of that size"),
            };
            steps.push((
                gain,
                u64::from(files.role == Role::Log),
                format!(
                    "{}: {} ({} in total) to {} each{more}, from {before} to {after} IOPS for {} \
                     of storage",
                    files.role.name(),
                    if old.count == 1 {
                        "1 file".to_owned()
                    } else {
                        format!("{} files", old.count)
                    },
                    Bytes::gib(old.total),
                    Bytes::gib(files.gib),
                    Bytes::gib(takes),
                ),
            ));
        }
        steps.sort_by_key(|(gain, log, _)| std::cmp::Reverse((*gain, *log)));
        let count = steps.len();
        steps
            .into_iter()
            .enumerate()
            .map(|(at, (.., text)): (usize, (u64, u64, String))| match count {
                1 => format!("grow {text}"),
                _ => format!("grow {}. {text}", at + 1),
            })
            .collect()
    }

    /// Returns the most expensive candidate that is one step cheaper than the best and fails. A step
    /// is a file less, a smaller tier, or fewer vCores.
    fn one_step_cheaper(&self, need: &Need, best: &Candidate<'a>) -> Option<Candidate<'a>> {
        let mut all: Vec<Candidate<'a>> = Vec::new();
        for (at, files) in best.files.iter().enumerate() {
            let mut with = |own: Files<'a>| {
                let mut files = best.files.clone();
                files[at] = own;
                let least = files.iter().map(|files| files.count * files.gib).sum::<u64>();
                let storage = least.max(self.reserved()).max(1).next_multiple_of(self.step());
                let mut candidate = Candidate { files, storage, ..best.clone() };
                candidate.cost = self.bill_total(&candidate);
                all.push(candidate);
            };
            if files.count > 1 {
                with(Files { count: files.count - 1, ..*files });
            }
            let below = self.set().and_then(|set| {
                let tier = files.tier?;
                set.tiers.iter().rev().find(|own| own.holds < tier.holds)
            });
            if let Some(tier) = below {
                with(Files { gib: tier.holds.get() >> 30, tier: Some(tier), ..*files });
            }
        }
        for host in self.series().filter(|host: &&HostSize| {
            host.vcpus < best.host.vcpus && self.stays(host) && self.has_kept_iops(host)
        }) {
            let mut candidate = Candidate { host, ..best.clone() };
            candidate.cost = self.bill_total(&candidate);
            all.push(candidate);
        }
        // Files in use stay, and do not shrink.
        let is_kept = |candidate: &Candidate<'_>| {
            let kept = |files: &Files<'_>| self.wishes.keep.as_ref()?.files(files.role);
            candidate.files.iter().all(|own| {
                kept(own).is_none_or(|kept| own.count >= kept.count && own.gib >= kept.gib)
            })
        };
        let is_less = |candidate: &Candidate<'a>| {
            // Without prices, the smaller layout counts as cheaper.
            let saves = candidate.cost.month < best.cost.month || best.cost.unpriced > 0;
            candidate.cost.unpriced == best.cost.unpriced
                && saves
                && candidate.cost < best.cost
                && is_kept(candidate)
        };
        let all = all
            .into_iter()
            .filter(|candidate| is_less(candidate) && !self.fails(need, candidate).is_empty());
        all.max_by_key(|candidate| candidate.cost)
    }
}

impl<'a> Family for Instances<'a> {
    type Candidate = Candidate<'a>;

    const PROCESSORS: &'static str = "vCores";

    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn host<'c>(&self, candidate: &'c Candidate<'a>) -> &'c HostSize {
        candidate.host
    }

    fn cost(&self, candidate: &Candidate<'a>) -> Cost {
        candidate.cost
    }

    fn is_buildable(&self, candidate: &Candidate<'a>) -> bool {
        self.offer(candidate).is_some()
    }

    fn title(&self, _need: &Need, candidate: &Candidate<'a>) -> String {
        self.describe(candidate)
    }

    fn layout(&self, _need: &Need, candidate: &Candidate<'a>) -> String {
        self.layout_file(candidate)
    }

    fn lines(&self, _need: &Need, candidate: &Candidate<'a>) -> Vec<Line> {
        self.bill(candidate)
    }

    fn caps(&self, need: &Need, candidate: &Candidate<'a>) -> Vec<CapUse> {
        self.cap_uses(need, candidate)
    }

    fn reasons(&self, need: &Need, candidate: &Candidate<'a>) -> Vec<Reason> {
        self.all_reasons(need, candidate)
    }

    fn next_cheaper(&self, need: &Need, best: &Candidate<'a>) -> Option<Candidate<'a>> {
        self.one_step_cheaper(need, best)
    }
}

/// Writes equal files, with their database if there are several.
pub(crate) fn write_files(text: &mut LayoutText, files: &Files<'_>, database: Option<&str>) {
    let role = files.role.name();
    for n in 1..=files.count {
        let name = if files.count == 1 { role.to_owned() } else { format!("{role}{n}") };
        let name = database.map_or_else(|| name.clone(), |own| format!("{own}-{name}"));
        let keys = FileKeys::new(name, files.role, Bytes::gib(files.gib));
        text.file(&FileKeys { database: database.map(str::to_owned), ..keys });
    }
}

/// Writes files in use under their names, and new files under names derived from the first one.
fn write_kept(text: &mut LayoutText, files: &Files<'_>, kept: &KeptFiles) {
    let first = kept.each.first().map_or(files.role.name(), |(name, _)| name.as_str());
    let is_taken = |name: &str| kept.each.iter().any(|(own, _)| own == name);
    let mut names: Vec<String> = kept.each.iter().map(|(name, _)| name.clone()).collect();
    let more = (2..).map(|n: u64| format!("{first}_{n}")).filter(|name| !is_taken(name));
    let lacking = usize::try_from(files.count).unwrap_or(usize::MAX).saturating_sub(names.len());
    names.extend(more.take(lacking));
    for name in names {
        let keys = FileKeys::new(name, files.role, Bytes::gib(files.gib));
        text.file(&FileKeys { database: kept.database.clone(), ..keys });
    }
}

/// Checks that an instance can have the roles of a need.
pub(crate) fn check(need: &Need) -> Result<(), PlanError> {
    if need.role(Role::Backup).is_some() {
        let reason =
            "a managed instance makes its own backups, on storage of its own; leave it out";
        return Err(PlanError::need("backup", reason));
    }
    if need.memory > Bytes::ZERO {
        let reason = "the catalog does not have the memory of instances; leave it out";
        return Err(PlanError::need("memory", reason));
    }
    Ok(())
}

/// Returns the measured value of files.
pub(crate) fn measured(measure: Measure, files: &[Files<'_>]) -> u64 {
    let of = |role: Role| files.iter().filter(move |files| files.role == role);
    let largest = |role: Role| of(role).map(|files| files.gib << 30).max().unwrap_or(0);
    match measure {
        Measure::Files => files.iter().map(|files| (files.count * files.gib) << 30).sum(),
        Measure::Blobs => {
            files.iter().filter_map(|files| Some(files.count * files.tier?.size.get())).sum()
        }
        Measure::Tempdb => of(Role::Tempdb).map(|files| (files.count * files.gib) << 30).sum(),
        Measure::DataFile => largest(Role::Data),
        Measure::LogFile => largest(Role::Log),
        Measure::FileCount => files.iter().map(|files| files.count).sum(),
        Measure::FilesOfDatabase => {
            let own = files.iter().filter(|files| files.role != Role::Tempdb);
            own.map(|files| files.count).sum()
        }
        // A plan has one database.
        _ => 1,
    }
}
