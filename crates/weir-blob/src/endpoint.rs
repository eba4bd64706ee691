//! Where page blobs are served: a socket, a thread, and the service behind it.

use crate::auth::account::{Account, Accounts, WELL_KNOWN};
use crate::fault::Fault;
use crate::http::serve;
use crate::journal::{Journal, JournalError};
use crate::pieces::Pieces;
use crate::service::Service;
use crate::state::State;
use crate::time::Moment;
use crate::tls;
use crate::volumes::Volumes;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_rustls::TlsAcceptor;
use weir_layout::Blob as Settings;
use weir_layout::blob::BlobKey;
use weir_layout::file::WellKnownKey;
use weir_server::Handle;

/// The folder of the service within the data directory.
const FOLDER: &str = "blob";
const JOURNAL: &str = "records.redb";
const PIECES: &str = "pieces";
/// Connections at once; further ones wait in the socket.
const MAX_CONNECTIONS: usize = 4096;
/// How long a client may take to agree on a key.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);
/// Before another connection is accepted where that failed: out of descriptors, say.
const PAUSE: Duration = Duration::from_millis(20);

/// Why page blobs cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The address cannot be listened on.
    #[error("blobs cannot be served at {address}: {source}{}", advice(.source))]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate or a key is not one, or cannot be made.
    #[error("the certificate or key {}: {reason}", .path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// An account that cannot be.
    #[error("{0}")]
    Account(String),
    /// What is remembered of blobs cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What is remembered of blobs is damaged.
    #[error("{}: {reason}", .path.display())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The system refused.
    #[error("{context}: {source}")]
    System {
        /// What was done.
        context: String,
        /// What the system said.
        source: io::Error,
    },
    /// The service could not put itself in order.
    #[error("the blobs could not be put in order: {0}")]
    Recover(Fault),
}

impl BlobError {
    /// Whether what was given is wrong, and not the machine.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        matches!(self, Self::Certificate { .. } | Self::Account(_))
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::System { context: path.display().to_string(), source }
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "; another server has it: stop it or give another address",
        io::ErrorKind::PermissionDenied => "; choose a port that this user may use",
        _ => "",
    }
}

/// Blobs being served. Dropping it ends that.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    secure: bool,
    accounts: Accounts,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<Result<(), BlobError>>>,
}

impl Endpoint {
    /// Serves the page blobs of a running server; returns when clients can connect.
    ///
    /// # Errors
    ///
    /// [`BlobError`].
    pub fn start(server: Handle, settings: &Settings) -> Result<Self, BlobError> {
        let failed = |source| BlobError::Listen { address: settings.listen.clone(), source };
        let accounts = accounts_of(settings)?;
        let tls = settings.tls.as_ref().map(|(certificate, key)| tls::acceptor(certificate, key));
        let tls = tls.transpose()?;
        let secure = tls.is_some();
        let socket = StdListener::bind(&settings.listen).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let (stop, stopped) = watch::channel(false);
        let (ready, is_ready) = oneshot::channel();
        let (settings, own) = (settings.clone(), accounts.clone());
        let thread = std::thread::Builder::new().name("weir-blob".to_owned());
        let thread = thread.spawn(move || {
            let parts = Parts { server, settings, accounts: own, socket, tls };
            run(parts, ready, stopped)
        });
        let system = |source| BlobError::System { context: "starting the blobs".into(), source };
        let thread = thread.map_err(system)?;
        match is_ready.blocking_recv() {
            Ok(()) => Ok(Self { address, secure, accounts, stop, thread: Some(thread) }),
            // It ended before it was ready, and says why.
            Err(_) => Err(ended(thread).err().unwrap_or_else(|| system(io::Error::other("ended")))),
        }
    }

    /// Where it is reached.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of each account.
    pub fn urls(&self) -> impl Iterator<Item = String> + '_ {
        let scheme = if self.secure { "https" } else { "http" };
        self.accounts
            .iter()
            .map(move |account| format!("{scheme}://{}/{}", self.address, account.name))
    }

    /// Answers what is under way, and ends.
    ///
    /// # Errors
    ///
    /// [`BlobError`] if not everything could be remembered.
    pub fn stop(mut self) -> Result<(), BlobError> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<(), BlobError> {
        self.stop.send_replace(true);
        self.thread.take().map_or(Ok(()), ended)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.shut_down());
    }
}

fn ended(thread: JoinHandle<Result<(), BlobError>>) -> Result<(), BlobError> {
    thread.join().unwrap_or_else(|_| {
        let source = io::Error::other("it panicked");
        Err(BlobError::System { context: "serving blobs".into(), source })
    })
}

fn accounts_of(settings: &Settings) -> Result<Accounts, BlobError> {
    let mut accounts = Accounts::default();
    match settings.well_known {
        WellKnownKey::Loopback => accounts.add(Account::well_known(false)),
        WellKnownKey::Anywhere => accounts.add(Account::well_known(true)),
        WellKnownKey::None => {}
    }
    for account in &settings.accounts {
        if account.name == WELL_KNOWN {
            let reason = "its key is known; well_known_key says who may use it";
            return Err(BlobError::Account(format!("account {WELL_KNOWN:?}: {reason}")));
        }
        let key = match &account.key {
            BlobKey::Is(key) => key.clone(),
            BlobKey::InEnvironment(name) => std::env::var(name).map_err(|_| {
                let own = &account.name;
                BlobError::Account(format!("account {own:?}: {name} is not in the environment"))
            })?,
        };
        accounts.add(Account::new(&account.name, &key).map_err(BlobError::Account)?);
    }
    if accounts.iter().next().is_none() {
        let reason = "there is no account; add one, or allow the well-known one";
        return Err(BlobError::Account(reason.to_owned()));
    }
    Ok(accounts)
}

struct Parts {
    server: Handle,
    settings: Settings,
    accounts: Accounts,
    socket: StdListener,
    tls: Option<TlsAcceptor>,
}

fn run(
    parts: Parts,
    ready: oneshot::Sender<()>,
    stop: watch::Receiver<bool>,
) -> Result<(), BlobError> {
    let system = |source| BlobError::System { context: "starting the blobs".into(), source };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let Parts { server, settings, accounts, socket, tls } = parts;
        let service = service_of(server, &settings, accounts)?;
        service.recover().await.map_err(BlobError::Recover)?;
        let listener = TcpListener::from_std(socket).map_err(system)?;
        let service = Rc::new(service);
        // Whoever started it waits for this.
        let _ = ready.send(());
        accept(&listener, tls, &service, stop).await;
        service.close().await.map_err(BlobError::Recover)
    })
}

/// The service over what the data directory remembers, or over nothing.
fn service_of(
    server: Handle,
    settings: &Settings,
    accounts: Accounts,
) -> Result<Service, BlobError> {
    let folder = server.data_dir().map(|dir| dir.join(FOLDER));
    let volumes = Volumes::new(server, settings);
    let clock = || Moment(weir_wall::calendar());
    let Some(folder) = folder else {
        let (journal, pieces) = (Journal::in_memory(), Pieces::in_memory());
        return Ok(Service::new(accounts, volumes, journal, pieces, State::default(), clock));
    };
    let is_new = !folder.join(JOURNAL).exists();
    if is_new {
        check_that_nothing_is_lost(&folder, &volumes)?;
    }
    std::fs::create_dir_all(folder.join(PIECES))
        .map_err(|source| BlobError::io(&folder, source))?;
    let (journal, records) = Journal::open(&folder.join(JOURNAL))?;
    if is_new {
        // A loss of power must not take the journal and leave what it speaks of.
        for folder in [Some(&*folder), folder.parent()].into_iter().flatten() {
            let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(|source| BlobError::io(folder, source))?;
        }
    }
    let damaged = |reason| BlobError::Damaged { path: folder.clone(), reason };
    let state = State::load(records).map_err(damaged)?;
    let pieces = Pieces::open(folder.join(PIECES), state.pieces());
    let pieces = pieces.map_err(|source| BlobError::io(&folder, source))?;
    Ok(Service::new(accounts, volumes, journal, pieces, state, clock))
}

/// Without its journal nobody knows what blobs there are: their bytes are not to be taken for
/// what a crash has left.
fn check_that_nothing_is_lost(folder: &Path, volumes: &Volumes) -> Result<(), BlobError> {
    let pieces = std::fs::read_dir(folder.join(PIECES)).map_or(0, Iterator::count);
    let blobs = volumes.all().len();
    if pieces == 0 && blobs == 0 {
        return Ok(());
    }
    Err(BlobError::Damaged {
        path: folder.join(JOURNAL),
        reason: format!(
            "it is missing, and there are {blobs} volumes and {pieces} pieces of blobs: put it back \
             from a copy, or remove their folders to do without them"
        ),
    })
}

/// Takes connections until `stop` changes, and waits for those that are open.
async fn accept(
    listener: &TcpListener,
    tls: Option<TlsAcceptor>,
    service: &Rc<Service>,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let all = u32::try_from(MAX_CONNECTIONS).unwrap_or(u32::MAX);
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (service, tls, stop) = (Rc::clone(service), tls.clone(), stop.clone());
        tokio::task::spawn_local(async move {
            let _place = place;
            connect(stream, from, tls, service, stop).await;
        });
    }
    // Each gives its place back when it ends.
    drop(places.acquire_many(all).await);
}

async fn connect(
    stream: TcpStream,
    from: SocketAddr,
    tls: Option<TlsAcceptor>,
    service: Rc<Service>,
    stop: watch::Receiver<bool>,
) {
    drop(stream.set_nodelay(true));
    match tls {
        None => serve(stream, from.ip(), false, service, stop).await,
        Some(acceptor) => {
            let agreed = tokio::time::timeout(TLS_TIMEOUT, acceptor.accept(stream)).await;
            if let Ok(Ok(stream)) = agreed {
                serve(stream, from.ip(), true, service, stop).await;
            }
        }
    }
}
