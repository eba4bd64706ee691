//! Readings once a second, and the frames that are pushed to the clients of the page.

use crate::source::Source;
use bytes::Bytes;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use weir_report::status::Status;
use weir_watch::sample;
use weir_watch::{Taken, Watch};

/// Samples of the history: an hour of seconds.
const KEPT: usize = 3_600;
/// Clients of the page at the same time.
const CLIENTS: usize = 16;
/// The form of the frames, which the page compares with its own.
const PROTOCOL: u64 = 1;
/// The longest time in which a client hears nothing.
const ALIVE: Duration = Duration::from_secs(3);
/// Frames that wait for a client. One that has more unread is disconnected, and connects again.
const UNREAD: usize = 8;

/// The state that the page shows.
#[derive(Debug)]
pub(crate) struct Board {
    /// The page may change something.
    controls: bool,
    watch: Watch,
    description: Value,
    /// The number of the description.
    version: u64,
    clients: Vec<mpsc::Sender<Bytes>>,
    /// Events were noted since the last sample.
    has_noted: bool,
}

impl Board {
    pub(crate) fn new(controls: bool) -> Self {
        Self {
            controls,
            watch: Watch::keeping(KEPT),
            description: Value::Null,
            version: 0,
            clients: Vec::new(),
            has_noted: false,
        }
    }

    /// Returns the samples of a volume or host.
    pub(crate) fn history(&self, host: &str, volume: Option<&str>) -> Option<Value> {
        self.watch.history().samples(host, volume)
    }

    /// Adds a client, which first gets the description. `None` if there are too many.
    pub(crate) fn join(&mut self) -> Option<mpsc::Receiver<Bytes>> {
        self.clients.retain(|client| !client.is_closed());
        if self.clients.len() >= CLIENTS {
            return None;
        }
        let (sender, receiver) = mpsc::channel(UNREAD);
        // A new channel has room.
        let _ = sender.try_send(self.hello());
        self.clients.push(sender);
        Some(receiver)
    }

    /// Disconnects all clients.
    pub(crate) fn close(&mut self) {
        self.clients.clear();
    }

    /// Notes an event of the present.
    pub(crate) fn note(&mut self, ms: u64, item: String, text: String) {
        self.watch.note(ms, item, text);
        self.has_noted = true;
    }

    /// Takes a reading, and pushes what it changes.
    pub(crate) fn take(&mut self, ms: u64, status: Status) {
        let described = describe(&status);
        if described != self.description {
            self.description = described;
            self.version += 1;
            self.push(&self.hello());
        }
        let last = self.watch.events().back().cloned();
        let Some(taken) = self.watch.take(ms, status) else { return };
        if self.clients.is_empty() {
            return;
        }
        let has_noted = std::mem::take(&mut self.has_noted);
        let has_news = has_noted || self.watch.events().back() != last.as_ref();
        self.push(&self.frame(ms, &taken, has_news));
    }

    /// Sends a frame to all clients, and drops those that do not read.
    fn push(&mut self, frame: &Bytes) {
        self.clients.retain(|client| client.try_send(frame.clone()).is_ok());
    }

    /// Tells all clients that the server is there.
    fn tell_alive(&mut self) {
        self.push(&Bytes::from(event("alive", &Value::Null)));
    }

    /// Returns one sample for clients; rows are in the order of the description.
    fn frame(&self, ms: u64, taken: &Taken, has_news: bool) -> Bytes {
        let rows: Vec<&[f32]> = taken.sampled.iter().map(|one| &one.row[..]).collect();
        let mut data = json!({
            "number": taken.number,
            "ms": ms,
            "version": self.version,
            "rows": rows,
            "sentence": taken.sentence,
            "clients": taken.clients,
        });
        if has_news {
            data["events"] = json!(self.watch.events());
        }
        Bytes::from(event("sample", &data))
    }

    /// Returns the description for clients.
    fn hello(&self) -> Bytes {
        let data = json!({
            "protocol": PROTOCOL,
            "version": self.version,
            "controls": self.controls,
            "columns": sample::columns(),
            "hosts": self.description,
            "events": self.watch.events(),
        });
        Bytes::from(event("describe", &data))
    }
}

/// Returns an event of the stream. JSON has no line ends.
fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Describes hosts and volumes, in the order of the rows of a sample.
fn describe(status: &Status) -> Value {
    let hosts = status.hosts.iter().map(|host| {
        let volumes = host.volumes.iter().map(|volume| {
            json!({
                "name": volume.name,
                "tier": volume.tier,
                "performance_tier": volume.performance_tier,
                "size_bytes": volume.size_bytes,
                "cache": volume.cache,
                // Without its age, which is another in each reading.
                "backend": volume.backend.as_ref().map(|backend| json!({
                    "address": backend.address,
                    "state": backend.state,
                    "reason": backend.reason,
                })),
            })
        });
        let volumes: Vec<Value> = volumes.collect();
        json!({ "name": host.name, "size": host.size, "volumes": volumes })
    });
    Value::Array(hosts.collect())
}

/// Takes a reading at each interval, until the future is dropped.
pub(crate) async fn run(board: Rc<RefCell<Board>>, source: Arc<dyn Source>, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Samples may be rarer than what a page and its connection wait for.
    let mut alive = interval(ALIVE);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = alive.tick() => {
                if every > ALIVE {
                    board.borrow_mut().tell_alive();
                }
                continue;
            }
        }
        let source = Arc::clone(&source);
        // The threads of the hosts answer it.
        if let Ok(status) = tokio::task::spawn_blocking(move || source.status()).await {
            board.borrow_mut().take(weir_wall::calendar() / 1_000_000, status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_report::status::{HostStatus, VolumeStatus};

    /// A P10 that did `n` reads of 4 KiB since the start, and waited a millisecond for each.
    fn reading(seconds: u64, n: u64) -> Status {
        let volume = VolumeStatus {
            name: "data".into(),
            tier: Some("P10".into()),
            limit_iops: Some(500),
            reads: n,
            read_bytes: n << 12,
            medium_ns: n * 1_000_000,
            waits_ns: [("disk_iops".to_owned(), n * 1_000_000)].into(),
            ..VolumeStatus::default()
        };
        let host =
            HostStatus { name: "host".into(), volumes: vec![volume], ..HostStatus::default() };
        Status { uptime_ns: seconds * 1_000_000_000, hosts: vec![host], ..Status::default() }
    }

    /// Returns the events of frames: names and data.
    fn parsed(frames: &mut mpsc::Receiver<Bytes>) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        while let Ok(frame) = frames.try_recv() {
            let text = String::from_utf8(frame.to_vec()).expect("text");
            for own in text.split_terminator("\n\n") {
                let (name, data) = own.split_once('\n').expect("two lines");
                let data = data.strip_prefix("data: ").expect("data");
                let name = name.strip_prefix("event: ").expect("a name");
                events.push((name.to_owned(), serde_json::from_str(data).expect("JSON")));
            }
        }
        events
    }

    #[test]
    fn clients_get_a_description_and_then_samples() {
        let mut board = Board::new(false);
        board.take(1_000, reading(1, 0));
        let mut client = board.join().expect("room");
        board.take(2_000, reading(2, 500));
        let mut larger = reading(3, 1_000);
        larger.hosts[0].volumes[0].tier = Some("P20".into());
        board.take(3_000, larger);
        let events = parsed(&mut client);
        let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["describe", "sample", "describe", "sample"]);
        let columns = events[0].1["columns"].as_array().expect("columns");
        let row = events[1].1["rows"][1].as_array().expect("a row");
        assert_eq!((events[0].1["hosts"][0]["volumes"][0]["tier"].as_str()), Some("P10"));
        assert_eq!(columns.len(), row.len());
        assert_eq!((columns[0].as_str(), row[0].as_f64()), (Some("read_iops"), Some(500.0)));
        assert_eq!(events[1].1["events"], Value::Null);
        assert_eq!(events[3].1["events"][0]["text"], "tier P20, was P10");
        assert_eq!(events[3].1["number"], 1);
        assert!(
            events[1].1["sentence"].as_str().expect("words").starts_with("data is throttled by")
        );
        // A client that comes later has the history.
        let history = board.history("host", Some("data")).expect("a volume");
        assert_eq!(history["ms"], json!([2_000, 3_000]));
        assert_eq!(board.history("host", Some("other")), None);
    }

    #[test]
    fn an_event_that_is_noted_comes_with_the_next_sample() {
        let mut board = Board::new(true);
        board.take(1_000, reading(1, 0));
        let mut client = board.join().expect("room");
        board.note(1_500, "data".to_owned(), "credits 0 %, asked for on a page".to_owned());
        board.take(2_000, reading(2, 500));
        board.take(3_000, reading(3, 1_000));
        board.tell_alive();
        let events = parsed(&mut client);
        let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["describe", "sample", "sample", "alive"]);
        assert_eq!(events[1].1["events"][0]["text"], "credits 0 %, asked for on a page");
        assert_eq!(events[2].1["events"], Value::Null);
    }

    #[test]
    fn clients_are_bounded_and_those_that_do_not_read_are_dropped() {
        let mut board = Board::new(false);
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| board.join().expect("room")).collect();
        assert!(board.join().is_none());
        for second in 0..20_u16 {
            board.take(u64::from(second), reading(second.into(), 0));
            // Only the first one reads.
            parsed(&mut clients[0]);
        }
        assert_eq!(board.clients.len(), 1);
        assert!(parsed(&mut clients[1]).len() <= UNREAD);
        assert!(
            clients[1]
                .try_recv()
                .is_err_and(|error| error == mpsc::error::TryRecvError::Disconnected)
        );
        // A client that has gone makes room.
        clients.clear();
        let again: Vec<_> = (0..CLIENTS).map(|_| board.join()).collect();
        assert!(again.iter().all(Option::is_some));
        board.close();
        assert!(board.clients.is_empty());
    }
}
