//! Page blobs: where they are served and what their volumes are.

use crate::coming::NewVolume;
use crate::error::{Fault, Kind};
use crate::file::{BlobKeys, OverKey, WellKnownKey};
use crate::resolve::Host;
use std::path::PathBuf;
use weir_catalog::Edition;
use weir_units::{Bytes, Span};

/// Where clients look for the emulator that `UseDevelopmentStorage=true` means.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:10000";

/// Requests of one blob that may be under way, unless the layout says otherwise: a client
/// that opens more gets `ServerBusy`.
const QUEUE: usize = 4096;

/// For how long a request over a cap may wait where it is to be refused: the shortest
/// window over which a gate is exact.
const OVER: Span = Span::from_millis(100);

/// How page blobs are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Host and port.
    pub listen: String,
    /// The host that their volumes are on.
    pub host: String,
    /// For how long a request may wait before it is refused; for ever if not said.
    pub most_wait: Option<Span>,
    /// How many requests of one blob may be under way.
    pub queue: usize,
    /// What each volume is, apart from its name and size.
    pub volume: NewVolume,
    /// Who may use the well-known account.
    pub well_known: WellKnownKey,
    /// Further accounts.
    pub accounts: Vec<BlobAccount>,
    /// Certificate chain and private key, PEM files, for HTTPS.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// An account, and where its key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobAccount {
    /// Its name.
    pub name: String,
    /// Its key in Base64, or the environment variable that has it.
    pub key: BlobKey,
}

/// A key in Base64, or the environment variable that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each says it")]
pub enum BlobKey {
    Is(String),
    InEnvironment(String),
}

impl Blob {
    /// What a layout says, or would say if it said nothing of blobs.
    pub(crate) fn resolve(
        keys: &BlobKeys,
        hosts: &[Host],
        edition: Option<&Edition>,
    ) -> Result<Self, Fault> {
        let wrong = |key: &'static str, reason: String| {
            Kind::Contradiction { what: "blob".to_owned(), reason }.at(key)
        };
        let host = match &keys.host {
            Some(name) => {
                let names = || hosts.iter().map(|host| host.name.as_str());
                hosts.iter().find(|host| host.name == *name).ok_or_else(|| {
                    let near = weir_units::nearest(name, names()).map(str::to_owned);
                    Kind::Missing { what: "blob".into(), name: name.clone(), near }.at("host")
                })?
            }
            None if hosts.len() == 1 => &hosts[0],
            None => {
                return Err(wrong(
                    "",
                    "there are several hosts; say which its volumes are on".into(),
                ));
            }
        };
        let listen = keys.listen.clone().unwrap_or_else(|| DEFAULT_LISTEN.to_owned());
        if !is_address(&listen) {
            let reason = format!("listen = {listen:?} needs a host and a port of at most 65535");
            return Err(wrong("listen", reason));
        }
        let tls = match (&keys.certificate, &keys.key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            (Some(_), None) => return Err(wrong("certificate", "its key is not given".into())),
            (None, Some(_)) => return Err(wrong("key", "its certificate is not given".into())),
        };
        if keys.unlimited && (keys.iops.is_some() || keys.throughput.is_some()) {
            return Err(wrong("unlimited", "unlimited excludes iops and throughput".into()));
        }
        let own = keys.unlimited || keys.iops.is_some() || keys.throughput.is_some();
        let volume = NewVolume {
            family: keys.family.clone(),
            // Where nothing can be looked up and nothing is said there are no limits.
            unlimited: keys.unlimited || (edition.is_none() && !own),
            iops: keys.iops,
            throughput: keys.throughput,
            blob: true,
            ..NewVolume::default()
        };
        let example = NewVolume { name: "blob".into(), ..volume.sized(host, Bytes::gib(1)) };
        host.coming(&example, edition).map_err(|kind| kind.at(""))?;
        if keys.queue == Some(0) {
            return Err(wrong(
                "queue",
                "0 lets no request in; leave it out for the default".into(),
            ));
        }
        let most_wait = match keys.over {
            OverKey::Wait => None,
            OverKey::Reject => Some(OVER),
        };
        let mut accounts = Vec::new();
        for account in &keys.account {
            let key = match (&account.key, &account.key_env) {
                (Some(key), None) => BlobKey::Is(key.clone()),
                (None, Some(name)) => BlobKey::InEnvironment(name.clone()),
                (own, other) => {
                    let has = if own.is_some() && other.is_some() { "both" } else { "none" };
                    let name = &account.name;
                    let reason =
                        format!("account {name:?} needs one of key and key_env, it has {has}");
                    return Err(wrong("account", reason));
                }
            };
            accounts.push(BlobAccount { name: account.name.clone(), key });
        }
        let queue = keys.queue.unwrap_or(QUEUE);
        let (host, well_known) = (host.name.clone(), keys.well_known_key);
        Ok(Self { listen, host, most_wait, queue, volume, well_known, accounts, tls })
    }
}

/// Whether this is a host and a port.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
