//! Volumes on Ceph RBD, through qemu-storage-daemon.

use super::load::{Load, USED};
use super::{backend, number, stamped};
use crate::ceph::{Cluster, Daemon};
use crate::common::{Place, Server};
use rustix::process::Signal;
use std::fs;
use std::thread;
use std::time::Duration;
use weir_client::Connection;
use weir_wall::Clock;

const SIZE: usize = 16 << 20;

/// A Weir in front of an image.
struct FrontEnd {
    place: Place,
    daemon: Daemon,
    server: Server,
}

impl FrontEnd {
    fn start(cluster: &Cluster, image: &str, timeout: &str) -> Self {
        Self::limited(cluster, image, timeout, "unlimited = true")
    }

    fn limited(cluster: &Cluster, image: &str, timeout: &str, limits: &str) -> Self {
        let place = Place::new();
        let daemon = cluster.serve(&place, image);
        let server = serve(&place, timeout, limits);
        Self { place, daemon, server }
    }

    /// Starts one as the unit of systemd does, on a machine of that name.
    fn guarded(cluster: &Cluster, image: &str, machine: &str) -> Self {
        let place = Place::new();
        let name = format!("rbd/{image}");
        cluster.guard(machine, &["hold", &name]).expect("the machine owns the image");
        let daemon = cluster.serve_at(&place, image, "new.sock");
        // Weir's own socket is nbd.sock.
        fs::create_dir(place.path("run")).expect("a folder");
        fs::rename(place.path("new.sock"), place.path("run/new.sock")).expect("a socket");
        let run = place.path("run").display().to_string();
        cluster.guard(machine, &["publish", &name, &run]).expect("the machine owns the image");
        let server = serve_from(&place, "run/nbd.sock", "1s", "unlimited = true");
        Self { place, daemon, server }
    }

    fn client(&self) -> Connection {
        self.place.open("data")
    }

    /// Writes a block, and flushes it.
    fn write(&self, stamp: u64) -> bool {
        let mut client = self.client();
        client.write(0, &stamped(stamp)).and_then(|()| client.flush()).is_ok()
    }

    fn read(&self) -> Vec<u8> {
        let mut found = vec![0; 4096];
        self.client().read(0, &mut found).expect("a read");
        found
    }
}

fn serve(place: &Place, timeout: &str, limits: &str) -> Server {
    serve_from(place, "kit.sock", timeout, limits)
}

fn serve_from(place: &Place, socket: &str, timeout: &str, limits: &str) -> Server {
    let socket = place.path(socket).display().to_string();
    let layout = format!(
        "[[volume]]\nname = \"data\"\n{limits}\n\
         backend = {{ nbd = \"nbd+unix:///data?socket={socket}\", timeout = \"{timeout}\" }}\n"
    );
    place.serve(&layout, &[])
}

/// All in one, since a cluster takes 12 s to start.
#[test]
fn volumes_on_ceph() {
    let Some(mut cluster) = Cluster::start() else { return };
    what_is_written_is_in_the_image(&cluster);
    limits_hold(&cluster);
    two_live_front_ends_both_write(&cluster);
    a_front_end_that_is_fenced_writes_nothing(&cluster);
    a_front_end_that_hangs_writes_nothing_after_another_took_over(&cluster);
    a_front_end_that_was_taken_over_does_not_come_back(&cluster);
    nothing_flushed_is_lost(&mut cluster);
    page_blobs_and_mounts_are_in_an_image(&cluster);
}

fn what_is_written_is_in_the_image(cluster: &Cluster) {
    cluster.create("plain", "16M");
    let front = FrontEnd::start(cluster, "plain", "60s");
    let mut client = front.client();
    assert_eq!(client.size().get(), SIZE as u64);
    let data: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
    client.write(1_000, &data).expect("a write");
    // Three objects of 4 MiB have data; one of them is given back, and a part of another is zeroed.
    client.queue_trim(1, 4 << 20, 4 << 20).expect("a trim");
    while client.in_flight() > 0 {
        client.flush_out().expect("a connection");
        let received = client.receive_answers(|_, answer| assert!(answer.is_ok(), "{answer:?}"));
        received.expect("a connection");
    }
    client.write_zeroes(9 << 20, 4096).expect("zeros");
    client.flush().expect("a flush");
    let mut expect = [vec![0; 1_000], data].concat();
    expect.resize(SIZE, 0);
    expect[4 << 20..8 << 20].fill(0);
    expect[9 << 20..(9 << 20) + 4096].fill(0);
    assert!(cluster.export("plain") == expect);
    let kept = cluster.rbd(&["diff", "plain", "--whole-object", "--format", "json"]);
    let kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    let offsets: Vec<_> =
        kept.as_array().expect("extents").iter().map(|own| &own["offset"]).collect();
    assert_eq!(offsets, [0, 8 << 20], "{kept}");
    drop(client);
    let size = u64::try_from(SIZE).expect("small");
    let uri = format!("nbd+unix:///data?socket={}", front.place.path("nbd.sock").display());
    let mut sparse = Connection::open_sparse(&uri.parse().expect("a URI")).expect("an export");
    let extents = sparse.extents(4 << 20, 4 << 20).expect("extents");
    assert!(u64::from(extents[0].length) >= 4 << 20 && extents[0].length as u64 <= size);
    assert!(extents[0].state.contains(weir_proto::BlockState::HOLE | weir_proto::BlockState::ZERO));
    drop(sparse);
    front.server.stop();
}

/// The least time for that many requests. How long they really take depends on the machine.
fn limits_hold(cluster: &Cluster) {
    const IOPS: u32 = 400;
    cluster.create("limited", "16M");
    let front = FrontEnd::limited(cluster, "limited", "60s", "limits = { iops = 400 }");
    let clock = Clock::start();
    thread::scope(|scope| {
        for part in 0..4_u64 {
            let mut client = front.client();
            scope.spawn(move || {
                for n in 0..u64::from(IOPS) / 2 {
                    let at = (part * 1024 + n) * 4096;
                    client.write(at, &stamped(n)).expect("a write");
                }
            });
        }
    });
    // Two seconds of requests, of which the limit may let a few pass ahead.
    let took = clock.now().nanos();
    assert!(took >= 1_980_000_000, "{took} ns");
    front.server.stop();
}

/// The lock of an image goes to the front end that writes. It does not keep two apart.
fn two_live_front_ends_both_write(cluster: &Cluster) {
    cluster.create("shared", "16M");
    let (one, two) =
        (FrontEnd::start(cluster, "shared", "60s"), FrontEnd::start(cluster, "shared", "60s"));
    assert!(one.write(1) && two.write(2));
    assert_eq!(two.read(), stamped(2));
    assert!(one.write(3));
    assert_eq!(cluster.export("shared")[..4096], stamped(3));
}

fn a_front_end_that_is_fenced_writes_nothing(cluster: &Cluster) {
    cluster.create("fenced", "16M");
    let old = FrontEnd::start(cluster, "fenced", "2s");
    assert!(old.write(1));
    let mut unflushed = old.client();
    unflushed.write(4096, &stamped(7)).expect("a write");
    cluster.ceph(&["osd", "blocklist", "add", &cluster.owner("fenced")]);
    let new = FrontEnd::start(cluster, "fenced", "60s");
    // All that was flushed is there.
    assert_eq!(new.read(), stamped(1));
    assert!(new.write(2));
    assert!(!old.write(3), "it writes though it is fenced");
    // Each new connection is refused in turn.
    while backend(&old.place)["state"] != "lost" {
        thread::park_timeout(Duration::from_millis(5));
    }
    assert!(new.write(4));
    assert!(!old.write(5) && unflushed.flush().is_err());
    assert_eq!(cluster.export("fenced")[..4096], stamped(4));
    assert_eq!(new.read(), stamped(4));
}

/// Ceph takes the lock from a client that does not answer, and blocks it.
fn a_front_end_that_hangs_writes_nothing_after_another_took_over(cluster: &Cluster) {
    cluster.create("hung", "16M");
    let old = FrontEnd::start(cluster, "hung", "2s");
    assert!(old.write(1));
    old.daemon.signal(Signal::STOP);
    let new = FrontEnd::start(cluster, "hung", "60s");
    assert_eq!(new.read(), stamped(1));
    assert!(new.write(2));
    old.daemon.signal(Signal::CONT);
    assert!(!old.write(3), "it writes though another took over");
    assert_eq!(cluster.export("hung")[..4096], stamped(2));
    assert!(new.write(4));
}

/// The old Weir goes on, and the service manager restarts its qemu-storage-daemon.
fn a_front_end_that_was_taken_over_does_not_come_back(cluster: &Cluster) {
    cluster.create("taken", "16M");
    let mut old = FrontEnd::guarded(cluster, "taken", "one");
    assert!(old.write(1));
    let mut unflushed = old.client();
    unflushed.write(4096, &stamped(7)).expect("a write");
    let error = cluster.guard("two", &["hold", "rbd/taken"]).expect_err("it has an owner");
    assert!(error.contains("rbd/taken belongs to one, not to two"), "{error}");
    cluster.guard("two", &["take", "rbd/taken"]).expect("a takeover");

    let new = FrontEnd::guarded(cluster, "taken", "two");
    assert_eq!(new.read(), stamped(1));
    assert!(new.write(2));
    let mut client = new.client();
    client.write(4096, &stamped(8)).and_then(|()| client.flush()).expect("a write");
    assert!(!old.write(3), "it writes though another took over");

    old.daemon.kill();
    let error = cluster.guard("one", &["hold", "rbd/taken"]).expect_err("it has another owner");
    assert!(error.contains("rbd/taken belongs to two, not to one"), "{error}");
    // It passed the first check before the takeover, and opens the image after it.
    let run = old.place.path("run").display().to_string();
    old.daemon = cluster.serve_at(&old.place, "taken", "run/new.sock");
    let late = cluster.guard("one", &["publish", "rbd/taken", &run]).expect_err("another owner");
    assert!(late.contains("rbd/taken was taken by another machine"), "{late}");
    old.daemon.kill();
    assert!(unflushed.flush().is_err());
    let image = cluster.export("taken");
    assert_eq!((&image[..4096], &image[4096..8192]), (&stamped(2)[..], &stamped(8)[..]));
    assert!(new.write(4));

    cluster.guard("one", &["release", "rbd/taken"]).expect_err("it is not the owner");
    cluster.guard("two", &["release", "rbd/taken"]).expect("it is the owner");
    cluster.guard("one", &["hold", "rbd/taken"]).expect("nobody is the owner");
}

fn nothing_flushed_is_lost(cluster: &mut Cluster) {
    cluster.create("killed", "16M");
    let FrontEnd { place, mut daemon, mut server } = FrontEnd::start(cluster, "killed", "120s");
    let mut load = Load::new();
    for _ in 0..number("WEIR_CEPH_KILLS", 1) {
        let failed = load.disturbed(&place, || {
            daemon.kill();
            daemon = cluster.serve(&place, "killed");
        });
        assert!(!failed, "a request failed when qemu-storage-daemon was restarted");
        let failed = load.disturbed(&place, || cluster.restart_osd());
        assert!(!failed, "a request failed when the OSD was restarted");
        let failed = load.disturbed(&place, || server.kill());
        assert!(failed, "the clients did not notice the end of Weir");
        server = serve(&place, "120s", "unlimited = true");
        load.check_flushed(&mut place.open("data"));
    }
    place.open("data").flush().expect("a flush");
    server.stop();
    load.check_disk(&cluster.export("killed")[..usize::try_from(USED).expect("small")]);
}

fn page_blobs_and_mounts_are_in_an_image(cluster: &Cluster) {
    cluster.create("folder", "512M");
    super::folders::survive("mkfs.ext4 -q \"$0\"", "fsck.ext4 -fn \"$0\"", |place| {
        let daemon = cluster.serve(place, "folder");
        (serve(place, "60s", "unlimited = true"), daemon)
    });
}
