//! Commands to a running server: resizes, tiers, cache modes, crashes, warm-ups.

use super::shared::{HostState, Shared, Used, ask, gone, refuse};
use crate::control::Request;
use crate::error::ServerError;
use crate::host_loop::Behind;
use crate::mailbox::{Mailbox, Message};
use crate::starting::{self, CACHE};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use weir_core::{CacheMode, Cap, DeviceId, VolumeId};
use weir_layout::error::Kind as LayoutKind;
use weir_layout::{Host, Volume};
use weir_store::{Store as _, Volume as StoredVolume};
use weir_units::{Bytes, BytesPerSec, Iops, Share};

/// The tiers of a volume that was resized, if it has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    /// The one that it had.
    pub before: Option<String>,
    /// The one that it has.
    pub after: Option<String>,
}

/// A change of a volume. Other changes of it are refused until this is dropped. The hosts are not
/// locked meanwhile, since a medium may be slow, and status requests must not wait for it.
#[derive(Debug)]
struct Change<'a> {
    shared: &'a Shared,
    host: usize,
    id: VolumeId,
    /// The new state of the volume.
    to: Volume,
    mailbox: Mailbox,
    stored: Option<Arc<StoredVolume>>,
}

impl Change<'_> {
    /// Publishes the new limits of the volume.
    fn keep(self) {
        let mut hosts = self.shared.hosts();
        let host = &mut hosts[self.host].layout;
        host.spec.volumes[self.id.0] = self.to.spec.clone();
        host.volumes[self.id.0] = self.to.clone();
        self.shared.changes.fetch_add(1, Ordering::Release);
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.shared.hosts()[self.host].changing.remove(&self.id.0);
    }
}

impl Shared {
    pub(super) fn answer(&self, request: Request) -> Result<Value, ServerError> {
        match request {
            Request::Status => Ok(serde_json::to_value(self.status()).unwrap_or(Value::Null)),
            Request::Resize { volume, size } => self
                .refuse_elsewhere(&volume, "resize")
                .and_then(|()| self.resize(&volume, size, Behind::Keep))
                .map(|tiers| json!({ "volume": volume, "size": size, "tier": tiers.after })),
            Request::Create { host, volume } => self.create(host.as_deref(), &volume),
            Request::Delete { volume, if_unused } => self.delete(&volume, if_unused),
            Request::SetCache { volume, mode } => self.set_cache(&volume, &mode),
            Request::SetTier { volume, tier } => self.set_tier(&volume, &tier),
            Request::SetRates { volume, iops, throughput } => {
                self.set_rates(&volume, (iops, throughput))
            }
            Request::SetCredits { volume, credits } => self.set_credits(&volume, credits),
            Request::SetHostCredits { host, credits } => self.set_host_credits(&host, credits),
            Request::Crash { host } => self.crash(&host),
            Request::Warm { export, offset, len } => self.warm(&export, offset, len),
            Request::Record { .. } => Err(ServerError::Refused(
                "a recording needs a control connection of its own; ask over one".to_owned(),
            )),
            Request::Freeze { .. }
            | Request::Changed { .. }
            | Request::ReadDone { .. }
            | Request::Release { .. } => Err(ServerError::Refused(
                "a freeze lasts as long as the control connection that made it; ask over one"
                    .to_owned(),
            )),
        }
    }

    /// Begins to change a volume to what `to` makes of it.
    fn change(
        &self,
        name: &str,
        what: &'static str,
        to: impl FnOnce(&Host, VolumeId) -> Result<Volume, LayoutKind>,
    ) -> Result<Change<'_>, ServerError> {
        let mut hosts = self.hosts();
        let (at, id) = self.find(&hosts, name)?;
        let host = &mut hosts[at];
        if let Some(what) = host.changing.get(&id.0) {
            return Err(refuse(name, format!("{what} right now; ask again when that is done")));
        }
        let to = to(&host.layout, id).map_err(ServerError::Layout)?;
        host.changing.insert(id.0, what);
        let (mailbox, stored) = (host.mailbox.clone(), host.stored[id.0].clone());
        Ok(Change { shared: self, host: at, id, to, mailbox, stored })
    }

    pub(super) fn resize(
        &self,
        name: &str,
        size: Bytes,
        behind: Behind,
    ) -> Result<Tiers, ServerError> {
        let edition = self.edition.as_ref();
        // The files of an instance share its storage: no other may come or grow between the check of the room and
        // the end of the change.
        let is_of_instance = self.is_of_instance(name)?;
        let _alone = is_of_instance.then(|| self.one_at_a_time());
        if !is_of_instance {
            self.check_used(name, size)?;
        }
        let mut before = None;
        let change = self.change(name, "it is being resized", |host, id| {
            before.clone_from(&host.volumes[id.0].tier);
            host.resized(id, size, edition)
        })?;
        let (id, spec, own) = (change.id, change.to.spec.clone(), name.to_owned());
        let made = self.made(&change);
        let stores = made.map(|volume| starting::remember_limits_with_size(volume, &change.to));
        let _stores_limits = stores.transpose()?;
        let (sender, receiver) = channel();
        change.mailbox.send(Message::Call(Box::new(move |host, now| {
            host.resize(now, id, &own, &spec, behind, move |result| drop(sender.send(result)));
        })));
        let resized = receiver.recv().map_err(|_| gone())?;
        // One that fails late has its new size and limits nevertheless.
        if let Err(error) = resized {
            let is_there = |volume: &Arc<StoredVolume>| volume.size() == size;
            if change.stored.as_ref().is_some_and(is_there) {
                change.keep();
            }
            return Err(error);
        }
        let after = change.to.tier.clone();
        change.keep();
        Ok(Tiers { before, after })
    }

    /// Checks that a volume whose bytes are elsewhere, in the files of a mount, does not shrink below them.
    fn check_used(&self, name: &str, size: Bytes) -> Result<(), ServerError> {
        let Some(Used(used)) = self.used.get() else { return Ok(()) };
        let hosts = self.hosts();
        let (at, id) = self.find(&hosts, name)?;
        if size >= hosts[at].layout.volumes[id.0].spec.size {
            return Ok(());
        }
        let mut exports = hosts[at].layout.exports.iter();
        let Some(export) = exports.find(|export| export.volumes.contains(&id)) else {
            return Ok(());
        };
        let columns = export.volumes.len() as u64;
        let (export, own) = (export.name.clone(), Bytes::new(size.get().saturating_mul(columns)));
        drop(hosts);
        match used(&export).map(Bytes::new) {
            Some(held) if held > own => Err(refuse(
                name,
                format!("the files of {export} hold {held}, more than {own}; delete some first"),
            )),
            _ => Ok(()),
        }
    }

    /// Gives a volume the limits of a tier, its size unchanged.
    pub(super) fn retier(&self, name: &str, tier: &str) -> Result<Tiers, ServerError> {
        let edition = self.edition.as_ref();
        let mut before = None;
        let change = self.change(name, "its tier is being changed", |host, id| {
            before = host.volumes[id.0].limits_tier().map(str::to_owned);
            host.retiered(id, tier, edition)
        })?;
        let after = change.to.limits_tier().map(str::to_owned);
        self.apply_limits(change)?;
        Ok(Tiers { before, after })
    }

    fn set_tier(&self, name: &str, tier: &str) -> Result<Value, ServerError> {
        if self.is_of_instance(name)? {
            let reason = "on a managed instance the tier follows from the size; resize it";
            return Err(refuse(name, reason.to_owned()));
        }
        self.refuse_elsewhere(name, "change the tier of")?;
        let tiers = self.retier(name, tier)?;
        Ok(json!({ "volume": name, "tier": tiers.after }))
    }

    fn set_rates(
        &self,
        name: &str,
        rates: (Option<Iops>, Option<BytesPerSec>),
    ) -> Result<Value, ServerError> {
        if rates == (None, None) {
            return Err(refuse(name, "give operations per second, throughput, or both".to_owned()));
        }
        if self.is_of_instance(name)? {
            let reason = "on a managed instance the limits follow from the size; resize it";
            return Err(refuse(name, reason.to_owned()));
        }
        self.refuse_elsewhere(name, "change the rates of")?;
        let edition = self.edition.as_ref();
        let change = self.change(name, "its rates are being changed", |host, id| {
            host.rerated(id, rates, edition)
        })?;
        let (iops, throughput) = change.to.rates();
        self.apply_limits(change)?;
        Ok(json!({ "volume": name, "iops": iops.map(Iops::get), "throughput": throughput }))
    }

    /// Stores a change of limits, and applies it.
    fn apply_limits(&self, change: Change<'_>) -> Result<(), ServerError> {
        if let Some(volume) = self.made(&change) {
            starting::remember_limits(volume, &change.to)?;
        }
        let (id, limits) = (change.id, change.to.spec.limits);
        ask(&change.mailbox, move |host, now| host.set_limits(now, id, limits))?;
        change.keep();
        Ok(())
    }

    fn is_of_instance(&self, name: &str) -> Result<bool, ServerError> {
        let hosts = self.hosts();
        let (at, _) = self.find(&hosts, name)?;
        Ok(hosts[at].layout.instance.is_some())
    }

    /// Returns the stored volume of a change, if it was created on the running server.
    fn made<'c>(&self, change: &'c Change<'_>) -> Option<&'c StoredVolume> {
        let is_made = self.hosts()[change.host].made.contains(&change.id.0);
        change.stored.as_deref().filter(|_| is_made)
    }

    fn set_cache(&self, name: &str, mode: &str) -> Result<Value, ServerError> {
        let key = mode.parse().map_err(|reason: String| refuse(name, reason))?;
        let edition = self.edition.as_ref();
        let change = self.change(name, "its cache mode is being changed", |host, id| {
            host.recached(id, key, edition)
        })?;
        if let Some(volume) = &change.stored {
            volume.set_attribute(CACHE, Some(mode))?;
        }
        let (id, cache) = (change.id, change.to.spec.cache);
        ask(&change.mailbox, move |host, now| host.set_cache(now, id, cache))?;
        change.keep();
        Ok(json!({ "volume": name, "cache": mode }))
    }

    fn set_credits(&self, name: &str, credits: Share) -> Result<Value, ServerError> {
        // A volume that changes is not deleted, so its ID is not reused.
        let change = self
            .change(name, "its credits are being set", |host, id| Ok(host.volumes[id.0].clone()))?;
        if !change.to.spec.limits.gate.has_credits() {
            let tier = change.to.tier.as_ref().map(|tier| format!(" ({tier})"));
            let tier = tier.unwrap_or_default();
            let reason =
                format!("it has no burst credits{tier}; weir status lists those that have");
            return Err(refuse(name, reason));
        }
        let id = change.id;
        let left = ask(&change.mailbox, move |host, now| {
            host.set_credits(now, id, credits);
            let left = |cap| host.engine().bucket(now, id, cap).map(|(left, _)| left);
            (left(Cap::DiskIops), left(Cap::DiskBytes))
        })?;
        Ok(json!({ "volume": name, "credits": credits, "operations": left.0, "bytes": left.1 }))
    }

    fn set_host_credits(&self, name: &str, credits: Share) -> Result<Value, ServerError> {
        let mailbox = {
            let hosts = self.hosts();
            let host = host_called(&hosts, name)?;
            let spec = &host.layout.spec;
            if !spec.uncached.has_credits() && !spec.cached.has_credits() {
                let size = host.layout.size.as_ref().map(|size| format!(" ({size})"));
                return Err(ServerError::Refused(format!(
                    "host {name:?}{} has no burst credits",
                    size.unwrap_or_default()
                )));
            }
            host.mailbox.clone()
        };
        ask(&mailbox, move |host, now| host.set_host_credits(now, credits))?;
        Ok(json!({ "host": name, "credits": credits }))
    }

    fn crash(&self, name: &str) -> Result<Value, ServerError> {
        let mailbox = host_called(&self.hosts(), name)?.mailbox.clone();
        let (sender, receiver) = channel();
        mailbox.send(Message::Crash(sender));
        let lost = receiver.recv().map_err(|_| gone())?;
        Ok(json!({ "host": name, "lost_bytes": lost.get() }))
    }

    fn warm(&self, name: &str, offset: u64, len: u64) -> Result<Value, ServerError> {
        let (mailbox, device) = self.cached_export(name)?;
        let export = name.to_owned();
        let warmed = ask(&mailbox, move |host, _| {
            let size = host.size(device);
            if offset.checked_add(len).is_none_or(|end| end > size.get()) {
                return Err(ServerError::BeyondEnd { export, size });
            }
            Ok(host.warm(device, offset, len))
        })??;
        Ok(json!({ "export": name, "warmed_bytes": warmed.get() }))
    }

    /// Returns an export with a volume that caches.
    fn cached_export(&self, name: &str) -> Result<(Mailbox, DeviceId), ServerError> {
        let hosts = self.hosts();
        let exports = || hosts.iter().flat_map(|h| h.layout.exports.iter().map(move |e| (h, e)));
        let (host, export) =
            exports().find(|(_, export)| export.name == name).ok_or_else(|| {
                let names = exports().map(|(_, export)| export.name.as_str());
                ServerError::not_there("export", name, names.filter(|name| !name.is_empty()))
            })?;
        let caches = |id: &VolumeId| host.layout.volumes[id.0].spec.cache != CacheMode::None;
        if !export.volumes.iter().any(caches) {
            return Err(ServerError::Uncached { export: name.to_owned() });
        }
        Ok((host.mailbox.clone(), export.device))
    }
}

fn host_called<'a>(hosts: &'a [HostState], name: &str) -> Result<&'a HostState, ServerError> {
    let names = || hosts.iter().map(|host| host.layout.name.as_str());
    let found = hosts.iter().find(|host| host.layout.name == name);
    found.ok_or_else(|| ServerError::not_there("host", name, names()))
}
