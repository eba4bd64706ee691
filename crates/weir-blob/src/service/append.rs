//! Append blobs, whose blocks only grow in number until they are sealed.

use super::block::{From, MOST_BLOCKS, summed};
use super::shared::{Service, names, stamp};
use crate::body::Reply;
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::record::{Block, Blocks, Content};
use crate::state::Names;

/// Maximum size of an append: 100 MiB.
const MAX_APPEND: u64 = 100 << 20;
const APPEND_POSITION: &str = "x-ms-blob-condition-appendpos";

impl Service {
    pub(super) async fn put_append_blob(&self, head: &Head) -> Result<Reply> {
        let names = names(head)?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        self.check_make(head, names)?;
        let blob = self.new_blob(head, Content::Append(Blocks::default()), None)?;
        let reply = stamp(Reply::new(201), &blob);
        self.replace(names, blob).await?;
        Ok(reply.with("x-ms-request-server-encrypted", "false"))
    }

    pub(super) async fn append_block(&self, head: &Head, from: From<'_>) -> Result<Reply> {
        let names = names(head)?;
        self.check_append(head, names, 0)?;
        let (piece, sums) = self.take_from(head, from, MAX_APPEND).await?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        let checked = match piece.len {
            0 => Err(Fault::header("Content-Length", "0")),
            len => self.check_append(head, names, len),
        };
        let (offset, count) = match checked {
            Ok(before) => before,
            Err(fault) => {
                self.pieces.forget(piece);
                return Err(fault);
            }
        };
        let reply = self.change(names, |blob| {
            if let Content::Append(blocks) = &mut blob.content {
                blocks.blocks.push(Block { id: String::new(), piece });
            }
            Ok(())
        });
        let mut reply = reply.await?;
        reply.status = http::StatusCode::CREATED;
        Ok(summed(reply, &sums)
            .with("x-ms-blob-append-offset", offset)
            .with("x-ms-blob-committed-block-count", count + 1)
            .with("x-ms-request-server-encrypted", "false"))
    }

    /// Checks an append of `len` bytes. Returns its offset and the number of blocks before it.
    fn check_append(&self, head: &Head, names: Names<'_>, len: u64) -> Result<(u64, usize)> {
        self.check_change(head, names)?;
        let state = self.state.borrow();
        let blob = state.blob(names, None)?;
        let Content::Append(blocks) = &blob.content else {
            return Err(Code::InvalidBlobType.into());
        };
        if blob.sealed {
            return Err(Code::BlobIsSealed.into());
        }
        let size = blocks.len();
        if head.number(APPEND_POSITION)?.is_some_and(|at| at != size) {
            return Err(Code::AppendPositionConditionNotMet.into());
        }
        if head.number("x-ms-blob-condition-maxsize")?.is_some_and(|most| size + len > most) {
            return Err(Code::MaxBlobSizeConditionNotMet.into());
        }
        if blocks.blocks.len() >= MOST_BLOCKS {
            return Err(Code::BlockCountExceedsLimit.into());
        }
        Ok((size, blocks.blocks.len()))
    }

    /// Seals an append blob, which changes neither its ETag nor its time.
    pub(super) async fn seal(&self, head: &Head) -> Result<Reply> {
        let names = names(head)?;
        let lock = self.lock(names);
        let _alone = lock.write().await;
        self.check_change(head, names)?;
        {
            let mut state = self.state.borrow_mut();
            let blob = state.blob_mut(names, None)?;
            let Content::Append(blocks) = &blob.content else {
                return Err(Code::InvalidBlobType.into());
            };
            if head.number(APPEND_POSITION)?.is_some_and(|at| at != blocks.len()) {
                return Err(Code::AppendPositionConditionNotMet.into());
            }
            blob.sealed = true;
        }
        self.keep(names, None).await?;
        self.stamped(Reply::new(200), names).map(|reply| reply.with("x-ms-blob-sealed", "true"))
    }
}
