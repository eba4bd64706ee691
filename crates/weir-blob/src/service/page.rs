//! Page blobs, each of which is a volume.

use super::blob;
use super::read::{parse_range, request_range};
use super::shared::{Service, names, parse_metadata, stamp};
use crate::auth::Caller;
use crate::body::{Body, Reply};
use crate::condition::{Conditions, Etag, Subject};
use crate::digest::{Check, Sums};
use crate::fault::{Code, Fault, Result};
use crate::head::{Head, parse_moment};
use crate::lease::Lease;
use crate::record::{Blob, Content, PageContent};
use crate::state::Names;
use crate::time::Moment;
use crate::xml::Writer;
use std::rc::Rc;
use weir_store::SnapshotId;

/// Size of a page.
const PAGE: u64 = 512;

/// Maximum size of a page blob: 8 TiB.
const MAX_SIZE: u64 = 8 << 40;
/// Maximum size of one write.
const MAX_WRITE: u64 = 4 << 20;
/// Maximum number of ranges in a list.
const MAX_RANGES: usize = 10_000;

/// A write or clear of pages.
struct Write {
    start: u64,
    len: u64,
    clears: bool,
}

impl Service {
    /// Creates an empty page blob, or replaces an existing blob by one.
    pub(super) async fn put_page_blob(&self, head: &Head) -> Result<Reply> {
        let names = names(head)?;
        let size = head.number("x-ms-blob-content-length")?;
        let size = size.ok_or_else(|| Fault::missing_header("x-ms-blob-content-length"))?;
        check_size(size)?;
        if head.header("content-length").is_some_and(|length| length != "0") {
            return Err(Fault::header("Content-Length", head.needs("content-length")?));
        }
        let sequence = parse_sequence(head, "x-ms-blob-sequence-number")?.unwrap_or(0);
        let tier = head.header("x-ms-access-tier").map(str::to_owned);
        let (metadata, tags) = (parse_metadata(head)?, blob::parse_tags(head)?);
        let lock = self.lock(names);
        let _alone = lock.write().await;
        self.check_make(head, names)?;
        let made =
            self.volumes.make([names.account, names.container, names.blob], size, tier.as_deref());
        let volume = made.await?;
        let at = self.next();
        let content = PageContent::new(volume.clone(), size, sequence);
        let blob = Blob {
            created: at,
            modified: at,
            etag: Etag(at.0),
            headers: blob::parse_headers(head),
            metadata,
            tags,
            tier_changed: tier.as_ref().map(|_| at),
            tier,
            lease: self.lease_of(names),
            copy: None,
            sealed: false,
            content: Content::Page(content),
        };
        let reply = stamp(Reply::new(201), &blob).with("x-ms-request-server-encrypted", "false");
        self.replace_or_undo(names, blob, &volume).await?;
        Ok(reply)
    }

    /// Replaces a blob. On failure, the new volume is deleted.
    pub(super) async fn replace_or_undo(
        &self,
        names: Names<'_>,
        blob: Blob,
        volume: &str,
    ) -> Result<()> {
        let replaced = self.replace(names, blob).await;
        if replaced.is_err() && !self.state.borrow().names_volume(volume) {
            self.volumes.delete(volume).await?;
        }
        replaced
    }

    /// Checks that a request may create or replace a blob.
    pub(super) fn check_make(&self, head: &Head, names: Names<'_>) -> Result<()> {
        let conditions = Conditions::parse(head, Subject::Target)?;
        let state = self.state.borrow();
        state.container(names.account, names.container)?;
        let old = state.blob(names, None).ok();
        conditions.check_make(old.map(|old| old.state()))?;
        if let Some(old) = old {
            self.check_lease(head, old)?;
            if old.is_archived() {
                return Err(Code::BlobArchived.into());
            }
            let differs = match head.header("x-ms-blob-type") {
                Some(kind) => kind != old.kind(),
                None => false,
            };
            // A blob and its snapshots must have the same type.
            if differs && !state.snapshots(names)?.is_empty() {
                return Err(Code::SnapshotsPresent.into());
            }
        }
        Ok(())
    }

    /// Returns the lease of a blob for its replacement, which it survives while it is held.
    pub(super) fn lease_of(&self, names: Names<'_>) -> Lease {
        let state = self.state.borrow();
        let own = state.blob(names, None).map(|blob| blob.lease.clone());
        let mut lease = own.unwrap_or_default();
        lease.end_unless_held((self.clock)());
        lease
    }

    pub(super) fn check_not_incremental(&self, names: Names<'_>) -> Result<()> {
        let state = self.state.borrow();
        match state.blob(names, None)?.page() {
            Some(PageContent { incremental: Some(_), .. }) => {
                Err(Code::OperationNotAllowedOnIncrementalCopyBlob.into())
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn put_page(&self, head: &Head, body: &mut Body) -> Result<Reply> {
        let names = names(head)?;
        let write = self.write_of(head, names)?;
        let check = Check::parse(head, false)?;
        let most = usize::try_from(MAX_WRITE).unwrap_or(usize::MAX);
        let _room = self.room_for(head, most).await?;
        let (bytes, sums) = body.checked(check, most).await?;
        let expected = if write.clears { 0 } else { write.len };
        if bytes.len() as u64 != expected {
            return Err(Fault::header("Content-Length", &bytes.len().to_string()));
        }
        self.write_pages(head, names, &write, bytes.into(), sums).await
    }

    pub(super) async fn put_page_from_url(&self, head: &Head, caller: &Caller) -> Result<Reply> {
        let names = names(head)?;
        let write = self.write_of(head, names)?;
        let text = head.needs("x-ms-source-range")?;
        let source_range = parse_range(text).and_then(|(first, end)| Some((first, end?)));
        let Some((start, end)) = source_range else {
            return Err(Fault::header("x-ms-source-range", text));
        };
        if write.clears || end - start != write.len {
            return Err(Fault::header("x-ms-source-range", text));
        }
        let source = self.source_of(head, caller)?;
        if end > source.blob.len() {
            return Err(Code::InvalidRange.into());
        }
        let bytes = self.read_part(&source.blob, start, end, false).await?;
        let mut check = Check::of_source(head)?;
        check.add(&bytes);
        let sums = check.end()?;
        self.write_pages(head, names, &write, bytes.into(), sums).await
    }

    /// Parses the range and kind of a page write.
    fn write_of(&self, head: &Head, names: Names<'_>) -> Result<Write> {
        let from_url = head.header("x-ms-copy-source").is_some();
        let clears = match head.header("x-ms-page-write") {
            Some(text) if text.eq_ignore_ascii_case("update") => false,
            Some(text) if text.eq_ignore_ascii_case("clear") => true,
            None if from_url => false,
            Some(text) => return Err(Fault::header("x-ms-page-write", text)),
            None => return Err(Fault::missing_header("x-ms-page-write")),
        };
        let name = if head.header("x-ms-range").is_some() { "x-ms-range" } else { "range" };
        let text = head.needs(name)?;
        let Some((start, end)) = parse_range(text) else {
            return Err(Fault::header(name, text));
        };
        let state = self.state.borrow();
        let page = page_of(state.blob(names, None)?)?;
        // A clear without an end extends to the end of the blob.
        let end = match end {
            Some(end) => end,
            None if clears && start < page.size => page.size,
            None => return Err(Fault::header(name, text)),
        };
        let len = end - start;
        if !start.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
            return Err(Fault::from(Code::InvalidPageRange)
                .because("A range of pages begins and ends at a multiple of 512 bytes."));
        }
        if !clears && len > MAX_WRITE {
            return Err(
                Fault::from(Code::RequestBodyTooLarge).with("MaxLimit", MAX_WRITE.to_string())
            );
        }
        if end > page.size {
            return Err(Code::InvalidPageRange.into());
        }
        if page.incremental.is_some() {
            return Err(Code::OperationNotAllowedOnIncrementalCopyBlob.into());
        }
        Ok(Write { start, len, clears })
    }

    /// Writes pages durably after a check of all conditions.
    async fn write_pages(
        &self,
        head: &Head,
        names: Names<'_>,
        write: &Write,
        bytes: Vec<u8>,
        sums: Sums,
    ) -> Result<Reply> {
        let lock = self.lock(names);
        let has_conditions = !Conditions::parse(head, Subject::Target)?.is_empty()
            || SEQUENCE_TESTS.iter().any(|(name, _)| head.headers.contains_key(*name));
        // Exclusive if there are conditions, so that no other write comes between check and write.
        let (_alone, _shared);
        if has_conditions {
            _alone = lock.write().await;
        } else {
            _shared = lock.read().await;
        }
        self.check_change(head, names)?;
        let volume = {
            let state = self.state.borrow();
            let page = page_of(state.blob(names, None)?)?;
            check_sequence(head, page.sequence)?;
            if write.start + write.len > page.size {
                return Err(Code::InvalidPageRange.into());
            }
            page.volume.clone()
        };
        // A concurrent read may see a part of the write, so the ETag changes before and after it.
        self.touch(names);
        let open = self.volumes.open(&volume)?;
        // A client of the export may have begun to write since the check.
        let _visit = open.pages.seat().visit().ok_or(Code::LeaseIdMissing)?;
        if write.clears {
            open.clear(write.start, write.len, None).await?;
        } else {
            open.write(write.start, bytes).await?;
        }
        self.touch(names);
        let state = self.state.borrow();
        let blob = state.blob(names, None)?;
        let sequence = blob.page().map(|page| page.sequence);
        let crc = sums.md5.is_none().then_some(&sums.crc64).filter(|_| !write.clears);
        Ok(stamp(Reply::new(201), blob)
            .with_some("x-ms-blob-sequence-number", sequence)
            .with_some("content-md5", sums.md5.as_ref().filter(|_| !write.clears))
            .with_some("x-ms-content-crc64", crc)
            .with("x-ms-request-server-encrypted", "false"))
    }

    /// Returns the new sequence number of a request that changes it.
    pub(super) fn next_sequence(&self, head: &Head, names: Names<'_>) -> Result<Option<u64>> {
        let name = "x-ms-sequence-number-action";
        let Some(action) = head.header(name) else { return Ok(None) };
        let given = parse_sequence(head, "x-ms-blob-sequence-number")?;
        let state = self.state.borrow();
        let own = page_of(state.blob(names, None)?)?.sequence;
        let needed = || given.ok_or_else(|| Fault::missing_header("x-ms-blob-sequence-number"));
        match action.to_ascii_lowercase().as_str() {
            "max" => needed().map(|given| Some(own.max(given))),
            "update" => needed().map(Some),
            "increment" if given.is_some() => {
                Err(Fault::header("x-ms-blob-sequence-number", &given.unwrap_or(0).to_string()))
            }
            "increment" => match own.checked_add(1).filter(|next| i64::try_from(*next).is_ok()) {
                Some(next) => Ok(Some(next)),
                None => Err(Code::SequenceNumberIncrementTooLarge.into()),
            },
            _ => Err(Fault::header(name, action)),
        }
    }

    /// Resizes a page blob. The caller holds the blob's lock exclusively.
    pub(super) async fn resize(&self, names: Names<'_>, size: u64) -> Result<()> {
        check_size(size)?;
        let volume = {
            let state = self.state.borrow();
            page_of(state.blob(names, None)?)?.volume.clone()
        };
        let open = self.volumes.open(&volume)?;
        let _visit = open.pages.seat().visit().ok_or(Code::LeaseIdMissing)?;
        self.volumes.resize(&volume, size).await?;
        if size == 0 {
            // An empty blob keeps the smallest volume, whose bytes must be cleared.
            open.clear(0, PAGE, Some(weir_server::Terms::default())).await?;
        }
        Ok(())
    }

    pub(super) fn get_page_ranges(&self, head: &Head) -> Result<Reply> {
        let (blob, snapshot) = self.readable(head)?;
        let page = page_of(&blob)?;
        if page.incremental.is_some() && snapshot.is_none() {
            return Err(Code::OperationNotAllowedOnIncrementalCopyBlob.into());
        }
        let (mut start, end) = request_range(head, page.size)?.unwrap_or((0, page.size));
        if let Some(marker) = head.param("marker") {
            let wrong = || Fault::query("marker", marker, "it is not a marker of this service");
            start = start.max(marker.parse().map_err(|_| wrong())?);
            if start > end {
                return Err(wrong());
            }
        }
        let most = match head.param("maxresults") {
            None => MAX_RANGES,
            Some(text) => match text.parse() {
                Ok(n @ 1..) => usize::min(n, MAX_RANGES),
                _ => return Err(Fault::query("maxresults", text, "it is not a positive number")),
            },
        };
        let len = end.saturating_sub(start);
        let volume = self.volumes.open(&page.volume)?;
        let of = page.snapshot.map(SnapshotId);
        let since = self.previous(head, names(head)?, snapshot, page)?;
        // One range more than the limit shows whether there are more.
        let found: std::result::Result<Vec<(u64, u64, bool)>, _> = match since {
            None => volume
                .pages
                .pages(of, start, len, most + 1)
                .map(|ranges| ranges.into_iter().map(|r| (r.offset, r.len, false)).collect()),
            Some(since) => {
                volume.pages.changes(SnapshotId(since), of, start, len, most + 1).map(|changes| {
                    let ranges = changes.into_iter();
                    ranges.map(|c| (c.range.offset, c.range.len, c.cleared)).collect()
                })
            }
        };
        let found = found.map_err(Fault::internal)?;
        let mut writer = Writer::new();
        writer.within("PageList", |writer| {
            for (offset, len, cleared) in found.iter().take(most) {
                let name = if *cleared { "ClearRange" } else { "PageRange" };
                writer.within(name, |writer| {
                    writer.leaf("Start", &offset.to_string());
                    writer.leaf("End", &(offset + len - 1).to_string());
                });
            }
            let next = found.get(most).map(|(offset, ..)| offset.to_string());
            if head.param("maxresults").is_some() || next.is_some() {
                writer.leaf("NextMarker", next.as_deref().unwrap_or_default());
            }
        });
        let reply = stamp(Reply::new(200), &blob).with("x-ms-blob-content-length", page.size);
        Ok(reply.xml(writer.done()))
    }

    /// Returns the number of the snapshot that changes are requested against.
    fn previous(
        &self,
        head: &Head,
        names: Names<'_>,
        snapshot: Option<Moment>,
        page: &PageContent,
    ) -> Result<Option<u64>> {
        let by_url = head.header("x-ms-previous-snapshot-url").map(|url| {
            let query = url.split_once('?').map_or("", |(_, query)| query);
            let query = crate::head::parse_query(query);
            query.into_iter().find(|(name, _)| name == "snapshot").map(|(_, value)| value)
        });
        let text = match by_url {
            Some(Some(text)) => Some(text),
            Some(None) => {
                let url = head.needs("x-ms-previous-snapshot-url")?;
                return Err(Fault::header("x-ms-previous-snapshot-url", url));
            }
            None => head.param("prevsnapshot").map(str::to_owned),
        };
        let Some(previous) = parse_moment(text.as_deref(), "prevsnapshot")? else {
            return Ok(None);
        };
        if snapshot.is_some_and(|of| previous > of) {
            return Err(Code::PreviousSnapshotCannotBeNewer.into());
        }
        let state = self.state.borrow();
        let before =
            state.blob(names, Some(previous)).map_err(|_| Code::PreviousSnapshotNotFound)?;
        let before = page_of(before)?;
        if before.volume != page.volume {
            return Err(Code::BlobOverwritten.into());
        }
        Ok(before.snapshot)
    }

    /// Copies all pages of `source` to an empty volume, without a timeout.
    pub(super) async fn copy_pages(
        &self,
        source: &PageContent,
        volume: &Rc<crate::volumes::Volume>,
        ranges: &[(u64, u64)],
        progress: &dyn Fn(u64) -> bool,
    ) -> Result<()> {
        let from = self.volumes.open(&source.volume)?;
        for (offset, len) in ranges {
            let (mut at, end) = (*offset, offset + len);
            while at < end {
                let part = u32::try_from((end - at).min(MAX_WRITE)).unwrap_or(0);
                let bytes = match source.snapshot {
                    Some(id) => from.read_snapshot(id, at, part, true).await?,
                    None => from.read_without_timeout(at, part).await?,
                };
                volume.write_without_timeout(at, bytes.into()).await?;
                at += u64::from(part);
                if !progress(u64::from(part)) {
                    return Err(Code::NoPendingCopyOperation.into());
                }
            }
        }
        volume.flush().await
    }
}

/// Returns the content of a page blob.
pub(super) fn page_of(blob: &Blob) -> Result<&PageContent> {
    blob.page().ok_or_else(|| Code::InvalidBlobType.into())
}

fn check_size(size: u64) -> Result<()> {
    if size > MAX_SIZE {
        return Err(Code::OutOfRangeInput.into());
    }
    if size.is_multiple_of(PAGE) {
        Ok(())
    } else {
        Err(Fault::header("x-ms-blob-content-length", &size.to_string()))
    }
}

/// Parses a sequence number, which has 63 bits.
fn parse_sequence(head: &Head, name: &str) -> Result<Option<u64>> {
    let number = head.number(name)?;
    match number {
        Some(number) if i64::try_from(number).is_err() => {
            Err(Fault::header(name, &number.to_string()))
        }
        _ => Ok(number),
    }
}

type SequenceTest = fn(&u64, &u64) -> bool;

/// The headers of conditions on the sequence number, with the comparison of the blob's number to
/// the given one.
const SEQUENCE_TESTS: [(&str, SequenceTest); 3] = [
    ("x-ms-if-sequence-number-le", u64::le),
    ("x-ms-if-sequence-number-lt", u64::lt),
    ("x-ms-if-sequence-number-eq", u64::eq),
];

/// Checks the conditions on the sequence number.
pub(super) fn check_sequence(head: &Head, own: u64) -> Result<()> {
    for (name, holds) in SEQUENCE_TESTS {
        if parse_sequence(head, name)?.is_some_and(|given| !holds(&own, &given)) {
            return Err(Code::SequenceNumberConditionNotMet.into());
        }
    }
    Ok(())
}
