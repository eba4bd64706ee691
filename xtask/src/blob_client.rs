//! A client of the blob service, with its own signature and a connection for each request.

use crate::error::XtaskError;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use weir_blob::auth::account::Account;
use weir_blob::time::Moment;

/// The published name and key of the development account.
const NAME: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const VERSION: &str = "2021-12-02";
/// The longest time for a part of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of the development account.
#[derive(Debug, Clone)]
pub(crate) struct BlobClient {
    port: u16,
    /// The signature for all requests, as a query.
    signature: String,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The status line and the headers.
    head: String,
    pub(crate) body: Vec<u8>,
}

impl BlobClient {
    /// Makes a client of the service at a port of this machine.
    pub(crate) fn new(port: u16) -> Result<Self, XtaskError> {
        let account =
            Account::new(NAME, KEY).map_err(|error| XtaskError::Lost(error.to_string()))?;
        Ok(Self { port, signature: signature(&account) })
    }

    /// Sends a request, whose path ends where the signature follows.
    pub(crate) fn ask(
        &self,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, String> {
        let port = self.port;
        let mut request = format!(
            "{method} /{NAME}{path}{} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\
             x-ms-version: {VERSION}\r\ncontent-length: {}\r\n",
            self.signature,
            body.len()
        );
        for (name, value) in headers {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request += "\r\n";
        exchange(port, request.as_bytes(), body)
    }

    /// Sends a request, and expects a status.
    pub(crate) fn must(
        &self,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
        status: u16,
    ) -> Result<Answer, String> {
        let answer = self.ask((method, path), headers, body)?;
        if answer.status == status {
            return Ok(answer);
        }
        Err(format!("{method} {path}: {} instead of {status}", answer.words()))
    }
}

impl Answer {
    /// Returns a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Describes it for people.
    pub(crate) fn words(&self) -> String {
        format!("{} ({})", self.status, String::from_utf8_lossy(&self.body))
    }
}

/// Signs all requests of a year (an account SAS).
fn signature(account: &Account) -> String {
    let end = Moment(weir_wall::calendar()).plus_secs(365 * 86_400).iso();
    let end = format!("{}Z", end.get(..19).unwrap_or_default());
    let text = format!("{NAME}\nrwdlacupt\nb\nsco\n\n{end}\n\n\n{VERSION}\n\n");
    let sig = account.sign(&text).replace('+', "%2B").replace('=', "%3D").replace('/', "%2F");
    format!("sv={VERSION}&ss=b&srt=sco&sp=rwdlacupt&se={end}&sig={sig}")
}

/// Sends a request that closes its connection.
pub(crate) fn exchange(port: u16, head: &[u8], body: &[u8]) -> Result<Answer, String> {
    let failed = |error: std::io::Error| format!("port {port}: {error}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.write_all(&[head, body].concat()).map_err(failed)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(failed)?;
    parse(&answer).ok_or_else(|| format!("port {port}: the answer is not complete"))
}

/// Splits an answer that has its length or ends with its connection.
fn parse(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?.to_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = answer[end + 4..].to_vec();
    let answer = Answer { status, head, body };
    let length = answer.header("content-length");
    let is_whole = length.is_none_or(|length| length.parse() == Ok(answer.body.len()));
    is_whole.then_some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_split_and_must_be_whole() {
        let whole = parse(b"HTTP/1.1 206 Partial\r\nContent-Length: 3\r\nX: Y\r\n\r\nabc").unwrap();
        assert_eq!((whole.status, &*whole.body, whole.header("x")), (206, &b"abc"[..], Some("Y")));
        assert_eq!(
            parse(b"HTTP/1.1 200 OK\r\n\r\nabcd").map(|own| own.body),
            Some(b"abcd".to_vec())
        );
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc"), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
