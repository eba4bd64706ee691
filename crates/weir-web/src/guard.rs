//! Requests that are refused whatever they ask for.
//!
//! A page of another site can send requests to this listener: under a name of its own that resolves
//! to this address (so `Host` must be a name of the listener), or as a cross-origin request (so
//! what changes something needs the origin of the page and the token).

use crate::token::Token;
use http::header::{self, HeaderMap};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderName, StatusCode};
use std::net::IpAddr;

/// The header with the token.
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("x-weir-token");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A refused request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) reason: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }
}

/// Returns the only value of a header, or an error if there are several.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let bad =
        || Refusal::new(StatusCode::BAD_REQUEST, format!("{name}: one readable value is needed"));
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(bad());
    }
    first.map(|value| value.to_str().map_err(|_| bad())).transpose()
}

/// Returns the name of a host in lower case, without port and brackets.
fn name_of(authority: &str) -> Option<String> {
    let parsed: Authority = authority.parse().ok().filter(|_| !authority.contains('@'))?;
    let name = parsed.host().trim_start_matches('[').trim_end_matches(']');
    (!name.is_empty()).then(|| name.to_ascii_lowercase())
}

/// Checks that a request is for this listener: a loopback name, the address of the connection, or
/// `own`, the name under which it was told to listen. Returns the value of `Host`.
pub(crate) fn check_host<'a>(
    parts: &'a Parts,
    own: &str,
    local: IpAddr,
) -> Result<&'a str, Refusal> {
    let host = single(&parts.headers, &header::HOST)?;
    let host = host.ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "Host is missing"))?;
    let given = [Some(host), parts.uri.authority().map(Authority::as_str)];
    for authority in given.into_iter().flatten() {
        let is_own = |name: &String| match name.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || address == local.to_canonical(),
            Err(_) => name == "localhost" || *name == own.to_ascii_lowercase(),
        };
        if !name_of(authority).as_ref().is_some_and(is_own) {
            return Err(Refusal::new(
                StatusCode::MISDIRECTED_REQUEST,
                match own {
                    "127.0.0.1" => {
                        format!("Host {authority:?} is not a name of this listener; use {own}")
                    }
                    _ => format!(
                        "Host {authority:?} is not a name of this listener; use 127.0.0.1 or {own}"
                    ),
                },
            ));
        }
    }
    Ok(host)
}

/// Refuses requests that the page of another site makes.
pub(crate) fn check_origin(headers: &HeaderMap, host: &str) -> Result<(), Refusal> {
    let other = |what: String| Err(Refusal::new(StatusCode::FORBIDDEN, what));
    if let Some(origin) = single(headers, &header::ORIGIN)?
        && !origin.eq_ignore_ascii_case(&format!("http://{host}"))
    {
        return other(format!("the page of {origin:?} may not ask here"));
    }
    match single(headers, &FETCH_SITE)? {
        Some("same-origin" | "none") | None => Ok(()),
        Some(site) => other(format!("a {site} request is not answered")),
    }
}

/// Checks the token of a request that changes something.
pub(crate) fn check_token(headers: &HeaderMap, token: Option<&Token>) -> Result<(), Refusal> {
    let Some(token) = token else {
        let reason = "changes are off; start the server with --web-control";
        return Err(Refusal::new(StatusCode::FORBIDDEN, reason));
    };
    match single(headers, &TOKEN)? {
        Some(given) if token.is(given.as_bytes()) => Ok(()),
        Some(_) => Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "this is not the token; it is in the file that the server named at its start",
        )),
        None => Err(Refusal::new(StatusCode::UNAUTHORIZED, format!("{TOKEN} is missing"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn a_request_is_for_a_name_of_the_listener() {
        let status = |uri: &str, hosts: &[&str]| {
            let headers: Vec<(&str, &str)> = hosts.iter().map(|host| ("host", *host)).collect();
            let local = "192.0.2.7".parse().expect("an address");
            check_host(&parts(uri, &headers), "Db1.example", local)
                .map_err(|e| e.status.as_u16())
                .err()
        };
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "[::1]:8080",
            "db1.example:8080",
            "192.0.2.7",
        ] {
            assert_eq!(status("/", &[host]), None, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.0.2.8",
            "a@localhost",
            "",
            ":8080",
        ] {
            assert_eq!(status("/", &[host]), Some(421), "{host}");
        }
        assert_eq!(status("/", &[]), Some(400));
        assert_eq!(status("/", &["localhost", "evil.example"]), Some(400));
        assert_eq!(status("http://evil.example/", &["localhost"]), Some(421));
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let status = |headers: &[(&str, &str)]| {
            check_origin(&parts("/", headers).headers, "localhost:1").map_err(|e| e.status.as_u16())
        };
        for headers in [
            &[][..],
            &[("origin", "http://localhost:1")],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
        ] {
            assert_eq!(status(headers), Ok(()), "{headers:?}");
        }
        for headers in [
            &[("origin", "http://evil.example")][..],
            &[("origin", "http://localhost:2")],
            &[("origin", "https://localhost:1")],
            &[("origin", "null")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
        ] {
            assert_eq!(status(headers), Err(403), "{headers:?}");
        }
    }

    #[test]
    fn changes_need_the_token() {
        let folder = tempfile::tempdir().expect("a folder");
        let token = Token::create(&folder.path().join("token")).expect("a token");
        let status = |headers: &[(&str, &str)], token| {
            check_token(&parts("/", headers).headers, token).map_err(|e| e.status.as_u16())
        };
        assert_eq!(status(&[("x-weir-token", token.secret())], Some(&token)), Ok(()));
        assert_eq!(status(&[("x-weir-token", "0")], Some(&token)), Err(401));
        assert_eq!(status(&[], Some(&token)), Err(401));
        assert_eq!(status(&[("x-weir-token", token.secret())], None), Err(403));
    }
}
