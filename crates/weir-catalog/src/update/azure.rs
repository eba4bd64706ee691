//! The output of `az vm list-skus -o json`.

use super::machine::Machine;
use crate::document::Document;
use crate::error::CatalogError;
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the machines that take premium disks.
pub(super) fn machines(
    document: &Document<'_>,
    as_of: &str,
) -> Result<Vec<(String, Machine)>, CatalogError> {
    let mut all = Vec::new();
    for sku in document.value.as_array().into_iter().flatten() {
        if document.text(sku, "resourceType")? != "virtualMachines" {
            continue;
        }
        let name = document.text(sku, "name")?;
        let own = Capabilities::read(document, name, sku)?;
        if !own.is("PremiumIO") {
            continue;
        }
        let vcpus = own.number("vCPUsAvailable")?.or(own.number("vCPUs")?);
        let count = |n: Option<u64>| n.and_then(|n| u32::try_from(n).ok());
        let rates = |iops: &str, bytes: &str| {
            let pair = own.number(iops)?.zip(own.number(bytes)?);
            Ok::<_, CatalogError>(pair.filter(|(iops, bytes)| *iops > 0 && *bytes > 0))
        };
        let machine = Machine {
            vcpus: count(vcpus),
            memory_mib: own.mib("MemoryGB")?,
            disks: count(own.number("MaxDataDiskCount")?),
            cache: own.number("CachedDiskBytes")?.filter(|bytes| *bytes > 0),
            uncached: rates("UncachedDiskIOPS", "UncachedDiskBytesPerSecond")?,
            burst: None,
            cached: rates(
                "CombinedTempDiskAndCachedIOPS",
                "CombinedTempDiskAndCachedReadBytesPerSecond",
            )?,
            source: format!("{}: az vm list-skus", document.origin),
            as_of: as_of.to_owned(),
        };
        all.push((name.to_owned(), machine));
    }
    Ok(all)
}

/// The capabilities of a size by name.
struct Capabilities<'a> {
    document: &'a Document<'a>,
    size: &'a str,
    all: BTreeMap<&'a str, &'a str>,
}

impl<'a> Capabilities<'a> {
    fn read(
        document: &'a Document<'a>,
        size: &'a str,
        sku: &'a Value,
    ) -> Result<Self, CatalogError> {
        let mut all = BTreeMap::new();
        for own in sku.get("capabilities").and_then(Value::as_array).into_iter().flatten() {
            all.insert(document.text(own, "name")?, document.text(own, "value")?);
        }
        Ok(Self { document, size, all })
    }

    fn is(&self, name: &str) -> bool {
        self.all.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, CatalogError> {
        let Some(value) = self.all.get(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| self.broken(name, value))
    }

    /// Returns GiB, which may have decimals, in MiB.
    fn mib(&self, name: &str) -> Result<Option<u64>, CatalogError> {
        let Some(value) = self.all.get(name) else { return Ok(None) };
        let mib = value.parse::<f64>().map(|gib| (gib * 1024.0).round());
        let is_memory = |mib: &f64| (1.0..1e9).contains(mib);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        mib.ok()
            .filter(is_memory)
            .map(|mib| Some(mib as u64))
            .ok_or_else(|| self.broken(name, value))
    }

    fn broken(&self, name: &str, value: &str) -> CatalogError {
        self.document.invalid(self.size, &format!("{name} is no number: {value:?}"))
    }
}
