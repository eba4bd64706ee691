//! Editions that extend another one: their machines and prices come first, everything else is that of
//! the other.

use crate::edition::Edition;
use crate::error::CatalogError;
use crate::host::{HostSize, Series};

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

impl HostSize {
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
        take!(vcpus memory max_data_disks cache cached);
        // The base stays with its burst where the newer description has none.
        let burst =
            newer.uncached.map(|own| own.burst.or(earlier.uncached.and_then(|own| own.burst)));
        let base = earlier.uncached.map(|own| own.limits());
        if newer.uncached.is_some_and(|own| Some(own.limits()) != base || own.burst.is_some()) {
            take!(uncached);
            if let (Some(own), Some(burst)) = (self.uncached.as_mut(), burst) {
                let is_above = |own: &crate::limits::Burst, base: crate::limits::Limits| {
                    own.iops >= base.iops && own.throughput >= base.throughput
                };
                own.burst = burst.filter(|burst| is_above(burst, own.limits()));
            }
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
