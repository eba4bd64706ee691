//! The head of a request: its target, parameters and headers.

use crate::fault::{Code, Fault, Result};
use crate::time::Moment;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;
use std::net::IpAddr;

/// The resource of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Account name.
    pub account: String,
    /// Container name; `None` for operations on the account.
    pub container: Option<String>,
    /// Blob name; `None` for operations on the container.
    pub blob: Option<String>,
}

/// A request without its body.
#[derive(Debug, Clone)]
pub struct Head {
    /// HTTP method.
    pub method: Method,
    /// The resource.
    pub target: Target,
    /// The path as sent.
    pub path: String,
    /// Query parameters in order, with names and values decoded.
    pub query: Vec<(String, String)>,
    /// HTTP headers.
    pub headers: HeaderMap,
    /// True if the connection uses TLS.
    pub secure: bool,
    /// The client's address.
    pub from: IpAddr,
    /// Time of arrival.
    pub now: Moment,
}

impl Head {
    /// Returns whether the request has a signature, right or wrong.
    pub(crate) fn is_signed(&self) -> bool {
        self.headers.contains_key("authorization") || self.param("sig").is_some()
    }

    /// Parses the head of an HTTP request.
    ///
    /// # Errors
    ///
    /// An error response for an invalid or ambiguous head.
    pub fn read(
        parts: http::request::Parts,
        (from, secure, now): (IpAddr, bool, Moment),
        is_account: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let host = parts.headers.get("host").and_then(|host| host.to_str().ok());
        let path = parts.uri.path().to_owned();
        let target = parse_target(host.unwrap_or_default(), &path, is_account)?;
        let query = parse_query(parts.uri.query().unwrap_or_default());
        if let Some((name, value)) = twice(&query) {
            if name.eq_ignore_ascii_case("sig") {
                return Err(Fault::unauthenticated("the signature occurs twice"));
            }
            return Err(Fault::query(name, value, "it occurs twice"));
        }
        let (method, headers) = (parts.method, parts.headers);
        let head = Self { method, target, path, query, headers, secure, from, now };
        if let Some(version) = head.header("x-ms-version")
            && Moment::parse_iso(version).is_none_or(|_| version.len() != 10)
        {
            return Err(Fault::header("x-ms-version", version));
        }
        Ok(head)
    }

    /// Returns a header. Empty headers and headers that are not text count as missing.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(name)?;
        std::str::from_utf8(value.as_bytes()).ok().map(str::trim).filter(|text| !text.is_empty())
    }

    /// Returns a required header.
    ///
    /// # Errors
    ///
    /// [`Code::MissingRequiredHeader`].
    pub fn needs(&self, name: &str) -> Result<&str> {
        self.header(name).ok_or_else(|| Fault::missing_header(name))
    }

    /// Returns a numeric header.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidHeaderValue`] if it is not a number.
    pub fn number(&self, name: &str) -> Result<Option<u64>> {
        let parse = |text: &str| text.parse().map_err(|_| Fault::header(name, text));
        self.header(name).map(parse).transpose()
    }

    /// Returns a boolean header; `false` if it is missing.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidHeaderValue`] if it is neither `true` nor `false`.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.header(name) {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(Fault::header(name, text)),
        }
    }

    /// Returns a query parameter. Empty parameters count as missing.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns the `snapshot` parameter.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidQueryParameterValue`] if it is not a time.
    pub fn snapshot(&self) -> Result<Option<Moment>> {
        parse_moment(self.param("snapshot"), "snapshot")
    }

    /// Returns the container's name.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidUri`] if the target is the account.
    pub fn container(&self) -> Result<&str> {
        self.target.container.as_deref().ok_or_else(|| Code::InvalidUri.into())
    }

    /// Returns the blob's name.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidUri`] if the target is the account or a container.
    pub fn blob(&self) -> Result<&str> {
        self.target.blob.as_deref().ok_or_else(|| Code::InvalidUri.into())
    }
}

/// Parses a snapshot time from the parameter `name`.
///
/// # Errors
///
/// [`Code::InvalidQueryParameterValue`] if it is not a time.
pub(crate) fn parse_moment(value: Option<&str>, name: &str) -> Result<Option<Moment>> {
    let bad = |text: &str| Fault::query(name, text, "it is not a snapshot time");
    value.map(|text| Moment::parse_iso(text).ok_or_else(|| bad(text))).transpose()
}

/// Returns a repeated parameter. The signature would cover one value and the operation use the
/// other.
fn twice(query: &[(String, String)]) -> Option<&(String, String)> {
    query.iter().enumerate().map(|(at, own)| (own, &query[..at])).find_map(|(own, before)| {
        let is_repeated = before.iter().any(|(name, _)| name.eq_ignore_ascii_case(&own.0));
        (is_repeated && !own.0.eq_ignore_ascii_case("include")).then_some(own)
    })
}

/// Parses a query string.
#[must_use]
pub(crate) fn parse_query(query: &str) -> Vec<(String, String)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(parse_pair).collect()
}

fn parse_pair(pair: &str) -> (String, String) {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let name = decode_form(name);
    // In a signature, which is Base64, clients leave `+` unescaped.
    let value = if name == "sig" { decode_percent(value) } else { decode_form(value) };
    (name, value)
}

fn decode_percent(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Decodes a text in which `+` is a space.
fn decode_form(text: &str) -> String {
    if text.contains(['%', '+']) {
        decode_percent(&text.replace('+', " "))
    } else {
        text.to_owned()
    }
}

/// Parses a path: `/account/container/blob`, or `/container/blob` if the host name begins with an
/// account.
///
/// # Errors
///
/// [`Code::InvalidUri`] if the path contains `..` or has no account.
pub(crate) fn parse_target(
    host: &str,
    path: &str,
    is_account: impl Fn(&str) -> bool,
) -> Result<Target> {
    let invalid = || Fault::from(Code::InvalidUri);
    let path = path.strip_prefix('/').ok_or_else(invalid)?;
    let by_host = host.split_once('.').filter(|(first, _)| is_account(first));
    let (account, rest) = match by_host {
        Some((account, _)) => (account.to_owned(), path),
        None => {
            let (account, rest) = path.split_once('/').unwrap_or((path, ""));
            (decode(account)?, rest)
        }
    };
    if account.is_empty() {
        return Err(invalid());
    }
    let (container, blob) = rest.split_once('/').unwrap_or((rest, ""));
    // The service takes a backslash in the name of a blob for a slash.
    let (container, blob) = (decode(container)?, decode(blob)?.replace('\\', "/"));
    if account.contains('/') || container.contains('/') {
        return Err(invalid());
    }
    let (container, blob) = match (container.is_empty(), blob.is_empty()) {
        (true, true) => (None, None),
        (true, false) => return Err(invalid()),
        (false, true) => (Some(container), None),
        (false, false) => (Some(container), Some(blob)),
    };
    Ok(Target { account, container, blob })
}

/// Decodes a part of a path. Blob names never become file names. Parts such as `..` are refused
/// nevertheless, because the service's clients resolve them before sending.
fn decode(text: &str) -> Result<String> {
    let is_escaped =
        |rest: &str| rest.get(..2).is_some_and(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
    if text.split('%').skip(1).any(|rest| !is_escaped(rest)) {
        return Err(Code::InvalidUri.into());
    }
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| Code::InvalidUri)?;
    let climbs = decoded.split(['/', '\\']).any(|part| part == "." || part == "..");
    if climbs || decoded.contains('\0') {
        return Err(Code::InvalidUri.into());
    }
    Ok(decoded.into_owned())
}

/// Checks a container name against the service's rules.
///
/// # Errors
///
/// [`Code::InvalidResourceName`], [`Code::OutOfRangeInput`].
pub(crate) fn check_container_name(name: &str) -> Result<()> {
    if ["$root", "$logs", "$web"].contains(&name) {
        return Ok(());
    }
    if !(3..=63).contains(&name.len()) {
        return Err(out_of_range());
    }
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if is_plain && !name.starts_with('-') && !name.ends_with('-') && !name.contains("--") {
        Ok(())
    } else {
        Err(Code::InvalidResourceName.into())
    }
}

fn out_of_range() -> Fault {
    let fault = Fault::from(Code::OutOfRangeInput);
    fault.saying("The specified resource name length is not within the permissible limits.")
}

/// Maximum number of characters in the name of a blob.
pub(crate) const MAX_BLOB_NAME: usize = 1024;

/// Checks a blob name against the service's rules.
///
/// # Errors
///
/// [`Code::InvalidResourceName`], [`Code::OutOfRangeInput`].
pub(crate) fn check_blob_name(name: &str) -> Result<()> {
    if name.chars().count() > MAX_BLOB_NAME {
        return Err(out_of_range());
    }
    if name.split('/').count() > 254 || name.chars().any(|c| c.is_control()) {
        return Err(Code::InvalidResourceName.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, path: &str, expect: Option<[&str; 3]>) {
        let target = parse_target(host, path, |name| name == "acc");
        let got = target
            .ok()
            .map(|t| [t.account, t.container.unwrap_or_default(), t.blob.unwrap_or_default()]);
        assert_eq!(got, expect.map(|parts| parts.map(str::to_owned)), "{host} {path}");
    }

    #[test]
    fn paths_and_hosts_name_accounts_containers_and_blobs() {
        check("127.0.0.1:10000", "/acc/con/a/b%20c", Some(["acc", "con", "a/b c"]));
        check("127.0.0.1:10000", "/acc/con/a%5Cb", Some(["acc", "con", "a/b"]));
        check("127.0.0.1:10000", "/acc", Some(["acc", "", ""]));
        check("127.0.0.1:10000", "/acc/", Some(["acc", "", ""]));
        check("127.0.0.1:10000", "/acc/con/", Some(["acc", "con", ""]));
        check("acc.blob.localhost:10000", "/con/a", Some(["acc", "con", "a"]));
        check("acc.blob.localhost", "/", Some(["acc", "", ""]));
        check("other.blob.localhost", "/con/a", Some(["con", "a", ""]));
        check("h", "/", None);
        check("h", "/acc//blob", None);
    }

    #[test]
    fn paths_that_climb_are_refused() {
        for path in ["/acc/../x", "/acc/con/../../x", "/acc/con/%2e%2e/x", "/acc/con/a%2F..%2Fb"] {
            check("h", path, None);
        }
        check("h", "/acc/con/a%00", None);
        check("h", "/acc/con/..%5c..%5cx", None);
        check("h", "/acc/con%2fx/b", None);
        check("h", "/acc/con/...", Some(["acc", "con", "..."]));
    }

    #[test]
    fn a_percent_sign_without_two_digits_is_refused() {
        for path in ["/acc/con/%zz", "/acc/con/a%", "/acc/con/a%4", "/acc/con/%é", "/acc/c%2n/b"] {
            check("h", path, None);
        }
        check("h", "/acc/con/%25zz", Some(["acc", "con", "%zz"]));
    }

    #[test]
    fn queries_are_decoded() {
        let query = parse_query("comp=page&sig=a+b%2B/=&snapshot=2026-11-22T00%3A05%3A09Z&x&y=a+b");
        let expect = [
            ("comp", "page"),
            ("sig", "a+b+/="),
            ("snapshot", "2026-11-22T00:05:09Z"),
            ("x", ""),
            ("y", "a b"),
        ];
        assert_eq!(query, expect.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn names_follow_the_rules_of_the_service() {
        for good in ["abc", "a-b", "0a1", "$root"] {
            assert_eq!(check_container_name(good), Ok(()), "{good}");
        }
        for bad in ["ab", "Abc", "-ab", "ab-", "a--b", "a_b", &"a".repeat(64)] {
            assert!(check_container_name(bad).is_err(), "{bad}");
        }
        assert_eq!(check_blob_name("größe / ü"), Ok(()));
        assert!(check_blob_name(&"a".repeat(1025)).is_err());
    }
}
