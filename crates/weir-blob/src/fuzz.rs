//! Requests built from arbitrary bytes, for fuzzers and tests.
//!
//! Invariants for any input: nothing panics; an error response is a well-formed document; no
//! request authenticates without the key; and parsed XML is written back unchanged.

use crate::auth::account::{Account, Accounts};
use crate::auth::{Caller, authenticate, sas};
use crate::batch;
use crate::condition::{Conditions, Subject};
use crate::digest::Check;
use crate::fault::Fault;
use crate::head::{Head, check_blob_name, check_container_name};
use crate::lease::Lease;
use crate::operation::Operation;
use crate::query::Query;
use crate::service::properties::Properties;
use crate::service::read_parts;
use crate::tags::{self, Condition};
use crate::time::Moment;
use crate::xml::{Element, Writer};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use std::net::{IpAddr, Ipv4Addr};

/// A key that no input contains.
const SECRET: &str = "bm9ib2R5IGtub3dzIHRoaXMga2V5LCBub3QgZXZlbiBhIGZ1enplcg==";
/// Sunday, 22 November 2026, 12:00 UTC, within the validity of the committed inputs' signatures.
const NOW: Moment = Moment(1_795_348_800 * 1_000_000_000);

/// Runs all parsers that see a request before it is executed on `data`, a request as text.
///
/// # Panics
///
/// If an invariant is violated.
pub fn request_bytes(data: &[u8]) {
    let (text, body) = split(data);
    document(body);
    let Some(parts) = parts_of(text) else { return };
    for from in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(192, 0, 2, 1)] {
        let way = (IpAddr::V4(from), from.is_loopback(), NOW);
        match Head::read(parts.clone(), way, |name| name == "devstoreaccount1") {
            Err(fault) => said(&fault),
            Ok(head) => request(&head, body),
        }
    }
}

/// Splits at the empty line after the headers.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    let at = data.windows(2).position(|two| two == b"\n\n");
    at.map_or((data, &[]), |at| (&data[..at], &data[at + 2..]))
}

/// Parses a head as an HTTP server would.
fn parts_of(head: &[u8]) -> Option<Parts> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = target.parse::<Uri>().ok()?;
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        request.headers_mut().append(name, value);
    }
    Some(request.into_parts().0)
}

fn request(head: &Head, body: &[u8]) {
    let mut secret = Accounts::default();
    secret.add(Account::new("devstoreaccount1", SECRET).expect("a key"));
    let passed = tell(authenticate(head, &secret, &sas::Policies::new()));
    assert!(matches!(passed, None | Some(Caller::Anonymous)), "passed without the key: {head:?}");

    let mut known = Accounts::default();
    known.add(Account::well_known(false));
    let caller = tell(authenticate(head, &known, &sas::Policies::new()));
    let operation = tell(Operation::parse(head));
    if let (Some(caller), Some(operation)) = (&caller, operation) {
        let may = tell(operation.authorize(caller, None, false)).is_some();
        let signed = head.from.is_loopback() && *caller != Caller::Anonymous;
        assert!(signed || !may, "permitted without a signature: {head:?}");
    }
    for name in head.target.container.iter() {
        tell(check_container_name(name));
    }
    for name in head.target.blob.iter() {
        tell(check_blob_name(name));
    }
    tell(head.snapshot());
    for of in [Subject::Target, Subject::Source] {
        tell(Conditions::parse(head, of));
    }
    if let Some(mut check) = tell(Check::parse(head, true)) {
        check.add(body);
        tell(check.end());
    }
    tell(Lease::default().act(head, || "00000000-0000-0000-0000-000000000000".to_owned()));
    for text in head.headers.values().filter_map(|value| value.to_str().ok()) {
        if let Some(tags) = tell(tags::parse_header(text)) {
            tell(tags::check(&tags));
        }
        tell(Query::parse(text));
        if let Some(condition) = tell(Condition::parse(text, "x-ms-if-tags")) {
            assert!(!condition.holds(&tags::Tags::new()), "no tag is {text}");
        }
    }
    if let Some(kind) = head.header("content-type") {
        tell(batch::parse(kind, body));
    }
    for refused in read_parts(head, body) {
        said(&refused);
    }
}

fn document(body: &[u8]) {
    if let Some(properties) = tell(Properties::default().changed(body)) {
        let text = properties.document();
        let again = Properties::default().changed(text.as_bytes());
        assert_eq!(again.ok().map(|again| again.document()).as_ref(), Some(&text));
    }
    if let Some(Some(root)) = tell(Element::parse(body))
        && is_plain(&root)
    {
        let mut writer = Writer::new();
        write(&root, &mut writer);
        let text = writer.done();
        let again = Element::parse(text.as_bytes());
        assert!(matches!(&again, Ok(Some(again)) if *again == root), "{root:?}\n{text}\n{again:?}");
    }
}

/// Returns whether an element conforms to the protocol: it has either children or text, and a valid
/// name.
fn is_plain(element: &Element) -> bool {
    !element.name.is_empty()
        && element.name.bytes().all(|byte| byte.is_ascii_alphabetic())
        && (element.children.is_empty() || element.text.is_empty())
        && element.children.iter().all(is_plain)
}

fn write(element: &Element, to: &mut Writer) {
    if element.children.is_empty() {
        to.leaf(&element.name, &element.text);
    } else {
        to.within(&element.name, |to| element.children.iter().for_each(|child| write(child, to)));
    }
}

fn tell<T>(result: Result<T, Fault>) -> Option<T> {
    result.inspect_err(said).ok()
}

/// Checks that an error response is a well-formed document with its code.
fn said(fault: &Fault) {
    let text = fault.body("id", "now");
    let read = Element::root(text.as_bytes(), "Error");
    let code = read.as_ref().ok().and_then(|root| root.text_of("Code"));
    assert!(code.is_some_and(|code| !code.is_empty()), "{fault:?}\n{text}\n{read:?}");
}
