//! The operations of the service: parsing from requests, and authorisation.

use crate::auth::Caller;
use crate::auth::sas::{Level, Scope};
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use crate::record::Public;
use http::Method;

/// An operation of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is called as in the reference")]
pub enum Operation {
    ListContainers,
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    GetAccountInfo,
    FindBlobs,
    FindBlobsInContainer,
    SubmitBatch,
    CreateContainer,
    GetContainerProperties,
    SetContainerMetadata,
    GetContainerAcl,
    SetContainerAcl,
    LeaseContainer,
    DeleteContainer,
    ListBlobs,
    PutBlob,
    PutBlobFromUrl,
    GetBlob,
    GetBlobProperties,
    SetBlobProperties,
    SetBlobMetadata,
    GetTags,
    SetTags,
    LeaseBlob,
    SnapshotBlob,
    CopyBlob,
    AbortCopy,
    DeleteBlob,
    SetTier,
    PutPage,
    PutPageFromUrl,
    GetPageRanges,
    IncrementalCopy,
    PutBlock,
    PutBlockFromUrl,
    PutBlockList,
    GetBlockList,
    AppendBlock,
    AppendBlockFromUrl,
    SealBlob,
}

use Operation as Op;

impl Operation {
    /// Parses the operation that a request asks for.
    ///
    /// # Errors
    ///
    /// [`Code::NotImplemented`] with the name of an operation that Weir does not support,
    /// [`Code::UnsupportedHttpVerb`] for a request that is no operation of the service.
    pub fn parse(head: &Head) -> Result<Self> {
        let comp = head.param("comp").unwrap_or_default().to_ascii_lowercase();
        let restype = head.param("restype").unwrap_or_default().to_ascii_lowercase();
        let verb = match head.method {
            Method::GET => "GET",
            Method::HEAD => "HEAD",
            Method::PUT => "PUT",
            Method::DELETE => "DELETE",
            Method::POST => "POST",
            _ => return Err(Code::UnsupportedHttpVerb.into()),
        };
        if restype == "account" && comp == "properties" && matches!(verb, "GET" | "HEAD") {
            return Ok(Op::GetAccountInfo);
        }
        let found = match (&head.target.container, &head.target.blob) {
            (None, _) => service_operation(verb, &comp, &restype),
            (Some(_), None) => container_operation(verb, &comp, &restype),
            (Some(_), Some(_)) => blob_operation(verb, &comp, head),
        };
        found.ok_or_else(|| missing(&comp, &restype))
    }

    /// Returns whether the operation stores records, for which a full disk has no space.
    #[must_use]
    pub const fn needs_room(self) -> bool {
        !matches!(
            self,
            Op::ListContainers
                | Op::GetServiceProperties
                | Op::GetServiceStats
                | Op::GetAccountInfo
                | Op::FindBlobs
                | Op::FindBlobsInContainer
                | Op::SubmitBatch
                | Op::GetContainerProperties
                | Op::GetContainerAcl
                | Op::DeleteContainer
                | Op::ListBlobs
                | Op::GetBlob
                | Op::GetBlobProperties
                | Op::GetTags
                | Op::AbortCopy
                | Op::DeleteBlob
                | Op::PutPage
                | Op::PutPageFromUrl
                | Op::GetPageRanges
                | Op::GetBlockList
        )
    }

    /// Returns the resource type.
    #[must_use]
    pub const fn level(self) -> Level {
        match self {
            Op::ListContainers
            | Op::GetServiceProperties
            | Op::SetServiceProperties
            | Op::GetServiceStats
            | Op::GetAccountInfo
            | Op::FindBlobs => Level::Service,
            Op::CreateContainer
            | Op::GetContainerProperties
            | Op::SetContainerMetadata
            | Op::GetContainerAcl
            | Op::SetContainerAcl
            | Op::LeaseContainer
            | Op::DeleteContainer
            | Op::ListBlobs
            | Op::FindBlobsInContainer => Level::Container,
            Op::SubmitBatch => Level::Any,
            _ => Level::Object,
        }
    }

    /// Returns the permission letters, one of which a signature needs. `makes` is whether the blob
    /// does not exist yet.
    #[must_use]
    pub const fn letters(self, makes: bool) -> &'static str {
        match self {
            Op::ListContainers | Op::ListBlobs => "l",
            Op::FindBlobs | Op::FindBlobsInContainer => "f",
            // Each request of a batch has its own signature.
            Op::GetAccountInfo | Op::SubmitBatch => "rwdlacuptf",
            Op::GetTags | Op::SetTags => "t",
            Op::DeleteContainer | Op::DeleteBlob => "d",
            Op::CreateContainer | Op::SnapshotBlob => "cw",
            Op::AppendBlock | Op::AppendBlockFromUrl => "aw",
            Op::LeaseBlob | Op::LeaseContainer => "wd",
            _ if makes && self.makes() => "cw",
            Op::GetServiceProperties
            | Op::GetServiceStats
            | Op::GetContainerProperties
            | Op::GetBlob
            | Op::GetBlobProperties
            | Op::GetPageRanges
            | Op::GetBlockList => "r",
            // Only the owner may read or change access policies.
            Op::GetContainerAcl | Op::SetContainerAcl => "",
            _ => "w",
        }
    }

    /// Returns whether the operation creates or replaces a blob.
    #[must_use]
    pub const fn makes(self) -> bool {
        matches!(
            self,
            Op::PutBlob
                | Op::PutBlobFromUrl
                | Op::PutBlockList
                | Op::CopyBlob
                | Op::IncrementalCopy
        )
    }

    /// Returns whether the operation applies to snapshots.
    #[must_use]
    pub(crate) const fn takes_snapshot(self) -> bool {
        matches!(
            self,
            Op::GetBlob
                | Op::GetBlobProperties
                | Op::GetTags
                | Op::SetTags
                | Op::DeleteBlob
                | Op::GetPageRanges
                | Op::GetBlockList
        )
    }

    /// Returns whether public access of this level includes the operation.
    #[must_use]
    pub(crate) const fn is_public(self, public: Public) -> bool {
        match self {
            Op::GetBlob | Op::GetBlobProperties | Op::GetPageRanges | Op::GetBlockList => {
                !matches!(public, Public::Private)
            }
            Op::ListBlobs | Op::GetContainerProperties => matches!(public, Public::Container),
            _ => false,
        }
    }

    /// Checks that a caller may execute the operation.
    ///
    /// # Errors
    ///
    /// [`Code::AuthorizationPermissionMismatch`] and related codes. Without a signature, a private
    /// resource and a missing one give the same code.
    pub(crate) fn authorize(
        self,
        caller: &Caller,
        public: Option<Public>,
        makes: bool,
    ) -> Result<()> {
        match caller {
            Caller::Owner => Ok(()),
            Caller::Signed(permits) => {
                let only_lists = matches!(self, Op::ListBlobs | Op::FindBlobsInContainer);
                // A signature for a snapshot permits reading and deleting it, whatever else it
                // lists.
                if permits.scope == Scope::Snapshot && !self.takes_snapshot() {
                    return Err(Code::AuthorizationPermissionMismatch.into());
                }
                permits.check(self.level(), self.letters(makes), only_lists)
            }
            Caller::Anonymous if self.is_public(public.unwrap_or_default()) => Ok(()),
            Caller::Anonymous if matches!(self, Op::GetBlob | Op::GetBlobProperties) => {
                Err(Code::ResourceNotFound.into())
            }
            Caller::Anonymous => Err(Code::NoAuthenticationInformation.into()),
        }
    }
}

fn service_operation(verb: &str, comp: &str, restype: &str) -> Option<Operation> {
    Some(match (verb, comp, restype) {
        ("GET", "list", "") => Op::ListContainers,
        ("GET", "properties", "service") => Op::GetServiceProperties,
        ("PUT", "properties", "service") => Op::SetServiceProperties,
        ("GET", "stats", "service") => Op::GetServiceStats,
        ("GET", "blobs", "") => Op::FindBlobs,
        // The SDK for JavaScript takes an account in the path for a container.
        ("POST", "batch", "" | "container") => Op::SubmitBatch,
        _ => return None,
    })
}

fn container_operation(verb: &str, comp: &str, restype: &str) -> Option<Operation> {
    if restype != "container" {
        return None;
    }
    Some(match (verb, comp) {
        ("PUT", "") => Op::CreateContainer,
        ("GET" | "HEAD", "" | "metadata") => Op::GetContainerProperties,
        ("PUT", "metadata") => Op::SetContainerMetadata,
        ("GET" | "HEAD", "acl") => Op::GetContainerAcl,
        ("PUT", "acl") => Op::SetContainerAcl,
        ("PUT", "lease") => Op::LeaseContainer,
        ("DELETE", "") => Op::DeleteContainer,
        ("GET", "list") => Op::ListBlobs,
        ("GET", "blobs") => Op::FindBlobsInContainer,
        ("POST", "batch") => Op::SubmitBatch,
        _ => return None,
    })
}

fn blob_operation(verb: &str, comp: &str, head: &Head) -> Option<Operation> {
    let copies = head.header("x-ms-copy-source").is_some();
    Some(match (verb, comp) {
        ("PUT", "") if copies && head.header("x-ms-blob-type").is_some() => Op::PutBlobFromUrl,
        ("PUT", "") if copies => Op::CopyBlob,
        ("PUT", "") => Op::PutBlob,
        ("GET", "") => Op::GetBlob,
        ("HEAD", "" | "metadata") | ("GET", "metadata") => Op::GetBlobProperties,
        ("DELETE", "") => Op::DeleteBlob,
        ("PUT", "properties") => Op::SetBlobProperties,
        ("PUT", "metadata") => Op::SetBlobMetadata,
        ("GET", "tags") => Op::GetTags,
        ("PUT", "tags") => Op::SetTags,
        ("PUT", "lease") => Op::LeaseBlob,
        ("PUT", "snapshot") => Op::SnapshotBlob,
        ("PUT", "copy") => Op::AbortCopy,
        ("PUT", "tier") => Op::SetTier,
        ("PUT", "page") if copies => Op::PutPageFromUrl,
        ("PUT", "page") => Op::PutPage,
        ("GET", "pagelist") => Op::GetPageRanges,
        ("PUT", "incrementalcopy") => Op::IncrementalCopy,
        ("PUT", "block") if copies => Op::PutBlockFromUrl,
        ("PUT", "block") => Op::PutBlock,
        ("PUT", "blocklist") => Op::PutBlockList,
        ("GET", "blocklist") => Op::GetBlockList,
        ("PUT", "appendblock") if copies => Op::AppendBlockFromUrl,
        ("PUT", "appendblock") => Op::AppendBlock,
        ("PUT", "seal") => Op::SealBlob,
        _ => return None,
    })
}

/// Builds the error for an operation of the service that Weir does not support.
fn missing(comp: &str, restype: &str) -> Fault {
    let name = match comp {
        "undelete" if restype == "container" => "Restore Container",
        "undelete" => "Undelete Blob",
        "rename" => "Rename Container",
        "expiry" => "Set Blob Expiry",
        "query" => "Query Blob Contents",
        "immutabilitypolicies" => "Set Blob Immutability Policy",
        "legalhold" => "Set Blob Legal Hold",
        "userdelegationkey" => {
            return Fault::unauthenticated("Only authentication scheme Bearer is supported");
        }
        "block" | "appendblock" | "page" | "pagelist" | "lease" | "snapshot" | "copy" | "tier"
        | "tags" | "metadata" | "acl" | "list" | "properties" | "blocklist" | "incrementalcopy"
        | "seal" | "batch" | "" => {
            return Code::UnsupportedHttpVerb.into();
        }
        other => {
            return Fault::query("comp", other, "it is not an operation of the service");
        }
    };
    Fault::not_implemented(name)
}
