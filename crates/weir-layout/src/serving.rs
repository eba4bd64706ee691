//! Resolution of the keys of page blobs.

use crate::blob::{Blob, BlobAccount, BlobKey, DEFAULT_LISTEN, is_address};
use crate::error::{Fault, Kind};
use crate::file::{BlobKeys, OverKey};
use crate::layout::Host;
use crate::new_volume::NewVolume;
use weir_catalog::Edition;
use weir_units::{Bytes, Span};

/// Default maximum of in-flight requests of one blob.
const QUEUE: usize = 4096;

/// Maximum wait of a request if requests over a cap are rejected: the shortest window over which a
/// gate is exact.
const OVER: Span = Span::from_millis(100);

impl Blob {
    /// Resolves the keys of page blobs.
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
                    "there are several hosts; name the host of its volumes".into(),
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
            // Without an edition and without explicit limits there are none.
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
                "0 would reject every request; leave it out for the default".into(),
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
                        format!("account {name:?} needs one of key and key_env, but has {has}");
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
