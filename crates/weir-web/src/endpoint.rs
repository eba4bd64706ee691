//! The listening socket, and the thread that serves it.

use crate::http::{Ends, Site, answer};
use crate::sampler::{self, Board};
use crate::source::Source;
use crate::token::Token;
use crate::watched::{Progress, Watched};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};
use weir_server::Audit;

/// Maximum number of connections. A further one replaces the one that has been idle for longest, or
/// waits.
const CONNECTIONS: usize = 64;
/// A connection may be replaced after this time without bytes.
const IDLE: Duration = Duration::from_secs(2);
/// Readings and commands at the same time.
const CALLS: usize = 4;
/// Timeout for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the head of a request.
const MAX_HEAD: usize = 16 << 10;
/// Delay after a failed accept, for example if file descriptors are exhausted.
const PAUSE: Duration = Duration::from_millis(20);

/// An error at the start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// The address cannot be listened on.
    #[error("{address}: {source}; choose another address")]
    Listen {
        /// The address.
        address: String,
        /// The reason.
        source: io::Error,
    },
    /// The address can be reached from other machines, which was not permitted.
    #[error(
        "{address} can be reached from other machines, and the page has no login; listen on \
         127.0.0.1, or permit it with --web-remote"
    )]
    Remote {
        /// The address.
        address: String,
    },
    /// The system refused something.
    #[error("starting the web thread: {0}")]
    System(#[source] io::Error),
}

/// The served paths.
#[derive(Debug)]
pub enum Content {
    /// `/metrics` only.
    Metrics,
    /// The page and `/metrics`. With a token, the page can change something.
    Page(Option<Token>),
}

/// A socket that listens, before anything is served.
#[derive(Debug)]
pub struct Bound {
    socket: StdListener,
    address: SocketAddr,
    /// The name under which it was told to listen.
    name: String,
    every: Duration,
    patience: Duration,
    audit: Option<Audit>,
}

impl Bound {
    /// Listens on `address`, HOST:PORT, which other machines may reach only if that is allowed.
    ///
    /// # Errors
    ///
    /// [`WebError`].
    pub fn new(address: &str, is_remote_allowed: bool) -> Result<Self, WebError> {
        let socket = listen(address, is_remote_allowed)?;
        socket.set_nonblocking(true).map_err(WebError::System)?;
        let (name, own) = (host_of(address).to_owned(), socket.local_addr());
        let (every, patience) = (Duration::from_secs(1), Duration::from_secs(30));
        let (address, audit) = (own.map_err(WebError::System)?, None);
        Ok(Self { socket, address, name, every, patience, audit })
    }

    /// Sets the time between two samples of the page, by default a second.
    #[must_use]
    pub fn sampled_every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Sets the time after which a connection without progress is closed, by default 30 s.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Sets the receiver of refused requests, by default none.
    #[must_use]
    pub fn audited_by(self, audit: Audit) -> Self {
        Self { audit: Some(audit), ..self }
    }

    /// Serves the counters of a server.
    ///
    /// # Errors
    ///
    /// [`WebError::System`] if no thread can be started.
    pub fn serve(self, source: Arc<dyn Source>, content: Content) -> Result<Endpoint, WebError> {
        let address = self.address;
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(CALLS + 1)
            .build()
            .map_err(WebError::System)?;
        let thread = std::thread::Builder::new().name("weir-web".to_owned());
        let thread = thread.spawn(move || {
            let tasks = tokio::task::LocalSet::new();
            tasks.block_on(&runtime, run(self, source, content, stopped));
            drop(tasks);
            // A host that does not answer must not hold up the end.
            runtime.shutdown_background();
        });
        let thread = thread.map_err(WebError::System)?;
        Ok(Endpoint { address, stop, thread: Some(thread) })
    }
}

/// A running endpoint. Dropping it stops it.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // It has no result.
            let _ = thread.join();
        }
    }
}

/// Returns the host of an address, without port and brackets.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn listen(address: &str, is_remote_allowed: bool) -> Result<StdListener, WebError> {
    let failed = |source| WebError::Listen { address: address.to_owned(), source };
    let all: Vec<SocketAddr> = address.to_socket_addrs().map_err(failed)?.collect();
    if !is_remote_allowed && all.iter().any(|own| !own.ip().to_canonical().is_loopback()) {
        return Err(WebError::Remote { address: address.to_owned() });
    }
    StdListener::bind(&all[..]).map_err(failed)
}

async fn run(
    bound: Bound,
    source: Arc<dyn Source>,
    content: Content,
    mut stop: watch::Receiver<bool>,
) {
    let Bound { socket, name, every, patience, audit, .. } = bound;
    let Ok(listener) = TcpListener::from_std(socket) else { return };
    let (is_page, token) = match content {
        Content::Metrics => (false, None),
        Content::Page(token) => (true, token),
    };
    let board = is_page.then(|| Rc::new(RefCell::new(Board::new(token.is_some()))));
    let site = Rc::new(Site {
        name,
        source: Arc::clone(&source),
        board: board.clone(),
        token,
        audit,
        calls: Semaphore::new(CALLS),
    });
    if let Some(board) = &board {
        tokio::task::spawn_local(sampler::run(Rc::clone(board), source, every));
    }
    let peers = Peers::default();
    'serving: loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while !peers.has_room() {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = stop.changed() => break 'serving,
            }
        }
        let site = Rc::clone(&site);
        // Without it, samples are sent late.
        drop(stream.set_nodelay(true));
        let (stream, progress) = Watched::new(stream);
        let seat = peers.seat(progress.clone());
        tokio::task::spawn_local(async move {
            tokio::select! {
                () = connect(stream, peer, site) => {}
                () = progress.stall(patience) => {}
                () = seat.closed.notified() => {}
            }
        });
    }
    if let Some(board) = board {
        board.borrow_mut().close();
    }
}

/// The present connections.
#[derive(Debug, Clone, Default)]
struct Peers(Rc<RefCell<BTreeMap<u64, Peer>>>);

/// A connection: its progress, and what tells it to close.
type Peer = (Progress, Rc<Notify>);

/// The place of a connection.
struct Seat {
    peers: Peers,
    number: u64,
    /// Notified when the connection has to make room.
    closed: Rc<Notify>,
}

impl Peers {
    /// Returns whether there is room for a connection. If not, the one that has been idle for longest
    /// is told to close.
    fn has_room(&self) -> bool {
        let peers = self.0.borrow();
        if peers.len() < CONNECTIONS {
            return true;
        }
        let idle = peers.values().max_by_key(|(progress, _)| progress.idle());
        if let Some((_, closed)) = idle.filter(|(progress, _)| progress.idle() >= IDLE) {
            closed.notify_one();
        }
        false
    }

    fn seat(&self, progress: Progress) -> Seat {
        let mut peers = self.0.borrow_mut();
        let number = peers.last_key_value().map_or(0, |(last, _)| last + 1);
        let closed = Rc::new(Notify::new());
        peers.insert(number, (progress, Rc::clone(&closed)));
        drop(peers);
        Seat { peers: self.clone(), number, closed }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.peers.0.borrow_mut().remove(&self.number);
    }
}

/// Serves a connection until it ends.
async fn connect(stream: Watched, peer: SocketAddr, site: Rc<Site>) {
    let Ok(local) = stream.local_addr() else { return };
    let ends = Ends { local: local.ip(), peer };
    let service = service_fn(move |request| answer(Rc::clone(&site), request, ends));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD);
    // A client that has gone is no error.
    drop(builder.serve_connection(TokioIo::new(stream), service).await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_other_machines_reach_are_refused() {
        for address in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0"] {
            let refused = listen(address, false).map(drop).expect_err("it is not loopback");
            assert!(matches!(refused, WebError::Remote { .. }), "{refused}");
        }
        listen("0.0.0.0:0", true).expect("it was permitted");
        listen("127.0.0.1:0", false).expect("a loopback address");
        let refused = listen("nowhere", false).map(drop).expect_err("no port");
        assert!(matches!(refused, WebError::Listen { .. }), "{refused}");
        assert_eq!(
            ["127.0.0.1:1", "[::1]:8", "db.example:80"].map(host_of),
            ["127.0.0.1", "::1", "db.example"]
        );
    }
}
