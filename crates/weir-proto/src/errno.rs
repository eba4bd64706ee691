//! The error numbers of NBD, which are those of Linux on every platform.

use core::fmt;

/// The error number of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Errno {
    /// `EPERM`: a write to a read-only export.
    Perm,
    /// `EIO`: the storage failed.
    Io,
    /// `ENOMEM`.
    NoMem,
    /// `EINVAL`: an invalid request.
    Inval,
    /// `ENOSPC`: no space left, or a write beyond the end.
    NoSpc,
    /// `EOVERFLOW`: too long for a single reply.
    Overflow,
    /// `ENOTSUP`: not supported, or not fast.
    NotSup,
    /// `ESHUTDOWN`: the server is shutting down.
    Shutdown,
}

impl Errno {
    /// All error numbers of the protocol.
    pub const ALL: [Self; 8] = [
        Self::Perm,
        Self::Io,
        Self::NoMem,
        Self::Inval,
        Self::NoSpc,
        Self::Overflow,
        Self::NotSup,
        Self::Shutdown,
    ];

    /// Returns the number on the wire.
    #[must_use]
    pub(crate) const fn to_wire(self) -> u32 {
        match self {
            Self::Perm => 1,
            Self::Io => 5,
            Self::NoMem => 12,
            Self::Inval => 22,
            Self::NoSpc => 28,
            Self::Overflow => 75,
            Self::NotSup => 95,
            Self::Shutdown => 108,
        }
    }

    /// Decodes a number. 0 is success; unknown numbers become [`Errno::Inval`], as the protocol
    /// requires.
    #[must_use]
    pub const fn from_wire(number: u32) -> Option<Self> {
        Some(match number {
            0 => return None,
            1 => Self::Perm,
            5 => Self::Io,
            12 => Self::NoMem,
            28 => Self::NoSpc,
            75 => Self::Overflow,
            95 => Self::NotSup,
            108 => Self::Shutdown,
            _ => Self::Inval,
        })
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Perm => "EPERM",
            Self::Io => "EIO",
            Self::NoMem => "ENOMEM",
            Self::Inval => "EINVAL",
            Self::NoSpc => "ENOSPC",
            Self::Overflow => "EOVERFLOW",
            Self::NotSup => "ENOTSUP",
            Self::Shutdown => "ESHUTDOWN",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_the_protocol() {
        let numbers = Errno::ALL.map(Errno::to_wire);
        assert_eq!(numbers, [1, 5, 12, 22, 28, 75, 95, 108]);
        for errno in Errno::ALL {
            assert_eq!(Errno::from_wire(errno.to_wire()), Some(errno));
        }
    }

    #[test]
    fn zero_is_success_and_unknown_numbers_are_einval() {
        assert_eq!(Errno::from_wire(0), None);
        assert_eq!(Errno::from_wire(11), Some(Errno::Inval));
        assert_eq!(Errno::from_wire(u32::MAX), Some(Errno::Inval));
    }
}
