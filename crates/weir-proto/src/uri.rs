//! The location of an export as an [NBD URI][NBD URIs].
//!
//! [NBD URIs]: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/uri.md

use crate::error::{BadUri, ProtoError};
use crate::wire::MAX_STRING;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// Default TCP port of NBD.
pub(crate) const DEFAULT_PORT: u16 = 10_809;

/// An export and its server's address, parsed from and formatted as `nbd://HOST[:PORT]/EXPORT` or
/// `nbd+unix:///EXPORT?socket=PATH`. With TLS, the scheme is `nbds` or `nbds+unix`, and
/// `tls-certificates=FOLDER` is a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Uri {
    /// The server's address.
    pub server: Server,
    /// Set if the connection needs TLS.
    pub tls: Option<TlsTerms>,
    /// Export name; empty for the default export.
    pub export: String,
}

/// The TLS parameters of a URI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TlsTerms {
    /// The folder of the certificates. A URI that is parsed has one.
    pub certificates: Option<String>,
    /// The name in the server's certificate, if it is not the host of the URI.
    pub hostname: Option<String>,
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Server {
    /// A TCP port.
    Tcp {
        /// Host name or address; IPv6 addresses are without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket.
    Unix {
        /// The path of the socket.
        socket: String,
    },
}

impl FromStr for Uri {
    type Err = ProtoError;

    fn from_str(text: &str) -> Result<Self, ProtoError> {
        parse(text).map_err(|problem| ProtoError::Uri { uri: text.to_owned(), problem })
    }
}

fn parse(text: &str) -> Result<Uri, BadUri> {
    let (scheme, rest) = text.split_once("://").ok_or(BadUri::Scheme)?;
    let (is_unix, is_encrypted) = match &*scheme.to_ascii_lowercase() {
        "nbd" => (false, false),
        "nbd+unix" => (true, false),
        "nbds" => (false, true),
        "nbds+unix" => (true, true),
        _ => return Err(BadUri::Scheme),
    };
    if rest.contains('#') {
        return Err(BadUri::Fragment);
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let Parameters { socket, tls } = parameters(query, is_unix, is_encrypted)?;
    let server = if is_unix { unix(authority, socket)? } else { tcp(authority)? };
    let export = unescape(path)?;
    if export.len() > MAX_STRING {
        return Err(BadUri::NameTooLong(export.len()));
    }
    if is_encrypted && tls.certificates.is_none() {
        return Err(BadUri::NoCertificates);
    }
    Ok(Uri { server, tls: is_encrypted.then_some(tls), export })
}

#[derive(Default)]
struct Parameters {
    socket: Option<String>,
    tls: TlsTerms,
}

fn parameters(query: &str, is_unix: bool, is_encrypted: bool) -> Result<Parameters, BadUri> {
    let mut all = Parameters::default();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let own = match key {
            "socket" if is_unix => &mut all.socket,
            "tls-certificates" if is_encrypted => &mut all.tls.certificates,
            "tls-hostname" if is_encrypted => &mut all.tls.hostname,
            _ => return Err(BadUri::Parameter(key.to_owned())),
        };
        let value = unescape(value)?;
        if own.is_some() || value.is_empty() && key != "socket" {
            return Err(BadUri::Parameter(key.to_owned()));
        }
        *own = Some(value);
    }
    Ok(all)
}

fn unix(authority: &str, socket: Option<String>) -> Result<Server, BadUri> {
    if !authority.is_empty() {
        return Err(BadUri::UnixHost(authority.to_owned()));
    }
    let socket = socket.filter(|path| !path.is_empty()).ok_or(BadUri::NoSocket)?;
    Ok(Server::Unix { socket })
}

fn tcp(authority: &str) -> Result<Server, BadUri> {
    let bad_host = || BadUri::Host(authority.to_owned());
    let (host, port) = if let Some(bracketed) = authority.strip_prefix('[') {
        let (host, after) = bracketed.split_once(']').ok_or_else(bad_host)?;
        host.parse::<core::net::Ipv6Addr>().map_err(|_| bad_host())?;
        let port = if after.is_empty() { None } else { Some(after.strip_prefix(':')) };
        (host.to_owned(), port.map(|port| port.ok_or_else(bad_host)).transpose()?)
    } else {
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        let host = unescape(host)?;
        if !host.bytes().all(is_plain) {
            return Err(bad_host());
        }
        (host, port)
    };
    if host.is_empty() {
        return Err(BadUri::NoHost);
    }
    // An empty port is the default one (RFC 3986, 3.2.3).
    let port = port.filter(|port| !port.is_empty()).map_or(Ok(DEFAULT_PORT), |text| {
        let port = text.parse().ok().filter(|&port| port != 0 && !text.starts_with('+'));
        port.ok_or_else(|| BadUri::Port(text.to_owned()))
    })?;
    Ok(Server::Tcp { host, port })
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls.is_some() { "nbds" } else { "nbd" })?;
        let mut parameters = Vec::new();
        match &self.server {
            Server::Tcp { host, port } => {
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                write!(f, "://{open}{host}{close}")?;
                if *port != DEFAULT_PORT {
                    write!(f, ":{port}")?;
                }
                f.write_str("/")?;
            }
            Server::Unix { socket } => {
                f.write_str("+unix:///")?;
                parameters.push(("socket", socket));
            }
        }
        escape(f, &self.export)?;
        if let Some(TlsTerms { certificates, hostname }) = &self.tls {
            parameters.extend(certificates.as_ref().map(|own| ("tls-certificates", own)));
            parameters.extend(hostname.as_ref().map(|own| ("tls-hostname", own)));
        }
        for (at, (key, value)) in parameters.into_iter().enumerate() {
            write!(f, "{}{key}=", if at == 0 { '?' } else { '&' })?;
            escape(f, value)?;
        }
        Ok(())
    }
}

/// Returns whether a byte needs no escape in any part of a URI (RFC 3986).
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn escape(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for byte in text.bytes() {
        if is_plain(byte) || byte == b'/' {
            write!(f, "{}", char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

fn unescape(part: &str) -> Result<String, BadUri> {
    let broken = || BadUri::Escape(part.to_owned());
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        bytes.push(match byte {
            b'%' => {
                let (high, low) = digit().zip(digit()).ok_or_else(broken)?;
                u8::try_from(high * 16 + low).map_err(|_| broken())?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn tcp_uri(host: &str, port: u16, export: &str) -> Uri {
        let server = Server::Tcp { host: host.into(), port };
        Uri { server, tls: None, export: export.into() }
    }

    fn unix_uri(socket: &str, export: &str) -> Uri {
        let server = Server::Unix { socket: socket.into() };
        Uri { server, tls: None, export: export.into() }
    }

    #[track_caller]
    fn check(text: &str, expect: Uri, printed: &str) {
        let uri = text.parse::<Uri>();
        assert_eq!(uri, Ok(expect));
        assert_eq!(uri.map(|uri| uri.to_string()), Ok(printed.to_string()));
    }

    #[track_caller]
    fn check_bad(text: &str, message: &str) {
        let got = text.parse::<Uri>().map_err(|error| error.to_string());
        assert_eq!(got, Err(format!("\"{text}\" {message}")));
    }

    #[test]
    fn tcp() {
        check("nbd://localhost", tcp_uri("localhost", 10_809, ""), "nbd://localhost/");
        check("nbd://localhost/", tcp_uri("localhost", 10_809, ""), "nbd://localhost/");
        check("NBD://h:7/a/b", tcp_uri("h", 7, "a/b"), "nbd://h:7/a/b");
        check("nbd://10.0.0.1:10809/x", tcp_uri("10.0.0.1", 10_809, "x"), "nbd://10.0.0.1/x");
        check("nbd://[::1]:7/x", tcp_uri("::1", 7, "x"), "nbd://[::1]:7/x");
        check("nbd://h:/x", tcp_uri("h", 10_809, "x"), "nbd://h/x");
        check("nbd://h//x", tcp_uri("h", 10_809, "/x"), "nbd://h//x");
        check("nbd://h/a%20%e2%82%ac", tcp_uri("h", 10_809, "a €"), "nbd://h/a%20%E2%82%AC");
    }

    #[test]
    fn a_name_may_be_as_long_as_the_protocol_allows() {
        let name = "x".repeat(MAX_STRING);
        let uri = format!("nbd://h:7/{name}");
        check(&uri, tcp_uri("h", 7, &name), &uri);
        let longer = format!("{uri}x");
        check_bad(&longer, "has an export name of 4097 bytes; at most 4096 are possible");
    }

    #[test]
    fn unix() {
        check(
            "nbd+unix:///?socket=/run/w.sock",
            unix_uri("/run/w.sock", ""),
            "nbd+unix:///?socket=/run/w.sock",
        );
        check(
            "nbd+unix:///reads%3f?socket=a%26b+c",
            unix_uri("a&b+c", "reads?"),
            "nbd+unix:///reads%3F?socket=a%26b%2Bc",
        );
        check("nbd+unix://?socket=s", unix_uri("s", ""), "nbd+unix:///?socket=s");
    }

    #[test]
    fn tls() {
        let certificates = Some("/etc/pki".to_string());
        let secret = |uri: Uri, hostname: Option<&str>| {
            let tls = TlsTerms {
                certificates: certificates.clone(),
                hostname: hostname.map(ToString::to_string),
            };
            Uri { tls: Some(tls), ..uri }
        };
        let text = "nbds://h:7/x?tls-certificates=/etc/pki";
        check(text, secret(tcp_uri("h", 7, "x"), None), text);
        let text = "nbds+unix:///x?socket=s&tls-certificates=/etc/pki&tls-hostname=db1";
        check(text, secret(unix_uri("s", "x"), Some("db1")), text);
        // As a server shows it, without the client's folder.
        let shown = Uri { tls: Some(TlsTerms::default()), ..tcp_uri("h", 7, "x") };
        assert_eq!(shown.to_string(), "nbds://h:7/x");
    }

    #[test]
    fn invalid_uris_are_explained() {
        let scheme = "is not an NBD URI; write nbd://HOST[:PORT]/EXPORT or \
                      nbd+unix:///EXPORT?socket=PATH";
        let tls = "names no certificates; add ?tls-certificates=FOLDER, which has a ca-cert.pem";
        let parameter = "is unknown, empty or given twice; nbd+unix takes socket=PATH, and with TLS there are \
                         tls-certificates=FOLDER and tls-hostname=NAME";
        let host = "; write a name, an IPv4 address or an IPv6 address in []";
        let escape = "whose %-escapes are broken or are not UTF-8 text without NUL";
        check_bad("disk0", scheme);
        check_bad("http://h/x", scheme);
        check_bad("nbds://h/x", tls);
        check_bad("nbds+unix:///x?socket=s", tls);
        check_bad("nbd:///x", "names no host; write nbd://HOST[:PORT]/EXPORT");
        check_bad("nbd://me@h/x", &format!("has the unusable host \"me@h\"{host}"));
        check_bad("nbd://[::g]/x", &format!("has the unusable host \"[::g]\"{host}"));
        check_bad("nbd://[::1]7/x", &format!("has the unusable host \"[::1]7\"{host}"));
        check_bad("nbd://h:0/x", "has the port \"0\", which is not a number from 1 to 65535");
        check_bad("nbd://h:65536", "has the port \"65536\", which is not a number from 1 to 65535");
        check_bad("nbd://h:+7", "has the port \"+7\", which is not a number from 1 to 65535");
        check_bad(
            "nbd+unix://h/x?socket=s",
            "names the host \"h\", but a Unix socket has none; write \
             nbd+unix:///EXPORT?socket=PATH",
        );
        check_bad("nbd+unix:///x", "names no socket; write nbd+unix:///EXPORT?socket=PATH");
        check_bad("nbd+unix:///x?socket=", "names no socket; write nbd+unix:///EXPORT?socket=PATH");
        check_bad(
            "nbd://h/x?socket=s",
            &format!("has the parameter \"socket\", which {parameter}"),
        );
        for text in ["nbd://h/x?tls-certificates=p", "nbds://h/x?tls-certificates="] {
            check_bad(text, &format!("has the parameter \"tls-certificates\", which {parameter}"));
        }
        let words = format!("has the parameter \"tls-hostname\", which {parameter}");
        check_bad("nbd://h/x?tls-hostname=db1", &words);
        check_bad(
            "nbd://h/#",
            "has a fragment (#), which means nothing here; write %23 for a # in a name",
        );
        check_bad("nbd://h/%4", &format!("has the part \"%4\", {escape}"));
        check_bad("nbd://h/%ff", &format!("has the part \"%ff\", {escape}"));
        check_bad("nbd://h/a%00", &format!("has the part \"a%00\", {escape}"));
        let long = format!("nbd://h/{}", "x".repeat(4097));
        check_bad(&long, "has an export name of 4097 bytes; at most 4096 are possible");
    }

    proptest! {
        #[test]
        fn uris_round_trip(
            unix: bool, host in "[a-z][a-z0-9.-]{0,20}", port in 1u16..,
            socket in "[^\0]{1,40}", export in "[^\0]{0,40}",
        ) {
            let uri = if unix { unix_uri(&socket, &export) } else { tcp_uri(&host, port, &export) };
            prop_assert_eq!(uri.to_string().parse::<Uri>(), Ok(uri));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text: String) {
            if let Ok(uri) = text.parse::<Uri>() {
                prop_assert_eq!(uri.to_string().parse::<Uri>(), Ok(uri));
            }
        }
    }
}
