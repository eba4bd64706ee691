//! The listening socket, and the thread that serves it.

use crate::http::{Site, answer};
use crate::sampler::{self, Board};
use crate::source::Source;
use crate::token::Token;
use crate::watched::Watched;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::RefCell;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// Maximum number of connections. Further ones wait in the socket's backlog.
const CONNECTIONS: usize = 64;
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
        Ok(Self { socket, address: own.map_err(WebError::System)?, name, every, patience })
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
    let Bound { socket, name, every, patience, .. } = bound;
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
        calls: Semaphore::new(CALLS),
    });
    if let Some(board) = &board {
        tokio::task::spawn_local(sampler::run(Rc::clone(board), source, every));
    }
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            _ = stop.changed() => break,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let site = Rc::clone(&site);
        tokio::task::spawn_local(async move {
            let _place = place;
            connect(stream, site, patience).await;
        });
    }
    if let Some(board) = board {
        board.borrow_mut().close();
    }
}

/// Serves a connection until it ends or makes no progress.
async fn connect(stream: TcpStream, site: Rc<Site>, patience: Duration) {
    let Ok(local) = stream.local_addr() else { return };
    // Without it, samples are sent late.
    drop(stream.set_nodelay(true));
    let (stream, progress) = Watched::new(stream);
    let service = service_fn(move |request| answer(Rc::clone(&site), request, local.ip()));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD);
    tokio::select! {
        // A client that has gone is no error.
        _ = builder.serve_connection(TokioIo::new(stream), service) => {}
        () = progress.stall(patience) => {}
    }
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
