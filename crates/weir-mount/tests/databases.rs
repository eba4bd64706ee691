//! Programs that depend on file system semantics: fio with verification, and databases.

#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Bed, has, python, said, spawn_python};
use std::process::Command;

#[test]
fn fio_verifies_its_writes() {
    if !has("fio") {
        return;
    }
    let Some(bed) = Bed::unlimited() else { return };
    for engine in ["psync", "libaio", "io_uring"] {
        for direct in [0, 1] {
            for pattern in ["write", "randwrite", "randrw"] {
                let mut fio = Command::new("fio");
                fio.arg("--name=verify").arg(format!("--ioengine={engine}"));
                fio.arg(format!("--direct={direct}")).arg(format!("--rw={pattern}"));
                fio.args(["--size=8m", "--bsrange=4k-64k", "--iodepth=16", "--numjobs=2"]);
                fio.arg("--verify_state_save=0").current_dir(bed.home.path());
                fio.args(["--verify=crc32c", "--verify_fatal=1", "--fsync=64", "--randrepeat=0"]);
                fio.arg(format!("--directory={}", bed.a("").display()));
                let output = fio.output().unwrap();
                let told = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "{engine} {direct} {pattern}: {told}");
                assert_eq!(std::fs::metadata(bed.backing("verify.1.0")).unwrap().len(), 8 << 20);
            }
        }
    }
    bed.unmount();
}

#[test]
fn direct_and_buffered_handles_of_a_file_agree() {
    let Some(bed) = Bed::unlimited() else { return };
    let program = "
import mmap, os, random, sys
path = sys.argv[1]
size, page = 256, 4096
buffered = os.open(path, os.O_RDWR | os.O_CREAT)
os.ftruncate(buffered, size * page)
direct = os.open(path, os.O_RDWR | os.O_DIRECT)
mapped = mmap.mmap(buffered, size * page)
buffer = mmap.mmap(-1, page)
model = bytearray(size * page)
random.seed(7)
for step in range(20000):
    at = random.randrange(size) * page
    byte = bytes([random.randrange(256)]) * page
    way = random.randrange(6)
    if way == 0: os.pwrite(buffered, byte, at); model[at:at + page] = byte
    elif way == 1: buffer[:] = byte; os.pwritev(direct, [buffer], at); model[at:at + page] = byte
    elif way == 2: mapped[at:at + page] = byte; model[at:at + page] = byte
    elif way == 3: assert os.pread(buffered, page, at) == model[at:at + page], (step, at)
    elif way == 4: os.preadv(direct, [buffer], at); assert buffer[:] == model[at:at + page], (step, at)
    else: assert mapped[at:at + page] == model[at:at + page], (step, at)
";
    python(program, &[&bed.a("f")]);
    bed.unmount();
}

#[test]
fn shared_memory_is_shared_and_private_is_not() {
    let Some(bed) = Bed::unlimited() else { return };
    let program = "
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 1 << 20)
shared = mmap.mmap(fd, 1 << 20)
private = mmap.mmap(fd, 1 << 20, flags=mmap.MAP_PRIVATE)
private[0:7] = b'private'
child = os.fork()
if child == 0:
    shared[4096:4101] = b'child'
    os._exit(0)
os.waitpid(child, 0)
assert shared[4096:4101] == b'child'
assert os.pread(fd, 5, 4096) == b'child'
os.pwrite(fd, b'written', 8192)
assert shared[8192:8199] == b'written'
assert private[8192:8199] == b'written'
assert os.pread(fd, 7, 0) == bytes(7)
shared.flush()
assert open(sys.argv[2], 'rb').read()[4096:4101] == b'child'
os.close(fd)
shared[12288:12293] = b'after'
del shared
";
    python(program, &[&bed.a("f"), &bed.backing("f")]);
    assert_eq!(&std::fs::read(bed.a("f")).unwrap()[12_288..12_293], b"after");
    bed.unmount();
}

#[test]
fn two_processes_append_and_lock() {
    let Some(bed) = Bed::unlimited() else { return };
    let append = "
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number in range(5000):
    os.write(fd, b'%09d\\n' % number)
";
    let both = [(); 2].map(|()| spawn_python(append, &[&bed.a("log")]));
    for child in both {
        said(&child.wait_with_output().unwrap());
    }
    let log = std::fs::read_to_string(bed.a("log")).unwrap();
    assert_eq!(log.len(), 100_000);
    let mut lines: Vec<_> = log.lines().collect();
    lines.sort_unstable();
    assert!(lines.chunks(2).all(|pair| pair[0] == pair[1]), "a line is torn or missing");
    let lock = "
import fcntl, os, sys
path, kind = sys.argv[1:]
take = fcntl.flock if kind.endswith('flock') else fcntl.lockf
for step in range(300):
    with open(path, 'r+') as file:
        take(file, fcntl.LOCK_EX)
        number = int(file.read() or 0)
        file.seek(0); file.write(str(number + 1)); file.flush()
        take(file, fcntl.LOCK_UN)
";
    for kind in ["flock", "posix"] {
        std::fs::write(bed.a("count"), b"0").unwrap();
        let both = [(); 2].map(|()| spawn_python(lock, &[&bed.a("count"), kind.as_ref()]));
        for child in both {
            said(&child.wait_with_output().unwrap());
        }
        assert_eq!(std::fs::read_to_string(bed.a("count")).unwrap(), "600", "{kind}");
    }
    bed.unmount();
}

#[test]
fn sqlite_with_two_writers() {
    let Some(bed) = Bed::unlimited() else { return };
    let program = "
import sqlite3, sys
path, who = sys.argv[1:]
db = sqlite3.connect(path, timeout=60, isolation_level=None)
db.execute('pragma journal_mode=wal'); db.execute('pragma synchronous=full')
db.execute('pragma wal_autocheckpoint=50')
db.execute('create table if not exists t(who text, n int, filler blob)')
for n in range(400):
    db.execute('begin immediate')
    db.execute('insert into t values(?, ?, randomblob(2000))', (who, n))
    db.execute('commit')
    if n % 100 == 99: db.execute('delete from t where n % 7 = 0 and who = ?', (who,))
";
    let path = bed.a("test.db");
    // The journal mode is set before two processes would compete for it.
    python(
        "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('pragma journal_mode=wal')",
        &[&path],
    );
    let both = ["one", "two"].map(|who| spawn_python(program, &[&path, who.as_ref()]));
    for child in both {
        said(&child.wait_with_output().unwrap());
    }
    let check = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute('pragma integrity_check').fetchone()[0], db.execute('select count(*) from t').fetchone()[0])
";
    let rows = 2 * (0..400).filter(|n| n % 7 != 0).count();
    assert_eq!(python(check, &[&path]), format!("ok {rows}"));
    let home = bed.unmount();
    assert_eq!(python(check, &[&home.path().join("backing/a/test.db")]), format!("ok {rows}"));
}
