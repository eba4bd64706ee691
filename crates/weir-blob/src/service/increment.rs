//! Incremental copies of page blobs: each one copies what changed between two snapshots of its source.

use super::copy::{Source, copied, copy_reply};
use super::page::page_of;
use super::shared::{Service, names};
use crate::auth::Caller;
use crate::body::Reply;
use crate::condition::Etag;
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::record::{Blob, Content, CopyStatus, Increment, PageContent};
use crate::state::Names;
use crate::time::Moment;
use weir_store::SnapshotId;

impl Service {
    /// Copies the changes of a page blob since the snapshot that was copied last.
    pub(super) async fn incremental_copy(&self, head: &Head, caller: &Caller) -> Result<Reply> {
        let names = names(head)?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        let source = self.source_of(head, caller)?;
        let from = page_of(&source.blob).map_err(|_| Code::InvalidSourceBlobType)?.clone();
        let (Some(at), Some(number)) = (source.snapshot, from.snapshot) else {
            return Err(Code::IncrementalCopySourceMustBeSnapshot.into());
        };
        self.check_copy(head, names, &source)?;
        let old = {
            let state = self.state.borrow();
            state.blob(names, None).ok().map(|blob| page_of(blob).cloned()).transpose()?
        };
        let since =
            old.as_ref().map(|page| check_increment(page, &source, &from, at)).transpose()?;
        let volume = match (&old, since) {
            (Some(old), Some(since)) => {
                self.tear(names, true).await?;
                self.apply_changes(old, &from, since).await?;
                old.volume.clone()
            }
            _ => self.copy_to_new(names, &from).await?,
        };
        let last = Increment {
            source: source.names.clone(),
            volume: from.volume.clone(),
            last: (at, number),
            made: self.next(),
            torn: false,
        };
        let mut content = PageContent::new(volume.clone(), from.size, from.sequence);
        content.incremental = Some(last);
        let moment = self.next();
        let done = (from.size, from.size);
        let blob = Blob {
            created: self.created_of(names).unwrap_or(moment),
            modified: moment,
            etag: Etag(moment.0),
            headers: source.blob.headers.clone(),
            metadata: source.blob.metadata.clone(),
            tags: crate::tags::Tags::new(),
            tier: None,
            tier_changed: None,
            lease: self.lease_of(names),
            copy: Some(copied(&source, CopyStatus::Success, done, Some(head.now))),
            sealed: false,
            content: Content::Page(content),
        };
        let reply = copy_reply(&blob, 202);
        self.replace_or_undo(names, blob, &volume).await?;
        let (taken, _) = self.snapshot(names, crate::record::Metadata::new()).await?;
        {
            let mut state = self.state.borrow_mut();
            if let Content::Page(page) = &mut state.blob_mut(names, None)?.content
                && let Some(increment) = &mut page.incremental
            {
                increment.made = taken;
            }
        }
        self.keep(names, None).await?;
        Ok(reply)
    }

    /// Marks an incremental copy as incomplete. If the mark remains, the next copy is a full one.
    async fn tear(&self, names: Names<'_>, torn: bool) -> Result<()> {
        {
            let mut state = self.state.borrow_mut();
            if let Content::Page(page) = &mut state.blob_mut(names, None)?.content
                && let Some(increment) = &mut page.incremental
            {
                increment.torn = torn;
            }
        }
        self.keep(names, None).await
    }

    /// Copies all pages of a snapshot to a new volume.
    async fn copy_to_new(&self, names: Names<'_>, from: &PageContent) -> Result<String> {
        let names = [names.account, names.container, names.blob];
        let volume = self.volumes.make(names, from.size, None).await?;
        let to = self.volumes.open(&volume)?;
        let ranges = self.ranges_of(from)?;
        if let Err(fault) = self.copy_pages(from, &to, &ranges, &|_| true).await {
            self.volumes.delete(&volume).await?;
            return Err(fault);
        }
        Ok(volume)
    }

    /// Applies the changes between two snapshots of the source, or all pages of the second one.
    async fn apply_changes(
        &self,
        to: &PageContent,
        from: &PageContent,
        since: Since,
    ) -> Result<()> {
        let source = self.volumes.open(&from.volume)?;
        let open = self.volumes.open(&to.volume)?;
        let of = from.snapshot.map(SnapshotId);
        let since = match since {
            Since::Snapshot(since) if source.pages.snapshots().contains(&SnapshotId(since)) => {
                since
            }
            _ => {
                if to.size != from.size {
                    self.volumes.resize(&to.volume, from.size).await?;
                }
                open.clear(0, from.size, Some(weir_server::Terms::default())).await?;
                let ranges = self.ranges_of(from)?;
                return self.copy_pages(from, &open, &ranges, &|_| true).await;
            }
        };
        let changes = source.pages.changes(SnapshotId(since), of, 0, from.size, usize::MAX);
        let changes = changes.map_err(Fault::internal)?;
        if to.size != from.size {
            self.volumes.resize(&to.volume, from.size).await?;
        }
        let mut written = Vec::new();
        for change in changes {
            let (offset, len) = (change.range.offset, change.range.len);
            if change.cleared {
                open.clear(offset, len, Some(weir_server::Terms::default())).await?;
            } else {
                written.push((offset, len));
            }
        }
        self.copy_pages(from, &open, &written, &|_| true).await
    }
}

/// The base of an incremental copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// A snapshot of the source, by number.
    Snapshot(u64),
    /// None, because the last copy did not finish.
    Anywhere,
}

/// Checks that a blob is an incremental copy of this source, and that the snapshot is newer.
fn check_increment(
    page: &PageContent,
    source: &Source,
    from: &PageContent,
    at: Moment,
) -> Result<Since> {
    let last = page.incremental.as_ref().ok_or(Code::IncrementalCopyBlobMismatch)?;
    if last.source != source.names || last.volume != from.volume {
        return Err(Code::IncrementalCopyBlobMismatch.into());
    }
    if at <= last.last.0 {
        return Err(Code::IncrementalCopyOfEarlierSnapshotNotAllowed.into());
    }
    Ok(if last.torn { Since::Anywhere } else { Since::Snapshot(last.last.1) })
}
