//! An observed system as counters, for the live page.

use crate::error::CliError;
use crate::output;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_observe::load::{Load, Loads};
use weir_observe::{Contents, EntityId, EntityKind, attribute};
use weir_report::number::whole;
use weir_report::status::{HostStatus, Status, VolumeStatus};
use weir_server::ServerError;
use weir_server::control::Request;
use weir_units::{Instant, Span};
use weir_web::{Bound, Content, Endpoint, Source};

/// The counters of all files and disks since the recording began.
#[derive(Default)]
pub(super) struct Mirror(Mutex<State>);

#[derive(Default)]
struct State {
    loads: Loads,
    /// Number of series that `loads` knows.
    series: usize,
    /// Each with the name of its host.
    volumes: BTreeMap<EntityId, (String, VolumeStatus)>,
    at: Instant,
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mirror").finish_non_exhaustive()
    }
}

impl Mirror {
    /// Takes a sample.
    pub(super) fn take(&self, contents: &Contents, at: Instant, row: &[Option<i64>]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { loads, series, volumes, at: now } = &mut *state;
        if *series != contents.series.len() {
            *series = contents.series.len();
            *loads = Loads::new(contents);
        }
        *now = at;
        loads.sample(at, row, |entity, load| {
            let (_, own) = volumes.entry(entity).or_insert_with(|| named(contents, entity));
            add(own, &load);
        });
    }

    /// Serves the page of an observed system that is sampled at this interval.
    pub(super) fn serve(self: &Arc<Self>, web: Bound, every: Span) -> Result<Endpoint, CliError> {
        let source: Arc<dyn Source> = self.clone();
        let every = Duration::from_nanos(every.nanos());
        let endpoint = web.sampled_every(every).serve(source, Content::Page(None))?;
        output::talk(&format!("live page http://{}/", endpoint.address()));
        Ok(endpoint)
    }
}

impl Source for Mirror {
    fn status(&self) -> Status {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hosts: BTreeMap<&str, HostStatus> = BTreeMap::new();
        for (host, volume) in state.volumes.values() {
            let own = hosts.entry(host).or_default();
            own.name.clone_from(host);
            own.volumes.push(volume.clone());
        }
        let hosts = hosts.into_values().collect();
        Status { uptime_ns: (state.at - Instant::ZERO).nanos(), hosts, ..Status::default() }
    }

    fn command(&self, _: Request) -> Result<Value, ServerError> {
        Err(ServerError::Refused("a system that is observed is not changed".to_owned()))
    }
}

/// Returns a file or disk without counters, and the name of its host.
fn named(contents: &Contents, id: EntityId) -> (String, VolumeStatus) {
    let mut volume = VolumeStatus { cache: "none".to_owned(), ..VolumeStatus::default() };
    let Some(entity) = contents.entity(id) else { return (String::new(), volume) };
    volume.name.clone_from(&entity.name);
    volume.size_bytes = entity.number(attribute::SIZE_BYTES).unwrap_or(0);
    volume.limit_iops = entity.number(attribute::IOPS_LIMIT);
    volume.limit_bytes_per_s = entity.number(attribute::BYTES_PER_S_LIMIT);
    let mut parent = entity.parent;
    while let Some(above) = parent.and_then(|id| contents.entity(id)) {
        match above.kind {
            EntityKind::Host => return (above.name.clone(), volume),
            // Files of several databases may have the same name.
            EntityKind::Database => volume.name = format!("{}/{}", above.name, volume.name),
            _ => {}
        }
        parent = above.parent;
    }
    ("host".to_owned(), volume)
}

/// Adds the load of an interval to the counters of a file or disk.
fn add(own: &mut VolumeStatus, load: &Load) {
    let count = |figure: Option<f64>| figure.map_or(0, |figure| whole(figure.max(0.0)));
    own.reads += count(load.reads);
    own.writes += count(load.writes);
    own.read_bytes += count(load.read_bytes);
    own.write_bytes += count(load.write_bytes);
    own.medium_ns += count(load.ns);
    own.counted += count(load.operations);
}
