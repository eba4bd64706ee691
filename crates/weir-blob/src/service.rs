//! The operations.
//!
//! All of them run on one thread, so what happens between two waits happens at once. A
//! blob has a lock: what changes its record or has conditions has it alone, plain writes of
//! pages share it, so that a condition that was met is still met when the write is done.
//!
//! | module | holds |
//! |---|---|
//! | [`properties`] | the properties of a service, CORS among them |
//! | `account` | what is about all of an account |
//! | `container` | containers |
//! | `list` | lists of containers and blobs |
//! | `blob` | what all kinds of blobs have |
//! | `read` | giving out bytes |
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
use crate::condition::{Conditions, Of};
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

/// Bytes of requests that are in memory at once; who comes with more waits.
const BUDGET_KIB: usize = 256 << 10;
/// Largest document that a client may send.
const MAX_DOCUMENT: usize = 8 << 20;

/// The service of blobs.
#[derive(Debug)]
pub struct Service {
    accounts: Accounts,
    volumes: Volumes,
    journal: Journal,
    pieces: Pieces,
    state: RefCell<State>,
    /// By a hash of the names: two blobs that share one only wait for each other.
    locks: RefCell<HashMap<u64, Rc<RwLock<()>>>>,
    clock: fn() -> Moment,
    /// What tells the requests of this run from others, and how many there were.
    run: u64,
    requests: Cell<u64>,
    /// It ends: what may take long does not go on.
    ending: Arc<AtomicBool>,
    /// Bytes of requests that may be in memory, in KiB.
    budget: Semaphore,
}

impl Service {
    /// The service of what `records` remember.
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

    /// An id for a request.
    #[must_use]
    pub fn request_id(&self) -> String {
        let count = self.requests.get() + 1;
        self.requests.set(count);
        uuid::Uuid::from_u64_pair(self.run, count).to_string()
    }

    /// Puts in order what a crash may have left: volumes of no blob go, and blobs whose
    /// pages were written without a record of that get a new state.
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

    /// Exports the volumes of blobs as these are called, and those that only snapshots have
    /// not at all.
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

    /// Whether it was not as its record says.
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
            copy.description = Some("the server ended in the middle of it".to_owned());
        }
        if let (Content::Page(page), None) = (&mut blob.content, snapshot) {
            // The volume knows its size; one of nothing has the smallest there is.
            let size = self.volumes.size(&page.volume).unwrap_or(page.size);
            let is_empty = page.size == 0 && size == 512;
            // What was written before a crash is in no record.
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

    /// Snapshots of a volume that no record names go: a crash came between the two.
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

    /// The server ends: what only memory knows of blobs is put into the journal.
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
            // Whoever still writes makes it another's once more.
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

    /// A client of a blob's export may have written: the blob is in another state then.
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

    /// A blob's pages change, or have changed: it is in another state.
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

    /// Whether there is such an account.
    #[must_use]
    pub fn is_account(&self, name: &str) -> bool {
        self.accounts.get(name).is_some()
    }

    /// The properties of an account's service.
    #[must_use]
    pub fn properties_of(&self, account: &str) -> properties::Properties {
        self.state.borrow().properties(account)
    }

    /// Does what a request asks for.
    ///
    /// # Errors
    ///
    /// The refusal to send.
    pub async fn answer(self: &Rc<Self>, head: &Head, body: &mut Body) -> Result<Reply> {
        let (operation, caller, only_new) = self.admit(head)?;
        let own;
        let head = if only_new {
            // Who may only create asks for a new one, whatever comes meanwhile.
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

    /// Who asks for what, if that may be.
    fn admit(&self, head: &Head) -> Result<(Operation, Caller, bool)> {
        let state = self.state.borrow();
        let caller = authenticate(head, &self.accounts, &state.policies)?;
        if caller == Caller::Anonymous && !self.is_account(&head.target.account) {
            return Err(Code::NoAuthenticationInformation.into());
        }
        let operation = Operation::of(head);
        let operation = match (operation, &caller) {
            (Ok(operation), _) => operation,
            // Whoever gave no signature does not learn what there is.
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
            return Err(Fault::query("snapshot", value, "a snapshot is not changed"));
        }
        if let Some(name) = &head.target.container {
            check_container_name(name)?;
        }
        if let Some(name) = &head.target.blob {
            check_blob_name(name)?;
        }
        Ok((operation, caller, only_new))
    }

    /// Room in memory for the body of a request.
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

    /// The lock of a blob.
    fn lock(&self, names: Names<'_>) -> Rc<RwLock<()>> {
        /// Those that nobody holds are forgotten beyond this number.
        const MANY: usize = 1024;
        let mut locks = self.locks.borrow_mut();
        if locks.len() > MANY {
            locks.retain(|_, lock| Rc::strong_count(lock) > 1);
        }
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        Rc::clone(locks.entry(hasher.finish()).or_default())
    }

    /// A moment that no other change has.
    fn next(&self) -> Moment {
        self.state.borrow_mut().next((self.clock)())
    }

    /// Keeps a blob's record as it is in memory.
    async fn keep(&self, names: Names<'_>, snapshot: Option<Moment>) -> Result<()> {
        let change = {
            let state = self.state.borrow();
            Change::put(names.key(snapshot), &**state.blob(names, snapshot)?)
        };
        self.commit(vec![change]).await
    }

    /// Puts a blob in the place of what was there, and forgets the bytes of that.
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

    /// Records went: so do their bytes. One that cannot go now is found at the next start, and
    /// keeps none of the others.
    async fn forget_all(&self, gone: &[Rc<Blob>]) -> Result<()> {
        let mut result = Ok(());
        for blob in gone {
            result = result.and(self.forget_bytes(blob).await);
        }
        result
    }

    /// A record went: so do its bytes, if no other has them.
    async fn forget_bytes(&self, blob: &Blob) -> Result<()> {
        blob.pieces().for_each(|piece| self.pieces.forget(piece));
        let Some(page) = blob.page() else { return Ok(()) };
        if !self.state.borrow().names_volume(&page.volume) {
            return self.volumes.delete(&page.volume).await;
        }
        match page.snapshot {
            Some(id) => self.delete_snapshot(&page.volume, id).await,
            // Snapshots have it; nobody is to write to it any more.
            None if !self.state.borrow().has_blob_in(&page.volume) => {
                self.volumes.hide(&page.volume)
            }
            None => Ok(()),
        }
    }

    /// Deletes a snapshot of a volume; its space comes back in time.
    async fn delete_snapshot(&self, volume: &str, id: u64) -> Result<()> {
        let open = self.volumes.open(volume)?;
        let pages = open.pages.clone();
        let gone = tokio::task::spawn_blocking(move || {
            pages.delete_snapshot(SnapshotId(id))?;
            Ok::<_, weir_store::StoreError>(pages)
        });
        let pages = gone.await.map_err(Fault::internal)?.map_err(Fault::internal)?;
        // Nobody waits for it; what it does not come to is done after the next deletion.
        let ending = Arc::clone(&self.ending);
        let goes_on = move || !ending.load(Ordering::Relaxed);
        tokio::task::spawn_blocking(move || while goes_on() && pages.tidy().unwrap_or(false) {});
        Ok(())
    }

    /// Checks what a change of a blob must fulfil: its lease, and its conditions.
    fn check_change(&self, head: &Head, names: Names<'_>) -> Result<()> {
        self.hear_export(names);
        let conditions = Conditions::parse(head, Of::Itself)?;
        let state = self.state.borrow();
        let blob = state.blob(names, None)?;
        if blob.is_pending() {
            return Err(Code::PendingCopyOperation.into());
        }
        conditions.check_write(blob.state())?;
        self.check_lease(head, blob)
    }

    /// The lease of a blob: that of a client of its export, if one writes.
    fn lease<'a>(&self, blob: &'a Blob) -> Cow<'a, Lease> {
        let volume = blob.page().and_then(|page| self.volumes.open(&page.volume).ok());
        match volume {
            Some(volume) if volume.pages.seat().is_taken() => Cow::Owned(Lease::of_export()),
            _ => Cow::Borrowed(&blob.lease),
        }
    }

    /// Whether a request may change a blob that is leased, or not.
    fn check_lease(&self, head: &Head, blob: &Blob) -> Result<()> {
        self.lease(blob).check_write(Leased::Blob, head.header("x-ms-lease-id"), head.now)
    }

    /// Lets clients of a blob's export know how its lease stands; whether they leave it.
    fn tell_export(&self, blob: &Blob, now: Moment) -> bool {
        let Some(page) = blob.page() else { return true };
        let leased = blob.lease.held_until(now).map_or(0, |until| until.0);
        let until = if blob.is_pending() { u64::MAX } else { leased };
        self.volumes.open(&page.volume).map_or(true, |volume| volume.pages.seat().lease(until))
    }

    /// Changes a blob's record, which gets a new state, and keeps that.
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

    /// With a blob's state.
    fn stamped(&self, reply: Reply, names: Names<'_>) -> Result<Reply> {
        let state = self.state.borrow();
        Ok(stamp(reply, state.blob(names, None)?))
    }
}

/// With a blob's state.
fn stamp(reply: Reply, blob: &Blob) -> Reply {
    reply.with("etag", blob.etag.quoted()).with("last-modified", blob.modified.http())
}

/// The names of the blob that a request is about.
fn names(head: &Head) -> Result<Names<'_>> {
    let account = &head.target.account;
    Ok(Names { account, container: head.container()?, blob: head.blob()? })
}

/// Reads whatever an operation may read of a request, and returns the refusals.
pub(crate) fn read_parts(head: &Head, body: &[u8]) -> Vec<Fault> {
    let refused = [
        read::range_of(head, 1 << 40).err(),
        page::check_sequence(head, 7).err(),
        blob::tags_of(head).err(),
        metadata_of(head).err(),
        container::public_of(head).err(),
        container::policies_of(body).err(),
        block::wanted_of(body).err(),
        list::max_results(head).err(),
        list::read_marker(head).err(),
    ];
    refused.into_iter().flatten().collect()
}

/// The metadata that a request gives.
fn metadata_of(head: &Head) -> Result<Metadata> {
    /// Bytes of all names and values.
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

/// A new id.
fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The key of a block that is in no blob yet.
fn uncommitted_key(names: Names<'_>, id: &str) -> Key {
    let [account, container, blob] = names.owned();
    Key::Uncommitted(account, container, blob, id.to_owned())
}
