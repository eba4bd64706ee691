//! Sockets and deadlines of one host: the loop that turns [`HostLoop`].

use crate::connection::{Connection, Established, Stalling, State, Stream};
use crate::errand::{Errands, NewErrand};
use crate::error::ServerError;
use crate::host_loop::{ClientId, HostLoop, Owing, Replies, ReplyTo};
use crate::mailbox::{Adding, Mailbox, Message, Removed, Removing};
use crate::memory::Memory;
use crate::notice::{Listening, Notice};
use crate::worker::Workers;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::sync::mpsc::{Receiver, channel};
use weir_core::VolumeId;
use weir_units::{Instant, Span};
use weir_wall::{Clock, Event, Events, Interest, Poller, Sleeper, Waiting, thread_time};

/// The key under which the wake-up descriptor is registered.
const WAKE: u64 = u64::MAX;

/// Replies are sent when this many bytes are ready, or when there are no more: a
/// client that gets the first replies of a batch early works on them while the
/// rest is made.
const SEND_AT: usize = 16 << 10;

/// The longest time in which a client takes no reply once the server stops.
const PATIENCE: Span = Span::from_secs(3);

/// Clients that waited for memory and are looked after in one round.
const FED_AT_ONCE: usize = 16;

/// The clients of a reactor, by number.
#[derive(Debug)]
struct Clients {
    open: Slab<Connection>,
    count: u32,
    memory: Memory,
    /// The client whose buffer was lent last: its holdings may have grown.
    lent: Option<ClientId>,
    /// A client began to wait for memory, so unused memory should not be kept.
    is_untidy: bool,
}

impl Clients {
    /// Returns the slab's key in the low half, a number that never comes again in the high.
    fn next_id(&mut self) -> ClientId {
        self.count = self.count.wrapping_add(1) & (u32::MAX >> 1);
        ClientId(u64::from(self.count) << 32 | self.open.vacant_key() as u64)
    }

    fn get(&mut self, id: ClientId) -> Option<&mut Connection> {
        let key = usize::try_from(id.0 & u64::from(u32::MAX)).ok()?;
        self.open.get_mut(key).filter(|connection| connection.id == id)
    }

    /// Charges a client for what it holds, and returns it.
    fn settled(&mut self, id: ClientId) -> Option<&mut Connection> {
        let key = usize::try_from(id.0 & u64::from(u32::MAX)).ok()?;
        let connection = self.open.get_mut(key).filter(|connection| connection.id == id)?;
        let held = connection.held();
        self.memory.settle(&mut connection.share, held);
        Some(connection)
    }

    /// Returns a client whose reply buffer is about to grow, after the one before is charged.
    fn lend(&mut self, id: ClientId) -> Option<&mut Connection> {
        if let Some(last) = self.lent.replace(id)
            && last != id
        {
            self.settled(last);
        }
        self.settled(id)
    }

    /// Takes back memory that clients keep for later requests.
    fn tidy(&mut self) {
        for (_, connection) in &mut self.open {
            connection.tidy();
            let held = connection.held();
            self.memory.settle(&mut connection.share, held);
        }
    }

    /// Removes a client.
    fn remove(&mut self, id: ClientId) -> bool {
        let Ok(key) = usize::try_from(id.0 & u64::from(u32::MAX)) else { return false };
        if self.get(id).is_none() {
            return false;
        }
        // Closing the socket also takes it out of the poller.
        let connection = self.open.remove(key);
        self.memory.release(&connection.share);
        true
    }

    /// Removes all clients.
    fn clear(&mut self) {
        for connection in self.open.drain() {
            self.memory.release(&connection.share);
        }
    }
}

/// Buffers of the clients, and which of them got something.
struct Outbox<'a> {
    clients: &'a mut Clients,
    errands: &'a mut Errands,
    touched: &'a mut Vec<ClientId>,
}

impl Replies for Outbox<'_> {
    fn reply_to(&mut self, client: ClientId) -> Option<ReplyTo<'_>> {
        if Errands::has(client) {
            let to = self.errands.reply_to(client)?;
            self.touched.push(client);
            return Some(to);
        }
        let connection = self.clients.get(client)?;
        if connection.unsent() >= SEND_AT {
            // A broken socket shows again when the client is looked after.
            let _ = connection.flush();
        }
        if self.touched.last() != Some(&client) {
            self.touched.push(client);
        }
        self.clients.lend(client).map(Connection::reply_to)
    }
}

/// The options of a host's thread.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) notices: Listening,
    pub(crate) waiting: Waiting,
    pub(crate) memory: Memory,
    pub(crate) stall: Stalling,
}

/// One host's thread.
#[derive(Debug)]
pub(crate) struct Reactor {
    name: String,
    host: HostLoop,
    clock: Clock,
    poller: Poller,
    sleeper: Sleeper,
    inbox: Receiver<Message>,
    mailbox: Mailbox,
    workers: Workers,
    clients: Clients,
    errands: Errands,
    /// By their numbers, for what is to be told.
    volumes: Vec<String>,
    notices: Listening,
    removing: Vec<Removing>,
    /// Clients to send to and to look after in this round.
    touched: Vec<ClientId>,
    /// Set when it is to stop: when it next looks for clients that do not listen.
    stopping: Option<Instant>,
    /// Set while clients keep the server waiting: when it next looks for those that have stalled.
    patrol: Option<Instant>,
    stall: Stalling,
}

impl Reactor {
    pub(crate) fn new(
        name: &str,
        volumes: Vec<String>,
        host: HostLoop,
        clock: Clock,
        setup: Setup,
    ) -> Result<Self, ServerError> {
        let Setup { notices, waiting, memory, stall } = setup;
        let system = ServerError::system("preparing a host's thread");
        let (poller, wake) = descriptors().map_err(system)?;
        let (sender, inbox) = channel();
        let mailbox = Mailbox::new(sender, wake);
        let back = mailbox.clone();
        let workers =
            Workers::new(name, host.is_deep(), move |done| back.send(Message::Finished(done)));
        let clients = Clients { open: Slab::new(), count: 0, memory, lent: None, is_untidy: false };
        let name = name.to_owned();
        Ok(Self {
            name,
            host,
            clock,
            poller,
            sleeper: Sleeper::new(waiting),
            inbox,
            mailbox,
            workers,
            clients,
            errands: Errands::default(),
            volumes,
            notices,
            removing: Vec::new(),
            touched: Vec::new(),
            stopping: None,
            patrol: None,
            stall,
        })
    }

    /// Returns the host's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn notices(&self) -> &Listening {
        &self.notices
    }

    pub(crate) fn mailbox(&self) -> Mailbox {
        self.mailbox.clone()
    }

    /// Runs until told to stop and everything under way is answered.
    pub(crate) fn run(mut self) -> Result<HostLoop, ServerError> {
        // The kernel may otherwise be 50 µs late for every deadline.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut events = Events::new();
        loop {
            let now = self.wait(&mut events)?;
            for event in events.iter() {
                self.handle(event, now)?;
            }
            self.advance()?;
            if self.is_done() {
                return Ok(self.host);
            }
        }
    }

    /// Waits for events or until something is due; returns the time.
    fn wait(&mut self, events: &mut Events) -> Result<Instant, ServerError> {
        let fed = self.clients.memory.is_awaited().then_some(Instant::ZERO);
        let due = [self.host.deadline(), self.stopping, self.patrol, fed];
        let due = due.into_iter().flatten().min();
        let is_used = !self.clients.open.is_empty();
        let timeout = self.sleeper.timeout(self.clock.now(), due, is_used);
        let waited = self.poller.wait(events, timeout);
        waited.map_err(ServerError::system("waiting for events"))?;
        let now = self.clock.now();
        self.sleeper.woke(now, !events.is_empty());
        if self.sleeper.wants_reading() {
            self.sleeper.read(thread_time());
        }
        Ok(now)
    }

    fn handle(&mut self, event: Event, now: Instant) -> Result<(), ServerError> {
        let data = event.key;
        if data == WAKE {
            return self.read_mail(now);
        }
        let id = ClientId(data);
        let Some(connection) = self.clients.settled(id) else { return Ok(()) };
        let state = match event {
            Event { readable: true, .. } => connection.receive(now, &mut self.host),
            Event { ended: true, .. } => State::Closed,
            _ => State::Open,
        };
        self.clients.settled(id);
        match state {
            State::Open => self.touched.push(id),
            State::Closed => self.forget(id, now),
        }
        Ok(())
    }

    fn read_mail(&mut self, now: Instant) -> Result<(), ServerError> {
        self.mailbox.acknowledge();
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Client(stream, hello) => self.welcome(stream, hello, now),
                Message::Ask(errand) => self.take(*errand),
                Message::Call(call) => call(&mut self.host, self.clock.now()),
                Message::Clients(answer) => {
                    let all = self.clients.open.iter();
                    let _ = answer.send(all.map(|(_, own)| (own.device, own.status())).collect());
                }
                Message::Finished(done) => {
                    let (clients, errands) = (&mut self.clients, &mut self.errands);
                    let touched = &mut self.touched;
                    let now = self.clock.now();
                    self.host.finished(now, done, &mut Outbox { clients, errands, touched });
                }
                Message::Add(adding) => self.add(*adding),
                Message::Remove(removing) => self.remove(removing),
                Message::Crash(answer) => {
                    let _ = answer.send(self.host.crash(self.clock.now()));
                    self.clients.clear();
                    self.errands.forget_all();
                }
                Message::Stop => {
                    let now = self.clock.now();
                    self.stopping = Some(now + PATIENCE);
                    self.host.drain(now);
                    for (_, connection) in &mut self.clients.open {
                        connection.closing = true;
                        connection.listens = false;
                        self.touched.push(connection.id);
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes a request that came without a socket, unless its device goes, or the host.
    fn take(&mut self, errand: NewErrand) {
        let is_going = self.removing.iter().any(|removing| removing.device == errand.device);
        if self.stopping.is_none() && !is_going {
            self.errands.take(errand, self.clock.now(), &mut self.host);
        }
    }

    fn add(&mut self, adding: Adding) {
        let Adding { name, spec, data, told } = adding;
        let added = self.host.add_volume(self.clock.now(), spec, data);
        if let Ok((volume, _)) = &added {
            if self.volumes.len() <= volume.0 {
                self.volumes.resize(volume.0 + 1, String::new());
            }
            self.volumes[volume.0] = name;
        }
        if self.host.is_deep() {
            self.workers.deepen();
        }
        let _ = told.send(added);
    }

    /// Begins to remove a volume, and closes all connections to it, which would keep it.
    fn remove(&mut self, removing: Removing) {
        let now = self.clock.now();
        let is_cut = |(_, connection): (usize, &Connection)| {
            (connection.device == removing.device).then_some(connection.id)
        };
        let cut: Vec<ClientId> = self.clients.open.iter().filter_map(is_cut).collect();
        if removing.if_unused
            && (!cut.is_empty() || !self.host.is_empty(removing.volume, removing.device))
        {
            let _ = removing.told.send(Removed::InUse);
            return;
        }
        cut.into_iter().for_each(|id| self.forget(id, now));
        self.host.hasten(now, removing.volume);
        self.removing.push(removing);
    }

    /// Removes what can go now.
    fn let_go(&mut self, now: Instant) {
        let host = &mut self.host;
        self.removing.retain(|Removing { volume, device, told, .. }| {
            let gone = host.remove_volume(now, *volume, *device);
            if gone {
                let _ = told.send(Removed::Gone);
            }
            !gone
        });
    }

    /// Takes a client in. One that cannot be watched is dropped: that must not
    /// trouble the others.
    fn welcome(&mut self, stream: Stream, hello: Established, now: Instant) {
        let id = self.clients.next_id();
        let watched = self.poller.add(&stream, id.0, Interest::READ);
        let is_going = self.removing.iter().any(|removing| removing.device == hello.device);
        if self.stopping.is_some() || watched.is_err() || is_going {
            return;
        }
        self.clients.open.insert(Connection::new(stream, id, hello));
        let Some(connection) = self.clients.settled(id) else { return };
        let state = connection.take(now, &mut self.host);
        self.clients.settled(id);
        match state {
            State::Open => self.touched.push(id),
            State::Closed => self.forget(id, now),
        }
    }

    /// Completes what is due, sends the replies, hands jobs to the workers.
    fn advance(&mut self) -> Result<(), ServerError> {
        let now = self.clock.now();
        let (clients, errands) = (&mut self.clients, &mut self.errands);
        let touched = &mut self.touched;
        self.host.advance(now, &mut Outbox { clients, errands, touched });
        while let Some(id) = self.touched.pop() {
            self.look_after(id, now)?;
        }
        if std::mem::take(&mut self.clients.is_untidy) {
            self.clients.tidy();
        }
        if self.clients.memory.has_freed() {
            self.feed(now)?;
        }
        if self.patrol.is_some_and(|due| due <= now) {
            self.look_for_stalls(now);
        }
        self.workers.run_all(self.host.take_jobs());
        for owing in self.host.take_owing() {
            let name = |volume: VolumeId| self.volumes[volume.0].clone();
            self.notices.tell(match owing {
                Owing::Begins { volume, reason, full } => {
                    Notice::NotStored { volume: name(volume), reason, full }
                }
                Owing::Ends { volume } => Notice::Settled { volume: name(volume) },
                Owing::Full { volume, reason } => Notice::Full { volume: name(volume), reason },
            });
        }
        if !self.removing.is_empty() {
            self.let_go(now);
        }
        if self.stopping.is_some_and(|until| until <= now) {
            self.drop_the_deaf(now);
        }
        Ok(())
    }

    /// Sends to a client, goes on with what had to wait for room, and adjusts what
    /// is watched.
    fn look_after(&mut self, id: ClientId, now: Instant) -> Result<(), ServerError> {
        if Errands::has(id) {
            self.errands.look_after(id);
            return Ok(());
        }
        let Some(connection) = self.clients.get(id) else { return Ok(()) };
        let mut state = connection.flush();
        connection.try_again();
        let Some(connection) = self.clients.settled(id) else { return Ok(()) };
        let held = self.host.next_held(id);
        // Without room for the next one, nothing would go on, and the client be looked after for ever.
        if state == State::Open && held.is_some_and(|length| length <= connection.room()) {
            let (clients, errands) = (&mut self.clients, &mut self.errands);
            let touched = &mut self.touched;
            self.host.resume(now, id, &mut Outbox { clients, errands, touched });
        }
        let Some(connection) = self.clients.settled(id) else { return Ok(()) };
        if state == State::Open && connection.has_input() {
            state = connection.take(now, &mut self.host);
        }
        if state == State::Open {
            state = connection.receive_decrypted(now, &mut self.host);
        }
        if state == State::Closed || (connection.closing && connection.is_idle()) {
            connection.end();
            self.forget(id, now);
            return Ok(());
        }
        let Some(connection) = self.clients.settled(id) else { return Ok(()) };
        let wants = connection.wants();
        if wants != connection.interest {
            connection.interest = wants;
            let watched = self.poller.modify(&connection.stream, id.0, wants);
            watched.map_err(ServerError::system("watching a client"))?;
        }
        if connection.note_stall(now) && self.patrol.is_none() {
            self.patrol = Some(now + patrol_interval(self.stall));
        }
        if !connection.queued && connection.waits_for_memory(self.host.next_held(id)) {
            connection.queued = true;
            self.clients.memory.waiting.push_back(id);
            self.clients.is_untidy = true;
        }
        Ok(())
    }

    /// Looks after clients that waited for memory and have it now, in the order in which they came.
    fn feed(&mut self, now: Instant) -> Result<(), ServerError> {
        let mut left = FED_AT_ONCE;
        let mut still = VecDeque::new();
        for id in std::mem::take(&mut self.clients.memory.waiting) {
            let held = self.host.next_held(id);
            let Some(connection) = self.clients.settled(id) else { continue };
            if !connection.waits_for_memory(held) {
                connection.queued = false;
                continue;
            }
            let can_go_on = connection.can_go_on(held);
            if can_go_on && left > 0 {
                left -= 1;
                connection.queued = false;
                self.look_after(id, now)?;
                continue;
            }
            if can_go_on {
                self.clients.memory.look_again();
            }
            still.push_back(id);
        }
        still.append(&mut self.clients.memory.waiting);
        self.clients.memory.waiting = still;
        // The last ones may have become ready to send.
        while let Some(id) = self.touched.pop() {
            self.look_after(id, now)?;
        }
        Ok(())
    }

    /// Drops clients that have stalled, and looks again later if others may.
    fn look_for_stalls(&mut self, now: Instant) {
        self.clients.tidy();
        let (mut stalled, mut others) = (Vec::new(), false);
        for (_, connection) in &mut self.clients.open {
            if connection.has_stalled(now, self.stall) {
                stalled.push(connection.id);
            } else {
                others |= connection.note_stall(now);
            }
        }
        self.patrol = others.then(|| now + patrol_interval(self.stall));
        if !stalled.is_empty() {
            self.notices.tell(Notice::Stalled { clients: stalled.len() });
        }
        stalled.into_iter().for_each(|id| self.forget(id, now));
    }

    /// Drops a client; what it asked for completes and goes nowhere.
    fn forget(&mut self, id: ClientId, now: Instant) {
        if self.clients.remove(id) {
            let (clients, errands) = (&mut self.clients, &mut self.errands);
            let touched = &mut self.touched;
            self.host.resume(now, id, &mut Outbox { clients, errands, touched });
        }
    }

    /// Drops clients that have taken none of their replies for a while, so that one
    /// of them cannot keep the server from stopping.
    fn drop_the_deaf(&mut self, now: Instant) {
        let mut deaf = Vec::new();
        for (_, connection) in &mut self.clients.open {
            let listened = std::mem::take(&mut connection.listens);
            if connection.has_unsent() && !listened {
                deaf.push(connection.id);
            }
        }
        deaf.into_iter().for_each(|id| self.forget(id, now));
        self.stopping = Some(now + PATIENCE);
    }

    fn is_done(&self) -> bool {
        let is_idle = self.host.is_idle() && self.errands.is_empty();
        self.stopping.is_some() && is_idle && self.all_sent()
    }

    fn all_sent(&self) -> bool {
        self.clients.open.iter().all(|(_, connection)| connection.is_idle())
    }
}

fn descriptors() -> io::Result<(Poller, OwnedFd)> {
    let poller = Poller::new()?;
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    poller.add(&wake, WAKE, Interest::READ)?;
    Ok((poller, wake))
}

/// Returns the time between two looks for stalled clients.
fn patrol_interval(stall: Stalling) -> Span {
    let least = stall.at_ease.min(stall.when_short);
    Span::from_nanos((least.nanos() / 4).clamp(1, 10_000_000_000))
}
