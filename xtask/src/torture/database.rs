//! Databases in a mount. Each commit is a promise: after a kill, a database recovers, all committed
//! transactions are there, each once and whole, and its own check finds nothing.

mod postgres;
mod table;

use super::mount::{self, Mount};
use super::server::{Served, lost};
use super::session::Session;
use super::system::End;
use super::writers::{self, Progress};
use super::{Campaign, ROUNDS, Tally};
use crate::error::XtaskError;
use postgres::Postgres;
use std::fs;
use table::Table;
use weir_random::Rng;

/// Journal modes of SQLite.
const JOURNALS: [&str; 5] = ["wal", "delete", "wal", "truncate", "persist"];

const LACKS_POSTGRES: &str = "PostgreSQL is skipped: it needs initdb, postgres, psql and pg_amcheck in one \
                              folder, in /usr/lib/postgresql/*/bin or PATH, and as root the user postgres; \
                              SQLite goes on without it";

/// A database with its only client.
struct Database {
    engine: Engine,
    /// The volume and the name.
    place: (String, String),
    table: Table,
}

enum Engine {
    Sqlite { journal: &'static str },
    Postgres(Postgres),
}

/// Returns what this machine lacks.
pub(super) fn lacks() -> Option<&'static str> {
    let python = || (!Session::has_sqlite()).then_some("it needs python3 with the module sqlite3");
    mount::lacks().or_else(python)
}

/// Returns what this machine lacks for a part of it.
pub(super) fn partly_lacks() -> Option<&'static str> {
    Postgres::find().is_none().then_some(LACKS_POSTGRES)
}

/// Runs the rounds of a system.
pub(super) fn live(
    rng: &mut Rng,
    campaign: &Campaign<'_>,
    tally: &mut Tally,
) -> Result<String, XtaskError> {
    let limits = match rng.below(3) {
        0 => format!("limits = {{ iops = {} }}", 2_000 << rng.below(4)),
        _ => "unlimited = true".to_owned(),
    };
    let volume = |at| format!("[[volume]]\nname = \"v{at}\"\nsize = \"1 GiB\"\n{limits}\n");
    let path = campaign.folder.join("layout.toml");
    let layout = format!("[host]\nunlimited = true\n{}{}", volume(0), volume(1));
    fs::write(&path, layout).map_err(XtaskError::file("writing", &path))?;
    let mount = Mount::new(campaign.folder)?;
    let mut databases = prepare(rng, campaign)?;
    let mut journals = rng.below(JOURNALS.len() as u64);
    for round in 0..ROUNDS {
        if (campaign.is_over)(tally) {
            break;
        }
        let mut served = mount.serve(campaign)?;
        for database in &mut databases {
            // Each database takes the modes in turn.
            journals += 1;
            database.start(&mount, round == 0, journals)?;
        }
        let end = if rng.chance(10) { End::Stop } else { End::Kill };
        let most = if campaign.is_first_turn { 40 } else { 400 };
        databases = load(&mount, &mut served, databases, 10 + rng.below(most), end)?;
        databases.iter_mut().for_each(|own| own.end(end));
        if end == End::Stop {
            served.stop()?;
        } else {
            mount.clear();
        }
        tally.ended(end);
        let served = mount.serve(campaign)?;
        for database in &mut databases {
            tally.writes += database.table.take_committed();
            tally.promises += database.recover(&mount)?;
        }
        served.stop()?;
    }
    let postgres = databases.iter().filter(|own| matches!(own.engine, Engine::Postgres(_))).count();
    let words = if limits.starts_with("un") { "without limits" } else { "limited" };
    Ok(format!("{} SQLite, {postgres} PostgreSQL, {words}", databases.len() - postgres))
}

fn prepare(rng: &mut Rng, campaign: &Campaign<'_>) -> Result<Vec<Database>, XtaskError> {
    let new = |at: u64, engine: Engine| Database {
        engine,
        place: (format!("v{}", at % 2), format!("database-{at}")),
        table: Table::default(),
    };
    let sqlite = |at: u64| new(at, Engine::Sqlite { journal: JOURNALS[0] });
    let mut databases: Vec<_> = (0..rng.within(1, 3)).map(sqlite).collect();
    if let Some(programs) = Postgres::find() {
        let server = Postgres::prepare(programs, campaign.folder)?;
        databases.push(new(databases.len() as u64, Engine::Postgres(server)));
    }
    Ok(databases)
}

/// Commits transactions until there are some answers, and ends the server.
fn load(
    mount: &Mount,
    served: &mut Served,
    databases: Vec<Database>,
    answers: u64,
    end: End,
) -> Result<Vec<Database>, XtaskError> {
    let write = |own: &mut Database, progress: &Progress| own.write(mount, progress);
    let ended = writers::run(served, databases, answers, end, write)?;
    ended.sound(end, |database, what| format!("{}: {what}", database.words()))
}

impl Database {
    fn words(&self) -> String {
        let (volume, name) = &self.place;
        match &self.engine {
            Engine::Sqlite { journal } => format!("{volume}/{name} (SQLite, {journal})"),
            Engine::Postgres(_) => format!("{volume}/{name} (PostgreSQL)"),
        }
    }

    fn lost(&self, what: &str) -> XtaskError {
        lost(&format!("{}: {what}", self.words()))
    }

    /// Starts its server, and makes its table if there is none.
    fn start(&mut self, mount: &Mount, is_new: bool, turn: u64) -> Result<(), XtaskError> {
        let path = mount.dir.join(&self.place.0).join(&self.place.1);
        let started = match &mut self.engine {
            Engine::Sqlite { journal } => {
                let at = usize::try_from(turn % JOURNALS.len() as u64).unwrap_or(0);
                *journal = JOURNALS[at];
                Ok(())
            }
            Engine::Postgres(server) if is_new => {
                server.create(&path).and_then(|()| server.start(&path))
            }
            Engine::Postgres(server) => server.start(&path),
        };
        let made = started.and_then(|()| match is_new {
            true => self.open(mount)?.ask(Table::MAKE).map(drop),
            false => Ok(()),
        });
        made.map_err(|what| self.lost(&what))
    }

    fn open(&self, mount: &Mount) -> Result<Session, String> {
        let path = mount.dir.join(&self.place.0).join(&self.place.1);
        match &self.engine {
            Engine::Sqlite { journal } => Session::sqlite(&path, journal),
            Engine::Postgres(server) => server.open(),
        }
    }

    /// Commits transactions until the server is gone.
    fn write(&mut self, mount: &Mount, progress: &Progress) -> Result<(), String> {
        let mut session = self.open(mount)?;
        while !progress.is_over() {
            let sql = self.table.next();
            session.ask(&sql)?;
            self.table.commit();
            progress.count();
        }
        Ok(())
    }

    /// Ends its server, which cannot go on if Weir was killed.
    fn end(&mut self, end: End) {
        if let Engine::Postgres(server) = &mut self.engine {
            server.end(end == End::Stop);
        }
    }

    /// Recovers it, and checks its content. Returns the number of rows that had a promise.
    fn recover(&mut self, mount: &Mount) -> Result<u64, XtaskError> {
        let path = mount.dir.join(&self.place.0).join(&self.place.1);
        if let Engine::Postgres(server) = &mut self.engine {
            server
                .start(&path)
                .map_err(|what| lost(&format!("PostgreSQL does not recover: {what}")))?;
        }
        let checked = self.check(mount);
        self.end(End::Stop);
        checked.map_err(|what| self.lost(&what))
    }

    fn check(&mut self, mount: &Mount) -> Result<u64, String> {
        let mut session = self.open(mount)?;
        match &self.engine {
            Engine::Sqlite { .. } => {
                let said = session.ask("pragma integrity_check")?;
                if said != ["ok"] {
                    return Err(format!("integrity_check: {}", said.join("; ")));
                }
            }
            Engine::Postgres(server) => server.amcheck()?,
        }
        let [last] = &session.ask(Table::LAST)?[..] else {
            return Err("the row with the last transaction is not there once".to_owned());
        };
        let last = last.parse().map_err(|_| format!("the last transaction is {last:?}"))?;
        self.table.check(last, &session.ask(Table::ROWS)?)
    }
}
