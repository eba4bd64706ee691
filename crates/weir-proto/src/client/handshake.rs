//! The handshake up to an export or a listing, as a state machine.
//!
//! ```text
//! Greeting -> [Tls -> Encrypted] -> [Structured -> [MetaContext]] -> Go -> Established
//!    |                                                               |
//!    |                                               (not known) ExportName -> Established
//!    +-> List -> Listed
//! ```
//! Features that the server does not know are left out, except the export itself.

use super::{Listed, Session, Wanted};
use crate::cursor::{Cursor, Put, clip, wire_len};
use crate::error::ProtoError;
use crate::export::{BlockSizes, TransmissionFlags};
use crate::wire::{self, handshake_flag, info, opt, rep};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use weir_units::Bytes;

/// The client's side of a handshake.
///
/// Call [`Handshake::handle`] with the bytes received and not yet consumed. Drop the consumed
/// bytes, send the appended ones, and continue as [`Progress::step`] says.
#[derive(Debug, Clone)]
pub struct Handshake {
    wanted: Wanted,
    phase: Phase,
    fixed_newstyle: bool,
    no_zeroes: bool,
    structured: bool,
    meta_context: Option<u32>,
    /// Size and flags received in reply to GO.
    told: Option<(Bytes, TransmissionFlags)>,
    block: BlockSizes,
    listed: Vec<Listed>,
    lists: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Tls,
    Encrypted,
    Structured,
    MetaContext,
    Go,
    ExportName,
    List,
    Over,
}

/// The result of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Number of input bytes consumed.
    pub consumed: usize,
    /// The next step.
    pub step: Step,
}

/// The next step after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Call again when the input has this many bytes, counted after the consumed ones are dropped.
    NeedMore {
        /// In bytes.
        at_least: usize,
    },
    /// A message was processed. Call again with the rest, even if it is empty.
    Again,
    /// Encrypt the connection. Input that is left was not encrypted, and ends the connection. Call
    /// again with what comes then, even if it is empty.
    StartTls,
    /// The handshake is complete; replies follow.
    Established(Session),
    /// The server's exports. An abort was appended: send it and close the connection.
    Listed(Vec<Listed>),
}

/// A reply to an option.
struct OptionReply<'a> {
    option: u32,
    kind: u32,
    data: &'a [u8],
}

impl OptionReply<'_> {
    fn is_error(&self) -> bool {
        self.kind & rep::ERROR != 0
    }

    fn unexpected(&self) -> ProtoError {
        ProtoError::OptionReply { option: self.option, kind: self.kind }
    }
}

impl Handshake {
    /// Starts a handshake that opens an export. The server sends first.
    #[must_use]
    pub fn open(wanted: Wanted) -> Self {
        Self {
            wanted,
            phase: Phase::Greeting,
            fixed_newstyle: false,
            no_zeroes: false,
            structured: false,
            meta_context: None,
            told: None,
            block: BlockSizes::DEFAULT,
            listed: Vec::new(),
            lists: false,
        }
    }

    /// Starts a handshake that lists the server's exports and ends.
    #[must_use]
    pub fn list() -> Self {
        Self { lists: true, ..Self::open(Wanted::default()) }
    }

    /// Processes at most one message of the server.
    ///
    /// # Errors
    /// If the server refuses or violates the protocol; close the connection.
    ///
    /// # Panics
    /// If it is called after [`Step::Established`], [`Step::Listed`] or an error.
    pub fn handle(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Progress, ProtoError> {
        let phase = core::mem::replace(&mut self.phase, Phase::Over);
        let progress = match phase {
            Phase::Greeting => self.greeting(input, out),
            Phase::ExportName => self.export_name_reply(input),
            Phase::Encrypted => {
                self.ask(self.first(), out)?;
                Ok(Progress { consumed: 0, step: Step::Again })
            }
            Phase::Over => panic!("the handshake is over; what follows is replies, or nothing"),
            _ => self.option_reply(phase, input, out),
        }?;
        if matches!(progress.step, Step::NeedMore { .. }) {
            self.phase = phase;
        }
        Ok(progress)
    }

    fn greeting(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Progress, ProtoError> {
        const LENGTH: usize = 18;
        let mut cursor = Cursor::new(input);
        match cursor.u64() {
            None => return Ok(need(LENGTH)),
            Some(wire::NBDMAGIC) => {}
            Some(other) => return Err(ProtoError::NotNbd(other)),
        }
        match cursor.u64() {
            None => return Ok(need(LENGTH)),
            Some(wire::IHAVEOPT) => {}
            Some(wire::OLDSTYLE) => return Err(ProtoError::Oldstyle),
            Some(other) => return Err(ProtoError::NotNbd(other)),
        }
        let Some(offered) = cursor.u16() else { return Ok(need(LENGTH)) };

        self.fixed_newstyle = offered & handshake_flag::FIXED_NEWSTYLE != 0;
        self.no_zeroes = offered & handshake_flag::NO_ZEROES != 0;
        let known = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
        out.put_u32(u32::from(offered & known));
        if self.lists {
            if !self.fixed_newstyle {
                return Err(ProtoError::NotFixedNewstyle);
            }
            self.ask(Phase::List, out)?;
        } else if self.wanted.tls {
            if !self.fixed_newstyle {
                return Err(ProtoError::NotFixedNewstyle);
            }
            self.ask(Phase::Tls, out)?;
        } else if !self.fixed_newstyle {
            self.ask(Phase::ExportName, out)?;
        } else {
            self.ask(self.first(), out)?;
        }
        Ok(Progress { consumed: LENGTH, step: Step::Again })
    }

    /// Returns the first phase that asks about the export.
    const fn first(&self) -> Phase {
        if self.wanted.structured { Phase::Structured } else { Phase::Go }
    }

    /// Sends the option of a phase.
    fn ask(&mut self, phase: Phase, out: &mut Vec<u8>) -> Result<(), ProtoError> {
        let name = self.wanted.export.as_bytes();
        let name_length = wire_len(name.len());
        if name.len() > wire::MAX_STRING || name.contains(&0) {
            return Err(ProtoError::ExportName(name_length));
        }
        let name_length = name_length.to_be_bytes();
        let data: &[&[u8]] = match phase {
            Phase::MetaContext => &[
                &name_length,
                name,
                &[0, 0, 0, 1],
                &[0, 0, 0, 15],
                wire::BASE_ALLOCATION.as_bytes(),
            ],
            // One info request: the block sizes.
            Phase::Go => &[&name_length, name, &[0, 1, 0, 3]],
            Phase::ExportName => &[name],
            _ => &[],
        };
        put_option(out, phase.option(), data);
        self.phase = phase;
        Ok(())
    }

    fn option_reply(
        &mut self,
        phase: Phase,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, ProtoError> {
        let mut cursor = Cursor::new(input);
        let Some(magic) = cursor.u64() else { return Ok(need(wire::OPTION_REPLY_HEADER)) };
        if magic != wire::OPTION_REPLY {
            return Err(ProtoError::OptionReplyMagic(magic));
        }
        let (Some(option), Some(kind), Some(length)) = (cursor.u32(), cursor.u32(), cursor.u32())
        else {
            return Ok(need(wire::OPTION_REPLY_HEADER));
        };
        let asked = phase.option();
        if option != asked {
            return Err(ProtoError::OtherOption { got: option, asked });
        }
        if length > wire::MAX_OPTION {
            return Err(ProtoError::OptionReplyTooLong { option, length });
        }
        let consumed = wire::OPTION_REPLY_HEADER + length as usize;
        let Some(data) = cursor.bytes(length) else { return Ok(need(consumed)) };

        let reply = OptionReply { option, kind, data };
        // Most replies are followed by others to the same option.
        self.phase = phase;
        let step = match phase {
            Phase::Tls if reply.kind == rep::ACK => {
                self.phase = Phase::Encrypted;
                Step::StartTls
            }
            Phase::Tls if reply.is_error() => return Err(ProtoError::NoTls),
            Phase::Tls => return Err(reply.unexpected()),
            Phase::Structured => self.structured_reply(&reply, out)?,
            Phase::MetaContext => self.meta_context_reply(&reply, out)?,
            Phase::List => self.list_reply(&reply, out)?,
            _ => self.go_reply(&reply, out)?,
        };
        if matches!(step, Step::Established(_) | Step::Listed(_)) {
            self.phase = Phase::Over;
        }
        Ok(Progress { consumed, step })
    }

    fn structured_reply(
        &mut self,
        reply: &OptionReply<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, ProtoError> {
        if reply.kind == rep::ACK {
            self.structured = true;
        } else if !reply.is_error() {
            return Err(reply.unexpected());
        }
        let next = if self.structured && self.wanted.block_status {
            Phase::MetaContext
        } else {
            Phase::Go
        };
        self.ask(next, out)?;
        Ok(Step::Again)
    }

    fn meta_context_reply(
        &mut self,
        reply: &OptionReply<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, ProtoError> {
        if reply.kind == rep::META_CONTEXT && self.meta_context.is_none() {
            let mut cursor = Cursor::new(reply.data);
            let id = cursor.u32().ok_or_else(|| reply.unexpected())?;
            if cursor.rest() != wire::BASE_ALLOCATION.as_bytes() {
                return Err(reply.unexpected());
            }
            self.meta_context = Some(id);
        } else if reply.kind == rep::ACK || reply.is_error() {
            if reply.is_error() {
                self.meta_context = None;
            }
            self.ask(Phase::Go, out)?;
        } else {
            return Err(reply.unexpected());
        }
        Ok(Step::Again)
    }

    fn go_reply(&mut self, reply: &OptionReply<'_>, out: &mut Vec<u8>) -> Result<Step, ProtoError> {
        match reply.kind {
            rep::INFO => {
                self.fact(reply)?;
                Ok(Step::Again)
            }
            rep::ACK => {
                let (size, flags) = self.told.ok_or_else(|| reply.unexpected())?;
                Ok(Step::Established(self.session(size, flags)))
            }
            rep::ERR_UNSUP => {
                self.ask(Phase::ExportName, out)?;
                Ok(Step::Again)
            }
            _ if reply.is_error() => Err(self.refused(reply)),
            _ => Err(reply.unexpected()),
        }
    }

    fn fact(&mut self, reply: &OptionReply<'_>) -> Result<(), ProtoError> {
        let mut cursor = Cursor::new(reply.data);
        let unexpected = || reply.unexpected();
        match cursor.u16().ok_or_else(unexpected)? {
            info::EXPORT => {
                let (size, flags) = cursor.u64().zip(cursor.u16()).ok_or_else(unexpected)?;
                cursor.end().ok_or_else(unexpected)?;
                self.told = Some((Bytes::new(size), TransmissionFlags::from_bits(flags)));
            }
            info::BLOCK_SIZE => {
                let sizes = [cursor.u32(), cursor.u32(), cursor.u32()];
                let [Some(minimum), Some(preferred), Some(maximum)] = sizes else {
                    return Err(reply.unexpected());
                };
                cursor.end().ok_or_else(unexpected)?;
                self.block = BlockSizes::new(minimum, preferred, maximum)?;
            }
            // A server may send info that was not requested.
            _ => {}
        }
        Ok(())
    }

    fn refused(&self, reply: &OptionReply<'_>) -> ProtoError {
        let kind = match reply.kind {
            rep::ERR_UNSUP => "the option is not supported",
            rep::ERR_POLICY => "forbidden by policy",
            rep::ERR_INVALID => "invalid",
            rep::ERR_TLS_REQD => "TLS is required",
            rep::ERR_UNKNOWN => "unknown export",
            rep::ERR_SHUTDOWN => "the server is shutting down",
            rep::ERR_BLOCK_SIZE_REQD => "block sizes must be asked for",
            rep::ERR_TOO_BIG => "too big",
            _ => "another reason",
        };
        let message = String::from_utf8_lossy(reply.data);
        let message = clip(message.trim_end_matches('\0')).to_owned();
        ProtoError::Refused { export: self.wanted.export.clone(), kind, message }
    }

    fn list_reply(
        &mut self,
        reply: &OptionReply<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, ProtoError> {
        match reply.kind {
            rep::SERVER if self.listed.len() >= wire::MAX_LISTED => Err(ProtoError::TooManyExports),
            rep::SERVER => {
                let mut cursor = Cursor::new(reply.data);
                let name = cursor.string().ok_or_else(|| reply.unexpected())?;
                let name = String::from_utf8(name.to_vec()).map_err(|_| reply.unexpected())?;
                let description = String::from_utf8_lossy(cursor.rest()).into_owned();
                self.listed.push(Listed { name, description });
                Ok(Step::Again)
            }
            rep::ACK => {
                put_option(out, opt::ABORT, &[]);
                Ok(Step::Listed(core::mem::take(&mut self.listed)))
            }
            _ if reply.is_error() => Err(self.refused(reply)),
            _ => Err(reply.unexpected()),
        }
    }

    /// Parses the reply to `EXPORT_NAME`, which has no header: size, flags and, by default, zeroes.
    fn export_name_reply(&mut self, input: &[u8]) -> Result<Progress, ProtoError> {
        let consumed = 10 + if self.no_zeroes { 0 } else { wire::EXPORT_NAME_ZEROES };
        let mut cursor = Cursor::new(input);
        let fields = cursor.u64().zip(cursor.u16());
        let Some((size, flags)) = fields.filter(|_| input.len() >= consumed) else {
            return Ok(need(consumed));
        };
        let session = self.session(Bytes::new(size), TransmissionFlags::from_bits(flags));
        Ok(Progress { consumed, step: Step::Established(session) })
    }

    fn session(&self, size: Bytes, flags: TransmissionFlags) -> Session {
        Session {
            size,
            flags,
            block: self.block,
            structured: self.structured,
            meta_context: self.meta_context,
        }
    }
}

impl Phase {
    const fn option(self) -> u32 {
        match self {
            Self::Tls => opt::STARTTLS,
            Self::Structured => opt::STRUCTURED_REPLY,
            Self::MetaContext => opt::SET_META_CONTEXT,
            Self::ExportName => opt::EXPORT_NAME,
            Self::List => opt::LIST,
            Self::Go | Self::Greeting | Self::Encrypted | Self::Over => opt::GO,
        }
    }
}

const fn need(at_least: usize) -> Progress {
    Progress { consumed: 0, step: Step::NeedMore { at_least } }
}

fn put_option(out: &mut Vec<u8>, option: u32, data: &[&[u8]]) {
    out.put_u64(wire::IHAVEOPT);
    out.put_u32(option);
    out.put_u32(wire_len(data.iter().map(|part| part.len()).sum()));
    for part in data {
        out.extend_from_slice(part);
    }
}
