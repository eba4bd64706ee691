//! TLS of a connection: the certificates, and the session over a socket.
//!
//! A client trusts the authorities in `ca-cert.pem`, and shows `client-cert.pem` if there is one. libnbd
//! and qemu use the same names.

mod reason;

pub use reason::reason;

use crate::error::ClientError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use weir_proto::Uri;
use weir_proto::uri::{Server, TlsTerms};

const AUTHORITY: &str = "ca-cert.pem";
const CERTIFICATE: &str = "client-cert.pem";
const KEY: &str = "client-key.pem";

/// The authorities and the name that a server is checked by, and the client's own certificate.
pub(crate) struct TlsConfig {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TlsConfig {
    /// Reads the certificates that a URI names; `None` if it does not ask for TLS.
    pub(crate) fn from_uri(uri: &Uri) -> Result<Option<Self>, ClientError> {
        let Some(TlsTerms { certificates, hostname }) = &uri.tls else { return Ok(None) };
        let folder = Path::new(certificates.as_deref().unwrap_or("."));
        let host = match (&hostname, &uri.server) {
            (Some(name), _) => name,
            (None, Server::Tcp { host, .. }) => host,
            (None, Server::Unix { .. }) => "localhost",
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| ClientError::Tls {
            place: host.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Some(Self { config: Arc::new(config(folder)?), name }))
    }
}

/// Returns whether clients can check a server's certificate by a name: a host name, an address, or `*` before a domain
/// of at least two parts.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    match name.strip_prefix("*.").map(ServerName::try_from) {
        None => ServerName::try_from(name).is_ok(),
        Some(Ok(ServerName::DnsName(domain))) => {
            domain.as_ref().trim_end_matches('.').contains('.')
        }
        Some(_) => false,
    }
}

fn config(folder: &Path) -> Result<ClientConfig, ClientError> {
    let wrong = |name: &str, reason: String| {
        let path = folder.join(name).display().to_string();
        ClientError::Certificate { path, reason }
    };
    let certificates = |name: &str| {
        let all = CertificateDer::pem_file_iter(folder.join(name))
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(name, error.to_string()))?;
        let none = || wrong(name, "the file contains no PEM certificate".to_owned());
        if all.is_empty() { Err(none()) } else { Ok(all) }
    };
    let mut roots = RootCertStore::empty();
    for root in certificates(AUTHORITY)? {
        roots.add(root).map_err(|error| wrong(AUTHORITY, error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(AUTHORITY, error.to_string()))?
        .with_root_certificates(roots);
    let has_certificate = folder.join(CERTIFICATE).try_exists();
    if !has_certificate.map_err(|error| wrong(CERTIFICATE, error.to_string()))? {
        return Ok(builder.with_no_client_auth());
    }
    let chain = certificates(CERTIFICATE)?;
    let key = PrivateKeyDer::from_pem_file(folder.join(KEY));
    let key = key.map_err(|error| wrong(KEY, error.to_string()))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| wrong(KEY, reason(&error)))
}

/// An encrypted session over a stream, which is given to each call.
#[derive(Debug)]
pub(crate) struct Encryption(Box<ClientConnection>);

impl Encryption {
    /// Does the handshake over a blocking stream. `again` is called after each read timeout, and its
    /// error ends the handshake.
    pub(crate) fn handshake(
        tls_config: &TlsConfig,
        mut stream: impl Read + Write,
        mut again: impl FnMut() -> io::Result<()>,
    ) -> io::Result<Self> {
        let session =
            ClientConnection::new(Arc::clone(&tls_config.config), tls_config.name.clone());
        let mut session = Box::new(session.map_err(|error| invalid(&error))?);
        while session.is_handshaking() {
            let done = match session.wants_write() {
                true => session.write_tls(&mut stream),
                false => session.read_tls(&mut stream),
            };
            match done {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => again()?,
                Err(error) => return Err(error),
            }
            if let Err(error) = session.process_new_packets() {
                // Tells the server why.
                let _ = session.write_tls(&mut stream);
                return Err(invalid(&error));
            }
        }
        Ok(Self(session))
    }

    /// Returns decrypted bytes; none at the end of the connection.
    pub(crate) fn read(&mut self, mut stream: impl Read, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                ended => return ended,
            }
            if self.0.read_tls(&mut stream)? == 0 {
                return Ok(0);
            }
            self.0.process_new_packets().map_err(|error| invalid(&error))?;
        }
    }

    /// Encrypts bytes as soon as earlier ones are sent, and returns their number.
    pub(crate) fn write(&mut self, mut stream: impl Write, bytes: &[u8]) -> io::Result<usize> {
        self.send(&mut stream)?;
        let taken = self.0.writer().write(bytes)?;
        match self.send(&mut stream) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends what is encrypted.
    pub(crate) fn send(&mut self, mut stream: impl Write) -> io::Result<()> {
        while self.0.wants_write() {
            match self.0.write_tls(&mut stream) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns whether encrypted bytes are left to send.
    pub(crate) fn has_unsent(&self) -> bool {
        self.0.wants_write()
    }

    /// Returns whether decrypted bytes are left, for which no descriptor becomes readable.
    pub(crate) fn has_decrypted(&mut self) -> bool {
        // An error shows at the next read.
        self.0.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }
}

fn invalid(error: &rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_are_host_names_and_addresses() {
        for name in ["localhost", "db1.example", "*.db.example", "127.0.0.1", "::1"] {
            assert!(is_server_name(name), "{name}");
        }
        let wrong = ["", "*", "db 1", "db1:10809", "https://db1", "-db1", "db1/", "a*.db.example"];
        let wildcards = ["*.example", "*.example.", "*.10.0.0.4", "*.::1", "*.*.db.example"];
        for name in wrong.into_iter().chain(wildcards) {
            assert!(!is_server_name(name), "{name}");
        }
    }
}
