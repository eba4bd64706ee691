//! Backends: volumes whose bytes are on an NBD server, on a block device or in a file.

use crate::error::Wrong;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use std::path::PathBuf;
use weir_proto::Uri;
use weir_units::Span;

/// Connections to a server that allows several.
const CONNECTIONS: u32 = 4;
const MOST_CONNECTIONS: u32 = 16;
/// The longest wait for an answer.
const TIMEOUT: Span = Span::from_secs(30);
const SHORTEST_TIMEOUT: Span = Span::from_millis(100);

/// The place of a volume's bytes, as a layout states it: the URI of an NBD server, or a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct BackendKeys {
    pub(crate) nbd: Option<String>,
    pub(crate) file: Option<PathBuf>,
    pub(crate) connections: Option<u32>,
    pub(crate) timeout: Option<Span>,
}

/// The table of a backend: give `nbd` or `file`.
#[derive(serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackendTable {
    /// URI of an NBD server: nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=PATH; with TLS,
    /// nbds://HOST[:PORT]/EXPORT?tls-certificates=FOLDER.
    nbd: Option<String>,
    /// Absolute path of a block device or of a file of fixed size.
    #[schemars(with = "Option<String>")]
    file: Option<PathBuf>,
    /// Connections to an NBD server that allows several, 1 to 16; 4 by default.
    #[schemars(range(min = 1, max = 16))]
    connections: Option<u32>,
    /// Longest wait for an answer of an NBD server, for example "30s" (the default). Later, the
    /// request fails with an I/O error.
    #[schemars(with = "Option<String>")]
    timeout: Option<Span>,
}

/// The place of a volume's bytes: a URI, or a table.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum BackendSchema {
    /// URI of an NBD server.
    Uri(String),
    /// URI or file with options.
    Table(BackendTable),
}

impl<'de> Deserialize<'de> for BackendKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = BackendKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a URI like \"nbd://host/export\" or a table like { file = \"/dev/sdx\" }",
                )
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<BackendKeys, E> {
                Ok(BackendKeys { nbd: Some(text.to_owned()), ..BackendKeys::default() })
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<BackendKeys, M::Error> {
                let table = BackendTable::deserialize(MapAccessDeserializer::new(map))?;
                let BackendTable { nbd, file, connections, timeout } = table;
                Ok(BackendKeys { nbd, file, connections, timeout })
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// The place of a volume's bytes outside of Weir.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// An export of an NBD server.
    Nbd {
        /// The export.
        uri: Uri,
        /// Maximum number of connections.
        connections: u32,
        /// The longest wait for an answer.
        timeout: Span,
    },
    /// A block device, or a file of fixed size.
    File {
        /// Its absolute path.
        path: PathBuf,
    },
}

impl Backend {
    /// Resolves the keys of a backend.
    pub(crate) fn resolve(keys: &BackendKeys) -> Result<Self, Wrong> {
        let wrong = |key, reason: String| Err((key, reason));
        match (&keys.nbd, &keys.file) {
            (Some(_), Some(_)) => {
                wrong("backend", "nbd and file exclude each other; keep one of them".into())
            }
            (None, None) => wrong(
                "backend",
                "give nbd = \"nbd://HOST/EXPORT\" or file = \"/dev/..\"".to_owned(),
            ),
            (None, Some(path)) => {
                for (key, given) in [
                    ("backend.connections", keys.connections.is_some()),
                    ("backend.timeout", keys.timeout.is_some()),
                ] {
                    if given {
                        let reason =
                            "connections and timeout are for an NBD server; leave them out";
                        return wrong(key, reason.to_owned());
                    }
                }
                if !path.is_absolute() {
                    let reason = format!(
                        "file = {:?} is not an absolute path; write one that starts with /",
                        path.display().to_string()
                    );
                    return wrong("backend.file", reason);
                }
                Ok(Self::File { path: path.clone() })
            }
            (Some(text), None) => {
                let uri = text.parse::<Uri>().map_err(|error| ("backend", error.to_string()))?;
                let connections = keys.connections.unwrap_or(CONNECTIONS);
                if !(1..=MOST_CONNECTIONS).contains(&connections) {
                    let reason =
                        format!("connections = {connections} is not from 1 to {MOST_CONNECTIONS}");
                    return wrong("backend.connections", reason);
                }
                let timeout = keys.timeout.unwrap_or(TIMEOUT);
                if timeout < SHORTEST_TIMEOUT {
                    let reason = format!(
                        "timeout = {timeout} is too short for a server; use {SHORTEST_TIMEOUT} or \
                         more"
                    );
                    return wrong("backend.timeout", reason);
                }
                Ok(Self::Nbd { uri, connections, timeout })
            }
        }
    }

    /// Returns whether both are the same bytes, as far as their names tell.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nbd { uri, .. }, Self::Nbd { uri: others, .. }) => uri == others,
            (Self::File { path }, Self::File { path: others }) => path == others,
            _ => false,
        }
    }
}

/// Formats the address, as messages and `weir status` show it.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nbd { uri, .. } => uri.fmt(f),
            Self::File { path } => path.display().fmt(f),
        }
    }
}
