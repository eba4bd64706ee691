//! Blocks of the host cache.

use weir_store::Store;

pub(crate) use weir_core::CACHE_BLOCK as BLOCK;

/// The bytes of a block of the host cache.
pub(crate) type Block = [u8; 4096];
const _: () = assert!(size_of::<Block>() as u64 == BLOCK, "it is a block of the engine's cache");

/// Returns the bytes of a block before the end of the volume.
pub(super) fn inside(store: &dyn Store, block: u64) -> usize {
    within(store.size().get().saturating_sub(block * BLOCK).min(BLOCK))
}

/// Returns a position within a buffer in memory.
#[expect(clippy::cast_possible_truncation, reason = "within a buffer that is in memory")]
pub(super) fn within(n: u64) -> usize {
    n as usize
}
