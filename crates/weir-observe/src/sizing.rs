//! The demand of a system by role: the figures that a layout is sized by.
//!
//! Rates are percentiles over samples of the sum of all files of a role, as a shared limit sees
//! them. Each sample counts once, however long it is. A sample less than half as long as the
//! previous one is the rest of an interval and gives no rate. Requests that waited at a cap are
//! not included, so a throttled system asks for more than these figures.

use crate::header::{Contents, EntityId, EntityKind, SeriesId};
use crate::load::{Load, Loads, mean};
use crate::rates::{Reading, Spread};
use crate::when::Hours;
use crate::{attribute, metric};
use std::collections::{BTreeMap, BTreeSet};
use weir_units::Instant;

/// A computation of the demand, sample by sample.
#[derive(Debug)]
pub struct Sizer {
    loads: Loads,
    /// Entities whose load counts, with their roles.
    roles: BTreeMap<EntityId, String>,
    /// Series or attribute with the size of an entity.
    sizes: BTreeMap<EntityId, (Option<SeriesId>, Option<u64>)>,
    found: BTreeMap<String, Found>,
    /// Last load of each entity.
    now: BTreeMap<EntityId, Load>,
    before: Option<Instant>,
    /// Length of the previous sample in seconds.
    lasted: f64,
    first: Option<Instant>,
    last: Option<Instant>,
    /// Hours to count, and the moment of the first instant.
    hours: Option<(Hours, i64)>,
    /// The time that counts, in seconds.
    counted: f64,
}

#[derive(Debug, Default)]
struct Found {
    iops: Spread,
    bytes: Spread,
    all: Option<Load>,
    samples: u64,
}

/// The demand of a role.
#[derive(Debug, Clone, PartialEq)]
pub struct Sized {
    /// The role: `data`, `log`, `tempdb`, `backup`.
    pub role: String,
    /// Names of the entities whose loads are added up.
    pub of: Vec<String>,
    /// These entities by index.
    pub entities: Vec<EntityId>,
    /// Operations per second, at the percentile.
    pub iops: f64,
    /// Bytes per second, at the percentile; `None` if unknown.
    pub bytes: Option<f64>,
    /// Mean size of an operation, in bytes.
    pub request: Option<f64>,
    /// Share of reads, from 0 to 1.
    pub reads: Option<f64>,
    /// Bytes stored, if every entity reports its size.
    pub size: Option<u64>,
    /// Share of the latency spent waiting at caps, from 0 to 1, if known.
    pub waited: Option<f64>,
    /// Number of samples.
    pub samples: u64,
}

/// Roles of entities, and names to give them.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// Roles by entity name. If there are any, all other entities are ignored.
    pub said: BTreeMap<String, String>,
}

impl Sizer {
    /// Creates a sizer of the entities with operations in `contents`: files if there are any, else
    /// stripes and volumes.
    ///
    /// # Errors
    ///
    /// The names in `roles` that no entity has, and the existing names.
    pub fn new(contents: &Contents, roles: &Roles) -> Result<Self, (Vec<String>, Vec<String>)> {
        let loads = Loads::new(contents);
        let own: Vec<EntityId> = loads.entities().collect();
        let entity = |id: &EntityId| contents.entity(*id);
        let has_files =
            own.iter().any(|id| entity(id).is_some_and(|own| own.kind == EntityKind::File));
        // The disks of a stripe count only if the stripe itself has no counters.
        let of_stripe = |id: &EntityId| {
            let parent = entity(id).and_then(|own| own.parent);
            parent.is_some_and(|id| {
                own.contains(&id) && entity(&id).is_some_and(|own| own.kind == EntityKind::Stripe)
            })
        };
        let mut found = BTreeMap::new();
        for id in &own {
            let Some(entity) = entity(id) else { continue };
            let role = if roles.said.is_empty() {
                let is_counted = match entity.kind {
                    EntityKind::File => has_files,
                    EntityKind::Volume | EntityKind::Stripe => !has_files && !of_stripe(id),
                    _ => false,
                };
                is_counted.then(|| role_of(contents, *id))
            } else {
                roles.said.get(&entity.name).cloned()
            };
            role.map(|role| found.insert(*id, role));
        }
        let names = |ids: &mut dyn Iterator<Item = &EntityId>| -> Vec<String> {
            ids.filter_map(|id| Some(contents.entity(*id)?.name.clone())).collect()
        };
        let known = names(&mut own.iter());
        let missing: Vec<String> =
            roles.said.keys().filter(|name| !known.contains(name)).cloned().collect();
        if !missing.is_empty() {
            return Err((missing, known));
        }
        let size = |id: &EntityId| {
            let series = contents.find(*id, metric::name::SIZE_ON_DISK_BYTES);
            let said = entity(id).and_then(|own| own.number(attribute::SIZE_BYTES));
            (*id, (series, said))
        };
        let sizes = found.keys().map(size).collect();
        let (now, all) = (BTreeMap::new(), BTreeMap::new());
        let (first, last, before, lasted) = (None, None, None, 0.0);
        let (hours, counted) = (None, 0.0);
        Ok(Self {
            loads,
            roles: found,
            sizes,
            found: all,
            now,
            before,
            lasted,
            first,
            last,
            hours,
            counted,
        })
    }

    /// Counts only samples of these hours. `start_unix_ns` is the moment that times count from.
    #[must_use]
    pub fn within(self, hours: Hours, start_unix_ns: i64) -> Self {
        Self { hours: Some((hours, start_unix_ns)), ..self }
    }

    /// Takes a sample.
    pub fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        self.first.get_or_insert(at);
        self.last = Some(at);
        for (series, size) in self.sizes.values_mut() {
            let now = series.and_then(|id| row.get(id.0 as usize).copied().flatten());
            if let Some(now) = now.and_then(|now| u64::try_from(now).ok()) {
                *size = Some(now);
            }
        }
        let before = self.before.replace(at);
        let counts = self
            .hours
            .is_none_or(|(hours, start)| hours.contains(start.saturating_add_unsigned(at.nanos())));
        let (roles, now, found) = (&self.roles, &mut self.now, &mut self.found);
        let mut told: BTreeSet<&String> = BTreeSet::new();
        self.loads.sample(at, row, |entity, load| {
            let Some(role) = roles.get(&entity) else { return };
            now.insert(entity, load);
            told.insert(role);
            if !counts {
                return;
            }
            let own = found.entry(role.clone()).or_default();
            match &mut own.all {
                Some(all) => all.add(&load),
                all => *all = Some(load),
            }
        });
        // An entity sampled at another time keeps its last load, until it has been silent for
        // longer than its interval.
        now.retain(|_, load| (at - load.to).nanos() / 2 <= (load.to - load.from).nanos());
        let mut lasted = None;
        for role in told {
            let own = now.iter().filter(|(entity, _)| roles.get(entity) == Some(role));
            let loads = || own.clone().map(|(_, load)| load);
            let from = loads().map(|load| load.from).max().into_iter().chain(before).max();
            let stretch = Load { from: from.unwrap_or(at), to: at, ..Load::default() };
            // The rest of a second at the end of a run is too short for a rate.
            let is_rest = stretch.seconds() * 2.0 < self.lasted;
            lasted = lasted.or(Some(stretch.seconds()));
            if !counts {
                continue;
            }
            let reading = |rates: Option<f64>| {
                let amount = rates? * stretch.seconds();
                (stretch.from < at && !is_rest).then_some(Reading {
                    from: stretch.from,
                    to: at,
                    amount,
                })
            };
            let found = found.entry(role.clone()).or_default();
            let iops = loads().map(Load::iops).sum::<Option<f64>>();
            let bytes = loads().map(Load::bytes_per_s).sum::<Option<f64>>();
            reading(iops).iter().for_each(|reading| found.iops.add(reading));
            reading(bytes).iter().for_each(|reading| found.bytes.add(reading));
            found.samples += 1;
        }
        if counts {
            self.counted += lasted.unwrap_or(0.0);
        }
        self.lasted = lasted.unwrap_or(self.lasted);
    }

    /// Returns the seconds that count: from the first sample to the last, or those of the hours.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let zip = self.first.zip(self.last).filter(|_| self.hours.is_none());
        zip.map_or(self.counted, |(first, last)| {
            Load { from: first, to: last, ..Load::default() }.seconds()
        })
    }

    /// Returns the demand of each role at a percentile from 0 to 1.
    #[must_use]
    pub fn finish(&self, contents: &Contents, percentile: f64) -> Vec<Sized> {
        let of = |(role, own): (&String, &Found)| {
            let ids = || self.roles.iter().filter(|(_, other)| *other == role).map(|(id, _)| id);
            let sizes = ids().map(|id| self.sizes.get(id).and_then(|(_, size)| *size));
            let all = own.all.unwrap_or_default();
            let queued =
                all.queued_read_ns.zip(all.queued_write_ns).map(|(one, other)| one + other);
            Sized {
                role: role.clone(),
                of: ids().filter_map(|id| Some(contents.entity(*id)?.name.clone())).collect(),
                entities: ids().copied().collect(),
                iops: own.iops.quantile(percentile),
                bytes: (own.bytes.count() > 0).then(|| own.bytes.quantile(percentile)),
                request: mean(all.bytes, all.operations),
                reads: mean(all.reads, all.operations),
                size: sizes.sum(),
                waited: mean(queued, all.ns),
                samples: own.samples,
            }
        };
        self.found.iter().map(of).collect()
    }
}

/// Returns the role of a file, by default data.
fn role_of(contents: &Contents, id: EntityId) -> String {
    let Some(entity) = contents.entity(id) else { return "data".to_owned() };
    let parent = entity.parent.and_then(|id| contents.entity(id));
    let is_tempdb = parent.is_some_and(|own| own.name.eq_ignore_ascii_case("tempdb"));
    match entity.text(attribute::ROLE) {
        _ if is_tempdb => "tempdb".to_owned(),
        Some(role @ ("log" | "tempdb" | "backup")) => role.to_owned(),
        _ => "data".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Counting, Entity, Series, Unit};
    use weir_units::Span;

    /// Returns a data file and a log file, with counters of reads, writes and their bytes.
    fn contents() -> Contents {
        let mut contents = Contents::default();
        for (name, role) in [("sales.mdf", "data"), ("sales.ldf", "log")] {
            let mut entity = Entity {
                kind: EntityKind::File,
                name: name.to_owned(),
                parent: None,
                attributes: crate::header::Attributes::default(),
            };
            entity.attributes.insert(attribute::ROLE.to_owned(), role.into());
            entity.attributes.insert(attribute::SIZE_BYTES.to_owned(), (10_u64 << 30).into());
            let entity = contents.add_entity(entity);
            for (metric, unit) in [
                ("num_of_reads", Unit::Count),
                ("num_of_writes", Unit::Count),
                ("num_of_bytes_read", Unit::Bytes),
                ("num_of_bytes_written", Unit::Bytes),
            ] {
                contents.add_series(Series {
                    entity,
                    metric: metric.to_owned(),
                    unit,
                    counting: Counting::Cumulative,
                    scale: 0,
                });
            }
        }
        contents
    }

    /// The stripe of these disks may have counters, too.
    #[test]
    fn a_stripe_or_its_disks_count_once() {
        for is_counted in [false, true] {
            let mut contents = Contents::default();
            let entity = |kind, name: &str, parent| Entity {
                kind,
                name: name.to_owned(),
                parent,
                attributes: crate::header::Attributes::default(),
            };
            let stripe = contents.add_entity(entity(EntityKind::Stripe, "data", None));
            let disks = ["data-0", "data-1"]
                .map(|name| contents.add_entity(entity(EntityKind::Volume, name, Some(stripe))));
            let counted: Vec<EntityId> =
                disks.into_iter().chain(is_counted.then_some(stripe)).collect();
            for (entity, metric) in
                counted.iter().flat_map(|own| [(own, "num_of_reads"), (own, "num_of_writes")])
            {
                contents.add_series(Series {
                    entity: *entity,
                    metric: metric.to_owned(),
                    unit: Unit::Count,
                    counting: Counting::Cumulative,
                    scale: 0,
                });
            }
            let mut sizer = Sizer::new(&contents, &Roles::default()).unwrap();
            for second in 0_i64..=60 {
                let row = [200, 100, 200, 100, 400, 200].map(|rate| Some(rate * second));
                let at = Instant::ZERO + Span::from_secs(second.unsigned_abs());
                sizer.sample(at, &row[..2 * counted.len()]);
            }
            // A rest of 2 ms with ten operations is not a rate of 5,000 per second.
            let row = [12_010, 6_000, 12_000, 6_000, 24_010, 12_000].map(Some);
            let at = Instant::ZERO + Span::from_millis(60_002);
            sizer.sample(at, &row[..2 * counted.len()]);
            let sized = sizer.finish(&contents, 1.0);
            assert_eq!(sized.len(), 1);
            assert!((sized[0].iops - 600.0).abs() < 6.0, "{is_counted}: {}", sized[0].iops);
        }
    }

    #[test]
    fn percentiles_are_of_the_sum_over_a_role() {
        let contents = contents();
        let mut sizer = Sizer::new(&contents, &Roles::default()).unwrap();
        let mut counters = [0_i64; 8];
        for second in 0..=100_u64 {
            let row: Vec<Option<i64>> = counters.iter().copied().map(Some).collect();
            sizer.sample(Instant::ZERO + Span::from_secs(second), &row);
            // One second in a hundred is a peak.
            let reads = if second == 50 { 3_000 } else { 700 };
            counters[0] += reads;
            counters[1] += 300;
            counters[2] += reads * 8_192;
            counters[3] += 300 * 8_192;
            counters[5] += 100;
            counters[7] += 100 * 61_440;
        }
        assert!((sizer.seconds() - 100.0).abs() < 1e-9);
        let sized = sizer.finish(&contents, 0.95);
        let roles: Vec<&str> = sized.iter().map(|own| own.role.as_str()).collect();
        assert_eq!(roles, ["data", "log"]);
        // Percentiles are within 1 %.
        assert!((990.0..=1_010.0).contains(&sized[0].iops), "{}", sized[0].iops);
        assert!((99.0..=101.0).contains(&sized[1].iops), "{}", sized[1].iops);
        assert!((sized[1].request.unwrap() - 61_440.0).abs() < 1.0);
        assert_eq!(sized[1].reads, Some(0.0));
        assert_eq!(sized[0].size, Some(10 << 30));
        let peak = sizer.finish(&contents, 1.0);
        assert!((3_290.0..=3_310.0).contains(&peak[0].iops), "{}", peak[0].iops);
    }

    #[test]
    fn stated_roles_count_alone_and_must_exist() {
        let contents = contents();
        let said = |name: &str| Roles { said: [(name.to_owned(), "backup".to_owned())].into() };
        let sizer = Sizer::new(&contents, &said("sales.mdf")).unwrap();
        assert_eq!(sizer.roles.into_values().collect::<Vec<_>>(), ["backup"]);
        let (missing, known) = Sizer::new(&contents, &said("sales.ndf")).unwrap_err();
        assert_eq!((missing, known.len()), (vec!["sales.ndf".to_owned()], 2));
    }
}
