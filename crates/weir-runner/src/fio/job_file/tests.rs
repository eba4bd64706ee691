//! Generated job files, as text and as fio reads them.

use super::*;
use std::io::ErrorKind;
use std::process::Command;
use weir_workload::{Device, Isolated, fio, place};

const HEAD: &str = "ioengine=nbd\nuri=nbd+unix:///v?socket=/s\n";

fn translate(jobs: &str) -> Result<String, String> {
    let text = format!("[global]\ndirectory=/mnt/v\nsize=1m\n{jobs}");
    let file = fio::parse("jobs.fio", &text, &Isolated).unwrap_or_else(|e| panic!("{e}"));
    let device = |name: &str| Device { name: name.into(), size: Bytes::gib(1) };
    let placed = place(&file, &[device("v"), device("w")], &[]).unwrap_or_else(|e| panic!("{e}"));
    let uri = |name: &str| format!("nbd+unix:///{name}?socket=/s").parse().unwrap();
    write(&placed, &[uri("v"), uri("w")], 5).map_err(|e| e.to_string())
}

/// Expects the lines of the only process, without those common to all.
#[track_caller]
fn check(job: &str, expect: &str) {
    let text = translate(&format!("[j]\n{job}\n")).unwrap();
    let lines = text.strip_prefix("[process0]\n").unwrap().strip_prefix(HEAD).unwrap();
    let lines = lines.lines().filter(|line| !line.starts_with("randseed="));
    assert_eq!(lines.collect::<Vec<_>>().join(" "), expect);
    accepted(&text);
}

/// Checks that fio reads the text, if fio is installed.
#[track_caller]
fn accepted(text: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.fio"), text).unwrap();
    let mut fio = Command::new("fio");
    let output = match fio.args(["--parse-only", "jobs.fio"]).current_dir(&folder).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            assert!(std::env::var_os("CI").is_none(), "CI needs fio");
            println!("skipped: needs fio");
            return;
        }
        output => output.unwrap(),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("dropped"), "{said}\n{text}");
}

const SIMPLE: &str = "rw=read bs=4096,4096,4096 offset=0 size=1048576 iodepth=1";

#[test]
fn operations_and_sizes() {
    check("rw=read", SIMPLE);
    check("rw=randread:8", &SIMPLE.replace("read", "randread:8"));
    check("rw=randtrimwrite", &SIMPLE.replace("read", "randtrimwrite"));
    check(
        "rw=randrw\nrwmixread=70\nbs=4k,8k",
        "rw=randrw rwmixread=70 bs=4096,8192,4096 offset=0 size=1048576 iodepth=1",
    );
    // Block sizes of writes do not affect reads.
    check("rw=read\nbs=4k,8k\nbssplit=,1k/50:2k/50", SIMPLE);
    check("rw=write\nbsrange=4k-16k", &{
        SIMPLE.replace(
            "rw=read bs=4096,4096,4096",
            "rw=write bsrange=4096-16384,4096-16384,4096-16384",
        )
    });
    check("rw=rw\nbssplit=4k/60:8k/40,16k/100", &{
        let blocks = "bssplit=4096/60:8192/40,16384/100,4096/60:8192/40";
        SIMPLE.replace("rw=read bs=4096,4096,4096", &format!("rw=rw rwmixread=50 {blocks}"))
    });
    check(
        "rw=randrw\nba=8k\npercentage_random=50,100\nrandom_distribution=zipf:1.2\nnorandommap",
        "rw=randrw rwmixread=50 bs=4096,4096,4096 blockalign=8192,8192,8192 \
         percentage_random=50,100,100 random_distribution=zipf:1.2 norandommap=1 \
         offset=0 size=1048576 iodepth=1",
    );
    check("rw=randread\nbs=64k,4k\nsoftrandommap=1", &{
        let blocks = "bs=65536,4096,4096 softrandommap=1";
        SIMPLE.replace("read", "randread").replace("bs=4096,4096,4096", blocks)
    });
    check("rw=randwrite\nbssplit=,8k/50:64k/50", &{
        let blocks = "bssplit=4096/100,8192/50:65536/50,8192/50:65536/50";
        SIMPLE.replace("read", "randwrite").replace("bs=4096,4096,4096", blocks)
    });
    check("rw=randread\nrandom_generator=lfsr", &{
        SIMPLE.replace("read", "randread").replace("offset", "random_generator=lfsr offset")
    });
    for (written, told) in [
        ("pareto:0.2", "pareto:0.2"),
        ("normal:30", "normal:30"),
        ("zoned:60/10:40/90", "zoned:60/10:40/90"),
        ("zoned_abs:90/4k:10/1020k", "zoned_abs:90/4096:10/1044480"),
    ] {
        let expect = format!("random_distribution={told} norandommap=1 offset");
        let expect = SIMPLE.replace("read", "randread").replace("offset", &expect);
        check(&format!("rw=randread\nrandom_distribution={written}"), &expect);
    }
}

#[test]
fn placement_and_timing() {
    check(
        "rw=read\noffset=64k\nio_size=8m\nloops=3\nnumber_ios=9\niodepth=32\nioengine=libaio",
        "rw=read bs=4096,4096,4096 offset=65536 size=1048576 io_size=8388608 loops=3 \
         number_ios=9 iodepth=32",
    );
    // Offset and size are shares of the device, in whole blocks.
    check(
        "rw=read\nfilename=/dev/v\nsize=33%\noffset=1%",
        "rw=read bs=4096,4096,4096 offset=10739712 size=354332672 iodepth=1",
    );
    check(
        "rw=read\nruntime=1500ms\ntime_based\nramp_time=2\nstartdelay=3\nthinktime=7\n\
         thinktime_blocks=2\nthinktime_blocks_type=issue\nio_submit_mode=offload",
        "rw=read bs=4096,4096,4096 offset=0 size=1048576 iodepth=1 runtime=1500000us \
         time_based=1 ramp_time=2000000us startdelay=3000000us thinktime=7us \
         thinktime_blocks=2 thinktime_blocks_type=issue",
    );
    check("rw=read\nrate=1m", &format!("{SIMPLE} rate=1048576,1048576,1048576"));
    check("rw=rw\nrate_iops=50,70", &{
        format!("{} rate_iops=50,70,70", SIMPLE.replace("rw=read", "rw=rw rwmixread=50"))
    });
    check("rw=write\nfsync=8\nend_fsync=1", &{
        format!("{} fsync=8 end_fsync=1", SIMPLE.replace("rw=read", "rw=write"))
    });
}

/// Expects names, offsets and walls of the sections.
#[track_caller]
fn check_sections(jobs: &str, expect: &[&str]) {
    let text = translate(jobs).unwrap();
    let kept = ["[", "uri", "offset", "stonewall"];
    let lines = text.lines().filter(|line| kept.iter().any(|kept| line.starts_with(kept)));
    let lines: Vec<&str> = lines.map(|line| line.split("?socket").next().unwrap()).collect();
    assert_eq!(lines.join(" ").replace(" [", "\n[").lines().collect::<Vec<_>>(), expect);
    accepted(&text);
}

#[test]
fn every_process_has_a_section() {
    check_sections(
        "[global]\nrw=read\n[a]\nnumjobs=2\noffset_increment=64k\n[b]\nstonewall\n\
         directory=/mnt/w\n[c]\nnumjobs=2\nstonewall\n",
        &[
            "[process0] uri=nbd+unix:///v offset=0",
            "[process1] uri=nbd+unix:///v offset=1114112",
            "[process2] uri=nbd+unix:///w offset=0 stonewall=1",
            "[process3] uri=nbd+unix:///v offset=3145728 stonewall=1",
            "[process4] uri=nbd+unix:///v offset=4194304",
        ],
    );
}

#[test]
fn seeds_differ_and_are_never_zero() {
    let seed = |seed, own| fold(seed, own);
    assert!(seed(0, None) != 0 && seed(0, None) == seed(0, Some(0)));
    assert!(seed(1, None) != seed(2, None) && seed(1, Some(1)) != seed(1, Some(2)));
    let text = format!("[j]\nrandseed={}\n", fold(u64::MAX, Some(3)));
    assert!(fold(u64::MAX, Some(3)) <= i64::MAX as u64, "fio reads signed numbers: {text}");
}

#[track_caller]
fn check_refused(job: &str, why: &str) {
    let expect = format!("job \"j\": {why}; run the jobs without fio");
    assert_eq!(translate(&format!("[j]\n{job}\n")), Err(expect));
}

#[test]
fn options_that_fio_treats_differently_are_rejected() {
    check_refused("rw=write\nsync=1", "sync has no effect on fio's nbd engine");
    check_refused(
        "rw=write\nfdatasync=1",
        "fdatasync is refused by fio's nbd engine; fsync does the same there",
    );
    check_refused(
        "rw=read\nfilename=/dev/v:/dev/w",
        "filename names several files, and fio's nbd engine has one",
    );
    check_refused(
        "rw=read\nrate=1m\nio_submit_mode=offload",
        "io_submit_mode=offload makes fio's nbd engine crash",
    );
    check_refused("rw=read:8k", "rw with holes ends elsewhere on fio's nbd engine");
    check_refused(
        "rw=randrw\nrandom_distribution=zoned:60/10:40/90,50/50:50/50",
        "random_distribution has other zones for each direction, which fio documents but refuses",
    );
    check_refused(
        "rw=read\nbs=128m\nsize=512m",
        "bs is above 64 MiB, the largest request of fio's nbd engine",
    );
    check_refused(
        "rw=rw\nbsrange=4k-8k\nbssplit=,4k/50:8k/50",
        "bsrange beside bssplit cannot be told to fio once more",
    );
}
