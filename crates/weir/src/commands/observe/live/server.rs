//! What the clients of both database servers need: a URL, and secrets that nobody prints.

use crate::error::CliError;
use std::fmt;
use std::fs;
use std::path::Path;

/// A password or a token: never printed, never stored.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    /// For the server, and nobody else.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// The first line of a file.
    pub(super) fn of_file(path: &Path) -> Result<Self, CliError> {
        let read = |source| CliError::Read { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(read)?;
        let line = text.lines().next().unwrap_or_default().trim_end_matches('\r');
        if line.is_empty() {
            let path = path.display();
            return Err(CliError::Refused(format!("{path}: its first line is empty")));
        }
        Ok(Self(line.to_owned()))
    }

    /// What an environment variable says, if it says anything.
    pub(super) fn of_environment(name: &str) -> Option<Self> {
        std::env::var(name).ok().filter(|text| !text.is_empty()).map(Self)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where a server is, and who asks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) login: Option<String>,
    pub(super) password: Option<Secret>,
    /// A name, an address, or the folder of a socket.
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) database: Option<String>,
    /// What stands behind the question mark; those who use one take it.
    pub(super) options: Vec<(String, String)>,
}

impl Url {
    /// Reads `SCHEME://LOGIN:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE`.
    ///
    /// # Errors
    ///
    /// What is wrong with it, without what stands there: that may be a part of a password.
    pub(super) fn parse(text: &str, schemes: &[&str]) -> Result<Self, String> {
        let shape =
            || format!("it is no URL like {}://LOGIN@HOST:PORT/DATABASE", schemes.join(":// or "));
        let (scheme, rest) = text.split_once("://").ok_or_else(shape)?;
        if !schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
            return Err(shape());
        }
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let (who, at) = match authority.rsplit_once('@') {
            Some((who, at)) => (Some(who), at),
            None => (None, authority),
        };
        if place.split_once('/').is_some_and(|(_, rest)| rest.contains('@'))
            || options.contains('@')
        {
            return Err(SPECIAL.to_owned());
        }
        let (login, password) = match who.map(|who| who.split_once(':').unwrap_or((who, ""))) {
            Some((login, password)) => (decoded(login)?, decoded(password)?),
            None => (String::new(), String::new()),
        };
        let (host, port) = host_and_port(at)?;
        let options = options.split('&').filter(|option| !option.is_empty()).map(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            Ok((decoded(name)?, decoded(value)?))
        });
        let some = |text: String| (!text.is_empty()).then_some(text);
        Ok(Self {
            login: some(login),
            password: some(password).map(Secret),
            host: decoded(host)?,
            port,
            database: some(decoded(database)?),
            options: options.collect::<Result<_, String>>()?,
        })
    }

    /// Takes an option out, by its name in any case.
    pub(super) fn option(&mut self, name: &str) -> Option<String> {
        let at = self.options.iter().position(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(self.options.remove(at).1)
    }

    /// That all options have been taken.
    ///
    /// # Errors
    ///
    /// The name of one that was not, and those that there are.
    pub(super) fn no_more_options(&self, known: &str) -> Result<(), String> {
        match self.options.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("there is no option {name:?}; there are: {known}")),
        }
    }

    /// Where the server is, for people: without who asks.
    pub(super) fn place(&self, port: u16) -> String {
        let database = self.database.as_ref().map(|name| format!("/{name}"));
        let port = self.port.unwrap_or(port);
        format!("{}:{port}{}", self.host, database.unwrap_or_default())
    }

    /// What the host is called in the observation: whoever is on this machine is on its host.
    pub(super) fn host_entity(&self) -> &str {
        let is_local = matches!(self.host.as_str(), "localhost" | "::1" | ".")
            || self.host.starts_with("127.")
            || self.host.starts_with('/');
        if is_local { "host" } else { &self.host }
    }

    /// The password: of the URL, of a file, or of the environment.
    pub(super) fn password(
        &mut self,
        what: &str,
        file: Option<&Path>,
        variable: &str,
    ) -> Result<Option<Secret>, CliError> {
        match (self.password.take(), file) {
            (Some(_), Some(_)) => Err(CliError::Refused(format!(
                "--{what}: the URL has a password, and --password-file another; give one"
            ))),
            (Some(password), None) => Ok(Some(password)),
            (None, Some(path)) => Secret::of_file(path).map(Some),
            (None, None) => Ok(Secret::of_environment(variable)),
        }
    }
}

const SPECIAL: &str = "write what is special in a login or a password in percent: @ as %40, / as %2F, \
                       : as %3A, ? as %3F, # as %23, % as %25; or give the password in a file or in \
                       the environment";

fn host_and_port(at: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match at.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, rest))) => (host, rest.strip_prefix(':')),
        Some(None) => return Err("a [ has no ]".to_owned()),
        None => match at.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (at, None),
        },
    };
    let wrong = |_| format!("what stands for the port is no number up to 65535; {SPECIAL}");
    Ok((host, port.map(str::parse).transpose().map_err(wrong)?))
}

/// A text without the percent signs of a URL.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, more)) = rest.split_first() {
        rest = more;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.ok_or("a % in it is followed by no two digits of base 16")?);
        rest = rest.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).map_err(|_| "it is not text in UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        let url =
            Url::parse("sqlserver://we%40ir:p%2Fw@db1:1434/sales?encrypt=login", &["sqlserver"]);
        let mut url = url.expect("a URL");
        assert_eq!(url.login.as_deref(), Some("we@ir"));
        assert_eq!(url.password, Some(Secret("p/w".to_owned())));
        assert_eq!(url.place(1433), "db1:1434/sales");
        assert_eq!(url.option("Encrypt").as_deref(), Some("login"));
        assert_eq!(url.no_more_options("encrypt"), Ok(()));
        let url = Url::parse("postgres://[::1]", &["postgresql", "postgres"]).expect("a URL");
        assert_eq!((url.host.as_str(), url.port, url.login.as_ref()), ("::1", None, None));
        assert_eq!(url.host_entity(), "host");
        let url = Url::parse("postgres://weir@%2Frun%2Fpg/app", &["postgres"]).expect("a URL");
        assert_eq!((url.host.as_str(), url.host_entity()), ("/run/pg", "host"));
        let url = Url::parse("postgres://weir@db2", &["postgres"]).expect("a URL");
        assert_eq!(url.host_entity(), "db2");
    }

    /// Whatever is wrong, nothing of what stands there is said: it may be a password.
    #[test]
    fn what_is_wrong_is_said_without_the_password() {
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
            let reason = Url::parse(text, &["sqlserver"]).expect_err(text);
            assert!(!reason.contains("hunter2") && !reason.contains("ter2"), "{text}: {reason}");
        }
        let url = Url::parse("sqlserver://a:hunter2@db", &["sqlserver"]).expect("a URL");
        assert!(!format!("{url:?}").contains("hunter2"), "{url:?}");
    }
}
