//! A test double of SQL Server: the part of TDS 7.4 that a login and batches need. It
//! has no data: each test defines the answer to each batch. It follows MS-TDS, sections 2.2.6 and
//! 2.2.7, byte by byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const BATCH: u8 = 0x01;
const RESPONSE: u8 = 0x04;
const LOGIN7: u8 = 0x10;
const PRELOGIN: u8 = 0x12;
const ENCRYPTION_NOT_SUPPORTED: u8 = 2;
const DONE: u8 = 0xfd;
const DONE_MORE: u16 = 1;
const DONE_ERROR: u16 = 2;
const DONE_COUNT: u16 = 0x10;
/// Packets of this size hold all clients.
const PACKET: usize = 4096;

/// A value of a column.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Number(Option<i64>),
    Text(Option<&'static str>),
    Bit(bool),
    /// A moment, whichever.
    Time,
}

/// The answer to a batch.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Sets(Vec<(Vec<&'static str>, Vec<Vec<Value>>)>),
    Error {
        number: i32,
        class: u8,
        text: &'static str,
    },
    /// The connection breaks.
    Hangup,
}

/// The login of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) name: String,
    pub(super) password: String,
    pub(super) program: String,
    pub(super) database: String,
    pub(super) is_read_only: bool,
}

type Answers = dyn FnMut(&str) -> Reply + Send;

/// See the module.
pub(super) struct Double {
    pub(super) address: SocketAddr,
    /// All that logged in, or tried to.
    pub(super) logins: Arc<Mutex<Vec<Login>>>,
    /// All batches.
    pub(super) batches: Arc<Mutex<Vec<String>>>,
}

impl Double {
    /// Lets in who has that password, and answers.
    pub(super) fn start(
        password: &'static str,
        answers: impl FnMut(&str) -> Reply + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (logins, batches) = (Arc::default(), Arc::default());
        let double = Self { address, logins, batches };
        let (logins, batches) = (Arc::clone(&double.logins), Arc::clone(&double.batches));
        let answers: Arc<Mutex<Box<Answers>>> = Arc::new(Mutex::new(Box::new(answers)));
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut session = Session { stream: client.expect("a client") };
                let (logins, batches) = (Arc::clone(&logins), Arc::clone(&batches));
                let answers = Arc::clone(&answers);
                // A client that is gone ends its session.
                thread::spawn(move || drop(session.serve(password, &logins, &batches, &answers)));
            }
        });
        double
    }
}

struct Session {
    stream: TcpStream,
}

impl Session {
    fn serve(
        &mut self,
        password: &str,
        logins: &Mutex<Vec<Login>>,
        batches: &Mutex<Vec<String>>,
        answers: &Mutex<Box<Answers>>,
    ) -> std::io::Result<()> {
        loop {
            let (kind, message) = self.message()?;
            let reply = match kind {
                PRELOGIN => prelogin(),
                LOGIN7 => {
                    let login = login(&message);
                    let is_right = login.password == password;
                    let name = login.name.clone();
                    logins.lock().expect("logins").push(login);
                    if is_right { welcome() } else { wrong_login(&name) }
                }
                BATCH => {
                    let text = batch(&message);
                    let answer = (answers.lock().expect("answers"))(&text);
                    batches.lock().expect("batches").push(text);
                    match answer {
                        Reply::Sets(sets) => result(&sets),
                        Reply::Error { number, class, text } => failure(number, class, text),
                        Reply::Hangup => return Err(ErrorKind::ConnectionReset.into()),
                    }
                }
                kind => panic!("the double does not know messages of type {kind:#x}"),
            };
            self.send(&reply)?;
        }
    }

    /// A message of a client, over all its packets.
    fn message(&mut self) -> std::io::Result<(u8, Vec<u8>)> {
        let mut message = Vec::new();
        loop {
            let mut head = [0; 8];
            self.stream.read_exact(&mut head)?;
            let length = usize::from(u16::from_be_bytes([head[2], head[3]])) - head.len();
            let start = message.len();
            message.resize(start + length, 0);
            self.stream.read_exact(&mut message[start..])?;
            if head[1] & 1 == 1 {
                return Ok((head[0], message));
            }
        }
    }

    fn send(&mut self, message: &[u8]) -> std::io::Result<()> {
        let mut parts = message.chunks(PACKET - 8).peekable();
        while let Some(part) = parts.next() {
            let last = u8::from(parts.peek().is_none());
            let length = u16::try_from(part.len() + 8).expect("short").to_be_bytes();
            let mut packet = vec![RESPONSE, last, length[0], length[1], 0, 0, 1, 0];
            packet.extend(part);
            self.stream.write_all(&packet)?;
        }
        Ok(())
    }
}

/// Version 16.0.1000 and no encryption: two options, their places, and an end.
fn prelogin() -> Vec<u8> {
    let mut reply = vec![0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff];
    reply.extend([16, 0, 0x03, 0xe8, 0, 0, ENCRYPTION_NOT_SUPPORTED]);
    reply
}

fn login(message: &[u8]) -> Login {
    let number = |at: usize| usize::from(u16::from_le_bytes([message[at], message[at + 1]]));
    let bytes = |at: usize| &message[number(at)..number(at) + 2 * number(at + 2)];
    // Each byte of a password has its halves changed, and 0xA5 over it.
    let plain: Vec<_> = bytes(44).iter().map(|byte| (byte ^ 0xa5).rotate_left(4)).collect();
    Login {
        name: wide(bytes(40)),
        password: wide(&plain),
        program: wide(bytes(48)),
        database: wide(bytes(68)),
        is_read_only: message[26] & 0x20 != 0,
    }
}

/// The text of a batch, behind its headers.
fn batch(message: &[u8]) -> String {
    let headers = u32::from_le_bytes(message[..4].try_into().expect("four bytes"));
    wide(&message[usize::try_from(headers).expect("small")..])
}

fn wide(bytes: &[u8]) -> String {
    let units: Vec<_> =
        bytes.chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
    String::from_utf16(&units).expect("text")
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A text with its length in characters before it, in one byte.
fn short(text: &str) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(text.encode_utf16().count()).expect("short")];
    bytes.extend(utf16(text));
    bytes
}

fn done(status: u16, rows: usize) -> Vec<u8> {
    let mut bytes = vec![DONE];
    bytes.extend(status.to_le_bytes());
    bytes.extend([0xc1, 0]);
    bytes.extend((rows as u64).to_le_bytes());
    bytes
}

fn token(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(u16::try_from(body.len()).expect("short").to_le_bytes());
    bytes.extend(body);
    bytes
}

fn welcome() -> Vec<u8> {
    let mut body = vec![1, 0x74, 0, 0, 4];
    body.extend(short("Microsoft SQL Server"));
    body.extend([16, 0, 0x03, 0xe8]);
    let mut bytes = token(0xad, &body);
    bytes.extend(done(0, 0));
    bytes
}

fn wrong_login(name: &str) -> Vec<u8> {
    failure(18456, 14, &format!("Login failed for user '{name}'."))
}

fn failure(number: i32, class: u8, text: &str) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.extend([1, class]);
    body.extend(u16::try_from(text.encode_utf16().count()).expect("short").to_le_bytes());
    body.extend(utf16(text));
    body.extend(short("DOUBLE"));
    body.extend(short(""));
    body.extend(1_u32.to_le_bytes());
    let mut bytes = token(0xaa, &body);
    bytes.extend(done(DONE_ERROR, 0));
    bytes
}

fn result(sets: &[(Vec<&'static str>, Vec<Vec<Value>>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, (columns, rows)) in sets.iter().enumerate() {
        bytes.push(0x81);
        bytes.extend(u16::try_from(columns.len()).expect("few").to_le_bytes());
        for (name, value) in columns.iter().zip(rows.first().expect("rows")) {
            bytes.extend([0, 0, 0, 0, 1, 0]);
            bytes.extend(kind(value));
            bytes.extend(short(name));
        }
        for row in rows {
            bytes.push(0xd1);
            row.iter().for_each(|value| bytes.extend(field(value)));
        }
        let more = if at + 1 < sets.len() { DONE_MORE } else { 0 };
        bytes.extend(done(DONE_COUNT | more, rows.len()));
    }
    bytes
}

/// BIGINT and BIT that may be NULL, NVARCHAR(4000), DATETIME2(7).
fn kind(value: &Value) -> Vec<u8> {
    match value {
        Value::Number(_) => vec![0x26, 8],
        Value::Bit(_) => vec![0x68, 1],
        Value::Text(_) => vec![0xe7, 0x40, 0x1f, 0x09, 0x04, 0xd0, 0x00, 0x34],
        Value::Time => vec![0x2a, 7],
    }
}

fn field(value: &Value) -> Vec<u8> {
    match value {
        Value::Number(None) => vec![0],
        Value::Number(Some(number)) => [&[8][..], &number.to_le_bytes()].concat(),
        Value::Bit(bit) => vec![1, u8::from(*bit)],
        Value::Text(None) => vec![0xff, 0xff],
        Value::Text(Some(text)) => {
            let length = u16::try_from(2 * text.encode_utf16().count()).expect("short");
            [&length.to_le_bytes()[..], &utf16(text)].concat()
        }
        Value::Time => vec![8, 0, 0, 0, 0, 0, 0x6c, 0x49, 0x0b],
    }
}
