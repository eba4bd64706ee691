//! Volumes whose bytes are on a backend.

use crate::error::ServerError;
use crate::notice::{Listening, Notice};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_backend::condition::Hearing;
use weir_backend::{BackendError, HeldFile, RemoteOptions, RemoteStore, State};
use weir_layout::Backend;
use weir_report::status::BackendStatus;
use weir_store::Store;
use weir_units::Bytes;

/// The open backend of a volume.
#[derive(Debug, Clone)]
pub(crate) struct Backing {
    address: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Nbd(Arc<RemoteStore>),
    File(Arc<HeldFile>),
}

impl Backing {
    /// Opens the backend of `volume`. `given_up` ends the wait for a server. The size is passed to
    /// `fit`, which returns the part of it that is used, at most all.
    pub(crate) fn open(
        volume: &str,
        backend: &Backend,
        notices: &Listening,
        given_up: &Arc<AtomicBool>,
        fit: impl FnOnce(Bytes) -> Result<Bytes, ServerError>,
    ) -> Result<Self, ServerError> {
        let address = backend.to_string();
        let failed = |source: BackendError| {
            let (volume, address) = (volume.to_owned(), address.clone());
            ServerError::Backend { volume, address, source: Box::new(source) }
        };
        let kind = match backend {
            Backend::Nbd { uri, connections, timeout } => {
                let hearing = hearing(volume, &address, notices);
                let (uri, connections, timeout) = (uri.clone(), *connections, *timeout);
                let given_up = Arc::clone(given_up);
                let options = RemoteOptions { uri, connections, timeout, hearing, given_up };
                let store = RemoteStore::open(options).map_err(failed)?;
                let used = fit(store.size())?;
                Kind::Nbd(Arc::new(store.shortened(used)))
            }
            Backend::File { path } => {
                let store = HeldFile::open(path).map_err(failed)?;
                let used = fit(store.size())?;
                Kind::File(Arc::new(store.shortened(used)))
            }
        };
        Ok(Self { address, kind })
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match &self.kind {
            Kind::Nbd(store) => Arc::clone(store) as Arc<dyn Store>,
            Kind::File(store) => Arc::clone(store) as Arc<dyn Store>,
        }
    }

    pub(crate) fn status(&self) -> BackendStatus {
        let address = self.address.clone();
        let store = match &self.kind {
            Kind::Nbd(store) => store,
            Kind::File(store) => {
                let state = if store.has_failed() { "failed" } else { "connected" };
                let reason = store.has_failed().then(|| {
                    "a sync failed, and bytes written before it may be lost; start again".to_owned()
                });
                let state = state.to_owned();
                return BackendStatus { address, state, reason, ..BackendStatus::default() };
            }
        };
        let condition = store.condition();
        let (state, reason) = match condition.state {
            State::Connected => ("connected", None),
            State::Lost { reason } => ("lost", Some(reason)),
            State::Failed { reason } => ("failed", Some(reason)),
        };
        let since_ns = condition.lasts.nanos();
        BackendStatus { address, state: state.to_owned(), reason, since_ns }
    }
}

/// Tells changes of a backend as notices.
fn hearing(volume: &str, address: &str, notices: &Listening) -> Hearing {
    let (volume, address, notices) = (volume.to_owned(), address.to_owned(), notices.clone());
    Hearing::with(move |state| {
        let (volume, address) = (volume.clone(), address.clone());
        notices.tell(match state {
            State::Connected => Notice::BackendBack { volume, address },
            State::Lost { reason } => {
                Notice::BackendLost { volume, address, reason: reason.clone() }
            }
            State::Failed { reason } => {
                Notice::BackendFailed { volume, address, reason: reason.clone() }
            }
        });
    })
}
