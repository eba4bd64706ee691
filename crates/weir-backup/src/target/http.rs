//! Requests to an Azure-compatible endpoint of blobs, signed by a shared access signature (SAS).
//!
//! A signature is a secret. It stands in the query of each request and in no message.

use crate::error::BackupError;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::fmt;
use std::time::Duration;
use ureq::http::{Method, Request};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The version of the service's protocol.
const VERSION: &str = "2021-12-02";
/// How long one request may take: 4 MiB at a few kilobytes per second.
const PATIENCE: Duration = Duration::from_secs(300);
/// Attempts at a request that the service is too busy for, or that a broken connection ended.
const ATTEMPTS: u32 = 5;
/// The wait before the second attempt; it doubles from one to the next.
const PAUSE: Duration = Duration::from_millis(250);
/// Bytes of an answer's body: a page of a listing, or 4 MiB of a blob.
const LONGEST_ANSWER: u64 = 64 << 20;
/// The environment variable that holds a signature.
pub const SAS_VARIABLE: &str = "AZURE_STORAGE_SAS_TOKEN";

/// Characters of a path that are escaped.
pub(super) const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'%')
    .add(b'+')
    .add(b'&')
    .add(b'=');

/// A container, or the names in it that begin alike, with the signature for it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ContainerUrl {
    /// The address of the container, without a query.
    container: String,
    /// What the names of its blobs begin with: nothing, or a path that ends in `/`.
    prefix: String,
    sas: String,
}

impl fmt::Debug for ContainerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContainerUrl({self})")
    }
}

impl fmt::Display for ContainerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.container, self.prefix)
    }
}

impl ContainerUrl {
    /// Reads `https://ACCOUNT.blob.core.windows.net/CONTAINER[/PATH][?SAS]`. Where the host is an
    /// address or localhost, the account is the first part of the path. Without a signature in the
    /// URL, that of the environment variable AZURE_STORAGE_SAS_TOKEN is used.
    ///
    /// # Errors
    /// [`BackupError::Refused`] for a URL without a container.
    pub fn parse(text: &str) -> Result<Self, BackupError> {
        let (bare, query) = text.split_once('?').unwrap_or((text, ""));
        let refused = |why: &str| BackupError::Refused(format!("{bare}: {why}"));
        let (scheme, rest) = bare.split_once("://").ok_or_else(|| refused("it is no URL"))?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let name = match host.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        let is_address = name == "localhost" || name.parse::<std::net::IpAddr>().is_ok();
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let mut container = format!("{scheme}://{host}");
        for _ in 0..if is_address { 2 } else { 1 } {
            let part = parts.next().ok_or_else(|| {
                refused(
                    "it names no container; give https://ACCOUNT.blob.core.windows.net/CONTAINER",
                )
            })?;
            container = format!("{container}/{part}");
        }
        let prefix: String = parts.map(|part| format!("{part}/")).collect();
        let sas = if query.is_empty() {
            std::env::var(SAS_VARIABLE).unwrap_or_default()
        } else {
            query.to_owned()
        };
        Ok(Self { container, prefix, sas: clean(&sas) })
    }

    /// Uses another signature.
    #[must_use]
    pub fn with_sas(self, sas: &str) -> Self {
        Self { sas: clean(sas), ..self }
    }

    /// Returns the address of a blob, for messages.
    #[must_use]
    pub fn blob(&self, name: &str) -> String {
        format!("{}/{}{}", self.container, self.prefix, utf8_percent_encode(name, ESCAPED))
    }

    /// Returns what the names of its blobs begin with.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn container(&self) -> &str {
        &self.container
    }
}

fn clean(sas: &str) -> String {
    sas.trim().trim_start_matches('?').to_owned()
}

/// An answer of the service that is no refusal.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) headers: ureq::http::HeaderMap,
    pub(super) body: Vec<u8>,
}

/// A client of one container.
#[derive(Clone)]
pub(super) struct Client {
    agent: ureq::Agent,
    pub(super) url: ContainerUrl,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A request without its signature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) method: &'a Method,
    /// The address, and the query without the signature.
    pub(super) address: &'a str,
    pub(super) query: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
}

impl Client {
    pub(super) fn new(url: ContainerUrl) -> Self {
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(PATIENCE))
            .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")))
            .max_idle_connections_per_host(64)
            .max_idle_connections(64);
        // Roots of the system also have a certificate of one's own; without any, the usual ones do.
        let roots = rustls_native_certs::load_native_certs().certs;
        if !roots.is_empty() {
            let roots = roots.iter().map(|own| Certificate::from_der(own).to_owned());
            let tls = TlsConfig::builder().root_certs(RootCerts::from(roots)).build();
            config = config.tls_config(tls);
        }
        Self { agent: config.build().new_agent(), url }
    }

    /// Asks, several times if the service is too busy. Returns `None` for a 404.
    pub(super) fn ask(&self, ask: Ask<'_>) -> Result<Option<Answer>, BackupError> {
        let mut pause = PAUSE;
        for attempt in 1.. {
            let outcome = self.attempt(ask);
            let is_last = attempt >= ATTEMPTS;
            match outcome {
                Ok((404, _)) => return Ok(None),
                Ok((200..=299, answer)) => return Ok(Some(answer)),
                Ok((500..=599 | 429 | 408, _)) | Err(_) if !is_last => {
                    #[expect(clippy::disallowed_methods, reason = "a busy service wants a pause")]
                    std::thread::sleep(pause);
                    pause *= 2;
                }
                Ok((status, answer)) => return Err(refusal(ask, status, &answer)),
                Err(error) => {
                    return Err(BackupError::Failed(format!(
                        "{} {}: {error}",
                        ask.method, ask.address
                    )));
                }
            }
        }
        Ok(None)
    }

    /// Asks for something that must be there.
    pub(super) fn need(&self, ask: Ask<'_>) -> Result<Answer, BackupError> {
        self.ask(ask)?.ok_or_else(|| {
            BackupError::Failed(format!(
                "{} {}: not found; is there such a container?",
                ask.method, ask.address
            ))
        })
    }

    fn attempt(&self, ask: Ask<'_>) -> Result<(u16, Answer), ureq::Error> {
        let parts = [ask.query, &self.url.sas];
        let query: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let uri = match query.is_empty() {
            true => ask.address.to_owned(),
            false => format!("{}?{}", ask.address, query.join("&")),
        };
        let mut request = Request::builder()
            .method(ask.method)
            .uri(uri)
            .header("x-ms-version", VERSION)
            .header("content-length", ask.body.len());
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        let mut answer = self.agent.run(request.body(ask.body).map_err(ureq::Error::Http)?)?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec()?;
        Ok((status, Answer { headers: answer.headers().clone(), body }))
    }
}

/// Puts a refusal into a sentence. What the caller may do wrong is an error of the input.
fn refusal(ask: Ask<'_>, status: u16, answer: &Answer) -> BackupError {
    let header = answer.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
    let code = header.unwrap_or("no reason given");
    let hint = match status {
        401 | 403 => "; check the signature (SAS): its permissions, its expiry, its container",
        409 | 412 => "; the blob is there already, or in use",
        507 => "; the account has no room",
        _ => "",
    };
    let text = format!("{} {}: refused with {status} ({code}){hint}", ask.method, ask.address);
    match status {
        400..=499 => BackupError::Refused(text),
        _ => BackupError::Failed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let parsed = ContainerUrl::parse(text);
        let got = parsed.map_or_else(
            |error| error.to_string(),
            |url| format!("{} {} {}", url.container, url.prefix, url.sas),
        );
        assert_eq!(got, expect);
    }

    #[test]
    fn a_url_names_a_container_a_path_and_a_signature() {
        let azure = "https://acme.blob.core.windows.net/backups";
        check(&format!("{azure}?sv=1&sig=x"), &format!("{azure}  sv=1&sig=x"));
        check(&format!("{azure}/sales/2026/?sig=x"), &format!("{azure} sales/2026/ sig=x"));
        let local = "http://127.0.0.1:10000/devstoreaccount1/backups";
        check(&format!("{local}?sig=x"), &format!("{local}  sig=x"));
        check("http://[::1]:1/a/c?sig=x", "http://[::1]:1/a/c  sig=x");
        let none = "it names no container; give https://ACCOUNT.blob.core.windows.net/CONTAINER";
        check("https://h?sig=secret", &format!("https://h: {none}"));
        check("http://localhost/a?sig=secret", &format!("http://localhost/a: {none}"));
        let shown = format!("{:?}", ContainerUrl::parse(&format!("{azure}?sig=secret")));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
