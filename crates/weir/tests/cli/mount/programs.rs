//! Programs that write and check what they wrote.

use super::{Rig, must, shell, traced};
use crate::tools::{self, needs};
use std::process::{Command, Stdio};
use std::thread;

const LAYOUT: &str = "[[volume]]\nname = \"v\"\nsize = \"1 GiB\"\nlimits = { iops = 5000, throughput = \"100 MiB/s\" }\n";

#[test]
fn sqlite_with_a_write_ahead_log_and_two_writers() {
    needs!("sqlite3");
    let layout = "[[volume]]\nname = \"v\"\nsize = \"1 GiB\"\nlimits = { iops = 1000 }\n";
    let Some(mut rig) = Rig::new(layout, &[]) else { return };
    let sqlite = |sql: &str| {
        let mut command = Command::new("sqlite3");
        command.args(["-batch", "-bail", "-cmd", ".timeout 60000"]).arg(rig.path("v/db")).arg(sql);
        command.stdin(Stdio::null());
        must(command).trim().to_owned()
    };
    let made =
        "pragma journal_mode = wal; create table t (writer, n, bytes, primary key (writer, n))";
    assert_eq!(sqlite(made), "wal");
    let inserts = |writer: u32| {
        let row = |n: u32| format!("insert into t values ({writer}, {n}, randomblob(2000));");
        let sql: String = (0..150).map(row).collect();
        format!("pragma synchronous = full; pragma wal_autocheckpoint = 50; {sql}")
    };
    thread::scope(|scope| {
        for writer in 0..2 {
            let (sqlite, sql) = (&sqlite, inserts(writer));
            scope.spawn(move || sqlite(&sql));
        }
    });
    assert_eq!(sqlite("select count(*), sum(length(bytes)) from t"), "300|600000");
    assert_eq!(sqlite("pragma integrity_check"), "ok");
    let volume = rig.volume("v").expect("the volume");
    // Each commit is a write and a sync.
    assert!(volume["writes"].as_u64() >= Some(300), "{volume}");
    rig.stop();
    rig.mount(layout, &[]);
    let check = "sqlite3 \"$0\" 'pragma integrity_check; select count(*) from t'";
    assert_eq!(must(shell(check, &[&rig.path("v/db")])), "ok\n300\n");
    rig.stop();
}

/// fio says first what it thinks of the options.
fn json_of(said: &str) -> &str {
    &said[said.find('{').unwrap_or(0)..]
}

#[test]
fn fio_verifies_what_it_wrote_with_each_engine_direct_and_buffered() {
    needs!("fio");
    let Some(mut rig) = Rig::new(LAYOUT, &[]) else { return };
    for engine in ["psync", "libaio", "io_uring"] {
        for direct in ["0", "1"] {
            let mut fio = Command::new("fio");
            fio.arg(format!("--filename={}", rig.path("v").join(engine).display()));
            fio.args(["--name=job", "--rw=randwrite", "--bs=8k", "--size=4m", "--iodepth=16"]);
            fio.args(["--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--end_fsync=1"]);
            fio.args(["--output-format=json", "--ioengine", engine, "--direct", direct]);
            fio.current_dir(rig.place.dir());
            let said = must(fio);
            let said: serde_json::Value = serde_json::from_str(json_of(&said)).expect("JSON");
            let job = &said["jobs"][0];
            assert_eq!(job["error"], 0, "{engine} direct={direct}");
            assert_eq!(job["write"]["total_ios"], 512, "{engine} direct={direct}");
            assert_eq!(job["read"]["total_ios"], 512, "{engine} direct={direct}");
        }
    }
    let volume = rig.volume("v").expect("the volume");
    // The direct ones as they are; the kernel may gather the others.
    assert!(volume["writes"].as_u64() >= Some(3 * 512), "{volume}");
    assert!(volume["reads"].as_u64() >= Some(3 * 512), "{volume}");
    rig.stop();
}

/// They run side by side, and check what they can check.
#[test]
fn stressors_of_file_systems_find_nothing() {
    needs!("stress-ng");
    let Some(mut rig) =
        Rig::new("[[volume]]\nname = \"v\"\nsize = \"1 GiB\"\nunlimited = true\n", &[])
    else {
        return;
    };
    let stressors = [
        "chmod",
        "copy-file",
        "dentry",
        "dir",
        "fallocate",
        "filename",
        "flock",
        "fpunch",
        "fstat",
        "getdent",
        "hdd",
        "link",
        "lockf",
        "rename",
        "symlink",
        "utime",
        "xattr",
    ];
    let mut stress = Command::new("stress-ng");
    stress.args(stressors.map(|name| format!("--{name}=1")));
    stress.args(["--dentries=256", "--dir-dirs=256", "--copy-file-bytes=128m"]);
    stress.args(["--fallocate-bytes=16m", "--hdd-bytes=16m", "--timeout=5", "--verify"]);
    stress.arg("--temp-path").arg(rig.path("v")).current_dir(rig.path("v"));
    must(stress);
    rig.stop();
}

/// That it is durable cannot be seen without cutting the power; that it is asked for can.
#[test]
fn a_sync_is_a_sync_of_the_backing_file() {
    needs!("strace");
    let layout = "[[volume]]\nname = \"v\"\nsize = \"1 GiB\"\nunlimited = true\n";
    let Some(mut rig) = Rig::new(layout, &[]) else { return };
    let calls = "fsync,fdatasync,pwritev2";
    let traced = |line: &str| traced(&rig, calls, shell(line, &[&rig.path("v/file")]));
    let count = |trace: &str, call: &str, flag: &str| {
        let of_it = |line: &&str| line.contains(call) && line.contains("/v/file>");
        trace.lines().filter(of_it).filter(|line| line.contains(flag)).count()
    };
    let synced = traced("dd if=/dev/zero of=\"$0\" bs=8k count=4 conv=fsync status=none");
    assert!(count(&synced, " fsync(", "= 0") == 1, "{synced}");
    let data = traced("dd if=/dev/zero of=\"$0\" bs=8k count=4 conv=fdatasync status=none");
    assert!(count(&data, " fdatasync(", "= 0") == 1, "{data}");
    let direct =
        "dd if=/dev/zero of=\"$0\" bs=8k count=5 oflag=direct,dsync conv=notrunc status=none";
    let durable = traced(direct);
    assert_eq!(count(&durable, " pwritev2(", "RWF_DSYNC) = 8192"), 5, "{durable}");
    rig.stop();
}
