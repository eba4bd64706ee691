//! Stripes as blobs of an Azure-compatible endpoint.
//!
//! | blob | frames | visible | complete |
//! |---|---|---|---|
//! | block blob | one block each | when the list of blocks is put, at the end | then |
//! | page blob | pages | from the first write on, without a footer | when the footer's page is there |

use super::StripeSink;
use super::http::{Answer, Ask, Client, ContainerUrl, ESCAPED};
use crate::error::BackupError;
use crate::place::{FoundStripe, Place};
use crate::read_at::ReadAt;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use ureq::http::Method;

/// The most blocks of a block blob.
pub const MAX_BLOCKS: u64 = 50_000;
/// The most bytes of a page blob that are written at once.
const MAX_PAGES: usize = 4 << 20;
/// The end of a stripe's name.
const EXTENSION: &str = crate::place::folder::EXTENSION;

/// The kind of blob that a stripe is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobKind {
    /// A block blob.
    Block,
    /// A page blob with room for this many bytes.
    Page(u64),
}

/// A stripe that is written as a blob.
#[derive(Debug)]
pub struct StripeBlob {
    client: Client,
    address: String,
    kind: BlobKind,
    /// The offsets of the blocks that were put.
    blocks: Mutex<Vec<u64>>,
    /// Whether there is a blob of this backup.
    is_there: AtomicBool,
}

impl StripeBlob {
    /// Makes the blob of a stripe, or makes sure that there is none yet.
    ///
    /// # Errors
    /// When the endpoint refuses, or a blob has that name.
    pub fn create(url: &ContainerUrl, name: &str, kind: BlobKind) -> Result<Self, BackupError> {
        let own = Self {
            client: Client::new(url.clone()),
            address: url.blob(name),
            kind,
            blocks: Mutex::default(),
            is_there: AtomicBool::new(false),
        };
        if own.client.ask(own.asking(&Method::HEAD, "", &[], &[]))?.is_some() {
            return Err(BackupError::Refused(format!(
                "{} is there already; give the backup another name or another container",
                own.address
            )));
        }
        if let BlobKind::Page(room) = kind {
            let room = room.next_multiple_of(512).to_string();
            let headers = [
                ("x-ms-blob-type", "PageBlob"),
                ("x-ms-blob-content-length", room.as_str()),
                ("if-none-match", "*"),
            ];
            own.client.need(own.asking(&Method::PUT, "", &headers, &[]))?;
            own.is_there.store(true, Ordering::Relaxed);
        }
        Ok(own)
    }

    fn asking<'a>(
        &'a self,
        method: &'a Method,
        query: &'a str,
        headers: &'a [(&'a str, &'a str)],
        body: &'a [u8],
    ) -> Ask<'a> {
        Ask { method, address: &self.address, query, headers, body }
    }

    fn put_block(&self, offset: u64, bytes: &[u8]) -> Result<(), BackupError> {
        let query = format!("comp=block&blockid={}", escaped(&block_id(offset)));
        self.client.need(self.asking(&Method::PUT, &query, &[], bytes))?;
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(offset);
        Ok(())
    }

    fn put_pages(&self, offset: u64, bytes: &[u8]) -> Result<(), BackupError> {
        for (at, part) in (0_u64..).zip(bytes.chunks(MAX_PAGES)) {
            let start = offset + at * MAX_PAGES as u64;
            let range = format!("bytes={start}-{}", start + part.len() as u64 - 1);
            let headers = [("x-ms-page-write", "update"), ("x-ms-range", range.as_str())];
            self.client.need(self.asking(&Method::PUT, "comp=page", &headers, part))?;
        }
        Ok(())
    }
}

/// Returns the id of the block at an offset. All ids of a blob are equally long.
fn block_id(offset: u64) -> String {
    STANDARD.encode(format!("{offset:020}"))
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

impl StripeSink for StripeBlob {
    fn name(&self) -> String {
        self.address.clone()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), BackupError> {
        match self.kind {
            BlobKind::Block => self.put_block(offset, bytes),
            BlobKind::Page(room) if offset.saturating_add(bytes.len() as u64) > room => {
                Err(BackupError::Failed(format!(
                    "no room in {}: the stripe outgrew the {room} bytes that it got",
                    self.address
                )))
            }
            BlobKind::Page(_) => self.put_pages(offset, bytes),
        }
    }

    fn sync(&self, length: u64, is_closed: bool) -> Result<(), BackupError> {
        // What the service has answered is durable.
        if is_closed && matches!(self.kind, BlobKind::Page(_)) {
            let length = length.to_string();
            let headers = [("x-ms-blob-content-length", length.as_str())];
            self.client.need(self.asking(&Method::PUT, "comp=properties", &headers, &[]))?;
        }
        Ok(())
    }

    fn publish(&self) -> Result<(), BackupError> {
        if self.kind != BlobKind::Block {
            return Ok(());
        }
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.sort_unstable();
        let ids = blocks.iter().map(|at| format!("<Latest>{}</Latest>", block_id(*at)));
        let list = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{}</BlockList>",
            ids.collect::<String>()
        );
        let headers = [("if-none-match", "*"), ("content-type", "application/xml")];
        self.client.need(self.asking(&Method::PUT, "comp=blocklist", &headers, list.as_bytes()))?;
        self.is_there.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn discard(&self) {
        // Blocks without a list are no blob; the service drops them after a while.
        if self.is_there.load(Ordering::Relaxed) {
            let _ = self.client.ask(self.asking(&Method::DELETE, "", &[], &[]));
        }
    }
}

/// A container as a place of stripes.
#[derive(Debug)]
pub struct Container {
    client: Client,
    name: String,
}

impl Container {
    /// Takes a container, or the blobs in it whose names begin with a path.
    #[must_use]
    pub fn new(url: ContainerUrl) -> Self {
        Self { name: url.to_string(), client: Client::new(url) }
    }

    /// Lists a page of blobs. Returns the marker of the next page; empty after the last.
    fn page(&self, marker: &str) -> Result<(Vec<Listed>, String), BackupError> {
        let prefix = escaped(self.client.url.prefix());
        let query =
            format!("restype=container&comp=list&prefix={prefix}&marker={}", escaped(marker));
        let (method, address) = (Method::GET, self.client.url.container());
        let ask = Ask { method: &method, address, query: &query, headers: &[], body: &[] };
        let answer = self.client.need(ask)?;
        parse_list(&answer.body).map_err(|reason| {
            BackupError::Failed(format!(
                "{}: its list of blobs cannot be read: {reason}",
                self.name
            ))
        })
    }

    fn bytes(&self, address: &str, length: u64) -> BlobBytes {
        BlobBytes { client: self.client.clone(), address: address.to_owned(), length }
    }
}

/// A blob in a list.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Listed {
    name: String,
    length: u64,
}

/// Reads a page of a list: `Blob` elements with `Name` and `Content-Length`, and `NextMarker`.
fn parse_list(text: &[u8]) -> Result<(Vec<Listed>, String), String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let (mut all, mut marker) = (Vec::new(), String::new());
    let (mut path, mut blob): (Vec<String>, Option<Listed>) = (Vec::new(), None);
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(start) => {
                let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
                if name == "Blob" {
                    blob = Some(Listed::default());
                }
                path.push(name);
            }
            Event::End(_) => {
                let ended = path.pop();
                all.extend(blob.take_if(|_| ended.as_deref() == Some("Blob")));
            }
            Event::Text(text) => {
                let text = text.decode().map_err(|error| error.to_string())?;
                add_text(&path, &text, &mut blob, &mut marker)?;
            }
            Event::GeneralRef(reference) => {
                let name = reference.decode().map_err(|error| error.to_string())?;
                let resolved = quick_xml::escape::resolve_predefined_entity(&name);
                let character = reference.resolve_char_ref().map_err(|error| error.to_string())?;
                let own = resolved.map(str::to_owned).or(character.map(String::from));
                add_text(&path, &own.unwrap_or_default(), &mut blob, &mut marker)?;
            }
            Event::Eof => return Ok((all, marker)),
            _ => {}
        }
    }
}

fn add_text(
    path: &[String],
    text: &str,
    blob: &mut Option<Listed>,
    marker: &mut String,
) -> Result<(), String> {
    let parent = path.len().checked_sub(2).map(|at| path[at].as_str());
    match (path.last().map(String::as_str), parent, blob) {
        (Some("Name"), Some("Blob"), Some(blob)) => blob.name.push_str(text),
        (Some("Content-Length"), Some("Properties"), Some(blob)) => {
            blob.length = text.trim().parse().map_err(|_| format!("{text:?} is no length"))?;
        }
        (Some("NextMarker"), ..) => marker.push_str(text),
        _ => {}
    }
    Ok(())
}

impl Place for Container {
    fn name(&self) -> &str {
        &self.name
    }

    fn list(&mut self) -> Result<Vec<FoundStripe>, BackupError> {
        let (mut found, mut marker) = (Vec::new(), String::new());
        loop {
            let (page, next) = self.page(&marker)?;
            for own in page.into_iter().filter(|own| own.name.ends_with(EXTENSION)) {
                let file = own.name.rsplit('/').next().unwrap_or_default().to_owned();
                let path = utf8_percent_encode(&own.name, ESCAPED);
                let address = format!("{}/{path}", self.client.url.container());
                let mut bytes = self.bytes(&address, own.length);
                found.push(FoundStripe {
                    named: crate::place::folder::named(&file),
                    ..FoundStripe::inspect(address.clone(), address, &mut bytes)
                });
            }
            if next.is_empty() || next == marker {
                return Ok(found);
            }
            marker = next;
        }
    }

    fn open(&mut self, stripe: &FoundStripe) -> Result<Box<dyn ReadAt>, BackupError> {
        Ok(Box::new(self.bytes(&stripe.locator, stripe.length)))
    }

    fn remove(&mut self, stripe: &FoundStripe) -> Result<(), BackupError> {
        let (method, address) = (Method::DELETE, stripe.locator.as_str());
        self.client.ask(Ask { method: &method, address, query: "", headers: &[], body: &[] })?;
        Ok(())
    }
}

/// A blob that is read.
#[derive(Debug)]
pub struct BlobBytes {
    client: Client,
    address: String,
    length: u64,
}

impl ReadAt for BlobBytes {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= self.length);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let range = format!("bytes={offset}-{}", end - 1);
        let (method, headers) = (Method::GET, [("x-ms-range", range.as_str())]);
        let ask = Ask {
            method: &method,
            address: &self.address,
            query: "",
            headers: &headers,
            body: &[],
        };
        let answer = self.client.need(ask);
        let Answer { body, .. } = answer.map_err(|error| io::Error::other(error.to_string()))?;
        if body.len() != buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.copy_from_slice(&body);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_blobs_is_read() {
        let text = "\u{feff}<?xml version=\"1.0\"?><EnumerationResults><Blobs><Blob><Name>a/b &amp; \
                    c.weirbak</Name><Properties><Content-Length>1024</Content-Length></Properties>\
                    <Metadata><Name>no</Name></Metadata></Blob><Blob><Name>d</Name></Blob></Blobs>\
                    <NextMarker>2!m</NextMarker></EnumerationResults>";
        let (all, marker) = parse_list(text.as_bytes()).expect("a list");
        let first = Listed { name: "a/b & c.weirbak".to_owned(), length: 1024 };
        assert_eq!(all, [first, Listed { name: "d".to_owned(), length: 0 }]);
        assert_eq!(marker, "2!m");
        assert!(parse_list(b"<a><b></a>").is_err());
    }

    #[test]
    fn ids_of_blocks_are_equally_long() {
        assert_eq!(block_id(0).len(), block_id(u64::MAX).len());
    }
}
