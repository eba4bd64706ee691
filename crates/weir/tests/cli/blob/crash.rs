//! `kill -9` in the middle of writing pages: what was acknowledged is there when the server
//! comes back, snapshots are as they were, and no ETag comes twice.

use super::{Client, Rig};
use crate::common::Place;
use rustix::process::Signal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const LAYOUT: &str = "[host]\nunlimited = true\n[blob]\n";
const BLOB: &str = "/crash/data";
const SLOT: u64 = 4096;
const SLOTS: u64 = 64;
const WRITERS: u64 = 4;
const ROUNDS: u64 = 4;

/// The content of a slot: its stamp, in every word.
fn content(stamp: u64) -> Vec<u8> {
    stamp.to_le_bytes().repeat(512)
}

/// The stamp of a slot that is whole.
#[track_caller]
fn stamp_of(bytes: &[u8]) -> u64 {
    let stamp = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    assert!(bytes == content(stamp), "a slot is torn");
    stamp
}

/// Slots of a writer: the stamps that were acknowledged and those that were sent.
struct Slot {
    acknowledged: u64,
    sent: u64,
}

/// Writes to the slots of one writer until the server goes, round after round.
fn write(client: &Client, writer: u64, first: u64, done: &AtomicUsize) -> Vec<(u64, Slot)> {
    let own = (0..SLOTS).filter(|slot| slot % WRITERS == writer);
    let mut slots: Vec<(u64, Slot)> =
        own.map(|slot| (slot, Slot { acknowledged: first, sent: first })).collect();
    for stamp in first + 1.. {
        for (slot, state) in &mut slots {
            state.sent = stamp;
            match client.try_put(BLOB, *slot * SLOT, &content(stamp)) {
                Some(answer) if answer.status == 201 => state.acknowledged = stamp,
                Some(answer) => panic!("{answer:?} {}", answer.text()),
                None => return slots,
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
    slots
}

#[test]
fn acknowledged_changes_survive_a_kill() {
    let mut place = Place::without_a_disk();
    let mut first = 1;
    let mut etags = std::collections::BTreeSet::new();
    let mut snapshots: Vec<(String, u64)> = Vec::new();
    for round in 0..ROUNDS {
        let rig = Rig::new(place, LAYOUT, &["--data", "data"]);
        let client = rig.client.clone();
        if round == 0 {
            client.container("crash");
            client.page_blob(BLOB, SLOTS * SLOT + 8192);
        }
        for slot in 0..SLOTS {
            client.put(BLOB, slot * SLOT, &content(first));
        }
        let made = client.must("PUT", &format!("{BLOB}?comp=snapshot"), &[], &[]);
        snapshots.push((made.headers["x-ms-snapshot"].replace(':', "%3A"), first));
        let etag = client.must("HEAD", BLOB, &[], &[]).headers["etag"].clone();
        assert!(etags.insert(etag), "an ETag came twice");
        let done = AtomicUsize::new(0);
        let slots: Vec<(u64, Slot)> = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (client, done) = (&client, &done);
                    scope.spawn(move || write(client, writer, first, done))
                })
                .collect();
            // Somewhere in the middle, another place each round.
            let enough = 100 + 37 * usize::try_from(round).expect("it is small");
            while done.load(Ordering::Relaxed) < enough {
                thread::yield_now();
            }
            rig.server.signal(Signal::KILL);
            writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
        });
        let Rig { place: same, server, .. } = rig;
        server.wait();
        let rig = Rig::new(same, LAYOUT, &["--data", "data"]);
        let client = &rig.client;
        assert!(slots.iter().any(|(_, slot)| slot.acknowledged > first), "nothing was written");
        for (slot, Slot { acknowledged, sent }) in slots {
            let found = stamp_of(&client.get(BLOB, slot * SLOT, SLOT));
            assert!((acknowledged..=sent).contains(&found), "slot {slot}: {found}, {acknowledged}");
            first = first.max(sent + 1);
        }
        assert_eq!(client.ranges(BLOB, ""), [(0, SLOTS * SLOT - 1)]);
        for (snapshot, stamp) in &snapshots {
            let path = format!("{BLOB}?snapshot={snapshot}");
            for slot in [0, SLOTS / 2, SLOTS - 1] {
                assert_eq!(stamp_of(&client.get(&path, slot * SLOT, SLOT)), *stamp);
            }
        }
        let etag = client.must("HEAD", BLOB, &[], &[]).headers["etag"].clone();
        assert!(etags.insert(etag), "an ETag came twice");
        let Rig { place: same, server, .. } = rig;
        server.stop();
        place = same;
    }
}

/// Metadata, snapshots, sequence numbers and leases that were acknowledged survive a kill.
#[test]
fn what_was_set_survives_a_kill() {
    let rig = Rig::new(Place::without_a_disk(), LAYOUT, &["--data", "data"]);
    let client = &rig.client;
    client.must("PUT", "/kept?restype=container", &[("x-ms-meta-who", "me")], &[]);
    client.page_blob("/kept/a.vhd", 1 << 20);
    client.must("PUT", "/kept/a.vhd?comp=snapshot", &[], &[]);
    client.must("PUT", "/kept/a.vhd?comp=metadata", &[("x-ms-meta-a", "b")], &[]);
    let number = [("x-ms-sequence-number-action", "update"), ("x-ms-blob-sequence-number", "9")];
    client.must("PUT", "/kept/a.vhd?comp=properties", &number, &[]);
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    client.must("PUT", "/kept/a.vhd?comp=lease", &lease, &[]);
    rig.server.signal(Signal::KILL);
    let Rig { place, server, .. } = rig;
    server.wait();
    let rig = Rig::new(place, LAYOUT, &["--data", "data"]);
    let client = &rig.client;
    let container = client.must("HEAD", "/kept?restype=container", &[], &[]).headers;
    assert_eq!(container["x-ms-meta-who"], "me");
    let head = client.must("HEAD", "/kept/a.vhd", &[], &[]).headers;
    let names = ["x-ms-meta-a", "x-ms-blob-sequence-number", "x-ms-lease-state"];
    assert_eq!(names.map(|name| &*head[name]), ["b", "9", "leased"]);
    let list = "/kept?comp=list&include=snapshots&restype=container";
    let list = client.must("GET", list, &[], &[]).text();
    assert_eq!(list.matches("<Snapshot>").count(), 1, "{list}");
    rig.server.stop();
}

#[test]
fn all_that_was_set_is_there_after_a_restart() {
    let rig = Rig::new(Place::without_a_disk(), LAYOUT, &["--data", "data"]);
    let client = &rig.client;
    client.must("PUT", "/kept?restype=container", &[("x-ms-meta-who", "me")], &[]);
    client.page_blob("/kept/a.vhd", 1 << 20);
    client.put("/kept/a.vhd", 512, &[7; 1024]);
    client.must("PUT", "/kept/a.vhd?comp=metadata", &[("x-ms-meta-a", "b")], &[]);
    let tags = b"<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>";
    client.must("PUT", "/kept/a.vhd?comp=tags", &[], tags);
    client.must("PUT", "/kept/a.vhd?comp=snapshot", &[], &[]);
    client.put("/kept/a.vhd", 0, &[8; 512]);
    let number = [("x-ms-sequence-number-action", "update"), ("x-ms-blob-sequence-number", "9")];
    client.must("PUT", "/kept/a.vhd?comp=properties", &number, &[]);
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    client.must("PUT", "/kept/a.vhd?comp=lease", &lease, &[]);
    let block = [("x-ms-blob-type", "BlockBlob")];
    client.must("PUT", "/kept/b.bak", &block, &[5; 100_000]);
    client.must("PUT", "/kept/c.bak?blockid=QUJD&comp=block", &[], &[6; 10]);
    let seen = |client: &Client| {
        let list =
            "/kept?comp=list&include=metadata,snapshots,tags,uncommittedblobs&restype=container";
        let list = client.must("GET", list, &[], &[]).text();
        // The address is another after the restart.
        let list = list.split_once("<Blobs>").expect("a list").1.to_owned();
        let blocks = "/kept/c.bak?blocklisttype=all&comp=blocklist";
        (
            list,
            client.ranges("/kept/a.vhd", ""),
            client.must("GET", blocks, &[], &[]).text(),
            client.must("GET", "/kept/b.bak", &[], &[]).body,
            client.must("HEAD", "/kept?restype=container", &[], &[]).headers["x-ms-meta-who"]
                .clone(),
        )
    };
    let before = seen(client);
    assert_eq!(before.1, [(0, 1535)]);
    let Rig { place, server, .. } = rig;
    server.stop();
    let rig = Rig::new(place, LAYOUT, &["--data", "data"]);
    assert_eq!(seen(&rig.client), before);
    let refused = rig.client.try_put("/kept/a.vhd", 0, &[1; 512]).expect("an answer");
    assert_eq!((refused.status, refused.code()), (412, "LeaseIdMissing"));
    rig.server.stop();
}
