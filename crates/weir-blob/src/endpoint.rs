//! The page blob endpoint: a listening socket, and a thread that runs the service.

use crate::auth::account::{Account, Accounts, WELL_KNOWN};
use crate::error::BlobError;
use crate::http::{Client, HEAD_TIMEOUT, serve};
use crate::journal::Journal;
use crate::pieces::Pieces;
use crate::places::{Place, Places};
use crate::service::Service;
use crate::state::State;
use crate::time::Moment;
use crate::tls;
use crate::volumes::Volumes;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;
use weir_layout::Blob as Settings;
use weir_layout::blob::BlobKey;
use weir_layout::file::WellKnownKey;
use weir_server::{FrontEnd, Handle};

/// Folder of the service within the data directory.
const FOLDER: &str = "blob";
const JOURNAL: &str = "records.redb";
const PIECES: &str = "pieces";
/// Maximum number of connections.
const MAX_CONNECTIONS: usize = 4096;
/// Maximum number of connections of a client address.
const MAX_OF_ADDRESS: usize = 1024;
/// Timeout of the TLS handshake.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay after a failed accept, for example if file descriptors are exhausted.
const PAUSE: Duration = Duration::from_millis(20);

/// Returns the journal of the service in a data directory.
#[must_use]
pub fn journal_in(data: &Path) -> PathBuf {
    data.join(FOLDER).join(JOURNAL)
}

/// Findings of the start.
#[derive(Debug)]
struct AtStart {
    is_full: bool,
    renamed: Vec<[[String; 3]; 2]>,
}

/// A running page blob endpoint. Dropping it stops it.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    secure: bool,
    accounts: Accounts,
    at_start: AtStart,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<Result<(), BlobError>>>,
}

impl Endpoint {
    /// Serves the page blobs of a running server. Returns when clients can connect.
    ///
    /// # Errors
    ///
    /// [`BlobError`].
    pub fn start(server: Handle, settings: &Settings) -> Result<Self, BlobError> {
        let listen_error = |source| BlobError::Listen { address: settings.listen.clone(), source };
        let accounts = configured_accounts(settings)?;
        let tls = settings.tls.as_ref().map(|(certificate, key)| tls::acceptor(certificate, key));
        let tls = tls.transpose()?;
        let secure = tls.is_some();
        let socket = StdListener::bind(&settings.listen).map_err(listen_error)?;
        socket.set_nonblocking(true).map_err(listen_error)?;
        let address = socket.local_addr().map_err(listen_error)?;
        let (stop, stopped) = watch::channel(false);
        let (ready, is_ready) = oneshot::channel();
        let (settings, own) = (settings.clone(), accounts.clone());
        let thread = std::thread::Builder::new().name("weir-blob".to_owned());
        let thread = thread.spawn(move || {
            let parts = Parts { server, settings, accounts: own, socket, tls };
            run(parts, ready, stopped)
        });
        let system =
            |source| BlobError::System { context: "starting the blob service".into(), source };
        let thread = thread.map_err(system)?;
        match is_ready.blocking_recv() {
            Ok(at_start) => {
                Ok(Self { address, secure, accounts, at_start, stop, thread: Some(thread) })
            }
            // The thread failed before it was ready; its result has the reason.
            Err(_) => Err(ended(thread)
                .err()
                .unwrap_or_else(|| system(io::Error::other("it ended early")))),
        }
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether the disk was full at the start, so that only reads and deletes are served until
    /// there is space.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.at_start.is_full
    }

    /// Iterates over the blobs of earlier versions that the start gave a name with a suffix, because their
    /// own with slashes for backslashes was taken: the old and new names as `account/container/blob`.
    pub fn renamed(&self) -> impl Iterator<Item = [String; 2]> + '_ {
        let joined = |names: &[String; 3]| names.join("/");
        self.at_start.renamed.iter().map(move |names| names.each_ref().map(joined))
    }

    /// The URL of each account.
    pub fn urls(&self) -> impl Iterator<Item = String> + '_ {
        let scheme = if self.secure { "https" } else { "http" };
        self.accounts
            .iter()
            .map(move |account| format!("{scheme}://{}/{}", self.address, account.name))
    }

    /// Completes the requests in flight and stops.
    ///
    /// # Errors
    ///
    /// [`BlobError`] if not all state could be stored.
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
        let source = io::Error::other("the thread panicked");
        Err(BlobError::System { context: "serving blobs".into(), source })
    })
}

fn configured_accounts(settings: &Settings) -> Result<Accounts, BlobError> {
    let mut accounts = Accounts::default();
    match settings.well_known {
        WellKnownKey::Loopback => accounts.add(Account::well_known(false)),
        WellKnownKey::Anywhere => accounts.add(Account::well_known(true)),
        WellKnownKey::None => {}
    }
    for account in &settings.accounts {
        if account.name == WELL_KNOWN {
            let reason =
                "the development account has a published key; permit it with well_known_key";
            return Err(BlobError::Account(format!("account {WELL_KNOWN:?}: {reason}")));
        }
        let key = match &account.key {
            BlobKey::Is(key) => key.clone(),
            BlobKey::InEnvironment(name) => std::env::var(name).map_err(|_| {
                let own = &account.name;
                BlobError::Account(format!(
                    "account {own:?}: the environment variable {name} is not set"
                ))
            })?,
        };
        accounts.add(Account::new(&account.name, &key).map_err(BlobError::Account)?);
    }
    if accounts.iter().next().is_none() {
        let reason = "the layout has no blob account: add one, or permit the development account";
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
    ready: oneshot::Sender<AtStart>,
    stop: watch::Receiver<bool>,
) -> Result<(), BlobError> {
    let system = |source| BlobError::System { context: "starting the blob service".into(), source };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let Parts { server, settings, accounts, socket, tls } = parts;
        let service = open_service(server, &settings, accounts)?;
        let renamed = service.recover().await.map_err(BlobError::Recover)?;
        let listener = TcpListener::from_std(socket).map_err(system)?;
        let service = Rc::new(service);
        // `start` waits for this.
        let _ = ready.send(AtStart { is_full: service.is_full(), renamed });
        accept(&listener, tls, &service, stop).await;
        service.close().await.map_err(BlobError::Recover)
    })
}

/// Builds the service from the journal of the data directory, or in memory.
fn open_service(
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
        check_journal_is_not_lost(&folder, &volumes)?;
    }
    std::fs::create_dir_all(folder.join(PIECES))
        .map_err(|source| BlobError::io(&folder, source))?;
    let (journal, records) = Journal::open(&folder.join(JOURNAL))?;
    if is_new {
        // After a loss of power, the folder must exist whenever the volumes do.
        for folder in [Some(&*folder), folder.parent()].into_iter().flatten() {
            let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(|source| BlobError::io(folder, source))?;
        }
    }
    let state = State::load(records)
        .map_err(|reason| BlobError::Damaged { path: folder.clone(), reason })?;
    let pieces = Pieces::open(folder.join(PIECES), state.pieces());
    let pieces = pieces.map_err(|source| BlobError::io(&folder, source))?;
    Ok(Service::new(accounts, volumes, journal, pieces, state, clock))
}

/// Refuses to start without a journal while volumes of blobs exist. Recovery would otherwise delete
/// them as left over from a crash.
fn check_journal_is_not_lost(folder: &Path, volumes: &Volumes) -> Result<(), BlobError> {
    let pieces = std::fs::read_dir(folder.join(PIECES)).map_or(0, Iterator::count);
    let blobs = volumes.all().len();
    if pieces == 0 && blobs == 0 {
        return Ok(());
    }
    Err(BlobError::Damaged {
        path: folder.join(JOURNAL),
        reason: format!(
            "it is missing, and there are {blobs} volumes and {pieces} pieces of blobs: restore it \
             from a copy, or remove their folders to start without blobs"
        ),
    })
}

/// Accepts connections until `stop` changes, then waits for the open ones.
async fn accept(
    listener: &TcpListener,
    tls: Option<TlsAcceptor>,
    service: &Rc<Service>,
    mut stop: watch::Receiver<bool>,
) {
    let places = Places::new(MAX_CONNECTIONS, MAX_OF_ADDRESS);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Without a place the client sees its connection close.
        let Some(taken) = places.take(from.ip()) else {
            let why = "too many connections are open";
            service.audit().refuse(FrontEnd::Blob, &from, &"connection", &why);
            continue;
        };
        let (service, tls, stop) = (Rc::clone(service), tls.clone(), stop.clone());
        tokio::task::spawn_local(async move {
            let place = Rc::clone(&taken.place);
            tokio::select! {
                () = connect(stream, from, tls, service, stop, Rc::clone(&place)) => {}
                () = place.ended() => {}
            }
            drop(taken);
        });
    }
    places.all_free().await;
}

/// Serves a client. Nothing is allocated for it before it says something.
async fn connect(
    stream: TcpStream,
    from: SocketAddr,
    tls: Option<TlsAcceptor>,
    service: Rc<Service>,
    mut stop: watch::Receiver<bool>,
    place: Rc<Place>,
) {
    drop(stream.set_nodelay(true));
    let says_something = tokio::select! {
        readable = tokio::time::timeout(HEAD_TIMEOUT, stream.readable()) => readable.is_ok(),
        _ = stop.changed() => false,
    };
    if !says_something {
        return;
    }
    let client = Client { from: from.ip(), secure: tls.is_some(), place };
    match tls {
        None => Box::pin(serve(stream, client, service, stop)).await,
        Some(acceptor) => {
            let agreed = tokio::time::timeout(TLS_TIMEOUT, Box::pin(acceptor.accept(stream))).await;
            let why = match agreed {
                Ok(Ok(stream)) => return Box::pin(serve(stream, client, service, stop)).await,
                Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => error.to_string(),
                // The client has gone.
                Ok(Err(_)) => return,
                Err(_) => "the handshake took too long".to_owned(),
            };
            service.audit().refuse(FrontEnd::Blob, &from, &"TLS handshake", &why);
        }
    }
}
