//! The state of the service, and the steps that several operations share.

use super::properties::Properties;
use crate::auth::account::Accounts;
use crate::body::{Body, Reply};
use crate::condition::{Conditions, Subject};
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::journal::{Change, Journal};
use crate::lease::{Lease, Leased};
use crate::pieces::Pieces;
use crate::record::{Blob, Content, Metadata, PageContent};
use crate::room::{Room, Rooms};
use crate::state::{Names, State, base};
use crate::time::Moment;
use crate::volumes::Volumes;
use bytes::Bytes;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::RwLock;
use weir_server::{Audit, FrontEnd};
use weir_store::SnapshotId;

/// Maximum size of an XML document in a request.
pub(super) const MAX_DOCUMENT: usize = 8 << 20;

/// The blob service.
#[derive(Debug)]
pub struct Service {
    pub(super) accounts: Accounts,
    pub(super) volumes: Volumes,
    pub(super) journal: Journal,
    pub(super) pieces: Pieces,
    pub(super) state: RefCell<State>,
    /// By hash of the names. Blobs with equal hashes share a lock.
    pub(super) locks: RefCell<HashMap<u64, Rc<RwLock<()>>>>,
    pub(super) clock: fn() -> Moment,
    /// Distinguishes the request ids of this run from those of others; a counter follows.
    pub(super) run: u64,
    pub(super) requests: Cell<u64>,
    /// Set at shutdown, to end long operations.
    pub(super) ending: Arc<AtomicBool>,
    /// Memory for the bodies of requests.
    pub(super) received: Rooms,
    /// Memory for the bodies of responses.
    pub(super) sent: Rooms,
}

impl Service {
    /// Builds the service from its components.
    pub fn new(
        accounts: Accounts,
        volumes: Volumes,
        journal: Journal,
        pieces: Pieces,
        state: State,
        clock: fn() -> Moment,
    ) -> Self {
        let count = accounts.iter().count();
        Self {
            accounts,
            volumes,
            journal,
            pieces,
            state: RefCell::new(state),
            locks: RefCell::default(),
            clock,
            run: uuid::Uuid::new_v4().as_u64_pair().0,
            requests: Cell::default(),
            ending: Arc::default(),
            received: Rooms::new(count),
            sent: Rooms::new(count),
        }
    }

    /// Returns whether the disk has no space for records.
    #[must_use]
    pub(crate) fn is_full(&self) -> bool {
        self.journal.is_full()
    }

    /// Returns whether the memory for responses is short.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.sent.is_short()
    }

    /// Tells the audit of a request that was refused, if that was about access.
    pub(crate) fn tell_refused(&self, head: &Head, fault: &Fault) {
        if fault.is_of_access() {
            // Without the query, which may have a signature.
            let what = format!("{} {}", head.method, head.path);
            let signed = if head.is_signed() { "" } else { ", no signature" };
            let why = format!("{}{signed}", fault.reason());
            self.audit().refuse(FrontEnd::Blob, &head.from, &what, &why);
        }
    }

    /// Returns the receiver of refused requests.
    pub(crate) fn audit(&self) -> &Audit {
        self.volumes.audit()
    }

    /// Returns a unique request id.
    #[must_use]
    pub(crate) fn request_id(&self) -> String {
        let count = self.requests.get() + 1;
        self.requests.set(count);
        uuid::Uuid::from_u64_pair(self.run, count).to_string()
    }

    /// Returns whether an account exists.
    #[must_use]
    pub(crate) fn is_account(&self, name: &str) -> bool {
        self.accounts.get(name).is_some()
    }

    /// Returns the properties of an account's service.
    #[must_use]
    pub(crate) fn properties_of(&self, account: &str) -> Properties {
        self.state.borrow().properties(account)
    }

    /// Reserves memory for the body of a request.
    pub(super) async fn room_for(&self, head: &Head, most: usize) -> Result<Room> {
        let len = head.number("content-length")?.unwrap_or(most as u64).min(most as u64);
        self.received.reserve(&head.target.account, head.from, len).await
    }

    /// Receives a document.
    pub(super) async fn document(&self, head: &Head, body: &mut Body) -> Result<Bytes> {
        let _room = self.room_for(head, MAX_DOCUMENT).await?;
        body.all(MAX_DOCUMENT).await
    }

    pub(super) async fn commit(&self, changes: Vec<Change>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        self.journal.commit(changes).await.map_err(Fault::internal)
    }

    /// Returns the lock of a blob.
    pub(super) fn lock(&self, names: Names<'_>) -> Rc<RwLock<()>> {
        /// Unused locks are dropped beyond this number.
        const MANY: usize = 1024;
        let mut locks = self.locks.borrow_mut();
        if locks.len() > MANY {
            locks.retain(|_, lock| Rc::strong_count(lock) > 1);
        }
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        Rc::clone(locks.entry(hasher.finish()).or_default())
    }

    /// Returns a unique time.
    pub(super) fn next(&self) -> Moment {
        self.state.borrow_mut().next((self.clock)())
    }

    /// Stores a blob's record.
    pub(super) async fn keep(&self, names: Names<'_>, snapshot: Option<Moment>) -> Result<()> {
        let change = {
            let state = self.state.borrow();
            Change::put(names.key(snapshot), &**state.blob(names, snapshot)?)
        };
        self.commit(vec![change]).await
    }

    /// Puts a blob in place of an existing one, and deletes the latter's bytes.
    pub(super) async fn replace(&self, names: Names<'_>, mut blob: Blob) -> Result<()> {
        let old: Option<PageContent> =
            self.state.borrow().blob(names, None).ok().and_then(|old| old.page().cloned());
        let taken_over = match (&mut blob.content, &old) {
            (Content::Page(new), Some(old)) => {
                let name = old.exported_as().to_owned();
                new.export = Some(name.clone()).filter(|name| *name != new.volume);
                Some((old.volume.clone(), new.volume.clone(), name))
            }
            _ => None,
        };
        let change = Change::put(names.key(None), &blob);
        self.tell_export(&blob, (self.clock)());
        if let Some((old, new, name)) = taken_over.filter(|(old, new, _)| old != new) {
            self.volumes.hide(&old)?;
            self.volumes.export_as(&new, &name);
        }
        let old = {
            let mut state = self.state.borrow_mut();
            let held = state.container_mut(names.account, names.container)?;
            held.blobs.insert(base(names.blob), Rc::new(blob))
        };
        self.commit(vec![change]).await?;
        if let Some(old) = old {
            self.forget_bytes(&old).await?;
        }
        Ok(())
    }

    /// Deletes the bytes of removed records. A failure does not affect the others, and is made up
    /// for at the next start.
    pub(super) async fn forget_all(&self, gone: &[Rc<Blob>]) -> Result<()> {
        let mut result = Ok(());
        for blob in gone {
            result = result.and(self.forget_bytes(blob).await);
        }
        result
    }

    /// Deletes the bytes of a removed record, unless another record uses them.
    pub(super) async fn forget_bytes(&self, blob: &Blob) -> Result<()> {
        blob.pieces().for_each(|piece| self.pieces.forget(piece));
        let Some(page) = blob.page() else { return Ok(()) };
        if !self.state.borrow().names_volume(&page.volume) {
            return self.volumes.delete(&page.volume).await;
        }
        match page.snapshot {
            Some(id) => self.delete_snapshot(&page.volume, id).await,
            // Only snapshots use the volume now, so it must not be writable.
            None if !self.state.borrow().has_blob_in(&page.volume) => {
                self.volumes.hide(&page.volume)
            }
            None => Ok(()),
        }
    }

    /// Deletes a snapshot of a volume. Its space is reclaimed in the background.
    pub(super) async fn delete_snapshot(&self, volume: &str, id: u64) -> Result<()> {
        let open = self.volumes.open(volume)?;
        let pages = open.pages.clone();
        let gone = tokio::task::spawn_blocking(move || {
            pages.delete_snapshot(SnapshotId(id))?;
            Ok::<_, weir_store::StoreError>(pages)
        });
        let pages = gone.await.map_err(Fault::internal)?.map_err(Fault::internal)?;
        // Not awaited. Work that is cut short continues after the next deletion.
        let ending = Arc::clone(&self.ending);
        let goes_on = move || !ending.load(Ordering::Relaxed);
        tokio::task::spawn_blocking(move || while goes_on() && pages.tidy().unwrap_or(false) {});
        Ok(())
    }

    /// Updates the ETag if a client of the blob's export may have written.
    pub(super) fn hear_export(&self, names: Names<'_>) {
        let volume = {
            let state = self.state.borrow();
            let page = state.blob(names, None).ok().and_then(|blob| blob.page());
            page.and_then(|page| self.volumes.open(&page.volume).ok())
        };
        if volume.is_some_and(|volume| volume.pages.seat().has_written()) {
            self.touch(names);
        }
    }

    /// Gives a blob whose pages change a new ETag.
    pub(super) fn touch(&self, names: Names<'_>) {
        let at = self.next();
        let mut state = self.state.borrow_mut();
        let Ok(blob) = state.blob_mut(names, None) else { return };
        blob.etag.0 = at.0;
        blob.modified = at;
        blob.lease.end_unless_held(at);
        if let Content::Page(page) = &mut blob.content {
            page.unclean = true;
        }
    }

    /// Checks the lease and the conditions of a change to a blob.
    pub(super) fn check_change(&self, head: &Head, names: Names<'_>) -> Result<()> {
        self.hear_export(names);
        let conditions = Conditions::parse(head, Subject::Target)?;
        let state = self.state.borrow();
        let blob = state.blob(names, None)?;
        if blob.is_pending() {
            return Err(Code::PendingCopyOperation.into());
        }
        conditions.check_write(blob.state())?;
        self.check_lease(head, blob)
    }

    /// Returns the lease of a blob, or of the client that writes to its export.
    pub(super) fn lease<'a>(&self, blob: &'a Blob) -> Cow<'a, Lease> {
        let volume = blob.page().and_then(|page| self.volumes.open(&page.volume).ok());
        match volume {
            Some(volume) if volume.pages.seat().is_taken() => Cow::Owned(Lease::of_export()),
            _ => Cow::Borrowed(&blob.lease),
        }
    }

    /// Checks the lease of a blob that a request changes.
    pub(super) fn check_lease(&self, head: &Head, blob: &Blob) -> Result<()> {
        self.lease(blob).check_write(Leased::Blob, head.header("x-ms-lease-id"), head.now)
    }

    /// Passes the end of a blob's lease to its export. Returns whether the export accepted it.
    pub(super) fn tell_export(&self, blob: &Blob, now: Moment) -> bool {
        let Some(page) = blob.page() else { return true };
        let leased = blob.lease.held_until(now).map_or(0, |until| until.0);
        let until = if blob.is_pending() { u64::MAX } else { leased };
        self.volumes.open(&page.volume).map_or(true, |volume| volume.pages.seat().lease(until))
    }

    /// Changes a blob's record, with a new ETag, and stores it.
    pub(super) async fn change(
        &self,
        names: Names<'_>,
        change: impl FnOnce(&mut Blob) -> Result<()>,
    ) -> Result<Reply> {
        let at = self.next();
        {
            let mut state = self.state.borrow_mut();
            let blob = state.blob_mut(names, None)?;
            change(blob)?;
            blob.etag.0 = at.0;
            blob.modified = at;
            blob.lease.end_unless_held(at);
        }
        self.keep(names, None).await?;
        self.stamped(Reply::new(200), names)
    }

    /// Adds the current ETag and time of a blob to a response.
    pub(super) fn stamped(&self, reply: Reply, names: Names<'_>) -> Result<Reply> {
        let state = self.state.borrow();
        Ok(stamp(reply, state.blob(names, None)?))
    }
}

/// Adds a blob's ETag and time to a response.
pub(super) fn stamp(reply: Reply, blob: &Blob) -> Reply {
    reply.with("etag", blob.etag.quoted()).with("last-modified", blob.modified.http())
}

/// Returns the names of the request's blob.
pub(super) fn names(head: &Head) -> Result<Names<'_>> {
    let account = &head.target.account;
    Ok(Names { account, container: head.container()?, blob: head.blob()? })
}

/// Parses the metadata headers of a request, whose names are identifiers of C#.
pub(super) fn parse_metadata(head: &Head) -> Result<Metadata> {
    /// Limit of the bytes of all names and values.
    const MOST: usize = 8 << 10;
    let mut metadata = Metadata::new();
    let mut size = 0;
    for (header, value) in &head.headers {
        let Some(name) = header.as_str().strip_prefix("x-ms-meta-") else { continue };
        if name.is_empty() {
            return Err(Code::EmptyMetadataKey.into());
        }
        let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !first || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(Code::InvalidMetadata.into());
        }
        let value = std::str::from_utf8(value.as_bytes()).map_err(|_| Code::InvalidMetadata)?;
        size += name.len() + value.len();
        metadata.insert(name.to_owned(), value.to_owned());
    }
    if size > MOST { Err(Code::MetadataTooLarge.into()) } else { Ok(metadata) }
}

/// Returns a random id.
pub(super) fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
