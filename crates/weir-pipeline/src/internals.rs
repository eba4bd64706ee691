//! The lines that SQL Server writes into its error log about a backup under the trace flags 3004, 3014,
//! 3213 and 3605, as far as they follow from the layout.
//!
//! | line | rule | rests on |
//! |---|---|---|
//! | `BufferCount` | 5 for each device and 2 for each reader; before 2008 4 and 2 | all published outputs with a default count |
//! | `Sets of Buffers` | 3 if compressed | the same |
//! | `Total buffer space` | buffers x sets x `MaxTransferSize` | all but one, which has a stated count and disagrees with itself |
//! | `Media Buffer count` | `BufferCount`; twice a count that is stated, if compressed | the one output with a stated count |
//! | `Memory limit` | stated, or a 128th of the machine's memory | article 004: 895 MB of a machine with 112 GiB |
//!
//! For other published memory limits, the machine's memory is not known. One of 2008 is from a
//! 32-bit system, where address space is the limit.

use crate::buffers::{Buffers, MIN_TRANSFER};
use std::fmt;
use weir_units::Bytes;

/// The memory limit is this part of the machine's memory.
const LIMIT_PART: u64 = 128;
/// Buffers for each device before SQL Server 2008.
const OLD_PER_DEVICE: u32 = 4;
/// Buffers for each reader.
const PER_READER: u32 = 2;
/// Bytes of an extent, by which data is counted.
const EXTENT: u64 = 64 << 10;

/// Returns the memory limit of a machine with `memory`: a 128th of what the system sees, which is a
/// little less than what the machine has.
#[must_use]
pub fn memory_limit(memory: Bytes) -> Bytes {
    let mib = (memory.get().saturating_sub(1) / LIMIT_PART) >> 20;
    Bytes::mib(mib)
}

/// Returns the number of buffers before SQL Server 2008.
#[must_use]
pub fn old_buffer_count(readers: u32, devices: u32) -> u32 {
    OLD_PER_DEVICE.saturating_mul(devices).saturating_add(PER_READER.saturating_mul(readers))
}

/// The values that SQL Server logs of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Internals {
    /// The buffers.
    pub buffers: Buffers,
    /// The user states their number.
    pub is_stated: bool,
    /// The memory that all buffers may take, if it is known.
    pub memory_limit: Option<Bytes>,
    /// Bytes of data to back up, if they are known.
    pub data: Option<Bytes>,
    /// Pages are checked, and the stream has a checksum.
    pub has_checksum: bool,
    /// The backup is encrypted.
    pub is_encrypted: bool,
}

impl Internals {
    /// Returns whether the backup is compressed.
    #[must_use]
    pub const fn is_compressed(&self) -> bool {
        self.buffers.sets > 1
    }

    /// Returns the number of buffers that the media layer has.
    #[must_use]
    pub fn media_buffers(&self) -> u32 {
        match self.is_stated && self.is_compressed() {
            true => self.buffers.count.saturating_mul(2),
            false => self.buffers.count,
        }
    }

    /// Returns the number of buffers that compression writes to.
    #[must_use]
    pub fn encode_buffers(&self) -> Option<u32> {
        self.is_compressed().then_some(self.buffers.count)
    }

    /// Returns the estimated bytes of data, in whole extents.
    #[must_use]
    pub fn estimate(&self) -> Option<Bytes> {
        self.data.map(|data| Bytes::new(data.get().div_ceil(EXTENT).saturating_mul(EXTENT)))
    }
}

impl fmt::Display for Internals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = &self.buffers;
        let kib = own.max_transfer.get() >> 10;
        writeln!(f, "Backup: DBReaderCount = {}", own.readers)?;
        if let Some(limit) = self.memory_limit {
            writeln!(f, "Memory limit: {}MB", limit.get() >> 20)?;
        }
        writeln!(f, "BufferCount:                {}", own.count)?;
        writeln!(f, "Sets of Buffers:            {}", own.sets)?;
        writeln!(f, "MaxTransferSize:            {kib} KB")?;
        writeln!(f, "Min MaxTransferSize:        {} KB", MIN_TRANSFER.get() >> 10)?;
        writeln!(f, "Total buffer space:         {} MB", own.total().get() >> 20)?;
        writeln!(f, "Tabular data device count:  {}", own.readers)?;
        writeln!(f, "Fulltext data device count: 0")?;
        writeln!(f, "Filestream device count:    0")?;
        writeln!(f, "TXF device count:           0")?;
        writeln!(f, "Filesystem I/O alignment:   512")?;
        writeln!(f, "Media Buffer count:           {}", self.media_buffers())?;
        writeln!(f, "Media Buffer size:          {kib}KB")?;
        if let Some(count) = self.encode_buffers() {
            writeln!(f, "Encode Buffer count:        {count}")?;
        }
        writeln!(
            f,
            "Effective options: Checksum={}, Compression={}, Encryption={}, BufferCount={}, \
             MaxTransferSize={kib} KB",
            u8::from(self.has_checksum),
            u8::from(self.is_compressed()),
            u8::from(self.is_encrypted),
            own.count
        )?;
        if let Some(data) = self.estimate() {
            writeln!(f, "TotalSize={} bytes", data.get())?;
        }
        writeln!(f, "Number of data file readers = {}", own.readers)?;
        writeln!(f, "Shared Backup BufferQ count: {}", own.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::MAX_TRANSFER;

    fn internals(
        counts: (u32, u32),
        is_compressed: bool,
        max_transfer: Bytes,
        stated: Option<u32>,
    ) -> Internals {
        Internals {
            buffers: Buffers::new(counts, is_compressed, max_transfer, stated),
            is_stated: stated.is_some(),
            memory_limit: None,
            data: None,
            has_checksum: false,
            is_encrypted: false,
        }
    }

    /// The figures of an output: buffers, sets, MiB of all, media buffers and encode buffers.
    type Said = (u32, u32, u64, u32, Option<u32>);

    #[track_caller]
    fn check(own: &Internals, expect: Said) {
        let total = own.buffers.total().get() >> 20;
        let said = (own.buffers.count, own.buffers.sets, total);
        let said = (said.0, said.1, said.2, own.media_buffers(), own.encode_buffers());
        assert_eq!(said, expect);
    }

    #[test]
    fn published_outputs() {
        // 2005 SP2, one device: 6 buffers, 6 MiB.
        let count = old_buffer_count(1, 1);
        check(&internals((1, 1), false, MAX_TRANSFER, Some(count)), (6, 1, 6, 6, None));
        // 2008 (2010-12) and a server of 2012.
        check(&internals((1, 1), false, MAX_TRANSFER, None), (7, 1, 7, 7, None));
        // 2014 (2014-09-10) and 2014 or 2016, compressed.
        check(&internals((1, 1), true, MAX_TRANSFER, None), (7, 3, 21, 7, Some(7)));
        // Three devices.
        check(&internals((1, 3), true, MAX_TRANSFER, None), (17, 3, 51, 17, Some(17)));
        // A stated count. The output says 345 MiB, which 64 x 3 x 2 MiB is not.
        let own = internals((1, 3), true, Bytes::mib(2), Some(64));
        check(&own, (64, 3, 384, 128, Some(64)));
    }

    #[test]
    fn the_log_of_article_004_is_this_one() {
        let own = Internals {
            memory_limit: Some(memory_limit(Bytes::gib(112))),
            ..internals((4, 1), false, MAX_TRANSFER, None)
        };
        let published = "Backup: DBReaderCount = 4\n\
             Memory limit: 895MB\n\
             BufferCount:                13\n\
             Sets of Buffers:            1\n\
             MaxTransferSize:            1024 KB\n\
             Min MaxTransferSize:        64 KB\n\
             Total buffer space:         13 MB\n\
             Tabular data device count:  4\n\
             Fulltext data device count: 0\n\
             Filestream device count:    0\n\
             TXF device count:           0\n\
             Filesystem I/O alignment:   512\n\
             Media Buffer count:           13\n\
             Media Buffer size:          1024KB\n";
        let log = own.to_string();
        assert!(log.starts_with(published), "{log}");
    }

    #[test]
    fn data_is_estimated_in_whole_extents() {
        let own = Internals {
            data: Some(Bytes::new(1_295 * EXTENT - 1)),
            ..internals((1, 1), true, MAX_TRANSFER, None)
        };
        let log = own.to_string();
        assert!(log.contains("TotalSize=84869120 bytes\n"), "{log}");
        assert!(log.contains(
            "Effective options: Checksum=0, Compression=1, Encryption=0, BufferCount=7, MaxTransferSize=1024 KB\n"
        ));
    }
}
