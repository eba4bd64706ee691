//! The client of SQL Server, against a test double that speaks TDS: what it sends, what it makes
//! of answers, and what it says when it may not. That real servers take the script is not shown
//! here.

use super::tds_double::{Double, Reply, Value};
use super::{Observed, Running, entity, notes, shown};
use crate::common::{Place, run};
use std::process::Command;

const PASSWORD: &str = "s3cret-of-weir";

fn number(number: i64) -> Value {
    Value::Number(Some(number))
}

fn text(text: &'static str) -> Value {
    Value::Text(Some(text))
}

fn who(edition: i64, version: &'static str) -> Reply {
    Reply::Sets(vec![(vec!["edition", "version"], vec![vec![number(edition), text(version)]])])
}

fn is_who(batch: &str) -> bool {
    batch.contains("ProductVersion")
}

/// Result sets like those of the script, with counters that rise by each call.
fn counted(call: i64) -> Reply {
    let files = vec![
        "collection_time_utc",
        "database_name",
        "file_name",
        "file_id",
        "type_desc",
        "physical_name",
        "size_pages",
        "max_size",
        "growth",
        "is_percent_growth",
        "num_of_reads",
        "num_of_bytes_read",
        "io_stall_read_ms",
        "io_stall_queued_read_ms",
        "num_of_writes",
        "num_of_bytes_written",
        "io_stall_write_ms",
        "io_stall_queued_write_ms",
        "size_on_disk_bytes",
    ];
    let data = vec![
        Value::Time,
        text("sales"),
        text("sales_data"),
        number(1),
        text("ROWS"),
        text("E:\\sales.mdf"),
        number(1024),
        number(-1),
        number(10),
        Value::Bit(true),
        number(100 * call),
        number(819_200 * call),
        number(300 * call),
        number(200 * call),
        number(7),
        Value::Number(None),
        number(5),
        number(0),
        number(8_388_608),
    ];
    let waits = vec!["collection_time_utc", "wait_type", "waiting_tasks_count", "wait_time_ms"];
    let wait = vec![Value::Time, text("IO_QUEUE_LIMIT"), number(50 * call), number(200 * call)];
    let counters = vec![
        "collection_time_utc",
        "object_name",
        "counter_name",
        "instance_name",
        "cntr_value",
        "cntr_type",
    ];
    let batches = vec![
        Value::Time,
        text("SQLServer:SQL Statistics"),
        text("Batch Requests/sec"),
        Value::Text(None),
        number(1000 * call),
        number(272_696_576),
    ];
    let limits = vec!["collection_time_utc", "instance_max_log_rate", "volume_local_iops"];
    let limit = vec![Value::Time, number(50_331_648), number(32_000)];
    Reply::Sets(vec![
        (waits, vec![wait]),
        (files, vec![data]),
        (counters, vec![batches]),
        (limits, vec![limit]),
    ])
}

/// A server that counts.
fn counting() -> Double {
    let mut call = 0;
    Double::start(PASSWORD, move |batch| {
        if is_who(batch) {
            return who(8, "12.0.2000.8");
        }
        call += 1;
        counted(call)
    })
}

fn url(double: &Double, login: &str) -> String {
    format!("sqlserver://{login}@{}/master?encrypt=false", double.address)
}

fn live(place: &Place, url: &str, args: &[&str]) -> Command {
    let all = [&["observe", "--sqlserver", url, "--out", "s.weirobs"], args].concat();
    let mut command = place.weir(&all);
    command.env("WEIR_SQLSERVER_PASSWORD", PASSWORD);
    command
}

#[test]
fn files_waits_counters_and_limits_as_an_import_has_them() {
    let (place, double) = (Place::new(), counting());
    let live = live(&place, &url(&double, "looker"), &["--every", "100ms", "--for", "300ms"]);
    let (stdout, stderr, code) = run(live);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.ends_with("; complete\n"), "{stdout}");
    assert!(!stderr.contains("looker") && !stderr.contains(PASSWORD), "{stderr}");
    let show = shown(&place, "s.weirobs");
    let samples = show["samples"].as_u64().expect("a count");
    assert!((2..=4).contains(&samples), "{show}");
    assert_eq!(show["about"]["sqlserver version"], "12.0.2000.8");
    assert_eq!(show["about"]["sqlserver server"], format!("{}/master", double.address));
    let file = entity(&show, "files", "sales_data");
    assert_eq!(file["role"], "data");
    let observed = Observed::open(&place, "s.weirobs");
    observed.is_silent_of(&["looker", PASSWORD]);
    // The first call was to see whether it may ask.
    assert_eq!(observed.values("sales_data", "num_of_reads")[..2], [200, 300]);
    assert_eq!(observed.values("host", "batch_requests")[..2], [2000, 3000]);
    assert_eq!(observed.values("IO_QUEUE_LIMIT", "waiting_tasks_count")[..2], [100, 150]);
    // In thousandths of milliseconds.
    assert_eq!(observed.values("sales_data", "io_stall_queued_read_ms")[..2], [400_000, 600_000]);
    assert_eq!(observed.number("host", "log_bytes_per_s_limit"), Some(50_331_648));
    assert_eq!(observed.number("sales_data", "growth_percent"), Some(10));
    assert!(!notes(&show).contains("not used"), "{show}");
    let logins = double.logins.lock().expect("logins");
    assert_eq!(logins.len(), 1, "one connection for all");
    assert!(logins[0].is_read_only, "{logins:?}");
    assert_eq!((logins[0].program.as_str(), logins[0].database.as_str()), ("weir", "master"));
    let (script, _, _) = run(place.weir(&["observe", "script", "--sqlserver"]));
    let batches = double.batches.lock().expect("batches");
    assert!(batches.iter().all(|batch| is_who(batch) || *batch == script), "{batches:?}");
}

#[test]
fn missing_permissions_are_reported_with_the_grant() {
    let check =
        |edition: i64, version: &'static str, number: i32, said: &'static str, expect: &str| {
            let place = Place::new();
            let double = Double::start(PASSWORD, move |batch| match is_who(batch) {
                true => who(edition, version),
                false => Reply::Error { number, class: 14, text: said },
            });
            let (stdout, stderr, code) = run(live(&place, &url(&double, "looker"), &[]));
            assert!(stderr.contains(expect), "{stderr}");
            assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
            assert!(!stderr.contains("looker") && !place.path("s.weirobs").exists(), "{stderr}");
        };
    let denied = "VIEW SERVER STATE permission was denied on object 'server', database 'master'.";
    let may_not = "The user does not have permission to perform this action.";
    check(3, "15.0.4000.1", 300, denied, "GRANT VIEW SERVER STATE TO the login (in master)");
    check(3, "15.0.4000.1", 297, may_not, "(error 297); ask for: GRANT VIEW SERVER STATE");
    check(3, "16.0.1000.6", 300, denied, "GRANT VIEW SERVER PERFORMANCE STATE TO the login");
    check(5, "12.0.2000.8", 262, may_not, "GRANT VIEW DATABASE STATE TO the user");
    let other = "Invalid object name 'x', says 'looker'.";
    check(3, "15.0.4000.1", 208, other, "Invalid object name 'x', says '***'. (error 208)");
}

#[test]
fn a_wrong_password_ends_it_at_once_and_is_not_said() {
    let (place, double) = (Place::new(), counting());
    let mut command = live(&place, &url(&double, "looker"), &[]);
    command.env("WEIR_SQLSERVER_PASSWORD", "wrong-s3cret");
    let (stdout, stderr, code) = run(command);
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    assert!(stderr.contains("the login or its password is wrong"), "{stderr}");
    assert!(!stderr.contains("looker") && !stderr.contains("s3cret"), "{stderr}");
    assert_eq!(double.logins.lock().expect("logins").len(), 1, "once");
}

#[test]
fn passwords_of_a_url_and_of_a_file() {
    let (place, double) = (Place::new(), counting());
    place.file("password", "s3cret-of-weir\n");
    let ways: [(&str, &[&str]); 2] =
        [("looker:s3cret%2Dof-weir", &[]), ("looker", &["--password-file", "password"])];
    for (login, args) in ways {
        let args = [args, &["--every", "100ms", "--for", "100ms"]].concat();
        let mut command = live(&place, &url(&double, login), &args);
        let (_, stderr, code) = run({
            command.env_remove("WEIR_SQLSERVER_PASSWORD");
            command
        });
        assert_eq!(code, Some(0), "{stderr}");
    }
    let mut command = live(&place, &url(&double, "looker"), &[]);
    command.env_remove("WEIR_SQLSERVER_PASSWORD");
    let (_, stderr, code) = run(command);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("give it in WEIR_SQLSERVER_PASSWORD or with --password-file"),
        "{stderr}"
    );
}

#[test]
fn a_connection_that_breaks_is_made_again_and_the_gap_noted() {
    let place = Place::new();
    let mut call = 0;
    let double = Double::start(PASSWORD, move |batch| {
        if is_who(batch) {
            return who(3, "15.0.4000.1");
        }
        call += 1;
        if call == 4 { Reply::Hangup } else { counted(call) }
    });
    let live = live(&place, &url(&double, "looker"), &["--every", "100ms"]);
    let mut running = Running::start(live);
    running.until("trying again");
    running.until("it answers again after");
    let (stdout, stderr, code) = running.interrupt();
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(double.logins.lock().expect("logins").len(), 2);
    let show = shown(&place, "s.weirobs");
    assert!(
        notes(&show).contains("trying again") && notes(&show).contains("samples missed"),
        "{show}"
    );
}

/// The double has no TLS, so a client that requires TLS gives up.
#[test]
fn tls_is_not_given_up_silently() {
    let (place, double) = (Place::new(), counting());
    let check = |url: String, args: &[&str], code: i32, expect: &str| {
        let (stdout, stderr, found) = run(live(&place, &url, args));
        assert!(stderr.contains(expect), "{url}: {stderr}");
        assert_eq!((stdout.as_str(), found), ("", Some(code)), "{stderr}");
        assert!(!stderr.contains(PASSWORD) && !stderr.contains("looker"), "{stderr}");
    };
    let plain = url(&double, "looker");
    let with = |encrypt: &str| plain.replace("encrypt=false", encrypt);
    check(with(""), &[], 3, "127.0.0.1");
    assert_eq!(double.logins.lock().expect("logins").len(), 0, "no password without TLS");
    check(with("encrypt=maybe"), &[], 2, "encrypt is strict, true, login");
    check(with("colour=red"), &[], 2, "there is no option \"colour\"");
    place.file("token", "ey.token\n");
    let token = plain.replace("looker@", "");
    check(token, &["--token-file", "token"], 2, "a token is not sent without TLS");
    check(plain, &["--token-file", "token"], 2, "a token identifies the login");
}
