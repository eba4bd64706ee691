//! The mark of a volume that is being restored. It stands in its first bytes until everything else is
//! durable, so that nothing takes the volume for whole, and `weir backup run` does not back it up.

use crate::format::BackupId;

/// The bytes at the start of a volume that are written last.
pub const HEAD: u64 = 4096;
/// The bytes that a medium writes whole or not at all. The mark lies in the first of them.
pub(crate) const SECTOR: usize = 512;

const MAGIC: &[u8; 16] = b"WEIR RESTORING 1";
const ID_AT: usize = 16;
const CHECKSUM_AT: usize = 32;
/// The length of the mark.
const MARK: usize = 64;

/// Returns the first bytes of a volume of `size` bytes to which a backup is being restored.
pub(crate) fn mark(id: BackupId, size: u64) -> Vec<u8> {
    let mut head = vec![0; usize::try_from(HEAD).unwrap_or(MARK)];
    head[..ID_AT].copy_from_slice(MAGIC);
    head[ID_AT..CHECKSUM_AT].copy_from_slice(id.as_bytes());
    let checksum = blake3::hash(&head[..CHECKSUM_AT]);
    head[CHECKSUM_AT..MARK].copy_from_slice(checksum.as_bytes());
    head.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    head
}

/// Returns the backup of which the restore to a volume that starts with these bytes did not end.
pub(crate) fn marked(start: &[u8]) -> Option<BackupId> {
    let own = start.get(..MARK)?;
    let is_it = &own[..ID_AT] == MAGIC
        && *blake3::hash(&own[..CHECKSUM_AT]).as_bytes() == own[CHECKSUM_AT..];
    let mut id = [0; 16];
    id.copy_from_slice(&own[ID_AT..CHECKSUM_AT]);
    is_it.then(|| BackupId::from_bytes(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_recognised_and_nothing_else_is() {
        let id = BackupId::from_bytes([7; 16]);
        let head = mark(id, 1 << 30);
        assert_eq!((head.len(), marked(&head)), (4096, Some(id)));
        for at in 0..MARK {
            let mut other = head.clone();
            other[at] ^= 1;
            assert_eq!(marked(&other), None, "byte {at}");
        }
        assert_eq!(marked(&head[..MARK - 1]), None);
        assert_eq!(marked(&[0; 4096]), None);
        assert_eq!(mark(id, 100).len(), 100);
    }
}
