//! Copies within the service.

use super::blob;
use super::read::PART;
use super::shared::{Service, names, new_id, parse_metadata, stamp};
use crate::auth::{Caller, authenticate};
use crate::body::Reply;
use crate::condition::{Conditions, Etag, Subject};
use crate::digest::Check;
use crate::fault::{Code, Fault, Result};
use crate::head::{Head, parse_query, parse_target};
use crate::operation::Operation;
use crate::record::{ARCHIVE, Blob, Content, Copied, CopyStatus, PageContent};
use crate::state::Names;
use crate::time::Moment;
use http::{HeaderMap, Method, StatusCode};
use std::rc::Rc;
use weir_store::SnapshotId;

/// Copies up to this size complete before the response.
const AT_ONCE: u64 = 16 << 20;

/// The time at which a copy completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Before the response.
    AtOnce,
    /// In the background, for large copies.
    InTime,
}

/// The source of a copy.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) names: [String; 3],
    pub(super) snapshot: Option<Moment>,
    pub(super) blob: Rc<Blob>,
    /// URL without signature.
    url: String,
}

impl Service {
    /// Finds the source of a request, and checks that the caller may read it. It is not archived.
    pub(super) fn source_of(&self, head: &Head, caller: &Caller) -> Result<Source> {
        let source = self.find_source(head, caller)?;
        match source.blob.is_archived() {
            true => Err(Code::BlobArchived.into()),
            false => Ok(source),
        }
    }

    /// Finds the source of a copy. One that is archived can be copied within its account to another tier.
    fn copied_source(&self, head: &Head, caller: &Caller) -> Result<Source> {
        let source = self.find_source(head, caller)?;
        if !source.blob.is_archived() {
            return Ok(source);
        }
        if source.names[0] != head.target.account {
            let archived = Fault::from(Code::CannotVerifyCopySource);
            let archived = archived.with_status(StatusCode::CONFLICT);
            return Err(archived.saying(Code::BlobArchived.message()));
        }
        match head.header("x-ms-access-tier") {
            None | Some(ARCHIVE) => Err(Code::BlobArchived.into()),
            Some(_) => Ok(source),
        }
    }

    fn find_source(&self, head: &Head, caller: &Caller) -> Result<Source> {
        let url = head.needs("x-ms-copy-source")?;
        let wrong = || Fault::from(Code::CannotVerifyCopySource);
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| Fault::header("x-ms-copy-source", url))?;
        let (address, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if !self.is_here(head, address) {
            return Err(wrong().because("The source is not in an account of this server."));
        }
        let target = parse_target(address, path, |name| self.is_account(name))?;
        let source = Head {
            method: Method::GET,
            target: target.clone(),
            path: path.to_owned(),
            query: parse_query(query),
            headers: HeaderMap::new(),
            secure: head.secure,
            from: head.from,
            now: head.now,
        };
        let state = self.state.borrow();
        let is_own_account = target.account == head.target.account;
        // The owner of the account may read all of it. Others need a signature in the URL, or a
        // public source. A signature in the URL counts for the owner, too.
        if *caller != Caller::Owner || !is_own_account || source.param("sig").is_some() {
            let container = target.container.as_deref().unwrap_or_default();
            let public = state.container(&target.account, container).ok();
            let public = public.map(|held| held.record.public);
            authenticate(&source, &self.accounts, &state.policies)
                .and_then(|reader| Operation::GetBlob.authorize(&reader, public, false))
                .map_err(|fault| unreadable(&fault))?;
        }
        let names = names(&source)?;
        let snapshot = source.snapshot()?;
        let blob = state.blob(names, snapshot).map_err(|_| wrong())?;
        Conditions::parse(head, Subject::Source)?.check_source(blob.state())?;
        // As the client wrote it, but without a signature.
        let of_snapshot = query.split('&').find(|pair| pair.starts_with("snapshot="));
        let of_snapshot = of_snapshot.map(|pair| format!("?{pair}")).unwrap_or_default();
        let plain = format!("{scheme}://{address}{path}{of_snapshot}");
        Ok(Source { names: names.owned(), snapshot, blob: Rc::clone(blob), url: plain })
    }

    /// Returns whether an address belongs to this service.
    fn is_here(&self, head: &Head, address: &str) -> bool {
        let own = head.header("host").unwrap_or_default();
        let bare = |text: &str| match text.split_once('.') {
            Some((first, rest)) if self.is_account(first) => rest.to_ascii_lowercase(),
            _ => text.to_ascii_lowercase(),
        };
        let port = |text: &str| text.rsplit_once(':').map(|(_, port)| port.to_owned());
        let is_local = |text: &str| {
            let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
            ["127.0.0.1", "localhost", "[::1]"].contains(&host)
        };
        let (own, other) = (bare(own), bare(address));
        own == other || (is_local(&own) && is_local(&other) && port(&own) == port(&other))
    }

    pub(super) async fn copy_blob(
        self: &Rc<Self>,
        head: &Head,
        caller: &Caller,
        how: How,
    ) -> Result<Reply> {
        let names = names(head)?;
        let requires_sync = head.flag("x-ms-requires-sync")?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        // Resolved again, because the source may have been deleted meanwhile.
        let source = self.copied_source(head, caller)?;
        self.check_copy(head, names, &source)?;
        match &source.blob.content {
            Content::Page(_) if how == How::AtOnce || requires_sync => {
                Err(Code::InvalidSourceBlobType.into())
            }
            Content::Page(page) => {
                let page = page.clone();
                self.copy_page_blob(head, names, &source, page).await
            }
            Content::Block(_) | Content::Append(_) => {
                let mut blob = self.share_blocks(head, &source.blob)?;
                let is_sync = how == How::AtOnce || requires_sync;
                let checked = if is_sync { self.check_bytes(head, &blob).await } else { Ok(None) };
                if checked.is_err() {
                    blob.pieces().for_each(|piece| self.pieces.forget(piece));
                }
                let md5 = checked?;
                let len = blob.len();
                blob.copy = Some(copied(&source, CopyStatus::Success, (len, len), Some(head.now)));
                let reply = copy_reply(&blob, if how == How::AtOnce { 201 } else { 202 })
                    .with_some("content-md5", md5);
                self.replace(names, blob).await?;
                Ok(reply)
            }
        }
    }

    /// Compares the bytes of a copy with the client's checksum of the source. Returns the MD5 if the
    /// client sent one.
    async fn check_bytes(&self, head: &Head, blob: &Blob) -> Result<Option<String>> {
        let mut check = Check::of_source(head)?;
        if !check.is_claimed() {
            return Ok(None);
        }
        let (mut at, end) = (0, blob.len());
        while at < end {
            let next = end.min(at + PART);
            check.add(&self.read_part(blob, at, next, true).await?);
            at = next;
        }
        Ok(check.end()?.md5)
    }

    pub(super) fn check_copy(&self, head: &Head, names: Names<'_>, source: &Source) -> Result<()> {
        let conditions = Conditions::parse(head, Subject::Target)?;
        let state = self.state.borrow();
        state.container(names.account, names.container)?;
        let old = state.blob(names, None).ok();
        conditions.check_make(old.map(|old| old.state()))?;
        let Some(old) = old else { return Ok(()) };
        self.check_lease(head, old)?;
        if old.is_archived() {
            return Err(Code::BlobArchived.into());
        }
        if old.is_pending() {
            return Err(Code::PendingCopyOperation.into());
        }
        if old.kind() != source.blob.kind() {
            return Err(Code::InvalidBlobType.into());
        }
        Ok(())
    }

    async fn copy_page_blob(
        self: &Rc<Self>,
        head: &Head,
        names: Names<'_>,
        source: &Source,
        mut from: PageContent,
    ) -> Result<Reply> {
        let tier = head.header("x-ms-access-tier").map(str::to_owned);
        let names_of = [names.account, names.container, names.blob];
        let given = parse_metadata(head)?;
        // The snapshot excludes later writes to the source from the copy.
        let frozen = match from.snapshot {
            Some(_) => None,
            None => Some(self.freeze(&from.volume).await?),
        };
        from.snapshot = from.snapshot.or(frozen);
        let made = self.volumes.make(names_of, from.size, tier.as_deref()).await;
        let volume = match made {
            Ok(volume) => volume,
            Err(fault) => {
                self.thaw(&from.volume, frozen).await?;
                return Err(fault);
            }
        };
        let at = self.next();
        let content = PageContent::new(volume.clone(), from.size, from.sequence);
        let mut blob = Blob {
            created: at,
            modified: at,
            etag: Etag(at.0),
            headers: source.blob.headers.clone(),
            metadata: if given.is_empty() { source.blob.metadata.clone() } else { given },
            tags: blob::parse_tags(head)?,
            tier_changed: tier.as_ref().map(|_| at),
            tier,
            lease: self.lease_of(names),
            copy: Some(copied(source, CopyStatus::Pending, (0, from.size), None)),
            sealed: false,
            content: Content::Page(content),
        };
        let ranges = self.ranges_of(&from)?;
        let total: u64 = ranges.iter().map(|(_, len)| len).sum();
        if total <= AT_ONCE {
            let to = self.volumes.open(&volume)?;
            let copied_all = self.copy_pages(&from, &to, &ranges, &|_| true).await;
            self.thaw(&from.volume, frozen).await?;
            if let Err(fault) = copied_all {
                self.volumes.delete(&volume).await?;
                return Err(fault);
            }
            let done = (from.size, from.size);
            blob.copy = Some(copied(source, CopyStatus::Success, done, Some(head.now)));
            let reply = copy_reply(&blob, 202);
            self.replace_or_undo(names, blob, &volume).await?;
            return Ok(reply);
        }
        let reply = copy_reply(&blob, 202);
        let id = blob.copy.as_ref().map(|copy| copy.id.clone()).unwrap_or_default();
        self.replace_or_undo(names, blob, &volume).await?;
        let (service, to) = (Rc::clone(self), names.owned());
        tokio::task::spawn_local(async move {
            let source = from.volume.clone();
            service.copy_in_time(to, id, volume, from, ranges).await;
            // A remaining snapshot is deleted at the next start.
            let _ = service.thaw(&source, frozen).await;
        });
        Ok(reply)
    }

    /// Takes a snapshot of a volume without a record.
    async fn freeze(&self, volume: &str) -> Result<u64> {
        let pages = self.volumes.open(volume)?.pages.clone();
        let made = tokio::task::spawn_blocking(move || pages.snapshot());
        Ok(made.await.map_err(Fault::internal)?.map_err(Fault::internal)?.0)
    }

    async fn thaw(&self, volume: &str, frozen: Option<u64>) -> Result<()> {
        match frozen {
            Some(id) => self.delete_snapshot(volume, id).await,
            None => Ok(()),
        }
    }

    /// Copies in the background. The result is stored in the blob's record.
    async fn copy_in_time(
        &self,
        to: [String; 3],
        id: String,
        volume: String,
        from: PageContent,
        ranges: Vec<(u64, u64)>,
    ) {
        let names = Names { account: &to[0], container: &to[1], blob: &to[2] };
        let goes_on = |bytes: u64| {
            let mut state = self.state.borrow_mut();
            let Ok(blob) = state.blob_mut(names, None) else { return false };
            match &mut blob.copy {
                Some(copy) if copy.id == id && copy.status == CopyStatus::Pending => {
                    copy.progress.0 += bytes;
                    true
                }
                _ => false,
            }
        };
        let result = match self.volumes.open(&volume) {
            Ok(open) => self.copy_pages(&from, &open, &ranges, &goes_on).await,
            Err(fault) => Err(fault),
        };
        let at = self.next();
        let own = {
            let mut state = self.state.borrow_mut();
            let Ok(blob) = state.blob_mut(names, None) else { return };
            let (etag, modified) = (&mut blob.etag, &mut blob.modified);
            match &mut blob.copy {
                Some(copy) if copy.id == id && copy.status == CopyStatus::Pending => {
                    match &result {
                        Ok(()) => {
                            copy.status = CopyStatus::Success;
                            copy.progress.0 = copy.progress.1;
                        }
                        Err(fault) => {
                            copy.status = CopyStatus::Failed;
                            copy.description = Some(fault.to_string());
                        }
                    }
                    copy.completed = Some(at);
                    etag.0 = at.0;
                    *modified = at;
                    true
                }
                _ => false,
            }
        };
        if own {
            // A failed journal is reported by the next change.
            drop(self.keep(names, None).await);
            let state = self.state.borrow();
            if let Ok(blob) = state.blob(names, None) {
                self.tell_export(blob, (self.clock)());
            }
        }
    }

    pub(super) async fn abort_copy(&self, head: &Head) -> Result<Reply> {
        let names = names(head)?;
        let id = head.param("copyid").ok_or(Code::MissingRequiredQueryParameter)?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        let from_size = {
            let mut state = self.state.borrow_mut();
            let blob = state.blob_mut(names, None)?;
            self.check_lease(head, blob)?;
            let at = head.now;
            match &mut blob.copy {
                Some(copy) if copy.status != CopyStatus::Pending => {
                    return Err(Code::NoPendingCopyOperation.into());
                }
                Some(copy) if copy.id != id => return Err(Code::CopyIdMismatch.into()),
                Some(copy) => {
                    copy.status = CopyStatus::Aborted;
                    copy.completed = Some(at);
                }
                None => return Err(Code::NoPendingCopyOperation.into()),
            }
            blob.page().map(|page| (page.volume.clone(), page.size))
        };
        // An aborted copy leaves an empty blob.
        if from_size.is_some() {
            self.resize(names, 0).await?;
        }
        let emptied = |blob: &mut Blob| {
            if let Content::Page(page) = &mut blob.content {
                page.size = 0;
            }
            Ok(())
        };
        self.change(names, emptied).await?;
        Ok(Reply::new(204))
    }

    /// Returns the creation time of a blob, which some replacements keep.
    pub(super) fn created_of(&self, names: Names<'_>) -> Option<Moment> {
        self.state.borrow().blob(names, None).ok().map(|blob| blob.created)
    }

    pub(super) fn ranges_of(&self, from: &PageContent) -> Result<Vec<(u64, u64)>> {
        let source = self.volumes.open(&from.volume)?;
        let of = from.snapshot.map(SnapshotId);
        let ranges = source.pages.pages(of, 0, from.size, usize::MAX).map_err(Fault::internal)?;
        Ok(ranges.into_iter().map(|range| (range.offset, range.len)).collect())
    }
}

/// Builds the error for a source that the caller must not read. A private source and a missing one
/// give the same status.
fn unreadable(fault: &Fault) -> Fault {
    let message = match fault.code {
        Code::ResourceNotFound => Code::AuthorizationFailure.message(),
        _ => fault.message(),
    };
    let unverified = Fault::from(Code::CannotVerifyCopySource);
    unverified.with_status(StatusCode::FORBIDDEN).saying(message)
}

pub(super) fn copied(
    source: &Source,
    status: CopyStatus,
    progress: (u64, u64),
    completed: Option<Moment>,
) -> Copied {
    let (id, source) = (new_id(), source.url.clone());
    Copied { id, source, status, progress, completed, description: None }
}

pub(super) fn copy_reply(blob: &Blob, status: u16) -> Reply {
    let reply = stamp(Reply::new(status), blob);
    match &blob.copy {
        Some(copy) => {
            reply.with("x-ms-copy-id", &copy.id).with("x-ms-copy-status", copy.status.name())
        }
        None => reply,
    }
}
