//! The description of a whole backup, the same in every stripe.

use super::{BackupId, Encryption, Identity, Kind, VERSION};
use crate::error::BackupError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest manifest, in bytes.
pub const MAX_MANIFEST: u64 = 16 << 20;

/// The description of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub format: u16,
    /// The backup's id.
    pub id: BackupId,
    /// The backup's name.
    pub name: String,
    /// Full, differential or copy-only.
    pub kind: Kind,
    /// The full backup that a differential builds on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BackupId>,
    /// When the backup began, as Unix time in milliseconds.
    pub created_unix_ms: u64,
    /// The instant that its contents are of, if the sources were frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_unix_ms: Option<u64>,
    /// When the backup was complete.
    pub finished_unix_ms: u64,
    /// The program that wrote it, with its version.
    pub tool: String,
    /// How it was written.
    pub options: ManifestOptions,
    /// How it is encrypted, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Encryption>,
    /// The sources; frames refer to a source by its index.
    pub sources: Vec<ManifestSource>,
    /// The layout file of the sources, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The description of the database that the sources hold, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oltp: Option<String>,
    /// The stripes, in order.
    pub stripes: Vec<StripeSummary>,
}

/// How a backup was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestOptions {
    /// The level of zstd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<i32>,
    /// The longest transfer, in bytes.
    #[serde(default)]
    pub max_transfer: u64,
    /// Other settings, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, String>,
}

/// One source of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestSource {
    /// The export's name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its role in the layout, for example `log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its tier in the layout, for example `P30`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Attributes of the volume, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// The bytes of it that the frames hold, zeros included.
    #[serde(default)]
    pub raw_bytes: u64,
}

/// One stripe of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripeSummary {
    /// The number of frames.
    pub frames: u64,
    /// The bytes of the sources that they hold, zeros included.
    pub raw_bytes: u64,
    /// The bytes that they store.
    pub stored_bytes: u64,
    /// The length of the header and the frames: the manifest follows there.
    pub length: u64,
    /// The digest of the frames, in hexadecimal.
    pub digest: String,
}

impl Manifest {
    /// Begins a manifest with the facts of the identity.
    #[must_use]
    pub fn new(identity: &Identity, tool: String) -> Self {
        Self {
            format: VERSION,
            id: identity.id,
            name: identity.name.clone(),
            kind: identity.kind,
            base: identity.base,
            created_unix_ms: identity.created_unix_ms,
            frozen_unix_ms: None,
            finished_unix_ms: identity.created_unix_ms,
            tool,
            options: ManifestOptions::default(),
            encryption: identity.encryption.clone(),
            sources: Vec::new(),
            layout: None,
            oltp: None,
            stripes: Vec::new(),
        }
    }

    /// Writes the manifest as JSON.
    ///
    /// # Errors
    /// When it is longer than [`MAX_MANIFEST`].
    pub fn encode(&self) -> Result<Vec<u8>, BackupError> {
        let text = serde_json::to_vec(self).map_err(|source| BackupError::Codec {
            action: "writing the manifest",
            reason: source.to_string(),
        })?;
        if text.len() as u64 > MAX_MANIFEST {
            return Err(BackupError::Refused(format!(
                "the manifest has {} bytes, {MAX_MANIFEST} is the most: back up fewer sources at \
                 once",
                text.len()
            )));
        }
        Ok(text)
    }

    /// Returns the bytes of the sources that the backup holds.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.stripes.iter().fold(0, |sum, stripe| sum.saturating_add(stripe.raw_bytes))
    }

    /// Returns the bytes that the backup's frames store.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.stripes.iter().fold(0, |sum, stripe| sum.saturating_add(stripe.stored_bytes))
    }

    /// Returns the identity of the backup, which the headers of its stripes have too; `None` if
    /// no backup can have it.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        let identity = Identity {
            id: self.id,
            name: self.name.clone(),
            kind: self.kind,
            base: self.base,
            stripes: u8::try_from(self.stripes.len()).ok()?,
            created_unix_ms: self.created_unix_ms,
            encryption: self.encryption.clone(),
        };
        (self.format == VERSION && identity.check().is_ok()).then_some(identity)
    }
}
