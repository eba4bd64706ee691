//! From an observation to findings: what is asked, step by step.

use crate::backup;
use crate::case::{Case, Known};
use crate::error::DiagnoseError;
use crate::follow::{self, Facts, Follow};
use crate::rules::{self, Candidate};
use crate::system::observed::is_storage;
use crate::system::{Mapping, System, Unmatched};
use crate::verdict;
use std::collections::BTreeMap;
use weir_catalog::{Catalog, Edition};
use weir_layout::Layout;
use weir_observe::{Attribute, Block, Contents, attribute, metric};

/// An observed system and its limits.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The layout, if there is one.
    pub layout: Option<&'a Layout>,
    /// The edition, of the layout or by itself.
    pub edition: Option<&'a Edition>,
    /// The catalog.
    pub catalog: &'a Catalog,
    /// Names of the observation and of the layout, where they differ.
    pub mapping: &'a Mapping,
}

/// Gauges that say what attributes do.
const KNOWN: [&str; 10] = [
    metric::name::SIZE_ON_DISK_BYTES,
    attribute::IOPS_LIMIT,
    attribute::BYTES_PER_S_LIMIT,
    "uncached_iops_limit",
    "uncached_bytes_per_s_limit",
    "write_iops_limit",
    "write_bytes_per_s_limit",
    "cached_iops_limit",
    "cached_bytes_per_s_limit",
    "log_bytes_per_s_limit",
];

/// Adds sizes and limits from gauges in the `first` samples to the attributes of their entities.
#[must_use]
pub fn with_gauges<'a>(
    contents: &Contents,
    first: impl Iterator<Item = &'a [Option<i64>]> + Clone,
) -> Contents {
    let mut known = contents.clone();
    for (place, series) in contents.series.iter().enumerate() {
        if !KNOWN.contains(&series.metric.as_str()) {
            continue;
        }
        let value = first.clone().find_map(|row| row.get(place).copied().flatten());
        let scaled = value.and_then(|value| {
            let value = u64::try_from(value).ok()?;
            let by = 10_u64.checked_pow(u32::from(series.scale.unsigned_abs()))?;
            if series.scale < 0 { Some(value / by) } else { value.checked_mul(by) }
        });
        let entity = known.entities.get_mut(series.entity.0 as usize);
        if let (Some(value), Some(entity)) = (scaled, entity) {
            entity.attributes.entry(series.metric.clone()).or_insert(Attribute::Number(value));
        }
    }
    known
}

impl Question<'_> {
    /// The system that `contents` observes.
    ///
    /// # Errors
    ///
    /// [`DiagnoseError`] if the observation has no I/O, or the layout is of another system.
    pub fn system(&self, contents: &Contents) -> Result<(System, Vec<Unmatched>), DiagnoseError> {
        let loads = follow::loads(contents);
        let of_storage = loads
            .iter()
            .filter_map(|id| contents.entity(*id))
            .any(|entity| is_storage(&entity.kind));
        let says = follow::says_something(contents);
        let has_backups = backup::has_any(contents);
        if !of_storage && !says && !has_backups {
            return Err(DiagnoseError::NoLoad { has: entities_in_words(contents) });
        }
        let (places, mapping) = backup::of_mapping(contents, self.layout, self.mapping)?;
        let (mut system, unmatched) = match self.layout {
            Some(layout) if of_storage || has_backups => {
                System::from_layout(contents, &loads, layout, &mapping)?
            }
            _ => (System::from_observation(contents, &loads, self.edition), Vec::new()),
        };
        system.backup_places = places;
        Ok((system, unmatched))
    }

    /// Runs the rules on the facts, and passes their findings to `then`.
    #[must_use]
    pub fn answer<T>(
        &self,
        contents: &Contents,
        system: &System,
        facts: &Facts,
        then: impl FnOnce(&Case<'_>, Vec<Candidate>) -> T,
    ) -> T {
        let waited = verdict::judge(system, facts);
        let known = Known::default();
        let case = Case {
            system,
            facts,
            waited: &waited,
            contents,
            edition: self.edition,
            layout: self.layout,
            catalog: self.catalog,
            known: &known,
        };
        let found = rules::run(&case);
        then(&case, found)
    }
}

/// Returns the number of entities of each kind in words.
fn entities_in_words(contents: &Contents) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for entity in &contents.entities {
        *kinds.entry(entity.kind.name()).or_default() += 1;
    }
    if kinds.is_empty() {
        return "nothing".to_owned();
    }
    let words = kinds.iter().map(|(kind, count)| format!("{count} of kind {kind}"));
    let words = words.collect::<Vec<_>>().join(", ");
    match contents.entities.iter().any(|entity| is_storage(&entity.kind)) {
        true => words,
        false => format!("no disks and no files, only {words}"),
    }
}

/// Follows all samples of an observation in memory.
#[must_use]
pub fn follow(system: &System, observation: &weir_observe::Observation) -> Facts {
    let mut pass = Follow::new(system, observation.contents());
    let mut block = Block::new(observation.columns.len());
    for (sample, at) in observation.times.iter().enumerate() {
        block.push(*at, observation.columns.iter().map(|column| column.get(sample)));
        if block.len() == Block::MOST {
            pass.samples(&block);
            block.clear();
        }
    }
    pass.samples(&block);
    pass.finish()
}
