//! Families of disks whose limits are bought or shared, and the stores of services.

use super::{Reader, all};
use crate::error::CatalogError;
use crate::file;
use crate::limits::{Limits, PoolLimits};
use crate::provenance::Provenance;
use crate::provisioned::{Bend, Provisioned};
use crate::sized::{IopsBurst, SizedFamily, ThroughputBurst};
use crate::store::{Pooled, Store, StoreLimits, StoreStep};
use weir_units::Bytes;

impl Reader<'_> {
    pub(super) fn provisioned(
        &self,
        mut family: file::Provisioned,
    ) -> Result<Provisioned, CatalogError> {
        let place = format!("provisioned family {:?}", family.family);
        let provenance = self.provenance(&place, family.cited(), None)?;
        let limits = |l: file::Limits| Limits { iops: l.iops, throughput: l.throughput };
        let (minimum, maximum) = (limits(family.minimum), limits(family.maximum));
        self.check_above(&place, "maximum", maximum, minimum)?;
        if family.size_step == Some(Bytes::ZERO) {
            return Err(self.invalid(&place, "`size_step` must be more than zero"));
        }
        if family.io_unit == Some(Bytes::ZERO) {
            return Err(self.invalid(&place, "`io_unit` must be more than zero"));
        }
        if family.merges && family.io_unit.is_none() {
            return Err(self.invalid(&place, "`merges` needs an `io_unit`"));
        }
        if family.throughput_follows && family.throughput_per_iops.is_none() {
            let reason = "`throughput_follows` needs `throughput_per_iops`";
            return Err(self.invalid(&place, reason));
        }
        if family.min_size > family.max_size {
            return Err(self.invalid(&place, "`min_size` is above `max_size`"));
        }
        let ladder = family
            .ladder
            .iter()
            .map(|step| (step.size, Limits { iops: step.iops, throughput: step.throughput }));
        let provisioned = Provisioned {
            ladder: ladder.collect(),
            family: family.family,
            min_size: family.min_size,
            max_size: family.max_size,
            size_step: family.size_step,
            io_unit: family.io_unit,
            merges: family.merges,
            minimum,
            minimum_included: family.minimum_included,
            maximum,
            iops_per_gib: family.iops_per_gib,
            iops_per_gib_min: family.iops_per_gib_min,
            throughput_per_iops: family.throughput_per_iops,
            throughput_per_iops_min: family.throughput_per_iops_min,
            throughput_step: family.throughput_step,
            throughput_follows: family.throughput_follows,
            bend: family.bend.map(|bend| Bend {
                throughput: bend.throughput,
                throughput_per_iops: bend.throughput_per_iops,
            }),
            provenance,
        };
        self.check_ladder(&place, &provisioned)?;
        Ok(provisioned)
    }

    fn check_ladder(&self, place: &str, provisioned: &Provisioned) -> Result<(), CatalogError> {
        for (size, published) in &provisioned.ladder {
            let iops = provisioned.max_iops(*size);
            let by_rule = Limits { iops, throughput: provisioned.max_throughput(iops) };
            if by_rule != *published {
                let reason = format!(
                    "the ladder gives {size} {} and {}, the rules give {} and {}",
                    published.iops, published.throughput, by_rule.iops, by_rule.throughput
                );
                return Err(self.invalid(place, reason));
            }
        }
        Ok(())
    }

    pub(super) fn sized(&self, mut family: file::Sized) -> Result<SizedFamily, CatalogError> {
        let place = format!("sized family {:?}", family.family);
        let provenance = self.provenance(&place, family.cited(), None)?;
        let limits = |l: file::Limits| Limits { iops: l.iops, throughput: l.throughput };
        let (minimum, maximum) = (limits(family.minimum), limits(family.maximum));
        self.check_above(&place, "maximum", maximum, minimum)?;
        if family.min_size > family.max_size {
            return Err(self.invalid(&place, "`min_size` is above `max_size`"));
        }
        if family.io_unit == Some(Bytes::ZERO) {
            return Err(self.invalid(&place, "`io_unit` must be more than zero"));
        }
        if family.merges && family.io_unit.is_none() {
            return Err(self.invalid(&place, "`merges` needs an `io_unit`"));
        }
        if family.whole_units && (family.io_unit.is_none() || family.iops_burst.is_some()) {
            let reason = "`whole_units` needs an `io_unit`, and no `iops_burst` beside it: its \
                          credits are those of the throughput";
            return Err(self.invalid(&place, reason));
        }
        let iops_burst =
            family.iops_burst.map(|own| IopsBurst { iops: own.iops, credits: own.credits });
        let throughput_burst = family
            .throughput_burst
            .map(|own| ThroughputBurst { per_tib: own.per_tib, maximum: own.maximum });
        Ok(SizedFamily {
            family: family.family,
            min_size: family.min_size,
            max_size: family.max_size,
            io_unit: family.io_unit,
            merges: family.merges,
            whole_units: family.whole_units,
            minimum,
            maximum,
            iops_per_gib: family.iops_per_gib,
            throughput_per_tib: family.throughput_per_tib,
            full_throughput_above: family.full_throughput_above,
            iops_burst,
            throughput_burst,
            provenance,
        })
    }

    pub(super) fn store(&self, mut store: file::Store) -> Result<Store, CatalogError> {
        let place = format!("store {:?}", store.name);
        let provenance = self.provenance(&place, store.cited(), None)?;
        if store.rows.is_empty() {
            return Err(self.invalid(&place, "has no rows"));
        }
        let steps = all(store.rows, |row| self.store_step(row, &place, &provenance))?;
        let (name, service, family) = (store.name, store.service, store.family);
        Ok(Store { name, service, family, steps, provenance })
    }

    fn store_step(
        &self,
        mut row: file::StoreStep,
        place: &str,
        parent: &Provenance,
    ) -> Result<StoreStep, CatalogError> {
        let provenance = self.provenance(place, row.cited(), Some(parent))?;
        if row.volumes == 0 || row.min_size > row.max_size {
            let reason = "a row has at least one volume, and `min_size` is not above `max_size`";
            return Err(self.invalid(place, reason));
        }
        let limits =
            |own: file::StoreLimits| StoreLimits { iops: own.iops, throughput: own.throughput };
        let (minimum, maximum) = (limits(row.minimum), row.maximum.map(limits));
        if maximum
            .is_some_and(|most| most.iops < minimum.iops || most.throughput < minimum.throughput)
        {
            return Err(self.invalid(place, "a `maximum` is below its `minimum`"));
        }
        Ok(StoreStep {
            engines: row.engines,
            min_size: row.min_size,
            max_size: row.max_size,
            volumes: row.volumes,
            minimum,
            maximum,
            gib_per_iops: row.gib_per_iops,
            is_licensed: row.licensed,
            provenance,
        })
    }

    pub(super) fn pooled(&self, mut family: file::Pooled) -> Result<Pooled, CatalogError> {
        let place = format!("pooled family {:?}", family.family);
        let provenance = self.provenance(&place, family.cited(), None)?;
        let limits = |l: file::Limits| Limits { iops: l.iops, throughput: l.throughput };
        if family.min_size.zip(family.max_size).is_some_and(|(min, max)| min > max) {
            return Err(self.invalid(&place, "`min_size` is above `max_size`"));
        }
        Ok(Pooled {
            family: family.family,
            min_size: family.min_size,
            max_size: family.max_size,
            base: family.base.map(limits),
            per_100_gib: pool_limits(family.per_100_gib),
            iops_excess: family.iops_excess,
            provenance,
        })
    }
}

/// Returns the limits of a pool as they are in the file.
pub(super) fn pool_limits(own: file::PoolLimits) -> PoolLimits {
    let limits = |l: file::Limits| Limits { iops: l.iops, throughput: l.throughput };
    PoolLimits {
        limits: Limits { iops: own.iops, throughput: own.throughput },
        writes: own.writes.map(limits),
    }
}
