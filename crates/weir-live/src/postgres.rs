//! A PostgreSQL server, polled through its simple protocol: several queries in one message, text
//! results, read-only transactions.

mod tls;

use crate::credentials::Credentials;
use crate::endpoint::Endpoint;
use crate::error::LiveError;
use crate::poll::{Greeting, Poll, PollError};
use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::{Client, Config, Error, NoTls, SimpleQueryMessage};
use std::fmt;
use std::time::Duration;
use tls::Tls;
use weir_import::live::{Answer, RowSet, postgres as questions};

const SCHEMES: [&str; 2] = ["postgres", "postgresql"];
const VARIABLE: &str = "WEIR_POSTGRES_PASSWORD";
const PORT: u16 = 5432;
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(30);

/// A connection to a PostgreSQL server.
pub struct Postgres {
    endpoint: Endpoint,
    config: Config,
    tls: Option<Tls>,
    client: Option<Client>,
    /// The queries for the server's version.
    questions: String,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Postgres {
    /// Parses `postgres://LOGIN@HOST:PORT/DATABASE` and reads the credentials. It connects on the
    /// first poll.
    ///
    /// # Errors
    ///
    /// The URL, an option or the credentials are wrong or missing.
    pub fn new(url: &str, credentials: &Credentials) -> Result<Self, LiveError> {
        let mut endpoint = Endpoint::parse(url, &SCHEMES).map_err(input)?;
        let file = credentials.password_file.as_deref();
        let password = endpoint.password("postgres", file, VARIABLE)?;
        let mode = endpoint.take_option("sslmode");
        let roots = endpoint.take_option("sslrootcert");
        if let Some(host) = endpoint.take_option("host") {
            endpoint.host = host;
        }
        endpoint.expect_no_options("host, sslmode, sslrootcert").map_err(input)?;
        let mut config = Config::new();
        if endpoint.host.is_empty() {
            "localhost".clone_into(&mut endpoint.host);
        }
        config.host(&endpoint.host).port(endpoint.port.unwrap_or(PORT)).application_name("weir");
        let Some(login) = &endpoint.login else {
            let reason = "it contains no login: postgres://LOGIN@HOST/DATABASE";
            return Err(input(reason.to_owned()));
        };
        config.user(login);
        if let Some(database) = &endpoint.database {
            config.dbname(database);
        }
        if let Some(password) = &password {
            config.password(password.reveal());
        }
        config.connect_timeout(CONNECT).tcp_user_timeout(ANSWER).keepalives_idle(ANSWER);
        let tls = match mode.as_deref() {
            None | Some("prefer") => {
                config.ssl_mode(SslMode::Prefer);
                Some(Tls::unverified())
            }
            Some("disable") => {
                config.ssl_mode(SslMode::Disable);
                None
            }
            Some("require") => {
                config.ssl_mode(SslMode::Require);
                Some(Tls::unverified())
            }
            Some("verify-full") => {
                config.ssl_mode(SslMode::Require);
                Some(Tls::verified(roots.as_deref()).map_err(input)?)
            }
            Some(other) => {
                return Err(input(format!(
                    "there is no sslmode {other:?} here; there are: disable, prefer, require, \
                     verify-full"
                )));
            }
        };
        if roots.is_some() && mode.as_deref() != Some("verify-full") {
            return Err(input("sslrootcert needs sslmode=verify-full".to_owned()));
        }
        Ok(Self { endpoint, config, tls, client: None, questions: String::new() })
    }

    /// Returns the host's name in the observation, which is `host` for this machine.
    #[must_use]
    pub fn host(&self) -> &str {
        self.endpoint.host_entity()
    }

    fn connect(&mut self) -> Result<(), PollError> {
        let address = self.endpoint.address(PORT);
        let connected = match &self.tls {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        };
        let mut client = connected.map_err(|error| explain(&error, &address))?;
        let millis = ANSWER.as_millis();
        let set =
            format!("SET default_transaction_read_only = on; SET statement_timeout = {millis}");
        client.batch_execute(&set).map_err(|error| explain(&error, &address))?;
        self.client = Some(client);
        Ok(())
    }

    /// Runs several queries and returns their row sets.
    fn sets(&mut self, text: &str) -> Result<Vec<RowSet>, PollError> {
        let address = self.endpoint.address(PORT);
        if self.client.is_none() {
            self.connect()?;
        }
        let Some(client) = &mut self.client else { return Ok(Vec::new()) };
        let messages = client.simple_query(text).map_err(|error| explain(&error, &address));
        if messages.is_err() {
            self.client = None;
        }
        let mut sets: Vec<RowSet> = Vec::new();
        for message in messages? {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    let columns = columns.iter().map(|column| column.name().to_owned()).collect();
                    sets.push(RowSet { columns, rows: Vec::new() });
                }
                SimpleQueryMessage::Row(row) => {
                    let field = |at| row.get(at).unwrap_or_default().to_owned();
                    let fields = (0..row.len()).map(field).collect();
                    if let Some(set) = sets.last_mut() {
                        set.rows.push(fields);
                    }
                }
                _ => {}
            }
        }
        Ok(sets)
    }
}

impl Poll for Postgres {
    fn begin(&mut self) -> Result<Greeting, PollError> {
        let sets = self.sets(questions::WHO)?;
        let row = sets.first().and_then(|set| set.rows.first());
        let [version, called, sees_all, is_timed] = row.map_or(&[][..], Vec::as_slice) else {
            return Err(PollError::Refused("it does not report its version".to_owned()));
        };
        let number: u32 = version.parse().unwrap_or(0);
        let version = number / 10_000;
        self.questions = questions::questions(version);
        let mut notes = Vec::new();
        if version < questions::OLDEST {
            let oldest = questions::OLDEST;
            notes.push(format!(
                "version {called} is older than {oldest}, the oldest tested version"
            ));
        }
        if sees_all != "t" {
            notes.push(
                "the waits of other logins are hidden from this one; GRANT pg_monitor TO it"
                    .to_owned(),
            );
        }
        if is_timed != "on" {
            notes.push(
                "track_io_timing is off, so the latency of reads and writes is unknown".to_owned(),
            );
        }
        let about = vec![
            ("server".to_owned(), self.endpoint.address(PORT)),
            ("version".to_owned(), called.clone()),
        ];
        Ok(Greeting { about, notes })
    }

    fn poll(&mut self) -> Result<Answer, PollError> {
        let questions = self.questions.clone();
        self.sets(&questions).map(Answer::Sets)
    }
}

fn input(reason: String) -> LiveError {
    LiveError::Input { system: "postgres", reason }
}

/// Explains an error. The login, which messages of the server contain, is left out.
fn explain(error: &Error, address: &str) -> PollError {
    let Some(told) = error.as_db_error() else {
        return connection_error(error, address);
    };
    let code = told.code();
    let passing = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::QUERY_CANCELED,
    ];
    if passing.contains(code) {
        return PollError::Lost(format!("{address}: {}", told.message()));
    }
    let reason = match code.code() {
        "28P01" => "the login or its password is wrong".to_owned(),
        "28000" => {
            "the server does not accept this login from this address; see its pg_hba.conf, and \
                    sslmode=require if it wants TLS"
                .to_owned()
        }
        "42501" => format!("{}; GRANT pg_monitor TO the login", told.message()),
        code => format!("{} (error {code})", told.message()),
    };
    PollError::Refused(format!("{address}: {reason}"))
}

/// Explains an error of the connection with all its causes.
fn connection_error(error: &Error, address: &str) -> PollError {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    let mut is_certificate = false;
    while let Some(error) = cause {
        let said = error.to_string();
        is_certificate |= said.contains("certificate");
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    // The client library reports this one, not the server.
    let is_password = text.contains("password missing");
    if is_password {
        return PollError::Refused(format!(
            "{address}: the server wants a password; give it in {VARIABLE} or with --password-file"
        ));
    }
    let text = format!("{address}: {text}");
    if is_certificate { PollError::Refused(text) } else { PollError::Lost(text) }
}
