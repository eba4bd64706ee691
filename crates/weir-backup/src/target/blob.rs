//! Stripes as blobs of an Azure-compatible endpoint.
//!
//! | blob | frames | visible | complete |
//! |---|---|---|---|
//! | block blob | one block each | when the list of blocks is put, at the end | then |
//! | page blob | pages | from the first write on, without a footer | when the footer's page is there |
//!
//! While a blob is written, a small blob with its temporary name has the header of the stripe. Others see
//! by it that a backup is being made, and on which full backup it builds: blocks without a list are
//! invisible. A page blob without a footer and without this marker was complete once.

use super::StripeSink;
use super::http::{Answer, Ask, Client, ContainerUrl, ESCAPED, Settled};
use crate::error::BackupError;
use crate::place::folder::{EXTENSION, TEMPORARY, is_stripe_name};
use crate::place::{FoundStripe, Place};
use crate::read_at::ReadAt;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;
use ureq::http::Method;
use weir_units::{Instant, Span};
use weir_wall::Clock;

/// The most blocks of a block blob.
pub const MAX_BLOCKS: u64 = 50_000;
/// The most bytes of a page blob that are written at once.
const MAX_PAGES: usize = 4 << 20;
/// How often the marker of a block blob is written again, so that its age tells that the backup goes on.
const MARKED_EVERY: Span = Span::from_secs(3600);
/// The metadata by which a writer recognises its own blob.
const WRITER: &str = "x-ms-meta-weir_writer";

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
    /// The flag that ends the requests of the client.
    is_cancelled: Arc<AtomicBool>,
    address: String,
    kind: BlobKind,
    /// The offsets of the blocks that were put.
    blocks: Mutex<Vec<u64>>,
    made: Mutex<Made>,
    /// A random number that the blob has as metadata.
    writer: String,
    marker: Marker,
}

/// The outcome of the request that makes the blob of a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    /// The blob was not made.
    No,
    /// The outcome is not known: the service may also carry the request out later.
    Unknown,
    /// The blob was made.
    Yes,
}

/// The blob that shows that a stripe is being written.
#[derive(Debug)]
struct Marker {
    address: String,
    clock: Clock,
    every: Span,
    /// The stripe's header, and when it was written last, once it was.
    written: Mutex<Option<(Vec<u8>, Instant)>>,
}

impl StripeBlob {
    /// Makes the blob of a stripe, or makes sure that there is none yet.
    ///
    /// # Errors
    /// When the endpoint refuses, or a blob has that name.
    pub fn create(url: &ContainerUrl, name: &str, kind: BlobKind) -> Result<Self, BackupError> {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let mut random = [0; 16];
        crate::random::fill(&mut random)?;
        let marker = Marker {
            address: url.blob(&format!("{name}.tmp")),
            clock: Clock::start(),
            every: MARKED_EVERY,
            written: Mutex::default(),
        };
        let own = Self {
            client: Client::new(url.clone()).with_flag(Arc::clone(&is_cancelled)),
            is_cancelled,
            address: url.blob(name),
            kind,
            blocks: Mutex::default(),
            made: Mutex::new(Made::No),
            writer: format!("{:032x}", u128::from_le_bytes(random)),
            marker,
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
                (WRITER, own.writer.as_str()),
            ];
            // The header comes with the first write.
            *own.marked() = Some((Vec::new(), own.marker.clock.now()));
            let made = own.put_marker(&[]).and_then(|()| own.put_new("", &headers, &[]));
            if let Err(error) = made {
                return Err(match own.discard() {
                    Ok(()) => error,
                    Err(left) => {
                        let left = left.to_string();
                        BackupError::Untidy { cause: Box::new(error), left }
                    }
                });
            }
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

    /// Makes the blob, unless there is one. An earlier attempt may have made it although a later one is
    /// refused: then the blob has the number of this writer.
    fn put_new(
        &self,
        query: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(), BackupError> {
        let ask = self.asking(&Method::PUT, query, headers, body);
        self.client.check()?;
        self.set(Made::Unknown);
        let (error, is_open) = match self.client.settle(ask) {
            Ok(Settled { status: 200..=299, .. }) => {
                self.set(Made::Yes);
                return Ok(());
            }
            Ok(Settled { status, answer, attempts, is_open }) => {
                let error = self.client.refusal(ask, status, &answer);
                if attempts == 1 && matches!(status, 400..=411 | 413..=499) {
                    self.set(Made::No);
                    return Err(error);
                }
                (error, is_open)
            }
            Err(error) => (error, true),
        };
        let is_there = self.look();
        match is_there {
            Some(true) => self.set(Made::Yes),
            Some(false) if !is_open => self.set(Made::No),
            Some(false) | None => {}
        }
        match error {
            // It ends all the same, and is removed.
            BackupError::Interrupted => Err(BackupError::Interrupted),
            _ if is_there == Some(true) => Ok(()),
            error => Err(error),
        }
    }

    fn set(&self, made: Made) {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = made;
    }

    /// Returns whether the blob of this writer is there; `None` if the service does not say.
    fn look(&self) -> Option<bool> {
        match self.client.try_once(self.asking(&Method::HEAD, "", &[], &[]))? {
            (404, _) => Some(false),
            (200..=299, answer) => {
                let writer = answer.headers.get(WRITER).map(|writer| writer.as_bytes());
                Some(writer == Some(self.writer.as_bytes()))
            }
            _ => None,
        }
    }

    fn marked(&self) -> MutexGuard<'_, Option<(Vec<u8>, Instant)>> {
        self.marker.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_marker(&self, header: &[u8]) -> Result<(), BackupError> {
        let (method, address) = (Method::PUT, self.marker.address.as_str());
        let headers = [("x-ms-blob-type", "BlockBlob")];
        let ask = Ask { method: &method, address, query: "", headers: &headers, body: header };
        self.client.need(ask).map(drop)
    }

    /// Writes the marker with the header of the stripe, and again where its age would look as if
    /// the writer had ended.
    fn mark(&self, offset: u64, bytes: &[u8]) -> Result<(), BackupError> {
        let now = self.marker.clock.now();
        if offset == 0 {
            *self.marked() = Some((bytes.to_owned(), now));
            return self.put_marker(bytes);
        }
        let due =
            self.marked().as_mut().filter(|own| now >= own.1 + self.marker.every).map(|own| {
                own.1 = now;
                own.0.clone()
            });
        match due.map(|header| self.put_marker(&header)) {
            Some(Err(BackupError::Interrupted)) => Err(BackupError::Interrupted),
            // A marker that stays as old as it is may be removed, and the backup goes on.
            _ => Ok(()),
        }
    }

    /// Removes the marker, as far as possible. One that stays says that the stripe is incomplete, or
    /// is ignored beside a complete one.
    fn unmark(&self) -> Result<(), BackupError> {
        let Some(_) = self.marked().take() else { return Ok(()) };
        self.remove(&self.marker.address)
    }

    /// Removes a blob within a short time.
    fn remove(&self, address: &str) -> Result<(), BackupError> {
        let ask = Ask { method: &Method::DELETE, address, query: "", headers: &[], body: &[] };
        let why = match self.client.try_once(ask) {
            Some((200..=299 | 404, _)) => return Ok(()),
            Some((status, answer)) => self.client.refusal(ask, status, &answer).to_string(),
            None => "the endpoint does not answer".to_owned(),
        };
        Err(BackupError::Failed(format!("{address} was not removed: {why}")))
    }

    /// Ends a stripe that is complete.
    fn finish(&self) -> Result<(), BackupError> {
        // The stripe is complete, with or without the marker.
        let _ = self.unmark();
        Ok(())
    }

    fn put_block(&self, offset: u64, bytes: &[u8]) -> Result<(), BackupError> {
        self.mark(offset, bytes)?;
        let query = format!("comp=block&blockid={}", escaped(&block_id(offset)));
        self.client.need(self.asking(&Method::PUT, &query, &[], bytes))?;
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(offset);
        Ok(())
    }

    fn put_pages(&self, offset: u64, bytes: &[u8]) -> Result<(), BackupError> {
        // The service knows itself when a page blob was written last.
        if offset == 0 {
            self.mark(offset, bytes)?;
        }
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
                Err(BackupError::NoRoom(format!(
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
            return self.finish();
        }
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.sort_unstable();
        // The header may have been written twice.
        blocks.dedup();
        let ids = blocks.iter().map(|at| format!("<Latest>{}</Latest>", block_id(*at)));
        let list = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{}</BlockList>",
            ids.collect::<String>()
        );
        let headers = [
            ("if-none-match", "*"),
            ("content-type", "application/xml"),
            (WRITER, self.writer.as_str()),
        ];
        self.put_new("comp=blocklist", &headers, list.as_bytes())?;
        self.finish()
    }

    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn discard(&self) -> Result<(), BackupError> {
        let made = *self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match (made, if made == Made::Unknown { self.look() } else { None }) {
            // Blocks without a list are no blob; the service drops them after a while.
            (Made::No, _) => {}
            (Made::Yes, _) | (Made::Unknown, Some(true)) => self.remove(&self.address)?,
            (Made::Unknown, Some(false)) => {
                return Err(BackupError::Failed(format!(
                    "{} is not there, but a request that got no answer may still make it; look again with \
                     weir backup list",
                    self.address
                )));
            }
            (Made::Unknown, None) => {
                return Err(BackupError::Failed(format!(
                    "it is not known whether {} was completed, because the endpoint does not answer; look \
                     with weir backup list",
                    self.address
                )));
            }
        }
        // Only now: a blob without a footer and without a marker would look damaged.
        self.unmark()
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

    /// Checks that the container is there and can be listed.
    ///
    /// # Errors
    /// When the endpoint refuses, or does not answer.
    pub fn check(&self) -> Result<(), BackupError> {
        self.page("").map(drop)
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
pub(super) struct Listed {
    pub(super) name: String,
    length: u64,
    is_page: bool,
    /// When it was written last, as Unix time in milliseconds.
    modified_unix_ms: Option<u64>,
}

/// Reads a page of a list: `Blob` elements with `Name`, `Content-Length` and `Last-Modified`, and
/// `NextMarker`.
pub(super) fn parse_list(text: &[u8]) -> Result<(Vec<Listed>, String), String> {
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
        (Some("BlobType"), Some("Properties"), Some(blob)) => {
            blob.is_page = text.trim() == "PageBlob";
        }
        (Some("Last-Modified"), Some("Properties"), Some(blob)) => {
            // A date that cannot be read is none: the age of the blob is unknown then.
            let date = httpdate::parse_http_date(text.trim()).ok();
            let since = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
            blob.modified_unix_ms = since.and_then(|since| u64::try_from(since.as_millis()).ok());
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
        let mut all = Vec::new();
        let mut marker = String::new();
        loop {
            let (page, next) = self.page(&marker)?;
            all.extend(page.into_iter().filter(|own| is_stripe_name(&own.name)));
            if next.is_empty() || next == marker {
                break;
            }
            marker = next;
        }
        let names: BTreeSet<String> = all.iter().map(|own| own.name.clone()).collect();
        let mut found = Vec::new();
        for own in all {
            let file = own.name.rsplit('/').next().unwrap_or_default().to_owned();
            let path = utf8_percent_encode(&own.name, ESCAPED);
            let address = format!("{}/{path}", self.client.url.container());
            let mut bytes = self.bytes(&address, own.length);
            // A page blob has its name from the start.
            let is_written = own.is_page && names.contains(&format!("{}.tmp", own.name));
            found.push(FoundStripe {
                named: crate::place::folder::named(&file),
                modified_unix_ms: own.modified_unix_ms,
                is_temporary: own.name.ends_with(TEMPORARY),
                is_published: !is_written && own.name.ends_with(EXTENSION),
                ..FoundStripe::inspect(address.clone(), address, &mut bytes)
            });
            // Stripes whose reading was ended look damaged.
            self.client.check()?;
        }
        Ok(found)
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
        let Answer { body, .. } = answer.map_err(|error| match error {
            BackupError::Interrupted => io::ErrorKind::Interrupted.into(),
            error => io::Error::other(error.to_string()),
        })?;
        if body.len() != buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.copy_from_slice(&body);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
