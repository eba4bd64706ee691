//! Measures the time of a picture and of a reading with 200 volumes:
//! `cargo run --release -p weir-top --example frame_time`.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use weir_report::number::{float, time};
use weir_report::status::{HostStatus, Status, VolumeStatus};
use weir_top::{Top, draw};
use weir_wall::Clock;

const VOLUMES: u64 = 200;
/// Ten minutes of readings, which the charts show.
const READINGS: u64 = 600;
const FRAMES: u64 = 2_000;

fn reading(second: u64) -> Status {
    let volume = |n: u64| {
        let done = second * (100 + n) + second % (n + 2);
        VolumeStatus {
            name: format!("volume-{n}"),
            tier: Some("P10".into()),
            cache: "none".into(),
            limit_iops: Some(500),
            burst_iops: Some(3_500),
            limit_bytes_per_s: Some(100 << 20),
            credits_operations: Some(5_400_000 - done),
            full_operations: Some(5_400_000),
            reads: done,
            counted: done,
            read_bytes: done << 13,
            medium_ns: done * 1_000_000,
            waits_ns: [("disk_iops".to_owned(), done * n * 10_000)].into(),
            ..VolumeStatus::default()
        }
    };
    let host = HostStatus {
        name: "host".into(),
        volumes: (0..VOLUMES).map(volume).collect(),
        ..HostStatus::default()
    };
    Status { uptime_ns: second * 1_000_000_000, hosts: vec![host], ..Status::default() }
}

#[expect(clippy::print_stdout, reason = "this is its result")]
fn main() {
    let clock = Clock::start();
    let mut top = Top::new(false);
    let readings: Vec<Status> = (0..READINGS).map(reading).collect();
    let start = clock.now();
    for (second, reading) in (0..).zip(readings) {
        top.take(second * 1_000, reading);
    }
    let taken = clock.now() - start;
    println!("a reading: {}", time(float(taken.nanos() / READINGS)));
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).expect("a terminal");
    let press = |top: &mut Top, code| drop(top.key(KeyEvent::new(code, KeyModifiers::NONE)));
    for (what, first) in [("the list", KeyCode::Esc), ("a volume", KeyCode::Enter)] {
        press(&mut top, first);
        let start = clock.now();
        for n in 0..FRAMES {
            // Each picture is another one: the selection moves down and up again.
            press(
                &mut top,
                if (n / VOLUMES).is_multiple_of(2) { KeyCode::Down } else { KeyCode::Up },
            );
            terminal.draw(|frame| draw::draw(frame, &mut top)).expect("a picture");
        }
        let drawn = clock.now() - start;
        println!("a picture of {what}: {}", time(float(drawn.nanos() / FRAMES)));
    }
}
