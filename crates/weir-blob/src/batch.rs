//! The format of Blob Batch: requests without bodies as the parts of a `multipart/mixed` document.
//!
//! ```text
//! --batch_1
//! Content-Type: application/http
//! Content-ID: 0
//!
//! DELETE /account/container/blob HTTP/1.1
//! x-ms-date: ...
//!
//! --batch_1--
//! ```
//!
//! Source: "Blob Batch", Microsoft.

use crate::body::{Content, Reply};
use crate::fault::{Code, Fault, Result};
use http::request::Parts;
use std::fmt::Write as _;

/// Maximum number of requests in a batch.
const MOST: usize = 256;
const MOST_HEADERS: usize = 64;
/// Maximum size of a Content-ID, which a response repeats.
const MOST_ID: usize = 256;

/// A request in a batch.
#[derive(Debug)]
pub struct Part {
    /// The client's name for it, which its response repeats.
    pub id: Option<String>,
    /// The request.
    pub request: Parts,
}

/// Parses a batch.
///
/// # Errors
///
/// [`Code::InvalidHeaderValue`] for another type of document, [`Code::InvalidInput`].
pub fn parse(content_type: &str, document: &[u8]) -> Result<Vec<Part>> {
    let delimiter = format!("\r\n--{}", boundary_of(content_type)?);
    let invalid = || Fault::from(Code::InvalidInput);
    let text = std::str::from_utf8(document).map_err(|_| invalid())?;
    // A delimiter begins a line, which may be the first one.
    let after_first = text.strip_prefix(delimiter.trim_start());
    let after_first = after_first.or_else(|| Some(text.split_once(&*delimiter)?.1));
    let mut rest = after_first.ok_or_else(invalid)?.split(&*delimiter);
    let mut parts = Vec::new();
    loop {
        let part = rest.next().ok_or_else(invalid)?;
        if part.starts_with("--") {
            break;
        }
        if !part.trim_start_matches([' ', '\t']).starts_with("\r\n") {
            return Err(invalid());
        }
        if parts.len() == MOST {
            return Err(invalid().because(format!("A batch has at most {MOST} requests.")));
        }
        parts.push(parse_part(part).ok_or_else(invalid)?);
    }
    if parts.is_empty() { Err(invalid()) } else { Ok(parts) }
}

/// Returns the boundary of a `multipart/mixed` document.
fn boundary_of(content_type: &str) -> Result<&str> {
    let wrong = || Fault::header("Content-Type", content_type);
    let mut params = content_type.split(';');
    let is_mixed =
        params.next().is_some_and(|own| own.trim().eq_ignore_ascii_case("multipart/mixed"));
    let mut found = params.filter_map(|param| {
        let (name, value) = param.split_once('=')?;
        let is_boundary = name.trim().eq_ignore_ascii_case("boundary");
        is_boundary.then(|| value.trim().trim_matches('"'))
    });
    let boundary = found.next().filter(|boundary| is_mixed && !boundary.is_empty());
    let boundary = boundary.ok_or_else(wrong)?;
    if found.next().is_some() { Err(Code::InvalidInput.into()) } else { Ok(boundary) }
}

fn parse_part(part: &str) -> Option<Part> {
    let (own, request) = part.split_once("\r\n\r\n")?;
    let id = own.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-id").then(|| value.trim().to_owned())
    });
    let is_valid = |id: &String| id.len() <= MOST_ID && !id.chars().any(char::is_control);
    if !id.iter().all(is_valid) {
        return None;
    }
    Some(Part { id, request: parse_request(request)? })
}

fn parse_request(text: &str) -> Option<Parts> {
    let text = format!("{}\r\n\r\n", text.trim_end());
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(text.as_bytes()) {
        // A body would follow.
        Ok(httparse::Status::Complete(len)) if len == text.len() => {}
        _ => return None,
    }
    let mut request = http::Request::builder().method(parsed.method?).uri(parsed.path?);
    for header in parsed.headers {
        request = request.header(header.name, header.value);
    }
    Some(request.body(()).ok()?.into_parts().0)
}

/// A response to a batch under construction.
#[derive(Debug)]
pub struct Writer {
    boundary: String,
    text: String,
}

impl Writer {
    /// Creates a response; `id` is unique.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self { boundary: format!("batchresponse_{id}"), text: String::new() }
    }

    /// Adds the response to a request.
    pub fn add(&mut self, id: Option<&str>, reply: &Reply) {
        let text = &mut self.text;
        let _ = write!(text, "--{}\r\nContent-Type: application/http\r\n", self.boundary);
        if let Some(id) = id {
            let _ = write!(text, "Content-ID: {id}\r\n");
        }
        let _ = write!(text, "\r\nHTTP/1.1 {}\r\n", reply.status);
        for (name, value) in &reply.headers {
            let _ = write!(text, "{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
        }
        let _ = write!(text, "content-length: {}\r\n\r\n", reply.len());
        if let Content::Whole(bytes) = &reply.content {
            let _ = write!(text, "{}\r\n", String::from_utf8_lossy(bytes));
        }
    }

    /// Returns the whole response.
    #[must_use]
    pub fn done(self) -> Reply {
        let Self { boundary, text } = self;
        let document = format!("{text}--{boundary}--\r\n");
        let reply = Reply::new(202).bytes(document.into());
        reply.with("content-type", format!("multipart/mixed; boundary={boundary}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/mixed; boundary=b==";

    fn code(content_type: &str, document: &str) -> Option<Code> {
        parse(content_type, document.as_bytes()).err().map(|fault| fault.code)
    }

    #[test]
    fn batches_are_parsed() {
        let document = "--b==\r\nContent-Type: application/http\r\nContent-ID: 7\r\n\r\n\
            DELETE /acc/con/a%20b?x=y HTTP/1.1\r\nx-ms-date: now\r\n\r\n\
            --b==\r\n\r\n\r\nPUT /acc/con/c HTTP/1.1\r\nA: b\r\n--b==--\r\n";
        for content_type in
            [TYPE, "Multipart/Mixed;Boundary= b==", "multipart/mixed; boundary=\"b==\""]
        {
            let parts = parse(content_type, document.as_bytes()).unwrap();
            let seen: Vec<_> = parts
                .iter()
                .map(|part| {
                    (part.id.as_deref(), part.request.method.as_str(), part.request.uri.path())
                })
                .collect();
            assert_eq!(
                seen,
                [(Some("7"), "DELETE", "/acc/con/a%20b"), (None, "PUT", "/acc/con/c")]
            );
            assert_eq!(parts[0].request.headers["x-ms-date"], "now");
        }
    }

    #[test]
    fn a_batch_may_have_a_preamble() {
        let part = "--b==\r\n\r\nDELETE /a/b/c HTTP/1.1\r\n\r\n";
        for before in ["", "\r\n", "preamble\r\n"] {
            let document = format!("{before}{part}{part}--b==--");
            assert_eq!(parse(TYPE, document.as_bytes()).unwrap().len(), 2, "{before:?}");
        }
        assert_eq!(code(TYPE, &format!("no line{part}--b==--")), Some(Code::InvalidInput));
    }

    #[test]
    fn a_content_id_is_short_and_without_control_characters() {
        let with = |id: &str| {
            let request = "DELETE /a/b/c HTTP/1.1\r\n";
            code(TYPE, &format!("--b==\r\nContent-ID: {id}\r\n\r\n{request}\r\n--b==--"))
        };
        for id in ["0", "<a@b>", &"i".repeat(MOST_ID)] {
            assert_eq!(with(id), None, "{id}");
        }
        for id in ["a\rb", "a\u{1}b", "a\u{85}b", &"i".repeat(MOST_ID + 1)] {
            assert_eq!(with(id), Some(Code::InvalidInput), "{id:?}");
        }
    }

    #[test]
    fn malformed_batches_are_refused() {
        let part = "--b==\r\n\r\nDELETE /a/b/c HTTP/1.1\r\n\r\n";
        assert_eq!(code(TYPE, &format!("{part}--b==--")), None);
        for content_type in
            ["multipart/mixed", "multipart/mixed; boundary=", "text/plain; boundary=b=="]
        {
            assert_eq!(code(content_type, part), Some(Code::InvalidHeaderValue), "{content_type}");
        }
        assert_eq!(code("multipart/mixed; boundary=a; boundary=b", part), Some(Code::InvalidInput));
        for document in [
            "".to_owned(),
            "--b==--".to_owned(),
            part.to_owned(),
            "--b==\r\n\r\nDELETE\r\n\r\n--b==--".to_owned(),
            "--b==\r\n\r\nPUT /a/b/c HTTP/1.1\r\n\r\nbody\r\n--b==--".to_owned(),
            format!("{}--b==--", part.repeat(257)),
        ] {
            assert_eq!(code(TYPE, &document), Some(Code::InvalidInput), "{document}");
        }
        assert_eq!(code(TYPE, &format!("{}--b==--", part.repeat(256))), None);
    }
}
