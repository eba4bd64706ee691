//! Editions that extend another one: their machines and prices come first, everything else is that of
//! the other.

use crate::edition::Edition;
use crate::error::CatalogError;
use crate::host::{HostLimits, HostSize, Series};
use crate::limits::Burst;

impl Edition {
    /// Puts this edition's machines and prices over those of another.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Invalid`] if it has tables of another kind, or prices of unknown items.
    pub(crate) fn over(self, base: &Self) -> Result<Self, CatalogError> {
        let invalid = |place: &str, reason: &str| CatalogError::Invalid {
            origin: self.name.clone(),
            place: place.to_owned(),
            reason: reason.to_owned(),
        };
        let has_more = !self.tier_sets.is_empty()
            || !self.provisioned.is_empty()
            || !self.stores.is_empty()
            || !self.pooled.is_empty()
            || !self.latencies.is_empty()
            || self.host_cache.is_some();
        if has_more {
            let reason = "an edition that extends another has only [[series]] and [[price]]; remove \
                          `extends` or the other tables";
            return Err(invalid("`extends`", reason));
        }
        let mut all = base.clone();
        for series in &self.series {
            add_series(&mut all, series);
        }
        all.newer_prices = self.prices.iter().chain(&base.newer_prices).cloned().collect();
        all.index();
        for list in &self.prices {
            if let Some(row) = list.rows.iter().find(|row| !all.has(&row.item)) {
                let reason = format!("{} is neither in the edition nor in {}", row.item, base.name);
                return Err(invalid(&format!("prices of {:?}", list.region), &reason));
            }
        }
        (all.name, all.title, all.as_of) = (self.name, self.title, self.as_of);
        all.scope = self.scope;
        all.notes.extend(self.notes);
        all.conflicts.extend(self.conflicts);
        Ok(all)
    }
}

/// Adds the machines of a series, or their figures where the edition has the machine.
fn add_series(all: &mut Edition, series: &Series) {
    let Some(own) = all.series.iter_mut().find(|own| own.name == series.name) else {
        all.series.push(series.clone());
        return;
    };
    for host in &series.hosts {
        match own.hosts.iter_mut().find(|own| own.name == host.name) {
            Some(there) => there.update(host),
            None => own.hosts.push(HostSize { interface: own.interface, ..host.clone() }),
        }
    }
}

/// Adds the earlier burst to limits without one, as long as it is above them.
fn with_burst(limits: HostLimits, earlier: Option<HostLimits>) -> HostLimits {
    let is_above =
        |burst: &Burst| burst.iops >= limits.iops && burst.throughput >= limits.throughput;
    let kept = || earlier.and_then(|own| own.burst).filter(is_above);
    HostLimits { burst: limits.burst.or_else(kept), ..limits }
}

impl HostSize {
    /// Gives limits the source of a newer description. A burst that was kept has its own.
    fn cite(&mut self, newer: &Self, name: &str, is_burst_kept: bool) {
        let burst = format!("{name}.burst");
        let of_burst = self.provenance.of(&burst).clone();
        let figures = &mut self.provenance.figures;
        figures.retain(|(own, _)| {
            own != name
                && (is_burst_kept && own.starts_with(&burst)
                    || !own.starts_with(&format!("{name}.")))
        });
        if is_burst_kept && !figures.iter().any(|(own, _)| *own == burst) {
            figures.push((burst, of_burst));
        }
        figures.push((name.to_owned(), newer.provenance.of(name).clone()));
    }

    /// Takes the figures that another description of the machine has. Earlier values are kept as
    /// history where they differ.
    fn update(&mut self, newer: &Self) {
        let earlier = self.clone();
        macro_rules! take {
            ($($field:ident)*) => {$(
                if newer.$field.is_some() && newer.$field != self.$field {
                    self.$field = newer.$field;
                    let name = stringify!($field).to_owned();
                    let citation = newer.provenance.of(&name).clone();
                    self.provenance.figures.retain(|(own, _)| {
                        own != &name && !own.starts_with(&format!("{name}."))
                    });
                    self.provenance.figures.push((name, citation));
                }
            )*};
        }
        take!(vcpus memory max_data_disks cache);
        let mut changed = Vec::new();
        let limits = [
            ("uncached", &mut self.uncached, newer.uncached),
            ("cached", &mut self.cached, newer.cached),
        ];
        for (name, there, newer) in limits {
            let Some(newer) = newer else { continue };
            let limits = with_burst(newer, *there);
            if *there != Some(limits) {
                *there = Some(limits);
                changed.push((name, newer.burst.is_none() && limits.burst.is_some()));
            }
        }
        for (name, is_burst_kept) in changed {
            self.cite(newer, name, is_burst_kept);
        }
        if earlier.uncached.map(|own| own.limits()) != self.uncached.map(|own| own.limits())
            && let Some(own) = earlier.uncached
        {
            let citation = earlier.provenance.of("uncached");
            let before = format!(
                "uncached: {} and {} in {} of {}",
                own.iops, own.throughput, citation.source, citation.as_of
            );
            self.provenance.history.push(before);
        }
        let is_cached = self.cache.is_some() || self.cached.is_some();
        self.premium_caching = self.premium_caching.or(is_cached.then_some(true));
    }
}
