//! A blob's size decides its limits, and they hold.

use super::Rig;
use crate::common::{Place, run};
use serde_json::Value;
use std::thread;

const LAYOUT: &str = "edition = \"azure-now\"\n[host]\nunlimited = true\n[blob]\n";

fn volume(rig: &Rig, name: &str) -> Value {
    let (stdout, stderr, code) = run(rig.place.weir(&["status", "-o", "json"]));
    assert_eq!(code, Some(0), "{stderr}");
    let status: Value = serde_json::from_str(&stdout).expect("JSON");
    let volumes = status["hosts"][0]["volumes"].as_array().expect("volumes");
    volumes.iter().find(|volume| volume["name"] == name).expect("the blob").clone()
}

#[test]
fn size_decides_the_tier_and_a_resize_moves_it_live() {
    let rig = Rig::new(Place::without_a_disk(), LAYOUT, &[]);
    rig.client.container("disks");
    rig.client.page_blob("/disks/a", 100 << 30);
    let tier = |rig: &Rig| {
        let head = rig.client.must("HEAD", "/disks/a", &[], &[]).headers;
        (head["x-ms-access-tier"].clone(), volume(rig, "disks.a")["limit_iops"].clone())
    };
    assert_eq!(tier(&rig), ("P10".to_owned(), 500.into()));
    let size = (1_u64 << 40).to_string();
    let resize = [("x-ms-blob-content-length", &*size)];
    rig.client.must("PUT", "/disks/a?comp=properties", &resize, &[]);
    assert_eq!(tier(&rig), ("P30".to_owned(), 5000.into()));
    // Data behind a nearer end goes, and does not come back.
    rig.client.put("/disks/a", (1 << 40) - 512, &[7; 512]);
    let size = (200_u64 << 30).to_string();
    let resize = [("x-ms-blob-content-length", &*size)];
    rig.client.must("PUT", "/disks/a?comp=properties", &resize, &[]);
    assert_eq!(tier(&rig), ("P15".to_owned(), 1100.into()));
    assert_eq!(rig.client.ranges("/disks/a", ""), []);
    let set = [("x-ms-access-tier", "P20")];
    rig.client.must("PUT", "/disks/a?comp=tier", &set, &[]);
    assert_eq!(tier(&rig), ("P20".to_owned(), 2300.into()));
    let unknown = rig.client.ask("PUT", "/disks/a?comp=tier", &[("x-ms-access-tier", "P99")], &[]);
    assert_eq!(unknown.code(), "InvalidBlobTier");
}

#[test]
fn requests_over_a_cap_wait_and_the_wait_is_counted() {
    let layout = "[host]\nunlimited = true\n[blob]\niops = 100\n";
    let rig = Rig::new(Place::without_a_disk(), layout, &[]);
    rig.client.container("disks");
    rig.client.page_blob("/disks/slow", 1 << 20);
    let clock = weir_wall::Clock::start();
    thread::scope(|scope| {
        for writer in 0..4_u64 {
            let client = &rig.client;
            scope.spawn(move || {
                for n in 0..25 {
                    client.put("/disks/slow", (writer * 25 + n) * 512, &[1; 512]);
                }
            });
        }
    });
    // 100 writes of which the first goes at once.
    assert!(clock.now().nanos() >= 990_000_000, "{:?}", clock.now());
    let slow = volume(&rig, "disks.slow");
    assert_eq!(slow["writes"], 100);
    assert!(slow["waits_ns"]["disk_iops"].as_u64() > Some(1_000_000_000), "{slow}");
}

#[test]
fn a_layout_may_have_it_refused() {
    let layout = "[host]\nunlimited = true\n[blob]\niops = 10\nover = \"reject\"\n";
    let rig = Rig::new(Place::without_a_disk(), layout, &[]);
    rig.client.container("disks");
    rig.client.page_blob("/disks/slow", 1 << 20);
    let put = || rig.client.try_put("/disks/slow", 0, &[1; 512]).expect("an answer");
    let answers: Vec<_> = thread::scope(|scope| {
        let askers: Vec<_> = (0..20).map(|_| scope.spawn(put)).collect();
        askers.into_iter().map(|asker| asker.join().expect("an asker")).collect()
    });
    let busy: Vec<_> = answers.iter().filter(|answer| answer.status == 503).collect();
    assert!(busy.len() < 20 && !busy.is_empty(), "{answers:?}");
    for answer in &busy {
        assert_eq!((answer.code(), &*answer.headers["retry-after"]), ("ServerBusy", "1"));
    }
    let (stdout, _, _) = run(rig.place.weir(&["status", "-o", "json"]));
    let status: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(status["hosts"][0]["exports"][0]["rejected"], busy.len());
}

#[test]
fn a_queue_that_is_full_refuses() {
    let layout = "[host]\nunlimited = true\n[blob]\niops = 2\nqueue = 1\n";
    let rig = Rig::new(Place::without_a_disk(), layout, &[]);
    rig.client.container("disks");
    rig.client.page_blob("/disks/slow", 1 << 20);
    let put = || rig.client.try_put("/disks/slow", 0, &[1; 512]).expect("an answer").status;
    let statuses: Vec<u16> = thread::scope(|scope| {
        let askers: Vec<_> = (0..6).map(|_| scope.spawn(put)).collect();
        askers.into_iter().map(|asker| asker.join().expect("an asker")).collect()
    });
    assert!(statuses.contains(&201) && statuses.contains(&503), "{statuses:?}");
}

#[test]
fn a_file_of_an_instance_is_a_blob_and_counts_against_it() {
    let layout =
        "edition = \"azure-mi-2018\"\n[host]\nmanaged_instance = \"gp\"\nvcores = 8\n[blob]\n";
    let rig = Rig::new(Place::without_a_disk(), layout, &[]);
    rig.client.container("tpcc");
    rig.client.page_blob("/tpcc/tpcc.mdf", 200 << 30);
    let file = volume(&rig, "tpcc.tpcc.mdf");
    assert_eq!(file["tier"], "P15", "{file}");
    let size = (9_u64 << 40).to_string();
    let headers = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*size)];
    let refused = rig.client.ask("PUT", "/tpcc/more.mdf", &headers, &[]);
    assert_eq!((refused.status, refused.code()), (400, "OutOfRangeInput"));
    let size = (8_u64 << 40).to_string();
    let headers = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*size)];
    let refused = rig.client.ask("PUT", "/tpcc/more.mdf", &headers, &[]);
    assert_eq!((refused.status, refused.code()), (400, "InvalidInput"), "{}", refused.text());
}
