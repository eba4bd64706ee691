//! The description of an export by its server.

use crate::error::ProtoError;
use crate::wire::{COMMON_PAYLOAD, MAX_PAYLOAD, flags};
use alloc::string::String;
use weir_units::Bytes;

flags! {
    /// Transmission flags. `HAS_FLAGS` is always set and [`SEND_DF`] follows from structured
    /// replies; the others are properties of the export.
    ///
    /// [`SEND_DF`]: TransmissionFlags::SEND_DF
    TransmissionFlags(u16) {
        /// Always set.
        HAS_FLAGS = 0;
        /// The export is read-only.
        READ_ONLY = 1;
        /// FLUSH is supported.
        SEND_FLUSH = 2;
        /// The FUA flag is supported.
        SEND_FUA = 3;
        /// The medium rotates.
        ROTATIONAL = 4;
        /// TRIM is supported.
        SEND_TRIM = 5;
        /// `WRITE_ZEROES` is supported.
        SEND_WRITE_ZEROES = 6;
        /// The DF flag is supported.
        SEND_DF = 7;
        /// A flush covers the writes of all connections.
        CAN_MULTI_CONN = 8;
        /// CACHE is supported.
        SEND_CACHE = 10;
        /// The `FAST_ZERO` flag is supported.
        SEND_FAST_ZERO = 11;
    }
}

flags! {
    /// The state of a range in `base:allocation`.
    BlockState(u32) {
        /// No space is allocated.
        HOLE = 0;
        /// Reads as zeroes.
        ZERO = 1;
    }
}

/// A range of an export with a uniform state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Length in bytes; never 0.
    pub length: u32,
    /// State of the range.
    pub state: BlockState,
}

/// The block sizes of an export, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    minimum: u32,
    preferred: u32,
    maximum: u32,
}

impl BlockSizes {
    /// The defaults of the protocol, with an explicit maximum: 1 byte, 4 KiB, 32 MiB.
    pub const DEFAULT: Self = Self { minimum: 1, preferred: 4096, maximum: COMMON_PAYLOAD };

    /// The same with the maximum of this crate, 64 MiB.
    pub const LARGEST: Self = Self { maximum: MAX_PAYLOAD, ..Self::DEFAULT };

    /// Builds block sizes. Offsets and lengths are multiples of `minimum` and preferably of
    /// `preferred`; reads and writes have at most `maximum` bytes.
    ///
    /// # Errors
    /// [`ProtoError::BlockSizes`] if the protocol does not permit the values. `minimum` is a power
    /// of two up to 64 KiB, `preferred` a power of two of at least `minimum`,
    /// `maximum` a multiple of `minimum` or [`u32::MAX`] (no limit).
    pub fn new(minimum: u32, preferred: u32, maximum: u32) -> Result<Self, ProtoError> {
        let fits = minimum.is_power_of_two()
            && minimum <= 65_536
            && preferred.is_power_of_two()
            && preferred >= minimum
            && maximum >= minimum
            && (maximum & (minimum - 1) == 0 || maximum == u32::MAX);
        if !fits {
            return Err(ProtoError::BlockSizes { minimum, preferred, maximum });
        }
        Ok(Self { minimum, preferred, maximum })
    }

    /// Returns the unit of offsets and lengths.
    #[must_use]
    pub const fn minimum(self) -> u32 {
        self.minimum
    }

    /// Returns the preferred unit of offsets and lengths.
    #[must_use]
    pub const fn preferred(self) -> u32 {
        self.preferred
    }

    /// Returns the maximum length of reads and writes that a server of this crate accepts.
    #[must_use]
    pub const fn max_payload(self) -> u32 {
        if self.maximum < MAX_PAYLOAD { self.maximum } else { MAX_PAYLOAD }
    }
}

impl Default for BlockSizes {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// An export as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Export name. A name of more than [`crate::wire::MAX_STRING`] bytes is not listed, because no
    /// client could request it.
    pub name: String,
    /// Description; may be empty.
    pub description: String,
    /// Current size. A server may resize it later.
    pub size: Bytes,
    /// Transmission flags.
    pub flags: TransmissionFlags,
    /// Block sizes.
    pub block: BlockSizes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[track_caller]
    fn check(sizes: (u32, u32, u32), fits: bool) {
        let got = BlockSizes::new(sizes.0, sizes.1, sizes.2);
        assert_eq!(got.is_ok(), fits, "{got:?}");
    }

    #[test]
    fn block_sizes_follow_the_protocol() {
        check((1, 4096, 32 << 20), true);
        check((512, 512, 512), true);
        check((65_536, 65_536, u32::MAX), true);
        check((0, 4096, 32 << 20), false);
        check((3, 4096, 32 << 20), false);
        check((131_072, 131_072, 32 << 20), false);
        check((512, 256, 32 << 20), false);
        check((512, 1000, 32 << 20), false);
        check((512, 4096, 1000), false);
        check((512, 4096, 0), false);
    }

    #[test]
    fn bad_block_sizes_are_named() {
        let error = BlockSizes::new(3, 4096, 8192).map_err(|e| e.to_string());
        assert_eq!(
            error,
            Err(
                "block sizes of minimum 3, preferred 4096 and maximum 8192 bytes are not allowed: \
                 the minimum is a power of two up to 65536, the preferred a power of two not \
                 below it, the maximum a multiple of it"
                    .to_string()
            )
        );
    }

    #[test]
    fn a_payload_is_never_longer_than_64_mib() {
        assert_eq!(BlockSizes::new(1, 4096, u32::MAX).map(BlockSizes::max_payload), Ok(64 << 20));
        assert_eq!(BlockSizes::LARGEST.max_payload(), 64 << 20);
        assert_eq!(BlockSizes::DEFAULT.max_payload(), 32 << 20);
        assert_eq!(BlockSizes::new(1, 4096, 65_536).map(BlockSizes::max_payload), Ok(65_536));
    }
}
