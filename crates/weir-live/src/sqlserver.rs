//! A SQL Server, polled over TDS with the queries of `weir observe script --sqlserver`.

use crate::credentials::Credentials;
use crate::endpoint::Endpoint;
use crate::error::LiveError;
use crate::poll::{Greeting, Poll, PollError};
use crate::secret::Secret;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tiberius::{AuthMethod, Client, ColumnData, Config, EncryptionLevel, Row};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};
use weir_import::live::sqlserver::SCRIPT;
use weir_import::live::{Answer, RowSet};

const PASSWORD: &str = "WEIR_SQLSERVER_PASSWORD";
const TOKEN: &str = "WEIR_SQLSERVER_TOKEN";
const PORT: u16 = 1433;
const CONNECT: Duration = Duration::from_secs(10);
const LOGIN: Duration = Duration::from_secs(15);
const ANSWER: Duration = Duration::from_secs(30);
/// A gateway of Azure redirects to the server of the database; more redirections are a loop.
const MAX_REDIRECTIONS: usize = 5;
const OPTIONS: &str = "encrypt, trustServerCertificate, ca";

/// A query that needs no permission.
const IDENTITY: &str = "SELECT CAST(SERVERPROPERTY('EngineEdition') AS int) AS edition, \
                   CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version";
const AZURE_DATABASE: &str = "5";
const AZURE_INSTANCE: &str = "8";

/// The credentials that the server accepts.
enum Login {
    Password {
        login: String,
        password: Secret,
    },
    /// A token of Microsoft Entra, which expires within hours and is therefore read on each connect.
    Token {
        file: Option<PathBuf>,
    },
}

/// A connection to a SQL Server, an Azure SQL Database or a Managed Instance.
pub struct SqlServer {
    endpoint: Endpoint,
    login: Login,
    encryption: EncryptionLevel,
    trusts_any_certificate: bool,
    authority: Option<String>,
    runtime: Runtime,
    client: Option<Client<Compat<TcpStream>>>,
    /// `EngineEdition`, empty before the first connection.
    edition: String,
    /// Major version, 0 before the first connection.
    major: u32,
}

impl fmt::Debug for SqlServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlServer").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl SqlServer {
    /// Parses `sqlserver://LOGIN@HOST:PORT/DATABASE` and reads the credentials. It connects on the
    /// first poll.
    ///
    /// # Errors
    ///
    /// The URL, an option or the credentials are wrong or missing.
    pub fn new(url: &str, credentials: &Credentials) -> Result<Self, LiveError> {
        let mut endpoint = Endpoint::parse(url, &["sqlserver"]).map_err(input)?;
        let encrypt = endpoint.take_option("encrypt").unwrap_or_else(|| "true".to_owned());
        let encryption = encryption(&encrypt).map_err(input)?;
        let trusts_any_certificate = match endpoint.take_option("trustServerCertificate").as_deref()
        {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => {
                let reason = format!("trustServerCertificate is true or false, and not {other:?}");
                return Err(input(reason));
            }
        };
        let authority = endpoint.take_option("ca");
        endpoint.expect_no_options(OPTIONS).map_err(input)?;
        if endpoint.host.is_empty() {
            "localhost".clone_into(&mut endpoint.host);
        }
        if endpoint.host.contains('\\') {
            return Err(input("a named instance is reached by its port: HOST:PORT".to_owned()));
        }
        let login = login(&mut endpoint, credentials)?;
        if matches!(login, Login::Token { .. }) && encryption == EncryptionLevel::NotSupported {
            return Err(input(
                "a token is not sent without TLS: leave out encrypt=false".to_owned(),
            ));
        }
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(LiveError::Client)?;
        Ok(Self {
            endpoint,
            login,
            encryption,
            trusts_any_certificate,
            authority,
            runtime,
            client: None,
            edition: String::new(),
            major: 0,
        })
    }

    /// Returns the host's name in the observation, which is `host` for this machine.
    #[must_use]
    pub fn host(&self) -> &str {
        self.endpoint.host_entity()
    }

    fn config(&self) -> Result<Config, PollError> {
        let mut config = Config::new();
        config.host(&self.endpoint.host);
        config.port(self.endpoint.port.unwrap_or(PORT));
        if let Some(database) = &self.endpoint.database {
            config.database(database);
        }
        config.application_name("weir");
        // A readable replica is enough.
        config.readonly(true);
        config.encryption(self.encryption);
        if self.trusts_any_certificate {
            config.trust_cert();
        }
        if let Some(path) = &self.authority {
            config.trust_cert_ca(path);
        }
        config.handshake_timeout(Some(LOGIN));
        config.command_timeout(Some(ANSWER));
        config.authentication(match &self.login {
            Login::Password { login, password } => AuthMethod::sql_server(login, password.reveal()),
            Login::Token { file } => {
                let token = token(file.as_ref())
                    .map_err(|error| PollError::Refused(format!("the token: {error}")))?;
                AuthMethod::aad_token(token.reveal())
            }
        });
        Ok(config)
    }

    fn connect(&mut self) -> Result<(), PollError> {
        let mut config = self.config()?;
        let address = self.endpoint.address(PORT);
        for _ in 0..MAX_REDIRECTIONS {
            let socket_address = config.get_addr();
            let connecting = async {
                let socket =
                    tokio::time::timeout(CONNECT, TcpStream::connect(&socket_address)).await;
                let socket = socket.map_err(|_| "it does not answer".to_owned());
                let socket = socket.and_then(|socket| socket.map_err(|error| error.to_string()))?;
                drop(socket.set_nodelay(true));
                Ok(Client::connect(config.clone(), socket.compat_write()).await)
            };
            let connected: Result<_, String> = self.runtime.block_on(connecting);
            match connected.map_err(|error| PollError::Lost(format!("{address}: {error}")))? {
                Ok(client) => {
                    self.client = Some(client);
                    return Ok(());
                }
                Err(tiberius::error::Error::Routing { host, port }) => {
                    config.host(host);
                    config.port(port);
                }
                Err(error) => return Err(self.explain(&error)),
            }
        }
        Err(PollError::Lost(format!("{address}: too many redirections between servers")))
    }

    /// Runs a batch and returns its row sets.
    fn sets(&mut self, batch: &str) -> Result<Vec<RowSet>, PollError> {
        if self.client.is_none() {
            self.connect()?;
        }
        let Some(client) = &mut self.client else { return Ok(Vec::new()) };
        let asking = async { client.simple_query(batch).await?.into_results().await };
        match self.runtime.block_on(asking) {
            Ok(sets) => Ok(sets.iter().filter_map(|rows| row_set(rows)).collect()),
            Err(error) => {
                self.client = None;
                Err(self.explain(&error))
            }
        }
    }

    /// Explains an error. The login, which messages of the server contain, is left out.
    fn explain(&self, error: &tiberius::error::Error) -> PollError {
        use tiberius::error::Error;
        let address = self.endpoint.address(PORT);
        let told = match error {
            Error::Server(told) => told,
            Error::Tls(text) => {
                let text = text.split(" To connect anyway").next().unwrap_or_default();
                return PollError::Refused(format!(
                    "{address}: no TLS: {text}; name the file of the authority that signed it with \
                     ?ca=FILE, or accept any with ?trustServerCertificate=true"
                ));
            }
            error => return PollError::Lost(format!("{address}: {error}")),
        };
        let (code, text) = (told.code(), self.without_login(told.message()));
        let reason = match code {
            18456 | 18452 => "the login or its password is wrong".to_owned(),
            18470 | 18486 => "the login is disabled or locked".to_owned(),
            18487 | 18488 => "the password of the login has expired and must be changed".to_owned(),
            4060 => "the login cannot open the database, or the database does not exist".to_owned(),
            40615 | 40914 => "the firewall of the server blocks this machine".to_owned(),
            262 | 297 | 300 | 371 => {
                format!("{text} (error {code}); ask for: {}", self.grant())
            }
            // The server starts, stops, moves or is busy.
            1205 | 6005 | 10928 | 10929 | 18451 | 40143 | 40197 | 40501 | 40613 | 49918..=49920 => {
                return PollError::Lost(format!("{address}: {text} (error {code})"));
            }
            _ => format!("{text} (error {code})"),
        };
        PollError::Refused(format!("{address}: {reason}"))
    }

    /// Returns the statement that grants the missing permission.
    fn grant(&self) -> &'static str {
        match (self.edition.as_str(), self.major) {
            (AZURE_DATABASE, _) => {
                "GRANT VIEW DATABASE STATE TO the user (in the database; basic tiers and pools want \
                 the server's role ##MS_ServerStateReader##)"
            }
            (AZURE_INSTANCE, _) | (_, 16..) => {
                "GRANT VIEW SERVER PERFORMANCE STATE TO the login (in master; VIEW SERVER STATE \
                 includes it)"
            }
            _ => "GRANT VIEW SERVER STATE TO the login (in master)",
        }
    }

    fn without_login(&self, text: &str) -> String {
        match &self.login {
            Login::Password { login, .. } => text
                .replace(&format!("'{login}'"), "'***'")
                .replace(&format!("\"{login}\""), "'***'"),
            Login::Token { .. } => text.to_owned(),
        }
    }
}

fn encryption(text: &str) -> Result<EncryptionLevel, String> {
    Ok(match text.to_lowercase().as_str() {
        "true" | "mandatory" => EncryptionLevel::Required,
        "strict" => EncryptionLevel::Strict,
        "login" | "optional" => EncryptionLevel::Off,
        "false" => EncryptionLevel::NotSupported,
        _ => {
            return Err(format!(
                "encrypt is strict, true, login (only the login is encrypted) or false, and not {text:?}"
            ));
        }
    })
}

fn input(reason: String) -> LiveError {
    LiveError::Input { system: "sqlserver", reason }
}

fn login(endpoint: &mut Endpoint, credentials: &Credentials) -> Result<Login, LiveError> {
    let has_token = credentials.token_file.is_some()
        || (endpoint.login.is_none() && Secret::from_environment(TOKEN).is_some());
    if has_token {
        if endpoint.login.is_some() || endpoint.password.is_some() {
            let reason = "a token identifies the login: leave the login out of the URL";
            return Err(input(reason.to_owned()));
        }
        let file = credentials.token_file.clone();
        token(file.as_ref())?;
        return Ok(Login::Token { file });
    }
    let password =
        endpoint.password("sqlserver", credentials.password_file.as_deref(), PASSWORD)?;
    let Some(login) = endpoint.login.clone() else {
        return Err(input(format!(
            "it contains no login: sqlserver://LOGIN@HOST/DATABASE, or give a token in {TOKEN} or \
             with --token-file"
        )));
    };
    let Some(password) = password else {
        return Err(input(format!(
            "there is no password: give it in {PASSWORD} or with --password-file"
        )));
    };
    Ok(Login::Password { login, password })
}

fn token(file: Option<&PathBuf>) -> Result<Secret, LiveError> {
    match file {
        Some(path) => Secret::from_file(path),
        None => Secret::from_environment(TOKEN).ok_or_else(|| input(format!("{TOKEN} is empty"))),
    }
}

impl Poll for SqlServer {
    fn begin(&mut self) -> Result<Greeting, PollError> {
        let sets = self.sets(IDENTITY)?;
        let row = sets.first().and_then(|set| set.rows.first());
        let [edition, version] = row.map_or(&[][..], Vec::as_slice) else {
            return Err(PollError::Refused("it does not report its version".to_owned()));
        };
        let major = version.split('.').next().and_then(|major| major.parse().ok());
        self.edition.clone_from(edition);
        self.major = major.unwrap_or(0);
        // Reports a missing permission before the observation is created.
        self.sets(SCRIPT)?;
        let about = vec![
            ("server".to_owned(), self.endpoint.address(PORT)),
            ("version".to_owned(), version.clone()),
        ];
        let mut notes = Vec::new();
        if self.encryption == EncryptionLevel::NotSupported {
            notes.push("the password is sent unencrypted, because of encrypt=false".to_owned());
        }
        Ok(Greeting { about, notes })
    }

    fn poll(&mut self) -> Result<Answer, PollError> {
        self.sets(SCRIPT).map(Answer::Sets)
    }
}

/// Converts rows to text. The server's times are dropped: samples are timed by Weir's clock.
fn row_set(rows: &[Row]) -> Option<RowSet> {
    let first = rows.first()?;
    let is_kept = |data: &ColumnData<'_>| !matches!(data, ColumnData::DateTime2(_));
    let columns = first.cells().filter(|(_, data)| is_kept(data));
    let columns = columns.map(|(column, _)| column.name().to_owned()).collect();
    let fields = |row: &Row| {
        row.cells().filter(|(_, data)| is_kept(data)).map(|(_, data)| field(data)).collect()
    };
    Some(RowSet { columns, rows: rows.iter().map(fields).collect() })
}

/// Formats a value; NULL is empty.
fn field(data: &ColumnData<'_>) -> String {
    fn text<T: ToString>(value: Option<&T>) -> String {
        value.map(T::to_string).unwrap_or_default()
    }
    match data {
        ColumnData::U8(value) => text(value.as_ref()),
        ColumnData::I16(value) => text(value.as_ref()),
        ColumnData::I32(value) => text(value.as_ref()),
        ColumnData::I64(value) => text(value.as_ref()),
        ColumnData::F32(value) => text(value.as_ref()),
        ColumnData::F64(value) => text(value.as_ref()),
        ColumnData::Bit(value) => text(value.map(u8::from).as_ref()),
        ColumnData::String(value) => value.as_deref().unwrap_or_default().to_owned(),
        ColumnData::Guid(value) => text(value.as_ref()),
        ColumnData::Numeric(value) => text(value.as_ref()),
        // The script selects no other types.
        _ => String::new(),
    }
}
