//! `weir top` in a pseudo terminal, and `weir status --watch`.

use crate::common::{Place, run};
use crate::terminal::InTerminal;
use crate::tools::{self, needs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use weir_top::screen::Screen;

const LAYOUT: &str = "edition = \"azure-now\"\n[[volume]]\nname = \"data\"\ntier = \"P10\"\n";
const DOWN: &str = "\x1b[B";

fn signal(id: u32, signal: Signal) {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, signal).expect("it runs");
}

#[test]
fn a_tier_is_changed_by_keys_and_the_terminal_is_restored() {
    needs!("setsid");
    let place = Place::new();
    let server = place.serve(LAYOUT, &[]);
    let mut client = place.open("data");
    let top = place.weir(&["top", "--interval", "100ms"]);
    let mut terminal = InTerminal::start(&top, (160, 30));
    terminal.wait_for("No requests in the last");
    let line = terminal.line("data").expect("a line");
    assert!(line.contains("P10") && line.contains(" 3,500 "), "{line}");
    client.write(0, &[7; 4096]).expect("a write");
    terminal.wait_for("the busiest, data, does");
    terminal.press(DOWN);
    terminal.press("t");
    terminal.wait_for("data has P10. New tier");
    terminal.press("P99\r");
    terminal.wait_for("Change data from P10 to P99?");
    terminal.press("y");
    terminal.wait_for("data is unchanged: ");
    terminal.press("tP30\r");
    terminal.wait_for("Change data from P10 to P30?");
    terminal.press("y");
    terminal.wait_for("data has the limits of P30");
    terminal.wait_for("data: tier P30, was P10");
    let line = terminal.line("data").expect("a line");
    assert!(line.contains("P30") && line.contains(" 5,000 "), "{line}");
    terminal.press("\r");
    terminal.wait_for("disk_iops                     5,000");
    terminal.resize(50, 20);
    terminal.wait_for("The terminal has 50 x 20 cells");
    terminal.resize(100, 30);
    terminal.wait_for("data: P30, 128 GiB");
    terminal.press("q");
    let (status, text) = terminal.end();
    assert_eq!((status.code(), text.trim()), (Some(0), ""));
    let (listed, _, _) = run(place.weir(&["volume", "list", "--output", "csv"]));
    assert!(listed.contains("data,host,P30,"), "{listed}");
    drop(client);
    server.stop();
}

#[test]
fn top_waits_for_a_server_that_stopped_and_ends_on_signals() {
    needs!("setsid");
    let place = Place::new();
    let server = place.serve(LAYOUT, &[]);
    let top = place.weir(&["top", "control.sock", "--interval", "100ms"]);
    let mut terminal = InTerminal::start(&top, (100, 30));
    terminal.wait_for("No requests in the last");
    // A server that hangs is not running, either.
    signal(server.id(), Signal::STOP);
    terminal.wait_for("The server does not answer: no answer within 3 s.");
    signal(server.id(), Signal::CONT);
    terminal.wait_for("No requests in the last");
    server.stop();
    terminal.wait_for("The server does not answer: ");
    terminal.wait_for("NO ANSWER  ");
    terminal.wait_for("Waiting for it; q quits.");
    let server = place.serve(LAYOUT, &[]);
    terminal.wait_for(&format!("server: process {} answers now", server.id()));
    terminal.wait_for("No requests in the last");
    signal(terminal.id(), Signal::TERM);
    let (status, text) = terminal.end();
    assert_eq!((status.code(), text.trim()), (Some(0), ""));
    let mut terminal = InTerminal::start(&top, (100, 30));
    terminal.wait_for("NAME");
    // Ctrl-C is a key in this mode.
    terminal.press("\x03");
    assert_eq!(terminal.end().0.code(), Some(0));
    server.stop();
    // At the start, a server must answer.
    let (status, text) = InTerminal::start(&top, (200, 30)).end();
    assert_eq!(status.code(), Some(3));
    assert!(text.contains("weir: no server answers at control.sock: "), "{text}");
}

#[test]
fn a_panic_restores_the_terminal() {
    const PANICS: &str = "WEIR_TEST_PANICS";
    if std::env::var_os(PANICS).is_some() {
        // This is the program in the terminal. Only the hook may restore it.
        std::mem::forget(Screen::enter().expect("a terminal"));
        panic!("on purpose");
    }
    needs!("setsid");
    let mut program = Command::new(std::env::current_exe().expect("this program"));
    program.args(["--exact", "top::a_panic_restores_the_terminal", "--nocapture"]);
    program.env(PANICS, "yes").current_dir(std::env::temp_dir());
    let (status, text) = InTerminal::start(&program, (100, 30)).end();
    assert!(!status.success() && text.contains("on purpose"), "{text}");
}

#[test]
fn top_needs_a_terminal() {
    let place = Place::new();
    let (stdout, stderr, code) = run(place.weir(&["top"]));
    let expect = "weir: stdout is not a terminal; use weir status --watch\n";
    assert_eq!((stdout.as_str(), stderr.as_str(), code), ("", expect, Some(2)));
    let (_, stderr, code) = run(place.weir(&["top", "--interval", "1ms"]));
    assert_eq!(stderr, "weir: --interval 1 ms: must be from 100ms to 1h\n");
    assert_eq!(code, Some(2));
}

#[test]
fn a_watched_status_is_a_block_or_a_line_for_each_interval() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &[]);
    let mut child = place.weir(&["status", "--watch", "20ms"]).spawn().expect("a program");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for _ in 0..3 {
        let time = lines.next().expect("a line").expect("text");
        assert!(time.len() == 20 && time.starts_with("20") && time.ends_with('Z'), "{time}");
        // The tables follow, with an empty line after each.
        let mut own = lines.by_ref().map(|line| line.expect("text"));
        let first: Vec<String> = own.by_ref().take_while(|line| !line.is_empty()).collect();
        assert!(first[0].trim_start().starts_with("volume "), "{first:?}");
        assert!(first[1].trim_start().starts_with("data "), "{first:?}");
        let second: Vec<String> = own.by_ref().take_while(|line| !line.is_empty()).collect();
        assert!(second[0].trim_start().starts_with("bursting "), "{second:?}");
        let third: Vec<String> = own.take_while(|line| !line.is_empty()).collect();
        assert!(third[0].trim_start().starts_with("export "), "{third:?}");
    }
    signal(child.id(), Signal::INT);
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    let mut child =
        place.weir(&["status", "--watch", "20ms", "-o", "json"]).spawn().expect("a program");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut document = || -> Value {
        serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON")
    };
    let (first, second) = (document(), document());
    for one in [&first, &second] {
        assert_eq!(one["hosts"][0]["volumes"][0]["name"], "data");
        assert!(one["time"].as_str().is_some_and(|time| time.len() == 20), "{one}");
    }
    assert!(first["uptime_ns"].as_u64() < second["uptime_ns"].as_u64());
    server.stop();
    // It ends with the server.
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert_eq!(said, "the server has stopped\n");
}

#[test]
fn a_watched_status_ends_with_its_reader_and_refuses_other_formats() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &[]);
    let mut child = place.weir(&["status", "--watch", "10ms"]).spawn().expect("a program");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    let refused = |args: &[&str], expect: &str| {
        let (_, stderr, code) = run(place.weir(&[&["status", "--watch"], args].concat()));
        assert!(code == Some(2) && stderr.contains(expect), "{stderr}");
    };
    refused(&["-o", "csv"], "--watch: prints text or json; use --output json");
    refused(&["2h"], "--watch 2 h: must be at most 1 h");
    refused(&["--interval", "1s"], "cannot be used with");
    server.stop();
    let (_, stderr, code) = run(place.weir(&["status", "--watch"]));
    assert!(code == Some(3) && stderr.contains("no server answers at control.sock"), "{stderr}");
}
