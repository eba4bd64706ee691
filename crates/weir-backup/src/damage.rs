//! The names of what can be wrong with a backup.

use crate::format::{BackupId, FrameAddress, FrameFault};
use std::fmt;
use weir_report::number::grouped;

/// One thing that is wrong with a backup. Stripes count from 0 here and from 1 in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// No file, region or blob holds this stripe.
    Missing {
        /// The stripe.
        stripe: u8,
        /// The number of stripes.
        stripes: u8,
    },
    /// A stripe has no valid footer at its end: it is truncated or was never completed.
    Truncated {
        /// The stripe.
        stripe: u8,
        /// Its file, export or blob.
        name: String,
        /// Its length.
        length: u64,
        /// The length that it should have, if another stripe's manifest says so.
        expected: Option<u64>,
    },
    /// A stripe has bytes behind its footer.
    Trailing {
        /// The stripe.
        stripe: u8,
        /// Its file, export or blob.
        name: String,
        /// The number of bytes.
        extra: u64,
    },
    /// The name of a file says another stripe than its contents.
    Swapped {
        /// The stripe that it holds.
        stripe: u8,
        /// The file.
        name: String,
        /// The stripe that its name says.
        named: u8,
    },
    /// A file of this backup's name holds a stripe of another backup.
    Stale {
        /// The file, export or blob.
        name: String,
        /// The stripe that its name says.
        named: Option<u8>,
        /// The backup that it belongs to.
        id: BackupId,
    },
    /// A file of this backup's name holds nothing that can be recognised.
    Unknown {
        /// The file, export or blob.
        name: String,
        /// The stripe that its name says.
        named: Option<u8>,
        /// Its length.
        length: u64,
    },
    /// Two files hold the same stripe. The other one is used.
    Duplicate {
        /// The stripe.
        stripe: u8,
        /// The file that is not used.
        name: String,
    },
    /// The header of a stripe is damaged. The manifest has the same facts.
    Header {
        /// The stripe.
        stripe: u8,
        /// Its file, export or blob.
        name: String,
    },
    /// The manifest of a stripe is damaged, or differs from that of the others.
    Manifest {
        /// The stripe.
        stripe: u8,
        /// Its file, export or blob.
        name: String,
    },
    /// The footer of a stripe of an encrypted backup was not written with its key.
    Signature {
        /// The stripe.
        stripe: u8,
        /// Its file, export or blob.
        name: String,
    },
    /// A frame is damaged.
    Frame {
        /// Where it is and where its contents belong.
        address: FrameAddress,
        /// The length of its contents.
        length: u64,
        /// The damage.
        fault: FrameDamage,
    },
    /// Frames are gone, with their addresses.
    Lost {
        /// The stripe.
        stripe: u8,
        /// The first of them.
        first: u64,
        /// Their number.
        count: u64,
    },
    /// Bytes that belong to no frame stand between frames, or a frame stands there again.
    Extra {
        /// The stripe.
        stripe: u8,
        /// Where they begin in the stripe.
        position: u64,
        /// Their number.
        length: u64,
    },
    /// Each frame is sound, and they are not the frames that the manifest lists.
    Digest {
        /// The stripe.
        stripe: u8,
        /// Its file, export or blob.
        name: String,
    },
    /// The medium of a stripe fails.
    Unreadable {
        /// The stripe.
        stripe: u8,
        /// Its file, export or blob.
        name: String,
        /// Where it failed.
        position: u64,
        /// The reason.
        reason: String,
    },
}

/// The part of a frame that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameDamage {
    /// The header at its start; the one at its end is sound, and so are the contents.
    Header,
    /// The header at its end; the one at its start is sound, and so are the contents.
    End,
    /// The zeros that fill it up.
    Padding,
    /// The frame reaches beyond the end of the stripe.
    Cut,
    /// It names a source or a range that the manifest does not have.
    Outside,
    /// Its contents.
    Contents(FrameFault),
}

impl FrameDamage {
    const fn loses_data(self) -> bool {
        !matches!(self, Self::Header | Self::End | Self::Padding)
    }
}

impl fmt::Display for FrameDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("its header is damaged, its contents are sound"),
            Self::End => f.write_str("the copy of its header is damaged, its contents are sound"),
            Self::Padding => f.write_str("its padding is damaged, its contents are sound"),
            Self::Cut => f.write_str("it is cut off"),
            Self::Outside => f.write_str("it belongs to no range of a source"),
            Self::Contents(fault) => fault.fmt(f),
        }
    }
}

impl Damage {
    /// Returns the name of the kind of damage.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::Truncated { .. } => "truncated",
            Self::Trailing { .. } => "trailing",
            Self::Swapped { .. } => "swapped",
            Self::Stale { .. } => "stale",
            Self::Unknown { .. } => "unknown",
            Self::Duplicate { .. } => "duplicate",
            Self::Header { .. } => "header",
            Self::Manifest { .. } => "manifest",
            Self::Signature { .. } => "signature",
            Self::Frame { .. } => "frame",
            Self::Lost { .. } => "lost",
            Self::Extra { .. } => "extra",
            Self::Digest { .. } => "digest",
            Self::Unreadable { .. } => "unreadable",
        }
    }

    /// Returns the stripe that it is in, from 0, if it is in one of this backup.
    #[must_use]
    pub const fn stripe(&self) -> Option<u8> {
        match self {
            Self::Missing { stripe, .. }
            | Self::Truncated { stripe, .. }
            | Self::Trailing { stripe, .. }
            | Self::Swapped { stripe, .. }
            | Self::Duplicate { stripe, .. }
            | Self::Header { stripe, .. }
            | Self::Manifest { stripe, .. }
            | Self::Signature { stripe, .. }
            | Self::Lost { stripe, .. }
            | Self::Extra { stripe, .. }
            | Self::Digest { stripe, .. }
            | Self::Unreadable { stripe, .. } => Some(*stripe),
            Self::Frame { address, .. } => Some(address.stripe),
            Self::Stale { named, .. } | Self::Unknown { named, .. } => *named,
        }
    }

    /// Returns whether contents are lost by it, or the backup cannot be trusted to be complete.
    #[must_use]
    pub const fn loses_data(&self) -> bool {
        match self {
            Self::Missing { .. }
            | Self::Truncated { .. }
            | Self::Signature { .. }
            | Self::Lost { .. }
            | Self::Digest { .. }
            | Self::Unreadable { .. } => true,
            Self::Frame { fault, .. } => fault.loses_data(),
            Self::Trailing { .. }
            | Self::Swapped { .. }
            | Self::Stale { .. }
            | Self::Unknown { .. }
            | Self::Duplicate { .. }
            | Self::Header { .. }
            | Self::Manifest { .. }
            | Self::Extra { .. } => false,
        }
    }

    /// Returns the number of frames that are lost by it.
    #[must_use]
    pub const fn lost_frames(&self) -> u64 {
        match self {
            Self::Frame { fault, .. } if fault.loses_data() => 1,
            Self::Lost { count, .. } => *count,
            _ => 0,
        }
    }
}

/// A stripe as people count it.
struct Number(u8);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stripe {}", u16::from(self.0) + 1)
    }
}

impl fmt::Display for Damage {
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of damage")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { stripe, stripes } => {
                write!(f, "{} of {stripes} is missing", Number(*stripe))
            }
            Self::Truncated { stripe, name, length, expected } => {
                let own = Number(*stripe);
                let has = grouped(*length);
                match expected {
                    Some(expected) if expected > length => {
                        let expected = grouped(*expected);
                        write!(
                            f,
                            "{own} ({name}) is truncated: {has} of {expected} bytes, no footer"
                        )
                    }
                    _ => write!(f, "{own} ({name}) is truncated: {has} bytes without a footer"),
                }
            }
            Self::Trailing { stripe, name, extra } => {
                let (own, extra) = (Number(*stripe), grouped(*extra));
                write!(f, "{own} ({name}) has {extra} bytes behind its footer")
            }
            Self::Swapped { stripe, name, named } => {
                let (own, named) = (Number(*stripe), Number(*named));
                write!(f, "swapped: {name} is named {named} and holds {own}")
            }
            Self::Stale { name, named, id } => {
                write!(f, "stale: {name}")?;
                if let Some(named) = named {
                    write!(f, ", named {},", Number(*named))?;
                }
                write!(f, " holds a stripe of another backup, {id}")
            }
            Self::Unknown { name, named, length } => {
                write!(f, "{name}")?;
                if let Some(named) = named {
                    write!(f, ", named {},", Number(*named))?;
                }
                let length = grouped(*length);
                write!(f, " is not a stripe: {length} bytes without a valid header and footer")
            }
            Self::Duplicate { stripe, name } => {
                write!(f, "{} is there twice: {name} is not used", Number(*stripe))
            }
            Self::Header { stripe, name } => {
                write!(f, "the header of {} ({name}) is damaged", Number(*stripe))
            }
            Self::Manifest { stripe, name } => {
                write!(f, "the manifest of {} ({name}) is damaged", Number(*stripe))
            }
            Self::Signature { stripe, name } => write!(
                f,
                "the footer of {} ({name}) was not written with the backup's key",
                Number(*stripe)
            ),
            Self::Frame { address, length, fault } => write!(
                f,
                "frame {} of {} ({} bytes at offset {} of source {}): {fault}",
                grouped(address.sequence),
                Number(address.stripe),
                grouped(*length),
                grouped(address.offset),
                address.source
            ),
            Self::Lost { stripe, first, count } => {
                let last = first.saturating_add(count.saturating_sub(1));
                let (first, last) = (grouped(*first), grouped(last));
                write!(f, "frames {first} to {last} of {} are gone", Number(*stripe))
            }
            Self::Extra { stripe, position, length } => {
                let (own, length) = (Number(*stripe), grouped(*length));
                write!(f, "{length} bytes at {} of {own} belong to no frame", grouped(*position))
            }
            Self::Digest { stripe, name } => write!(
                f,
                "the frames of {} ({name}) are not those that the manifest lists",
                Number(*stripe)
            ),
            Self::Unreadable { stripe, name, position, reason } => {
                let (own, position) = (Number(*stripe), grouped(*position));
                write!(f, "{own} ({name}) cannot be read at {position}: {reason}")
            }
        }
    }
}
