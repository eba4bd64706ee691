//! Reading of blobs.

use super::shared::Service;
use crate::body::{Content as Carried, Reply, Rest, Source};
use crate::digest::md5_base64;
use crate::fault::{CONTENT_RANGE, Code, Fault, Result};
use crate::head::Head;
use crate::record::{Blob, Blocks, Content, Piece};
use bytes::{Bytes, BytesMut};
use std::net::IpAddr;
use std::rc::Rc;

/// Size of a read. Longer responses are streamed in parts of this size.
pub(super) const PART: u64 = 4 << 20;

/// Parses the range of a request: start and end, the latter exclusive and limited to `len`.
pub(super) fn request_range(head: &Head, len: u64) -> Result<Option<(u64, u64)>> {
    let name = if head.header("x-ms-range").is_some() { "x-ms-range" } else { "range" };
    let Some(text) = head.header(name) else { return Ok(None) };
    let Some((first, end)) = parse_range(text) else { return Err(Fault::header(name, text)) };
    if first >= len {
        let fault = Fault::from(Code::InvalidRange);
        return Err(fault.with(CONTENT_RANGE, format!("bytes */{len}")));
    }
    Ok(Some((first, end.map_or(len, |end| end.min(len)))))
}

/// Returns the range of a read. HTTP has a server ignore a range that it cannot parse.
fn readable_range(head: &Head, len: u64) -> Result<Option<(u64, u64)>> {
    match request_range(head, len) {
        Err(fault) if fault.code == Code::InvalidHeaderValue => Ok(None),
        range => range,
    }
}

/// Parses `bytes=0-511` or `bytes=512-`: start and exclusive end.
pub(super) fn parse_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let first = first.trim().parse().ok()?;
    match last.trim() {
        "" => Some((first, None)),
        last => {
            let end = last.parse::<u64>().ok()?.checked_add(1).filter(|end| *end > first)?;
            Some((first, Some(end)))
        }
    }
}

impl Service {
    pub(super) async fn get_blob(self: &Rc<Self>, head: &Head) -> Result<Reply> {
        let (blob, snapshot) = self.readable(head)?;
        if blob.page().is_some_and(|page| page.incremental.is_some()) && snapshot.is_none() {
            return Err(Code::OperationNotAllowedOnIncrementalCopyBlob.into());
        }
        if blob.is_archived() {
            return Err(Code::BlobArchived.into());
        }
        let len = blob.len();
        let range = readable_range(head, len)?;
        let (start, end) = range.unwrap_or((0, len));
        let wants_md5 = head.flag("x-ms-range-get-content-md5")?;
        let wants_crc = head.flag("x-ms-range-get-content-crc64")?;
        if (wants_md5 || wants_crc) && (range.is_none() || end - start > PART) {
            return Err(Code::OutOfRangeInput.into());
        }
        if head.header("x-ms-structured-body").is_some() {
            return Err(Fault::not_implemented("a structured body"));
        }
        let mut reply = self
            .described(head, &blob, snapshot)
            .with_some("x-ms-blob-content-md5", blob.headers.md5.as_ref());
        if range.is_some() {
            reply.status = http::StatusCode::PARTIAL_CONTENT;
            reply.set("content-range", &format!("bytes {start}-{}/{len}", end.saturating_sub(1)));
        } else {
            reply = reply.with_some("content-md5", blob.headers.md5.as_ref());
        }
        if start == end {
            return Ok(reply);
        }
        let first_end = end.min(start + PART);
        let named = Named::new(self, &blob, head);
        let room = self.sent.reserve(&named.account, named.from, first_end - start).await?;
        let first = room.hold(self.read_part(&blob, start, first_end, false).await?);
        if wants_md5 {
            reply.set("content-md5", &md5_base64(&first));
        }
        if wants_crc {
            let mut crc = crc64fast_nvme::Digest::new();
            crc.write(&first);
            use base64::Engine as _;
            let text = base64::engine::general_purpose::STANDARD.encode(crc.sum64().to_le_bytes());
            reply.set("x-ms-content-crc64", &text);
        }
        if first_end == end {
            return Ok(reply.bytes(first));
        }
        let rest = parts(Rc::new(named), blob, first_end, end);
        reply.content = Carried::Parts(end - start, first, rest);
        Ok(reply)
    }

    /// Reads a range of a blob.
    pub(super) async fn read_part(
        &self,
        blob: &Blob,
        start: u64,
        end: u64,
        patient: bool,
    ) -> Result<Bytes> {
        match &blob.content {
            Content::Page(page) => {
                let volume = self.volumes.open(&page.volume)?;
                let len = u32::try_from(end - start).map_err(|_| Code::OutOfRangeInput)?;
                match page.snapshot {
                    Some(id) => volume.read_snapshot(id, start, len, patient).await,
                    None if patient => volume.read_without_timeout(start, len).await,
                    None => volume.read(start, len).await,
                }
            }
            Content::Block(blocks) | Content::Append(blocks) => {
                self.read_blocks(blocks, start, end).await
            }
        }
    }

    async fn read_blocks(&self, blocks: &Blocks, start: u64, end: u64) -> Result<Bytes> {
        let mut found = BytesMut::new();
        let mut at = 0;
        for block in &blocks.blocks {
            let (first, last) = (at, at + block.piece.len);
            at = last;
            if last <= start || first >= end {
                continue;
            }
            let (from, to) = (start.max(first), end.min(last));
            let len = usize::try_from(to - from).map_err(|_| Code::OutOfRangeInput)?;
            let bytes = self.pieces.read(block.piece, from - first, len).await;
            let bytes = bytes.map_err(Fault::internal)?;
            if from == start && to == end {
                return Ok(bytes);
            }
            found.extend_from_slice(&bytes);
        }
        Ok(found.freeze())
    }
}

/// Returns the parts of a blob from `start` on. Each is read when it is needed.
fn parts(named: Rc<Named>, blob: Rc<Blob>, start: u64, end: u64) -> Rest {
    Rest(Box::new(move || -> Source {
        Box::pin(async move {
            if start >= end {
                return None;
            }
            let next = end.min(start + PART);
            // A response that has started cannot fail with a status, so the read waits.
            let service = &named.service;
            let part = match service.sent.wait(&named.account, named.from, next - start).await {
                Ok(room) => {
                    let part = service.read_part(&blob, start, next, true).await;
                    part.map(|bytes| room.hold(bytes))
                }
                Err(fault) => Err(fault),
            };
            Some((part, parts(named, blob, next, end)))
        })
    }))
}

/// References to a blob's pieces, which keep them until a streamed read ends.
struct Named {
    service: Rc<Service>,
    pieces: Vec<Piece>,
    /// The account and the client that the memory of the read is charged to.
    account: String,
    from: IpAddr,
}

impl Named {
    fn new(service: &Rc<Service>, blob: &Blob, head: &Head) -> Self {
        let pieces: Vec<Piece> = blob.pieces().collect();
        pieces.iter().for_each(|piece| service.pieces.name(*piece));
        let (account, from) = (head.target.account.clone(), head.from);
        Self { service: Rc::clone(service), pieces, account, from }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.pieces.iter().for_each(|piece| self.service.pieces.forget(*piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<(u64, Option<u64>)>) {
        assert_eq!(parse_range(text), expect, "{text}");
    }

    #[test]
    fn ranges_are_parsed() {
        check("bytes=0-511", Some((0, Some(512))));
        check("bytes=0-18446744073709551615", None);
        check("bytes=512-", Some((512, None)));
        check("bytes=5-4", None);
        check("bytes=-5", None);
        check("bytes=a-b", None);
        check("0-511", None);
    }
}
