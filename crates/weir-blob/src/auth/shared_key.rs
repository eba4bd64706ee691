//! Shared Key: the signature of a request with an account's key.
//!
//! Source: "Authorize with Shared Key", Microsoft. The signed text consists of the verb, eleven
//! headers, all `x-ms-` headers, and the resource with its parameters.

use super::account::Account;
use crate::fault::{Code, Fault, Result};
use crate::head::Head;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Also the message for unknown accounts, so that it does not show which exist.
pub(super) const NOT_SIGNED: &str = "the signature does not match the request";

/// The parsed `Authorization` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authorization {
    lite: bool,
    pub(super) account: String,
    signature: String,
}

pub(super) fn parse(text: &str) -> Result<Authorization> {
    let wrong = Code::InvalidAuthenticationInfo;
    let (scheme, rest) = text.split_once(' ').ok_or(wrong)?;
    let lite = match scheme {
        "SharedKey" => false,
        "SharedKeyLite" => true,
        _ => {
            return Err(Fault::unauthenticated(
                "the scheme is not SharedKey, SharedKeyLite or a signature",
            ));
        }
    };
    let (account, signature) = rest.trim().split_once(':').ok_or(wrong)?;
    Ok(Authorization { lite, account: account.to_owned(), signature: signature.to_owned() })
}

pub(super) fn verify(head: &Head, account: &Account, sent: &Authorization) -> Result<()> {
    // Clients sort headers by bytes, or by words as the .NET runtime does. Both are accepted.
    let orders: [fn(&str, &str) -> Ordering; 2] = [by_words, |a, b| a.cmp(b)];
    let is_signed = orders.iter().any(|order| {
        if sent.lite {
            return account.signed(&lite(head, &account.name, *order), &sent.signature);
        }
        // Some clients omit empty parameters.
        let texts = [true, false].map(|empty| full(head, &account.name, *order, empty));
        texts.iter().any(|text| account.signed(text, &sent.signature))
    });
    if is_signed { Ok(()) } else { Err(Fault::unauthenticated(NOT_SIGNED)) }
}

fn full(head: &Head, account: &str, order: fn(&str, &str) -> Ordering, with_empty: bool) -> String {
    let header = |name: &str| head.header(name).unwrap_or_default().to_owned();
    let length = header("content-length");
    let date = if head.header("x-ms-date").is_some() { String::new() } else { header("date") };
    let lines = [
        head.method.as_str().to_owned(),
        header("content-encoding"),
        header("content-language"),
        if length == "0" { String::new() } else { length },
        header("content-md5"),
        header("content-type"),
        date,
        header("if-modified-since"),
        header("if-match"),
        header("if-none-match"),
        header("if-unmodified-since"),
        header("range"),
    ];
    let mut text = lines.join("\n");
    text.push('\n');
    text.push_str(&headers(head, order));
    text.push_str(&format!("/{account}{}", head.path));
    let mut params: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let params_of = head.query.iter().filter(|(_, value)| with_empty || !value.is_empty());
    for (name, value) in params_of {
        params.entry(name.to_lowercase()).or_default().push(value);
    }
    for (name, mut values) in params {
        values.sort_unstable();
        text.push_str(&format!("\n{name}:{}", values.join(",")));
    }
    text
}

fn lite(head: &Head, account: &str, order: fn(&str, &str) -> Ordering) -> String {
    let header = |name: &str| head.header(name).unwrap_or_default().to_owned();
    let date = if head.header("x-ms-date").is_some() { String::new() } else { header("date") };
    let lines =
        [head.method.as_str().to_owned(), header("content-md5"), header("content-type"), date];
    let comp = head.query.iter().find(|(name, _)| name.eq_ignore_ascii_case("comp"));
    let comp = comp.map(|(_, comp)| format!("?comp={comp}")).unwrap_or_default();
    format!("{}\n{}/{account}{}{comp}", lines.join("\n"), headers(head, order), head.path)
}

/// Returns the `x-ms-` headers as signed, one per line.
fn headers(head: &Head, order: fn(&str, &str) -> Ordering) -> String {
    let names = head.headers.keys().map(http::HeaderName::as_str);
    let mut names: Vec<&str> = names.filter(|name| name.starts_with("x-ms-")).collect();
    names.sort_by(|a, b| order(a, b));
    let line = |name: &str| {
        let values = head.headers.get_all(name).iter();
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
        format!("{name}:{}\n", values.map(text).collect::<Vec<_>>().join(","))
    };
    names.into_iter().map(line).collect()
}

/// Compares names in word order: hyphens only break ties, and underscores sort before digits,
/// digits before letters.
fn by_words(a: &str, b: &str) -> Ordering {
    let weight = |c: char| (c != '_', c);
    let bare = |name: &str| name.chars().filter(|c| *c != '-').map(weight).collect::<Vec<_>>();
    bare(a).cmp(&bare(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{Target, parse_query};
    use crate::time::Moment;
    use http::{HeaderMap, HeaderName, HeaderValue, Method};

    fn head(path: &str, query: &str, headers: &[(&'static str, &'static str)]) -> Head {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let headers: HeaderMap = headers.iter().map(pair).collect();
        let target = Target { account: "myaccount".to_owned(), container: None, blob: None };
        Head {
            method: Method::GET,
            target,
            path: path.to_owned(),
            query: parse_query(query),
            headers,
            secure: false,
            from: [127, 0, 0, 1].into(),
            now: Moment(0),
        }
    }

    /// The example in Microsoft's reference.
    #[test]
    fn the_signed_text_is_that_of_the_reference() {
        let head = head(
            "/mycontainer",
            "restype=container&comp=metadata&timeout=20",
            &[("x-ms-version", "2015-02-21"), ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT")],
        );
        assert_eq!(
            full(&head, "myaccount", by_words, true),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n\
             x-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\n\
             restype:container\ntimeout:20"
        );
    }

    #[test]
    fn repeated_parameters_and_the_plain_date_header_are_signed() {
        let head = head(
            "/mycontainer",
            "restype=container&comp=list&include=snapshots&include=metadata",
            &[("date", "Fri, 26 Jun 2015 23:39:12 GMT"), ("content-length", "0")],
        );
        assert_eq!(
            full(&head, "myaccount", by_words, true),
            "GET\n\n\n\n\n\nFri, 26 Jun 2015 23:39:12 GMT\n\n\n\n\n\n/myaccount/mycontainer\n\
             comp:list\ninclude:metadata,snapshots\nrestype:container"
        );
    }

    /// The example in Microsoft's reference.
    #[test]
    fn the_short_text_is_that_of_the_reference() {
        let headers = [
            ("content-type", "text/plain; charset=UTF-8"),
            ("x-ms-date", "Sun, 20 Sep 2009 20:36:40 GMT"),
            ("x-ms-meta-m1", "v1"),
            ("x-ms-meta-m2", "v2"),
        ];
        let put = Head { method: Method::PUT, ..head("/mycontainer/hello.txt", "", &headers) };
        assert_eq!(
            lite(&put, "testaccount1", by_words),
            "PUT\n\ntext/plain; charset=UTF-8\n\nx-ms-date:Sun, 20 Sep 2009 20:36:40 GMT\n\
             x-ms-meta-m1:v1\nx-ms-meta-m2:v2\n/testaccount1/mycontainer/hello.txt"
        );
        let dated = head("/c", "restype=container&Comp=acl", &[("date", "today")]);
        assert_eq!(lite(&dated, "a", by_words), "GET\n\n\ntoday\n/a/c?comp=acl");
    }

    /// Returns whether a request for `/con?comp=list&prefix=` with this text and signature is accepted.
    fn is_accepted(scheme: &str, text: &str) -> bool {
        let account = Account::new("acc", "c2l4dGVlbiBieXRlcyBvciBtb3Jl").expect("an account");
        let headers = [("x-ms-meta-a1", "1"), ("x-ms-meta-a_b", "2"), ("x-ms-meta-a-b", "3")];
        let head = head("/con", "comp=list&prefix=", &headers);
        let sent = parse(&format!("{scheme} acc:{}", account.sign(text))).expect("a header");
        let verified = verify(&head, &account, &sent);
        let refused = |fault: Fault| assert_eq!(fault.code, Code::AuthenticationFailed);
        verified.map_err(refused).is_ok()
    }

    #[test]
    fn a_request_is_accepted_with_its_own_signature_alone() {
        let words = "x-ms-meta-a_b:2\nx-ms-meta-a1:1\nx-ms-meta-a-b:3\n";
        let bytes = "x-ms-meta-a-b:3\nx-ms-meta-a1:1\nx-ms-meta-a_b:2\n";
        let lines = "\n".repeat(12);
        for headers in [words, bytes] {
            for params in ["\ncomp:list\nprefix:", "\ncomp:list"] {
                let text = format!("GET{lines}{headers}/acc/con{params}");
                assert!(is_accepted("SharedKey", &text), "{text}");
                assert!(!is_accepted("SharedKeyLite", &text), "{text}");
            }
            let text = format!("GET\n\n\n\n{headers}/acc/con?comp=list");
            assert!(is_accepted("SharedKeyLite", &text), "{text}");
            assert!(!is_accepted("SharedKey", &text), "{text}");
        }
        for wrong in ["", "xyzzy", "\ncomp:list\nprefix:x", "\nprefix:", "\ncomp:"] {
            let text = format!("GET{lines}{words}/acc/con{wrong}");
            assert!(
                !is_accepted("SharedKey", &text) && !is_accepted("SharedKeyLite", wrong),
                "{text}"
            );
        }
        for header in ["Bearer acc:x", "SharedKey acc", "SharedKey", "sharedkey acc:x"] {
            assert!(parse(header).is_err(), "{header}");
        }
    }

    #[test]
    fn headers_are_ordered_as_words() {
        let mut names = ["x-ms-meta-ab", "x-ms-meta-a-b", "x-ms-meta-a1", "x-ms-meta-a_b"];
        names.sort_by(|a, b| by_words(a, b));
        assert_eq!(names, ["x-ms-meta-a_b", "x-ms-meta-a1", "x-ms-meta-a-b", "x-ms-meta-ab"]);
    }
}
