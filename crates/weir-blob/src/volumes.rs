//! The volumes of page blobs: names, and requests to their devices.

use crate::digest::hex;
use crate::fault::{Code, Fault, Result};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use tokio::sync::oneshot;
use weir_layout::Blob as Settings;
use weir_layout::hot_plug::NewVolume;
use weir_server::{Ask, Audit, Disk, Handle, NotDone, Opened, Paged, ServerError, Terms};
use weir_units::Bytes as Size;

/// Length of the readable part of a volume's name. A number makes the name unique.
const READABLE: usize = 96;

/// The volumes of all page blobs.
#[derive(Debug)]
pub struct Volumes {
    server: Handle,
    host: String,
    template: NewVolume,
    terms: Terms,
    open: RefCell<HashMap<String, Rc<Volume>>>,
}

/// The volume of a page blob.
#[derive(Debug)]
pub struct Volume {
    disk: Disk,
    /// The stored pages.
    pub pages: Paged,
    terms: Terms,
    /// True if a wake-up of the host's thread is already scheduled.
    waking: Rc<Cell<bool>>,
}

impl Volumes {
    /// Returns the volumes of a server with the blob settings of its layout.
    #[must_use]
    pub fn new(server: Handle, settings: &Settings) -> Self {
        let terms = Terms { most_wait: settings.most_wait, most_before: Some(settings.queue) };
        Self {
            server,
            host: settings.host.clone(),
            template: settings.volume.clone(),
            terms,
            open: RefCell::default(),
        }
    }

    /// Returns the receiver of refused requests.
    pub(crate) fn audit(&self) -> &Audit {
        self.server.audit()
    }

    /// Creates a volume for a blob of that size and tier, and returns its name.
    ///
    /// # Errors
    ///
    /// The host cannot have the volume.
    pub async fn make(&self, names: [&str; 3], size: u64, tier: Option<&str>) -> Result<String> {
        if self.tier_is_unknown(tier, size) {
            return Err(Code::InvalidBlobTier.into());
        }
        loop {
            let name = self.free_name(names);
            let host = Some(&*self.host);
            let new = self.server.sized(host, &self.template, &name, Size::new(size.max(512)));
            let new = NewVolume { tier: tier.map(str::to_owned), ..new.map_err(|e| refused(&e))? };
            let (server, host) = (self.server.clone(), self.host.clone());
            let made = blocking(move || {
                let taken = server.is_taken(&new.name);
                let made = server.make(Some(&host), &new).map(drop);
                // Another request has taken the name meanwhile.
                Ok(if taken && made.is_err() { None } else { Some(made) })
            });
            if let Some(made) = made.await? {
                return made.map(|()| name).map_err(|error| refused(&error));
            }
        }
    }

    /// Returns whether a tier is requested that no volume of that size can have.
    fn tier_is_unknown(&self, tier: Option<&str>, size: u64) -> bool {
        let Some(tier) = tier else { return false };
        let host = Some(&*self.host);
        let sized = |tier: Option<&str>| {
            let new = self.server.sized(host, &self.template, "blob", Size::new(size.max(512)))?;
            self.server.would_be(host, &NewVolume { tier: tier.map(str::to_owned), ..new })
        };
        sized(Some(tier)).is_err() && sized(None).is_ok()
    }

    /// Opens a volume.
    ///
    /// # Errors
    ///
    /// [`Code::InternalError`] if the server does not have it.
    pub fn open(&self, name: &str) -> Result<Rc<Volume>> {
        if let Some(volume) = self.open.borrow().get(name) {
            return Ok(Rc::clone(volume));
        }
        let Some(Opened { disk, pages: Some(pages) }) = self.server.open(name) else {
            return Err(Fault::internal(format!("the server has no volume {name:?}")));
        };
        let (terms, waking) = (self.terms, Rc::default());
        let volume = Rc::new(Volume { disk, pages, terms, waking });
        self.open.borrow_mut().insert(name.to_owned(), Rc::clone(&volume));
        Ok(volume)
    }

    /// Exports a volume as `name`.
    pub fn export_as(&self, volume: &str, name: &str) {
        self.server.export_as(volume, Some(name));
    }

    /// Removes the export of a volume that only snapshots use.
    ///
    /// # Errors
    ///
    /// [`Code::LeaseIdMissing`] if a client of its export is writing.
    pub fn hide(&self, volume: &str) -> Result<()> {
        if self.open(volume)?.pages.seat().lease(u64::MAX) {
            self.server.export_as(volume, None);
            Ok(())
        } else {
            Err(Code::LeaseIdMissing.into())
        }
    }

    /// Deletes a volume. A missing volume is not an error.
    ///
    /// # Errors
    ///
    /// The server's error.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.open.borrow_mut().remove(name);
        if self.server.open(name).is_none() {
            return Ok(());
        }
        let (server, own) = (self.server.clone(), name.to_owned());
        let deleted = blocking(move || server.delete(&own)).await;
        // A concurrent request may have opened it again.
        self.open.borrow_mut().remove(name);
        deleted
    }

    /// Resizes a volume. Bytes beyond a lower size are lost.
    ///
    /// # Errors
    ///
    /// The host cannot have the volume in that size.
    pub async fn resize(&self, name: &str, size: u64) -> Result<()> {
        let (server, name) = (self.server.clone(), name.to_owned());
        blocking(move || server.resize(&name, Size::new(size.max(512))).map(drop)).await
    }

    /// Sets the tier of a volume. A tier that a client has set cannot be lowered.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidBlobTier`], [`Code::CannotChangeToLowerTier`], or an error for a tier that is
    /// too small.
    pub async fn retier(&self, name: &str, named: Option<&str>, tier: &str) -> Result<()> {
        if let Some(own) = named
            && let (Some(own), Some(wanted)) = (self.tier_size(own), self.tier_size(tier))
            && wanted < own
        {
            return Err(Code::CannotChangeToLowerTier.into());
        }
        let (server, own, wanted) = (self.server.clone(), name.to_owned(), tier.to_owned());
        let done = tokio::task::spawn_blocking(move || server.retier(&own, &wanted).map(drop));
        match done.await.map_err(Fault::internal)? {
            Ok(()) => Ok(()),
            Err(ServerError::Layout(reason)) => {
                let size = self.server.size(name).map_or(0, Size::get);
                let code = if self.tier_is_unknown(Some(tier), 512) {
                    Code::InvalidBlobTier
                } else if size > 0 {
                    Code::BlobTierInadequateForContentLength
                } else {
                    Code::InvalidBlobTier
                };
                Err(Fault::from(code).because(reason))
            }
            Err(error) => Err(refused(&error)),
        }
    }

    /// Returns the maximum size of a tier.
    fn tier_size(&self, tier: &str) -> Option<u64> {
        let host = Some(&*self.host);
        let sized = self.server.sized(host, &self.template, "blob", Size::new(512)).ok()?;
        let new = NewVolume { tier: Some(tier.to_owned()), ..sized };
        let coming = self.server.would_be(host, &new).ok()?;
        coming.volume.tier_size.map(Size::get)
    }

    /// Returns the tier of a volume.
    #[must_use]
    pub fn tier(&self, name: &str) -> Option<String> {
        self.server.tier(name)
    }

    /// Returns the size of a volume.
    #[must_use]
    pub fn size(&self, name: &str) -> Option<u64> {
        self.server.size(name).map(Size::get)
    }

    /// Returns the names of all volumes.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.server.blobs()
    }

    /// Returns an unused name that contains the blob's names as far as possible.
    fn free_name(&self, [account, container, blob]: [&str; 3]) -> String {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let clean = |text: &str| text.chars().map(|c| if fine(c) { c } else { '-' }).collect();
        let (container, blob): (String, String) = (clean(container), clean(blob));
        let container = container.trim_start_matches('-');
        let plain = format!("{container}.{blob}");
        let is_own = plain.len() <= READABLE && !self.has(&plain);
        if is_own {
            return plain;
        }
        let end = blob.len().min(READABLE / 2);
        let tail = &blob[blob.len() - end..];
        let container = &container[..container.len().min(READABLE / 3)];
        let names = |n: u32| {
            let hash = Sha256::digest(format!("{account}/{container}/{blob}/{n}"));
            format!("{container}-{}.{tail}", hex(&hash[..4]))
        };
        (0..).map(names).find(|name| !self.has(name)).unwrap_or(plain)
    }

    fn has(&self, name: &str) -> bool {
        self.server.is_taken(name)
    }
}

impl Volume {
    /// Reads a range.
    ///
    /// # Errors
    ///
    /// [`Code::ServerBusy`], or a storage error.
    pub async fn read(&self, offset: u64, len: u32) -> Result<Bytes> {
        self.ask(Ask::Read { offset, len }, self.terms).await
    }

    /// Reads a range without a timeout.
    ///
    /// # Errors
    ///
    /// A storage error.
    pub(crate) async fn read_without_timeout(&self, offset: u64, len: u32) -> Result<Bytes> {
        self.ask(Ask::Read { offset, len }, Terms::default()).await
    }

    /// Reads a range of a snapshot; `is_patient` disables the timeout.
    ///
    /// # Errors
    ///
    /// [`Code::BlobNotFound`] if the snapshot is missing, and the errors of [`read`](Self::read).
    pub(crate) async fn read_snapshot(
        &self,
        id: u64,
        offset: u64,
        len: u32,
        is_patient: bool,
    ) -> Result<Bytes> {
        let terms = if is_patient { Terms::default() } else { self.terms };
        let view = self.pages.view(weir_store::SnapshotId(id)).ok_or(Code::BlobNotFound)?;
        let (told, heard) = oneshot::channel();
        let told = move |answer| drop(told.send(answer));
        self.disk.read_from(view, (offset, len), terms, told);
        done(heard.await)
    }

    /// Writes durably.
    ///
    /// # Errors
    ///
    /// [`Code::ServerBusy`], or a storage error.
    pub async fn write(&self, offset: u64, data: Vec<u8>) -> Result<()> {
        self.ask(Ask::Write { offset, data, durable: true }, self.terms).await.map(drop)
    }

    /// Writes without a timeout. The bytes are not durable before [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// A storage error.
    pub(crate) async fn write_without_timeout(&self, offset: u64, data: Vec<u8>) -> Result<()> {
        let ask = Ask::Write { offset, data, durable: false };
        self.ask(ask, Terms::default()).await.map(drop)
    }

    /// Clears a range durably.
    ///
    /// # Errors
    ///
    /// [`Code::ServerBusy`], or a storage error.
    pub async fn clear(&self, mut offset: u64, mut len: u64, terms: Option<Terms>) -> Result<()> {
        /// Maximum length of one request.
        const MOST: u64 = 1 << 30;
        let mut terms = terms.unwrap_or(self.terms);
        while len > 0 {
            let some = u32::try_from(len.min(MOST)).unwrap_or(0);
            self.ask(Ask::Zero { offset, len: some, durable: true }, terms).await?;
            offset += u64::from(some);
            len -= u64::from(some);
            // Only the first request may be refused, so that a clear is not left half done.
            terms = Terms::default();
        }
        Ok(())
    }

    /// Makes earlier writes durable.
    ///
    /// # Errors
    ///
    /// A storage error.
    pub async fn flush(&self) -> Result<()> {
        self.ask(Ask::Flush, Terms::default()).await.map(drop)
    }

    async fn ask(&self, ask: Ask, terms: Terms) -> Result<Bytes> {
        let (told, heard) = oneshot::channel();
        self.disk.ask_later(ask, terms, move |answer| drop(told.send(answer)));
        self.wake();
        done(heard.await)
    }

    /// Wakes the host's thread after the other ready requests have been submitted.
    fn wake(&self) {
        if !self.waking.replace(true) {
            let (disk, waking) = (self.disk.clone(), Rc::clone(&self.waking));
            tokio::task::spawn_local(async move {
                tokio::task::yield_now().await;
                waking.set(false);
                disk.go();
            });
        }
    }
}

fn done(
    heard: std::result::Result<weir_server::Answer, oneshot::error::RecvError>,
) -> Result<Bytes> {
    match heard {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(NotDone::Busy(wait))) => {
            let mut fault = Fault::from(Code::ServerBusy)
                .because("The request is over a limit of the blob or of its host.");
            fault.retry_after = Some(wait.nanos().div_ceil(1_000_000_000).max(1));
            Err(fault)
        }
        Ok(Err(NotDone::Failed(errno))) => {
            Err(Fault::internal(format!("the storage returned {errno}")))
        }
        Ok(Err(NotDone::Gone)) | Err(_) => {
            Err(Fault::internal("the blob's host has stopped or crashed"))
        }
    }
}

/// Runs a function that may wait for a medium on another thread.
///
/// # Errors
///
/// The server's error.
pub async fn blocking<T: Send + 'static>(
    what: impl FnOnce() -> std::result::Result<T, ServerError> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(what).await.map_err(Fault::internal)?;
    done.map_err(|error| refused(&error))
}

fn refused(error: &ServerError) -> Fault {
    match error {
        ServerError::Layout(_) | ServerError::Volume { .. } | ServerError::Refused(_) => {
            Fault::from(Code::InvalidInput).because(error)
        }
        _ => Fault::internal(error),
    }
}
