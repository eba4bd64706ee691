//! The persistent state of containers and blobs: one JSON record each in the journal.

use crate::auth::sas::Policy;
use crate::condition::{Etag, State};
use crate::lease::Lease;
use crate::tags::Tags;
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The access tier of block blobs that cannot be read.
pub(crate) const ARCHIVE: &str = "Archive";

/// Metadata; the names are in lower case.
pub type Metadata = BTreeMap<String, String>;

/// Public access to a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Public {
    /// No access without a signature.
    #[default]
    Private,
    /// Read access to blobs, but not to lists.
    Blob,
    /// Read access to blobs and lists.
    Container,
}

impl Public {
    /// Returns the value of `x-ms-blob-public-access`.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Private => None,
            Self::Blob => Some("blob"),
            Self::Container => Some("container"),
        }
    }
}

/// A container.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Container {
    /// Version of the record.
    pub etag: Etag,
    /// Time of the last change of the record, which changes of blobs do not affect.
    pub modified: Moment,
    /// User metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// Public access level.
    #[serde(default)]
    pub public: Public,
    /// Stored access policies.
    #[serde(default)]
    pub policies: Vec<Policy>,
    /// The lease, which protects the container from deletion.
    #[serde(default)]
    pub lease: Lease,
}

/// The headers stored with a blob and returned when it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentHeaders {
    /// `Content-Type`. `None` is the default type; an empty one was removed by Set Blob Properties.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub encoding: Option<String>,
    /// `Content-Language`.
    pub language: Option<String>,
    /// `Content-Disposition`.
    pub disposition: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Content-MD5` of the whole blob.
    pub md5: Option<String>,
}

/// A blob or a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Blob {
    /// Creation time.
    pub created: Moment,
    /// Time of the last change.
    pub modified: Moment,
    /// Version of the blob.
    pub etag: Etag,
    /// The headers returned when the blob is read.
    #[serde(default)]
    pub headers: ContentHeaders,
    /// User metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// Index tags.
    #[serde(default)]
    pub tags: Tags,
    /// The tier set by a client, if any.
    #[serde(default)]
    pub tier: Option<String>,
    /// Time at which the tier was set.
    #[serde(default)]
    pub tier_changed: Option<Moment>,
    /// The lease, which protects the blob from writes.
    #[serde(default)]
    pub lease: Lease,
    /// The last copy to this blob.
    #[serde(default)]
    pub copy: Option<Copied>,
    /// True for an append blob that is sealed. No blocks can be appended to it.
    #[serde(default)]
    pub sealed: bool,
    /// The location of the blob's bytes.
    pub content: Content,
}

/// The location of a blob's bytes, by type.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// A page blob.
    Page(PageContent),
    /// A block blob.
    Block(Blocks),
    /// An append blob, whose blocks only grow in number.
    Append(Blocks),
}

/// The location of a page blob's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageContent {
    /// Name of the volume.
    pub volume: String,
    /// Size in bytes.
    pub size: u64,
    /// The sequence number of the protocol.
    #[serde(default)]
    pub sequence: u64,
    /// The volume's snapshot number; `None` for a blob that is not a snapshot.
    #[serde(default)]
    pub snapshot: Option<u64>,
    /// State of the incremental copy, for a blob that is the target of one.
    #[serde(default)]
    pub incremental: Option<Increment>,
    /// Export name, if it differs from the volume's. A blob that replaces another takes over its
    /// export name.
    #[serde(default)]
    pub export: Option<String>,
    /// Pages have been written since this record was stored, so the ETag in it is out of date.
    #[serde(skip)]
    pub unclean: bool,
}

impl PageContent {
    /// Returns the name under which the blob is exported.
    pub(crate) fn exported_as(&self) -> &str {
        self.export.as_deref().unwrap_or(&self.volume)
    }

    /// Builds the content of a new blob of `size` bytes in `volume`.
    pub fn new(volume: String, size: u64, sequence: u64) -> Self {
        Self {
            volume,
            size,
            sequence,
            snapshot: None,
            incremental: None,
            export: None,
            unclean: false,
        }
    }
}

/// The state of an incremental copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Increment {
    /// The source's account, container and blob.
    pub source: [String; 3],
    /// The source's volume.
    pub volume: String,
    /// Time and number of the source's snapshot that was copied last.
    pub last: (Moment, u64),
    /// Time of the snapshot that this copy produced.
    pub made: Moment,
    /// A later copy has started and not finished.
    #[serde(default)]
    pub torn: bool,
}

/// The blocks of a block or append blob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    /// In the order of the blob's bytes.
    pub blocks: Vec<Block>,
}

impl Blocks {
    /// Returns the total length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.blocks.iter().map(|block| block.piece.len).sum()
    }

    /// Returns whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Block id in Base64; empty for a blob written in one request.
    pub id: String,
    /// Location of the bytes.
    pub piece: Piece,
}

/// A reference to stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Piece {
    /// The piece's number.
    pub id: u64,
    /// Length in bytes.
    pub len: u64,
}

/// The state of a copy to a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// Copy id.
    pub id: String,
    /// The source's URL without signature.
    pub source: String,
    /// Status.
    pub status: CopyStatus,
    /// Bytes copied so far, and in total.
    pub progress: (u64, u64),
    /// Time of completion.
    pub completed: Option<Moment>,
    /// Reason of a failure.
    pub description: Option<String>,
}

/// The status of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each says it")]
pub enum CopyStatus {
    Pending,
    Success,
    Aborted,
    Failed,
}

impl CopyStatus {
    /// Returns the value of `x-ms-copy-status`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }
}

impl Blob {
    /// Returns the properties that conditions are checked against.
    #[must_use]
    pub const fn state(&self) -> State<'_> {
        State { etag: self.etag, modified: self.modified, tags: &self.tags }
    }

    /// Returns the value of `x-ms-blob-type`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.content {
            Content::Page(_) => "PageBlob",
            Content::Block(_) => "BlockBlob",
            Content::Append(_) => "AppendBlob",
        }
    }

    /// Returns whether a copy to this blob is in progress.
    #[must_use]
    pub(crate) fn is_pending(&self) -> bool {
        self.copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending)
    }

    /// Returns whether the blob is in the archive tier, whose bytes cannot be read or changed.
    #[must_use]
    pub(crate) fn is_archived(&self) -> bool {
        matches!(self.content, Content::Block(_)) && self.tier.as_deref() == Some(ARCHIVE)
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.content {
            Content::Page(page) => page.size,
            Content::Block(blocks) | Content::Append(blocks) => blocks.len(),
        }
    }

    /// Returns whether the blob is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the content of a page blob.
    #[must_use]
    pub const fn page(&self) -> Option<&PageContent> {
        match &self.content {
            Content::Page(page) => Some(page),
            _ => None,
        }
    }

    /// Iterates over the pieces of the blob.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let blocks = match &self.content {
            Content::Page(_) => &[][..],
            Content::Block(blocks) | Content::Append(blocks) => &blocks.blocks[..],
        };
        blocks.iter().map(|block| block.piece)
    }
}

/// The key of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Present while the service runs; left over from a crash otherwise.
    Running,
    /// Properties of an account's service: account.
    Service(String),
    /// Container: account, name.
    Container(String, String),
    /// Blob or snapshot: account, container, name, time of the snapshot.
    Blob(String, String, String, Option<Moment>),
    /// Uncommitted block: account, container, blob, block id.
    Uncommitted(String, String, String, String),
}

impl Key {
    /// Encodes the key for the journal. Zero bytes separate the names, which contain none.
    #[must_use]
    pub fn encode(&self) -> String {
        match self {
            Self::Running => "r".to_owned(),
            Self::Service(account) => format!("s\0{account}"),
            Self::Container(account, name) => format!("c\0{account}\0{name}"),
            Self::Blob(account, container, name, snapshot) => {
                let snapshot = snapshot.map(|at| at.0.to_string()).unwrap_or_default();
                format!("b\0{account}\0{container}\0{name}\0{snapshot}")
            }
            Self::Uncommitted(account, container, name, block) => {
                format!("u\0{account}\0{container}\0{name}\0{block}")
            }
        }
    }

    /// Decodes the result of [`encode`](Self::encode).
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let parts: Vec<String> = text.split('\0').map(str::to_owned).collect();
        match parts.as_slice() {
            [kind] if kind == "r" => Some(Self::Running),
            [kind, account] if kind == "s" => Some(Self::Service(account.clone())),
            [kind, account, name] if kind == "c" => {
                Some(Self::Container(account.clone(), name.clone()))
            }
            [kind, account, container, name, last] => {
                let (account, container, name) = (account.clone(), container.clone(), name.clone());
                match (kind.as_str(), last.as_str()) {
                    ("b", "") => Some(Self::Blob(account, container, name, None)),
                    ("b", at) => {
                        Some(Self::Blob(account, container, name, Some(Moment(at.parse().ok()?))))
                    }
                    ("u", id) => Some(Self::Uncommitted(account, container, name, id.to_owned())),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip() {
        let name = |text: &str| text.to_owned();
        for key in [
            Key::Running,
            Key::Service(name("a")),
            Key::Container(name("a"), name("c")),
            Key::Blob(name("a"), name("c"), name("x/y z"), None),
            Key::Blob(name("a"), name("c"), name("ü"), Some(Moment(700))),
            Key::Uncommitted(name("a"), name("c"), name("x"), name("QUJD")),
        ] {
            assert_eq!(Key::decode(&key.encode()), Some(key));
        }
        assert_eq!(Key::decode("x\0y"), None);
    }
}
