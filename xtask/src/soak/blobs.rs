//! A client of page blobs, with its own signature and a connection for each request.

use super::shared::{Shared, count};
use crate::error::XtaskError;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use weir_blob::auth::account::Account;
use weir_blob::time::Moment;
use weir_random::Rng;

/// The published name and key of the development account.
const NAME: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const VERSION: &str = "2021-12-02";
/// The time between two requests, in milliseconds.
const REST: u64 = 20;
const SIZE: usize = 1 << 20;
const PAGE: usize = 512;
/// Requests for a blob until it is deleted, at most.
const STAY: u64 = 300;

struct Client {
    shared: Arc<Shared>,
    /// The signature for all requests, as a query.
    signature: String,
    rng: Rng,
}

/// Starts a client that creates page blobs, writes, reads and deletes them.
pub(super) fn start(shared: &Arc<Shared>, rng: &mut Rng) -> Result<JoinHandle<()>, XtaskError> {
    let account = Account::new(NAME, KEY).map_err(|error| XtaskError::Lost(error.to_string()))?;
    let rng = Rng::new(&[rng.next_u64()]);
    let mut client = Client { shared: Arc::clone(shared), signature: signature(&account), rng };
    Ok(shared.spawn("blobs", move || client.run()))
}

/// Signs all requests of a year (an account SAS).
fn signature(account: &Account) -> String {
    let end = Moment(weir_wall::calendar()).plus_secs(365 * 86_400).iso();
    let end = format!("{}Z", end.get(..19).unwrap_or_default());
    let text = format!("{NAME}\nrwdlacupt\nb\nsco\n\n{end}\n\n\n{VERSION}\n\n");
    let sig = account.sign(&text).replace('+', "%2B").replace('=', "%3D").replace('/', "%2F");
    format!("sv={VERSION}&ss=b&srt=sco&sp=rwdlacupt&se={end}&sig={sig}")
}

impl Client {
    fn run(&mut self) -> Result<(), String> {
        self.ask(("PUT", "/soak?restype=container&"), &[], &[], 201)?;
        while !self.shared.is_over() {
            let blob = format!("/soak/blob-{}", self.rng.below(4));
            let size = SIZE.to_string();
            let kind = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*size)];
            self.ask(("PUT", &format!("{blob}?")), &kind, &[], 201)?;
            let mut content = vec![0; SIZE];
            for _ in 0..self.rng.within(1, STAY) {
                if self.shared.is_over() {
                    break;
                }
                self.touch(&blob, &mut content)?;
                self.shared.rest(REST);
            }
            let all = self.ask(("GET", &format!("{blob}?")), &[], &[], 200)?;
            if all != content {
                return Err(format!("{blob}: other bytes than were written"));
            }
            self.ask(("DELETE", &format!("{blob}?")), &[], &[], 202)?;
        }
        Ok(())
    }

    /// Writes, clears or reads some pages.
    fn touch(&mut self, blob: &str, content: &mut [u8]) -> Result<(), String> {
        let first = self.rng.index(SIZE / PAGE);
        let pages = self.rng.index((SIZE / PAGE - first).min(64)) + 1;
        let (from, to) = (first * PAGE, (first + pages) * PAGE);
        let range = format!("bytes={from}-{}", to - 1);
        let pages = format!("{blob}?comp=page&");
        match self.rng.below(10) {
            0 => {
                content[from..to].fill(0);
                let headers = [("x-ms-page-write", "clear"), ("x-ms-range", &*range)];
                self.ask(("PUT", &pages), &headers, &[], 201).map(drop)
            }
            1..=4 => {
                self.rng.fill(&mut content[from..to]);
                let headers = [("x-ms-page-write", "update"), ("x-ms-range", &*range)];
                self.ask(("PUT", &pages), &headers, &content[from..to], 201).map(drop)
            }
            _ => {
                let headers = [("x-ms-range", &*range)];
                let found = self.ask(("GET", &format!("{blob}?")), &headers, &[], 206)?;
                if found != content[from..to] {
                    return Err(format!("{blob}: other bytes than were written in {range}"));
                }
                Ok(())
            }
        }
    }

    /// Sends a request, whose path ends where the signature follows. Returns the body of the answer.
    fn ask(
        &self,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
        status: u16,
    ) -> Result<Vec<u8>, String> {
        let port = self.shared.ports.1;
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
        let (found, answer) = exchange(port, request.as_bytes(), body)?;
        count(&self.shared.counts.blobs);
        if found == status {
            return Ok(answer);
        }
        let text = String::from_utf8_lossy(&answer);
        Err(format!("{method} {path}: {found} instead of {status}: {text}"))
    }
}

/// Sends a request that closes its connection. Returns status and body of the answer.
pub(super) fn exchange(port: u16, head: &[u8], body: &[u8]) -> Result<(u16, Vec<u8>), String> {
    let failed = |error: std::io::Error| format!("port {port}: {error}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
    stream.write_all(&[head, body].concat()).map_err(failed)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(failed)?;
    parse(&answer).ok_or_else(|| format!("port {port}: the answer is not complete"))
}

/// Splits an answer that has its length or ends with its connection.
fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?.to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = &answer[end + 4..];
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let is_whole = length.is_none_or(|length| length.trim().parse() == Ok(body.len()));
    is_whole.then(|| (status, body.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_split_and_must_be_whole() {
        let whole = parse(b"HTTP/1.1 206 Partial\r\nContent-Length: 3\r\nx: y\r\n\r\nabc");
        assert_eq!(whole, Some((206, b"abc".to_vec())));
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n\r\nabcd"), Some((200, b"abcd".to_vec())));
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc"), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
