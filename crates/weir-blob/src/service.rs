//! The operations of the service.
//!
//! All of them run on one thread, so code between two awaits is atomic. Each blob has a lock.
//! Changes of a record and operations with conditions hold it exclusively; plain page writes share
//! it. A condition that was met thus remains met until the write is done.
//!
//! | module | holds |
//! |---|---|
//! | [`properties`] | the properties of a service, including CORS |
//! | `account` | operations on an account |
//! | `container` | containers |
//! | `list` | lists of containers and blobs |
//! | `blob` | operations on blobs of all types |
//! | `read` | reading of blobs |
//! | `page` | page blobs |
//! | `block` | block and append blobs |
//! | `copy` | copies |

mod account;
mod blob;
mod block;
mod container;
mod copy;
mod list;
mod page;
pub mod properties;
mod read;

use block::From;

use crate::auth::account::Accounts;
use crate::auth::{Caller, authenticate};
use crate::body::{Body, Reply};
use crate::condition::{Conditions, Subject};
use crate::fault::{Code, Fault, Result};
use crate::head::{Head, check_blob_name, check_container_name};
use crate::journal::{Change, Journal};
use crate::lease::{Lease, Leased};
use crate::operation::Operation;
use crate::pieces::Pieces;
use crate::record::{Blob, Content, CopyStatus, Key, Metadata, PageContent};
use crate::state::{Names, State, base};
use crate::time::Moment;
use crate::volumes::Volumes;
use http::HeaderValue;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{RwLock, Semaphore, SemaphorePermit};
use weir_store::SnapshotId;

/// Limit of request bytes in memory. Further requests wait.
const BUDGET_KIB: usize = 256 << 10;
/// Maximum size of an XML document in a request.
const MAX_DOCUMENT: usize = 8 << 20;

/// The blob service.
#[derive(Debug)]
pub struct Service {
    accounts: Accounts,
    volumes: Volumes,
    journal: Journal,
    pieces: Pieces,
    state: RefCell<State>,
    /// By hash of the names. Blobs with equal hashes share a lock.
    locks: RefCell<HashMap<u64, Rc<RwLock<()>>>>,
    clock: fn() -> Moment,
    /// Distinguishes the request ids of this run from those of others; a counter follows.
    run: u64,
    requests: Cell<u64>,
    /// Set at shutdown, to end long operations.
    ending: Arc<AtomicBool>,
    /// Remaining budget of request bytes in memory, in KiB.
    budget: Semaphore,
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
            budget: Semaphore::new(BUDGET_KIB),
        }
    }

    /// Returns a unique request id.
    #[must_use]
    pub(crate) fn request_id(&self) -> String {
        let count = self.requests.get() + 1;
        self.requests.set(count);
        uuid::Uuid::from_u64_pair(self.run, count).to_string()
    }

    /// Recovers from a crash: deletes volumes without a blob, and gives blobs whose pages were
    /// written without a record a new ETag.
    ///
    /// # Errors
    ///
    /// The journal or the server failed.
    pub async fn recover(&self) -> Result<()> {
        let named = self.state.borrow().volumes();
        for volume in self.volumes.all().iter().filter(|volume| !named.contains(*volume)) {
            self.volumes.delete(volume).await?;
        }
        let now = (self.clock)();
        let mut changes = vec![Change::put(Key::Running, &true)];
        {
            let mut state = self.state.borrow_mut();
            let crashed = state.crashed;
            let mut at = state.next(now);
            for (names, snapshot, blob) in state.all_mut() {
                if snapshot.is_none() {
                    self.tell_export(blob, now);
                }
                if self.recover_blob(blob, snapshot, crashed, &mut at) {
                    changes.push(Change::put(names.key(snapshot), blob));
                }
            }
            state.next(at);
        }
        self.commit(changes).await?;
        for volume in self.volumes.all() {
            self.forget_snapshots(&volume).await?;
        }
        self.name_exports()
    }

    /// Exports the volumes of blobs under their names, and hides those that only snapshots use.
    fn name_exports(&self) -> Result<()> {
        let named: HashMap<String, Option<String>> = {
            let mut state = self.state.borrow_mut();
            let base = state.all_mut().filter(|(_, snapshot, _)| snapshot.is_none());
            let pages = base.filter_map(|(_, _, blob)| blob.page().cloned());
            pages.map(|page| (page.volume, page.export)).collect()
        };
        for volume in self.volumes.all().iter().filter(|volume| !named.contains_key(*volume)) {
            self.volumes.hide(volume)?;
        }
        for (volume, export) in named {
            if let Some(export) = export {
                self.volumes.export_as(&volume, &export);
            }
        }
        Ok(())
    }

    /// Returns whether the record was out of date.
    fn recover_blob(
        &self,
        blob: &mut Blob,
        snapshot: Option<Moment>,
        crashed: bool,
        at: &mut Moment,
    ) -> bool {
        let mut changed = blob.is_pending();
        if let (true, Some(copy)) = (changed, &mut blob.copy) {
            copy.status = CopyStatus::Failed;
            copy.description = Some("the server stopped during the copy".to_owned());
        }
        if let (Content::Page(page), None) = (&mut blob.content, snapshot) {
            // The size in the volume is current, except that an empty blob has the smallest size.
            let size = self.volumes.size(&page.volume).unwrap_or(page.size);
            let is_empty = page.size == 0 && size == 512;
            // Writes before a crash are in no record.
            if changed || crashed || (size != page.size && !is_empty) {
                page.size = if is_empty { 0 } else { size };
                *at = at.next(*at);
                blob.etag.0 = at.0;
                blob.modified = *at;
                changed = true;
            }
        }
        changed
    }

    /// Deletes snapshots of a volume without a record, which a crash between the two leaves.
    async fn forget_snapshots(&self, volume: &str) -> Result<()> {
        let open = self.volumes.open(volume)?;
        let mut named: Vec<u64> = Vec::new();
        for (_, _, blob) in self.state.borrow_mut().all_mut() {
            let page = blob.page().filter(|page| page.volume == volume);
            named.extend(page.and_then(|page| page.snapshot));
        }
        for id in open.pages.snapshots() {
            if !named.contains(&id.0) {
                self.delete_snapshot(volume, id.0).await?;
            }
        }
        Ok(())
    }

    /// Stores the state that is only in memory, at shutdown.
    ///
    /// # Errors
    ///
    /// The journal failed.
    pub async fn close(&self) -> Result<()> {
        self.ending.store(true, Ordering::Relaxed);
        let all: Vec<[String; 3]> = {
            let mut state = self.state.borrow_mut();
            let own = state
                .all_mut()
                .filter(|(_, snapshot, blob)| snapshot.is_none() && blob.page().is_some());
            own.map(|(names, ..)| names.owned()).collect()
        };
        let (mut changes, mut quiet) = (Vec::new(), true);
        for [account, container, blob] in &all {
            let names = Names { account, container, blob };
            self.hear_export(names);
            // A client that still writes would change the ETag again.
            quiet &= self.lock(names).try_write().is_ok();
            let mut state = self.state.borrow_mut();
            let Ok(blob) = state.blob_mut(names, None) else { continue };
            if let Content::Page(page @ PageContent { unclean: true, .. }) = &mut blob.content {
                page.unclean = false;
                changes.push(Change::put(names.key(None), blob));
            }
        }
        if quiet {
            changes.push(Change::remove(Key::Running));
        }
        self.commit(changes).await
    }

    /// Updates the ETag if a client of the blob's export may have written.
    fn hear_export(&self, names: Names<'_>) {
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
    fn touch(&self, names: Names<'_>) {
        let at = self.next();
        let mut state = self.state.borrow_mut();
        let Ok(blob) = state.blob_mut(names, None) else { return };
        blob.etag.0 = at.0;
        blob.modified = at;
        if let Content::Page(page) = &mut blob.content {
            page.unclean = true;
        }
    }

    /// Returns whether an account exists.
    #[must_use]
    pub(crate) fn is_account(&self, name: &str) -> bool {
        self.accounts.get(name).is_some()
    }

    /// Returns the properties of an account's service.
    #[must_use]
    pub(crate) fn properties_of(&self, account: &str) -> properties::Properties {
        self.state.borrow().properties(account)
    }

    /// Executes a request.
    ///
    /// # Errors
    ///
    /// The error response.
    pub async fn answer(self: &Rc<Self>, head: &Head, body: &mut Body) -> Result<Reply> {
        let (operation, caller, only_new) = self.admit(head)?;
        let own;
        let head = if only_new {
            // Permission to create only must not replace a blob that another request creates
            // meanwhile.
            let mut asked = head.clone();
            asked.headers.insert(http::header::IF_NONE_MATCH, HeaderValue::from_static("*"));
            own = asked;
            &own
        } else {
            head
        };
        match operation {
            Operation::ListContainers => self.list_containers(head),
            Operation::GetServiceProperties => Ok(self.get_properties(head)),
            Operation::SetServiceProperties => self.set_properties(head, body).await,
            Operation::GetServiceStats => Err(Fault::not_implemented("Get Blob Service Stats")),
            Operation::GetAccountInfo => Ok(account::info()),
            Operation::FindBlobs => self.find_blobs(head),
            Operation::CreateContainer => self.create_container(head).await,
            Operation::GetContainerProperties => self.get_container(head),
            Operation::SetContainerMetadata => self.set_container_metadata(head).await,
            Operation::GetContainerAcl => self.get_acl(head),
            Operation::SetContainerAcl => self.set_acl(head, body).await,
            Operation::LeaseContainer => self.lease_container(head).await,
            Operation::DeleteContainer => self.delete_container(head).await,
            Operation::ListBlobs => self.list_blobs(head),
            Operation::PutBlob => self.put_blob(head, body).await,
            Operation::PutBlobFromUrl => self.copy_blob(head, &caller, copy::How::AtOnce).await,
            Operation::GetBlob => self.get_blob(head).await,
            Operation::GetBlobProperties => self.get_blob_properties(head),
            Operation::SetBlobProperties => self.set_blob_properties(head).await,
            Operation::SetBlobMetadata => self.set_blob_metadata(head).await,
            Operation::GetTags => self.get_tags(head),
            Operation::SetTags => self.set_tags(head, body).await,
            Operation::LeaseBlob => self.lease_blob(head).await,
            Operation::SnapshotBlob => self.snapshot_blob(head).await,
            Operation::CopyBlob => self.copy_blob(head, &caller, copy::How::InTime).await,
            Operation::AbortCopy => self.abort_copy(head).await,
            Operation::DeleteBlob => self.delete_blob(head).await,
            Operation::SetTier => self.set_tier(head).await,
            Operation::PutPage => self.put_page(head, body).await,
            Operation::PutPageFromUrl => self.put_page_from_url(head, &caller).await,
            Operation::GetPageRanges => self.get_page_ranges(head),
            Operation::IncrementalCopy => self.incremental_copy(head, &caller).await,
            Operation::PutBlock => self.put_block(head, From::Body(body)).await,
            Operation::PutBlockFromUrl => self.put_block(head, From::Url(&caller)).await,
            Operation::PutBlockList => self.put_block_list(head, body).await,
            Operation::GetBlockList => self.get_block_list(head),
            Operation::AppendBlock => self.append_block(head, From::Body(body)).await,
            Operation::AppendBlockFromUrl => self.append_block(head, From::Url(&caller)).await,
        }
    }

    /// Authenticates and authorises a request.
    fn admit(&self, head: &Head) -> Result<(Operation, Caller, bool)> {
        let state = self.state.borrow();
        let caller = authenticate(head, &self.accounts, &state.policies)?;
        if caller == Caller::Anonymous && !self.is_account(&head.target.account) {
            return Err(Code::NoAuthenticationInformation.into());
        }
        let operation = Operation::parse(head);
        let operation = match (operation, &caller) {
            (Ok(operation), _) => operation,
            // Without a signature, the response must not show what exists.
            (Err(_), Caller::Anonymous) => return Err(Code::NoAuthenticationInformation.into()),
            (Err(fault), _) => return Err(fault),
        };
        let container = head.target.container.as_deref();
        let container = container.and_then(|name| state.container(&head.target.account, name).ok());
        let blob = head.target.blob.as_deref();
        let there = container.zip(blob).map(|(c, name)| c.blobs.contains_key(&base(name)));
        let public = container.map(|held| held.record.public);
        operation.authorize(&caller, public, there == Some(false))?;
        let only_new = operation.makes() && operation.authorize(&caller, public, false).is_err();
        if head.param("versionid").is_some() {
            return Err(Fault::not_implemented("versions of blobs"));
        }
        if head.param("snapshot").is_some() && !operation.takes_snapshot() {
            let value = head.param("snapshot").unwrap_or_default();
            return Err(Fault::query("snapshot", value, "snapshots are read-only"));
        }
        if let Some(name) = &head.target.container {
            check_container_name(name)?;
        }
        if let Some(name) = &head.target.blob {
            check_blob_name(name)?;
        }
        Ok((operation, caller, only_new))
    }

    /// Reserves memory for the body of a request.
    async fn room_for(&self, head: &Head, most: usize) -> Result<SemaphorePermit<'_>> {
        let len = head.number("content-length")?.unwrap_or(most as u64).min(most as u64);
        let kib = u32::try_from(len.div_ceil(1024)).unwrap_or(u32::MAX);
        self.budget.acquire_many(kib).await.map_err(Fault::internal)
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        self.journal.commit(changes).await.map_err(Fault::internal)
    }

    /// Returns the lock of a blob.
    fn lock(&self, names: Names<'_>) -> Rc<RwLock<()>> {
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
    fn next(&self) -> Moment {
        self.state.borrow_mut().next((self.clock)())
    }

    /// Stores a blob's record.
    async fn keep(&self, names: Names<'_>, snapshot: Option<Moment>) -> Result<()> {
        let change = {
            let state = self.state.borrow();
            Change::put(names.key(snapshot), &**state.blob(names, snapshot)?)
        };
        self.commit(vec![change]).await
    }

    /// Puts a blob in place of an existing one, and deletes the latter's bytes.
    async fn replace(&self, names: Names<'_>, mut blob: Blob) -> Result<()> {
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
    async fn forget_all(&self, gone: &[Rc<Blob>]) -> Result<()> {
        let mut result = Ok(());
        for blob in gone {
            result = result.and(self.forget_bytes(blob).await);
        }
        result
    }

    /// Deletes the bytes of a removed record, unless another record uses them.
    async fn forget_bytes(&self, blob: &Blob) -> Result<()> {
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
    async fn delete_snapshot(&self, volume: &str, id: u64) -> Result<()> {
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

    /// Checks the lease and the conditions of a change to a blob.
    fn check_change(&self, head: &Head, names: Names<'_>) -> Result<()> {
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
    fn lease<'a>(&self, blob: &'a Blob) -> Cow<'a, Lease> {
        let volume = blob.page().and_then(|page| self.volumes.open(&page.volume).ok());
        match volume {
            Some(volume) if volume.pages.seat().is_taken() => Cow::Owned(Lease::of_export()),
            _ => Cow::Borrowed(&blob.lease),
        }
    }

    /// Checks the lease of a blob that a request changes.
    fn check_lease(&self, head: &Head, blob: &Blob) -> Result<()> {
        self.lease(blob).check_write(Leased::Blob, head.header("x-ms-lease-id"), head.now)
    }

    /// Passes the end of a blob's lease to its export. Returns whether the export accepted it.
    fn tell_export(&self, blob: &Blob, now: Moment) -> bool {
        let Some(page) = blob.page() else { return true };
        let leased = blob.lease.held_until(now).map_or(0, |until| until.0);
        let until = if blob.is_pending() { u64::MAX } else { leased };
        self.volumes.open(&page.volume).map_or(true, |volume| volume.pages.seat().lease(until))
    }

    /// Changes a blob's record, with a new ETag, and stores it.
    async fn change(
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
        }
        self.keep(names, None).await?;
        self.stamped(Reply::new(200), names)
    }

    /// Adds the current ETag and time of a blob to a response.
    fn stamped(&self, reply: Reply, names: Names<'_>) -> Result<Reply> {
        let state = self.state.borrow();
        Ok(stamp(reply, state.blob(names, None)?))
    }
}

/// Adds a blob's ETag and time to a response.
fn stamp(reply: Reply, blob: &Blob) -> Reply {
    reply.with("etag", blob.etag.quoted()).with("last-modified", blob.modified.http())
}

/// Returns the names of the request's blob.
fn names(head: &Head) -> Result<Names<'_>> {
    let account = &head.target.account;
    Ok(Names { account, container: head.container()?, blob: head.blob()? })
}

/// Runs all parsers of operations on a request, and returns the errors.
pub(crate) fn read_parts(head: &Head, body: &[u8]) -> Vec<Fault> {
    let refused = [
        read::request_range(head, 1 << 40).err(),
        page::check_sequence(head, 7).err(),
        blob::parse_tags(head).err(),
        parse_metadata(head).err(),
        container::parse_public(head).err(),
        container::parse_policies(body).err(),
        block::parse_block_list(body).err(),
        list::max_results(head).err(),
        list::read_marker(head).err(),
    ];
    refused.into_iter().flatten().collect()
}

/// Parses the metadata headers of a request.
fn parse_metadata(head: &Head) -> Result<Metadata> {
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
        if !first || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
            return Err(Code::InvalidMetadata.into());
        }
        let value = std::str::from_utf8(value.as_bytes()).map_err(|_| Code::InvalidMetadata)?;
        size += name.len() + value.len();
        metadata.insert(name.to_owned(), value.to_owned());
    }
    if size > MOST { Err(Code::MetadataTooLarge.into()) } else { Ok(metadata) }
}

/// Returns a random id.
fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Returns the key of an uncommitted block.
fn uncommitted_key(names: Names<'_>, id: &str) -> Key {
    let [account, container, blob] = names.owned();
    Key::Uncommitted(account, container, blob, id.to_owned())
}
