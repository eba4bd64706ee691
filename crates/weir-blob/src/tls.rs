//! HTTPS: TLS with given certificates.

use crate::error::BlobError;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use weir_client::tls::reason;

/// Builds a TLS acceptor from PEM files with the certificate chain and the key.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, BlobError> {
    let wrong =
        |path: &Path, reason: String| BlobError::Certificate { path: path.to_owned(), reason };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
        .map_err(|error| wrong(certificate, error.to_string()))?
        .collect();
    let chain = chain.map_err(|error| wrong(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "the file contains no PEM certificate".to_owned()));
    }
    let own = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, own)
        .map_err(|error| wrong(key, reason(&error)))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
