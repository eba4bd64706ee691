//! Records of changes from arbitrary bytes.

use super::bitmap::Bitmap;
use super::record::Record;
use weir_units::Bytes;

/// The size of the volume to which the records belong.
const SIZE: Bytes = Bytes::gib(1);

/// Reads `data` as a record, with the right checksum if `is_repaired`. One that is read has the same
/// contents when it is written and read again.
pub(crate) fn record_bytes(data: &[u8], is_repaired: bool) {
    let mut content = data.to_vec();
    if is_repaired && let Some((covered, sum)) = content.split_last_chunk_mut::<4>() {
        *sum = crc32fast::hash(covered).to_le_bytes();
    }
    let Some(read) = Record::decode(&content, SIZE.get()) else { return };
    let written = Record::encode(read.base.as_deref(), &read.changed, SIZE.get());
    let again = Record::decode(&written, SIZE.get()).expect("a record that was just written");
    // Without a base, the changes mean nothing and are not written.
    assert_eq!(read.base, again.base);
    assert_eq!(written, Record::encode(again.base.as_deref(), &again.changed, SIZE.get()));
}

/// Returns a record as a seed.
pub(crate) fn seed() -> Vec<u8> {
    let changed = Bitmap::default();
    changed.set_range(3..70);
    changed.set_range(9_000..9_001);
    Record::encode(Some("backup-1"), &changed, SIZE.get())
}
