//! Samples of `pg_stat_activity`: the waits of sessions at a moment, one row per session or
//! counted by the server.
//!
//! A list of sessions is complete, so a wait that is in none of its rows is 0. Waits of idle
//! background processes (`Activity`) and of sessions in state `idle` are left out.

use crate::error::ImportError;
use crate::results::{ResultSet, Row};
use crate::rows::{ReadRows, Rows};
use crate::window::Stamp;
use std::collections::{BTreeMap, BTreeSet};
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::metric as m;

struct Activity {
    kind: usize,
    event: usize,
    state: Option<usize>,
    /// Column with the number of sessions of a row; by default one.
    count: Option<usize>,
    /// The current sample: its time, its waits, and the number of active sessions.
    at: Option<Stamp>,
    waiting: BTreeMap<EntityId, f64>,
    active: f64,
    /// All waits seen so far.
    known: BTreeSet<EntityId>,
    told: bool,
}

pub(super) fn plan(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    let (kind, event) = (set.column(&["waiteventtype"])?, set.column(&["waitevent"])?);
    let count = set.column(&["sessions", "count"]);
    if count.is_none() && !set.has(&["pid"]) {
        return None;
    }
    Some(Box::new(Activity {
        kind,
        event,
        state: set.column(&["state"]),
        count,
        at: None,
        waiting: BTreeMap::new(),
        active: 0.0,
        known: BTreeSet::new(),
        told: false,
    }))
}

impl Activity {
    fn tell(&mut self, rows: &mut Rows, set: &ResultSet) {
        if self.told {
            return;
        }
        self.told = true;
        // Other columns hold private data of sessions.
        if self.count.is_some() {
            let more = [self.state, self.count].into_iter().flatten();
            let used: Vec<_> = more.chain([self.kind, self.event]).collect();
            rows.tell_unused(set, &used);
        }
    }

    /// Writes the current sample.
    fn put(&mut self, rows: &mut Rows) -> Result<(), ImportError> {
        let Some(at) = self.at.take() else { return Ok(()) };
        let waiting = std::mem::take(&mut self.waiting);
        self.known.extend(waiting.keys());
        for wait in &self.known {
            let count = waiting.get(wait).copied().unwrap_or(0.0);
            rows.set(at, *wait, &m::WAITING, Some(count))?;
        }
        let host = rows.host(None);
        rows.set(at, host, &m::ACTIVE_SESSIONS, Some(std::mem::take(&mut self.active)))
    }
}

impl ReadRows for Activity {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        self.tell(rows, set);
        let host = rows.host(None);
        // Each list is one sample, whatever its length.
        let at = match self.at {
            Some(at) if !rows.is_dated() => at,
            _ => rows.stamp(row, host, "activity")?,
        };
        if self.at.is_some_and(|before| before != at) {
            self.put(rows)?;
        }
        self.at = Some(at);
        let sessions = match self.count {
            Some(_) => row.number(set, self.count)?.unwrap_or(0.0),
            None => 1.0,
        };
        let (kind, event) = (row.text(Some(self.kind)), row.text(Some(self.event)));
        let state = row.text(self.state);
        let is_idle = state.is_some_and(|state| state.starts_with("idle") || state == "disabled");
        if is_idle || kind == Some("Activity") {
            return Ok(());
        }
        if self.state.is_none() || state.is_some() {
            self.active += sessions;
        }
        if let (Some(kind), Some(event)) = (kind, event) {
            let name = format!("{kind} / {event}");
            let wait = rows.sheet.entity(EntityKind::Wait, &name, Some(host));
            *self.waiting.entry(wait).or_default() += sessions;
        }
        Ok(())
    }

    fn end(&mut self, rows: &mut Rows, _set: &ResultSet) -> Result<(), ImportError> {
        // An empty list is a sample too, if its time is known.
        self.at = self.at.or(rows.now());
        self.put(rows)
    }
}
