//! The catalog: its tables have the names and units of `weir catalog --output json`.

use crate::error::Failure;
use crate::text;
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use weir_catalog::{Burst, BurstKind, Edition, Figure, Found, HostLimits, HostSize, Tier};
use weir_report::number::float;

/// Limits and prices of disks and machines, by edition. It does not change.
///
/// `editions` are files with editions of your own, beside the built-in ones.
#[pyclass(frozen, module = "weir", name = "Catalog")]
#[derive(Debug, Clone)]
pub(crate) struct Catalog(pub(crate) Arc<Held>);

/// The editions, and the texts of those that are not built in.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) catalog: weir_catalog::Catalog,
    texts: Vec<(String, String)>,
}

impl Catalog {
    /// Returns a catalog that was given, or the built-in one.
    pub(crate) fn or_builtin(given: Option<&Self>) -> Self {
        given.map_or_else(Self::builtin, Self::clone)
    }

    fn builtin() -> Self {
        static BUILTIN: OnceLock<Arc<Held>> = OnceLock::new();
        let catalog = weir_catalog::Catalog::builtin;
        let held = BUILTIN.get_or_init(|| Arc::new(Held { catalog: catalog(), texts: Vec::new() }));
        Self(Arc::clone(held))
    }

    /// Returns a catalog with the editions of all of `catalogs`.
    pub(crate) fn joined<'a>(
        catalogs: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Self, Failure> {
        let mut texts: Vec<(String, String)> = Vec::new();
        for (name, text) in catalogs.into_iter().flat_map(|own| &own.0.texts) {
            if texts.iter().all(|(_, known)| known != text) {
                texts.push((name.clone(), text.clone()));
            }
        }
        Self::with(texts)
    }

    /// Returns the catalog with the built-in editions and others.
    fn with(texts: Vec<(String, String)>) -> Result<Self, Failure> {
        if texts.is_empty() {
            return Ok(Self::builtin());
        }
        let mut catalog = weir_catalog::Catalog::builtin();
        for (name, text) in &texts {
            catalog.add(Edition::from_toml(name, text)?)?;
        }
        Ok(Self(Arc::new(Held { catalog, texts })))
    }
}

#[derive(Serialize)]
struct EditionRow<'a> {
    edition: &'a str,
    as_of: &'a str,
    tiers: usize,
    machines: usize,
    title: &'a str,
}

#[derive(Serialize)]
struct TierRow<'a> {
    tier: &'a str,
    set: &'a str,
    family: &'a str,
    size_bytes: u64,
    iops: u64,
    throughput_bytes_per_s: u64,
    burst_kind: Option<&'static str>,
    burst_iops: Option<u64>,
    burst_throughput_bytes_per_s: Option<u64>,
    burst_duration_s: Option<f64>,
    plus_iops: Option<u64>,
    plus_throughput_bytes_per_s: Option<u64>,
    as_of: &'a str,
    source: &'a str,
}

#[derive(Serialize)]
struct HostRow<'a> {
    machine: &'a str,
    series: &'a str,
    architecture: &'static str,
    vcpus: Option<u32>,
    memory_bytes: Option<u64>,
    storage_bytes: Option<u64>,
    max_data_disks: Option<u32>,
    cache_bytes: Option<u64>,
    uncached_iops: Option<u64>,
    uncached_throughput_bytes_per_s: Option<u64>,
    cached_iops: Option<u64>,
    cached_throughput_bytes_per_s: Option<u64>,
    v2_iops: Option<u64>,
    v2_throughput_bytes_per_s: Option<u64>,
    uncached_burst_kind: Option<&'static str>,
    uncached_burst_iops: Option<u64>,
    uncached_burst_throughput_bytes_per_s: Option<u64>,
    uncached_burst_duration_s: Option<f64>,
    cached_burst_kind: Option<&'static str>,
    cached_burst_iops: Option<u64>,
    cached_burst_throughput_bytes_per_s: Option<u64>,
    cached_burst_duration_s: Option<f64>,
    as_of: &'a str,
    source: &'a str,
}

#[derive(Serialize)]
struct FigureRow<'a> {
    edition: &'a str,
    name: String,
    figure: String,
    value: serde_json::Value,
    unit: Option<&'static str>,
    as_of: &'a str,
    source: &'a str,
}

/// The columns of a burst: kind, rates and duration.
type BurstColumns = (Option<&'static str>, Option<u64>, Option<u64>, Option<f64>);

fn burst(burst: Option<Burst>) -> BurstColumns {
    let Some(Burst { kind, iops, throughput, .. }) = burst else { return (None, None, None, None) };
    let (kind, duration) = match kind {
        BurstKind::Credit { duration } => ("credit", Some(float(duration.nanos()) / 1e9)),
        BurstKind::OnDemand => ("on-demand", None),
    };
    (Some(kind), Some(iops.get()), Some(throughput.get()), duration)
}

fn tier_row(tier: &Tier) -> TierRow<'_> {
    let (burst_kind, burst_iops, burst_throughput_bytes_per_s, burst_duration_s) =
        burst(tier.burst);
    TierRow {
        tier: &tier.name,
        set: &tier.set,
        family: &tier.family,
        size_bytes: tier.size.get(),
        iops: tier.iops.get(),
        throughput_bytes_per_s: tier.throughput.get(),
        burst_kind,
        burst_iops,
        burst_throughput_bytes_per_s,
        burst_duration_s,
        plus_iops: tier.plus.map(|own| own.iops.get()),
        plus_throughput_bytes_per_s: tier.plus.map(|own| own.throughput.get()),
        as_of: tier.provenance.as_of(),
        source: tier.provenance.source(),
    }
}

fn host_row<'a>(edition: &Edition, host: &'a HostSize) -> HostRow<'a> {
    let iops = |limits: Option<HostLimits>| limits.map(|own| own.iops.get());
    let bytes = |limits: Option<HostLimits>| limits.map(|own| own.throughput.get());
    let uncached = burst(host.uncached.and_then(|own| own.burst));
    let cached = burst(host.cached.and_then(|own| own.burst));
    HostRow {
        machine: &host.name,
        series: &host.series,
        architecture: edition.architecture(host).name(),
        vcpus: host.vcpus,
        memory_bytes: host.memory.map(weir_units::Bytes::get),
        storage_bytes: host.storage.map(weir_units::Bytes::get),
        max_data_disks: host.max_data_disks,
        cache_bytes: host.cache.map(weir_units::Bytes::get),
        uncached_iops: iops(host.uncached),
        uncached_throughput_bytes_per_s: bytes(host.uncached),
        cached_iops: iops(host.cached),
        cached_throughput_bytes_per_s: bytes(host.cached),
        v2_iops: iops(host.v2),
        v2_throughput_bytes_per_s: bytes(host.v2),
        uncached_burst_kind: uncached.0,
        uncached_burst_iops: uncached.1,
        uncached_burst_throughput_bytes_per_s: uncached.2,
        uncached_burst_duration_s: uncached.3,
        cached_burst_kind: cached.0,
        cached_burst_iops: cached.1,
        cached_burst_throughput_bytes_per_s: cached.2,
        cached_burst_duration_s: cached.3,
        as_of: host.provenance.as_of(),
        source: host.provenance.source(),
    }
}

/// Returns the figures of an entry.
fn figures<'a>(found: &Found<'a>) -> Vec<Figure<'a>> {
    match found {
        Found::Tier(_, own) => own.figures(),
        Found::Host(_, own) => own.figures(),
        Found::Provisioned(_, own) => own.figures(),
        Found::Sized(_, own) => own.figures(),
        Found::Store(_, own) => own.figures(),
        Found::Pooled(_, own) => own.figures(),
        Found::Latency(_, own) => own.figures(),
        Found::HostCache(_, own) => own.figures(),
        Found::Bursting(_, own) => own.figures(),
        Found::Striping(_, own) => own.figures(),
        Found::Rule(_, own) => own.figures(),
        // A set of tiers has a table of its own (`tiers`).
        _ => Vec::new(),
    }
}

/// Returns rows as a list of dicts.
fn dicts<'py>(python: Python<'py>, rows: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(rows);
    let text = text.map_err(|error| Failure::Run(format!("writing a table: {error}")))?;
    text::objects(python, &text)
}

#[pymethods]
impl Catalog {
    /// Reads editions of your own, beside the built-in ones.
    #[new]
    #[pyo3(signature = (*editions))]
    fn new(editions: Vec<PathBuf>) -> Result<Self, Failure> {
        let read =
            |path: &PathBuf| Ok((path.display().to_string(), text::read(path, "catalog edition")?));
        Self::with(editions.iter().map(read).collect::<Result<_, Failure>>()?)
    }

    /// Makes a catalog from the names and texts of its editions.
    #[classmethod]
    fn from_texts(
        _class: &Bound<'_, PyType>,
        texts: Vec<(String, String)>,
    ) -> Result<Self, Failure> {
        Self::with(texts)
    }

    /// Lists the editions (`weir catalog editions`).
    fn editions<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.0.catalog.editions().map(|own| EditionRow {
            edition: own.name(),
            as_of: own.as_of(),
            tiers: own.tiers().count(),
            machines: own.hosts().count(),
            title: own.title(),
        });
        dicts(python, &rows.collect::<Vec<_>>())
    }

    /// Lists the tiers of an edition (`weir catalog tiers`).
    fn tiers<'py>(&self, python: Python<'py>, edition: &str) -> PyResult<Bound<'py, PyAny>> {
        let sets = self.0.catalog.edition(edition).map_err(Failure::from)?.tier_sets();
        let rows = sets.iter().flat_map(|set| &set.tiers).map(tier_row);
        dicts(python, &rows.collect::<Vec<_>>())
    }

    /// Lists the machines of an edition (`weir catalog hosts`).
    fn hosts<'py>(&self, python: Python<'py>, edition: &str) -> PyResult<Bound<'py, PyAny>> {
        let edition = self.0.catalog.edition(edition).map_err(Failure::from)?;
        dicts(python, &edition.hosts().map(|host| host_row(edition, host)).collect::<Vec<_>>())
    }

    /// Lists the figures of a tier, a machine, a family or a rule, each with its source (`weir catalog
    /// show`).
    fn show<'py>(&self, python: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let found = self.0.catalog.get(name).map_err(Failure::from)?;
        let alike = |one: &Found<'_>| {
            let same = |other: &&Found<'_>| {
                (other.edition().name(), other.name()) == (one.edition().name(), one.name())
            };
            found.iter().filter(same).count()
        };
        let mut rows = Vec::new();
        for one in &found {
            // A name shared by several entries of an edition is shown under the one that selects it.
            let name = if alike(one) == 1 { one.name().to_owned() } else { one.qualified() };
            for figure in figures(one) {
                rows.push(FigureRow {
                    edition: one.edition().name(),
                    name: name.clone(),
                    value: match figure.value.number() {
                        Some(number) => number.into(),
                        None => figure.value.to_string().into(),
                    },
                    unit: figure.value.unit(),
                    as_of: &figure.citation.as_of,
                    source: &figure.citation.source,
                    figure: figure.name,
                });
            }
        }
        dicts(python, &rows)
    }

    fn __repr__(&self) -> String {
        let names: Vec<String> = self.0.texts.iter().map(|(name, _)| format!("{name:?}")).collect();
        format!("Catalog({})", names.join(", "))
    }

    /// Supports pickling.
    #[expect(clippy::type_complexity, reason = "a callable and its arguments, as pickle asks for")]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Vec<(String, String)>,))> {
        Ok((slf.get_type().getattr("from_texts")?, (slf.get().0.texts.clone(),)))
    }
}
