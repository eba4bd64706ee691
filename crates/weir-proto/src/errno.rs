//! The error numbers that NBD sends. They are Linux's, on every platform.

use core::fmt;

/// Why a request failed, in the words of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Errno {
    /// `EPERM`: a write to a read-only export.
    Perm,
    /// `EIO`: the storage failed.
    Io,
    /// `ENOMEM`.
    NoMem,
    /// `EINVAL`: the request makes no sense.
    Inval,
    /// `ENOSPC`: no room, or a write beyond the end.
    NoSpc,
    /// `EOVERFLOW`: too long to answer in one piece.
    Overflow,
    /// `ENOTSUP`: this server cannot do it (fast).
    NotSup,
    /// `ESHUTDOWN`: the server is going away.
    Shutdown,
}

impl Errno {
    /// Every error number of the protocol.
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

    /// The number that is sent.
    #[must_use]
    pub const fn to_wire(self) -> u32 {
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

    /// What a received number means. 0 is success; a number outside the protocol
    /// reads as [`Errno::Inval`], as the protocol asks.
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
    fn numbers_are_those_of_the_protocol() {
        let numbers = Errno::ALL.map(Errno::to_wire);
        assert_eq!(numbers, [1, 5, 12, 22, 28, 75, 95, 108]);
        for errno in Errno::ALL {
            assert_eq!(Errno::from_wire(errno.to_wire()), Some(errno));
        }
    }

    #[test]
    fn success_is_no_error_and_a_strange_number_is_einval() {
        assert_eq!(Errno::from_wire(0), None);
        assert_eq!(Errno::from_wire(11), Some(Errno::Inval));
        assert_eq!(Errno::from_wire(u32::MAX), Some(Errno::Inval));
    }
}
