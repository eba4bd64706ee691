//! Seeds for the generated corpus: NBD conversations and small backups.
//!
//! Most come from this project's client and server, so they stay valid when those change. Options
//! that the client never sends (INFO, ABORT, the old EXPORT_NAME) are written by hand.

use super::target::Target;
use weir_proto::client::{self, Wanted};
use weir_proto::wire::{self, info, opt};
use weir_proto::{
    BlockSizes, BlockState, Command, CommandFlags, Errno, Export, Extent, Request,
    TransmissionFlags, reply, server,
};
use weir_units::Bytes;

/// An input and the name of its file.
type Seed = (&'static str, Vec<u8>);

/// Returns the generated inputs of a target; empty for targets that read text.
pub(super) fn of(target: Target) -> Vec<Seed> {
    match target {
        Target::NbdServer => to_server(),
        Target::NbdClient => to_client(),
        Target::Backup => weir_backup::fuzz::seeds().unwrap_or_default(),
        Target::BackupLabel => weir_backup::fuzz::label_seeds().unwrap_or_default(),
        Target::Volume => weir_store::fuzz::seeds(),
        Target::Layout
        | Target::Fio
        | Target::Oltp
        | Target::Observation
        | Target::BlobRequest
        | Target::Import
        | Target::BlobList
        | Target::Trace
        | Target::Need
        | Target::Prices
        | Target::Sweep
        | Target::Control
        | Target::Mcp => Vec::new(),
    }
}

/// Returns the exports that `weir_proto::fuzz` serves.
fn exports() -> Vec<Export> {
    let export = |name: &str, minimum| Export {
        name: name.to_owned(),
        description: "for fuzzing".to_owned(),
        size: Bytes::mib(1),
        flags: TransmissionFlags::SEND_FLUSH
            | TransmissionFlags::SEND_FUA
            | TransmissionFlags::SEND_TRIM
            | TransmissionFlags::SEND_WRITE_ZEROES
            | TransmissionFlags::CAN_MULTI_CONN,
        block: BlockSizes::new(minimum, 4096, 65_536).unwrap_or_default(),
    };
    vec![export("disk", 1), export("blocks", 512)]
}

fn wanted(export: &str, structured: bool) -> Wanted {
    Wanted { export: export.to_owned(), structured, block_status: structured, tls: false }
}

/// Runs a handshake, and returns the bytes of both sides.
fn handshake(mut client: client::Handshake) -> (Vec<u8>, Vec<u8>) {
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let mut server = server::Handshake::start(&mut to_client);
    let (mut read_by_server, mut read_by_client) = (0, 0);
    loop {
        let progress = client.handle(&to_client[read_by_client..], &mut to_server);
        let Ok(client::Progress { consumed, step }) = progress else { break };
        read_by_client += consumed;
        match step {
            client::Step::Again | client::Step::StartTls => continue,
            client::Step::NeedMore { .. } => {}
            client::Step::Established(_) | client::Step::Listed(_) => break,
        }
        let input = &to_server[read_by_server..];
        let Ok(progress) = server.handle(&exports(), input, &mut to_client) else { break };
        read_by_server += progress.consumed;
    }
    (to_server, to_client)
}

fn to_server() -> Vec<Seed> {
    let said = |client| handshake(client).0;
    let then = |start: Vec<u8>, rest: Vec<u8>| [start, rest].concat();
    vec![
        ("open-plain", then(said(client::Handshake::open(wanted("", false))), requests(1))),
        ("open-structured", then(said(client::Handshake::open(wanted("disk", true))), requests(1))),
        ("open-blocks", then(said(client::Handshake::open(wanted("blocks", true))), requests(512))),
        ("open-unknown", said(client::Handshake::open(wanted("nothing", true)))),
        ("list", said(client::Handshake::list())),
        ("options", every_option()),
        ("export-name", then(options(&[(opt::EXPORT_NAME, b"disk".to_vec())]), requests(1))),
        ("requests", requests(1)),
        ("refused", refused_requests()),
    ]
}

fn to_client() -> Vec<Seed> {
    let heard = |client| handshake(client).1;
    let then = |start: Vec<u8>, rest: Vec<u8>| [start, rest].concat();
    vec![
        ("open-plain", then(heard(client::Handshake::open(wanted("", false))), replies(false))),
        (
            "open-structured",
            then(heard(client::Handshake::open(wanted("disk", true))), replies(true)),
        ),
        ("open-unknown", heard(client::Handshake::open(wanted("nothing", true)))),
        ("list", heard(client::Handshake::list())),
        ("replies-simple", replies(false)),
        ("replies-structured", replies(true)),
    ]
}

/// Returns one request of every kind, in blocks of `block` bytes, and a disconnect.
fn requests(block: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let at = u64::from(block) * 8;
    for (cookie, command) in (1..).zip(Command::ALL) {
        let request = match command {
            Command::Disconnect => continue,
            Command::Flush => Request::new(command, cookie, 0, 0),
            Command::Write => Request::new(command, cookie, at, block).with(CommandFlags::FUA),
            Command::WriteZeroes => {
                Request::new(command, cookie, at, block * 4).with(CommandFlags::NO_HOLE)
            }
            _ => Request::new(command, cookie, at, block * 4),
        };
        request.encode(&mut out);
        if command == Command::Write {
            out.extend((0..block).map(|n| n.to_be_bytes()[3]));
        }
    }
    Request::new(Command::Disconnect, 0, 0, 0).encode(&mut out);
    out
}

/// Returns requests that fail: out of range, too long, not aligned to blocks, or with a flag of
/// another command.
fn refused_requests() -> Vec<u8> {
    let size = Bytes::mib(1).get();
    let mut out = Vec::new();
    for request in [
        Request::new(Command::Read, 1, size, 512),
        Request::new(Command::Read, 2, u64::MAX, u32::MAX),
        Request::new(Command::Read, 3, 0, wire::MAX_PAYLOAD + 1),
        Request::new(Command::Trim, 4, 1, 511),
        Request::new(Command::Flush, 5, 512, 512),
        Request::new(Command::Cache, 6, 0, 512).with(CommandFlags::from_bits(u16::MAX)),
        Request::new(Command::Write, 7, size - 1, 2),
    ] {
        request.encode(&mut out);
    }
    out.extend(b"xy");
    Request::new(Command::Read, 8, 0, 512).encode(&mut out);
    out
}

/// Returns a client's flags followed by these options.
fn options(options: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = 3_u32.to_be_bytes().to_vec();
    for (option, data) in options {
        out.extend(wire::IHAVEOPT.to_be_bytes());
        out.extend(option.to_be_bytes());
        out.extend(length(data));
        out.extend(data);
    }
    out
}

fn length(data: &[u8]) -> [u8; 4] {
    u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes()
}

fn string(text: &str) -> Vec<u8> {
    [&length(text.as_bytes())[..], text.as_bytes()].concat()
}

fn every_option() -> Vec<u8> {
    let facts: Vec<u8> = [info::EXPORT, info::NAME, info::DESCRIPTION, info::BLOCK_SIZE]
        .iter()
        .flat_map(|fact| fact.to_be_bytes())
        .collect();
    let describe = |name: &str| [string(name), vec![0, 4], facts.clone()].concat();
    let contexts = |queries: &[&str]| {
        let count = u32::try_from(queries.len()).unwrap_or(u32::MAX).to_be_bytes();
        let queries = queries.iter().map(|query| string(query));
        [string("disk"), count.to_vec(), queries.collect::<Vec<_>>().concat()].concat()
    };
    options(&[
        (opt::STARTTLS, Vec::new()),
        (opt::LIST, Vec::new()),
        (opt::INFO, describe("disk")),
        (opt::INFO, describe("nothing")),
        (opt::STRUCTURED_REPLY, Vec::new()),
        (opt::LIST_META_CONTEXT, contexts(&[])),
        (opt::LIST_META_CONTEXT, contexts(&["base:"])),
        (opt::SET_META_CONTEXT, contexts(&[wire::BASE_ALLOCATION, "qemu:dirty-bitmap:x"])),
        (99, b"unknown".to_vec()),
        (opt::ABORT, Vec::new()),
    ])
}

/// Returns replies of every kind. The fuzzed client sends an odd cookie with a read whose length is
/// the lowest six bits of the cookie.
fn replies(structured: bool) -> Vec<u8> {
    const READ: u64 = 33;
    let mut out = Vec::new();
    reply::ok(&mut out, 2);
    reply::read_header(&mut out, structured, READ, 0, 33);
    out.extend([0xa5; 33]);
    reply::error(&mut out, structured, READ, Errno::Io, "the disk is gone");
    if structured {
        reply::hole(&mut out, READ, 0, 16, false);
        reply::hole(&mut out, READ, 16, 17, true);
        let data = Extent { length: 4096, state: BlockState::NONE };
        let hole = Extent { length: 4096, state: BlockState::HOLE | BlockState::ZERO };
        reply::block_status(&mut out, 4, wire::BASE_ALLOCATION_ID, &[data, hole]);
        reply::done(&mut out, 6);
    }
    reply::simple(&mut out, 8, Some(Errno::NoSpc));
    out
}
