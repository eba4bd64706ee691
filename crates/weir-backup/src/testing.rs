//! Small servers and disks for tests.
//!
//! | module | holds |
//! |---|---|
//! | [`nbd`] | an export of a store, which notes each change |
//! | [`http`] | an endpoint that answers as a test says |
//! | [`power`] | files that lose power |

pub(crate) mod http;
pub(crate) mod nbd;
pub(crate) mod power;

use crate::format::{BackupId, Identity, Kind};
use crate::key::Key;
use crate::memory::{self, MemorySource};
use std::path::Path;
use std::sync::Arc;

/// Returns the identity of a backup named `s`; a differential if it has a base.
pub(crate) fn identity(id: u8, stripes: u8, base: Option<u8>) -> Identity {
    Identity {
        id: BackupId::from_bytes([id; 16]),
        name: "s".to_owned(),
        kind: if base.is_some() { Kind::Differential } else { Kind::Full },
        base: base.map(|base| BackupId::from_bytes([base; 16])),
        stripes,
        created_unix_ms: 1,
        encryption: None,
    }
}

/// Returns a source of a size, which is full of one byte.
pub(crate) fn source(name: &str, size: usize, byte: u8) -> MemorySource {
    MemorySource { name: name.to_owned(), size: size as u64, ranges: vec![(0, vec![byte; size])] }
}

/// Writes the stripe files of a backup into a folder.
pub(crate) fn store(
    folder: &Path,
    identity: &Identity,
    sources: &[MemorySource],
    key: Option<&Arc<Key>>,
) {
    let stripes = memory::write(identity, sources, 4096, None, key).unwrap();
    for (stripe, bytes) in (0..).zip(stripes) {
        std::fs::write(folder.join(identity.file_name(stripe)), bytes).unwrap();
    }
}
