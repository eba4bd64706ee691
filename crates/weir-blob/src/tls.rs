//! HTTPS: TLS with given certificates, and creation of certificates for tests.

use crate::error::BlobError;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

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
        .map_err(|error| wrong(key, error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The files created by [`make`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The authority's certificate, which clients have to trust.
    pub authority: PathBuf,
    /// The server's certificate.
    pub certificate: PathBuf,
    /// The server's private key.
    pub key: PathBuf,
}

/// Creates an authority and a certificate for `names`, which are host names or addresses, in `dir`.
/// The authority's key is not stored, so that it cannot sign other certificates.
///
/// # Errors
///
/// [`BlobError`] if a name is invalid, or a file exists or cannot be written.
pub fn make(dir: &Path, names: &[String]) -> Result<Made, BlobError> {
    let made = Made {
        authority: dir.join("authority.pem"),
        certificate: dir.join("certificate.pem"),
        key: dir.join("key.pem"),
    };
    for path in [&made.authority, &made.certificate, &made.key] {
        if path.exists() {
            let reason = "the file exists; remove it, or choose another folder".to_owned();
            return Err(BlobError::Certificate { path: path.clone(), reason });
        }
    }
    let wrong = |error: rcgen::Error| BlobError::Certificate {
        path: dir.to_owned(),
        reason: error.to_string(),
    };
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.distinguished_name.push(DnType::CommonName, "Weir authority");
    let authority_key = KeyPair::generate().map_err(wrong)?;
    let authority_certificate = authority.self_signed(&authority_key).map_err(wrong)?;
    let issuer = Issuer::new(authority, authority_key);
    let mut own = CertificateParams::new(names.to_vec()).map_err(wrong)?;
    let first = names.first().map_or("localhost", |name| name.as_str());
    own.distinguished_name.push(DnType::CommonName, first);
    own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    own.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().map_err(wrong)?;
    let certificate = own.signed_by(&key, &issuer).map_err(wrong)?;
    fs::create_dir_all(dir).map_err(|source| BlobError::io(dir, source))?;
    write(&made.key, &key.serialize_pem(), 0o600)?;
    write(&made.certificate, &certificate.pem(), 0o644)?;
    write(&made.authority, &authority_certificate.pem(), 0o644)?;
    Ok(made)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), BlobError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|source| BlobError::io(path, source))
}
