//! The clients that may reach an export over NBD.

use crate::error::{Fault, Kind};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The clients of an export. Give `addresses`, `certificates` or both; a client must meet each that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientsKeys {
    /// Addresses and networks of clients over TCP, for example "10.0.0.7" and "10.1.0.0/16".
    #[serde(default, deserialize_with = "list")]
    #[schemars(!default)]
    pub addresses: Option<Vec<String>>,
    /// Names of client certificates: a subject alternative name or the common name, letter for letter.
    /// The server must be started with `--tls-verify-peer`.
    #[serde(default, deserialize_with = "list")]
    #[schemars(!default)]
    pub certificates: Option<Vec<String>>,
}

/// Reads `clients`, which must be a table.
pub(crate) fn table<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ClientsKeys>, D::Error> {
    struct Table;

    impl<'de> Visitor<'de> for Table {
        type Value = ClientsKeys;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table like { addresses = [\"10.0.0.7\"] }")
        }

        fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<ClientsKeys, M::Error> {
            ClientsKeys::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_any(Table).map(Some)
}

/// Reads a list of texts.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    struct List;

    impl<'de> Visitor<'de> for List {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of texts in brackets")
        }

        fn visit_seq<S: SeqAccess<'de>>(self, list: S) -> Result<Vec<String>, S::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }

    deserializer.deserialize_any(List).map(Some)
}

/// The clients that may reach an export over TCP. A Unix socket is protected by its file alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clients {
    addresses: Option<Vec<IpNet>>,
    certificates: Option<Vec<String>>,
}

/// A client over TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its address.
    pub address: IpAddr,
    /// The names in its certificate; none without one.
    pub names: Vec<String>,
}

/// The clients of all exports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// For exports without a list of their own.
    pub default: Option<Arc<Clients>>,
    /// By the name of the export.
    pub exports: BTreeMap<String, Arc<Clients>>,
}

impl Access {
    /// Returns the clients of an export; `None` if all may reach it.
    #[must_use]
    pub fn of_export(&self, name: &str) -> Option<&Arc<Clients>> {
        self.exports.get(name).or(self.default.as_ref())
    }

    /// Returns whether nothing is restricted.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.default.is_none() && self.exports.is_empty()
    }

    /// Returns whether a list has names of certificates.
    #[must_use]
    pub fn needs_certificates(&self) -> bool {
        self.default.iter().chain(self.exports.values()).any(|own| own.certificates.is_some())
    }
}

impl Clients {
    /// Resolves the keys of `what`.
    pub(crate) fn resolve(what: &str, keys: &ClientsKeys) -> Result<Arc<Self>, Fault> {
        let wrong = |key: String, reason: String| {
            Err(Kind::Contradiction { what: what.to_owned(), reason }.at(key))
        };
        let ClientsKeys { addresses, certificates } = keys;
        if addresses.is_none() && certificates.is_none() {
            let reason = "clients is empty; give addresses, certificates or both";
            return wrong("clients".to_owned(), reason.to_owned());
        }
        for (key, is_empty) in [
            ("addresses", addresses.as_ref().is_some_and(Vec::is_empty)),
            ("certificates", certificates.as_ref().is_some_and(Vec::is_empty)),
        ] {
            if is_empty {
                let reason = format!("{key} = [] admits nobody; name clients, or leave it out");
                return wrong(format!("clients.{key}"), reason);
            }
        }
        let mut networks = Vec::new();
        for (n, text) in addresses.iter().flatten().enumerate() {
            match network(text) {
                Ok(network) => networks.push(network),
                Err(reason) => return wrong(format!("clients.addresses.{n}"), reason),
            }
        }
        let names = certificates.iter().flatten();
        if let Some(n) = names.into_iter().position(|name| name.trim() != name || name.is_empty()) {
            let reason = "a name of a certificate is empty, or begins or ends with a blank";
            return wrong(format!("clients.certificates.{n}"), reason.to_owned());
        }
        let addresses = addresses.as_ref().map(|_| networks);
        Ok(Arc::new(Self { addresses, certificates: certificates.clone() }))
    }

    /// Checks that a client may reach the export.
    ///
    /// # Errors
    ///
    /// The reason, without names of other clients.
    pub fn check(&self, client: &Client) -> Result<(), &'static str> {
        // A listener for IPv6 may take clients over IPv4.
        let address = client.address.to_canonical();
        if let Some(networks) = &self.addresses
            && !networks.iter().any(|network| network.contains(&address))
        {
            return Err("the address is not among its clients");
        }
        if let Some(names) = &self.certificates
            && !client.names.iter().any(|name| names.contains(name))
        {
            return Err(match client.names.is_empty() {
                true => "the client has no certificate with a name",
                false => "no name of the certificate is among its clients",
            });
        }
        Ok(())
    }
}

impl fmt::Display for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = self.addresses.iter().flatten().map(ToString::to_string);
        let names =
            self.certificates.as_ref().map(|names| format!("certificates {}", names.join(", ")));
        let addresses = addresses.collect::<Vec<_>>().join(", ");
        let parts = [Some(addresses).filter(|own| !own.is_empty()), names];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

/// Reads an address or a network.
fn network(text: &str) -> Result<IpNet, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(IpNet::from(address.to_canonical()));
    }
    let network: IpNet = text.parse().map_err(|_| {
        format!(
            "{text:?} is neither an address nor a network; write it like \"10.0.0.7\", \
             \"10.1.0.0/16\" or \"fd00::/8\""
        )
    })?;
    if network.trunc() != network {
        let whole = network.trunc();
        let own = network.addr();
        return Err(format!(
            "{text:?} is an address within a network; write \"{whole}\" for the network, or \"{own}\" \
             for one client"
        ));
    }
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(addresses: &[&str], certificates: &[&str]) -> Arc<Clients> {
        let all = |own: &[&str]| {
            (!own.is_empty()).then(|| own.iter().map(|&text| text.to_owned()).collect())
        };
        let keys = ClientsKeys { addresses: all(addresses), certificates: all(certificates) };
        Clients::resolve("volume \"a\"", &keys).expect("valid keys")
    }

    fn client(address: &str, names: &[&str]) -> Client {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Client { address: address.parse().expect("an address"), names }
    }

    #[test]
    fn networks_contain_their_addresses_in_both_versions() {
        let own = clients(&["10.1.0.0/16", "192.168.0.7", "fd00::/8", "::1"], &[]);
        for inside in
            ["10.1.0.0", "10.1.255.255", "192.168.0.7", "fdab::1", "::1", "::ffff:10.1.2.3"]
        {
            assert_eq!(own.check(&client(inside, &[])), Ok(()), "{inside}");
        }
        for outside in ["10.2.0.0", "10.0.255.255", "192.168.0.8", "fe80::1", "::2", "127.0.0.1"] {
            assert!(own.check(&client(outside, &[])).is_err(), "{outside}");
        }
    }

    #[test]
    fn a_client_must_meet_both_lists() {
        let own = clients(&["10.0.0.0/8"], &["db1.example", "Backup of db1"]);
        let check = |address: &str, names: &[&str]| own.check(&client(address, names)).is_ok();
        assert!(check("10.0.0.1", &["other", "db1.example"]));
        assert!(check("10.0.0.1", &["Backup of db1"]));
        assert!(!check("11.0.0.1", &["db1.example"]) && !check("10.0.0.1", &[]));
        for near in ["DB1.example", "db1.example.", "*.example", "db1", "x.db1.example"] {
            assert!(!check("10.0.0.1", &[near]), "{near}");
        }
    }
}
