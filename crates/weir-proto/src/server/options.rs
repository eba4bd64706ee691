//! Replies to options. Errors in an option are reported in its reply, and the handshake continues.

use super::choices::{Choices, Step};
use super::{Exports, Session};
use crate::cursor::{Cursor, Put, clip, wire_len};
use crate::export::Export;
use crate::wire::{self, info, opt, rep};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A refusal of an option: the type and message of the reply.
struct Refusal {
    kind: u32,
    message: String,
}

impl Refusal {
    fn new(kind: u32, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(rep::ERR_INVALID, message)
    }

    fn unknown_export(name: &str) -> Self {
        Self::new(rep::ERR_UNKNOWN, format!("there is no export named \"{name}\""))
    }
}

/// Replies to an option other than `EXPORT_NAME`.
pub(super) fn answer(
    choices: &mut Choices,
    exports: &(impl Exports + ?Sized),
    option: u32,
    data: &[u8],
    out: &mut Vec<u8>,
) -> Step {
    let answered = match option {
        opt::ABORT => Ok(Step::Aborted),
        opt::LIST => list(exports, data, out),
        opt::INFO | opt::GO => describe(choices, exports, option, data, out),
        opt::STRUCTURED_REPLY => structured_reply(choices, data),
        opt::LIST_META_CONTEXT | opt::SET_META_CONTEXT => {
            meta_context(choices, exports, option, data, out)
        }
        other => Err(Refusal::new(rep::ERR_UNSUP, format!("option {other} is not known"))),
    };
    match answered {
        Ok(step) => {
            put_reply(out, option, rep::ACK, &[]);
            step
        }
        Err(refusal) => {
            put_reply(out, option, refusal.kind, &[clip(&refusal.message).as_bytes()]);
            Step::Again
        }
    }
}

/// Appends a reply to an option, with its data in parts.
pub(super) fn put_reply(out: &mut Vec<u8>, option: u32, kind: u32, parts: &[&[u8]]) {
    out.put_u64(wire::OPTION_REPLY);
    out.put_u32(option);
    out.put_u32(kind);
    out.put_u32(wire_len(parts.iter().map(|part| part.len()).sum()));
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Validates a string of the protocol: UTF-8 without NUL, within the length limit.
pub(super) fn text(bytes: &[u8]) -> Option<&str> {
    let fits = bytes.len() <= wire::MAX_STRING && !bytes.contains(&0);
    core::str::from_utf8(bytes).ok().filter(|_| fits)
}

fn no_data(data: &[u8]) -> Result<(), Refusal> {
    if data.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(format!("the option takes no data; {} bytes came", data.len())))
}

fn list(
    exports: &(impl Exports + ?Sized),
    data: &[u8],
    out: &mut Vec<u8>,
) -> Result<Step, Refusal> {
    no_data(data)?;
    for export in exports.list().iter().filter(|export| export.name.len() <= wire::MAX_STRING) {
        let name = export.name.as_bytes();
        let length = wire_len(name.len()).to_be_bytes();
        let description = clip(&export.description).as_bytes();
        put_reply(out, opt::LIST, rep::SERVER, &[&length, name, description]);
    }
    Ok(Step::Again)
}

fn structured_reply(choices: &mut Choices, data: &[u8]) -> Result<Step, Refusal> {
    no_data(data)?;
    choices.structured = true;
    Ok(Step::Again)
}

/// Handles INFO and GO: appends the requested info, and for GO starts the transmission.
fn describe(
    choices: &Choices,
    exports: &(impl Exports + ?Sized),
    option: u32,
    data: &[u8],
    out: &mut Vec<u8>,
) -> Result<Step, Refusal> {
    let (name, wanted) = info_request(data)
        .ok_or_else(|| Refusal::invalid("the lengths in the option do not add up"))?;
    let name = export_name(name)?;
    let wants = |kind: u16| wanted.chunks_exact(2).any(|pair| pair == kind.to_be_bytes());
    let export = exports.find(name).ok_or_else(|| Refusal::unknown_export(name))?;
    if export.block.minimum() > 1 && !wants(info::BLOCK_SIZE) {
        let message = format!(
            "requests must be multiples of {} bytes; ask for the block sizes",
            export.block.minimum()
        );
        return Err(Refusal::new(rep::ERR_BLOCK_SIZE_REQD, message));
    }

    let session = choices.establish(export);
    put_facts(&session, option, wants, out);
    Ok(if option == opt::GO { Step::Established(session) } else { Step::Again })
}

fn info_request(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut cursor = Cursor::new(data);
    let name = cursor.string()?;
    let count = cursor.u16()?;
    let wanted = cursor.bytes(u32::from(count) * 2)?;
    cursor.end()?;
    Some((name, wanted))
}

fn put_facts(session: &Session, option: u32, wants: impl Fn(u16) -> bool, out: &mut Vec<u8>) {
    let Export { name, description, size, block, .. } = &session.export;
    let mut put = |kind: u16, parts: [&[u8]; 3]| {
        let kind = kind.to_be_bytes();
        put_reply(out, option, rep::INFO, &[&kind, parts[0], parts[1], parts[2]]);
    };
    let size = size.get().to_be_bytes();
    put(info::EXPORT, [&size, &session.flags.bits().to_be_bytes(), &[]]);
    if wants(info::NAME) {
        put(info::NAME, [clip(name).as_bytes(), &[], &[]]);
    }
    if wants(info::DESCRIPTION) && !description.is_empty() {
        put(info::DESCRIPTION, [clip(description).as_bytes(), &[], &[]]);
    }
    if wants(info::BLOCK_SIZE) {
        let sizes = [block.minimum(), block.preferred(), block.max_payload()];
        let [minimum, preferred, maximum] = sizes.map(u32::to_be_bytes);
        put(info::BLOCK_SIZE, [&minimum, &preferred, &maximum]);
    }
}

fn export_name(bytes: &[u8]) -> Result<&str, Refusal> {
    text(bytes).ok_or_else(|| {
        Refusal::invalid("an export name is UTF-8 without NUL, at most 4096 bytes long")
    })
}

/// Handles LIST and SET of metadata contexts. LIST may request all of `base:`; SET needs full
/// names. Queries for unknown contexts are not errors.
fn meta_context(
    choices: &mut Choices,
    exports: &(impl Exports + ?Sized),
    option: u32,
    data: &[u8],
    out: &mut Vec<u8>,
) -> Result<Step, Refusal> {
    let set = option == opt::SET_META_CONTEXT;
    if set {
        // A SET replaces the earlier selection, even if it fails.
        choices.meta_context_of = None;
    }
    if !choices.structured {
        return Err(Refusal::invalid("metadata contexts need structured replies first"));
    }
    let (name, count, asked) = context_request(data)
        .ok_or_else(|| Refusal::invalid("the lengths in the option do not add up"))?;
    let name = export_name(name)?;
    let export = exports.find(name).ok_or_else(|| Refusal::unknown_export(name))?;
    let chosen = asked.exactly || (!set && (asked.namespace || count == 0));
    if chosen {
        let id = if set { wire::BASE_ALLOCATION_ID } else { 0 };
        let parts: [&[u8]; 2] = [&id.to_be_bytes(), wire::BASE_ALLOCATION.as_bytes()];
        put_reply(out, option, rep::META_CONTEXT, &parts);
    }
    if chosen && set {
        choices.meta_context_of = Some(export.name);
    }
    Ok(Step::Again)
}

/// The queries for `base:allocation`: by its name, and by its namespace.
#[derive(Default)]
struct Asked {
    exactly: bool,
    namespace: bool,
}

fn context_request(data: &[u8]) -> Option<(&[u8], u32, Asked)> {
    let mut cursor = Cursor::new(data);
    let name = cursor.string()?;
    let count = cursor.u32()?;
    let mut asked = Asked::default();
    // Each iteration consumes at least four bytes, so a large count ends with the data.
    for _ in 0..count {
        let query = cursor.string()?;
        asked.exactly |= query == wire::BASE_ALLOCATION.as_bytes();
        asked.namespace |= query == b"base:";
    }
    cursor.end()?;
    Some((name, count, asked))
}
