//! A SQL Server, asked over TDS what the script asks that `weir observe script --sqlserver`
//! prints, as a reader.

use super::asker::{Ask, AskError, Greeting};
use super::server::{Secret, Url};
use crate::cli::ObserveLiveArgs;
use crate::error::CliError;
use std::path::PathBuf;
use std::time::Duration;
use tiberius::{AuthMethod, Client, ColumnData, Config, EncryptionLevel, Row};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};
use weir_observe::import::sql::SCRIPT;
use weir_observe::live::{Answer, RowSet};

const PASSWORD: &str = "WEIR_SQLSERVER_PASSWORD";
const TOKEN: &str = "WEIR_SQLSERVER_TOKEN";
const PORT: u16 = 1433;
/// Longer than this nobody waits for a connection, a login, or an answer.
const CONNECT: Duration = Duration::from_secs(10);
const LOGIN: Duration = Duration::from_secs(15);
const ANSWER: Duration = Duration::from_secs(30);
/// A server of Azure sends to the one that has the database; not for ever.
const MOST_REDIRECTIONS: usize = 5;
const OPTIONS: &str = "encrypt, trustServerCertificate, ca";

/// What everybody may know of a server.
const WHO: &str = "SELECT CAST(SERVERPROPERTY('EngineEdition') AS int) AS edition, \
                   CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version";
const AZURE_DATABASE: &str = "5";
const AZURE_INSTANCE: &str = "8";

/// How the server knows who asks.
enum Login {
    Password {
        login: String,
        password: Secret,
    },
    /// A token of Microsoft Entra, which is a new one every hour.
    Token {
        file: Option<PathBuf>,
    },
}

pub(super) struct SqlServer {
    url: Url,
    login: Login,
    encryption: EncryptionLevel,
    trusts_anybody: bool,
    authority: Option<String>,
    runtime: Runtime,
    client: Option<Client<Compat<TcpStream>>>,
    /// The edition and the major version, once they are known.
    kind: (String, u32),
}

impl SqlServer {
    pub(super) fn new(text: &str, args: &ObserveLiveArgs) -> Result<Self, CliError> {
        let wrong = |reason: String| CliError::Refused(format!("--sqlserver: {reason}"));
        let mut url = Url::parse(text, &["sqlserver"]).map_err(wrong)?;
        let encrypt = url.option("encrypt").unwrap_or_else(|| "true".to_owned());
        let encryption = encryption(&encrypt).map_err(wrong)?;
        let trusts_anybody = match url.option("trustServerCertificate").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => {
                let reason = format!("trustServerCertificate is true or false, and not {other:?}");
                return Err(wrong(reason));
            }
        };
        let authority = url.option("ca");
        url.no_more_options(OPTIONS).map_err(wrong)?;
        if url.host.is_empty() {
            "localhost".clone_into(&mut url.host);
        }
        if url.host.contains('\\') {
            return Err(wrong("a named instance is found by its port: HOST:PORT".to_owned()));
        }
        let login = login(&mut url, args)?;
        if matches!(login, Login::Token { .. }) && encryption == EncryptionLevel::NotSupported {
            return Err(wrong(
                "a token is not sent without TLS: leave encrypt=false out".to_owned(),
            ));
        }
        let system = |source| CliError::System { context: "starting the client", source };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(system)?;
        let kind = (String::new(), 0);
        Ok(Self { url, login, encryption, trusts_anybody, authority, runtime, client: None, kind })
    }

    /// What its host is called in the observation.
    pub(super) fn host(&self) -> &str {
        self.url.host_entity()
    }

    fn config(&self) -> Result<Config, AskError> {
        let mut config = Config::new();
        config.host(&self.url.host);
        config.port(self.url.port.unwrap_or(PORT));
        if let Some(database) = &self.url.database {
            config.database(database);
        }
        config.application_name("weir");
        // A replica that can be read is enough.
        config.readonly(true);
        config.encryption(self.encryption);
        if self.trusts_anybody {
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
                let token = token(file.as_ref()).map_err(|error| {
                    AskError::Refused(format!("the token: {}", error.with_causes()))
                })?;
                AuthMethod::aad_token(token.reveal())
            }
        });
        Ok(config)
    }

    fn connect(&mut self) -> Result<(), AskError> {
        let mut config = self.config()?;
        let place = self.url.place(PORT);
        for _ in 0..MOST_REDIRECTIONS {
            let address = config.get_addr();
            let connecting = async {
                let socket = tokio::time::timeout(CONNECT, TcpStream::connect(&address)).await;
                let socket = socket.map_err(|_| "it does not answer".to_owned());
                let socket = socket.and_then(|socket| socket.map_err(|error| error.to_string()))?;
                drop(socket.set_nodelay(true));
                Ok(Client::connect(config.clone(), socket.compat_write()).await)
            };
            let connected: Result<_, String> = self.runtime.block_on(connecting);
            match connected.map_err(|error| AskError::Lost(format!("{place}: {error}")))? {
                Ok(client) => {
                    self.client = Some(client);
                    return Ok(());
                }
                Err(tiberius::error::Error::Routing { host, port }) => {
                    config.host(host);
                    config.port(port);
                }
                Err(error) => return Err(self.wrong(&error)),
            }
        }
        Err(AskError::Lost(format!("{place}: it sends from server to server")))
    }

    /// What the server says to a batch.
    fn sets(&mut self, batch: &str) -> Result<Vec<RowSet>, AskError> {
        if self.client.is_none() {
            self.connect()?;
        }
        let Some(client) = &mut self.client else { return Ok(Vec::new()) };
        let asking = async { client.simple_query(batch).await?.into_results().await };
        match self.runtime.block_on(asking) {
            Ok(sets) => Ok(sets.iter().filter_map(|rows| of_rows(rows)).collect()),
            Err(error) => {
                self.client = None;
                Err(self.wrong(&error))
            }
        }
    }

    /// Says what is wrong without the login, which messages of the server have in them.
    fn wrong(&self, error: &tiberius::error::Error) -> AskError {
        use tiberius::error::Error;
        let place = self.url.place(PORT);
        let told = match error {
            Error::Server(told) => told,
            Error::Tls(text) => {
                let text = text.split(" To connect anyway").next().unwrap_or_default();
                return AskError::Refused(format!(
                    "{place}: no TLS: {text}; name the file of the authority that signed it with \
                     ?ca=FILE, or believe any with ?trustServerCertificate=true"
                ));
            }
            error => return AskError::Lost(format!("{place}: {error}")),
        };
        let (code, text) = (told.code(), self.without_login(told.message()));
        let reason = match code {
            18456 | 18452 => "the login or its password is wrong".to_owned(),
            18470 | 18486 => "the login is disabled or locked".to_owned(),
            18487 | 18488 => "the password of the login has expired and must be changed".to_owned(),
            4060 => "the login may not open the database, or there is none of that name".to_owned(),
            40615 | 40914 => "the firewall of the server does not let this machine in".to_owned(),
            262 | 297 | 300 | 371 => {
                format!("{text} (error {code}); ask for: {}", self.grant())
            }
            // Of a server that starts, stops, moves or is busy.
            1205 | 6005 | 10928 | 10929 | 18451 | 40143 | 40197 | 40501 | 40613 | 49918..=49920 => {
                return AskError::Lost(format!("{place}: {text} (error {code})"));
            }
            _ => format!("{text} (error {code})"),
        };
        AskError::Refused(format!("{place}: {reason}"))
    }

    /// The right that a login needs.
    fn grant(&self) -> &'static str {
        match (self.kind.0.as_str(), self.kind.1) {
            (AZURE_DATABASE, _) => {
                "GRANT VIEW DATABASE STATE TO the user (in the database; basic tiers and pools want \
                 the server's role ##MS_ServerStateReader##)"
            }
            (AZURE_INSTANCE, _) | (_, 16..) => {
                "GRANT VIEW SERVER PERFORMANCE STATE TO the login (in master; VIEW SERVER STATE has \
                 it, too)"
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

fn login(url: &mut Url, args: &ObserveLiveArgs) -> Result<Login, CliError> {
    let wrong = |reason: &str| CliError::Refused(format!("--sqlserver: {reason}"));
    let has_token = args.token_file.is_some()
        || (url.login.is_none() && Secret::of_environment(TOKEN).is_some());
    if has_token {
        if url.login.is_some() || url.password.is_some() {
            return Err(wrong("a token says who asks: leave the login out of the URL"));
        }
        let file = args.token_file.clone();
        token(file.as_ref())?;
        return Ok(Login::Token { file });
    }
    let password = url.password("sqlserver", args.password_file.as_deref(), PASSWORD)?;
    let Some(login) = url.login.clone() else {
        return Err(wrong(&format!(
            "it names no login: sqlserver://LOGIN@HOST/DATABASE, or give a token in {TOKEN} or \
             with --token-file"
        )));
    };
    let Some(password) = password else {
        return Err(wrong(&format!(
            "there is no password: give it in {PASSWORD} or with --password-file"
        )));
    };
    Ok(Login::Password { login, password })
}

fn token(file: Option<&PathBuf>) -> Result<Secret, CliError> {
    match file {
        Some(path) => Secret::of_file(path),
        None => Secret::of_environment(TOKEN)
            .ok_or_else(|| CliError::Refused(format!("{TOKEN} is empty"))),
    }
}

impl Ask for SqlServer {
    fn begin(&mut self) -> Result<Greeting, AskError> {
        let sets = self.sets(WHO)?;
        let row = sets.first().and_then(|set| set.rows.first());
        let [edition, version] = row.map_or(&[][..], Vec::as_slice) else {
            return Err(AskError::Refused("it does not say its version".to_owned()));
        };
        let major = version.split('.').next().and_then(|major| major.parse().ok());
        self.kind = (edition.clone(), major.unwrap_or(0));
        // A right that is missing is said now, before there is a file.
        self.sets(SCRIPT)?;
        let about = [("server", self.url.place(PORT)), ("version", version.clone())];
        let about = about.map(|(what, is)| (what.to_owned(), is)).to_vec();
        let mut notes = Vec::new();
        if self.encryption == EncryptionLevel::NotSupported {
            notes.push("the password goes over the network as it is: encrypt=false".to_owned());
        }
        Ok(Greeting { about, notes })
    }

    fn ask(&mut self) -> Result<Answer, AskError> {
        self.sets(SCRIPT).map(Answer::Sets)
    }
}

/// Rows as text, without the times of the server: whoever asks has one clock for all.
fn of_rows(rows: &[Row]) -> Option<RowSet> {
    let first = rows.first()?;
    let is_kept = |data: &ColumnData<'_>| !matches!(data, ColumnData::DateTime2(_));
    let columns = first.cells().filter(|(_, data)| is_kept(data));
    let columns = columns.map(|(column, _)| column.name().to_owned()).collect();
    let fields = |row: &Row| {
        row.cells().filter(|(_, data)| is_kept(data)).map(|(_, data)| field(data)).collect()
    };
    Some(RowSet { columns, rows: rows.iter().map(fields).collect() })
}

/// A value as text; nothing for what is missing.
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
        // The script asks for no others.
        _ => String::new(),
    }
}
