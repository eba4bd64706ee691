//! Operations on blobs of all types: properties, metadata, tags, leases, snapshots, deletion.

use super::block::TIERS;
use super::shared::{Service, names, new_id, parse_metadata, stamp};
use crate::body::{Body, Reply};
use crate::condition::{Conditions, Subject};
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::journal::Change;
use crate::lease::Leased;
use crate::record::{ARCHIVE, Blob, Content, ContentHeaders};
use crate::state::{Names, base};
use crate::tags::{self, Tags};
use crate::time::Moment;
use crate::xml::{Element, Writer};
use std::borrow::Cow;
use std::rc::Rc;

/// The default content type.
pub(super) const TYPE: &str = "application/octet-stream";

/// Parses the blob's headers, whose names start with `x-ms-blob-`.
pub(super) fn parse_headers(head: &Head) -> ContentHeaders {
    let text = |name: &str| head.header(name).map(str::to_owned);
    ContentHeaders {
        content_type: text("x-ms-blob-content-type"),
        encoding: text("x-ms-blob-content-encoding"),
        language: text("x-ms-blob-content-language"),
        disposition: text("x-ms-blob-content-disposition"),
        cache_control: text("x-ms-blob-cache-control"),
        md5: text("x-ms-blob-content-md5"),
    }
}

/// Parses the tags header of a request.
pub(super) fn parse_tags(head: &Head) -> Result<Tags> {
    head.header("x-ms-tags").map(tags::parse_header).transpose().map(Option::unwrap_or_default)
}

pub(super) fn write_tags<'a>(
    writer: &mut Writer,
    tags: impl IntoIterator<Item = (&'a String, &'a String)>,
) {
    writer.within("Tags", |writer| {
        writer.within("TagSet", |writer| {
            for (name, value) in tags {
                writer.within("Tag", |writer| {
                    writer.leaf("Key", name);
                    writer.leaf("Value", value);
                });
            }
        });
    });
}

impl Service {
    /// Returns the tier of a blob, and whether it follows from the size alone.
    pub(super) fn tier_of(&self, blob: &Blob) -> (Option<String>, bool) {
        match (&blob.content, &blob.tier) {
            (Content::Page(page), None) => (self.volumes.tier(&page.volume), true),
            // Resizing may have changed the tier, so the volume is authoritative.
            (Content::Page(page), Some(_)) => (self.volumes.tier(&page.volume), false),
            (Content::Block(_), None) => (Some("Hot".to_owned()), true),
            (_, tier) => (tier.clone(), false),
        }
    }

    /// Builds a response with a blob's properties as headers.
    pub(super) fn described(&self, head: &Head, blob: &Blob, snapshot: Option<Moment>) -> Reply {
        let headers = &blob.headers;
        let overridden = |param: &str, own: &Option<String>| {
            let by_signature = head.param("sr").and_then(|_| head.param(param));
            by_signature.map(str::to_owned).or_else(|| own.clone())
        };
        let own_type = headers.content_type.clone().unwrap_or_else(|| TYPE.to_owned());
        let own_type = Some(own_type).filter(|own| !own.is_empty());
        let mut reply = stamp(Reply::new(200), blob)
            .with("accept-ranges", "bytes")
            .with_some("content-type", overridden("rsct", &own_type))
            .with_some("content-encoding", overridden("rsce", &headers.encoding))
            .with_some("content-language", overridden("rscl", &headers.language))
            .with_some("content-disposition", overridden("rscd", &headers.disposition))
            .with_some("cache-control", overridden("rscc", &headers.cache_control))
            .with("x-ms-blob-type", blob.kind())
            .with("x-ms-creation-time", blob.created.http())
            .with("x-ms-server-encrypted", "false");
        let lease = if snapshot.is_none() { self.lease(blob) } else { Cow::default() };
        reply = super::container::with_lease(reply, &lease, head.now);
        match &blob.content {
            Content::Page(page) => {
                reply.set("x-ms-blob-sequence-number", &page.sequence.to_string())
            }
            Content::Append(blocks) => {
                let count = blocks.blocks.len().to_string();
                reply.set("x-ms-blob-committed-block-count", &count);
                reply.set("x-ms-blob-sealed", &blob.sealed.to_string());
            }
            Content::Block(_) => {}
        }
        let (tier, inferred) = self.tier_of(blob);
        let inferred = tier.as_ref().map(|_| inferred);
        reply = reply
            .with_some("x-ms-access-tier", tier)
            .with_some("x-ms-access-tier-inferred", inferred)
            .with_some("x-ms-access-tier-change-time", blob.tier_changed.map(Moment::http));
        if !blob.tags.is_empty() {
            reply.set("x-ms-tag-count", &blob.tags.len().to_string());
        }
        if let Some(copy) = &blob.copy {
            reply = reply
                .with("x-ms-copy-id", &copy.id)
                .with("x-ms-copy-source", &copy.source)
                .with("x-ms-copy-status", copy.status.name())
                .with("x-ms-copy-progress", format!("{}/{}", copy.progress.0, copy.progress.1))
                .with_some("x-ms-copy-completion-time", copy.completed.map(Moment::http))
                .with_some("x-ms-copy-status-description", copy.description.as_ref());
        }
        if let Some(increment) = blob.page().and_then(|page| page.incremental.as_ref()) {
            reply = reply
                .with("x-ms-incremental-copy", "true")
                .with("x-ms-copy-destination-snapshot", increment.made.iso());
        }
        for (name, value) in &blob.metadata {
            reply.set(&format!("x-ms-meta-{name}"), value);
        }
        reply
    }

    /// Returns the blob that a request reads, after a check of its lease and conditions.
    pub(super) fn readable(&self, head: &Head) -> Result<(Rc<Blob>, Option<Moment>)> {
        let (names, snapshot) = (names(head)?, head.snapshot()?);
        if snapshot.is_none() {
            self.hear_export(names);
        }
        let conditions = Conditions::parse(head, Subject::Target)?;
        let state = self.state.borrow();
        let blob = state.blob(names, snapshot)?;
        if snapshot.is_none() {
            blob.lease.check_read(Leased::Blob, head.header("x-ms-lease-id"), head.now)?;
        }
        conditions.check_read(blob.state())?;
        Ok((Rc::clone(blob), snapshot))
    }

    pub(super) fn get_blob_properties(&self, head: &Head) -> Result<Reply> {
        let (blob, snapshot) = self.readable(head)?;
        let reply = self.described(head, &blob, snapshot);
        let reply = reply.with_some("content-md5", blob.headers.md5.as_ref());
        if head.method == http::Method::HEAD && head.param("comp").is_none() {
            return Ok(reply.with("content-length", blob.len()));
        }
        Ok(reply)
    }

    pub(super) async fn set_blob_properties(&self, head: &Head) -> Result<Reply> {
        let names = names(head)?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        self.check_change(head, names)?;
        self.check_not_archived(names)?;
        let size = head.number("x-ms-blob-content-length")?;
        let action = head.header("x-ms-sequence-number-action");
        if size.is_some() || action.is_some() {
            self.check_not_incremental(names)?;
        }
        let sequence = self.next_sequence(head, names)?;
        if let Some(size) = size {
            self.resize(names, size).await?;
        }
        // A request that changes size or sequence number leaves the headers; any other one sets
        // them all.
        let only_pages = size.is_some() || action.is_some();
        let mut headers = parse_headers(head);
        let sets_headers = !only_pages || headers != ContentHeaders::default();
        // The type is removed as well.
        headers.content_type.get_or_insert_default();
        let reply = self
            .change(names, |blob| {
                if sets_headers {
                    blob.headers = headers;
                }
                if let Content::Page(page) = &mut blob.content {
                    page.size = size.unwrap_or(page.size);
                    page.sequence = sequence.unwrap_or(page.sequence);
                }
                Ok(())
            })
            .await?;
        let state = self.state.borrow();
        let page = state.blob(names, None)?.page();
        Ok(reply.with_some("x-ms-blob-sequence-number", page.map(|page| page.sequence)))
    }

    pub(super) async fn set_blob_metadata(&self, head: &Head) -> Result<Reply> {
        let names = names(head)?;
        let metadata = parse_metadata(head)?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        self.check_change(head, names)?;
        self.check_not_archived(names)?;
        let reply = self.change(names, |blob| {
            blob.metadata = metadata;
            Ok(())
        });
        Ok(reply.await?.with("x-ms-request-server-encrypted", "false"))
    }

    pub(super) fn get_tags(&self, head: &Head) -> Result<Reply> {
        let (names, snapshot) = (names(head)?, head.snapshot()?);
        let conditions = Conditions::parse(head, Subject::Target)?;
        let state = self.state.borrow();
        let blob = state.blob(names, snapshot)?;
        conditions.check_write(blob.state())?;
        blob.lease.check_read(Leased::Blob, head.header("x-ms-lease-id"), head.now)?;
        let mut writer = Writer::new();
        write_tags(&mut writer, &blob.tags);
        Ok(Reply::new(200).xml(writer.done()))
    }

    /// Sets tags, also of a snapshot. They are not part of the blob's state, so its ETag stays.
    pub(super) async fn set_tags(&self, head: &Head, body: &mut Body) -> Result<Reply> {
        let (names, snapshot) = (names(head)?, head.snapshot()?);
        let document = self.document(head, body).await?;
        let root = Element::root(&document, "Tags")?;
        let set = root.child("TagSet").ok_or(Code::MissingRequiredXmlNode)?;
        let mut tags = Tags::new();
        for tag in &set.children {
            // Spaces are part of names and values.
            let name = tag.child("Key").ok_or(Code::MissingRequiredXmlNode)?.text.clone();
            let value = tag.child("Value").map(|value| value.text.clone()).unwrap_or_default();
            if tags.insert(name, value).is_some() {
                return Err(Code::InvalidXmlNodeValue.into());
            }
        }
        tags::check(&tags)?;
        match snapshot {
            None => self.check_change(head, names)?,
            Some(_) => {
                let conditions = Conditions::parse(head, Subject::Target)?;
                conditions.check_write(self.state.borrow().blob(names, snapshot)?.state())?;
            }
        }
        self.state.borrow_mut().blob_mut(names, snapshot)?.tags = tags;
        self.keep(names, snapshot).await?;
        Ok(Reply::new(204))
    }

    /// Checks that a blob is not in the archive tier, in which only tags and the tier can change.
    fn check_not_archived(&self, names: Names<'_>) -> Result<()> {
        let is_archived = self.state.borrow().blob(names, None)?.is_archived();
        if is_archived { Err(Code::BlobArchived.into()) } else { Ok(()) }
    }

    /// Executes a lease operation, which does not change the ETag either.
    pub(super) async fn lease_blob(&self, head: &Head) -> Result<Reply> {
        let names = names(head)?;
        let conditions = Conditions::parse(head, Subject::Target)?;
        // Does not take the lock: renewal must not wait for the writes that the lease protects.
        let done = {
            let mut state = self.state.borrow_mut();
            let blob = state.blob_mut(names, None)?;
            conditions.check_write(blob.state())?;
            let before = blob.lease.clone();
            let done = blob.lease.act(head, new_id)?;
            if !self.tell_export(blob, head.now) {
                // A client of the export is writing, which counts as holding the lease.
                blob.lease = before;
                return Err(Code::LeaseAlreadyPresent.into());
            }
            done
        };
        self.keep(names, None).await?;
        let reply = Reply::new(done.status)
            .with_some("x-ms-lease-id", done.id)
            .with_some("x-ms-lease-time", done.left);
        self.stamped(reply, names)
    }

    pub(super) async fn snapshot_blob(&self, head: &Head) -> Result<Reply> {
        let names = names(head)?;
        let metadata = parse_metadata(head)?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        {
            let conditions = Conditions::parse(head, Subject::Target)?;
            let state = self.state.borrow();
            let blob = state.blob(names, None)?;
            conditions.check_write(blob.state())?;
            blob.lease.check_read(Leased::Blob, head.header("x-ms-lease-id"), head.now)?;
        }
        self.check_not_incremental(names)?;
        self.check_not_archived(names)?;
        let (at, blob) = self.snapshot(names, metadata).await?;
        let reply = stamp(Reply::new(201), &blob).with("x-ms-snapshot", at.iso());
        Ok(reply.with("x-ms-request-server-encrypted", "false"))
    }

    /// Creates a snapshot. The caller holds the blob's lock exclusively.
    pub(super) async fn snapshot(
        &self,
        names: Names<'_>,
        metadata: crate::record::Metadata,
    ) -> Result<(Moment, Blob)> {
        let mut blob = Blob::clone(self.state.borrow().blob(names, None)?);
        blob.lease = crate::lease::Lease::default();
        if !metadata.is_empty() {
            blob.metadata = metadata;
        }
        if let Content::Page(page) = &mut blob.content {
            let pages = self.volumes.open(&page.volume)?.pages.clone();
            let made = tokio::task::spawn_blocking(move || pages.snapshot());
            let id = made.await.map_err(Fault::internal)?.map_err(Fault::internal)?;
            page.snapshot = Some(id.0);
            page.unclean = false;
        }
        let at = self.next();
        let change = {
            let mut state = self.state.borrow_mut();
            let held = state.container_mut(names.account, names.container)?;
            blob.pieces().for_each(|piece| self.pieces.name(piece));
            held.blobs.insert((names.blob.to_owned(), at), Rc::new(blob.clone()));
            Change::put(names.key(Some(at)), &blob)
        };
        self.commit(vec![change]).await?;
        Ok((at, blob))
    }

    pub(super) async fn delete_blob(&self, head: &Head) -> Result<Reply> {
        let (names, snapshot) = (names(head)?, head.snapshot()?);
        let lock = self.lock(names);
        let _alone = lock.write().await;
        let conditions = Conditions::parse(head, Subject::Target)?;
        let mut going = Vec::new();
        {
            let state = self.state.borrow();
            let blob = state.blob(names, snapshot)?;
            conditions.check_write(blob.state())?;
            let which = head.header("x-ms-delete-snapshots");
            if snapshot.is_some() {
                if let Some(which) = which {
                    return Err(Fault::header("x-ms-delete-snapshots", which));
                }
                going.push(snapshot);
            } else {
                let snapshots = state.snapshots(names)?;
                match which {
                    Some("include" | "only") => going.extend(snapshots.into_iter().map(Some)),
                    Some(other) => return Err(Fault::header("x-ms-delete-snapshots", other)),
                    None if snapshots.is_empty() => {}
                    None => return Err(Code::SnapshotsPresent.into()),
                }
                if which != Some("only") {
                    self.check_lease(head, blob)?;
                    going.push(None);
                }
            }
        }
        let changes = going.iter().map(|snapshot| Change::remove(names.key(*snapshot)));
        let changes = changes.collect();
        let gone: Vec<Rc<Blob>> = {
            let mut state = self.state.borrow_mut();
            let held = state.container_mut(names.account, names.container)?;
            let place = |at: &Option<Moment>| match at {
                Some(at) => (names.blob.to_owned(), *at),
                None => base(names.blob),
            };
            going.iter().filter_map(|at| held.blobs.remove(&place(at))).collect()
        };
        self.commit(changes).await?;
        self.forget_all(&gone).await?;
        if going.contains(&None) {
            self.forget_uncommitted(names).await?;
        }
        Ok(Reply::new(202).with("x-ms-delete-type-permanent", "true"))
    }

    pub(super) async fn set_tier(&self, head: &Head) -> Result<Reply> {
        let names = names(head)?;
        let tier = head.needs("x-ms-access-tier")?.to_owned();
        let lock = self.lock(names);
        let _alone = lock.write().await;
        let conditions = Conditions::parse(head, Subject::Target)?;
        let volume = {
            let state = self.state.borrow();
            let blob = state.blob(names, None)?;
            conditions.check_write(blob.state())?;
            blob.lease.check_read(Leased::Blob, head.header("x-ms-lease-id"), head.now)?;
            match &blob.content {
                Content::Page(page) => Some((page.volume.clone(), blob.tier.clone())),
                Content::Block(_) if TIERS.contains(&&*tier) => None,
                _ => return Err(Code::InvalidBlobTier.into()),
            }
        };
        if let Some((volume, named)) = volume {
            self.volumes.retier(&volume, named.as_deref(), &tier).await?;
        }
        let leaves_archive;
        {
            let mut state = self.state.borrow_mut();
            let blob = state.blob_mut(names, None)?;
            leaves_archive = blob.is_archived() && tier != ARCHIVE;
            blob.tier = Some(tier);
            blob.tier_changed = Some(head.now);
        }
        self.keep(names, None).await?;
        // The service answers 202, since a blob leaves its archive hours later. Here it does at once.
        Ok(Reply::new(if leaves_archive { 202 } else { 200 }))
    }
}
