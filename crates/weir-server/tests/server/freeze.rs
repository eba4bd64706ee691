//! Frozen exports: one instant, whatever is written, resized, deleted or crashed since.

use crate::common::{Place, Raw, request, unlimited};
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_client::Connection;
use weir_proto::{BlockState, Command, Errno, TransmissionFlags};
use weir_server::ServerError;
use weir_server::control::{
    ChangedAnswer, Conversation, FreezeAnswer, Purpose, ReleaseAnswer, Request as Control,
};
use weir_units::Bytes;

const BLOCK: u64 = 64 << 10;

impl Place {
    fn converse(&self) -> Conversation {
        Conversation::open(&self.path("control.sock")).expect("a server")
    }
}

fn freeze(conversation: &mut Conversation, exports: &[&str], purpose: Purpose) -> FreezeAnswer {
    let exports = exports.iter().map(|name| (*name).to_owned()).collect();
    let request = Control::Freeze { exports, purpose, backup: "full-1".to_owned() };
    conversation.ask_for(&request).expect("a freeze")
}

fn release(conversation: &mut Conversation, freeze: u64, completed: bool) -> ReleaseAnswer {
    conversation.ask_for(&Control::Release { freeze, completed }).expect("a freeze that is there")
}

fn changed(conversation: &mut Conversation, freeze: u64, export: &str) -> Vec<(u64, u64)> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let export = export.to_owned();
        let answer: ChangedAnswer =
            conversation.ask_for(&Control::Changed { freeze, export, from }).expect("an answer");
        all.extend(answer.ranges);
        match answer.next {
            Some(next) => from = next,
            None => return all,
        }
    }
}

fn contents(client: &mut Connection, offset: u64, len: usize) -> Vec<u8> {
    let mut found = vec![0xee; len];
    client.read(offset, &mut found).expect("a read");
    found
}

/// The number that the block at `offset` was filled with; not torn.
fn stamp(client: &mut Connection, offset: u64) -> u64 {
    let found = contents(client, offset, 4096);
    let stamp = u64::from_le_bytes(found[..8].try_into().expect("eight bytes"));
    assert!(found == stamp.to_le_bytes().repeat(512), "a torn block");
    stamp
}

/// Writes a number to `first`, and when that is answered to `second`, and so on; the pair is
/// frozen many times meanwhile.
fn check_order(place: &Place, first: &str, second: &str, flushes: bool) {
    const FREEZES: usize = 40;
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (stop, written) = (&stop, &written);
        scope.spawn(move || {
            let mut clients = [place.open(first), place.open(second)];
            for number in 1_u64.. {
                for client in &mut clients {
                    let offset = number % 7 * 4096;
                    client.write(offset, &number.to_le_bytes().repeat(512)).expect("a write");
                    if flushes && number % 5 == 0 {
                        client.flush().expect("a flush");
                    }
                }
                written.store(number, Ordering::SeqCst);
                if stop.load(Ordering::Acquire) {
                    return;
                }
            }
        });
        let mut conversation = place.converse();
        let newest = |client: &mut Connection| (0..7).map(|n| stamp(client, n * 4096)).max();
        for _ in 0..FREEZES {
            let before = written.load(Ordering::SeqCst);
            let frozen = freeze(&mut conversation, &[first, second], Purpose::CopyOnly);
            // The writer goes on between the freeze and the reads.
            while written.load(Ordering::SeqCst) < before + 3 {
                std::thread::yield_now();
            }
            let mut views = frozen.exports.iter().map(|export| place.open(&export.frozen));
            let mut views = [views.next().expect("two"), views.next().expect("two")];
            let seen = views.each_mut().map(|view| newest(view).expect("seven"));
            assert!(seen[1] >= before, "{seen:?} misses what was answered before: {before}");
            assert!(seen[0] >= seen[1], "{seen:?}: the second is ahead of the first");
            assert!(seen[0] <= seen[1] + 1, "{seen:?} are of two instants");
            let again = views.each_mut().map(|view| newest(view).expect("seven"));
            assert_eq!(seen, again, "the view moved");
            release(&mut conversation, frozen.freeze, false);
        }
        stop.store(true, Ordering::Release);
    });
}

const CACHED: &str = "[host]\nunlimited = true\ncache = { size = \"8 MiB\" }\n";

#[test]
fn a_frozen_pair_is_of_one_instant_in_memory_and_in_files() {
    let layout = unlimited("1 MiB", &["a", "b"]);
    let place = Place::new();
    let server = place.serve(&layout);
    check_order(&place, "a", "b", true);
    server.stop().expect("a clean end");
    let server = place.serve_kept(&layout);
    check_order(&place, "a", "b", true);
    assert_eq!(frozen_folders(&place), Vec::<String>::new());
    server.stop().expect("a clean end");
}

#[test]
fn a_frozen_pair_under_a_read_write_cache_is_of_one_instant() {
    let cache = "cache = \"read-write\"\n";
    let layout = CACHED.to_owned()
        + &unlimited("1 MiB", &["a"])
        + cache
        + &unlimited("1 MiB", &["b"])
        + cache;
    let place = Place::new();
    let server = place.serve_kept(&layout);
    check_order(&place, "a", "b", true);
    server.stop().expect("a clean end");
}

const TWO_HOSTS: &str = r#"
[[host]]
name = "one"
unlimited = true
[[host]]
name = "two"
unlimited = true
[[volume]]
name = "a"
host = "one"
unlimited = true
size = "1 MiB"
[[stripe]]
name = "b"
host = "two"
unit = "4 KiB"
volumes = { count = 3, unlimited = true, size = "1 MiB" }
"#;

#[test]
fn a_frozen_pair_on_two_hosts_one_of_them_a_stripe_is_of_one_instant() {
    let place = Place::new();
    let server = place.serve_kept(TWO_HOSTS);
    check_order(&place, "a", "b", false);
    check_order(&place, "b", "a", false);
    server.stop().expect("a clean end");
}

/// Two freezes over the same two hosts do not wait for each other for ever.
#[test]
fn freezes_over_several_hosts_can_be_asked_for_at_once() {
    let place = Place::new();
    let server = place.serve(TWO_HOSTS);
    std::thread::scope(|scope| {
        for names in [["a", "b"], ["b", "a"], ["a", "b"]] {
            let place = &place;
            scope.spawn(move || {
                let mut conversation = place.converse();
                for _ in 0..50 {
                    let frozen = freeze(&mut conversation, &names, Purpose::CopyOnly);
                    assert_eq!(frozen.exports.each_name(), names);
                    release(&mut conversation, frozen.freeze, false);
                }
            });
        }
    });
    server.stop().expect("a clean end");
}

trait Names {
    fn each_name(&self) -> Vec<&str>;
}

impl Names for Vec<weir_server::control::FrozenExport> {
    fn each_name(&self) -> Vec<&str> {
        self.iter().map(|export| export.name.as_str()).collect()
    }
}

fn frozen_folders(place: &Place) -> Vec<String> {
    let Ok(entries) = place.data().join("frozen").read_dir() else { return Vec::new() };
    entries.map(|entry| entry.expect("a name").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_frozen_export_is_listed_read_only_and_keeps_its_holes() {
    let place = Place::new();
    let server = place.serve_kept(&unlimited("4 MiB", &["v", "w"]));
    let mut client = place.open("v");
    client.write(BLOCK, &[1; 4096]).expect("a write");
    let mut conversation = place.converse();
    let frozen = freeze(&mut conversation, &[], Purpose::Full);
    let told: Vec<_> = frozen.exports.iter().map(|e| (&*e.name, &*e.frozen, e.size)).collect();
    assert_eq!(told, [("v", "v@1", 4 << 20), ("w", "w@1", 4 << 20)]);
    assert!(frozen.exports.iter().all(|e| e.tracked && e.base.is_none()));
    assert!(server.uris().contains_key("v@1"));
    client.write(BLOCK, &[2; 4096]).expect("a write");
    client.write(3 * BLOCK, &[2; 4096]).expect("a write");

    let mut view = Connection::open_sparse(&place.uri("v@1")).expect("the view");
    assert_eq!(contents(&mut view, BLOCK, 4096), [1; 4096]);
    assert_eq!(contents(&mut view, 3 * BLOCK, 4096), [0; 4096]);
    let extents = view.extents(0, 4 << 20).expect("extents");
    let data: u64 = extents
        .iter()
        .filter(|e| !e.state.contains(BlockState::ZERO))
        .map(|e| u64::from(e.length))
        .sum();
    assert!(data <= BLOCK, "{extents:?}");
    let mut raw = Raw::open(&place.socket(), "v@1");
    assert!(raw.flags().contains(TransmissionFlags::READ_ONLY));
    for command in [Command::Write, Command::Trim, Command::WriteZeroes] {
        let mut bytes = request(command, 7, 0, 512);
        if command == Command::Write {
            bytes.extend([0; 512]);
        }
        raw.send(&bytes);
        assert_eq!(raw.answer(), Some((7, Err(Errno::Perm))));
    }
    raw.send(&request(Command::Read, 8, (4 << 20) - 512, 1024));
    assert_eq!(raw.answer(), Some((8, Err(Errno::Inval))));

    let told = release(&mut conversation, 1, false);
    assert_eq!((told.freeze, told.base_of.len()), (1, 0));
    assert!(told.kept_bytes >= 4096);
    raw.send(&request(Command::Read, 9, 0, 512));
    assert_eq!(raw.answer(), Some((9, Err(Errno::Io))), "the freeze is over");
    assert!(Connection::open(&place.uri("v@1")).is_err());
    assert_eq!(frozen_folders(&place), Vec::<String>::new());
    server.stop().expect("a clean end");
}

#[test]
fn a_freeze_ends_with_its_conversation_and_belongs_to_it() {
    let place = Place::new();
    let server = place.serve_kept(&unlimited("1 MiB", &["v"]));
    let mut client = place.open("v");
    client.write(0, &[1; 4096]).expect("a write");
    let mut conversation = place.converse();
    let number = freeze(&mut conversation, &["v"], Purpose::Full).freeze;
    client.write(0, &[2; 4096]).expect("a write");
    assert_eq!(frozen_folders(&place), [number.to_string()]);
    let refused = place.ask(&Control::Release { freeze: number, completed: true });
    let expect = format!("freeze {number} does not belong to this connection");
    assert_eq!(refused.unwrap_err(), expect);
    assert_eq!(contents(&mut place.open("v@1"), 0, 1), [1]);
    drop(conversation);
    while !frozen_folders(&place).is_empty() {
        std::thread::yield_now();
    }
    assert!(!server.uris().contains_key("v@1"));
    // It is not complete, so nothing builds on it.
    let again = freeze(&mut place.converse(), &["v"], Purpose::Differential);
    assert_eq!(again.exports[0].base, None);
    server.stop().expect("a clean end");
}

#[test]
fn freezes_of_unknown_exports_are_refused() {
    let place = Place::new();
    let server = place.serve(&unlimited("1 MiB", &["v"]));
    let mut conversation = place.converse();
    let mut check = |exports: &[&str], expect: &str| {
        let exports = exports.iter().map(|name| (*name).to_owned()).collect();
        let request = Control::Freeze { exports, purpose: Purpose::Full, backup: "b".to_owned() };
        match conversation.ask(&request) {
            Err(ServerError::Refused(reason)) => assert_eq!(reason, expect),
            other => panic!("{other:?}"),
        }
    };
    check(&["w"], "there is no export \"w\"; there is v");
    check(&["v", "v"], "export \"v\" is named twice");
    let outside =
        Control::Freeze { exports: Vec::new(), purpose: Purpose::Full, backup: "b".to_owned() };
    let refused = server.command(outside).unwrap_err().to_string();
    assert_eq!(
        refused,
        "a freeze lasts as long as the control connection that made it; ask over one"
    );
    server.stop().expect("a clean end");
}

#[test]
fn a_completed_full_backup_is_the_base_and_changes_survive_a_restart() {
    let place = Place::new();
    let layout = unlimited("8 MiB", &["v"]);
    let record = place.data().join("volumes/v/changes");
    let server = place.serve_kept(&layout);
    let mut client = place.open("v");
    client.write(0, &[1; 4096]).expect("a write");
    let mut conversation = place.converse();
    let full = freeze(&mut conversation, &["v"], Purpose::Full);
    client.write(5 * BLOCK, &[2; 4096]).expect("a write");
    assert_eq!(release(&mut conversation, full.freeze, true).base_of, ["v"]);
    client.write(9 * BLOCK - 100, &[3; 200]).expect("a write");
    client.flush().expect("a flush");
    drop((client, conversation));
    assert!(!record.exists(), "a crash now leaves no record");
    server.stop().expect("a clean end");
    assert!(record.exists());

    let server = place.serve_kept(&layout);
    let mut conversation = place.converse();
    let differential = freeze(&mut conversation, &["v"], Purpose::Differential);
    let told = &differential.exports[0];
    assert_eq!((told.tracked, told.base.as_deref()), (true, Some("full-1")));
    let expect = [(5 * BLOCK, BLOCK), (8 * BLOCK, 2 * BLOCK)];
    assert_eq!(changed(&mut conversation, differential.freeze, "v"), expect);
    // A differential that is complete is no base.
    assert!(release(&mut conversation, differential.freeze, true).base_of.is_empty());
    assert!(record.exists(), "nothing has changed yet");
    place.open("v").write(0, &[4; 512]).expect("a write");
    assert!(!record.exists());
    // As a crash leaves it.
    drop(conversation);
    server.stop().expect("a clean end");
    std::fs::remove_file(&record).expect("a record");

    let server = place.serve_kept(&layout);
    let mut conversation = place.converse();
    let unknown = freeze(&mut conversation, &["v"], Purpose::Differential);
    let told = &unknown.exports[0];
    assert_eq!((told.tracked, told.base.as_deref()), (false, None));
    server.stop().expect("a clean end");
}

#[test]
fn changes_of_a_stripe_are_told_in_its_own_order() {
    let place = Place::new();
    let server = place.serve_kept(
        "[[stripe]]\nname = \"s\"\nunit = \"16 KiB\"\nvolumes = { count = 3, unlimited = true, \
         size = \"1 MiB\" }\n",
    );
    let mut conversation = place.converse();
    let full = freeze(&mut conversation, &["s"], Purpose::Full);
    assert_eq!(release(&mut conversation, full.freeze, true).base_of, ["s"]);
    let mut client = place.open("s");
    // The second column, its first block: four units of it.
    client.write(16 << 10, &[1; 512]).expect("a write");
    let frozen = freeze(&mut conversation, &["s"], Purpose::Differential);
    let unit = 16 << 10;
    let expect: Vec<(u64, u64)> = [1, 4, 7, 10].map(|n| (n * unit, unit)).to_vec();
    assert_eq!(changed(&mut conversation, frozen.freeze, "s"), expect);
    let mut view = place.open(&frozen.exports[0].frozen);
    client.write(0, &[2; 64 << 10]).expect("a write");
    assert_eq!(contents(&mut view, 16 << 10, 512), [1; 512]);
    assert_eq!(contents(&mut view, 0, 16 << 10), vec![0; 16 << 10]);
    server.stop().expect("a clean end");
}

#[test]
fn a_view_outlives_a_resize_and_not_the_deletion_of_its_volume() {
    let place = Place::new();
    let server = place.serve_kept(&unlimited("1 MiB", &["other"]));
    let new =
        serde_json::from_str(r#"{"name":"v","size":"4 MiB","unlimited":true}"#).expect("a volume");
    place.ask(&Control::Create { host: None, volume: new }).expect("a volume");
    let mut client = place.open("v");
    client.write(0, &[1; 4096]).expect("a write");
    client.write(2 << 20, &[1; 4096]).expect("a write");
    let mut conversation = place.converse();
    let frozen = freeze(&mut conversation, &["v"], Purpose::Full);
    let name = &frozen.exports[0].frozen;
    // The part behind the new end is trimmed before, and the view still has it.
    client.write_zeroes(2 << 20, 2 << 20).expect("zeros");
    place.ask(&Control::Resize { volume: "v".to_owned(), size: Bytes::mib(1) }).expect("room");
    let mut view = place.open(name);
    assert_eq!(view.size(), Bytes::mib(4));
    assert_eq!(contents(&mut view, 2 << 20, 4096), [1; 4096]);
    assert_eq!(contents(&mut view, (4 << 20) - 512, 512), [0; 512]);
    place.ask(&Control::Resize { volume: "v".to_owned(), size: Bytes::mib(8) }).expect("room");
    client.write(2 << 20, &[9; 4096]).expect("a write");
    assert_eq!(contents(&mut view, 2 << 20, 4096), [1; 4096]);
    drop(client);
    place.ask(&Control::Delete { volume: "v".to_owned(), if_unused: false }).expect("it goes");
    assert!(view.read(0, &mut [0; 512]).is_err());
    assert!(Connection::open(&place.uri(name)).is_err());
    let told = release(&mut conversation, frozen.freeze, true);
    assert!(told.base_of.is_empty(), "a view that was lost is no base");
    server.stop().expect("a clean end");
}

#[test]
fn a_view_has_what_a_crash_of_its_host_loses_and_the_next_differential_has_it_back() {
    let place = Place::new();
    let layout = CACHED.replace("\"8 MiB\"", "\"8 MiB\", writeback_after = \"1h\"")
        + &unlimited("1 MiB", &["v"])
        + "cache = \"read-write\"\n";
    let server = place.serve_kept(&layout);
    let mut client = place.open("v");
    client.write(0, &[1; 4096]).expect("a write");
    client.flush().expect("a flush");
    client.write(0, &[2; 4096]).expect("a write");
    let mut conversation = place.converse();
    let full = freeze(&mut conversation, &["v"], Purpose::Full);
    place.ask(&Control::Crash { host: "host".to_owned() }).expect("a crash");
    assert_eq!(contents(&mut place.open("v"), 0, 4096), [1; 4096]);
    assert_eq!(contents(&mut place.open("v@1"), 0, 4096), [2; 4096]);
    assert_eq!(release(&mut conversation, full.freeze, true).base_of, ["v"]);
    // The backup has what the volume has lost.
    let differential = freeze(&mut conversation, &["v"], Purpose::Differential);
    assert_eq!(changed(&mut conversation, differential.freeze, "v"), [(0, BLOCK)]);
    server.stop().expect("a clean end");
}

#[test]
fn a_server_stops_with_a_freeze_open() {
    let place = Place::new();
    let layout = unlimited("1 MiB", &["v"]);
    let server = place.serve_kept(&layout);
    let mut client = place.open("v");
    client.write(0, &[1; 4096]).expect("a write");
    let mut conversation = place.converse();
    let frozen = freeze(&mut conversation, &["v"], Purpose::Full);
    client.write(0, &[2; 4096]).expect("a write");
    server.stop().expect("a clean end");
    assert_eq!(frozen_folders(&place), Vec::<String>::new());
    let release = Control::Release { freeze: frozen.freeze, completed: true };
    assert!(conversation.ask(&release).is_err());
    let server = place.serve_kept(&layout);
    let again = freeze(&mut place.converse(), &["v"], Purpose::Full);
    assert_eq!((again.exports[0].tracked, again.exports[0].base.as_deref()), (true, None));
    server.stop().expect("a clean end");
}

#[test]
fn reads_of_a_view_pass_the_gates_of_its_volume() {
    let place = Place::new();
    let server = place.serve(&unlimited("1 MiB", &["v"]));
    let mut conversation = place.converse();
    let frozen = freeze(&mut conversation, &["v"], Purpose::Full);
    let mut view = place.open(&frozen.exports[0].frozen);
    let reads = || server.status().hosts[0].volumes[0].read_bytes;
    let before = reads();
    for at in 0..8 {
        contents(&mut view, at * 4096, 4096);
    }
    assert_eq!(reads() - before, 8 * 4096);
    conversation
        .ask(&Control::ReadDone {
            freeze: frozen.freeze,
            export: "v".to_owned(),
            offset: 0,
            len: BLOCK,
        })
        .expect("a view");
    assert!(view.read(0, &mut [0; 512]).is_err(), "it was said not to be read again");
    assert_eq!(contents(&mut view, BLOCK, 512), [0; 512]);
    server.stop().expect("a clean end");
}

/// Ranges end anywhere in the blocks of the columns, and are released as a whole all the same.
#[test]
fn a_stripe_that_is_read_piece_by_piece_keeps_nothing_at_the_end() {
    let place = Place::new();
    let server = place.serve_kept(
        "[[stripe]]\nname = \"s\"\nunit = \"16 KiB\"\nvolumes = { count = 3, unlimited = true, \
         size = \"1 MiB\" }\n",
    );
    let mut client = place.open("s");
    let size = 3 << 20;
    client.write(0, &vec![1; size]).expect("a write");
    let mut conversation = place.converse();
    let frozen = freeze(&mut conversation, &["s"], Purpose::CopyOnly);
    client.write(0, &vec![2; size]).expect("a write");
    let taken = || -> u64 {
        let folder = place.data().join("frozen").join(frozen.freeze.to_string());
        let columns = folder.read_dir().expect("a folder").map(|entry| entry.expect("a name"));
        let files = columns.flat_map(|column| column.path().read_dir().expect("a folder"));
        let blocks = |file: std::fs::DirEntry| file.metadata().expect("a file").blocks();
        files.map(|file| blocks(file.expect("a name")) * 512).sum()
    };
    assert!(taken() >= size as u64);
    let mut view = place.open(&frozen.exports[0].frozen);
    for offset in (0..size as u64).step_by(100_000) {
        let len = 100_000.min(size as u64 - offset);
        let part = contents(&mut view, offset, usize::try_from(len).expect("small"));
        assert!(part.iter().all(|byte| *byte == 1), "a change is in the view");
        let (freeze, export) = (frozen.freeze, "s".to_owned());
        let request = Control::ReadDone { freeze, export, offset, len };
        conversation.ask(&request).expect("a view");
    }
    // A file system may take something to describe a file.
    assert!(taken() < BLOCK, "{} bytes are kept", taken());
    client.write(0, &vec![3; size]).expect("a write");
    assert!(taken() < BLOCK, "{} bytes are kept", taken());
    let told = release(&mut conversation, frozen.freeze, true);
    assert_eq!(told.kept_bytes, size as u64);
    server.stop().expect("a clean end");
}
