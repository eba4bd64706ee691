//! TLS of NBD clients.
//!
//! The handshake blocks, in the thread of the client's handshake. Later calls do not block: what the
//! socket does not take stays in the buffers of the session, which are bounded.

use crate::connection::Stream;
use crate::error::ServerError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use weir_client::tls::reason;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

/// The files of a folder, as other NBD servers name them.
const CERTIFICATE: &str = "server-cert.pem";
const KEY: &str = "server-key.pem";
const AUTHORITY: &str = "ca-cert.pem";

/// The certificate of a server, and which clients it accepts.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads `server-cert.pem` and `server-key.pem` from a folder. If clients have to be known, they
    /// need a certificate that an authority in `ca-cert.pem` has signed.
    ///
    /// # Errors
    /// [`ServerError::Certificate`] if a file is missing or wrong.
    pub fn from_folder(folder: &Path, verify_clients: bool) -> Result<Self, ServerError> {
        let wrong = |name: &str, reason: String| ServerError::Certificate {
            path: folder.join(name),
            reason,
        };
        let certificates = |name: &str| {
            let all = CertificateDer::pem_file_iter(folder.join(name))
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| wrong(name, error.to_string()))?;
            match all.is_empty() {
                true => Err(wrong(name, "the file contains no PEM certificate".to_owned())),
                false => Ok(all),
            }
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(CERTIFICATE, error.to_string()))?;
        let builder = if verify_clients {
            let mut roots = RootCertStore::empty();
            for root in certificates(AUTHORITY)? {
                roots.add(root).map_err(|error| wrong(AUTHORITY, error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier = verifier.build().map_err(|error| wrong(AUTHORITY, error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let chain = certificates(CERTIFICATE)?;
        let key = PrivateKeyDer::from_pem_file(folder.join(KEY))
            .map_err(|error| wrong(KEY, error.to_string()))?;
        let config = builder.with_single_cert(chain, key);
        Ok(Self(Arc::new(config.map_err(|error| wrong(KEY, reason(&error)))?)))
    }
}

/// The session of a client.
#[derive(Debug)]
pub(crate) struct Encryption(Box<ServerConnection>);

impl Encryption {
    /// Does the handshake. `before` is called before each wait; its error ends the handshake.
    pub(crate) fn agree(
        tls: &Tls,
        mut stream: &Stream,
        mut before: impl FnMut() -> io::Result<()>,
    ) -> io::Result<Self> {
        let session = ServerConnection::new(Arc::clone(&tls.0)).map_err(|error| invalid(&error))?;
        let mut session = Box::new(session);
        // In TLS 1.2, the server sends the last message, and the client waits for it.
        while session.is_handshaking() || session.wants_write() {
            before()?;
            if session.wants_write() {
                session.write_tls(&mut stream)?;
            } else if session.read_tls(&mut stream)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            } else if let Err(error) = session.process_new_packets() {
                // Tells the client why.
                let _ = session.write_tls(&mut stream);
                return Err(invalid(&error));
            }
        }
        Ok(Self(session))
    }

    /// Returns the names in the client's certificate: its common names and its alternative names. The
    /// certificate was verified, if there is one.
    pub(crate) fn client_names(&self) -> Vec<String> {
        let certificates = self.0.peer_certificates().unwrap_or_default();
        certificates.first().map(|own| names_in(own)).unwrap_or_default()
    }

    /// Returns decrypted bytes; none at the end of the connection.
    pub(crate) fn read(&mut self, mut stream: &Stream, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(buf) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                ended => return ended,
            }
            if self.0.read_tls(&mut stream)? == 0 {
                return Ok(0);
            }
            self.0.process_new_packets().map_err(|error| invalid(&error))?;
        }
    }

    /// Encrypts bytes as far as earlier ones are sent, and returns their number.
    pub(crate) fn write(&mut self, stream: &Stream, buf: &[u8]) -> io::Result<usize> {
        self.send(stream)?;
        let taken = self.0.writer().write(buf)?;
        match self.send(stream) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends what is encrypted.
    pub(crate) fn send(&mut self, mut stream: &Stream) -> io::Result<()> {
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

    /// Returns bytes that are decrypted already, for which no socket becomes readable.
    pub(crate) fn read_decrypted(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.reader().read(buf)
    }

    /// Tells the client that nothing follows, if the socket takes it.
    pub(crate) fn close(&mut self, stream: &Stream) {
        self.0.send_close_notify();
        let _ = self.send(stream);
    }
}

/// Returns the names in a certificate; none if it cannot be read.
fn names_in(certificate: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = parse_x509_certificate(certificate) else { return Vec::new() };
    let common = certificate.subject().iter_common_name().filter_map(|own| own.as_str().ok());
    let mut names: Vec<String> = common.map(str::to_owned).collect();
    let alternative = certificate.subject_alternative_name().ok().flatten();
    for name in alternative.iter().flat_map(|own| &own.value.general_names) {
        match name {
            GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => {
                names.push((*name).to_owned());
            }
            // Addresses are checked as those of the connection.
            _ => {}
        }
    }
    names
}

fn invalid(error: &rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason(error))
}
