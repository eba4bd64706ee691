//! What is remembered of accounts, containers and blobs: one record each, kept in the
//! journal as JSON.

use crate::auth::sas::Policy;
use crate::condition::{Etag, State};
use crate::lease::Lease;
use crate::tags::Tags;
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Metadata, by names in lower case.
pub type Metadata = BTreeMap<String, String>;

/// Who may read without a signature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Public {
    /// Nobody.
    #[default]
    Private,
    /// Whoever knows a blob's name.
    Blob,
    /// Anybody, lists too.
    Container,
}

impl Public {
    /// As in `x-ms-blob-public-access`.
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
    /// Its state.
    pub etag: Etag,
    /// When it was last changed, its blobs apart.
    pub modified: Moment,
    /// Its metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// Who may read.
    #[serde(default)]
    pub public: Public,
    /// Policies that signatures refer to.
    #[serde(default)]
    pub policies: Vec<Policy>,
    /// Who may delete it.
    #[serde(default)]
    pub lease: Lease,
}

/// The headers that a blob is given out with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentHeaders {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub encoding: Option<String>,
    /// `Content-Language`.
    pub language: Option<String>,
    /// `Content-Disposition`.
    pub disposition: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Content-MD5`, of all of it.
    pub md5: Option<String>,
}

/// A blob, or a snapshot of one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Blob {
    /// When it was made.
    pub created: Moment,
    /// When it was last changed.
    pub modified: Moment,
    /// Its state.
    pub etag: Etag,
    /// The headers that it is given out with.
    #[serde(default)]
    pub headers: ContentHeaders,
    /// Its metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// Its tags.
    #[serde(default)]
    pub tags: Tags,
    /// The tier that was asked for.
    #[serde(default)]
    pub tier: Option<String>,
    /// When that was.
    #[serde(default)]
    pub tier_changed: Option<Moment>,
    /// Who may write.
    #[serde(default)]
    pub lease: Lease,
    /// The last copy to it.
    #[serde(default)]
    pub copy: Option<Copied>,
    /// Its bytes.
    pub content: Content,
}

/// Where a blob's bytes are.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// In a volume.
    Page(PageContent),
    /// In blocks.
    Block(Blocks),
    /// In blocks that only grow in number.
    Append(Blocks),
}

/// The bytes of a page blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageContent {
    /// The volume.
    pub volume: String,
    /// Its size in bytes.
    pub size: u64,
    /// The sequence number.
    #[serde(default)]
    pub sequence: u64,
    /// Of a snapshot: its number in the volume.
    #[serde(default)]
    pub snapshot: Option<u64>,
    /// Of a blob that is only copied to by increments: what was copied last.
    #[serde(default)]
    pub incremental: Option<Increment>,
    /// What it is exported as, if not as its volume is called: a blob that was made over
    /// another takes over its name.
    #[serde(default)]
    pub export: Option<String>,
    /// Pages were written since this was recorded: its ETag is not what it was.
    #[serde(skip)]
    pub unclean: bool,
}

impl PageContent {
    /// What it is exported as.
    pub fn exported_as(&self) -> &str {
        self.export.as_deref().unwrap_or(&self.volume)
    }

    /// The pages of a new blob, `size` bytes in `volume`.
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

/// How far an incremental copy has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Increment {
    /// The source: account, container, blob.
    pub source: [String; 3],
    /// The volume that it was in.
    pub volume: String,
    /// The source's snapshot that was copied last: its time and its number.
    pub last: (Moment, u64),
    /// The snapshot that was made of it then.
    pub made: Moment,
    /// A later copy has begun and not come to its end.
    #[serde(default)]
    pub torn: bool,
}

/// The bytes of a block or append blob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    /// In order.
    pub blocks: Vec<Block>,
}

impl Blocks {
    /// How many bytes they are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.blocks.iter().map(|block| block.piece.len).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its id in Base64; none if it came with all of its blob.
    pub id: String,
    /// Its bytes.
    pub piece: Piece,
}

/// Bytes that are kept under a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Piece {
    /// The number.
    pub id: u64,
    /// How many bytes.
    pub len: u64,
}

/// A copy to a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// Its id.
    pub id: String,
    /// The source's URL, without a signature.
    pub source: String,
    /// How it stands.
    pub status: CopyStatus,
    /// Bytes that are there, and all bytes.
    pub progress: (u64, u64),
    /// When it ended.
    pub completed: Option<Moment>,
    /// Why it failed.
    pub description: Option<String>,
}

/// How a copy stands.
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
    /// As in `x-ms-copy-status`.
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
    /// What conditions are held against.
    #[must_use]
    pub const fn state(&self) -> State<'_> {
        State { etag: self.etag, modified: self.modified, tags: &self.tags }
    }

    /// As in `x-ms-blob-type`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.content {
            Content::Page(_) => "PageBlob",
            Content::Block(_) => "BlockBlob",
            Content::Append(_) => "AppendBlob",
        }
    }

    /// Whether a copy to it is under way.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending)
    }

    /// Its bytes' number.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.content {
            Content::Page(page) => page.size,
            Content::Block(blocks) | Content::Append(blocks) => blocks.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its pages.
    #[must_use]
    pub const fn page(&self) -> Option<&PageContent> {
        match &self.content {
            Content::Page(page) => Some(page),
            _ => None,
        }
    }

    /// The pieces that it refers to.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let blocks = match &self.content {
            Content::Page(_) => &[][..],
            Content::Block(blocks) | Content::Append(blocks) => &blocks.blocks[..],
        };
        blocks.iter().map(|block| block.piece)
    }
}

/// What is remembered, under its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The service runs, or ended without a word.
    Running,
    /// The properties of an account's service.
    Service(String),
    /// A container of an account.
    Container(String, String),
    /// A blob of a container, or a snapshot of it.
    Blob(String, String, String, Option<Moment>),
    /// A block that is not in a blob yet: its blob, and its id.
    Uncommitted(String, String, String, String),
}

impl Key {
    /// As it stands in the journal. No name has a zero byte.
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

    /// Reads what [`encode`](Self::encode) wrote.
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
    fn keys_are_read_as_they_were_written() {
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
