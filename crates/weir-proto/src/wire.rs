//! The numbers of the protocol under the names of its specification, and the limits of this crate.
//!
//! Names keep the last words of the specification's: `NBD_OPT_GO` is [`opt::GO`].

/// Maximum length of the protocol's strings (export names, descriptions, messages) in bytes.
pub const MAX_STRING: usize = 4096;

/// Maximum read or write that every NBD peer accepts. Clients keep to it unless a server advertises another.
pub const COMMON_PAYLOAD: u32 = 32 << 20;

/// Largest read or write that this crate sends or accepts.
pub const MAX_PAYLOAD: u32 = 64 << 20;

/// Maximum length of option data and of replies to options. The longest useful ones contain a name,
/// a few info types and a few queries.
pub const MAX_OPTION: u32 = 64 << 10;

/// Maximum number of options before an export is chosen, so that a client cannot keep the handshake
/// busy.
pub const MAX_OPTIONS: u32 = 4096;

/// Maximum number of exports in a listing.
pub const MAX_LISTED: usize = 65_536;

/// `NBDMAGIC`, the first bytes of a server.
pub const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`: a newstyle server, and every option of a client.
pub const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
/// Follows [`NBDMAGIC`] in the obsolete oldstyle handshake.
pub const OLDSTYLE: u64 = 0x0000_4202_8186_1253;
/// Every reply to an option.
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// Every request.
pub const REQUEST: u32 = 0x2560_9513;
/// Every simple reply.
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
/// Every structured reply chunk.
pub const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Bytes of a request before its payload.
pub const REQUEST_HEADER: usize = 28;
/// Bytes of a simple reply before its payload.
pub const SIMPLE_HEADER: usize = 16;
/// Bytes of a structured reply chunk before its payload.
pub const CHUNK_HEADER: usize = 20;
/// Bytes of an option before its data.
pub const OPTION_HEADER: usize = 16;
/// Bytes of a reply to an option before its data.
pub const OPTION_REPLY_HEADER: usize = 20;
/// Zero bytes that end the answer to [`opt::EXPORT_NAME`], unless
/// [`handshake_flag::NO_ZEROES`] was agreed.
pub const EXPORT_NAME_ZEROES: usize = 124;

/// The only supported metadata context: the allocation state of ranges.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// The server's context id of [`BASE_ALLOCATION`].
pub const BASE_ALLOCATION_ID: u32 = 1;

/// Handshake flags of the server. A client replies with the same bits in 32-bit form.
pub mod handshake_flag {
    /// Options other than [`super::opt::EXPORT_NAME`] are answered.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// The 124 zero bytes may be left out.
    pub const NO_ZEROES: u16 = 2;
}

/// Options of a client.
pub mod opt {
    /// Enter transmission. A refusal is only possible by closing the connection.
    pub const EXPORT_NAME: u32 = 1;
    /// End the session.
    pub const ABORT: u32 = 2;
    /// List the exports.
    pub const LIST: u32 = 3;
    /// Start TLS.
    pub const STARTTLS: u32 = 5;
    /// Return info about an export.
    pub const INFO: u32 = 6;
    /// Return info about an export and enter transmission.
    pub const GO: u32 = 7;
    /// Use structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// List metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options. Bit 31 marks an error, whose data is a message.
pub mod rep {
    /// Done.
    pub const ACK: u32 = 1;
    /// One export of a listing.
    pub const SERVER: u32 = 2;
    /// One fact about an export.
    pub const INFO: u32 = 3;
    /// One metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Set in every error.
    pub const ERROR: u32 = 1 << 31;
    /// The option is not supported.
    pub const ERR_UNSUP: u32 = ERROR | 1;
    /// The option is forbidden by policy.
    pub const ERR_POLICY: u32 = ERROR | 2;
    /// The option's data is malformed or out of order.
    pub const ERR_INVALID: u32 = ERROR | 3;
    /// Start TLS first.
    pub const ERR_TLS_REQD: u32 = ERROR | 5;
    /// The export does not exist.
    pub const ERR_UNKNOWN: u32 = ERROR | 6;
    /// The server is shutting down.
    pub const ERR_SHUTDOWN: u32 = ERROR | 7;
    /// The block sizes must be requested first.
    pub const ERR_BLOCK_SIZE_REQD: u32 = ERROR | 8;
    /// The option is too long.
    pub const ERR_TOO_BIG: u32 = ERROR | 9;
}

/// Info types in [`rep::INFO`].
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// The server's canonical name of the export.
    pub const NAME: u16 = 1;
    /// Description of the export.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum block size.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Types of structured reply chunks. Bit 15 marks an error.
pub mod chunk {
    /// The end of a reply without data.
    pub const NONE: u16 = 0;
    /// Data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Zeroes at an offset.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents of one metadata context.
    pub const BLOCK_STATUS: u16 = 5;
    /// Set in every error.
    pub const ERROR_BIT: u16 = 1 << 15;
    /// The request failed.
    pub const ERROR: u16 = ERROR_BIT | 1;
    /// The request failed at an offset.
    pub const ERROR_OFFSET: u16 = ERROR_BIT | 2;
    /// The flag of the last chunk of a reply.
    pub const FLAG_DONE: u16 = 1;
}

/// A set of protocol bits as a type.
macro_rules! flags {
    ($(#[$doc:meta])* $name:ident($bits:ty) { $($(#[$flag_doc:meta])* $flag:ident = $bit:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name($bits);

        impl $name {
            /// The empty set.
            pub const NONE: Self = Self(0);
            $($(#[$flag_doc])* pub const $flag: Self = Self(1 << $bit);)*

            /// Builds a set from bits, which may be unknown.
            #[must_use]
            pub const fn from_bits(bits: $bits) -> Self {
                Self(bits)
            }

            /// Returns the bits as sent.
            #[must_use]
            pub const fn bits(self) -> $bits {
                self.0
            }

            /// Returns whether all bits of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns the union.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Returns this set without the bits of `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.with(other)
            }
        }
    };
}
pub(crate) use flags;
