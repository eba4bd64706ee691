//! An observation of a running system equals an import of the same answers.

use weir_import::live::{Answer, Feed, Recorder, RowSet};
use weir_observe::{Header, Observation, Source, SourceKind};
use weir_units::{Instant, Span};

fn header() -> Header {
    let kind = SourceKind::Other("live".to_owned());
    let source = Source { kind, by: "test".to_owned(), about: Default::default() };
    Header { start_unix_ns: Some(1_000_000_000_000_000_000), ..Header::new(source) }
}

fn set(columns: &str, rows: &[&str]) -> RowSet {
    let fields = |line: &str| line.split(',').map(str::to_owned).collect();
    RowSet { columns: fields(columns), rows: rows.iter().map(|row| fields(row)).collect() }
}

/// The values of `entity` `metric`, by the samples.
#[track_caller]
fn values(observation: &Observation, name: &str, metric: &str) -> Vec<Option<i64>> {
    let contents = observation.contents();
    let at = contents.entities.iter().position(|entity| entity.name == name);
    let at = at.unwrap_or_else(|| panic!("no {name}"));
    let id = weir_observe::EntityId(u32::try_from(at).expect("few"));
    let id = contents.find(id, metric).unwrap_or_else(|| panic!("{name} has no {metric}"));
    observation.column(id).expect("a column").iter().collect()
}

const WAITS: &str = "wait_type,waiting_tasks_count,wait_time_ms";
const SESSIONS: &str = "wait_event_type,wait_event,state,sessions";

#[test]
fn several_systems_in_one_observation() {
    let mut recorder = Recorder::new(Vec::new(), &header()).expect("a header");
    let mut feeds = [
        Feed::sqlserver("sqlserver", "db1"),
        Feed::postgres("postgres", "host"),
        Feed::diskstats("diskstats"),
    ];
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    let mut take = |place: usize, ms, answer| {
        let feeds: &mut [Feed] = &mut feeds;
        recorder.take(&mut feeds[place], at(ms), answer, |_, _| {}).expect("an answer");
    };
    let disks = |reads| Answer::Diskstats(format!("8 0 sda {reads} 0 80 5 0 0 0 0 0 9 9\n"));
    take(0, 1, Answer::Sets(vec![set(WAITS, &["WRITELOG,5,12"])]));
    take(1, 2, Answer::Sets(vec![set(SESSIONS, &["IO,DataFileRead,active,3"])]));
    take(2, 3, disks(10));
    take(0, 1001, Answer::Sets(vec![set(WAITS, &["WRITELOG,6,15", "PAGEIOLATCH_SH,1,2"])]));
    // There are no sessions, so none waits.
    take(1, 1002, Answer::Sets(vec![set(SESSIONS, &[])]));
    take(2, 1003, disks(30));
    recorder.note(at(1003), "a note").expect("written");
    let (bytes, notes) =
        recorder.finish(&mut feeds, vec!["the end".to_owned()], true).expect("an end");
    assert_eq!(notes, ["the end"]);
    let observation = Observation::read(&bytes[..]).expect("an observation");
    let times: Vec<_> = observation.times.iter().map(|at| at.nanos() / 1_000_000).collect();
    assert_eq!(times, [1, 2, 3, 1001, 1002, 1003]);
    let none = None;
    let tasks = values(&observation, "WRITELOG", "waiting_tasks_count");
    assert_eq!(tasks, [Some(5), none, none, Some(6), none, none]);
    let late = values(&observation, "PAGEIOLATCH_SH", "wait_time_ms");
    assert_eq!(late, [none, none, none, Some(2000), none, none]);
    let waiting = values(&observation, "IO / DataFileRead", "waiting");
    assert_eq!(waiting, [none, Some(3), none, none, Some(0), none]);
    let reads = values(&observation, "sda", "reads");
    assert_eq!(reads, [none, none, Some(10), none, none, Some(30)]);
    let hosts = observation.contents().entities.iter();
    let hosts: Vec<_> = hosts.filter(|e| e.parent.is_none()).map(|e| e.name.as_str()).collect();
    assert_eq!(hosts, ["db1", "host"], "what is on this machine is on one host");
    assert!(observation.notes.iter().any(|note| note.text == "a note"), "{:?}", observation.notes);
}

#[test]
fn an_unexpected_answer_is_rejected() {
    let check = |mut feed: Feed, answer, expect: &str| {
        let mut recorder = Recorder::new(Vec::new(), &header()).expect("a header");
        let error =
            recorder.take(&mut feed, Instant::ZERO, answer, |_, _| {}).expect_err("it is refused");
        assert_eq!(error.to_string(), expect);
    };
    let text = |text: &str| Answer::Diskstats(text.to_owned());
    let empty = "it has no samples: it contains no block device, as in some containers";
    check(Feed::diskstats("d"), text(""), empty);
    check(Feed::diskstats("d"), text("no disks here\n"), empty);
    let other = "s was not asked for /proc/diskstats";
    check(Feed::sqlserver("s", "h"), text("8 0 sda 1 0 16 5 0 0 0 0 0 9 9\n"), other);
    let short = Answer::Sets(vec![set(WAITS, &["WRITELOG,5"])]);
    check(Feed::sqlserver("s", "h"), short, "a row has 2 fields, but its header has 3");
    let words = Answer::Sets(vec![set(WAITS, &["WRITELOG,5,many"])]);
    let expect = "wait_time_ms is \"many\", which is not a number";
    check(Feed::sqlserver("s", "h"), words, expect);
}
