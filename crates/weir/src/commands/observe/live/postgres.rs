//! A PostgreSQL, asked through its simple protocol: several questions in one message, answered
//! in text, in a transaction that can only read.

mod tls;

use super::asker::{Ask, AskError, Greeting};
use super::server::Url;
use crate::cli::ObserveLiveArgs;
use crate::error::CliError;
use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::{Client, Config, Error, NoTls, SimpleQueryMessage};
use std::time::Duration;
use tls::Tls;
use weir_observe::live::{Answer, RowSet, postgres as questions};

const SCHEMES: [&str; 2] = ["postgres", "postgresql"];
const VARIABLE: &str = "WEIR_POSTGRES_PASSWORD";
const PORT: u16 = 5432;
/// Longer than this nobody waits for a connection, or an answer.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(30);

pub(super) struct Postgres {
    url: Url,
    config: Config,
    tls: Option<Tls>,
    client: Option<Client>,
    /// What the version is asked.
    questions: String,
}

impl Postgres {
    pub(super) fn new(text: &str, args: &ObserveLiveArgs) -> Result<Self, CliError> {
        let wrong = |reason: String| CliError::Refused(format!("--postgres: {reason}"));
        let mut url = Url::parse(text, &SCHEMES).map_err(wrong)?;
        let file = args.password_file.as_deref();
        let password = url.password("postgres", file, VARIABLE)?;
        let (mode, roots) = (url.option("sslmode"), url.option("sslrootcert"));
        if let Some(host) = url.option("host") {
            url.host = host;
        }
        url.no_more_options("host, sslmode, sslrootcert").map_err(wrong)?;
        let mut config = Config::new();
        if url.host.is_empty() {
            "localhost".clone_into(&mut url.host);
        }
        config.host(&url.host).port(url.port.unwrap_or(PORT)).application_name("weir");
        let nobody = || "it names no login: postgres://LOGIN@HOST/DATABASE".to_owned();
        config.user(url.login.as_deref().ok_or_else(nobody).map_err(wrong)?);
        if let Some(database) = &url.database {
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
                Some(Tls::verified(roots.as_deref()).map_err(wrong)?)
            }
            Some(other) => {
                return Err(wrong(format!(
                    "there is no sslmode {other:?} here; there are: disable, prefer, require, \
                     verify-full"
                )));
            }
        };
        if roots.is_some() && mode.as_deref() != Some("verify-full") {
            return Err(wrong("sslrootcert needs sslmode=verify-full".to_owned()));
        }
        Ok(Self { url, config, tls, client: None, questions: String::new() })
    }

    /// What its host is called in the observation.
    pub(super) fn host(&self) -> &str {
        self.url.host_entity()
    }

    fn connect(&mut self) -> Result<(), AskError> {
        let place = self.url.place(PORT);
        let connected = match &self.tls {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        };
        let mut client = connected.map_err(|error| wrong(&error, &place))?;
        let millis = ANSWER.as_millis();
        let set =
            format!("SET default_transaction_read_only = on; SET statement_timeout = {millis}");
        client.batch_execute(&set).map_err(|error| wrong(&error, &place))?;
        self.client = Some(client);
        Ok(())
    }

    /// What the server says to a text with questions.
    fn sets(&mut self, text: &str) -> Result<Vec<RowSet>, AskError> {
        let place = self.url.place(PORT);
        if self.client.is_none() {
            self.connect()?;
        }
        let Some(client) = &mut self.client else { return Ok(Vec::new()) };
        let messages = client.simple_query(text).map_err(|error| wrong(&error, &place));
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

impl Ask for Postgres {
    fn begin(&mut self) -> Result<Greeting, AskError> {
        let sets = self.sets(questions::WHO)?;
        let row = sets.first().and_then(|set| set.rows.first());
        let [version, called, sees_all, is_timed] = row.map_or(&[][..], Vec::as_slice) else {
            return Err(AskError::Refused("it does not say its version".to_owned()));
        };
        let number: u32 = version.parse().unwrap_or(0);
        let version = number / 10_000;
        self.questions = questions::questions(version);
        let mut notes = Vec::new();
        if version < questions::OLDEST {
            let oldest = questions::OLDEST;
            notes
                .push(format!("version {called} is older than {oldest}, the oldest that is tried"));
        }
        if sees_all != "t" {
            notes.push(
                "what other logins wait for is hidden from this one; GRANT pg_monitor TO it"
                    .to_owned(),
            );
        }
        if is_timed != "on" {
            notes.push(
                "track_io_timing is off, so how long its reads and writes take is unknown"
                    .to_owned(),
            );
        }
        let about = [("server", self.url.place(PORT)), ("version", called.clone())];
        let about = about.map(|(what, is)| (what.to_owned(), is)).to_vec();
        Ok(Greeting { about, notes })
    }

    fn ask(&mut self) -> Result<Answer, AskError> {
        let questions = self.questions.clone();
        self.sets(&questions).map(Answer::Sets)
    }
}

/// Says what is wrong without the login, which messages of the server have in them.
fn wrong(error: &Error, place: &str) -> AskError {
    let Some(told) = error.as_db_error() else {
        return no_answer(error, place);
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
        return AskError::Lost(format!("{place}: {}", told.message()));
    }
    let reason = match code.code() {
        "28P01" => "the login or its password is wrong".to_owned(),
        "28000" => "the server does not let this login in from here; see its pg_hba.conf, and \
                    sslmode=require if it wants TLS"
            .to_owned(),
        "42501" => format!("{}; GRANT pg_monitor TO the login", told.message()),
        code => format!("{} (error {code})", told.message()),
    };
    AskError::Refused(format!("{place}: {reason}"))
}

fn no_answer(error: &Error, place: &str) -> AskError {
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
    // Of the client itself: the server wants a password, and there is none.
    let is_password = text.contains("password missing");
    if is_password {
        return AskError::Refused(format!(
            "{place}: the server wants a password; give it in {VARIABLE} or with --password-file"
        ));
    }
    let text = format!("{place}: {text}");
    if is_certificate { AskError::Refused(text) } else { AskError::Lost(text) }
}
