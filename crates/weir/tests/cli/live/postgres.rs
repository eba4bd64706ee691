//! A real PostgreSQL.

use super::{Observed, Running, notes, shown};
use crate::common::{Place, run};
use crate::mount::postgres::{Postgres, Tools};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

const PASSWORD: &str = "s3cret-of-weir";

/// A cluster on a port of this machine, whose logins have passwords.
struct Cluster {
    tools: Tools,
    place: Place,
    port: u16,
}

impl Cluster {
    fn new() -> Option<Self> {
        let tools = Tools::find()?;
        let place = Place::new();
        fs::set_permissions(place.dir(), PermissionsExt::from_mode(0o755)).expect("a mode");
        let (status, cert) = (run(place.weir(&["cert", "tls"])), place.path("tls"));
        assert_eq!(status.2, Some(0), "{status:?}");
        place.file("password", PASSWORD);
        fs::create_dir(place.path("cluster")).expect("a folder");
        fs::set_permissions(cert.join("key.pem"), PermissionsExt::from_mode(0o600))
            .expect("a mode");
        fs::set_permissions(&cert, PermissionsExt::from_mode(0o755)).expect("a mode");
        if let Some((user, group)) = tools.user {
            for path in [place.path("cluster"), cert.join("key.pem")] {
                chown(path, Some(user), Some(group)).expect("an owner");
            }
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let cluster = Self { tools, place, port };
        let mut initdb = cluster.tools.command("initdb");
        initdb.arg("-D").arg(cluster.place.path("cluster"));
        initdb.arg(format!("--pwfile={}", cluster.place.path("password").display()));
        initdb.args([
            "-U",
            "keeper",
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--no-locale",
            "--no-sync",
        ]);
        let (_, stderr, code) = run(initdb);
        assert_eq!(code, Some(0), "{stderr}");
        Some(cluster)
    }

    fn start(&self) -> Postgres {
        let mut command = self.tools.command("postgres");
        command.arg("-D").arg(self.place.path("cluster"));
        let tls = self.place.path("tls");
        for setting in [
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            format!("port={}", self.port),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", tls.join("certificate.pem").display()),
            format!("ssl_key_file={}", tls.join("key.pem").display()),
            "track_io_timing=on".to_owned(),
            "fsync=off".to_owned(),
        ] {
            command.args(["-c", &setting]);
        }
        Postgres::start(command)
    }

    fn sql(&self, sql: &str) -> String {
        let mut psql = self.tools.command("psql");
        psql.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "keeper", "postgres"]);
        psql.args(["-XqtA", "-v", "ON_ERROR_STOP=1", "-c", sql]).env("PGPASSWORD", PASSWORD);
        let (stdout, stderr, code) = run(psql);
        assert_eq!(code, Some(0), "{stderr}");
        stdout
    }

    /// Waits until a count is not 0 any more.
    fn until(&self, sql: &str) {
        let is_there = (0..1000).any(|_| self.sql(sql).trim() != "0");
        assert!(is_there, "still nothing: {sql}");
    }

    fn url(&self, login: &str, options: &str) -> String {
        format!("postgres://{login}@127.0.0.1:{}/postgres{options}", self.port)
    }

    fn live(&self, url: &str, args: &[&str]) -> Command {
        let mut command = self
            .place
            .weir(&[&["observe", "--postgres", url, "--out", "pg.weirobs"], args].concat());
        command.env("WEIR_POSTGRES_PASSWORD", PASSWORD);
        command
    }
}

#[test]
fn its_counters_and_waits_are_those_of_its_views() {
    let Some(cluster) = Cluster::new() else { return };
    let server = cluster.start();
    cluster.sql("create role looker login password 's3cret-of-weir'");
    cluster.sql("create table t as select generate_series(1, 20000) as n");
    let mut running =
        Running::start(cluster.live(&cluster.url("looker", ""), &["--every", "100ms"]));
    running.until("GRANT pg_monitor");
    drop(running.interrupt());
    cluster.sql("grant pg_monitor to looker");
    let before: u64 = commits(&cluster);
    let running = Running::start(
        cluster.live(&cluster.url("looker", "?sslmode=disable"), &["--every", "100ms"]),
    );
    // Once it has asked, sessions do something, and one waits. What a session counted is told
    // when it ends, at the latest.
    let asked = "select count(*) from pg_stat_activity where application_name = 'weir' \
                 and query like '%pg_stat_database%'";
    cluster.until(asked);
    cluster.sql("update t set n = n");
    cluster.sql("select pg_sleep(1)");
    let (stdout, stderr, code) = running.interrupt();
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(!stderr.contains("looker") && !stderr.contains(PASSWORD), "{stderr}");
    let show = shown(&cluster.place, "pg.weirobs");
    assert_eq!((&show["source"], &show["is_complete"]), (&"live".into(), &true.into()));
    let version = show["about"]["postgres version"].as_str().expect("a version");
    assert!(cluster.sql("show server_version").starts_with(version));
    assert!(commits(&cluster) > before);
    let observed = Observed::open(&cluster.place, "pg.weirobs");
    observed.is_silent_of(&["looker", PASSWORD]);
    // The wait of the session in pg_sleep has its documented name.
    let waiting = observed.values("Timeout / PgSleep", "waiting");
    assert!(waiting.contains(&1), "{waiting:?}");
    let active = observed.values("host", "active_sessions");
    assert!(active.contains(&1), "{active:?}");
    let log = observed.values("host", "wal_bytes");
    // 20,000 rows were changed: more than 60 bytes of log each.
    assert!(log[log.len() - 1] - log[0] > 1_200_000, "{log:?}");
    let done = observed.values("postgres", "transactions");
    assert!(done[done.len() - 1] > done[0], "{done:?}");
    server.stop();
}

fn commits(cluster: &Cluster) -> u64 {
    let sql = "select xact_commit from pg_stat_database where datname = 'postgres'";
    cluster.sql(sql).trim().parse().expect("a number")
}

#[test]
fn a_server_that_is_gone_and_comes_again() {
    let Some(cluster) = Cluster::new() else { return };
    let server = cluster.start();
    let mut running =
        Running::start(cluster.live(&cluster.url("keeper", ""), &["--every", "100ms"]));
    // It is connected, and has asked for its first sample.
    let asks = "select count(*) from pg_stat_activity where application_name = 'weir' \
                and state = 'idle' and query like '%pg_stat_database%'";
    cluster.until(asks);
    server.stop();
    running.until("trying again");
    let server = cluster.start();
    running.until("it answers again after");
    let (stdout, stderr, code) = running.interrupt();
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let show = shown(&cluster.place, "pg.weirobs");
    assert!(
        notes(&show).contains("trying again") && notes(&show).contains("samples missed in all"),
        "{show}"
    );
    assert_eq!(show["is_complete"], true);
    server.stop();
}

#[test]
fn refused_logins_are_reported_without_their_name() {
    let Some(cluster) = Cluster::new() else { return };
    let server = cluster.start();
    let check = |mut command: Command, expect: &str| {
        command.env("WEIR_POSTGRES_PASSWORD", "wrong-s3cret");
        let (stdout, stderr, code) = run(command);
        assert!(stderr.contains(expect), "{stderr}");
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
        assert!(!stderr.contains("keeper") && !stderr.contains("s3cret"), "{stderr}");
        assert!(!cluster.place.path("pg.weirobs").exists());
    };
    check(cluster.live(&cluster.url("keeper", ""), &[]), "the login or its password is wrong");
    let anonymous = cluster.url("keeper", "").replace("keeper@", "");
    check(cluster.live(&anonymous, &[]), "it contains no login");
    let mode = cluster.url("keeper", "?sslmode=verify-ca");
    check(cluster.live(&mode, &[]), "there is no sslmode \"verify-ca\" here");
    // A certificate of another authority is none.
    let (_, stderr, code) = run(cluster.place.weir(&["cert", "others"]));
    assert_eq!(code, Some(0), "{stderr}");
    let others = cluster.url("keeper", "?sslmode=verify-full&sslrootcert=others/authority.pem");
    check(cluster.live(&others, &[]), "certificate");
    let own = cluster.url("keeper", "?sslmode=verify-full&sslrootcert=tls/authority.pem");
    let (stdout, stderr, code) = run(cluster.live(&own, &["--every", "100ms", "--for", "200ms"]));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    server.stop();
    let (_, stderr, code) = run(cluster.live(&cluster.url("keeper", ""), &[]));
    assert_eq!(code, Some(3), "{stderr}");
    assert!(
        stderr.contains(&format!("postgres: 127.0.0.1:{}/postgres: ", cluster.port)),
        "{stderr}"
    );
}
