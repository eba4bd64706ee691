//! Requests to an Azure-compatible endpoint of blobs, signed by a shared access signature (SAS).
//!
//! A signature is a secret. It stands in the query of each request and in no message.

use crate::cancel::Cancel;
use crate::error::BackupError;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};
use ureq::http::{Method, Request};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use weir_units::Instant;
use weir_wall::Clock;

/// The version of the service's protocol.
const VERSION: &str = "2021-12-02";
/// The longest time to find and reach the endpoint, for each request.
const CONNECTING: Duration = Duration::from_secs(10);
/// The longest time that the endpoint may take to begin its answer.
const ANSWERING: Duration = Duration::from_secs(30);
/// The longest time of one request: 4 MiB at 35 KiB/s.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a wait hears a request to stop.
const TICK: Duration = Duration::from_millis(50);
/// The time for tidying up after a failure, and after a request to stop.
const TIDYING: Duration = Duration::from_secs(5);
const TIDYING_AT_ONCE: Duration = Duration::from_secs(1);
/// The longest time from the first attempt at a request to its last one. A service that is too busy,
/// or restarted, is asked again.
const RETRYING: Duration = Duration::from_secs(120);
/// The same for an endpoint that has never answered: its address may be wrong.
const RETRYING_UNKNOWN: Duration = Duration::from_secs(5);
/// The pause before the second attempt, and the longest one; it doubles from one to the next, unless the
/// service says how long to wait.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// Bytes of an answer's body: a page of a listing, or 4 MiB of a blob.
const LONGEST_ANSWER: u64 = 64 << 20;
/// The environment variable that holds a signature.
pub const SAS_VARIABLE: &str = "AZURE_STORAGE_SAS_TOKEN";
/// The hint for requests without a signature.
const UNSIGNED: &str = "the URL has no signature (SAS): give one with --sas-file FILE, in \
                        AZURE_STORAGE_SAS_TOKEN, or behind the URL (https://..?sv=..&sig=..)";

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
    /// The prefix of its blobs' names: empty, or a path that ends in `/`.
    prefix: String,
    sas: String,
    cancel: Cancel,
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
        let name = host_name(host);
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
        Ok(Self { container, prefix, sas: clean(&sas), cancel: Cancel::default() })
    }

    /// Uses another signature.
    #[must_use]
    pub fn with_sas(self, sas: &str) -> Self {
        Self { sas: clean(sas), ..self }
    }

    /// Lets `cancel` end requests to it.
    #[must_use]
    pub fn with_cancel(self, cancel: Cancel) -> Self {
        Self { cancel, ..self }
    }

    /// Returns a warning if the signature is sent in the clear, where others may read it.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let rest = self.container.strip_prefix("http://").filter(|_| !self.sas.is_empty())?;
        let host = rest.split('/').next().unwrap_or(rest);
        (!is_loopback(host)).then(|| {
            format!(
                "{self}: http:// sends the signature (SAS) and the backup in the clear, and \
                 a third party that reads it can use it; give https://"
            )
        })
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

/// Returns the name or address of a host, without its port.
fn host_name(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// Returns whether a host is this machine.
fn is_loopback(host: &str) -> bool {
    let name = host_name(host);
    let address = name.parse::<std::net::IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn clean(sas: &str) -> String {
    sas.trim().trim_start_matches('?').to_owned()
}

/// The last answer to a request that was made one or more times.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) status: u16,
    pub(super) answer: Answer,
    pub(super) attempts: u32,
    /// Whether an attempt had no answer, so that the service may still carry it out.
    pub(super) is_open: bool,
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
    cancel: Cancel,
    /// Whether the endpoint has answered anything yet.
    has_answered: Arc<AtomicBool>,
    /// How long it is asked again, once it has.
    pub(super) retrying: Duration,
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
            .timeout_resolve(Some(CONNECTING))
            .timeout_connect(Some(CONNECTING))
            .timeout_recv_response(Some(ANSWERING))
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
        let cancel = url.cancel.clone();
        let (agent, has_answered) = (config.build().new_agent(), Arc::default());
        Self { agent, url, cancel, has_answered, retrying: RETRYING }
    }

    /// Lets one more flag end the requests of this client.
    pub(super) fn with_flag(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancel = self.cancel.with(flag);
        self
    }

    /// Asks, several times if the service is too busy. Returns `None` for a 404.
    pub(super) fn ask(&self, ask: Ask<'_>) -> Result<Option<Answer>, BackupError> {
        let Settled { status, answer, .. } = self.settle(ask)?;
        match status {
            404 => Ok(None),
            200..=299 => Ok(Some(answer)),
            _ => Err(self.refusal(ask, status, &answer)),
        }
    }

    /// Asks, and again while the service is too busy or cannot be reached. Returns the last answer.
    pub(super) fn settle(&self, ask: Ask<'_>) -> Result<Settled, BackupError> {
        let clock = Clock::start();
        let (mut attempt, mut is_open) = (1, false);
        loop {
            let answered = self.attempt(ask)?;
            let (is_final, stated) = match &answered {
                Ok((408 | 429 | 500 | 502..=504, answer)) => {
                    (false, retry_after(answer, weir_wall::calendar()))
                }
                Ok(_) => (true, None),
                Err(_) => (false, None),
            };
            match answered.is_ok() {
                true => self.has_answered.store(true, Ordering::Relaxed),
                false => is_open = true,
            }
            let elapsed = Duration::from_nanos(clock.now().since(Instant::ZERO).nanos());
            let limit = match self.has_answered.load(Ordering::Relaxed) {
                true => self.retrying,
                false => RETRYING_UNKNOWN,
            };
            match (answered, pause(attempt, elapsed, stated, limit)) {
                (answered, Some(pause)) if !is_final => {
                    drop(answered);
                    self.wait(pause)?;
                    attempt += 1;
                }
                (Ok((status, answer)), _) => {
                    return Ok(Settled { status, answer, attempts: attempt, is_open });
                }
                (Err(error), _) => {
                    return Err(BackupError::Failed(format!(
                        "{} {}: {error}; {attempt} attempts in {} s; is the endpoint up and reachable?",
                        ask.method,
                        ask.address,
                        elapsed.as_secs()
                    )));
                }
            }
        }
    }

    /// Asks once, and only for a short time. Returns the status and the answer, if one came.
    pub(super) fn try_once(&self, ask: Ask<'_>) -> Option<(u16, Answer)> {
        let limit = if self.cancel.is_set() { TIDYING_AT_ONCE } else { TIDYING };
        let answer = self.exchange(self.request(ask).ok()?).ok()?;
        answer.recv_timeout(limit).ok()?.ok()
    }

    /// Returns an error after a request to stop.
    pub(super) fn check(&self) -> Result<(), BackupError> {
        if self.cancel.is_set() { Err(BackupError::Interrupted) } else { Ok(()) }
    }

    /// Waits before the next attempt.
    fn wait(&self, pause: Duration) -> Result<(), BackupError> {
        let mut left = pause;
        while !left.is_zero() {
            self.check()?;
            let part = left.min(TICK);
            #[expect(clippy::disallowed_methods, reason = "a busy service wants a pause")]
            thread::sleep(part);
            left -= part;
        }
        Ok(())
    }

    /// Asks for something that must be there.
    pub(super) fn need(&self, ask: Ask<'_>) -> Result<Answer, BackupError> {
        self.ask(ask)?.ok_or_else(|| {
            let hint = if self.is_signed() { "is there such a container?" } else { UNSIGNED };
            BackupError::Failed(format!("{} {}: not found; {hint}", ask.method, ask.address))
        })
    }

    /// Returns whether requests have a signature.
    fn is_signed(&self) -> bool {
        !self.url.sas.is_empty()
    }

    /// Puts a refusal into a sentence. What the caller may do wrong is an error of the input.
    pub(super) fn refusal(&self, ask: Ask<'_>, status: u16, answer: &Answer) -> BackupError {
        let header = answer.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
        let code = header.unwrap_or("no reason given");
        // Some services answer a request without a signature as if nothing were there.
        let hint = match status {
            400..=403 | 409 if !self.is_signed() => UNSIGNED,
            401 | 403 => "check the signature (SAS): its permissions, its expiry, its container",
            409 | 412 => "the blob is there already, or in use",
            507 => "the account has no room",
            _ => "",
        };
        let separator = if hint.is_empty() { "" } else { "; " };
        let text = format!(
            "{} {}: refused with {status} ({code}){separator}{hint}",
            ask.method, ask.address
        );
        match status {
            400..=499 => BackupError::Refused(text),
            507 => BackupError::NoRoom(text),
            _ => BackupError::Failed(text),
        }
    }

    /// Makes one attempt. It ends at a request to stop, whatever the endpoint does.
    fn attempt(&self, ask: Ask<'_>) -> Result<Exchanged, BackupError> {
        self.check()?;
        let request = match self.request(ask) {
            Ok(request) => request,
            Err(error) => return Ok(Err(error)),
        };
        let answer = self.exchange(request)?;
        loop {
            match answer.recv_timeout(TICK) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) if self.cancel.is_set() => {
                    return Err(BackupError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let source = io::Error::other("its thread ended early");
                    return Err(BackupError::System { action: "sending a request", source });
                }
            }
        }
    }

    fn request(&self, ask: Ask<'_>) -> Result<Request<Vec<u8>>, ureq::Error> {
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
        request.body(ask.body.to_vec()).map_err(ureq::Error::Http)
    }

    /// Sends a request on a thread of its own: the library's calls cannot be ended from outside. An
    /// abandoned thread ends with the timeouts of its request.
    fn exchange(&self, request: Request<Vec<u8>>) -> Result<Receiver<Exchanged>, BackupError> {
        let (done, answer) = sync_channel(1);
        let agent = self.agent.clone();
        let work = move || drop(done.send(exchange(&agent, request)));
        let thread = thread::Builder::new().name("backup-request".to_owned()).spawn(work);
        let failed = |source| BackupError::System { action: "starting a thread", source };
        thread.map_err(failed)?;
        Ok(answer)
    }
}

/// The status and the answer, or why there is none.
type Exchanged = Result<(u16, Answer), ureq::Error>;

fn exchange(agent: &ureq::Agent, request: Request<Vec<u8>>) -> Exchanged {
    let mut answer = agent.run(request)?;
    let status = answer.status().as_u16();
    let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec()?;
    Ok((status, Answer { headers: answer.headers().clone(), body }))
}

/// Returns the pause before the next attempt at a request; `None` if it would end too late.
fn pause(
    attempts: u32,
    elapsed: Duration,
    stated: Option<Duration>,
    limit: Duration,
) -> Option<Duration> {
    let doubled = PAUSE.saturating_mul(1 << (attempts - 1).min(16)).min(LONGEST_PAUSE);
    let pause = stated.map_or(doubled, |stated| stated.max(PAUSE));
    (elapsed.saturating_add(pause) <= limit).then_some(pause)
}

/// Returns how long the service asks to wait: seconds, or until a date. `now` is Unix time in nanoseconds.
fn retry_after(answer: &Answer, now: u64) -> Option<Duration> {
    let stated = answer.headers.get("retry-after")?.to_str().ok()?.trim();
    if let Ok(seconds) = stated.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(stated).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(date.saturating_sub(Duration::from_nanos(now)))
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

    #[test]
    fn a_signature_in_the_clear_is_warned_of() {
        #[track_caller]
        fn check(text: &str, expect: bool) {
            let warning = ContainerUrl::parse(text).expect("a URL").with_sas("sig=x").warning();
            assert_eq!(warning.is_some(), expect, "{warning:?}");
            assert!(warning.is_none_or(|text| !text.contains("sig=")));
        }
        check("http://acme.example/backups", true);
        check("http://10.0.0.7:10000/account/backups", true);
        check("https://acme.example/backups", false);
        check("http://localhost:10000/account/backups", false);
        check("http://127.0.0.1:10000/account/backups", false);
        check("http://[::1]:10000/account/backups", false);
        let unsigned = ContainerUrl::parse("http://acme.example/backups").expect("a URL");
        assert_eq!(unsigned.with_sas("").warning(), None);
    }

    #[test]
    fn a_busy_service_is_asked_for_two_minutes_and_as_it_says() {
        let (mut attempts, mut elapsed) = (1, Duration::ZERO);
        let mut pauses = Vec::new();
        while let Some(pause) = pause(attempts, elapsed, None, RETRYING) {
            pauses.push(pause.as_millis());
            (attempts, elapsed) = (attempts + 1, elapsed + pause);
        }
        assert_eq!(pauses[..7], [250, 500, 1000, 2000, 4000, 8000, 15_000]);
        assert!((105..=120).contains(&elapsed.as_secs()), "{elapsed:?}");
        let (second, stated) = (Duration::from_secs(1), Some(Duration::from_secs(40)));
        assert_eq!(pause(1, second, stated, RETRYING), stated);
        // More than the time that is left: it is told at once.
        assert_eq!(pause(1, Duration::from_secs(90), stated, RETRYING), None);
        assert_eq!(pause(9, second, Some(Duration::ZERO), RETRYING), Some(PAUSE));
    }

    #[test]
    fn a_service_says_how_long_to_wait() {
        #[track_caller]
        fn check(text: &str, expect: Option<u64>) {
            let mut headers = ureq::http::HeaderMap::new();
            headers.insert("retry-after", text.parse().expect("a header"));
            let now = 1_252_488_002_000_000_000;
            let stated = retry_after(&Answer { headers, body: Vec::new() }, now);
            assert_eq!(stated, expect.map(Duration::from_secs), "{text}");
        }
        check("7", Some(7));
        check("Wed, 09 Sep 2009 09:20:32 GMT", Some(30));
        check("Wed, 09 Sep 2009 09:20:01 GMT", Some(0));
        check("soon", None);
    }
}
