//! The state of a server that its front ends and control conversations share.

use super::paged::Paged;
use super::views::Freezes;
use crate::audit::Audit;
use crate::backing::Backing;
use crate::error::ServerError;
use crate::host_loop::HostLoop;
use crate::listener::Directory;
use crate::mailbox::Mailbox;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use weir_catalog::Edition;
use weir_core::VolumeId;
use weir_layout::{Host, Volume};
use weir_proto::uri::{Server as UriServer, TlsTerms, Uri};
use weir_report::status::Refused;
use weir_store::{DataDir, Volume as StoredVolume};
use weir_wall::Clock;

/// The state that control conversations share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) clock: Clock,
    pub(super) edition: Option<Edition>,
    pub(super) hosts: Mutex<Vec<HostState>>,
    /// Held while volumes are created, deleted or frozen, so that this happens one at a time.
    pub(super) coming: Mutex<()>,
    /// Volumes and stripes that are not served, and why.
    pub(super) refused: Mutex<Vec<Refused>>,
    pub(super) directory: Arc<Directory>,
    pub(crate) audit: Audit,
    /// The addresses of the exports, and whether they need TLS.
    pub(super) addresses: Vec<(UriServer, bool)>,
    /// The data directory stays locked while this lives.
    pub(super) data: Option<DataDir>,
    /// The volumes are used by a mount alone.
    pub(super) is_mounted: bool,
    pub(super) freezes: Mutex<Freezes>,
    /// The number of changes to volumes.
    pub(super) changes: AtomicU64,
    /// The used bytes of an export whose bytes are elsewhere.
    pub(super) used: OnceLock<Used>,
}

/// A function that returns the used bytes of an export.
pub(super) struct Used(pub(super) Box<UsedOf>);

pub(super) type UsedOf = dyn Fn(&str) -> Option<u64> + Send + Sync;

impl fmt::Debug for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Used").finish()
    }
}

/// A host as the control socket knows it.
#[derive(Debug)]
pub(crate) struct HostState {
    /// The layout with all changes since the start.
    pub(crate) layout: Host,
    pub(crate) mailbox: Mailbox,
    /// The volumes of the data directory; none for those in memory or refused.
    pub(crate) stored: Vec<Option<Arc<StoredVolume>>>,
    /// The open backends of volumes.
    pub(crate) backings: BTreeMap<usize, Backing>,
    /// Volumes created while it was served.
    pub(crate) made: BTreeSet<usize>,
    /// The page blobs among the created volumes.
    pub(crate) paged: BTreeMap<usize, Paged>,
    /// Volumes with a change under way, and its description.
    pub(crate) changing: BTreeMap<usize, &'static str>,
}

impl Shared {
    pub(super) fn hosts(&self) -> MutexGuard<'_, Vec<HostState>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn refused(&self) -> MutexGuard<'_, Vec<Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn freezes(&self) -> MutexGuard<'_, Freezes> {
        self.freezes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no volume is being made, deleted or frozen, and no file of an instance resized, and keeps others
    /// from doing so.
    pub(super) fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn uris(&self) -> BTreeMap<String, Vec<String>> {
        let uri = |address: &(UriServer, bool), name: &str| {
            let (server, is_encrypted) = address.clone();
            let tls = is_encrypted.then(TlsTerms::default);
            Uri { server, tls, export: name.to_owned() }.to_string()
        };
        let uris = |name: &str| self.addresses.iter().map(|own| uri(own, name)).collect();
        self.directory.names().into_iter().map(|name| (name.clone(), uris(&name))).collect()
    }

    /// Returns the position of its host, and of the volume there.
    pub(super) fn find(
        &self,
        hosts: &[HostState],
        name: &str,
    ) -> Result<(usize, VolumeId), ServerError> {
        if let Some(refused) = self.refused().iter().find(|refused| refused.name == name) {
            return Err(refuse(name, format!("it is not served: {}", refused.reason)));
        }
        let is_it = |volume: &Volume| !volume.is_gone() && volume.name == name;
        let position = |host: &HostState| host.layout.volumes.iter().position(is_it);
        let found = hosts.iter().enumerate().find_map(|(at, host)| Some((at, position(host)?)));
        match found {
            Some((at, id)) => Ok((at, VolumeId(id))),
            None => {
                let mut stripes = hosts
                    .iter()
                    .flat_map(|host| host.layout.exports.iter().map(move |export| (host, export)));
                if let Some((host, stripe)) = stripes.find(|(_, export)| export.name == name) {
                    let columns = stripe.volumes.iter().map(|id| &*host.layout.volumes[id.0].name);
                    return Err(ServerError::is_stripe(name, &columns.collect::<Vec<_>>()));
                }
                let known = hosts.iter().flat_map(|host| &host.layout.volumes);
                let known = known.filter(|volume| !volume.is_gone());
                Err(ServerError::not_there("volume", name, known.map(|v| v.name.as_str())))
            }
        }
    }

    /// Returns the host of that name, or the only one.
    pub(super) fn host_of(
        &self,
        hosts: &[HostState],
        name: Option<&str>,
    ) -> Result<usize, ServerError> {
        let names = || hosts.iter().map(|host| host.layout.name.as_str());
        match name {
            None if hosts.len() == 1 => Ok(0),
            None => Err(ServerError::Refused(format!(
                "there are several hosts; say which: {}",
                names().collect::<Vec<_>>().join(", ")
            ))),
            Some(name) => names()
                .position(|own| own == name)
                .ok_or_else(|| ServerError::not_there("host", name, names())),
        }
    }

    /// Returns whether a volume or an export has this name, served or not.
    pub(super) fn is_taken(&self, hosts: &[HostState], name: &str) -> bool {
        let layouts = || hosts.iter().map(|host| &host.layout);
        layouts().flat_map(|host| &host.volumes).any(|volume| volume.name == name)
            || layouts().flat_map(|host| &host.exports).any(|export| export.name == name)
            || self.refused().iter().any(|refused| refused.name == name)
    }
}

pub(super) fn refuse(name: &str, reason: String) -> ServerError {
    ServerError::Volume { volume: name.to_owned(), reason }
}

pub(super) fn gone() -> ServerError {
    ServerError::System {
        context: "asking a host's thread",
        source: std::io::Error::other("it has ended"),
    }
}

pub(super) fn ask<T: Send + 'static>(
    mailbox: &Mailbox,
    call: impl FnOnce(&mut HostLoop, weir_units::Instant) -> T + Send + 'static,
) -> Result<T, ServerError> {
    mailbox.ask(call).ok_or_else(gone)
}
