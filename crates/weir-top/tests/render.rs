//! Pictures of readings, on a terminal in memory.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use weir_report::status::{
    BackendStatus, CapStatus, ExportStatus, HostStatus, LATENCY_BOUNDS_NS, OpLatency, Status,
    VolumeStatus,
};
use weir_top::{Top, Wish, draw};

/// A terminal with the state of a server.
struct Rig {
    terminal: Terminal<TestBackend>,
    top: Top,
}

impl Rig {
    fn new(width: u16, height: u16) -> Self {
        let terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        Self { terminal, top: Top::new(false) }
    }

    /// Returns a rig that has two readings, a second apart.
    fn with(width: u16, height: u16, reading: impl Fn(u64) -> Status) -> Self {
        let mut rig = Self::new(width, height);
        rig.top.take(1_000, reading(0));
        rig.top.take(2_000, reading(1));
        rig
    }

    fn lines(&mut self) -> Vec<String> {
        self.terminal.draw(|frame| draw::draw(frame, &mut self.top)).expect("a picture");
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        // The cell after a wide character is empty.
        let line = |row: &[ratatui::buffer::Cell]| row.iter().map(|c| c.symbol()).collect();
        buffer.content.chunks(width).map(line).collect()
    }

    fn text(&mut self) -> String {
        self.lines().join("\n")
    }

    #[track_caller]
    fn has(&mut self, words: &str) {
        let text = self.text();
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }

    /// Returns the last row that has these words, as it is on the screen.
    fn row_of(&self, words: &str) -> u16 {
        let buffer = self.terminal.backend().buffer();
        let text =
            |y: u16| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        let mut rows = (0..buffer.area.height).rev();
        rows.find(|y| text(*y).contains(words)).expect("a row")
    }

    fn press(&mut self, code: KeyCode) -> Option<Wish> {
        self.top.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn type_in(&mut self, text: &str) {
        for c in text.chars() {
            assert_eq!(self.press(KeyCode::Char(c)), None);
        }
    }

    /// Returns the names in the list, from the top. A name ends at two spaces.
    fn names(&mut self) -> Vec<String> {
        let lines = self.lines();
        let head = lines.iter().position(|line| line.starts_with("NAME")).expect("a list");
        let own = lines[head + 1..].iter().take_while(|line| !line.trim().is_empty());
        own.map(|line| line.split("  ").next().unwrap_or_default().trim().to_owned()).collect()
    }
}

/// A P10 that does `iops` reads of 4 KiB per second, each of which waits `wait_ms` at its limit and
/// takes a millisecond.
fn volume(name: &str, second: u64, iops: u64, wait_ms: u64) -> VolumeStatus {
    let n = second * iops;
    VolumeStatus {
        name: name.into(),
        tier: Some("P10".into()),
        size_bytes: 128 << 30,
        cache: "none".into(),
        limit_iops: Some(500),
        burst_iops: Some(3_500),
        limit_bytes_per_s: Some(100 << 20),
        credits_operations: Some(2_700_000 - n),
        full_operations: Some(5_400_000),
        reads: n,
        counted: n,
        read_bytes: n << 12,
        medium_ns: n * 1_000_000,
        waits_ns: [("disk_burst_iops".to_owned(), n * wait_ms * 1_000_000)].into(),
        ..VolumeStatus::default()
    }
}

fn status(second: u64, volumes: Vec<VolumeStatus>) -> Status {
    let exports = volumes.iter().map(|volume| {
        let mut counts = vec![0; LATENCY_BOUNDS_NS.len() + 1];
        counts[8] = volume.reads;
        ExportStatus {
            name: volume.name.clone(),
            volumes: vec![volume.name.clone()],
            latencies: vec![OpLatency { op: "read".into(), counts, sum_ns: 0 }],
            ..ExportStatus::default()
        }
    });
    let cap = |cap: &str, limit| CapStatus { cap: cap.into(), limit, ..CapStatus::default() };
    let host = HostStatus {
        name: "vm".into(),
        size: Some("Standard_D8s_v3".into()),
        caps: vec![cap("host_uncached_iops", 12_800), cap("host_uncached_bytes", 192 << 20)],
        exports: exports.collect(),
        volumes,
        ..HostStatus::default()
    };
    Status {
        uptime_ns: (10 + second) * 1_000_000_000,
        pid: 4_711,
        edition: Some("azure-now".into()),
        hosts: vec![host],
        ..Status::default()
    }
}

/// Two busy volumes and an idle one.
fn busy(second: u64) -> Status {
    status(
        second,
        vec![
            volume("data", second, 3_500, 3),
            volume("log", second, 1_000, 0),
            volume("idle", second, 0, 0),
        ],
    )
}

#[test]
fn the_list_has_rates_limits_waits_credits_and_the_verdict() {
    let mut rig = Rig::with(160, 24, busy);
    rig.has("weir top: process 4711, up 11 s, azure-now");
    rig.has("00:00:02 UTC");
    rig.has("data is throttled by disk_burst_iops, where its requests spend 75.0 % of their time");
    let lines = rig.lines();
    let cells = |name: &str| {
        // The sentence above the list starts with a name, too.
        let line = lines.iter().rfind(|line| line.starts_with(name)).expect("a line");
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        cells("data "),
        "data P10 3,500 3,500 100 % 13.7 100 14 % 4.00 ms 4.97 ms 14.0 - 10.5 disk_burst_iops 50 % 12 min 50 s"
    );
    assert_eq!(cells("idle "), "idle P10 0 3,500 0 % 0 100 0 % - - 0 - 0 - 50 % -");
    // The host has the sums, and the limits of which most is used.
    assert!(
        cells("vm ").starts_with("vm D8s_v3 4,500 12,800 35 % 17.6 192 9 %"),
        "{}",
        cells("vm ")
    );
}

#[test]
fn a_narrow_terminal_shows_the_important_columns() {
    let mut rig = Rig::with(80, 24, busy);
    assert!(rig.lines().iter().all(|line| line.chars().count() == 80));
    let lines = rig.lines();
    let data = lines.iter().rfind(|line| line.starts_with("data ")).expect("a line");
    let cells: Vec<&str> = data.split_whitespace().collect();
    assert_eq!(cells.join(" "), "data 3,500 100 % 13.7 14 % 4.00 ms disk_burst_iops 50 %");
    rig.has("p pause  by waiting requests");
    for (width, height) in [(59, 24), (80, 11), (1, 1), (20, 3)] {
        let mut small = Rig::with(width, height, busy);
        assert!(!small.text().contains("3,500"));
    }
    Rig::with(59, 24, busy).has("The terminal has 59 x 24 cells; weir top needs 60 x 12.");
    // It is drawn again when the terminal grows.
    rig.terminal.backend_mut().resize(59, 24);
    rig.has("The terminal has 59 x 24 cells");
    rig.terminal.backend_mut().resize(120, 30);
    rig.has("disk_burst_iops");
}

#[test]
fn the_list_is_sorted_by_each_column_and_reversed() {
    let reading = |second: u64| {
        let own = |name: &str, tier: &str, iops, wait, limit, credits, hits, bytes| VolumeStatus {
            tier: Some(tier.into()),
            cache: "read-only".into(),
            limit_iops: Some(limit),
            burst_iops: Some(2 * limit),
            limit_bytes_per_s: Some(limit << 20),
            credits_operations: Some(credits - second * iops),
            hits: second * hits,
            read_bytes: second * bytes,
            ..volume(name, second, iops, wait)
        };
        let mut all = vec![
            own("b", "P30", 100, 8, 1_000, 1_000_000, 50, 9 << 20),
            own("c", "P10", 300, 3, 500, 2_000_000, 30, 1 << 20),
            own("a", "P20", 200, 4, 4_000, 4_000_000, 10, 5 << 20),
        ];
        all[2].waits_ns = [("disk_iops".to_owned(), second * 100_000_000)].into();
        let mut idle = volume("idle", second, 0, 0);
        (idle.credits_operations, idle.full_operations, idle.limit_iops) = (None, None, None);
        (idle.limit_bytes_per_s, idle.tier) = (None, None);
        all.insert(0, idle);
        status(second, all)
    };
    let mut rig = Rig::with(180, 24, reading);
    // From the column at the left to the one at the right, and around to the first.
    let expect = [
        ("NAME", ["a", "b", "c", "idle"], ["idle", "c", "b", "a"]),
        ("TIER", ["c", "a", "b", "idle"], ["b", "a", "c", "idle"]),
        ("IOPS", ["c", "a", "b", "idle"], ["idle", "b", "a", "c"]),
        ("LIMIT", ["a", "b", "c", "idle"], ["c", "b", "a", "idle"]),
        ("FULL", ["c", "b", "a", "idle"], ["a", "b", "c", "idle"]),
        ("MiB/s", ["b", "a", "c", "idle"], ["idle", "c", "a", "b"]),
        ("LIMIT", ["a", "b", "c", "idle"], ["c", "b", "a", "idle"]),
        ("FULL", ["b", "c", "a", "idle"], ["a", "c", "b", "idle"]),
        ("LATENCY", ["b", "c", "a", "idle"], ["a", "c", "b", "idle"]),
        // All have the same bucket, so names decide.
        ("P99", ["a", "b", "c", "idle"], ["a", "b", "c", "idle"]),
        ("DEPTH", ["c", "b", "a", "idle"], ["idle", "a", "b", "c"]),
        ("HITS", ["b", "c", "a", "idle"], ["a", "c", "b", "idle"]),
        ("WAITING", ["c", "b", "a", "idle"], ["idle", "a", "b", "c"]),
        ("MOSTLY AT", ["b", "c", "a", "idle"], ["a", "b", "c", "idle"]),
        ("CREDITS", ["b", "c", "a", "idle"], ["a", "c", "b", "idle"]),
        ("LAST", ["c", "b", "a", "idle"], ["a", "b", "c", "idle"]),
    ];
    while !rig.text().contains("NAME▼") {
        assert_eq!(rig.press(KeyCode::Left), None);
    }
    for (heading, first, reversed) in expect {
        rig.has(&format!("{heading}▼"));
        assert_eq!(rig.names(), [&["vm"], &first[..]].concat(), "{heading}");
        rig.type_in("r");
        rig.has(&format!("{heading}▲"));
        assert_eq!(rig.names(), [&["vm"], &reversed[..]].concat(), "{heading}, reversed");
        rig.type_in("s");
    }
    rig.has("NAME▼");
}

#[test]
fn a_volume_is_opened_with_its_limits_waits_and_history() {
    let mut rig = Rig::with(100, 40, busy);
    for second in 2..40 {
        rig.top.take(1_000 + second * 1_000, busy(second));
    }
    // The most throttled is the first volume, below its host.
    assert_eq!(rig.press(KeyCode::Down), None);
    assert_eq!(rig.press(KeyCode::Enter), None);
    rig.has("data: P10, 128 GiB, cache none, host vm");
    rig.has("May do 3,500 IOPS and 100 MiB/s now; without credits 500 IOPS and 100 MiB/s.");
    rig.has("Burst credits 47 %: last 12 min 12 s");
    for row in [
        "disk_iops                       500    3,500    3,500    3,500    100 %     47 %",
        "disk_bytes MiB/s                100        -      100     13.7     14 %        -",
        "host_uncached_iops           12,800        -   12,800    4,500     35 %        -",
        "disk_burst_iops                10.5              75 %",
        "IOPS               3,500 max     3,500 ████",
        "latency          4.00 ms max   4.00 ms ████",
    ] {
        rig.has(row);
    }
    // Another volume, and back.
    assert_eq!(rig.press(KeyCode::Down), None);
    assert_eq!(rig.press(KeyCode::Down), None);
    rig.has("log: P10, 128 GiB");
    rig.has("No request waits at a limit.");
    assert_eq!(rig.press(KeyCode::Esc), None);
    rig.has("NAME");
    // A host has its own limits.
    assert_eq!(rig.press(KeyCode::Home), None);
    assert_eq!(rig.press(KeyCode::Enter), None);
    rig.has("vm: host, Standard_D8s_v3");
    rig.has("host_uncached_bytes MiB/s");
    // It fits into the smallest terminal.
    let (width, height) = draw::SMALLEST;
    rig.terminal.backend_mut().resize(width, height);
    rig.has("host_uncached_iops");
}

#[test]
fn names_cannot_disturb_the_picture() {
    let names = [
        "\u{1b}[2J\u{1b}[31mred\r\n",
        "\u{202e}backwards\u{200b}",
        "データベースのボリューム・データベースのボリューム",
        "a-very-long-name-of-a-volume-that-does-not-fit-into-any-column-of-any-terminal-there-is",
        "e\u{301}\u{301}\u{301}\u{301}",
        "👩‍👩‍👧‍👦 family",
        "",
    ];
    let reading = |second| {
        let own = |(n, name): (usize, &&str)| volume(name, second, 100 - n as u64, 2);
        let mut status = status(second, names.iter().enumerate().map(own).collect());
        status.hosts[0].name = "host\u{1b}c".into();
        status.hosts[0].size = Some("\u{7}D8".into());
        status.edition = Some("\u{9b}edition".into());
        status
    };
    for width in [60, 61, 80, 100, 133, 200] {
        let mut rig = Rig::with(width, 30, reading);
        for _ in 0..=names.len() {
            for _ in 0..2 {
                let text = rig.text();
                assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
                assert!(!text.contains(['\u{202e}', '\u{200b}', '\u{200d}']), "{text:?}");
                // The list, then the volume alone.
                assert_eq!(rig.press(KeyCode::Enter), None);
            }
            assert_eq!(rig.press(KeyCode::Char('t')), None);
            assert!(!rig.text().contains('\u{1b}'));
            assert_eq!(rig.press(KeyCode::Esc), None);
            assert_eq!(rig.press(KeyCode::Esc), None);
            assert_eq!(rig.press(KeyCode::Down), None);
        }
    }
    let mut rig = Rig::with(80, 30, reading);
    let lines = rig.lines();
    let line = |start: &str| lines.iter().find(|line| line.contains(start)).expect("a line");
    // Each wide character has two cells, of which the second is empty.
    assert!(line("デ").starts_with("デ ー タ ベ ー …"), "{}", line("デ"));
    assert!(line("a-very").starts_with("a-very-long…    97.0 "), "{}", line("a-very"));
    assert!(line("31mre…").starts_with("\u{fffd}[2J\u{fffd}[31mre…"), "{}", line("31mre…"));
}

#[test]
fn a_tier_is_changed_after_a_yes() {
    let mut rig = Rig::with(100, 30, busy);
    // The first line is a host.
    rig.type_in("t");
    rig.has("a host has no tier; select a volume");
    assert_eq!(rig.press(KeyCode::Down), None);
    rig.type_in("t");
    rig.has("data has P10. New tier, for example P40:");
    rig.type_in("qx");
    assert_eq!(rig.press(KeyCode::Backspace), None);
    assert_eq!(rig.press(KeyCode::Backspace), None);
    assert_eq!(rig.press(KeyCode::Enter), None);
    rig.has("NAME");
    rig.type_in("tP2");
    rig.has("> P2_");
    rig.type_in("0");
    assert_eq!(rig.press(KeyCode::Enter), None);
    rig.has("Change data from P10 to P20?");
    // Other keys are no answer.
    rig.type_in("q");
    assert_eq!(rig.press(KeyCode::Enter), None);
    rig.has("Change data from P10 to P20?");
    rig.type_in("n");
    assert!(!rig.text().contains("Change data"));
    rig.type_in("tP20");
    assert_eq!(rig.press(KeyCode::Enter), None);
    let wish = Wish::SetTier { volume: "data".into(), tier: "P20".into() };
    assert_eq!(rig.press(KeyCode::Char('y')), Some(wish));
    rig.has("changing data to P20 ..");
    rig.top.answered(Ok("data has the limits of P20".into()));
    rig.has("data has the limits of P20");
    // The next reading tells it as an event.
    let mut changed = busy(2);
    changed.hosts[0].volumes[0].tier = Some("P20".into());
    rig.top.take(3_000, changed);
    rig.has("00:00:03 data: tier P20, was P10");
    // The answer makes room for the keys.
    rig.top.take(12_999, busy(12));
    rig.has("data has the limits of P20");
    rig.top.take(13_000, busy(12));
    rig.has("q quit  ? help");
    rig.top.answered(Err("data is unchanged: no \u{1b} tier".into()));
    rig.has("data is unchanged: no \u{fffd} tier");
    assert_eq!(rig.press(KeyCode::Char('q')), Some(Wish::Quit));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    rig.type_in("t");
    assert_eq!(rig.top.key(control_c), Some(Wish::Quit));
}

#[test]
fn a_pause_keeps_the_figures_and_a_server_that_stops_keeps_the_last() {
    let faster = |second: u64| status(second, vec![volume("data", second, 700 * second, 0)]);
    let mut rig = Rig::with(100, 30, faster);
    assert_eq!(rig.press(KeyCode::Char('p')), None);
    rig.top.take(3_000, faster(2));
    rig.has("PAUSED  00:00:02 UTC");
    rig.has(" 700 ");
    assert_eq!(rig.press(KeyCode::Char('p')), None);
    rig.top.take(4_000, faster(3));
    rig.has("  00:00:04 UTC");
    rig.has(" 3,500 ");
    assert!(!rig.text().contains("PAUSED"));
    rig.top.lost("Connection refused");
    rig.has("The server does not answer: Connection refused. The figures below are those of 00:00:04 UTC.");
    rig.has("NO ANSWER  00:00:04 UTC");
    rig.has(" 3,500 ");
    // Old figures do not look like those of the present.
    let buffer = rig.terminal.backend().buffer();
    let row = rig.row_of(" 3,500 ");
    let cells = (0..100).map(|x| &buffer[(x, row)]);
    assert!(cells.clone().all(|cell| cell.modifier.contains(Modifier::DIM)));
    assert!(cells.clone().all(|cell| cell.fg == Color::Reset));
    // Another server at the socket has other counters.
    let other = |second| Status { pid: 4_712, ..busy(second) };
    rig.top.take(7_000, other(0));
    rig.has("Measuring ..");
    assert!(!rig.text().contains(" 3,500 "));
    rig.top.take(8_000, other(1));
    rig.has("process 4712");
    rig.has("00:00:07 server: process 4712 answers now");
    rig.has("data is throttled by disk_burst_iops");
}

#[test]
fn without_colours_nothing_is_coloured() {
    let is_coloured = |rig: &mut Rig| {
        rig.text();
        let cells = &rig.terminal.backend().buffer().content;
        assert!(cells.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)));
        cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    let mut rig = Rig::with(100, 30, busy);
    assert!(is_coloured(&mut rig));
    rig.top = Top::new(true);
    rig.top.take(1_000, busy(0));
    rig.top.take(2_000, busy(1));
    assert!(!is_coloured(&mut rig));
    rig.top.lost("gone");
    assert!(!is_coloured(&mut rig));
    assert_eq!(rig.press(KeyCode::Enter), None);
    rig.text();
    let cells = &rig.terminal.backend().buffer().content;
    assert!(cells.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

#[test]
fn two_hundred_volumes_scroll_to_the_end_and_back() {
    let many = |second| {
        let own = |n: u64| volume(&format!("v{n:03}"), second, 1 + n, n % 4);
        status(second, (0..200).map(own).collect())
    };
    let mut rig = Rig::with(120, 30, many);
    while !rig.text().contains("NAME▼") {
        rig.type_in("s");
    }
    let height = rig.names().len();
    for n in 0..200 {
        assert_eq!(rig.press(KeyCode::Down), None);
        let names = rig.names();
        assert_eq!(names.len(), height);
        assert!(names.contains(&format!("v{n:03}")), "{n}: {names:?}");
    }
    assert_eq!(rig.press(KeyCode::Down), None);
    assert_eq!(rig.names().last().map(String::as_str), Some("v199"));
    assert_eq!(rig.press(KeyCode::PageUp), None);
    assert!(rig.names().contains(&format!("v{:03}", 199 - height)));
    assert_eq!(rig.press(KeyCode::Home), None);
    assert_eq!(rig.names()[..2], ["vm", "v000"]);
    // A selected volume stays selected when the order changes, and when others go.
    assert_eq!(rig.press(KeyCode::End), None);
    rig.type_in("r");
    assert!(rig.names().contains(&"v199".to_owned()));
    let mut fewer = many(2);
    fewer.hosts[0].volumes.truncate(3);
    rig.top.take(3_000, fewer);
    assert_eq!(rig.names(), ["vm", "v002", "v001", "v000"]);
    assert_eq!(rig.press(KeyCode::Enter), None);
    rig.has("vm: host, Standard_D8s_v3");
}

#[test]
fn the_help_names_all_keys() {
    let mut rig = Rig::with(80, 24, busy);
    rig.type_in("?");
    for words in ["PgUp", "Enter", "Esc", "reverse", "tier", "pause", "quit", "WAITING", "LAST"] {
        rig.has(words);
    }
    // A key closes it and does nothing else.
    rig.type_in("q");
    assert!(!rig.text().contains("PgUp"));
}

#[test]
fn a_backend_that_is_lost_is_in_the_sentence_the_list_and_the_details() {
    let lost = |second: u64| {
        let backend = BackendStatus {
            address: "nbd://far/data".into(),
            state: "lost".into(),
            reason: Some("no answer for 30 s\u{1b}[2J".into()),
            since_ns: (second + 3) * 1_000_000_000,
        };
        let volume = VolumeStatus { backend: Some(backend), ..volume("data", second, 100, 0) };
        status(second, vec![volume])
    };
    let mut rig = Rig::with(120, 30, lost);
    rig.has("The backend of data is lost for 4 s: no answer for 30 s\u{fffd}[2J.");
    rig.text();
    let row = rig.row_of("data ");
    assert_eq!(rig.terminal.backend().buffer()[(0, row)].fg, Color::Red);
    assert_eq!(rig.press(KeyCode::Down), None);
    assert_eq!(rig.press(KeyCode::Enter), None);
    rig.has("Backend nbd://far/data: lost for 4 s: no answer for 30 s\u{fffd}[2J.");
}
