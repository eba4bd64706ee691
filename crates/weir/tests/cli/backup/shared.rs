//! Backups beside others: a writer of their sources, and another backup at their target.

use crate::common::{Place, run};
use rustix::process::{Pid, Signal, kill_process};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use weir_backup::BackupError;
use weir_backup::format::{BackupId, Identity, Kind, Manifest, ManifestSource};
use weir_backup::run::{Job, ReadDone, Source};
use weir_backup::target::StripeSink;
use weir_client::Connection;
use weir_pipeline::Buffers;
use weir_server::control::{self, Conversation, FreezeAnswer, Purpose, ReleaseAnswer, Request};
use weir_units::Bytes;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 64 * MIB;
/// The part that is overwritten before the backup reads it.
const AHEAD: u64 = 16 * MIB;
/// Space that a file system may take to describe a file.
const SLACK: u64 = 64 << 10;

/// Writes a byte all over a range.
fn fill(client: &mut Connection, range: Range<u64>, byte: u8) {
    let data = vec![byte; usize::try_from(MIB).expect("small")];
    for offset in range.step_by(data.len()) {
        client.write(offset, &data).expect("a write");
    }
}

/// Returns the bytes that files below a folder take.
fn taken(folder: &Path) -> u64 {
    let Ok(entries) = folder.read_dir() else { return 0 };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let size = |path: PathBuf| match path.is_dir() {
        true => taken(&path),
        false => path.metadata().expect("a file").blocks() * 512,
    };
    paths.map(size).sum()
}

/// A stripe that is not kept, and whose data is what the sources had at the freeze.
#[derive(Debug)]
struct Nowhere;

impl StripeSink for Nowhere {
    fn name(&self) -> String {
        "nowhere".to_owned()
    }

    fn write_at(&self, _: u64, bytes: &[u8]) -> Result<(), BackupError> {
        let is_new = |part: &[u8]| part.iter().all(|byte| *byte == 0xbb);
        assert!(!bytes.chunks(4096).any(is_new), "a change after the freeze is in the backup");
        Ok(())
    }

    fn sync(&self, _: u64, _: bool) -> Result<(), BackupError> {
        Ok(())
    }

    fn publish(&self) -> Result<(), BackupError> {
        Ok(())
    }

    fn discard(&self) -> Result<(), BackupError> {
        Ok(())
    }
}

/// Tells the server, and then overwrites what was read.
struct Overwrite {
    conversation: Arc<Mutex<Conversation>>,
    freeze: u64,
    client: Connection,
    frozen: PathBuf,
    read: Arc<Mutex<u64>>,
}

impl ReadDone for Overwrite {
    fn read_done(&mut self, range: Range<u64>) -> Result<(), BackupError> {
        let (offset, len) = (range.start, range.end - range.start);
        let export = "data".to_owned();
        let request = Request::ReadDone { freeze: self.freeze, export, offset, len };
        self.conversation.lock().expect("no panic").ask(&request).expect("an answer");
        let end = range.end.min(SIZE);
        // Only what was overwritten before the backup came to it is still kept.
        let (taken, most) = (taken(&self.frozen), AHEAD.saturating_sub(end) + SLACK);
        assert!(taken <= most, "{taken} bytes are kept, at most {most} are needed");
        fill(&mut self.client, range.start..end, 0xbb);
        *self.read.lock().expect("no panic") = end;
        Ok(())
    }
}

fn job(uri: weir_proto::Uri, read_done: Box<dyn ReadDone>) -> Job {
    let identity = Identity {
        id: BackupId::new(1).expect("an id"),
        name: "data".to_owned(),
        kind: Kind::CopyOnly,
        base: None,
        stripes: 1,
        created_unix_ms: 1,
        encryption: None,
    };
    let name = "data".to_owned();
    let about = ManifestSource { name, size: SIZE, raw_bytes: SIZE, ..Default::default() };
    Job {
        manifest: Manifest::new(&identity, "test".to_owned()),
        identity,
        key: None,
        compression: None,
        sources: vec![Source::new(uri, about, None).with_read_done(Some(read_done))],
        bytes: SIZE,
        stripes: vec![Arc::new(Nowhere)],
        targets: vec!["nowhere".to_owned()],
        buffers: Buffers::new((1, 1), false, Bytes::mib(1), None),
        block: 4096,
        encoders: 1,
        limit: None,
    }
}

#[test]
fn old_contents_are_kept_only_until_they_are_read() {
    let place = Place::without_a_disk();
    let layout = "[host]\nunlimited = true\n\
        [[volume]]\nname = \"data\"\nsize = \"64 MiB\"\nunlimited = true\n";
    let server = place.serve(layout, &["--data", "d"]);
    let mut client = place.open("data");
    fill(&mut client, 0..SIZE, 0xaa);
    let mut conversation = Conversation::open(&place.path("control.sock")).expect("a server");
    let (exports, backup) = (vec!["data".to_owned()], "b".to_owned());
    let request = Request::Freeze { exports, purpose: Purpose::CopyOnly, backup };
    let frozen: FreezeAnswer = conversation.ask_for(&request).expect("a freeze");
    fill(&mut client, 0..AHEAD, 0xbb);
    let folder = place.path("d").join("frozen");
    assert!(taken(&folder) >= AHEAD);
    let conversation = Arc::new(Mutex::new(conversation));
    let read = Arc::new(Mutex::new(0));
    let overwrite = Overwrite {
        conversation: Arc::clone(&conversation),
        freeze: frozen.freeze,
        client,
        frozen: folder.clone(),
        read: Arc::clone(&read),
    };
    let view = &frozen.exports[0].frozen;
    let uri = format!("nbd+unix:///{view}?socket={}", place.path("nbd.sock").display());
    let uri = uri.parse().expect("a URI");
    weir_backup::run::run(job(uri, Box::new(overwrite)), &mut |_| true).expect("a backup");
    assert_eq!(*read.lock().expect("no panic"), SIZE, "all of it was told, and overwritten");
    assert!(taken(&folder) <= SLACK, "nothing is kept when all is read");
    let release = Request::Release { freeze: frozen.freeze, completed: true };
    let told: ReleaseAnswer = conversation.lock().expect("no panic").ask_for(&release).expect("it");
    assert_eq!(told.kept_bytes, AHEAD, "what was overwritten after it was read was not kept");
    server.stop();
}

/// A backup to a raw volume that runs until it is interrupted.
struct Running(std::process::Child);

impl Running {
    fn start(mut command: Command, place: &Place, target: &str) -> Self {
        let child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("weir");
        let own = Self(child);
        // It has the lock before it reserves its stripes.
        while written(place, target) == 0 {
            std::thread::yield_now();
        }
        own
    }

    fn interrupt(mut self) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::INT).expect("it runs");
        assert_eq!(self.0.wait().expect("an end").code(), Some(130));
    }
}

fn written(place: &Place, volume: &str) -> u64 {
    let status = control::ask(&place.path("control.sock"), &Request::Status).expect("a status");
    let volumes = status["hosts"][0]["volumes"].as_array().expect("volumes");
    let own = volumes.iter().find(|own| own["name"] == volume).expect("the volume");
    own["write_bytes"].as_u64().expect("bytes")
}

#[test]
fn two_backups_at_the_same_raw_volume_are_refused() {
    let place = Place::without_a_disk();
    let volume = |name: &str| {
        format!("[[volume]]\nname = \"{name}\"\nsize = \"64 MiB\"\nunlimited = true\n")
    };
    let layout = ["data", "log", "raw", "other"].map(volume).concat();
    let server = place.serve(&format!("[host]\nunlimited = true\n{layout}"), &["--data", "d"]);
    fill(&mut place.open("data"), 0..16 * MIB, 0xaa);
    fill(&mut place.open("log"), 0..MIB, 0xcc);
    let weir = |args: &str| {
        let mut command = place.weir(&args.split(' ').collect::<Vec<_>>());
        command.env_remove("WEIR_BACKUP_KEY");
        command
    };
    let slow = weir("backup run data --to raw --limit 64KiB/s");
    let first = Running::start(slow, &place, "raw");
    // The same volume by another path of its socket is the same volume.
    let link = place.path("link.sock");
    std::os::unix::fs::symlink(place.path("nbd.sock"), &link).expect("a link");
    let uri = format!("nbd+unix:///raw?socket={}", link.display());
    for args in [
        "backup run log --to raw".to_owned(),
        format!("backup run log --to {uri}"),
        "backup run log --to other raw --stripes 2".to_owned(),
        format!("backup prune {uri} --keep-last 1 --incomplete"),
    ] {
        let (stdout, stderr, code) = run(weir(&args));
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{args}: {stderr}");
        assert!(stderr.contains("is writing to"), "{args}: {stderr}");
    }
    // Another volume is free, and so is this one afterwards.
    let (_, stderr, code) = run(weir("backup run log --to other --verify"));
    assert_eq!(code, Some(0), "{stderr}");
    first.interrupt();
    let (_, stderr, code) = run(weir("backup run log --to raw --verify"));
    assert_eq!(code, Some(0), "{stderr}");
    server.stop();
}
