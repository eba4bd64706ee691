//! `weir cert`: an authority and the certificates that it signs.

use crate::cli::CertArgs;
use crate::error::CliError;
use crate::output;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use weir_client::tls::is_server_name;

/// The name of the client in its certificate.
const CLIENT: &str = "Weir client";

/// Names of the files of an authority.
struct Files {
    authority: &'static str,
    /// Certificate and key of the server.
    server: [&'static str; 2],
    /// Certificate and key of a client, if clients are known by one.
    client: Option<[&'static str; 2]>,
}

const BLOB: Files =
    Files { authority: "authority.pem", server: ["certificate.pem", "key.pem"], client: None };
/// The names that NBD servers and clients expect in a folder.
const NBD: Files = Files {
    authority: "ca-cert.pem",
    server: ["server-cert.pem", "server-key.pem"],
    client: Some(["client-cert.pem", "client-key.pem"]),
};

pub(crate) fn run(args: &CertArgs) -> Result<u8, CliError> {
    if let Some(name) = args.names.iter().find(|name| !is_server_name(name)) {
        return Err(CliError::Refused(format!(
            "--name {name:?} is not a host name or address that a client can check, such as db1.example, \
             *.db.example or 10.0.0.4"
        )));
    }
    let files = if args.nbd { NBD } else { BLOB };
    let made = files.made(&args.names).map_err(|error| {
        CliError::Refused(format!(
            "--name {}: not all of these are host names or addresses: {error}",
            args.names.join(" --name ")
        ))
    })?;
    let mut paths = made.iter().map(|file| args.dir.join(file.name));
    if let Some(path) = paths.find(|path| path.exists()) {
        return Err(CliError::Refused(format!(
            "{}: the file exists; remove it, or choose another folder",
            path.display()
        )));
    }
    fs::create_dir_all(&args.dir).map_err(|source| CliError::write(&args.dir, source))?;
    for file in &made {
        let path = args.dir.join(file.name);
        file.write(&path).map_err(|source| CliError::write(&path, source))?;
        output::print_text(&format!("{}\n", path.display()))?;
    }
    output::talk(&format!(
        "for {}; clients must trust {}",
        args.names.join(", "),
        args.dir.join(files.authority).display()
    ));
    Ok(0)
}

/// The text of a file, before it is written.
struct Made {
    name: &'static str,
    text: String,
    is_secret: bool,
}

impl Made {
    fn write(&self, path: &Path) -> io::Result<()> {
        let mode = if self.is_secret { 0o600 } else { 0o644 };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(self.text.as_bytes())?;
        file.sync_all()
    }
}

impl Files {
    /// Creates an authority and certificates for `names`, which are host names or addresses. The key
    /// of the authority is not stored, so that it cannot sign other certificates.
    fn made(&self, names: &[String]) -> Result<Vec<Made>, rcgen::Error> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "Weir authority");
        let authority_key = KeyPair::generate()?;
        let text = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);
        let mut made = vec![Made { name: self.authority, text, is_secret: false }];
        let server = ExtendedKeyUsagePurpose::ServerAuth;
        let first = names.first().map_or("localhost", String::as_str);
        made.extend(signed(self.server, first, names, server, &issuer)?);
        if let Some(client) = self.client {
            let usage = ExtendedKeyUsagePurpose::ClientAuth;
            made.extend(signed(client, CLIENT, &[], usage, &issuer)?);
        }
        Ok(made)
    }
}

/// Returns the files of a certificate and its key.
fn signed(
    [certificate, key]: [&'static str; 2],
    subject: &str,
    names: &[String],
    usage: ExtendedKeyUsagePurpose,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<[Made; 2], rcgen::Error> {
    let mut own = CertificateParams::new(names)?;
    own.distinguished_name.push(DnType::CommonName, subject);
    own.extended_key_usages = vec![usage];
    own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    own.use_authority_key_identifier_extension = true;
    let own_key = KeyPair::generate()?;
    let text = own.signed_by(&own_key, issuer)?.pem();
    Ok([
        Made { name: certificate, text, is_secret: false },
        Made { name: key, text: own_key.serialize_pem(), is_secret: true },
    ])
}
