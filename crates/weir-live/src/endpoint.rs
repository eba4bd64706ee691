//! URLs of database servers.
//!
//! Written here and not taken from the `url` crate: no message may repeat a part of the URL, which
//! can be a piece of a password that was not escaped, and `postgres://` URLs can have an empty host
//! or the folder of a socket as host.

use crate::error::LiveError;
use crate::secret::Secret;
use percent_encoding::percent_decode_str;
use std::path::Path;

/// The address of a server, and the login to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) login: Option<String>,
    pub(crate) password: Option<Secret>,
    /// A name, an address, or the folder of a socket.
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    pub(crate) database: Option<String>,
    /// Options that no client has taken yet.
    options: Vec<(String, String)>,
}

impl Endpoint {
    /// Parses `SCHEME://LOGIN:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE`.
    ///
    /// # Errors
    ///
    /// The fault, without any part of the text: it can be a part of a password.
    pub(crate) fn parse(text: &str, schemes: &[&str]) -> Result<Self, String> {
        let shape = || {
            format!(
                "it is not a URL of the form {}://LOGIN@HOST:PORT/DATABASE",
                schemes.join(":// or ")
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(shape)?;
        if !schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
            return Err(shape());
        }
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        if database.contains('@') || options.contains('@') {
            return Err(ESCAPES.to_owned());
        }
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (user, address),
            None => ("", authority),
        };
        let (login, password) = user.split_once(':').unwrap_or((user, ""));
        let (host, port) = host_and_port(address)?;
        Ok(Self {
            login: non_empty(decoded(login)?),
            password: non_empty(decoded(password)?).map(Secret::new),
            host: decoded(host)?,
            port,
            database: non_empty(decoded(database)?),
            options: options
                .split('&')
                .filter(|option| !option.is_empty())
                .map(|option| {
                    let (name, value) = option.split_once('=').unwrap_or((option, ""));
                    Ok((decoded(name)?, decoded(value)?))
                })
                .collect::<Result<_, String>>()?,
        })
    }

    /// Takes an option out, by its name in any case.
    pub(crate) fn take_option(&mut self, name: &str) -> Option<String> {
        let at = self.options.iter().position(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(self.options.remove(at).1)
    }

    /// Checks that no option is left.
    ///
    /// # Errors
    ///
    /// The name of one that is, and the names of the known options.
    pub(crate) fn expect_no_options(&self, known: &str) -> Result<(), String> {
        match self.options.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("there is no option {name:?}; there are: {known}")),
        }
    }

    /// Returns the address without the login.
    pub(crate) fn address(&self, default_port: u16) -> String {
        let database = self.database.as_ref().map(|name| format!("/{name}"));
        let port = self.port.unwrap_or(default_port);
        format!("{}:{port}{}", self.host, database.unwrap_or_default())
    }

    /// Returns the host's name in the observation, which is `host` for this machine.
    pub(crate) fn host_entity(&self) -> &str {
        let is_local = matches!(self.host.as_str(), "localhost" | "::1" | ".")
            || self.host.starts_with("127.")
            || self.host.starts_with('/');
        if is_local { "host" } else { &self.host }
    }

    /// Takes the password from the URL, from a file, or from the environment.
    pub(crate) fn password(
        &mut self,
        system: &'static str,
        file: Option<&Path>,
        variable: &str,
    ) -> Result<Option<Secret>, LiveError> {
        match (self.password.take(), file) {
            (Some(_), Some(_)) => {
                let reason = "the URL and --password-file both contain a password; give one";
                Err(LiveError::Input { system, reason: reason.to_owned() })
            }
            (Some(password), None) => Ok(Some(password)),
            (None, Some(path)) => Secret::from_file(path).map(Some),
            (None, None) => Ok(Secret::from_environment(variable)),
        }
    }
}

const ESCAPES: &str = "percent-encode special characters in a login or password: @ as %40, / as \
                       %2F, : as %3A, ? as %3F, # as %23, % as %25; or give the password in a file \
                       or in the environment";

fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn host_and_port(address: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match address.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, rest))) => (host, rest.strip_prefix(':')),
        Some(None) => return Err("a [ has no ]".to_owned()),
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    let port = port
        .map(str::parse)
        .transpose()
        .map_err(|_| format!("the port is not a number up to 65535; {ESCAPES}"))?;
    Ok((host, port))
}

/// Decodes percent signs. One that two hexadecimal digits do not follow is an error and not text,
/// because it is a sign of a password that was not escaped.
fn decoded(text: &str) -> Result<String, String> {
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        return Err(format!("a % in it is not followed by two hexadecimal digits; {ESCAPES}"));
    }
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| "it is not text in UTF-8".to_owned())?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_its_parts() {
        let parse = |text, schemes: &[&str]| Endpoint::parse(text, schemes).expect("a URL");
        let text = "sqlserver://we%40ir:p%2Fw@db1:1434/sales?encrypt=login";
        let mut sales = parse(text, &["sqlserver"]);
        assert_eq!(sales.login.as_deref(), Some("we@ir"));
        assert_eq!(sales.password, Some(Secret::new("p/w".to_owned())));
        assert_eq!(sales.address(1433), "db1:1434/sales");
        assert_eq!(sales.take_option("Encrypt").as_deref(), Some("login"));
        assert_eq!(sales.expect_no_options("encrypt"), Ok(()));
        let local = parse("postgres://[::1]", &["postgresql", "postgres"]);
        assert_eq!((local.host.as_str(), local.port, local.login.as_ref()), ("::1", None, None));
        assert_eq!(local.host_entity(), "host");
        let socket = parse("postgres://weir@%2Frun%2Fpg/app", &["postgres"]);
        assert_eq!((socket.host.as_str(), socket.host_entity()), ("/run/pg", "host"));
        assert_eq!(parse("postgres://weir@db2", &["postgres"]).host_entity(), "db2");
    }

    #[test]
    fn no_message_repeats_a_part_of_the_url() {
        for text in [
            "hunter2",
            "mysql://a:hunter2@db/x",
            "sqlserver://a:hunter2/x@db",
            "sqlserver://a:hunter2",
            "sqlserver://a:hun?ter2=x@db",
            "sqlserver://a:hunter2%zz@db",
            "sqlserver://a:hunter2@db:port/x",
            "sqlserver://w@[hunter2",
        ] {
            let reason = Endpoint::parse(text, &["sqlserver"]).expect_err(text);
            assert!(!reason.contains("hunter2") && !reason.contains("ter2"), "{text}: {reason}");
        }
        let endpoint = Endpoint::parse("sqlserver://a:hunter2@db", &["sqlserver"]).expect("a URL");
        assert!(!format!("{endpoint:?}").contains("hunter2"), "{endpoint:?}");
    }
}
