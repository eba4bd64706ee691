//! Invariants of a request to the control socket: it is read, or rejected with a message; written, it is
//! the same request; and a change of a volume is resolved or rejected with a message.

use super::plans::catalog;
use std::sync::LazyLock;
use weir_core::VolumeId;
use weir_layout::error::Kind;
use weir_layout::{Host, Layout};
use weir_server::control::Request;

/// A host with a cache, a disk of a tier and one with its own limits.
static LAYOUT: LazyLock<Layout> = LazyLock::new(|| {
    Layout::parse("fuzz.toml", TEXT, catalog()).unwrap_or_else(|error| panic!("{error}"))
});

const TEXT: &str = r#"
edition = "azure-now"
host = { size = "D8s_v3", cache = { size = "200 GiB" } }

[[volume]]
name = "data"
tier = "P30"
cache = "read-only"

[[volume]]
name = "own"
size = "1 TiB"
limits = { iops = 500 }
"#;

pub(super) fn run(data: &[u8]) {
    let request: Request = match serde_json::from_slice(data) {
        Ok(request) => request,
        Err(error) => return assert!(!error.to_string().trim().is_empty(), "{error:?}"),
    };
    let written = serde_json::to_string(&request).expect("texts and numbers");
    let again: Request = serde_json::from_str(&written).expect(&written);
    assert_eq!(again, request);
    LAYOUT.hosts.iter().for_each(|host| resolve(host, &request));
}

/// Resolves what a request changes, as the server does before it changes anything.
fn resolve(host: &Host, request: &Request) {
    let edition = LAYOUT.edition.as_deref().and_then(|name| catalog().edition(name).ok());
    for volume in (0..host.volumes.len()).map(VolumeId) {
        match request {
            Request::Resize { size, .. } => said(host.resized(volume, *size, edition)),
            Request::SetTier { tier, .. } => said(host.retiered(volume, tier, edition)),
            Request::SetRates { iops, throughput, .. } => {
                said(host.rerated(volume, (*iops, *throughput), edition));
            }
            Request::SetCache { mode, .. } => {
                if let Ok(mode) = mode.parse() {
                    said(host.recached(volume, mode, edition));
                }
            }
            _ => {}
        }
    }
    if let Request::Create { volume, .. } = request {
        match host.coming(volume, edition) {
            Ok(coming) => said(host.check_room(&coming)),
            Err(kind) => said::<()>(Err(kind)),
        }
    }
}

fn said<T>(result: Result<T, Kind>) {
    if let Err(kind) = result {
        assert!(!kind.to_string().trim().is_empty(), "{kind:?} says nothing");
    }
}
