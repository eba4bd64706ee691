//! The connections of a run, one for each process and device, and which of them
//! can go on.

use crate::client::Connection;
use crate::error::RunnerError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_proto::Uri;
use weir_units::{Bytes, Span};
use weir_wall::{Events, Interest, Poller};
use weir_workload::job::Mix;
use weir_workload::{JobSpec, Placed, Region};

/// Requests are sent when this many bytes are queued, or when there are no more: a
/// server that gets the first writes of a batch early works on them while the rest
/// is made.
const SEND_AT: usize = 64 << 10;

/// The number of a connection.
pub(super) type LinkId = usize;

struct Link {
    connection: Connection,
    device: u32,
    /// It stands in `Links::touched`.
    touched: bool,
    /// The socket is full; the poller tells when it is not.
    blocked: bool,
}

pub(super) struct Links {
    poller: Poller,
    /// By process.
    links: Vec<Link>,
    /// The first link of each process.
    first: Vec<LinkId>,
    /// Links with something to send.
    touched: Vec<LinkId>,
}

impl Links {
    pub(super) fn open(placed: &[Placed], uris: &[Uri]) -> Result<Self, RunnerError> {
        raise_file_limit();
        let poller = Poller::new();
        let poller = poller.map_err(RunnerError::system("preparing to wait for replies"))?;
        let (links, first) = (Vec::new(), Vec::with_capacity(placed.len()));
        let mut opening = Self { poller, links, first, touched: Vec::new() };
        for process in placed {
            opening.connect(process, uris)?;
        }
        Ok(opening)
    }

    fn connect(&mut self, process: &Placed, uris: &[Uri]) -> Result<(), RunnerError> {
        let first = self.links.len();
        self.first.push(first);
        for region in &process.regions {
            let uri = uris.get(region.device as usize);
            let uri = uri.unwrap_or_else(|| panic!("device {} has no URI", region.device));
            let known = self.links[first..].iter().position(|link| link.device == region.device);
            let id = known.map_or(self.links.len(), |known| first + known);
            if known.is_none() {
                let connection = Connection::open(uri)?;
                connection.set_nonblocking(true)?;
                let watched = self.poller.add(&connection, id as u64, Interest::READ);
                watched.map_err(RunnerError::system("watching a connection"))?;
                let device = region.device;
                self.links.push(Link { connection, device, touched: false, blocked: false });
            }
            check(&self.links[id].connection, &process.spec, region, uri)?;
        }
        Ok(())
    }

    /// The link of a process to one of its devices.
    #[inline]
    pub(super) fn of(&self, process: u32, device: u32) -> LinkId {
        let mut id = self.first[process as usize];
        // A process has a link to each of its devices, and few devices.
        while self.links[id].device != device {
            id += 1;
        }
        id
    }

    #[inline]
    pub(super) fn connection(&mut self, id: LinkId) -> &mut Connection {
        &mut self.links[id].connection
    }

    pub(super) fn device(&self, id: LinkId) -> usize {
        self.links[id].device as usize
    }

    /// The link has something to send. Tells whether that should go at once.
    #[inline]
    pub(super) fn touch(&mut self, id: LinkId) -> bool {
        let link = &mut self.links[id];
        if !link.touched {
            link.touched = true;
            self.touched.push(id);
        }
        !link.blocked && link.connection.unsent() >= SEND_AT
    }

    /// Sends what the socket takes.
    pub(super) fn send(&mut self, id: LinkId) -> Result<(), RunnerError> {
        let link = &mut self.links[id];
        let blocked = !link.connection.flush_out()?;
        if blocked != link.blocked {
            link.blocked = blocked;
            let wanted = Interest { read: true, write: blocked };
            let watched = self.poller.modify(&link.connection, id as u64, wanted);
            watched.map_err(RunnerError::system("watching a connection"))?;
        }
        Ok(())
    }

    pub(super) fn send_touched(&mut self) -> Result<(), RunnerError> {
        while let Some(id) = self.touched.pop() {
            let link = &mut self.links[id];
            link.touched = false;
            if !link.blocked && link.connection.wants_write() {
                self.send(id)?;
            }
        }
        Ok(())
    }

    /// Waits until a link can go on, or for `timeout`.
    pub(super) fn wait(
        &self,
        events: &mut Events,
        timeout: Option<Span>,
    ) -> Result<(), RunnerError> {
        let waited = self.poller.wait(events, timeout);
        waited.map_err(RunnerError::system("waiting for replies"))
    }

    /// Says goodbye. By now everything is answered, so whether the server still
    /// hears it changes nothing.
    pub(super) fn close(&mut self) {
        for link in self.links.drain(..) {
            let _ = link.connection.close();
        }
    }
}

/// Whether the export takes what the job will ask of it.
fn check(
    connection: &Connection,
    spec: &JobSpec,
    region: &Region,
    uri: &Uri,
) -> Result<(), RunnerError> {
    let (size, maximum) = (connection.size(), connection.session().block.max_payload());
    let needed = Bytes::new(region.base.get().saturating_add(region.len.get()));
    if needed > size {
        let (job, export) = (spec.name.clone(), uri.export.clone());
        return Err(RunnerError::TooSmall { job, export, size, needed });
    }
    if spec.mix != Mix::Trim && spec.max_block() > maximum {
        let length = spec.max_block() as usize;
        return Err(RunnerError::TooLong { length, maximum }.of_job(&spec.name));
    }
    Ok(())
}

/// More processes than the usual 1,024 descriptors allow.
fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Where it is not allowed, the old limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
