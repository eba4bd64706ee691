//! Recordings: the requests of all hosts, as a trace.
//!
//! A recording has a thread of its own, that of its control conversation. It never slows down a
//! host: if it is too slow, requests are lost, and the end of the trace says how many.

use super::shared::{Shared, ask};
use crate::error::ServerError;
use crate::mailbox::Mailbox;
use crate::tap::{Buffer, Step, Tapped};
use std::collections::HashMap;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use weir_core::{DeviceId, Op};
use weir_trace::{Header, Kind, Order, Request, Ticket, WriteError, Writer};
use weir_units::{Instant, Span};
use weir_wall::calendar;

/// Time between two looks at the hosts.
const EVERY: Duration = Duration::from_millis(20);
/// Requests are held back for this long, so that those of several hosts come in order.
const HELD: Span = Span::from_secs(1);
/// The longest time that requests stay in memory only.
const FLUSHED: Span = Span::from_secs(10);

/// A host that is recorded.
struct Recorded {
    mailbox: Mailbox,
    buffer: Buffer,
    /// Requests that have begun and not ended.
    open: HashMap<NonZeroU64, Ticket>,
    /// The number of each device in the trace, as far as it was looked for; `None` if it is not
    /// recorded.
    devices: HashMap<usize, Option<u32>>,
    lost: u64,
}

/// A recording of a server's requests. The hosts forget it when it is dropped.
pub(crate) struct Recording<'a> {
    shared: &'a Shared,
    hosts: Vec<Recorded>,
    exports: Vec<String>,
    order: Order,
    start: Instant,
    start_unix_ns: u64,
    /// The hosts pass requests on.
    is_tapped: bool,
}

impl Shared {
    /// Begins to record the requests to exports; to all if none is named.
    pub(crate) fn begin_recording(&self, exports: &[String]) -> Result<Recording<'_>, ServerError> {
        let mailboxes: Vec<Mailbox> = {
            let hosts = self.hosts();
            let all = || hosts.iter().flat_map(|host| &host.layout.exports);
            for name in exports {
                if !all().any(|export| export.name == *name) {
                    let known = all().map(|export| export.name.as_str());
                    return Err(ServerError::not_there("export", name, known));
                }
            }
            hosts.iter().map(|host| host.mailbox.clone()).collect()
        };
        let mut recording = Recording {
            shared: self,
            hosts: Vec::new(),
            exports: exports.to_vec(),
            order: Order::new(0),
            start: self.clock.now(),
            start_unix_ns: calendar(),
            is_tapped: true,
        };
        for mailbox in mailboxes {
            let buffer = Buffer::default();
            let own = buffer.clone();
            if !ask(&mailbox, move |host, _| host.begin_recording(own))? {
                let reason = "another recording of this server is under way; end that one first";
                return Err(ServerError::Refused(reason.to_owned()));
            }
            let (open, devices) = (HashMap::new(), HashMap::new());
            recording.hosts.push(Recorded { mailbox, buffer, open, devices, lost: 0 });
        }
        Ok(recording)
    }
}

impl Recording<'_> {
    /// Sends the trace to a client until it shuts down its side, or the server stops.
    pub(crate) fn run(mut self, stream: &UnixStream) -> io::Result<()> {
        let header = Header {
            start_unix_ns: i64::try_from(self.start_unix_ns).ok(),
            source: "volumes served by weir".to_owned(),
            by: concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        stream.set_read_timeout(Some(EVERY))?;
        let out = BufWriter::new(stream);
        let mut writer = Writer::new(out, &header).map_err(of_socket)?;
        let mut flushed = self.start;
        let mut events = Vec::new();
        while !has_hung_up(stream)? {
            let now = self.shared.clock.now();
            self.collect(&mut events, &mut writer)?;
            let limit = settled(now, self.start);
            while let Some(request) = self.order.pop_before(limit) {
                writer.request(&request).map_err(of_socket)?;
            }
            if now - flushed >= FLUSHED {
                flushed = now;
                writer.flush().map_err(of_socket)?;
            }
        }
        self.untap();
        self.collect(&mut events, &mut writer)?;
        self.order.finish();
        while let Some(request) = self.order.pop() {
            writer.request(&request).map_err(of_socket)?;
        }
        let lost = self.hosts.iter().map(|host| host.lost).sum();
        writer.finish(lost).map_err(of_socket)?.flush()
    }

    /// Takes the events of all hosts.
    fn collect(
        &mut self,
        events: &mut Vec<Tapped>,
        writer: &mut Writer<impl Write>,
    ) -> io::Result<()> {
        for at in 0..self.hosts.len() {
            self.hosts[at].lost = self.hosts[at].buffer.take(events);
            for Tapped { number, step } in events.drain(..) {
                match step {
                    Step::Begun { device, op, offset, len, at: arrived } => {
                        let Some(device) = self.device(at, device, writer)? else { continue };
                        let request = Request {
                            at: Instant::ZERO + (arrived - self.start),
                            device,
                            kind: kind(op),
                            offset,
                            len,
                            latency: None,
                        };
                        let ticket = self.order.begin(request);
                        self.hosts[at].open.insert(number, ticket);
                    }
                    Step::Ended(latency) => {
                        if let Some(ticket) = self.hosts[at].open.remove(&number) {
                            self.order.end(ticket, latency);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the number of a host's device in the trace, if it is recorded.
    fn device(
        &mut self,
        host: usize,
        device: DeviceId,
        writer: &mut Writer<impl Write>,
    ) -> io::Result<Option<u32>> {
        if let Some(known) = self.hosts[host].devices.get(&device.0) {
            return Ok(*known);
        }
        let name = {
            let hosts = self.shared.hosts();
            let exports = hosts.get(host).map(|host| host.layout.exports.as_slice());
            let mut exports = exports.unwrap_or_default().iter();
            exports.find(|export| export.device == device).map(|export| export.name.clone())
        };
        // A device that has gone in the meantime.
        let name = name.unwrap_or_else(|| format!("device {}", device.0));
        let is_wanted = self.exports.is_empty() || self.exports.contains(&name);
        let number = if is_wanted { Some(writer.device(&name).map_err(of_socket)?) } else { None };
        self.hosts[host].devices.insert(device.0, number);
        Ok(number)
    }

    /// Ends the recording at all hosts. Everything until now is in their buffers.
    fn untap(&mut self) {
        // Otherwise they may belong to another recording by now.
        let is_tapped = std::mem::replace(&mut self.is_tapped, false);
        for host in self.hosts.iter().filter(|_| is_tapped) {
            // A host that has ended passes nothing on.
            let _ = ask(&host.mailbox, |host, _| host.end_recording());
        }
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.untap();
    }
}

/// Returns the time of a recording that began at `start` before which no host passes a request on
/// any more.
fn settled(now: Instant, start: Instant) -> Instant {
    Instant::ZERO + (now - start).saturating_sub(HELD)
}

fn kind(op: Op) -> Kind {
    match op {
        Op::Read => Kind::Read,
        Op::Write => Kind::Write,
        Op::WriteThrough => Kind::WriteThrough,
        Op::Discard => Kind::Discard,
        Op::Flush => Kind::Flush,
    }
}

/// Waits a moment for the client; returns whether it has shut down its side.
fn has_hung_up(mut stream: &UnixStream) -> io::Result<bool> {
    match stream.read(&mut [0; 64]) {
        Ok(0) => Ok(true),
        // It has nothing more to say.
        Ok(_) => Ok(false),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(false),
            _ => Err(error),
        },
    }
}

fn of_socket(error: WriteError) -> io::Error {
    match error {
        WriteError::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_held_back_by_the_time_of_the_recording() {
        let at = |seconds| Instant::ZERO + Span::from_secs(seconds);
        // The server has run for 100 s before.
        assert_eq!(settled(at(105), at(100)), at(4));
        assert_eq!(settled(at(100), at(100)), at(0));
    }
}
