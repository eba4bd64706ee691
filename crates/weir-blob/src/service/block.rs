//! Block blobs, and what they share with append blobs.

use super::blob;
use super::read::{PART, parse_range};
use super::shared::{MAX_DOCUMENT, Service, names, parse_metadata, stamp};
use crate::auth::Caller;
use crate::body::{Body, Reply};
use crate::condition::{Conditions, Etag, Subject};
use crate::digest::{Check, Sums};
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::journal::Change;
use crate::lease::Leased;
use crate::pieces::GATHER;
use crate::record::{ARCHIVE, Blob, Block, Blocks, Content, ContentHeaders, Piece};
use crate::state::{Names, base};
use crate::xml::{Element, Writer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum sizes of a block (4000 MiB) and of a blob written in one request (5000 MiB).
const MAX_BLOCK: u64 = 4000 << 20;
const MAX_PUT: u64 = 5000 << 20;
/// Access tiers of block blobs.
pub(super) const TIERS: [&str; 4] = ["Hot", "Cool", "Cold", ARCHIVE];
/// Maximum number of blocks of a blob.
pub(super) const MOST_BLOCKS: usize = 50_000;
const MOST_UNCOMMITTED: usize = 100_000;

impl Service {
    pub(super) async fn put_blob(&self, head: &Head, body: &mut Body) -> Result<Reply> {
        match head.needs("x-ms-blob-type")? {
            "PageBlob" => self.put_page_blob(head).await,
            "BlockBlob" => self.put_block_blob(head, body).await,
            "AppendBlob" => self.put_append_blob(head).await,
            other => Err(Fault::header("x-ms-blob-type", other)),
        }
    }

    /// Builds a blob of blocks from a request's headers.
    pub(super) fn new_blob(
        &self,
        head: &Head,
        content: Content,
        md5: Option<String>,
    ) -> Result<Blob> {
        let at = self.next();
        let mut headers = blob::parse_headers(head);
        // The type of the body is the default for that of the blob.
        let of_body = head.header("content-type").map(str::to_owned);
        headers.content_type = headers.content_type.or(of_body);
        headers.md5 = headers.md5.or(md5);
        let tier = head.header("x-ms-access-tier").map(str::to_owned);
        if tier.as_deref().is_some_and(|tier| !TIERS.contains(&tier)) {
            return Err(Code::InvalidBlobTier.into());
        }
        Ok(Blob {
            created: at,
            modified: at,
            etag: Etag(at.0),
            headers,
            metadata: parse_metadata(head)?,
            tags: blob::parse_tags(head)?,
            tier_changed: tier.as_ref().map(|_| at),
            tier,
            lease: self.lease_of(names(head)?),
            copy: None,
            sealed: false,
            content,
        })
    }

    async fn put_block_blob(&self, head: &Head, body: &mut Body) -> Result<Reply> {
        let names = names(head)?;
        // Checked before the body is received.
        self.check_make(head, names)?;
        let check = Check::of_blob(head)?;
        let (piece, sums) = self.take_piece(head, body, check, MAX_PUT).await?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        let made = self.check_make(head, names).and_then(|()| {
            let blocks = match piece.len {
                0 => Vec::new(),
                _ => vec![Block { id: String::new(), piece }],
            };
            self.new_blob(head, Content::Block(Blocks { blocks }), sums.md5.clone())
        });
        let blob = match made {
            Ok(blob) => blob,
            Err(fault) => {
                self.pieces.forget(piece);
                return Err(fault);
            }
        };
        if piece.len == 0 {
            self.pieces.forget(piece);
        }
        let reply = summed(stamp(Reply::new(201), &blob), &sums);
        self.commit_list(names, blob).await?;
        Ok(reply)
    }

    /// Receives a body as a piece.
    async fn take_piece(
        &self,
        head: &Head,
        body: &mut Body,
        mut check: Check,
        most: u64,
    ) -> Result<(Piece, Sums)> {
        let _room = self.room_for(head, GATHER).await?;
        let mut new = self.pieces.begin().map_err(Fault::internal)?;
        let mut len = 0;
        while let Some(bytes) = body.next().await? {
            len += bytes.len() as u64;
            if len > most {
                let fault = Fault::from(Code::RequestBodyTooLarge);
                return Err(fault.with("MaxLimit", most.to_string()));
            }
            check.add(&bytes);
            new.add(&bytes).await.map_err(Fault::internal)?;
        }
        let said = head.number("content-length")?;
        if said.is_some_and(|said| said != len) {
            return Err(Code::InvalidInput.into());
        }
        let sums = check.end()?;
        let piece = self.pieces.end(new).await.map_err(Fault::internal)?;
        Ok((piece, sums))
    }

    /// Receives or copies the bytes of a block as a piece.
    pub(super) async fn take_from(
        &self,
        head: &Head,
        from: From<'_>,
        most: u64,
    ) -> Result<(Piece, Sums)> {
        match from {
            From::Body(body) => self.take_piece(head, body, Check::parse(head, false)?, most).await,
            From::Url(caller) => self.take_source(head, caller, most).await,
        }
    }

    /// Stores a range of another blob as a piece.
    async fn take_source(&self, head: &Head, caller: &Caller, most: u64) -> Result<(Piece, Sums)> {
        let source = self.source_of(head, caller)?;
        let size = source.blob.len();
        let (mut at, end) = match head.header("x-ms-source-range") {
            None => (0, size),
            Some(text) => match parse_range(text) {
                Some((first, end)) if first < size => {
                    (first, end.map_or(size, |end| size.min(end)))
                }
                Some(_) => return Err(Code::InvalidRange.into()),
                None => return Err(Fault::header("x-ms-source-range", text)),
            },
        };
        if end - at > most {
            let fault = Fault::from(Code::RequestBodyTooLarge);
            return Err(fault.with("MaxLimit", most.to_string()));
        }
        let mut check = Check::of_source(head)?;
        let mut new = self.pieces.begin().map_err(Fault::internal)?;
        while at < end {
            let next = end.min(at + PART);
            let bytes = self.read_part(&source.blob, at, next, true).await?;
            check.add(&bytes);
            new.add(&bytes).await.map_err(Fault::internal)?;
            at = next;
        }
        let sums = check.end()?;
        Ok((self.pieces.end(new).await.map_err(Fault::internal)?, sums))
    }

    pub(super) async fn put_block(&self, head: &Head, from: From<'_>) -> Result<Reply> {
        let names = names(head)?;
        let id = head.param("blockid").ok_or(Code::MissingRequiredQueryParameter)?.to_owned();
        let decoded = STANDARD.decode(&id).map_err(|_| Code::InvalidBlockId)?;
        if decoded.is_empty() || decoded.len() > 64 {
            return Err(Code::InvalidBlockId.into());
        }
        self.check_block(head, names, &id)?;
        let (piece, sums) = self.take_from(head, from, MAX_BLOCK).await?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        if let Err(fault) = self.check_block(head, names, &id) {
            self.pieces.forget(piece);
            return Err(fault);
        }
        let block = Block { id: id.clone(), piece };
        let change = Change::put(names.block_key(&id), &block);
        let old = {
            let mut state = self.state.borrow_mut();
            let held = state.container_mut(names.account, names.container)?;
            let blocks = held.uncommitted.entry(names.blob.to_owned()).or_default();
            let old = blocks.iter().position(|own| own.id == id).map(|at| blocks.remove(at));
            blocks.push(block);
            old
        };
        self.commit(vec![change]).await?;
        if let Some(old) = old {
            self.pieces.forget(old.piece);
        }
        Ok(summed(Reply::new(201), &sums).with("x-ms-request-server-encrypted", "false"))
    }

    fn check_block(&self, head: &Head, names: Names<'_>, id: &str) -> Result<()> {
        let state = self.state.borrow();
        let held = state.container(names.account, names.container)?;
        if let Some(blob) = held.blobs.get(&base(names.blob)) {
            if !matches!(blob.content, Content::Block(_)) {
                return Err(Code::InvalidBlobType.into());
            }
            self.check_lease(head, blob)?;
        }
        let Some(blocks) = held.uncommitted.get(names.blob) else { return Ok(()) };
        // All block ids of a blob have the same length, before they are encoded.
        let len_of = |id: &str| STANDARD.decode(id).map_or(0, |id| id.len());
        if blocks.first().is_some_and(|own| len_of(&own.id) != len_of(id)) {
            return Err(Code::InvalidBlobOrBlock.into());
        }
        if blocks.len() >= MOST_UNCOMMITTED {
            return Err(Code::BlockCountExceedsLimit.into());
        }
        Ok(())
    }

    pub(super) async fn put_block_list(&self, head: &Head, body: &mut Body) -> Result<Reply> {
        let names = names(head)?;
        let check = Check::parse(head, false)?;
        let room = self.room_for(head, MAX_DOCUMENT).await?;
        let (document, sums) = body.checked(check, MAX_DOCUMENT).await?;
        let wanted = parse_block_list(&document)?;
        drop((document, room));
        let lock = self.lock(names);
        let _alone = lock.write().await;
        self.check_make(head, names)?;
        let blocks = self.find_blocks(names, &wanted)?;
        let content = Content::Block(Blocks { blocks: blocks.clone() });
        let mut blob = self.new_blob(head, content, None)?;
        blob.created = self.created_of(names).unwrap_or(blob.created);
        // Content-Type and Content-MD5 of the list are not those of the blob.
        let own = blob::parse_headers(head);
        blob.headers = ContentHeaders { content_type: own.content_type.clone(), ..own };
        let reply = summed(stamp(Reply::new(201), &blob), &sums);
        blocks.iter().for_each(|block| self.pieces.name(block.piece));
        let committed = self.commit_list(names, blob).await;
        if committed.is_err() {
            blocks.iter().for_each(|block| self.pieces.forget(block.piece));
        }
        committed?;
        Ok(reply.with("x-ms-request-server-encrypted", "false"))
    }

    /// Replaces the blob and drops its uncommitted blocks in one commit.
    async fn commit_list(&self, names: Names<'_>, blob: Blob) -> Result<()> {
        let mut changes = vec![Change::put(names.key(None), &blob)];
        let (old, loose) = {
            let mut state = self.state.borrow_mut();
            let held = state.container_mut(names.account, names.container)?;
            let loose = held.uncommitted.remove(names.blob).unwrap_or_default();
            (held.blobs.insert(base(names.blob), Rc::new(blob)), loose)
        };
        let gone = loose.iter().map(|block| Change::remove(names.block_key(&block.id)));
        changes.extend(gone);
        self.commit(changes).await?;
        loose.iter().for_each(|block| self.pieces.forget(block.piece));
        match old {
            Some(old) => self.forget_bytes(&old).await,
            None => Ok(()),
        }
    }

    /// Resolves the blocks that a list names.
    fn find_blocks(&self, names: Names<'_>, wanted: &[(Which, String)]) -> Result<Vec<Block>> {
        let state = self.state.borrow();
        let held = state.container(names.account, names.container)?;
        let by_id = |blocks: &[Block]| -> HashMap<String, Block> {
            blocks.iter().map(|block| (block.id.clone(), block.clone())).collect()
        };
        let committed = match held.blobs.get(&base(names.blob)).map(|blob| &blob.content) {
            Some(Content::Block(blocks)) => by_id(&blocks.blocks),
            Some(_) => return Err(Code::InvalidBlobType.into()),
            None => HashMap::new(),
        };
        let loose = held.uncommitted.get(names.blob).map(|b| by_id(b)).unwrap_or_default();
        let find = |(which, id): &(Which, String)| {
            let found = match which {
                Which::Committed => committed.get(id),
                Which::Uncommitted => loose.get(id),
                Which::Latest => loose.get(id).or_else(|| committed.get(id)),
            };
            found.cloned().ok_or_else(|| Code::InvalidBlockList.into())
        };
        wanted.iter().map(find).collect()
    }

    /// Deletes the uncommitted blocks of a blob.
    pub(super) async fn forget_uncommitted(&self, names: Names<'_>) -> Result<()> {
        let loose = {
            let mut state = self.state.borrow_mut();
            let held = state.container_mut(names.account, names.container)?;
            held.uncommitted.remove(names.blob).unwrap_or_default()
        };
        let gone = loose.iter().map(|block| Change::remove(names.block_key(&block.id)));
        self.commit(gone.collect()).await?;
        loose.iter().for_each(|block| self.pieces.forget(block.piece));
        Ok(())
    }

    pub(super) fn get_block_list(&self, head: &Head) -> Result<Reply> {
        let (names, snapshot) = (names(head)?, head.snapshot()?);
        let which = head.param("blocklisttype").unwrap_or("committed").to_ascii_lowercase();
        let (committed, uncommitted) = match &*which {
            "committed" => (true, false),
            "uncommitted" => (false, true),
            "all" => (true, true),
            other => {
                let reason = "it must be committed, uncommitted or all";
                return Err(Fault::query("blocklisttype", other, reason));
            }
        };
        let state = self.state.borrow();
        let held = state.container(names.account, names.container)?;
        let blob = state.blob(names, snapshot);
        let loose = held.uncommitted.get(names.blob).filter(|_| snapshot.is_none());
        let blob = match (blob, loose) {
            (Ok(blob), _) => Some(blob),
            (Err(_), Some(_)) => None,
            (Err(fault), None) => return Err(fault),
        };
        let mut reply = Reply::new(200);
        let mut own = &[][..];
        if let Some(blob) = blob {
            let Content::Block(blocks) = &blob.content else {
                return Err(Code::InvalidBlobType.into());
            };
            Conditions::parse(head, Subject::Target)?.check_read(blob.state())?;
            blob.lease.check_read(Leased::Blob, head.header("x-ms-lease-id"), head.now)?;
            own = &blocks.blocks[..];
            reply = stamp(reply, blob).with("x-ms-blob-content-length", blob.len());
        }
        let mut writer = Writer::new();
        let list = |writer: &mut Writer, name: &str, blocks: &[Block]| {
            writer.within(name, |writer| {
                for block in blocks.iter().filter(|block| !block.id.is_empty()) {
                    writer.within("Block", |writer| {
                        writer.leaf("Name", &block.id);
                        writer.leaf("Size", &block.piece.len.to_string());
                    });
                }
            });
        };
        writer.within("BlockList", |writer| {
            if committed {
                list(writer, "CommittedBlocks", own);
            }
            if uncommitted {
                list(writer, "UncommittedBlocks", loose.map_or(&[][..], |loose| &loose[..]));
            }
        });
        Ok(reply.xml(writer.done()))
    }

    /// Builds a blob of blocks that shares the bytes of another.
    pub(super) fn share_blocks(&self, head: &Head, source: &Blob) -> Result<Blob> {
        let copies_tags = head.header("x-ms-copy-source-tag-option") == Some("COPY");
        if copies_tags && let Some(tags) = head.header("x-ms-tags") {
            return Err(Fault::header("x-ms-tags", tags));
        }
        let seals = head.flag("x-ms-seal-blob")?;
        if seals && !matches!(source.content, Content::Append(_)) {
            return Err(Fault::header("x-ms-seal-blob", "true"));
        }
        let mut blob = self.new_blob(head, source.content.clone(), None)?;
        blob.sealed = seals;
        blob.headers = source.headers.clone();
        if blob.metadata.is_empty() {
            blob.metadata = source.metadata.clone();
        }
        if copies_tags {
            blob.tags = source.tags.clone();
        }
        blob.pieces().for_each(|piece| self.pieces.name(piece));
        Ok(blob)
    }
}

/// The source of a block's bytes.
pub(super) enum From<'a> {
    /// The request's body.
    Body(&'a mut Body),
    /// Another blob, which this caller must be permitted to read.
    Url(&'a Caller),
}

/// The set of blocks in which a list looks up an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Committed,
    Uncommitted,
    Latest,
}

pub(super) fn parse_block_list(document: &[u8]) -> Result<Vec<(Which, String)>> {
    let root = Element::root(document, "BlockList")?;
    if root.children.len() > MOST_BLOCKS {
        return Err(Code::BlockListTooLong.into());
    }
    let one = |element: &Element| {
        let which = match element.name.as_str() {
            "Committed" => Which::Committed,
            "Uncommitted" => Which::Uncommitted,
            "Latest" => Which::Latest,
            _ => return Err(Code::InvalidXmlDocument.into()),
        };
        Ok((which, element.text.trim().to_owned()))
    };
    root.children.iter().map(one).collect()
}

/// Adds the checksums to a response.
pub(super) fn summed(reply: Reply, sums: &Sums) -> Reply {
    let crc = sums.md5.is_none().then_some(&sums.crc64);
    reply.with_some("content-md5", sums.md5.as_ref()).with_some("x-ms-content-crc64", crc)
}
