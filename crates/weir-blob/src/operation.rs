//! Which operation a request asks for, and what right it needs.

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
}

use Operation as Op;

impl Operation {
    /// The operation that a request asks for.
    ///
    /// # Errors
    ///
    /// [`Code::NotImplemented`] with its name for one that the service has and Weir has
    /// not, [`Code::UnsupportedHttpVerb`] for one that nobody has.
    pub fn of(head: &Head) -> Result<Self> {
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
            (None, _) => of_service(verb, &comp, &restype),
            (Some(_), None) => of_container(verb, &comp, &restype),
            (Some(_), Some(_)) => of_blob(verb, &comp, head),
        };
        found.ok_or_else(|| missing(&comp, &restype))
    }

    /// What it works on.
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
            | Op::ListBlobs => Level::Container,
            _ => Level::Object,
        }
    }

    /// The letters of which a signature must permit one. `makes` is whether there is no
    /// such blob yet.
    #[must_use]
    pub const fn letters(self, makes: bool) -> &'static str {
        match self {
            Op::ListContainers | Op::ListBlobs => "l",
            Op::FindBlobs => "f",
            Op::GetAccountInfo => "rwdlacut",
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
            // Nobody but the owner reads and writes who may do what.
            Op::GetContainerAcl | Op::SetContainerAcl => "",
            _ => "w",
        }
    }

    /// Whether it makes a blob, maybe over another.
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

    /// Whether it may be about a snapshot.
    #[must_use]
    pub const fn takes_snapshot(self) -> bool {
        matches!(
            self,
            Op::GetBlob
                | Op::GetBlobProperties
                | Op::GetTags
                | Op::DeleteBlob
                | Op::GetPageRanges
                | Op::GetBlockList
        )
    }

    /// Whether anybody may do it on what is so public.
    #[must_use]
    pub const fn is_public(self, public: Public) -> bool {
        match self {
            Op::GetBlob | Op::GetBlobProperties | Op::GetPageRanges | Op::GetBlockList => {
                !matches!(public, Public::Private)
            }
            Op::ListBlobs | Op::GetContainerProperties => matches!(public, Public::Container),
            _ => false,
        }
    }

    /// Refuses a caller that may not do it.
    ///
    /// # Errors
    ///
    /// [`Code::AuthorizationPermissionMismatch`] and its kin; who gave no signature learns
    /// no more of what is not public than of what is not there.
    pub fn authorize(self, caller: &Caller, public: Option<Public>, makes: bool) -> Result<()> {
        match caller {
            Caller::Owner => Ok(()),
            Caller::Signed(permits) => {
                let is_list = matches!(self, Op::ListBlobs);
                // A snapshot is read or deleted, whatever else the signature says.
                if permits.scope == Scope::Snapshot && !self.takes_snapshot() {
                    return Err(Code::AuthorizationPermissionMismatch.into());
                }
                permits.check(self.level(), self.letters(makes), is_list)
            }
            Caller::Anonymous if self.is_public(public.unwrap_or_default()) => Ok(()),
            Caller::Anonymous if matches!(self, Op::GetBlob | Op::GetBlobProperties) => {
                Err(Code::ResourceNotFound.into())
            }
            Caller::Anonymous => Err(Code::NoAuthenticationInformation.into()),
        }
    }
}

fn of_service(verb: &str, comp: &str, restype: &str) -> Option<Operation> {
    Some(match (verb, comp, restype) {
        ("GET", "list", "") => Op::ListContainers,
        ("GET", "properties", "service") => Op::GetServiceProperties,
        ("PUT", "properties", "service") => Op::SetServiceProperties,
        ("GET", "stats", "service") => Op::GetServiceStats,
        ("GET", "blobs", "") => Op::FindBlobs,
        _ => return None,
    })
}

fn of_container(verb: &str, comp: &str, restype: &str) -> Option<Operation> {
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
        ("GET", "blobs") => Op::FindBlobs,
        _ => return None,
    })
}

fn of_blob(verb: &str, comp: &str, head: &Head) -> Option<Operation> {
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
        _ => return None,
    })
}

/// What the service has and Weir has not, by its name in the reference.
fn missing(comp: &str, restype: &str) -> Fault {
    let name = match comp {
        "batch" => "Blob Batch",
        "undelete" if restype == "container" => "Restore Container",
        "undelete" => "Undelete Blob",
        "rename" => "Rename Container",
        "seal" => "Append Blob Seal",
        "expiry" => "Set Blob Expiry",
        "query" => "Query Blob Contents",
        "immutabilitypolicies" => "Set Blob Immutability Policy",
        "legalhold" => "Set Blob Legal Hold",
        "userdelegationkey" => "Get User Delegation Key",
        "block" | "appendblock" | "page" | "pagelist" | "lease" | "snapshot" | "copy" | "tier"
        | "tags" | "metadata" | "acl" | "list" | "properties" | "blocklist" | "incrementalcopy"
        | "" => {
            return Code::UnsupportedHttpVerb.into();
        }
        other => {
            return Fault::query("comp", other, "it is not an operation of the service");
        }
    };
    Fault::not_implemented(name)
}
