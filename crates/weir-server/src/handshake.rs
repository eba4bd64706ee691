//! The handshake of a client up to the chosen export, and which exports the client may see.

use crate::audit::{Audit, FrontEnd};
use crate::connection::{Established, Stream};
use crate::door::Entry;
use crate::listener::{Directory, Served};
use crate::mailbox::Message;
use crate::tls::{Encryption, Tls};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_layout::clients::Client;
use weir_proto::server::{Exports, Handshake, Session, Step};
use weir_proto::{Export, ProtoError};
use weir_wall::Clock;

/// Names of exports whose refusal a handshake records. A client may ask for thousands.
const RECORDED: usize = 8;

/// Negotiates with a client and hands it to its host. A client that fails is recorded.
pub(crate) fn shake_hands(entry: Entry, directory: &Directory, audit: &Audit, tls: Option<&Tls>) {
    let peer = entry.guest.stream.peer();
    match negotiate(&entry, directory, (audit, &peer), tls) {
        // It sees its connection close if it cannot be handed over.
        Ok(agreed) => drop(hand_over(entry, directory, audit, agreed)),
        Err(Ended::Gone) => {}
        Err(Ended::Refused(why)) => audit.refuse(FrontEnd::Nbd, &peer, &"handshake", &why),
    }
}

fn hand_over(entry: Entry, directory: &Directory, audit: &Audit, agreed: Agreed) -> io::Result<()> {
    let (session, tls, rest) = agreed;
    let Some((stream, place)) = entry.establish() else { return Ok(()) };
    set_timeouts(&stream, None)?;
    match &stream {
        Stream::Unix(stream) => stream.set_nonblocking(true)?,
        Stream::Tcp(stream) => stream.set_nonblocking(true)?,
    }
    if let Some(served) = directory.get(&session.export.name) {
        let Served { device, seat, view, host, .. } = served;
        let (audit, place) = (audit.clone(), Some(place));
        let hello = Established { session, device, tls, rest, seat, view, audit, place };
        host.send(Message::Client(stream, hello));
    }
    Ok(())
}

/// The exports as one client may see them. Others are not listed, and looking for one has the answer for a
/// name that does not exist: a client that may not reach an export must not learn of it.
struct Visible<'a> {
    directory: &'a Directory,
    audit: &'a Audit,
    peer: &'a str,
    /// A client over TCP.
    client: Option<Client>,
    /// Names whose refusal was recorded, at most [`RECORDED`]. Clients ask several times for an export.
    refused: RefCell<BTreeSet<String>>,
}

impl Visible<'_> {
    /// Checks that the client may reach an export.
    fn check(&self, served: &Served) -> Result<(), &'static str> {
        match (&served.clients, &self.client) {
            (Some(clients), Some(client)) => clients.check(client),
            _ => Ok(()),
        }
    }

    fn refuse(&self, name: &str, why: &str) {
        let mut refused = self.refused.borrow_mut();
        if refused.len() < RECORDED && refused.insert(name.to_owned()) {
            let what = format!("export {name}");
            self.audit.refuse(FrontEnd::Nbd, &self.peer, &what, &why);
        }
    }
}

impl Exports for Visible<'_> {
    fn find(&self, name: &str) -> Option<Export> {
        let found = match name {
            // The default is the same export for all clients: a client that may not reach it anymore must
            // not find another one in its place.
            "" => self.directory.read().first().cloned(),
            _ => self.directory.get(name),
        };
        let Some(served) = found else {
            self.refuse(name, "there is no such export");
            return None;
        };
        if let Err(why) = self.check(&served) {
            self.refuse(name, why);
            return None;
        }
        Directory::describe(&served)
    }

    fn list(&self) -> Vec<Export> {
        let all = self.directory.read();
        all.iter().filter(|own| self.check(own).is_ok()).map(Directory::listed).collect()
    }
}

/// The result of a handshake: the session, its encryption, and the bytes that followed it.
type Agreed = (Session, Option<Encryption>, Vec<u8>);

/// The end of a handshake without a session.
enum Ended {
    /// The client has ended it, or the connection is lost.
    Gone,
    /// It did what is not permitted.
    Refused(String),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                Self::Refused("the handshake took too long".to_owned())
            }
            ErrorKind::InvalidData => Self::Refused(error.to_string()),
            _ => Self::Gone,
        }
    }
}

/// Negotiates with a client.
fn negotiate(
    entry: &Entry,
    directory: &Directory,
    (audit, peer): (&Audit, &str),
    tls: Option<&Tls>,
) -> Result<Agreed, Ended> {
    let stream = &entry.guest.stream;
    // The limit is for all of it: a client that sends a byte now and then has no
    // more time than one that sends none.
    let (clock, most) = (Clock::start(), Duration::from_nanos(entry.longest().nanos()));
    let limit = || {
        let left = most.saturating_sub(Duration::from_nanos(clock.now().nanos()));
        match left.is_zero() {
            true => Err(ErrorKind::TimedOut.into()),
            false => set_timeouts(stream, Some(left)),
        }
    };
    limit()?;
    let client = stream.address().map(|address| Client { address, names: Vec::new() });
    let mut visible = Visible { directory, audit, peer, client, refused: RefCell::default() };
    let mut talk = Talk { stream, encryption: None };
    let (mut input, mut out) = (Vec::new(), Vec::new());
    let mut handshake = Handshake::start(&mut out);
    if tls.is_some() {
        handshake = handshake.with_tls();
    }
    talk.write_all(&out)?;
    loop {
        out.clear();
        let progress =
            handshake.handle(&visible, &input, &mut out).map_err(|error| match error {
                // The refusal of the name was recorded.
                ProtoError::UnknownExport(_) => Ended::Gone,
                _ => Ended::Refused(error.to_string()),
            })?;
        input.drain(..progress.consumed);
        talk.write_all(&out)?;
        match progress.step {
            Step::Again => {}
            Step::Aborted => return Err(ended_by_client(entry, tls, &talk)),
            Step::Established(session) => return Ok((session, talk.encryption, input)),
            Step::StartTls => {
                // It was not encrypted, so a man in the middle may have injected it.
                let Some(tls) = tls.filter(|_| input.is_empty()) else {
                    return Err(Ended::Refused("plain text follows the start of TLS".to_owned()));
                };
                let encryption = Encryption::agree(tls, stream, limit)?;
                if let Some(client) = &mut visible.client {
                    client.names = encryption.client_names();
                }
                talk.encryption = Some(encryption);
            }
            Step::NeedMore { at_least } => {
                let mut chunk = [0; 4096];
                while input.len() < at_least {
                    limit()?;
                    match talk.read(&mut chunk)? {
                        0 => return Err(ended_by_client(entry, tls, &talk)),
                        n => input.extend_from_slice(&chunk[..n]),
                    }
                    entry.guest.has_spoken.store(true, Ordering::Release);
                }
            }
        }
    }
}

/// Returns whether a client that ends its handshake was refused: it asked for something without TLS.
fn ended_by_client(entry: &Entry, tls: Option<&Tls>, talk: &Talk<'_>) -> Ended {
    let has_spoken = entry.guest.has_spoken.load(Ordering::Acquire);
    match tls.is_some() && talk.encryption.is_none() && has_spoken {
        true => Ended::Refused("the client did not start TLS".to_owned()),
        false => Ended::Gone,
    }
}

/// A client during its handshake, in plain or encrypted. Calls block.
struct Talk<'a> {
    stream: &'a Stream,
    encryption: Option<Encryption>,
}

impl Read for Talk<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.encryption {
            None => self.stream.read(buf),
            Some(encryption) => encryption.read(self.stream, buf),
        }
    }
}

impl Write for Talk<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.encryption {
            None => self.stream.write(buf),
            Some(encryption) => encryption.write(self.stream, buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn set_timeouts(stream: &Stream, timeout: Option<Duration>) -> io::Result<()> {
    match stream {
        Stream::Unix(stream) => {
            stream.set_read_timeout(timeout)?;
            stream.set_write_timeout(timeout)
        }
        Stream::Tcp(stream) => {
            stream.set_read_timeout(timeout)?;
            stream.set_write_timeout(timeout)
        }
    }
}
