//! Errors that end a connection or prevent it.

use alloc::string::String;

/// An error after which the connection has to be closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtoError {
    /// The first bytes of a server are not NBD.
    #[error(
        "the server's greeting starts with {0:#018x}, which is not NBD; is it another service?"
    )]
    NotNbd(u64),
    /// The server speaks only the withdrawn oldstyle handshake.
    #[error(
        "the server speaks the oldstyle handshake; a newstyle one (nbd 2.9.17 or later) is needed"
    )]
    Oldstyle,
    /// The server can do nothing but [`crate::wire::opt::EXPORT_NAME`].
    #[error(
        "the server is not fixed newstyle, so it neither lists its exports nor takes part in TLS"
    )]
    NotFixedNewstyle,
    /// A client set flags that were not offered.
    #[error("the client answered the greeting with the flags {0:#010x}; only 0x3 were offered")]
    ClientFlags(u32),
    /// An option does not start with `IHAVEOPT`.
    #[error("an option starts with {0:#018x} instead of IHAVEOPT; the client lost its place")]
    OptionMagic(u64),
    /// A client that is not fixed newstyle sent an option that needs it.
    #[error("option {0} came from a client that did not agree on fixed newstyle")]
    OptionTooEarly(u32),
    /// [`crate::wire::MAX_OPTIONS`] options and still no export chosen.
    #[error("the client sent {0} options without choosing an export")]
    TooManyOptions(u32),
    /// `EXPORT_NAME` named no export: the protocol has no reply for that.
    #[error("there is no export named \"{0}\"")]
    UnknownExport(String),
    /// `EXPORT_NAME` with a name that is too long or not text.
    #[error("an export name of {0} bytes is not UTF-8 without NUL of at most 4096 bytes")]
    ExportName(u32),
    /// A request does not start with its magic.
    #[error("a request starts with {0:#010x} instead of 0x25609513; the client lost its place")]
    RequestMagic(u32),
    /// A reply to an option does not start with its magic.
    #[error("a reply to an option starts with {0:#018x}; the server lost its place")]
    OptionReplyMagic(u64),
    /// The server answered something that was not asked.
    #[error("the server answered option {got} when {asked} was asked")]
    OtherOption {
        /// The option in the reply.
        got: u32,
        /// The option that was sent.
        asked: u32,
    },
    /// The server answered with a reply that the option does not have.
    #[error(
        "the server answered option {option} with a reply of type {kind:#x}, or one it may not be"
    )]
    OptionReply {
        /// The option that was sent.
        option: u32,
        /// The type of the reply.
        kind: u32,
    },
    /// A client asked for an export without TLS, in a form that has no answer.
    #[error("the client asked for an export without TLS")]
    TlsRequired,
    /// A reply to an option is longer than [`crate::wire::MAX_OPTION`].
    #[error("the server's reply to option {option} is {length} bytes long; at most 65536 are read")]
    OptionReplyTooLong {
        /// The option that was sent.
        option: u32,
        /// The length announced.
        length: u32,
    },
    /// More than [`crate::wire::MAX_LISTED`] exports were listed.
    #[error("the server lists more than 65536 exports")]
    TooManyExports,
    /// The server refused the export.
    #[error("the server refused the export \"{export}\" ({kind}){}{message}", if message.is_empty() { "" } else { ": " })]
    Refused {
        /// The export asked for; empty for the default.
        export: String,
        /// The kind of refusal, in words.
        kind: &'static str,
        /// The server's message; may be empty.
        message: String,
    },
    /// A reply does not start with a magic that was agreed on.
    #[error("a reply starts with {0:#010x}; the server lost its place")]
    ReplyMagic(u32),
    /// A reply to a request that is not waiting.
    #[error("the server answered the request {0:#x}, which is not waiting for an answer")]
    UnknownCookie(u64),
    /// A structured reply chunk whose content breaks its own rules.
    #[error("a reply chunk of type {kind:#x} and {length} bytes is malformed")]
    Chunk {
        /// The type of the chunk.
        kind: u16,
        /// Length in bytes.
        length: u32,
    },
    /// Block sizes that the protocol does not allow.
    #[error(
        "block sizes of minimum {minimum}, preferred {preferred} and maximum {maximum} bytes are not \
         allowed: the minimum is a power of two up to 65536, the preferred a power of two not below \
         it, the maximum a multiple of it"
    )]
    BlockSizes {
        /// In bytes.
        minimum: u32,
        /// In bytes.
        preferred: u32,
        /// In bytes.
        maximum: u32,
    },
    /// The server does not encrypt.
    #[error(
        "the server offers no TLS; enable it at the server, or use a connection without (nbd:// or nbd+unix://)"
    )]
    NoTls,
    /// A URI that is not a valid NBD URI.
    #[error("\"{uri}\" {problem}")]
    Uri {
        /// The URI as given.
        uri: String,
        /// Description of the problem.
        problem: BadUri,
    },
}

/// A problem with a URI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadUri {
    /// Not `nbd`, `nbd+unix`, `nbds` or `nbds+unix`.
    #[error("is not an NBD URI; write nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=PATH")]
    Scheme,
    /// `nbds` or `nbds+unix` without a folder.
    #[error("names no certificates; add ?tls-certificates=FOLDER, which has a ca-cert.pem")]
    NoCertificates,
    /// `nbd://` without a host.
    #[error("names no host; write nbd://HOST[:PORT]/EXPORT")]
    NoHost,
    /// A host with a user, a bracket or the like.
    #[error(
        "has the unusable host \"{0}\"; write a name, an IPv4 address or an IPv6 address in []"
    )]
    Host(String),
    /// A port that is not 1 to 65535.
    #[error("has the port \"{0}\", which is not a number from 1 to 65535")]
    Port(String),
    /// `nbd+unix` with a host.
    #[error(
        "names the host \"{0}\", but a Unix socket has none; write nbd+unix:///EXPORT?socket=PATH"
    )]
    UnixHost(String),
    /// `nbd+unix` without a socket.
    #[error("names no socket; write nbd+unix:///EXPORT?socket=PATH")]
    NoSocket,
    /// A parameter that means nothing here.
    #[error(
        "has the parameter \"{0}\", which is unknown, empty or given twice; nbd+unix takes \
         socket=PATH, and with TLS there are tls-certificates=FOLDER and tls-hostname=NAME"
    )]
    Parameter(String),
    /// A `#` part.
    #[error("has a fragment (#), which means nothing here; write %23 for a # in a name")]
    Fragment,
    /// A `%` not followed by two hexadecimal digits, or bytes that are not text.
    #[error("has the part \"{0}\", whose %-escapes are broken or are not UTF-8 text without NUL")]
    Escape(String),
    /// A name over 4096 bytes.
    #[error("has an export name of {0} bytes; at most 4096 are possible")]
    NameTooLong(usize),
}
