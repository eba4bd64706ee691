//! Requests made by hand: as few words as the protocol allows, signed by what its reference
//! says and not by what the server does.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use weir_blob::auth::account::Account;
use weir_blob::time::Moment;

pub(crate) const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A client of the well-known account.
#[derive(Clone)]
pub(crate) struct Client {
    pub(super) url: String,
    address: String,
    /// The `Host` header of the requests.
    host: String,
    /// The prefix of each path.
    prefix: String,
    account: Account,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The error's code, if it is one.
    pub(super) fn code(&self) -> &str {
        self.headers.get("x-ms-error-code").map_or("", |code| code)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub(super) fn new(url: &str) -> Self {
        let rest = url.strip_prefix("http://").expect("a URL");
        let (address, name) = rest.split_once('/').expect("an account");
        let account = Account::new(name, KEY).expect("an account");
        let (address, host, prefix) = (address.to_owned(), address.to_owned(), format!("/{name}"));
        Self { url: url.to_owned(), address, host, prefix, account }
    }

    /// The same for another account with the same key.
    pub(super) fn of_account(&self, name: &str) -> Self {
        Self::new(&format!("http://{}/{name}", self.address))
    }

    /// Opens a connection to the server.
    pub(super) fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).expect("a server")
    }

    /// The same with the account in the name of the host, and not in the path.
    pub(super) fn by_host(&self) -> Self {
        let (_, port) = self.address.rsplit_once(':').expect("a port");
        let host = format!("devstoreaccount1.blob.localhost:{port}");
        Self { host, prefix: String::new(), ..self.clone() }
    }

    /// The URL of the account with a signature that permits all for a year.
    pub(crate) fn signed_url(&self) -> String {
        let end = Moment(weir_wall::calendar()).plus_secs(365 * 86_400).iso();
        let (end, version) = (format!("{}Z", &end[..19]), "2021-12-02");
        let text = format!("devstoreaccount1\nrwdlacupt\nb\nsco\n\n{end}\n\n\n{version}\n\n");
        let sig = self.account.sign(&text).replace('+', "%2B").replace('=', "%3D");
        let sig = sig.replace('/', "%2F");
        format!("{}?sv={version}&ss=b&srt=sco&sp=rwdlacupt&se={end}&sig={sig}", self.url)
    }

    /// Asks; `None` if the server has gone. `path` is behind the account, its query sorted by
    /// name.
    pub(super) fn try_ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Option<Answer> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let request = self.head((method, path), headers, body.len(), "connection: close\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        stream.write_all(body).ok()?;
        read_answer(stream, method == "HEAD")
    }

    /// The head of a request with a body of `len` bytes.
    pub(super) fn head(
        &self,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        len: usize,
        connection: &str,
    ) -> String {
        let (bare, query) = path.split_once('?').unwrap_or((path, ""));
        let mut all: BTreeMap<&str, String> =
            headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        all.insert("x-ms-date", Moment(weir_wall::calendar()).http());
        all.insert("x-ms-version", "2021-12-02".to_owned());
        let length = if len == 0 { String::new() } else { len.to_string() };
        let kind = all.get("content-type").cloned().unwrap_or_default();
        let mut text = format!("{method}\n\n\n{length}\n\n{kind}\n\n\n\n\n\n\n");
        for (name, value) in all.iter().filter(|(name, _)| name.starts_with("x-ms-")) {
            text += &format!("{name}:{value}\n");
        }
        text += &format!("/{}{}{bare}", self.account.name, self.prefix);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').expect("a value");
            text += &format!("\n{name}:{}", value.replace("%3A", ":").replace("%3D", "="));
        }
        let authorization = format!("SharedKey {}:{}", self.account.name, self.account.sign(&text));
        let mut request =
            format!("{method} {}{path} HTTP/1.1\r\nhost: {}\r\n", self.prefix, self.host);
        request += &format!("authorization: {authorization}\r\n{connection}");
        request += &format!("content-length: {len}\r\n");
        for (name, value) in &all {
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        request
    }

    /// Asks a server that is there.
    #[track_caller]
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.try_ask(method, path, headers, body).expect("an answer")
    }

    /// Asks for what must be.
    #[track_caller]
    pub(super) fn must(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let answer = self.ask(method, path, headers, body);
        assert!(answer.status < 300, "{method} {path}: {answer:?} {}", answer.text());
        answer
    }

    /// Makes a container.
    #[track_caller]
    pub(crate) fn container(&self, name: &str) {
        self.must("PUT", &format!("/{name}?restype=container"), &[], &[]);
    }

    /// Makes a page blob.
    #[track_caller]
    pub(crate) fn page_blob(&self, path: &str, size: u64) {
        let size = size.to_string();
        let headers = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*size)];
        self.must("PUT", path, &headers, &[]);
    }

    /// Writes pages; `None` if the server has gone.
    pub(super) fn try_put(&self, path: &str, offset: u64, data: &[u8]) -> Option<Answer> {
        let range = format!("bytes={offset}-{}", offset + data.len() as u64 - 1);
        let headers = [("x-ms-page-write", "update"), ("x-ms-range", &*range)];
        self.try_ask("PUT", &format!("{path}?comp=page"), &headers, data)
    }

    #[track_caller]
    pub(crate) fn put(&self, path: &str, offset: u64, data: &[u8]) {
        let answer = self.try_put(path, offset, data).expect("an answer");
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    /// Reads a range.
    #[track_caller]
    pub(crate) fn get(&self, path: &str, offset: u64, len: u64) -> Vec<u8> {
        let range = format!("bytes={offset}-{}", offset + len - 1);
        self.must("GET", path, &[("x-ms-range", &range)], &[]).body
    }

    /// The ranges that a page list has, written or cleared.
    #[track_caller]
    pub(super) fn ranges(&self, path: &str, query: &str) -> Vec<(u64, u64)> {
        let text = self.must("GET", &format!("{path}?comp=pagelist{query}"), &[], &[]).text();
        let number = |part: &str, name: &str| {
            let (_, rest) = part.split_once(&format!("<{name}>")).expect("a number");
            rest.split('<').next().expect("a number").parse::<u64>().expect("a number")
        };
        let parts = text.split("</PageRange>").flat_map(|part| part.split("</ClearRange>"));
        let parts = parts.filter(|part| part.contains("<Start>"));
        parts.map(|part| (number(part, "Start"), number(part, "End"))).collect()
    }
}

pub(super) fn read_answer(stream: TcpStream, is_head: bool) -> Option<Answer> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => drop(headers.insert(name.to_lowercase(), value.to_owned())),
            None if line.trim_end().is_empty() && !line.is_empty() => break,
            None => return None,
        }
    }
    let len: usize = headers.get("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
    let mut body = vec![0; if is_head { 0 } else { len }];
    reader.read_exact(&mut body).ok()?;
    Some(Answer { status, headers, body })
}
