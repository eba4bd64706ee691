//! Stripes and transfers of a backup.

use weir_units::{Bytes, BytesPerSec};

/// Numbers of stripes on each disk to try. Article 004 found four to be enough.
pub const STRIPES: [u64; 4] = [1, 2, 4, 8];
/// Transfer sizes to try: SQL Server's default, and up to its maximum.
pub const TRANSFERS: [Bytes; 3] = [Bytes::mib(1), Bytes::mib(2), Bytes::mib(4)];
/// Maximum number of stripes of a backup.
pub const MOST_STRIPES: u64 = 64;

/// The stripes on each disk, and the size of transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Stripes on each disk.
    pub stripes: u64,
    /// The largest transfer.
    pub transfer: Bytes,
    /// Highest rate at which the sources are read together.
    pub limit: Option<BytesPerSec>,
}

impl Settings {
    /// Lists the settings for `count` disks in order of preference: few stripes, then large
    /// transfers.
    pub fn all(count: u64) -> impl Iterator<Item = Self> {
        let stripes = STRIPES.into_iter().filter(move |own| own * count <= MOST_STRIPES);
        stripes.flat_map(|stripes| {
            let transfers = TRANSFERS.into_iter().rev();
            transfers.map(move |transfer| Self { stripes, transfer, limit: None })
        })
    }
}
