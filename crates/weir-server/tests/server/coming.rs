//! Volumes that are made on a running server, and deleted.

use crate::common::Place;
use serde_json::Value;
use weir_client::Connection;
use weir_layout::Role;
use weir_layout::hot_plug::NewVolume;
use weir_server::Server;
use weir_server::control::Request;
use weir_units::{Bytes, BytesPerSec, CacheMode, Iops};

fn new(name: &str, mib: u64) -> NewVolume {
    NewVolume { name: name.to_owned(), size: Some(Bytes::mib(mib)), ..NewVolume::default() }
}

fn create(server: &Server, volume: NewVolume) -> Result<Value, String> {
    let request = Request::Create { host: None, volume };
    server.command(request).map_err(|error| error.to_string())
}

fn delete(server: &Server, name: &str) -> Result<Value, String> {
    let request = Request::Delete { volume: name.to_owned(), if_unused: false };
    server.command(request).map_err(|error| error.to_string())
}

fn names(server: &Server) -> Vec<String> {
    let status = server.status();
    status.hosts[0].volumes.iter().map(|volume| volume.name.clone()).collect()
}

const PREMIUM: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\n\
    name = \"v\"\ntier = \"P10\"\n";

#[test]
fn a_host_without_an_edition_takes_volumes_with_limits_of_their_own() {
    let place = Place::new();
    let layout = "host = { unlimited = true }\n[[volume]]\nname = \"v\"\nsize = \"1 MiB\"\nunlimited = true\n";
    let server = place.serve_kept(layout);
    let error = create(&server, new("more", 1)).expect_err("no limits");
    assert_eq!(
        error,
        "volume \"more\": the layout names no edition in which to look up its limits; give it IOPS or \
         throughput of its own, or make it unlimited"
    );
    create(&server, NewVolume { unlimited: true, ..new("free", 1) }).expect("a volume");
    create(&server, NewVolume { iops: Iops::new(70), ..new("own", 1) }).expect("a volume");
    server.stop().expect("a clean end");
    let server = place.serve_kept(layout);
    let limits = |server: &Server| -> Vec<Option<u64>> {
        server.status().hosts[0].volumes.iter().map(|own| own.limit_iops).collect()
    };
    assert_eq!(names(&server), ["v", "free", "own"]);
    assert_eq!(limits(&server), [None, None, Some(70)]);
    server.stop().expect("a clean end");
}

#[test]
fn provisioned_rates_and_own_limits_change_on_a_running_server() {
    let place = Place::new();
    let layout = "edition = \"azure-now\"\nhost = { unlimited = true }\n[[volume]]\nname = \"v\"\n\
        family = \"premium-ssd-v2\"\nsize = \"1 TiB\"\niops = 4000\n";
    let server = place.serve_kept(layout);
    let own = NewVolume { iops: Iops::new(70), ..new("own", 1) };
    create(&server, own).expect("a volume");
    let family = Some("premium-ssd-v2".to_owned());
    create(&server, NewVolume { family, ..new("made", 1 << 20) }).expect("a volume");
    let set = |server: &Server, volume: &str, iops, throughput| {
        let (iops, throughput) = (Iops::new(iops), BytesPerSec::new(throughput));
        let request = Request::SetRates { volume: volume.to_owned(), iops, throughput };
        server.command(request).map_err(|error| error.to_string())
    };
    let limits = |server: &Server| -> Vec<(u64, u64)> {
        let volumes = &server.status().hosts[0].volumes;
        let limits = |own: &weir_report::status::VolumeStatus| {
            (own.limit_iops.unwrap_or(0), own.limit_bytes_per_s.unwrap_or(0))
        };
        volumes.iter().map(limits).collect()
    };
    assert_eq!(limits(&server), [(4000, 125_000_000), (70, 0), (3000, 125_000_000)]);
    set(&server, "v", 9000, 0).expect("rates");
    set(&server, "own", 90, 4_000_000).expect("limits");
    set(&server, "made", 5000, 300_000_000).expect("rates");
    let error = set(&server, "made", 900_000_000, 0).expect_err("too many");
    assert_eq!(
        error,
        "premium-ssd-v2: 900000000 IOPS cannot be provisioned at 1 TiB; from 3000 IOPS to 80000 IOPS can"
    );
    let error = set(&server, "made", 0, 0).expect_err("nothing");
    assert_eq!(error, "volume \"made\": give operations per second, throughput, or both");
    let now = [(9000, 125_000_000), (90, 4_000_000), (5000, 300_000_000)];
    assert_eq!(limits(&server), now);
    server.resize("made", Bytes::gib(1030)).expect("a size");
    server.stop().expect("a clean end");
    // A volume of the layout has the rates of the layout again.
    let server = place.serve_kept(layout);
    assert_eq!(limits(&server), [(4000, 125_000_000), now[2], now[1]]);
    server.stop().expect("a clean end");
}

#[test]
fn a_volume_that_is_made_has_its_tier_and_is_there_after_a_restart() {
    let place = Place::new();
    let server = place.serve_kept(PREMIUM);
    let made = create(&server, NewVolume { tier: Some("P30".into()), ..new("more", 1024) });
    let made = made.expect("a volume");
    assert_eq!((&made["tier"], &made["size"]), (&"P30".into(), &"1 GiB".into()));
    let mut client = place.open("more");
    assert_eq!(client.size(), Bytes::gib(1));
    client.write(12_345, b"kept").expect("a write");
    client.flush().expect("a flush");
    server.stop().expect("a clean end");

    let server = place.serve_kept(PREMIUM);
    assert_eq!(names(&server), ["v", "more"]);
    let status = server.status();
    let limit = status.hosts[0].volumes[1].limit_iops;
    assert_eq!(limit, Some(5_000));
    let mut found = [0; 4];
    place.open("more").read(12_345, &mut found).expect("a read");
    assert_eq!(&found, b"kept");
    server.stop().expect("a clean end");

    // Once a layout names it, it is the layout's.
    let named =
        [PREMIUM, "[[volume]]\nname = \"more\"\ntier = \"P20\"\nsize = \"1 GiB\"\n"].concat();
    let server = place.serve_kept(&named);
    place.open("more").read(12_345, &mut found).expect("a read");
    assert_eq!(&found, b"kept");
    assert_eq!(server.status().hosts[0].volumes[1].limit_iops, Some(2_300));
    let refused = "volume \"more\": it is in the layout; remove it there, and then remove its \
                   folder";
    assert_eq!(delete(&server, "more"), Err(refused.to_owned()));
}

/// A conditional deletion goes by what is stored and who is connected now, also after a restart.
#[test]
fn only_a_volume_without_clients_and_data_is_deleted_if_unused() {
    let place = Place::new();
    let server = place.serve_kept(PREMIUM);
    let delete_unused = |server: &Server, name: &str| {
        let request = Request::Delete { volume: name.to_owned(), if_unused: true };
        server.command(request).map_err(|error| error.to_string())
    };
    let refused = |name: &str| {
        Err(format!(
            "volume {name:?}: clients are connected to it, a backup reads it, or it holds data"
        ))
    };
    create(&server, new("empty", 2)).expect("a volume");
    create(&server, new("full", 2)).expect("a volume");
    // Dirty blocks of a write-back cache are data.
    let cached = NewVolume { cache: CacheMode::ReadWrite, ..new("cached", 2) };
    create(&server, cached).expect("a volume");
    let mut client = place.open("cached");
    client.write(0, b"kept").expect("a write");
    client.close().expect("an end");
    assert_eq!(delete_unused(&server, "cached"), refused("cached"));
    delete(&server, "cached").expect("a volume");
    let mut client = place.open("full");
    // Its first answer shows that it has been taken in.
    client.read(0, &mut [0]).expect("a read");
    assert_eq!(delete_unused(&server, "full"), refused("full"));
    client.write(1 << 20, b"kept").expect("it is still there");
    client.flush().expect("a flush");
    client.close().expect("an end");
    assert_eq!(delete_unused(&server, "full"), refused("full"));
    server.stop().expect("a clean end");

    let server = place.serve_kept(PREMIUM);
    assert_eq!(delete_unused(&server, "full"), refused("full"), "its counters are zero again");
    delete_unused(&server, "empty").expect("it is unused");
    assert_eq!(names(&server), ["v", "full"]);
    let mut found = [0; 4];
    place.open("full").read(1 << 20, &mut found).expect("new clients find it");
    assert_eq!(&found, b"kept");
    server.stop().expect("a clean end");
}

#[test]
fn a_volume_that_is_deleted_is_gone_with_its_bytes_and_its_clients() {
    let place = Place::new();
    let server = place.serve_kept(PREMIUM);
    create(&server, new("x", 2)).expect("a volume");
    let mut client = place.open("x");
    client.write(0, &[7; 4096]).expect("a write");
    delete(&server, "x").expect("it is made here");
    assert!(client.read(0, &mut [0; 4096]).is_err(), "the connection is cut");
    let uri = format!("nbd+unix:///x?socket={}", place.socket().display());
    assert!(Connection::open(&uri.parse().expect("a URI")).is_err(), "there is no such export");
    assert_eq!(names(&server), ["v"]);
    assert!(!place.data().join("volumes/x").exists());
    assert_eq!(delete(&server, "x"), Err("there is no volume \"x\"; there is v".to_owned()));
    // Another of its name, in its place, has none of its bytes.
    create(&server, new("x", 4)).expect("a volume");
    let mut client = place.open("x");
    let mut found = [1; 4096];
    client.read(0, &mut found).expect("a read");
    assert_eq!((found, client.size()), ([0; 4096], Bytes::mib(4)));
    assert_eq!(
        create(&server, new("v", 4)),
        Err("volume \"v\": this name is taken; choose another".to_owned())
    );
    server.stop().expect("a clean end");
    assert_eq!(names(&place.serve_kept(PREMIUM)), ["v", "x"]);
}

#[test]
fn a_volume_goes_with_requests_under_way_and_its_host_lives() {
    let place = Place::new();
    let server = place.serve(PREMIUM);
    create(&server, new("x", 2)).expect("a volume");
    let mut client = place.open("x");
    for cookie in 0..2_000 {
        client.queue_write(cookie, 0, &[1; 4096], false).expect("room");
    }
    client.flush_out().expect("a socket");
    delete(&server, "x").expect("it goes");
    assert_eq!(names(&server), ["v"]);
    place.open("v").write(0, &[1; 512]).expect("the host lives");
}

#[test]
fn an_instance_takes_files_as_far_as_it_has_room() {
    let place = Place::new();
    let layout = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8, storage \
                  = \"64 GiB\" }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"32 GiB\"\n";
    let server = place.serve(layout);
    let file = |name: &str, gib| NewVolume {
        role: Some(Role::Log),
        size: Some(Bytes::gib(gib)),
        ..new(name, 0)
    };
    let refused = create(&server, file("log", 33));
    assert_eq!(
        refused,
        Err("host \"host\": size of all files is 65 GiB, 1 GiB more than the 64 GiB of storage of the \
             gp instance"
            .to_owned())
    );
    assert_eq!(
        create(&server, new("log", 32)),
        Err("volume \"log\": it is a file of a managed instance; give its size and its role"
            .to_owned())
    );
    create(&server, file("log", 32)).expect("it fits");
    assert!(create(&server, file("more", 1)).is_err());
    delete(&server, "log").expect("it goes");
    create(&server, file("more", 1)).expect("there is room again");
    assert_eq!(names(&server), ["data", "more"]);
    server.resize("more", Bytes::gib(32)).expect("there is space");
}

const TWO_FILES: &str = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8, \
    storage = \"64 GiB\" }\n[[file]]\nname = \"d1\"\nrole = \"data\"\nsize = \"32 GiB\"\n[[file]]\n\
    name = \"d2\"\nrole = \"data\"\nsize = \"32 GiB\"\n";

fn sizes(server: &Server) -> Vec<u64> {
    let volumes = &server.status().hosts[0].volumes;
    volumes.iter().map(|volume| volume.size_bytes >> 30).collect()
}

/// The first file is larger than there is room for beside the size that the layout has for the second one.
#[test]
fn files_that_changed_places_in_an_instance_return_with_their_sizes() {
    let place = Place::new();
    let server = place.serve_kept(TWO_FILES);
    server.resize("d2", Bytes::gib(16)).expect("a size");
    server.resize("d1", Bytes::gib(48)).expect("there is room");
    assert!(server.resize("d2", Bytes::gib(17)).is_err(), "there is no more");
    server.stop().expect("a clean end");
    let server = place.serve_kept(TWO_FILES);
    assert_eq!(server.refused(), []);
    assert_eq!(sizes(&server), [48, 16]);
    server.stop().expect("a clean end");
}

/// A file that was created has the room that both files of the layout gave up.
#[test]
fn files_return_beside_one_that_was_created_in_their_room() {
    let place = Place::new();
    let server = place.serve_kept(TWO_FILES);
    for name in ["d1", "d2"] {
        server.resize(name, Bytes::gib(16)).expect("a size");
    }
    let role = Some(Role::Data);
    create(&server, NewVolume { role, ..new("made", 32 << 10) }).expect("there is room");
    server.stop().expect("a clean end");
    let server = place.serve_kept(TWO_FILES);
    assert_eq!(server.refused(), []);
    assert_eq!(sizes(&server), [16, 16, 32]);
    server.stop().expect("a clean end");
}

/// A creation that fails removes only what it made.
#[test]
fn a_file_in_place_of_a_volume_is_kept() {
    let place = Place::new();
    let server = place.serve_kept(PREMIUM);
    let file = place.data().join("volumes/x");
    std::fs::write(&file, "notes").expect("a file");
    create(&server, new("x", 2)).expect_err("there is a file");
    assert_eq!(std::fs::read(&file).expect("the file"), b"notes");
    std::fs::remove_file(&file).expect("it is there");
    create(&server, new("x", 2)).expect("a volume");
    server.stop().expect("a clean end");
}

#[test]
fn files_that_grow_at_once_do_not_exceed_their_instance() {
    let place = Place::new();
    let server = place.serve_kept(TWO_FILES);
    for round in 0..20 {
        for name in ["d1", "d2"] {
            server.resize(name, Bytes::gib(20)).expect("a size");
        }
        let grown: Vec<bool> = std::thread::scope(|scope| {
            let server = &server;
            let grow = |name| scope.spawn(move || server.resize(name, Bytes::gib(40)).is_ok());
            let threads = ["d1", "d2"].map(grow);
            threads.map(|thread| thread.join().expect("no panic")).into()
        });
        assert_eq!(grown.iter().filter(|own| **own).count(), 1, "round {round}: {grown:?}");
        assert_eq!(sizes(&server).iter().sum::<u64>(), 60);
    }
    server.stop().expect("a clean end");
}

/// Several clients make and delete at once: each has what it was told that it has.
#[test]
fn concurrent_creates_and_deletes_get_correct_answers() {
    let place = Place::new();
    let server = place.serve_kept(PREMIUM);
    std::thread::scope(|scope| {
        for client in 0..3 {
            let (server, place) = (&server, &place);
            scope.spawn(move || {
                for round in 0..15 {
                    let name = format!("t{client}-{round}");
                    create(server, new(&name, 1 + client)).expect("a volume");
                    let mut connection = place.open(&name);
                    assert_eq!(connection.size(), Bytes::mib(1 + client));
                    let mut bytes = [1; 4096];
                    connection.read(0, &mut bytes).expect("a read");
                    assert_eq!(bytes, [0; 4096], "{name} has another's bytes");
                    connection.write(0, name.as_bytes()).expect("a write");
                    delete(server, &name).expect("it is there");
                }
            });
        }
    });
    assert_eq!(names(&server), ["v"]);
    assert_eq!(server.uris().into_keys().collect::<Vec<_>>(), ["v"]);
    assert_eq!(std::fs::read_dir(place.data().join("volumes")).expect("a folder").count(), 1);
    assert!(server.resize("", Bytes::gib(1)).is_err(), "what has gone has no name");
}

/// The checksums of a created volume are there after a restart, and its damage is found then.
#[test]
fn a_volume_that_is_made_with_checksums_keeps_them() {
    let place = Place::new();
    let server = place.serve_kept(PREMIUM);
    let volume = NewVolume { checksums: true, ..new("more", 1024) };
    let blob = NewVolume { blob: true, ..volume.clone() };
    assert!(create(&server, NewVolume { name: "b".into(), ..blob }).is_err());
    create(&server, volume).expect("a volume");
    create(&server, new("other", 1024)).expect("a volume");
    place.open("more").write(0, &[7; 8192]).expect("a write");
    server.stop().expect("a clean end");

    let server = place.serve_kept(PREMIUM);
    let damage = |server: &Server| -> Vec<Option<u64>> {
        let volumes = &server.status().hosts[0].volumes;
        volumes.iter().map(|own| own.damage.as_ref().map(|own| own.failed_requests)).collect()
    };
    assert_eq!(damage(&server), [None, Some(0), None]);
    let file = place.path("data/volumes/more/data/00000");
    let file = std::fs::File::options().write(true).open(file).expect("a file");
    std::os::unix::fs::FileExt::write_all_at(&file, &[8], 4096).expect("a write");
    let mut client = place.open("more");
    client.read(0, &mut [0; 4096]).expect("a read");
    client.read(4096, &mut [0; 4096]).expect_err("damage");
    assert_eq!(damage(&server), [None, Some(1), None]);
    drop(client);
    server.stop().expect("a clean end");
}

#[test]
fn checksums_of_a_volume_in_memory_are_refused() {
    let place = Place::new();
    let server = place.serve(PREMIUM);
    let error = create(&server, NewVolume { checksums: true, ..new("more", 1024) });
    let error = error.expect_err("no data folder");
    assert!(error.contains("the server has volumes in memory, which have no checksums"), "{error}");
    server.stop().expect("a clean end");
}

#[test]
fn created_volumes_return_on_their_host_with_their_size() {
    let place = Place::new();
    let two =
        "[[host]]\nname = \"a\"\nunlimited = true\n[[host]]\nname = \"b\"\nunlimited = true\n";
    let volume = |name: &str, host: &str| {
        format!("[[volume]]\nname = \"{name}\"\nhost = \"{host}\"\ntier = \"P10\"\n")
    };
    let edition = "edition = \"azure-premium-2015\"\n";
    let layout = [edition, two, &volume("v", "a"), &volume("w", "b")].concat();
    let server = place.serve_kept(&layout);
    for (name, gib) in [("more", 1), ("gone", 1), ("grown", 100)] {
        let volume = NewVolume { size: Some(Bytes::gib(gib)), ..new(name, 0) };
        let request = Request::Create { host: Some("a".to_owned()), volume };
        server.command(request).expect("a volume");
    }
    server.resize("grown", Bytes::gib(600)).expect("a size");
    server.stop().expect("a clean end");

    // Another host names one of them; and they are where they were made, at their size.
    let named = [layout.as_str(), &volume("more", "b")].concat();
    let server = place.serve_kept(&named);
    let status = server.status();
    let all = |host: usize| -> Vec<(&str, Option<&str>)> {
        let volumes = status.hosts[host].volumes.iter();
        volumes.map(|volume| (volume.name.as_str(), volume.tier.as_deref())).collect()
    };
    assert_eq!(all(0), [("v", Some("P10")), ("gone", Some("P10")), ("grown", Some("P30"))]);
    assert_eq!(all(1), [("w", Some("P10")), ("more", Some("P10"))]);
    assert!(delete(&server, "more").is_err(), "it is the layout's now");
    server.stop().expect("a clean end");

    // Their host has another name: that is told.
    let renamed = [edition, &two.replace("\"a\"", "\"aa\""), &volume("v", "aa"), &volume("w", "b")];
    let server = place.serve_kept(&renamed.concat());
    let refused = server.refused();
    let told: Vec<&str> = refused.iter().map(|refused| refused.name.as_str()).collect();
    assert_eq!(told, ["gone", "grown"]);
    let reason = "it was created on host \"a\", which the layout does not have";
    assert!(refused.iter().all(|refused| refused.reason == reason), "{refused:?}");
}
