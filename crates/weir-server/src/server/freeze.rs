//! Freezes: exports as they were at one instant, for the duration of a control conversation.
//!
//! ```text
//!   host a  --serving--| stopped, frozen |--serving-->
//!   host b  ------serving--| stopped, frozen |--serving-->
//!                          ^ both are stopped: the instant
//! ```
//!
//! The pause does not depend on the size of a cache. Its dirty blocks are collected after the
//! instant, a bounded number between two requests; a block that changes before is taken first.

use super::shared::{Shared, gone};
use super::views::{Freeze, Kept};
use crate::control::{ChangedAnswer, FreezeAnswer, FrozenExport, Purpose, ReleaseAnswer, Request};
use crate::error::ServerError;
use crate::host_loop::{FreezeOrder, FrozenDevice, HostLoop};
use crate::listener::Served;
use crate::mailbox::{Mailbox, Message};
use crate::volume::View;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use weir_core::DeviceId;
use weir_store::{Scratch, Store};
use weir_units::{Instant, Span};
use weir_wall::{Clock, calendar};

/// Changed ranges of one answer.
const MAX_RANGES: usize = 4096;
/// The longest time that hosts wait for each other; their turns are much shorter.
const GATHERING: Duration = Duration::from_secs(2);
/// Maximum number of concurrent freezes. Each copies the blocks that change.
const MAX_FREEZES: usize = 16;
/// Dirty blocks that are collected in one step: about 0.1 ms of the host's thread.
const CAPTURED_AT_ONCE: usize = 1024;

/// The freezes of one conversation; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Holding<'a> {
    shared: &'a Shared,
    freezes: Vec<u64>,
}

impl<'a> Holding<'a> {
    pub(crate) const fn new(shared: &'a Shared) -> Self {
        Self { shared, freezes: Vec::new() }
    }

    /// Returns true if the conversation has no freeze. One that has may be silent for any time.
    pub(crate) fn is_empty(&self) -> bool {
        self.freezes.is_empty()
    }

    pub(crate) fn answer(&mut self, request: Request) -> Result<Value, ServerError> {
        match request {
            Request::Freeze { exports, purpose, backup } => {
                let answer = self.shared.freeze(&exports, purpose, backup)?;
                self.freezes.push(answer.freeze);
                Ok(value(&answer))
            }
            Request::Changed { freeze, export, from } => {
                let (ranges, next) = self.view(freeze, &export)?.changed(from, MAX_RANGES);
                Ok(value(&ChangedAnswer { ranges, next }))
            }
            Request::ReadDone { freeze, export, offset, len } => {
                self.view(freeze, &export)?.release(offset, len);
                Ok(Value::Null)
            }
            Request::Release { freeze, completed } => {
                self.own(freeze)?;
                let answer = self.shared.release(freeze, completed)?;
                self.freezes.retain(|own| *own != freeze);
                Ok(value(&answer))
            }
            other => self.shared.answer(other),
        }
    }

    fn own(&self, freeze: u64) -> Result<(), ServerError> {
        if self.freezes.contains(&freeze) {
            return Ok(());
        }
        Err(ServerError::Refused(format!("freeze {freeze} does not belong to this connection")))
    }

    fn view(&self, freeze: u64, export: &str) -> Result<Arc<View>, ServerError> {
        self.own(freeze)?;
        let freezes = self.shared.freezes();
        let found = freezes.open.get(&freeze).ok_or_else(|| over(freeze))?;
        let kept = found.exports.iter().find(|kept| kept.name == export);
        match kept {
            Some(kept) => Ok(Arc::clone(&kept.view)),
            None => {
                let names = found.exports.iter().map(|kept| kept.name.as_str());
                Err(ServerError::not_there("frozen export", export, names))
            }
        }
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        for freeze in self.freezes.drain(..) {
            // A server that stops has ended it already.
            let _ = self.shared.release(freeze, false);
        }
    }
}

fn value(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or(Value::Null)
}

fn over(freeze: u64) -> ServerError {
    ServerError::Refused(format!("freeze {freeze} is over"))
}

/// The devices of one host that are to be frozen.
struct HostOrder {
    name: String,
    mailbox: Mailbox,
    /// The place of each in the answer.
    places: Vec<usize>,
    orders: Vec<FreezeOrder>,
}

/// An export that is to be frozen.
struct Chosen {
    name: String,
    host: usize,
    device: DeviceId,
    volumes: Vec<String>,
}

/// The devices that hosts froze, each with its place in the answer.
struct Taken {
    devices: Vec<(usize, FrozenDevice)>,
    pause: Span,
    at_unix_ms: u64,
}

impl Shared {
    /// Freezes exports at one instant and serves the views.
    fn freeze(
        &self,
        names: &[String],
        purpose: Purpose,
        backup: String,
    ) -> Result<FreezeAnswer, ServerError> {
        // Meanwhile no volume is created or deleted, and no two freezes wait for each other's hosts.
        let _alone = self.one_at_a_time();
        let chosen = self.choose(names)?;
        let number = self.number(&chosen)?;
        let orders = self.orders(&chosen, number);
        let Taken { mut devices, pause, at_unix_ms } = take(orders, self.clock)?;
        devices.sort_unstable_by_key(|(place, _)| *place);
        let mut exports = Vec::new();
        for (export, (_, mut frozen)) in chosen.into_iter().zip(devices) {
            self.capture(export.host, &mut frozen)?;
            let (view, device) = (Arc::new(frozen.into_view()), (export.host, export.device));
            let frozen = frozen_name(&export.name, number);
            exports.push(Kept { name: export.name, frozen, device, view });
        }
        let answer = FreezeAnswer {
            freeze: number,
            pause_ns: pause.nanos(),
            at_unix_ms,
            exports: exports.iter().map(told).collect(),
        };
        self.serve(number, Freeze { purpose, backup, exports })?;
        Ok(answer)
    }

    /// Collects the dirty blocks of caches at the freeze.
    fn capture(&self, host: usize, frozen: &mut FrozenDevice) -> Result<(), ServerError> {
        let (mailbox, device) = (self.hosts()[host].mailbox.clone(), frozen.device);
        for (number, column) in frozen.columns.iter_mut().enumerate() {
            loop {
                let step = move |host: &mut HostLoop, _| {
                    host.capture_some(device, number, CAPTURED_AT_ONCE)
                };
                let (dirty, is_last) = mailbox.ask(step).ok_or_else(gone)?;
                column.add(dirty);
                if is_last {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Serves the views of a freeze, unless the server stops.
    fn serve(&self, number: u64, freeze: Freeze) -> Result<(), ServerError> {
        let mut freezes = self.freezes();
        if freezes.closed {
            freeze.exports.iter().for_each(|kept| kept.view.thaw());
            return Err(ServerError::Refused("the server stops".to_owned()));
        }
        for kept in &freeze.exports {
            let (at, device) = kept.device;
            let host = self.hosts()[at].mailbox.clone();
            self.directory.add(Served {
                name: kept.frozen.clone(),
                description: format!("{} as it was at a freeze, read-only", kept.name),
                device,
                host,
                seat: None,
                view: Some(Arc::clone(&kept.view)),
                // A view has the bytes of the export, and its clients.
                clients: self.directory.clients_of(&kept.name),
            });
        }
        freezes.open.insert(number, freeze);
        Ok(())
    }

    /// Finds the exports, all of them if none is named.
    fn choose(&self, names: &[String]) -> Result<Vec<Chosen>, ServerError> {
        if self.is_mounted {
            let reason = "a mount keeps its data in a folder; back up the files of that folder \
                          instead";
            return Err(ServerError::Refused(reason.to_owned()));
        }
        let hosts = self.hosts();
        let mut served = Vec::new();
        for (host, state) in hosts.iter().enumerate() {
            let exports = state.layout.exports.iter();
            for export in exports.filter(|export| self.directory.has(&export.name)) {
                let volumes = export.volumes.iter().map(|id| &state.layout.volumes[id.0]);
                let volumes = volumes.map(|volume| volume.name.clone()).collect();
                let (name, device) = (export.name.clone(), export.device);
                served.push(Chosen { name, host, device, volumes });
            }
        }
        if names.is_empty() {
            return Ok(served);
        }
        let mut chosen: Vec<Chosen> = Vec::new();
        for name in names {
            if chosen.iter().any(|export| export.name == *name) {
                return Err(ServerError::Refused(format!("export {name:?} is named twice")));
            }
            match served.iter().position(|export| export.name == *name) {
                Some(at) => chosen.push(served.swap_remove(at)),
                None => {
                    let known = served.iter().chain(&chosen).map(|export| export.name.as_str());
                    return Err(ServerError::not_there("export", name, known));
                }
            }
        }
        Ok(chosen)
    }

    /// Takes a number under which no view has the name of an export.
    fn number(&self, chosen: &[Chosen]) -> Result<u64, ServerError> {
        let mut freezes = self.freezes();
        if freezes.open.len() >= MAX_FREEZES {
            let reason = format!("{MAX_FREEZES} freezes are open; wait until one of them is over");
            return Err(ServerError::Refused(reason));
        }
        let is_taken = |number: u64| {
            chosen.iter().any(|export| self.directory.has(&frozen_name(&export.name, number)))
        };
        freezes.last += 1;
        while is_taken(freezes.last) {
            freezes.last += 1;
        }
        Ok(freezes.last)
    }

    fn orders(&self, chosen: &[Chosen], number: u64) -> Vec<HostOrder> {
        let scratch = |volume: &String| match &self.data {
            Some(data) => Scratch::folder(data.frozen().join(number.to_string()).join(volume)),
            None => Scratch::memory(),
        };
        let hosts = self.hosts();
        let mut orders: BTreeMap<usize, HostOrder> = BTreeMap::new();
        for (place, export) in chosen.iter().enumerate() {
            let state = &hosts[export.host];
            let order = orders.entry(export.host).or_insert_with(|| HostOrder {
                name: state.layout.name.clone(),
                mailbox: state.mailbox.clone(),
                places: Vec::new(),
                orders: Vec::new(),
            });
            let scratch = export.volumes.iter().map(scratch).collect();
            order.places.push(place);
            order.orders.push(FreezeOrder { device: export.device, scratch });
        }
        orders.into_values().collect()
    }

    /// Ends a freeze. A full backup that is complete becomes the base of its exports.
    fn release(&self, number: u64, completed: bool) -> Result<ReleaseAnswer, ServerError> {
        let freeze = self.freezes().open.remove(&number).ok_or_else(|| over(number))?;
        let mut failed = Ok(());
        let mut answer = ReleaseAnswer { freeze: number, base_of: Vec::new(), kept_bytes: 0 };
        for kept in &freeze.exports {
            answer.kept_bytes += kept.view.most_kept();
            if completed && freeze.purpose == Purpose::Full {
                match kept.view.complete(&freeze.backup) {
                    Ok(true) => answer.base_of.push(kept.name.clone()),
                    Ok(false) => {}
                    Err(error) => failed = Err(error.into()),
                }
            }
        }
        self.end(number, &freeze);
        failed.map(|()| answer)
    }

    fn end(&self, number: u64, freeze: &Freeze) {
        for kept in &freeze.exports {
            self.directory.remove(&kept.frozen);
            kept.view.thaw();
        }
        if let Some(data) = &self.data {
            // It is empty by now, or was never made.
            let _ = std::fs::remove_dir(data.frozen().join(number.to_string()));
        }
    }

    /// Gives up the views of a device.
    pub(super) fn lose_views(&self, device: (usize, DeviceId), reason: &str) {
        let freezes = self.freezes();
        let kept = freezes.open.values().flat_map(|freeze| &freeze.exports);
        for kept in kept.filter(|kept| kept.device == device) {
            kept.view.lose(reason);
            self.directory.remove(&kept.frozen);
        }
    }

    /// Returns whether a device has a frozen view.
    pub(super) fn has_views(&self, device: (usize, DeviceId)) -> bool {
        let freezes = self.freezes();
        let mut kept = freezes.open.values().flat_map(|freeze| &freeze.exports);
        kept.any(|kept| kept.device == device)
    }

    /// Ends all freezes, and allows no more.
    pub(super) fn end_freezes(&self) {
        let open = {
            let mut freezes = self.freezes();
            freezes.closed = true;
            std::mem::take(&mut freezes.open)
        };
        open.iter().for_each(|(number, freeze)| self.end(*number, freeze));
    }
}

fn frozen_name(export: &str, number: u64) -> String {
    format!("{export}@{number}")
}

fn told(kept: &Kept) -> FrozenExport {
    let tracking = kept.view.tracking();
    FrozenExport {
        name: kept.name.clone(),
        frozen: kept.frozen.clone(),
        size: kept.view.size().get(),
        tracked: tracking.known,
        base: tracking.base,
    }
}

/// Freezes on all hosts at one instant.
fn take(mut orders: Vec<HostOrder>, clock: Clock) -> Result<Taken, ServerError> {
    if orders.len() == 1
        && let Some(HostOrder { mailbox, places, orders, .. }) = orders.pop()
    {
        let freeze = mailbox.ask(move |host, now| {
            let at_unix_ms = calendar() / 1_000_000;
            let devices = host.freeze(orders);
            (devices, clock.now() - now, at_unix_ms)
        });
        let (devices, pause, at_unix_ms) = freeze.ok_or_else(gone)?;
        return Ok(Taken { devices: places.into_iter().zip(devices).collect(), pause, at_unix_ms });
    }
    let hosts: Vec<Stopped> = orders.into_iter().map(stop).collect();
    // Dropping one that is stopped lets it go on.
    let mut since: Option<Instant> = None;
    for host in &hosts {
        let stopped = host.stopped.recv_timeout(GATHERING).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                let reason = "it is busy; try again, or freeze its exports separately";
                ServerError::Refused(format!("host {:?}: {reason}", host.name))
            }
            RecvTimeoutError::Disconnected => gone(),
        })?;
        since = Some(since.map_or(stopped, |since: Instant| since.min(stopped)));
    }
    let at_unix_ms = calendar() / 1_000_000;
    for host in &hosts {
        // The devices of a host that has ended do not come.
        let _ = host.freeze.send(());
    }
    let mut devices = Vec::new();
    for host in &hosts {
        devices.extend(host.devices.recv().map_err(|_| gone())?);
    }
    drop(hosts);
    let until = clock.now();
    Ok(Taken { devices, pause: until - since.unwrap_or(until), at_unix_ms })
}

/// A host that serves no requests until this is dropped.
struct Stopped {
    name: String,
    stopped: Receiver<Instant>,
    freeze: Sender<()>,
    devices: Receiver<Vec<(usize, FrozenDevice)>>,
    _go_on: Sender<()>,
}

/// Has a host stop, freeze when it is told to, and go on when all have.
fn stop(order: HostOrder) -> Stopped {
    let HostOrder { name, mailbox, places, orders } = order;
    let (told_stopped, stopped) = channel();
    let (freeze, told_freeze) = channel();
    let (told_devices, devices) = channel();
    let (go_on, all_frozen) = channel::<()>();
    mailbox.send(Message::Call(Box::new(move |host, now| {
        let _ = told_stopped.send(now);
        if told_freeze.recv().is_ok() {
            let frozen = places.into_iter().zip(host.freeze(orders)).collect();
            let _ = told_devices.send(frozen);
            let _ = all_frozen.recv();
        }
    })));
    Stopped { name, stopped, freeze, devices, _go_on: go_on }
}
