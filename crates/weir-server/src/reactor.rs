//! Sockets and deadlines of one host: the loop that turns [`HostLoop`].

use crate::clock::Clock;
use crate::connection::{Connection, Established, Interest, State, Stream};
use crate::error::ServerError;
use crate::host_loop::{ClientId, HostLoop, Replies, ReplyTo};
use crate::worker::{Finished, Workers};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use slab::Slab;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use weir_units::Instant;
use weir_units::time::NANOS_PER_SEC;

/// The key under which the wake-up descriptor is registered.
const WAKE: u64 = u64::MAX;

/// Replies are sent when this many bytes are ready, or when there are no more: a
/// client that gets the first replies of a batch early works on them while the
/// rest is made.
const SEND_AT: usize = 16 << 10;

/// What others tell a reactor.
pub(crate) enum Message {
    /// A client has chosen one of this host's exports.
    Client(Stream, Established),
    /// Something to do on the reactor's thread.
    Call(Box<dyn FnOnce(&mut HostLoop, Instant) + Send>),
    /// A worker is done.
    Finished(Finished),
    /// The host crashes: every client is cut off.
    Crash(Sender<weir_units::Bytes>),
    /// Complete what is under way, then end.
    Stop,
}

/// The way to a reactor, for other threads.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox {
    sender: Sender<Message>,
    wake: Arc<OwnedFd>,
}

impl Mailbox {
    /// Leaves a message. A reactor that has ended takes none, which is as well.
    pub(crate) fn send(&self, message: Message) {
        if self.sender.send(message).is_ok() {
            let _ = rustix::io::write(self.wake.as_fd(), &1_u64.to_ne_bytes());
        }
    }

    /// Does `call` on the reactor's thread and waits for what it returns; `None`
    /// if the reactor has ended.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HostLoop, Instant) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = channel();
        self.send(Message::Call(Box::new(move |host, now| {
            let _ = sender.send(call(host, now));
        })));
        receiver.recv().ok()
    }
}

/// The clients of a reactor, by number.
#[derive(Debug, Default)]
struct Clients {
    open: Slab<Connection>,
    count: u32,
}

impl Clients {
    /// The slab's key in the low half, a number that never comes again in the high.
    fn next_id(&mut self) -> ClientId {
        self.count = self.count.wrapping_add(1);
        ClientId(u64::from(self.count) << 32 | self.open.vacant_key() as u64)
    }

    fn get(&mut self, id: ClientId) -> Option<&mut Connection> {
        let key = usize::try_from(id.0 & u64::from(u32::MAX)).ok()?;
        self.open.get_mut(key).filter(|connection| connection.id == id)
    }
}

/// Buffers of the clients, and which of them got something.
struct Outbox<'a> {
    clients: &'a mut Clients,
    touched: &'a mut Vec<ClientId>,
}

impl Replies for Outbox<'_> {
    fn reply_to(&mut self, client: ClientId) -> Option<ReplyTo<'_>> {
        let connection = self.clients.get(client)?;
        if connection.unsent() >= SEND_AT {
            // A broken socket shows again when the client is looked after.
            let _ = connection.flush();
        }
        if self.touched.last() != Some(&client) {
            self.touched.push(client);
        }
        Some(connection.reply_to())
    }
}

/// One host's thread.
#[derive(Debug)]
pub(crate) struct Reactor {
    host: HostLoop,
    clock: Clock,
    epoll: OwnedFd,
    inbox: Receiver<Message>,
    mailbox: Mailbox,
    workers: Workers,
    clients: Clients,
    /// Clients to send to and to look after in this round.
    touched: Vec<ClientId>,
    stopping: bool,
}

impl Reactor {
    pub(crate) fn new(name: &str, host: HostLoop, clock: Clock) -> Result<Self, ServerError> {
        let system = ServerError::system("preparing a host's thread");
        let (epoll, wake) = descriptors().map_err(|errno| system(errno.into()))?;
        let (sender, inbox) = channel();
        let mailbox = Mailbox { sender, wake: Arc::new(wake) };
        let back = mailbox.clone();
        let workers = Workers::new(name, move |done| back.send(Message::Finished(done)));
        let (clients, touched) = (Clients::default(), Vec::new());
        Ok(Self { host, clock, epoll, inbox, mailbox, workers, clients, touched, stopping: false })
    }

    pub(crate) fn mailbox(&self) -> Mailbox {
        self.mailbox.clone()
    }

    /// Runs until told to stop and everything under way is answered.
    pub(crate) fn run(mut self) -> Result<HostLoop, ServerError> {
        // The kernel may otherwise be 50 µs late for every deadline.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut events = Vec::with_capacity(256);
        loop {
            let timeout = self.timeout();
            events.clear();
            let buffer = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, buffer, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => {
                    return Err(ServerError::system("waiting for events")(errno.into()));
                }
            }
            let now = self.clock.now();
            for event in &events {
                self.handle(event, now)?;
            }
            self.advance()?;
            if self.stopping && self.host.outstanding() == 0 && self.all_sent() {
                return Ok(self.host);
            }
        }
    }

    /// How long nothing is due.
    fn timeout(&self) -> Option<Timespec> {
        let wait = (self.host.deadline()? - self.clock.now()).nanos();
        let part = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        Some(Timespec { tv_sec: part(wait / NANOS_PER_SEC), tv_nsec: part(wait % NANOS_PER_SEC) })
    }

    fn handle(&mut self, event: &epoll::Event, now: Instant) -> Result<(), ServerError> {
        let (data, flags) = (event.data.u64(), event.flags);
        if data == WAKE {
            return self.read_mail(now);
        }
        let id = ClientId(data);
        let Some(connection) = self.clients.get(id) else { return Ok(()) };
        let state = match flags.contains(epoll::EventFlags::IN) {
            true => connection.receive(now, &mut self.host),
            false if flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR) => {
                State::Closed
            }
            false => State::Open,
        };
        match state {
            State::Open => self.touched.push(id),
            State::Closed => self.forget(id),
        }
        Ok(())
    }

    fn read_mail(&mut self, now: Instant) -> Result<(), ServerError> {
        let _ = rustix::io::read(self.mailbox.wake.as_fd(), &mut [0_u8; 8]);
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Client(stream, hello) => self.welcome(stream, hello, now)?,
                Message::Call(call) => call(&mut self.host, self.clock.now()),
                Message::Finished(done) => {
                    let (clients, touched) = (&mut self.clients, &mut self.touched);
                    let now = self.clock.now();
                    self.host.finished(now, done, &mut Outbox { clients, touched });
                }
                Message::Crash(answer) => {
                    let _ = answer.send(self.host.crash(self.clock.now()));
                    self.clients.open.clear();
                }
                Message::Stop => {
                    self.stopping = true;
                    self.host.drain(self.clock.now());
                    for (_, connection) in &mut self.clients.open {
                        connection.closing = true;
                        self.touched.push(connection.id);
                    }
                }
            }
        }
        Ok(())
    }

    fn welcome(
        &mut self,
        stream: Stream,
        hello: Established,
        now: Instant,
    ) -> Result<(), ServerError> {
        if self.stopping {
            return Ok(());
        }
        let id = self.clients.next_id();
        let data = epoll::EventData::new_u64(id.0);
        epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN)
            .map_err(|errno| ServerError::system("watching a client")(errno.into()))?;
        let mut connection = Connection::new(stream, id, hello);
        let state = connection.take(now, &mut self.host);
        self.clients.open.insert(connection);
        match state {
            State::Open => self.touched.push(id),
            State::Closed => self.forget(id),
        }
        Ok(())
    }

    /// Completes what is due, sends the replies, hands jobs to the workers.
    fn advance(&mut self) -> Result<(), ServerError> {
        let now = self.clock.now();
        let (clients, touched) = (&mut self.clients, &mut self.touched);
        self.host.advance(now, &mut Outbox { clients, touched });
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            self.look_after(id, now)?;
        }
        self.touched = touched;
        for job in self.host.take_jobs() {
            self.workers.run(move || job.run())?;
        }
        Ok(())
    }

    /// Sends to a client, goes on with input that had to wait for room, and
    /// adjusts what epoll watches.
    fn look_after(&mut self, id: ClientId, now: Instant) -> Result<(), ServerError> {
        let Some(connection) = self.clients.get(id) else { return Ok(()) };
        let mut state = connection.flush();
        if state == State::Open && !connection.interest.read {
            state = connection.take(now, &mut self.host);
        }
        if state == State::Closed || (connection.closing && connection.is_idle()) {
            self.forget(id);
            return Ok(());
        }
        let wants = connection.wants();
        if wants != connection.interest {
            connection.interest = wants;
            let data = epoll::EventData::new_u64(id.0);
            epoll::modify(&self.epoll, &connection.stream, data, flags(wants))
                .map_err(|errno| ServerError::system("watching a client")(errno.into()))?;
        }
        Ok(())
    }

    /// Drops a client; what it asked for completes and goes nowhere.
    fn forget(&mut self, id: ClientId) {
        if self.clients.get(id).is_some()
            && let Ok(key) = usize::try_from(id.0 & u64::from(u32::MAX))
        {
            // Closing the socket also takes it out of epoll.
            drop(self.clients.open.remove(key));
        }
    }

    fn all_sent(&self) -> bool {
        self.clients.open.iter().all(|(_, connection)| connection.is_idle())
    }
}

fn descriptors() -> Result<(OwnedFd, OwnedFd), rustix::io::Errno> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
    Ok((epoll, wake))
}

fn flags(interest: Interest) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, interest.read);
    flags.set(epoll::EventFlags::OUT, interest.write);
    flags
}
