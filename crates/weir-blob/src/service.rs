//! The operations of the service.
//!
//! All of them run on one thread, so code between two awaits is atomic. Each blob has a lock.
//! Changes of a record and operations with conditions hold it exclusively; plain page writes share
//! it. A condition that was met thus remains met until the write is done.
//!
//! | module | holds |
//! |---|---|
//! | `shared` | the state of the service, and the steps that operations share |
//! | `recovery` | recovery after a crash, and the end |
//! | [`properties`] | the properties of a service, including CORS |
//! | `account` | operations on an account |
//! | `batch` | batches of requests |
//! | `container` | containers |
//! | `list` | lists of containers and blobs |
//! | `find` | finding blobs by their tags |
//! | `blob` | operations on blobs of all types |
//! | `read` | reading of blobs |
//! | `page` | page blobs |
//! | `block` | block blobs |
//! | `append` | append blobs |
//! | `copy`, `increment` | copies, and incremental ones |

mod account;
mod append;
mod batch;
mod blob;
mod block;
mod container;
mod copy;
mod find;
mod increment;
mod list;
mod page;
pub mod properties;
mod read;
mod recovery;
mod shared;

pub use shared::Service;

use crate::auth::{Caller, authenticate};
use crate::body::{Body, Reply};
use crate::fault::{Code, Fault, Result};
use crate::head::{Head, check_blob_name, check_container_name};
use crate::operation::Operation;
use crate::state::base;
use block::From;
use http::HeaderValue;
use shared::parse_metadata;
use std::rc::Rc;

impl Service {
    /// Executes a request.
    ///
    /// # Errors
    ///
    /// The error response.
    pub async fn answer(self: &Rc<Self>, head: &Head, body: &mut Body) -> Result<Reply> {
        let (operation, caller, only_new) = self.admit(head)?;
        if operation.needs_room() {
            self.journal.check_room().await.map_err(Fault::internal)?;
        }
        let own;
        let head = if only_new {
            // Permission to create only must not replace a blob that another request creates
            // meanwhile.
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
            Operation::GetServiceStats => {
                Err(Fault::query("comp", "stats", "the account has no secondary location"))
            }
            Operation::GetAccountInfo => Ok(account::info()),
            Operation::FindBlobs | Operation::FindBlobsInContainer => self.find_blobs(head),
            Operation::SubmitBatch => self.submit_batch(head, body).await,
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
            Operation::SealBlob => self.seal(head).await,
        }
    }

    /// Authenticates and authorises a request.
    fn admit(&self, head: &Head) -> Result<(Operation, Caller, bool)> {
        let state = self.state.borrow();
        let caller = authenticate(head, &self.accounts, &state.policies)?;
        if caller == Caller::Anonymous && !self.is_account(&head.target.account) {
            return Err(Code::NoAuthenticationInformation.into());
        }
        let operation = Operation::parse(head);
        let operation = match (operation, &caller) {
            (Ok(operation), _) => operation,
            // Without a signature, the response must not show what exists.
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
            return Err(Fault::query("snapshot", value, "snapshots are read-only"));
        }
        if let Some(name) = &head.target.container {
            check_container_name(name)?;
        }
        if let Some(name) = &head.target.blob {
            check_blob_name(name)?;
        }
        Ok((operation, caller, only_new))
    }
}

/// Runs all parsers of operations on a request, and returns the errors.
pub(crate) fn read_parts(head: &Head, body: &[u8]) -> Vec<Fault> {
    let refused = [
        read::request_range(head, 1 << 40).err(),
        page::check_sequence(head, 7).err(),
        blob::parse_tags(head).err(),
        parse_metadata(head).err(),
        container::parse_public(head).err(),
        container::parse_policies(body).err(),
        block::parse_block_list(body).err(),
        list::max_results(head).err(),
        list::read_marker(head).err(),
    ];
    refused.into_iter().flatten().collect()
}
