//! The handshake up to the chosen export, as a state machine.
//!
//! ```text
//! start -> ClientFlags -> Options <-> Skipping (an option too long to read)
//!                            |
//!                            +-> Established | Aborted
//! ```

use super::choices::{Choices, Step};
use super::{Exports, options};
use crate::cursor::{Cursor, Put, wire_len};
use crate::error::ProtoError;
use crate::wire::{self, handshake_flag, opt, rep};
use alloc::string::String;
use alloc::vec::Vec;

/// The server's side of a handshake.
///
/// Call [`Handshake::handle`] with the bytes received and not yet consumed. Drop the consumed
/// bytes, send the appended ones, and continue as [`Progress::step`] says.
#[derive(Debug)]
pub struct Handshake {
    phase: Phase,
    fixed_newstyle: bool,
    no_zeroes: bool,
    options: u32,
    choices: Choices,
    tls: Tls,
}

/// Whether TLS is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tls {
    Unsupported,
    Required,
    Started,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    ClientFlags,
    Options,
    Skipping { option: u32, left: u32 },
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

impl Handshake {
    /// Starts a handshake and appends the greeting.
    #[must_use]
    pub fn start(out: &mut Vec<u8>) -> Self {
        out.put_u64(wire::NBDMAGIC);
        out.put_u64(wire::IHAVEOPT);
        out.put_u16(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
        Self {
            phase: Phase::ClientFlags,
            fixed_newstyle: false,
            no_zeroes: false,
            options: 0,
            choices: Choices::default(),
            tls: Tls::Unsupported,
        }
    }

    /// Requires TLS before anything is said about exports.
    #[must_use]
    pub const fn with_tls(mut self) -> Self {
        self.tls = Tls::Required;
        self
    }

    /// Processes at most one message of the client.
    ///
    /// # Errors
    /// If the client violates the protocol; close the connection.
    ///
    /// # Panics
    /// If it is called after [`Step::Established`], [`Step::Aborted`] or an error.
    pub fn handle(
        &mut self,
        exports: &(impl Exports + ?Sized),
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, ProtoError> {
        let phase = core::mem::replace(&mut self.phase, Phase::Over);
        let progress = match phase {
            Phase::ClientFlags => self.client_flags(input),
            Phase::Options => self.option(exports, input, out),
            Phase::Skipping { option, left } => Ok(self.skip(option, left, input, out)),
            Phase::Over => panic!("the handshake is over; what follows is requests, or nothing"),
        }?;
        if matches!(progress.step, Step::NeedMore { .. }) && progress.consumed == 0 {
            self.phase = phase;
        }
        Ok(progress)
    }

    fn client_flags(&mut self, input: &[u8]) -> Result<Progress, ProtoError> {
        let Some(flags) = Cursor::new(input).u32() else { return Ok(need(4)) };
        self.fixed_newstyle = flags & u32::from(handshake_flag::FIXED_NEWSTYLE) != 0;
        self.no_zeroes = flags & u32::from(handshake_flag::NO_ZEROES) != 0;
        if flags > 3 {
            return Err(ProtoError::ClientFlags(flags));
        }
        self.phase = Phase::Options;
        Ok(Progress { consumed: 4, step: Step::Again })
    }

    fn option(
        &mut self,
        exports: &(impl Exports + ?Sized),
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, ProtoError> {
        let mut cursor = Cursor::new(input);
        let Some(magic) = cursor.u64() else { return Ok(need(wire::OPTION_HEADER)) };
        if magic != wire::IHAVEOPT {
            return Err(ProtoError::OptionMagic(magic));
        }
        let (Some(option), Some(length)) = (cursor.u32(), cursor.u32()) else {
            return Ok(need(wire::OPTION_HEADER));
        };
        if option != opt::EXPORT_NAME && !self.fixed_newstyle {
            return Err(ProtoError::OptionTooEarly(option));
        }
        if option == opt::EXPORT_NAME && length as usize > wire::MAX_STRING {
            return Err(ProtoError::ExportName(length));
        }
        if length <= wire::MAX_OPTION && cursor.rest().len() < length as usize {
            return Ok(need(wire::OPTION_HEADER + length as usize));
        }

        self.options += 1;
        if self.options > wire::MAX_OPTIONS {
            return Err(ProtoError::TooManyOptions(self.options));
        }
        let Some(data) = cursor.bytes(length).filter(|_| length <= wire::MAX_OPTION) else {
            self.phase = Phase::Skipping { option, left: length };
            return Ok(Progress { consumed: wire::OPTION_HEADER, step: Step::Again });
        };
        let consumed = wire::OPTION_HEADER + data.len();
        self.phase = Phase::Options;
        let step = match option {
            opt::STARTTLS => self.start_tls(data, out),
            opt::EXPORT_NAME if self.tls == Tls::Required => return Err(ProtoError::TlsRequired),
            _ if self.tls == Tls::Required && option != opt::ABORT => {
                let message = b"this server talks about exports over TLS only";
                options::put_reply(out, option, rep::ERR_TLS_REQD, &[message]);
                Step::Again
            }
            opt::EXPORT_NAME => self.export_name(exports, data, out)?,
            _ => options::answer(&mut self.choices, exports, option, data, out),
        };
        if matches!(step, Step::Established(_) | Step::Aborted) {
            self.phase = Phase::Over;
        }
        Ok(Progress { consumed, step })
    }

    fn start_tls(&mut self, data: &[u8], out: &mut Vec<u8>) -> Step {
        let (kind, message): (u32, &[u8]) = match self.tls {
            Tls::Unsupported => (rep::ERR_UNSUP, b"TLS is not configured"),
            Tls::Started => (rep::ERR_INVALID, b"TLS has been started"),
            Tls::Required if !data.is_empty() => (rep::ERR_INVALID, b"the option takes no data"),
            Tls::Required => (rep::ACK, b""),
        };
        options::put_reply(out, opt::STARTTLS, kind, &[message]);
        if kind != rep::ACK {
            return Step::Again;
        }
        self.tls = Tls::Started;
        Step::StartTls
    }

    /// Discards the data of an oversized option, then refuses it.
    fn skip(&mut self, option: u32, left: u32, input: &[u8], out: &mut Vec<u8>) -> Progress {
        let here = u32::try_from(input.len()).map_or(left, |there| there.min(left));
        let consumed = here as usize;
        if here < left {
            self.phase = Phase::Skipping { option, left: left - here };
            return Progress { consumed, step: Step::NeedMore { at_least: 1 } };
        }
        self.phase = Phase::Options;
        options::put_reply(
            out,
            option,
            rep::ERR_TOO_BIG,
            &[b"at most 65536 bytes of option data are read"],
        );
        Progress { consumed, step: Step::Again }
    }

    /// Handles `EXPORT_NAME`, whose reply has no header and cannot express an error.
    fn export_name(
        &self,
        exports: &(impl Exports + ?Sized),
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, ProtoError> {
        let name = options::text(data).ok_or(ProtoError::ExportName(wire_len(data.len())))?;
        let export =
            exports.find(name).ok_or_else(|| ProtoError::UnknownExport(String::from(name)))?;
        let session = self.choices.establish(export);
        out.put_u64(session.export.size.get());
        out.put_u16(session.flags.bits());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; wire::EXPORT_NAME_ZEROES]);
        }
        Ok(Step::Established(session))
    }
}

const fn need(at_least: usize) -> Progress {
    Progress { consumed: 0, step: Step::NeedMore { at_least } }
}
