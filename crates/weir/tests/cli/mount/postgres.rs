//! PostgreSQL on a mount: as fast as the volume allows, and nothing is lost in a crash.

use super::{Rig, must, volume_of};
use crate::common::run;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// Where its programs are, and who runs them: it does not want to be root.
pub(crate) struct Tools {
    bin: PathBuf,
    pub(crate) user: Option<(u32, u32)>,
}

impl Tools {
    const ALL: [&str; 5] = ["initdb", "postgres", "psql", "pgbench", "pg_amcheck"];

    /// Says aloud if they are not there. Where everything must run, they must be.
    #[expect(clippy::print_stdout, reason = "a test that is skipped says so aloud")]
    pub(crate) fn find() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let packaged = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut dirs: Vec<PathBuf> = packaged.map(|version| version.path().join("bin")).collect();
        dirs.sort();
        dirs.reverse();
        dirs.extend(std::env::split_paths(&path));
        let bin =
            dirs.into_iter().find(|dir| Self::ALL.iter().all(|name| dir.join(name).is_file()));
        let must = std::env::var_os("CI").as_deref() == Some(OsStr::new("true"));
        assert!(bin.is_some() || !must, "CI=true, and PostgreSQL is not installed");
        let Some(bin) = bin else {
            println!("skipped: needs PostgreSQL ({})", Self::ALL.join(", "));
            return None;
        };
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let user = |name: &str| {
            let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
            let mut ids = line.split(':').skip(2).map(str::parse);
            Some((ids.next()?.ok()?, ids.next()?.ok()?))
        };
        let user = geteuid().is_root().then(|| user("postgres").or_else(|| user("nobody")));
        Some(Self { bin, user: user.map(|found| found.expect("a user that is not root")) })
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// A mount of the volume `db`, and a cluster in it.
struct Bed {
    tools: Tools,
    rig: Rig,
    /// Settings of PostgreSQL at its start.
    settings: &'static [&'static str],
}

impl Bed {
    fn new(layout: &str, settings: &'static [&'static str]) -> Option<Self> {
        let tools = Tools::find()?;
        let rig = Rig::new(layout, &[])?;
        fs::create_dir(rig.place.path("sock")).expect("a folder");
        fs::set_permissions(rig.place.dir(), PermissionsExt::from_mode(0o755)).expect("a mode");
        if let Some((user, group)) = tools.user {
            for dir in [rig.place.path("sock"), rig.path("db")] {
                chown(dir, Some(user), Some(group)).expect("an owner");
            }
        }
        let bed = Self { tools, rig, settings };
        let mut initdb = bed.tools.command("initdb");
        initdb.arg("-D").arg(bed.rig.path("db/cluster"));
        initdb.args(["-U", "weir", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]);
        must(initdb);
        Some(bed)
    }

    /// Starts it; returns when it has recovered and accepts connections.
    fn start(&self) -> Postgres {
        let mut command = self.tools.command("postgres");
        command.arg("-D").arg(self.rig.path("db/cluster")).args(["-c", "listen_addresses="]);
        command.arg("-c");
        command.arg(format!("unix_socket_directories={}", self.rig.place.path("sock").display()));
        for setting in self.settings {
            command.args(["-c", setting]);
        }
        Postgres::start(command)
    }

    /// A program that connects to it.
    fn client(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.tools.command(program);
        command.arg("-h").arg(self.rig.place.path("sock")).args(["-U", "weir"]).args(args);
        command.env("PGDATABASE", "postgres");
        command
    }

    fn sql(&self, sql: &str) -> String {
        must(self.client("psql", &["-XqtA", "-v", "ON_ERROR_STOP=1", "-c", sql]))
    }
}

/// A running server; killed, with all that it started, if it is dropped.
pub(crate) struct Postgres {
    child: Option<Child>,
    talk: Option<JoinHandle<()>>,
}

impl Postgres {
    /// Starts it; returns when it has recovered and accepts connections.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).spawn().expect("postgres");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut said = String::new();
        loop {
            let line = lines.next().and_then(Result::ok);
            let line = line.unwrap_or_else(|| panic!("it did not start:\n{said}"));
            said = format!("{said}{line}\n");
            if line.contains("ready to accept connections") {
                break;
            }
        }
        let talk = thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child: Some(child), talk: Some(talk) }
    }

    fn pid(&self) -> Pid {
        let id = self.child.as_ref().expect("it runs").id();
        i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process")
    }

    pub(crate) fn stop(mut self) {
        kill_process(self.pid(), Signal::INT).expect("it runs");
        let status = self.child.take().expect("it runs").wait().expect("an end");
        assert_eq!(status.code(), Some(0));
        self.talk.take().expect("it talks").join().expect("a reader");
    }

    /// All its processes at once. Those that it started keep the other end of its stderr:
    /// once that is closed, they are gone.
    fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let id = child.id();
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process");
        // So that it starts no others meanwhile.
        let _ = kill_process(pid, Signal::STOP);
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let _ = kill_process(pid, Signal::KILL);
        for child in children.unwrap_or_default().split_whitespace() {
            let child = child.parse().ok().and_then(Pid::from_raw);
            let _ = kill_process(child.expect("a process"), Signal::KILL);
        }
        let _ = child.wait();
        if let Some(talk) = self.talk.take() {
            let _ = talk.join();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The load of a pgbench run on the volume.
#[derive(Debug)]
struct Measured {
    /// I/Os a second by the server's clock, from before pgbench starts until after it ends.
    iops: f64,
    transactions: f64,
    ios: f64,
    /// For how long its I/Os waited, by what held them.
    waits: Vec<(String, u64)>,
    /// The average number of I/Os that waited for the volume's IOPS.
    waiting: f64,
}

impl Measured {
    /// Returns whether most waits were for the volume's IOPS, at its cap except at the start.
    fn is_at(&self, cap: f64) -> bool {
        self.waits_for_operations() && self.iops >= 0.8 * cap
    }

    fn waits_for_operations(&self) -> bool {
        let longest = self.waits.iter().max_by_key(|(_, nanos)| *nanos);
        longest.is_some_and(|(held_by, _)| held_by == "disk_iops")
    }
}

/// The kernel's page cache knows nothing of the table, since it has just been mounted, and
/// PostgreSQL's own holds little of it: so a transaction reads a page of it. The index is in the
/// page cache, or the faster volume would need fewer reads for a transaction before long.
fn pgbench(bed: &Bed, kind: &[&str]) -> Measured {
    let index = bed.sql("select pg_relation_filepath('pgbench_accounts_pkey')");
    let index = bed.rig.path("db/cluster").join(index.trim());
    assert!(fs::read(index).expect("a file").len() > 10_000_000);
    let before = bed.rig.status();
    let text = must(bed.client("pgbench", &[&["-n", "-j", "2", "-T", "3"], kind].concat()));
    let after = bed.rig.status();
    let done = text
        .lines()
        .find_map(|line| line.strip_prefix("number of transactions actually processed: "));
    let done = done.and_then(|done| done.split('/').next()?.trim().parse().ok());
    let transactions = done.expect("a count");
    let of = |status: &Value| volume_of(status, "db").expect("the volume");
    let (old, new) = (of(&before), of(&after));
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    // The kernel writes gathered pages in I/Os of up to 1 MiB, which count several times.
    let ios = |volume: &Value| number(&volume["counted"]);
    let nanos = number(&after["uptime_ns"]) - number(&before["uptime_ns"]);
    #[expect(clippy::cast_precision_loss, reason = "statistics")]
    let (ios, seconds) = ((ios(&new) - ios(&old)) as f64, nanos as f64 / 1e9);
    let waits = new["waits_ns"].as_object().expect("waits").iter();
    let waits = waits.map(|(by, nanos)| (by.clone(), number(nanos) - number(&old["waits_ns"][by])));
    let waits: Vec<(String, u64)> = waits.collect();
    let held = waits.iter().find(|(by, _)| by == "disk_iops").map_or(0, |(_, nanos)| *nanos);
    #[expect(clippy::cast_precision_loss, reason = "statistics")]
    let waiting = held as f64 / nanos as f64;
    Measured { iops: ios / seconds, transactions, ios, waits, waiting }
}

/// Most measurements of a pair of tiers.
const TRIES: u32 = 8;
/// Sessions of pgbench.
const SESSIONS: &str = "64";

#[test]
fn transactions_follow_the_tier_of_the_volume() {
    let unlimited = "[[volume]]\nname = \"db\"\nsize = \"100 GiB\"\nunlimited = true\n";
    let settings = &[
        "shared_buffers=2MB",
        "synchronous_commit=on",
        "autovacuum=off",
        // No checkpoint while it is measured.
        "max_wal_size=4GB",
        "checkpoint_timeout=1h",
    ];
    let Some(mut bed) = Bed::new(unlimited, settings) else { return };
    let postgres = bed.start();
    must(bed.client("pgbench", &["-i", "-q", "-s", "20"]));
    bed.sql("checkpoint");
    postgres.stop();
    bed.rig.stop();
    // Updates whose commits share writes of the log, and reads only. The clients are numerous enough
    // that one always waits for the disk.
    let mut pair = |kind: &[&str]| {
        [("100 GiB", "P10"), ("1 TiB", "P30")].map(|(size, tier)| {
            let layout = format!(
                "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"db\"\nsize = \"{size}\"\n"
            );
            bed.rig.mount(&layout, &[]);
            assert_eq!(bed.rig.volume("db").expect("the volume")["tier"], tier);
            let postgres = bed.start();
            let measured = pgbench(&bed, kind);
            postgres.stop();
            bed.rig.stop();
            measured
        })
    };
    for kind in [["-N", "-c", SESSIONS], ["-S", "-c", SESSIONS]] {
        // Reads alone keep the slower one at its cap even on a slow machine, unless other programs
        // take its processors.
        let pairs = (0..TRIES).map(|_| pair(&kind)).map(|[p10, p30]| {
            println!("{kind:?}\nP10: {p10:?}\nP30: {p30:?}");
            (p10, p30)
        });
        // On a machine that is busy enough, no transaction ends in time, or the faster one is held back.
        let is_void = |(p10, p30): &(Measured, Measured)| {
            let transactions = p10.transactions.min(p30.transactions);
            let is_decided = p10.is_at(500.0) && p30.iops > 600.0;
            transactions < 1.0 || (kind[0] == "-S" && !is_decided)
        };
        let mut kept = pairs.skip_while(is_void);
        let undecided =
            || panic!("P10 was never at its cap with P30 above it: is the machine busy?");
        let (p10, p30) = kept.next().unwrap_or_else(undecided);
        follows_the_caps(&p10, &p30);
        if kind[0] == "-S" {
            is_held_by_its_own_cap(&p30, 5_000.0);
        }
    }
}

/// While a read waits for the cap, the volume has its cap in full. Each session has one read under way,
/// so a read waited for at least this share of the time.
fn is_held_by_its_own_cap(own: &Measured, cap: f64) {
    let share = own.waiting / SESSIONS.parse::<f64>().expect("a number");
    // Half of it, as the kernel may have read ahead.
    assert!(own.iops >= 0.5 * share.min(1.0) * cap, "{share:.2} of the time at {cap}: {own:?}");
}

/// P30 has ten times the IOPS of P10.
#[expect(clippy::print_stdout, reason = "what was not limited all the time is said")]
fn follows_the_caps(p10: &Measured, p30: &Measured) {
    // Whatever was saved up at the start is not a tenth of it.
    assert!(p10.iops <= 550.0 && p30.iops <= 5500.0, "{p10:?} {p30:?}");
    assert!(p10.waits_for_operations(), "{p10:?}");
    // Counts, as the rates are of different times: that of pgbench leaves out its connections.
    let per_io = |own: &Measured| own.transactions / own.ios;
    let (ratio, ios) = (per_io(p30) / per_io(p10), p30.iops / p10.iops);
    if p10.is_at(500.0) && p30.is_at(5000.0) {
        // The slower one spends more of its reads on pages that every transaction needs, so ten times the
        // I/Os bring more than ten times the transactions, or fewer if smaller groups share writes of the log.
        assert!(ratio >= 0.5, "{ios:.1} times the I/Os, {ratio:.2} of the transactions for each");
        // A page is in the page cache once it is read, and of 33,000 pages 16,500, as many as may be read
        // in three seconds, are read by 33,000 x ln 2 = 22,900 transactions.
        let is_bounded = |own: &&Measured| own.transactions <= own.ios * 1.39;
        assert!([p10, p30].iter().all(is_bounded), "{p10:?} {p30:?}");
    } else {
        // The limit is the disk's latency, with few clients, or this machine: a slow one decides nothing.
        println!("not limited all the time: {:.0} and {:.0} IOPS", p10.iops, p30.iops);
        assert!(ratio >= 0.25, "{ratio:.2} of the transactions for each I/O");
        assert!(!p10.is_at(500.0) || ios > 1.0, "{ios:.1} times the I/Os");
    }
}

/// Inserts ids one by one, each a transaction; returns those whose commit was acknowledged.
fn insert(mut psql: Command, ids: impl Iterator<Item = u64>, told: &Sender<()>) -> Vec<u64> {
    psql.stdin(Stdio::piped()).stderr(Stdio::null());
    let mut psql = psql.spawn().expect("psql");
    let mut input = psql.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(psql.stdout.take().expect("a pipe")).lines();
    let mut acknowledged = Vec::new();
    for id in ids {
        if writeln!(input, "insert into acknowledged values ({id});").is_err() {
            break;
        }
        match answers.next() {
            Some(Ok(answer)) if answer == "INSERT 0 1" => acknowledged.push(id),
            _ => break,
        }
        let _ = told.send(());
    }
    drop(input);
    let _ = psql.wait();
    acknowledged
}

#[test]
fn commits_survive_kills_of_the_database_and_the_mount() {
    const CLIENTS: u64 = 6;
    let layout = "[[volume]]\nname = \"db\"\nsize = \"10 GiB\"\nlimits = { iops = 2000 }\n";
    let settings = &["shared_buffers=4MB", "max_wal_size=64MB", "checkpoint_timeout=30s"];
    let Some(mut bed) = Bed::new(layout, settings) else { return };
    let mut postgres = bed.start();
    bed.sql("create table acknowledged (id bigint primary key)");
    must(bed.client("pgbench", &["-i", "-q", "-s", "2"]));
    let mut known = BTreeSet::new();
    let mut seed: u64 = 0x5eed;
    for round in 0..4_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let commits = 100 + (seed >> 33) % 400;
        println!("round {round}: seed {seed:#x}, a kill after {commits} commits");
        // Others change much more, so that there are pages to be torn.
        let load = bed.client("pgbench", &["-n", "-N", "-c", "4", "-T", "60"]);
        let load = thread::spawn(move || run(load));
        let (told, acknowledgements) = channel();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let psql = bed.client("psql", &["-XtA", "-v", "ON_ERROR_STOP=1"]);
                let ids = (0..).map(move |n| (round * CLIENTS + client) << 32 | n);
                let told = told.clone();
                thread::spawn(move || insert(psql, ids, &told))
            })
            .collect();
        drop(told);
        (0..commits).for_each(|_| acknowledgements.recv().expect("the load goes on"));
        let the_mount = round % 2 == 0;
        if the_mount {
            bed.rig.kill();
        }
        postgres.kill();
        for client in clients {
            known.extend(client.join().expect("a client"));
        }
        let _ = load.join().expect("a load");
        if the_mount {
            bed.rig.mount(layout, &[]);
        }
        postgres = bed.start();
        let found = bed.sql("select id from acknowledged");
        let found: BTreeSet<u64> = found.lines().map(|id| id.parse().expect("an id")).collect();
        let lost: Vec<_> = known.difference(&found).collect();
        assert!(lost.is_empty(), "round {round}: lost {lost:?}");
        // At most one of each client was committed and not acknowledged.
        assert!(
            found.len() - known.len() <= usize::try_from((round + 1) * CLIENTS).expect("small")
        );
        known = found;
        let check = ["--install-missing", "--heapallindexed", "-d", "postgres"];
        assert_eq!(must(bed.client("pg_amcheck", &check)), "");
    }
    postgres.stop();
    bed.rig.stop();
}
