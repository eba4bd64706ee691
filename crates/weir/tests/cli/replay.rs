//! `weir record` of traces, and `weir sim` of recordings.

use crate::common::{Place, run};
use crate::tools;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use weir_random::Rng;
use weir_trace::{Reader, Request, Writer};

const LAYOUT: &str = "[[volume]]\nname = \"data\"\nsize = \"1 GiB\"\nlatency = \"1ms\"\n\
    limits = { iops = 500 }\n[[volume]]\nname = \"log\"\nsize = \"1 GiB\"\nlatency = \"1ms\"\n\
    unlimited = true\n";

/// A trace of two disks in the format of MSR Cambridge: a write each 10 ms, and a read each second.
fn msr(seconds: u64) -> String {
    let tick = |ms: u64| 128_166_372_000_000_000 + ms * 10_000;
    let mut rows = String::new();
    for second in 0..seconds {
        rows += &format!("{},web,1,Read,{},8192,50000\n", tick(second * 1000), second * 8192);
        for n in 0..100 {
            let ms = second * 1000 + n * 10;
            rows += &format!("{},web,0,Write,{},4096,20000\n", tick(ms), ms * 4096);
        }
    }
    rows
}

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("web.csv", &msr(60));
    place
}

#[track_caller]
fn ok(place: &Place, args: &[&str]) -> String {
    let (stdout, stderr, code) = run(place.weir(args));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "weir {}", args.join(" "));
    stdout
}

#[track_caller]
fn json(place: &Place, args: &[&str]) -> Value {
    let stdout = ok(place, &[args, &["-o", "json"]].concat());
    serde_json::from_str(&stdout).expect("JSON")
}

#[track_caller]
fn refused(place: &Place, args: &[&str], code: i32) -> String {
    let (stdout, stderr, found) = run(place.weir(args));
    assert_eq!((stdout.as_str(), found), ("", Some(code)), "{stderr}");
    stderr
}

const MAPS: [&str; 4] = ["--map", "web/0=data", "--map", "web/1=log"];

#[test]
fn a_trace_is_recorded_and_replayed() {
    let place = place();
    let record = json(&place, &["record", "web.csv", "--out", "web.weirtrace"]);
    assert_eq!((&record["requests"], &record["lost"]), (&6060.into(), &0.into()));
    assert_eq!(record["length_s"], 59.99);
    assert_eq!(record["devices"][0]["name"], "web/1");
    assert_eq!(record["devices"][1]["writes"], 6000);
    assert_eq!(record["devices"][1]["reaches_bytes"], (59_990 + 1) * 4096);
    let bytes = record["bytes"].as_u64().expect("a size");
    assert!(bytes < 6060 * 2, "{bytes} bytes");
    let sim = |file: &str, more: &[&str]| {
        json(&place, &[&["sim", "layout.toml", file][..], &MAPS, more].concat())
    };
    let own = sim("web.weirtrace", &[]);
    assert_eq!((&own["requests"], &own["pace"]), (&6060.into(), &"recorded".into()));
    assert_eq!(own["jobs"][1]["name"], "web/0 on data");
    assert_eq!(own["jobs"][1]["write"]["ios"], 6000);
    assert_eq!(own["recorded"][1]["recorded"]["p50_ns"].as_u64().map(|ns| ns / 100_000), Some(20));
    assert!((own["elapsed_s"].as_f64().expect("a time") - 59.991).abs() < 1e-6);
    // The source itself gives the same replay.
    let foreign = sim("web.csv", &[]);
    assert_eq!(foreign["trace_hash"], own["trace_hash"]);
    let twice = sim("web.weirtrace", &["--pace", "2x"]);
    assert!((twice["elapsed_s"].as_f64().expect("a time") - 29.996).abs() < 1e-6);
    // 100 a second do not wait for 500; ten times as many do.
    let ten = sim("web.weirtrace", &["--pace", "10x"]);
    assert!(ten["elapsed_s"].as_f64().expect("a time") > 11.0, "{}", ten["elapsed_s"]);
    let closed = sim("web.weirtrace", &["--pace", "closed"]);
    assert!(closed["elapsed_s"].as_f64().expect("a time") < 20.0, "{}", closed["elapsed_s"]);
}

#[test]
fn the_report_begins_with_its_verdict() {
    let place = place();
    ok(&place, &["record", "web.csv", "--out", "web.weirtrace"]);
    let sim = ["sim", "layout.toml", "web.weirtrace"];
    let text = ok(&place, &[&sim[..], &MAPS].concat());
    assert!(text.starts_with("It keeps up: 6,060 requests that arrive in 60"), "{text}");
    let text = ok(&place, &[&sim[..], &MAPS, &["--pace", "20x"]].concat());
    assert!(text.starts_with("It falls behind: 6,060 requests arrive in 3.00 s"), "{text}");
    assert!(text.contains("requests wait most for disk_iops"), "{text}");
    let csv = ok(&place, &[&sim[..], &MAPS, &["-o", "csv"]].concat());
    let head = csv.lines().next().unwrap_or_default();
    for key in ["recorded_p99_ns", "replayed_p99_ns", "due_s", "late_most_ns", "pace"] {
        assert!(head.split(',').any(|own| own == key), "{key} is not in {head}");
    }
}

#[test]
fn a_part_of_a_trace_is_recorded_or_replayed() {
    let place = place();
    let part = ["--from", "10s", "--to", "20s", "--device", "web/0"];
    let record = ["record", "web.csv", "--out", "part.weirtrace"];
    let record = json(&place, &[&record[..], &part].concat());
    assert_eq!((&record["requests"], &record["length_s"]), (&1000.into(), &9.99.into()));
    let sim = |file: &str, more: &[&str]| {
        json(&place, &[&["sim", "layout.toml", file, "--map", "web/0=data"][..], more].concat())
    };
    let own = sim("part.weirtrace", &[]);
    assert_eq!(own["requests"], 1000);
    assert_eq!(sim("web.csv", &part)["trace_hash"], own["trace_hash"]);
    let sample = sim("part.weirtrace", &["--sample", "1/10"]);
    let count = sample["requests"].as_u64().expect("a count");
    assert!((70..=130).contains(&count), "{count} of 1000");
    // A recording of a recording.
    ok(&place, &["record", "part.weirtrace", "--out", "again.weirtrace", "--to", "5s"]);
    assert_eq!(sim("again.weirtrace", &[])["requests"], 500);
}

#[test]
fn a_layout_that_was_overloaded_at_first_does_not_keep_up() {
    let place = place();
    // 3,000 writes at once need 6 s; then one a second for ten minutes.
    let tick = |ms: u64| 128_166_372_000_000_000 + ms * 10_000;
    let row = |ms: u64| format!("{},web,0,Write,0,4096,20000\n", tick(ms));
    let early = (0..3000).map(|n| row(n / 10));
    place.file("burst.csv", &early.chain((1..=600).map(|n| row(n * 1000))).collect::<String>());
    let sim = ["sim", "layout.toml", "burst.csv", "--map", "web/0=data"];
    let text = ok(&place, &sim);
    assert!(text.starts_with("It falls behind: 3,600 requests"), "{text}");
    let report = json(&place, &sim);
    let seconds = |key: &str| report[key].as_f64().expect("a time") / 1e9;
    assert!((5.0..6.5).contains(&seconds("behind_most_ns")), "{}", report["behind_most_ns"]);
    assert!((4.0..6.5).contains(&seconds("behind_ns")), "{}", report["behind_ns"]);
    // --device leaves one device, which stands for the only volume.
    place.file("one.toml", "[[volume]]\nname = \"x\"\nsize = \"1 GiB\"\nunlimited = true\n");
    let one = json(&place, &["sim", "one.toml", "web.csv", "--device", "web/0"]);
    assert_eq!((&one["requests"], &one["is_whole"]), (&6000.into(), &true.into()));
    let devices = ["--device", "web/0", "--device", "wbe/0"];
    let sim = ["sim", "one.toml", "web.csv", "--map", "web/0=x"];
    let one = json(&place, &[&sim[..], &devices].concat());
    let note = one["notes"][0].as_str().unwrap_or_default();
    assert!(note.starts_with("--device wbe/0 has no effect: no trace has the device"), "{one}");
}

#[test]
fn several_traces_are_replayed_side_by_side() {
    let place = place();
    ok(&place, &["record", "web.csv", "--out", "a.weirtrace", "--device", "web/0"]);
    ok(&place, &["record", "web.csv", "--out", "b.weirtrace", "--device", "web/0"]);
    let files = ["sim", "layout.toml", "a.weirtrace", "b.weirtrace", "--map", "web/0=log"];
    let both = json(&place, &files);
    assert_eq!(both["requests"], 12_000);
    assert_eq!(both["jobs"][1]["name"], "b.weirtrace: web/0 on log");
}

#[test]
fn a_truncated_trace_is_replayed_as_far_as_it_is_whole() {
    let place = place();
    ok(&place, &["record", "web.csv", "--out", "web.weirtrace"]);
    let path = place.path("web.weirtrace");
    let bytes = fs::read(&path).expect("a trace");
    fs::write(&path, &bytes[..bytes.len() - 20]).expect("a file");
    let text = ok(&place, &[&["sim", "layout.toml", "web.weirtrace"][..], &MAPS].concat());
    assert!(text.contains("web.weirtrace: no end mark: it was truncated"), "{text}");
    let mut damaged = bytes.clone();
    let middle = bytes.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&path, damaged).expect("a file");
    let said = refused(&place, &["sim", "layout.toml", "web.weirtrace"], 2);
    assert!(said.contains("web.weirtrace: the trace is damaged at byte"), "{said}");
}

#[test]
fn a_copy_of_a_trace_that_lacks_requests_says_so() {
    let place = place();
    ok(&place, &["record", "web.csv", "--out", "web.weirtrace"]);
    let whole = fs::read(place.path("web.weirtrace")).expect("a trace");
    let mut reader = Reader::open(whole.as_slice()).expect("a trace");
    let mut writer = Writer::new(Vec::new(), reader.header()).expect("memory");
    let mut known = 0;
    while let Some(request) = reader.next_request().expect("sound") {
        for name in reader.devices().iter().skip(known) {
            writer.device(name).expect("memory");
            known += 1;
        }
        writer.request(&request).expect("in order");
    }
    let lossy = writer.finish(777).expect("memory");
    fs::write(place.path("lossy.weirtrace"), &lossy).expect("a file");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &lossy).expect("memory");
    fs::write(place.path("lossy.weirtrace.gz"), packed.finish().expect("memory")).expect("a file");
    fs::write(place.path("cut.weirtrace"), &whole[..whole.len() - 1]).expect("a file");
    let check = |args: &[&str], lost: u64, expect: &str| {
        let all = [&["record"], args, &["--out", "copy.weirtrace", "-o", "json"]].concat();
        let (stdout, stderr, code) = run(place.weir(&all));
        assert_eq!((stderr.as_str(), code), ("", Some(1)), "{args:?}: {stdout}");
        let report: Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(report["lost"], lost, "{args:?}");
        let text = ok(&place, &[&["sim", "layout.toml", "copy.weirtrace"][..], &MAPS].concat());
        assert!(text.contains(expect), "{args:?}: {text}");
    };
    check(&["lossy.weirtrace"], 777, "777 requests are missing");
    check(&["lossy.weirtrace", "--to", "10s"], 777, "777 requests are missing");
    check(&["lossy.weirtrace.gz"], 777, "777 requests are missing");
    check(&["cut.weirtrace"], 0, "no end mark");
    // What is in front of the cut is whole.
    ok(&place, &["record", "cut.weirtrace", "--out", "copy.weirtrace", "--to", "10s"]);
}

#[test]
fn bad_input_is_named() {
    let place = place();
    place.file("job.fio", "[j]\nrw=read\nsize=1m\ndirectory=/mnt/data\n");
    place.file("iostat.txt", "Device r/s w/s\nsda 1 2\n");
    let check = |args: &[&str], code: i32, expect: &str| {
        let said = refused(&place, args, code);
        assert!(said.contains(expect), "weir {}: {said}", args.join(" "));
    };
    let sim = |more: &[&'static str]| [&["sim", "layout.toml", "web.csv"][..], more].concat();
    check(&sim(&[]), 2, "web.csv: no volume or stripe is called like its device \"web/1\"");
    check(&sim(&["--map", "web/0=dta"]), 2, "did you mean \"data\"");
    check(&sim(&["--pace", "fast"]), 2, "expected recorded, closed, or a factor");
    check(&sim(&["--pace", "2x", "--depth", "4"]), 2, "--depth 4: with --pace 2x");
    check(&sim(&["--from", "5s", "--to", "5s"]), 2, "the window is empty");
    check(&sim(&["--sample", "0.1"]), 2, "expected 1/N");
    check(&sim(&["--runtime", "1s"]), 2, "--from and --to select a window");
    check(&sim(&["job.fio"]), 2, "web.csv is a trace and job.fio is not");
    check(&sim(&["--device", "sdz"]), 2, "no trace has the device sdz; there are web/0, web/1");
    check(&["sim", "layout.toml", "job.fio", "--pace", "2x"], 2, "--pace is for traces");
    let record = |more: &[&'static str]| [&["record"][..], more].concat();
    check(&record(&["iostat.txt", "--out", "o.weirtrace"]), 2, "which has no single requests");
    check(&record(&["web.csv", "--out", "layout.toml"]), 2, "it exists and is not a trace");
    check(&record(&["web.csv", "--out", "web.csv"]), 2, "it is the trace to read");
    check(&record(&["web.csv", "--out", "o", "--device", "a"]), 2, "the trace has no such device");
    check(&record(&["--device", "/dev/null", "--out", "o"]), 2, "it is not a block device");
    check(&record(&["--device", "sda", "--out", "o"]), 2, "give a trace to select from");
    check(&record(&["none.csv", "--out", "o.weirtrace"]), 2, "cannot read none.csv");
    check(&record(&["web.csv", "--out", "no/o.weirtrace"]), 3, "the folder no does not exist");
    let left: Vec<_> = fs::read_dir(place.dir()).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 4, "nothing half written is left: {left:?}");
}

/// A request of the sample: whether it reads, and its first byte and end.
type Touched = (bool, u64, u64);

/// The bytes of a page of the host cache.
const PAGE: u64 = 4096;

/// Returns the path of the sample of CloudPhysics.
fn cloud_physics() -> Option<PathBuf> {
    Some(tools::samples()?.join("block_traces/cloudPhysicsIO.csv"))
}

/// Reads a trace of CloudPhysics by its description: SCSI codes, bytes, and sectors.
fn touched(text: &str) -> Vec<Touched> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let [_, _, op, size, sector] = fields[..] else { panic!("{line}") };
        let [size, start] = [size, sector].map(|n| n.parse::<u64>().expect("a number"));
        (op == "28", start * 512, start * 512 + size)
    };
    text.lines().skip(1).map(row).collect()
}

/// A cache as the documentation of the host cache describes it: pages in groups of 2 MiB, and a
/// clock hand that takes pages from groups that were not used since it last came by.
#[derive(Default)]
struct Clock {
    /// Pages of each group, and whether it was used.
    groups: BTreeMap<u64, (BTreeSet<u64>, bool)>,
    held: usize,
    hand: u64,
}

impl Clock {
    const GROUP: u64 = 512;
    /// Pages that are looked up and brought at once.
    const RUN: u64 = 64;

    fn holds(&self, page: u64) -> bool {
        self.groups.get(&(page / Self::GROUP)).is_some_and(|(pages, _)| pages.contains(&page))
    }

    /// Returns whether all pages are there; those in front of a missing run are used.
    fn serves(&mut self, pages: Range<u64>) -> bool {
        for run in Self::runs(pages) {
            if !run.clone().all(|page| self.holds(page)) {
                return false;
            }
            let group = self.groups.get_mut(&(run.start / Self::GROUP)).expect("it holds pages");
            group.1 = true;
        }
        true
    }

    fn bring(&mut self, pages: Range<u64>, most: usize) {
        for run in Self::runs(pages) {
            let group = self.groups.entry(run.start / Self::GROUP).or_default();
            group.1 = true;
            self.held += run.filter(|page| group.0.insert(*page)).count();
            while self.held > most {
                self.turn(most);
            }
        }
    }

    /// Cuts pages into runs.
    fn runs(pages: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let starts = pages.start / Self::RUN..pages.end.div_ceil(Self::RUN);
        let cut = move |run: u64| {
            let (start, end) = (run * Self::RUN, (run + 1) * Self::RUN);
            start.max(pages.start)..end.min(pages.end)
        };
        starts.map(cut).filter(|run| !run.is_empty())
    }

    /// Takes pages from the group under the hand, or moves the hand to the next one.
    fn turn(&mut self, most: usize) {
        let next = self.groups.range(self.hand..).next().or_else(|| self.groups.iter().next());
        self.hand = *next.expect("it holds pages").0;
        let (pages, is_used) = self.groups.get_mut(&self.hand).expect("it is there");
        if !*is_used {
            while self.held > most && pages.pop_first().is_some() {
                self.held -= 1;
            }
            if self.held <= most {
                if pages.is_empty() {
                    self.groups.remove(&self.hand);
                }
                return;
            }
        }
        *is_used = false;
        if pages.is_empty() {
            self.groups.remove(&self.hand);
        }
        self.hand += 1;
    }
}

/// Counts the reads, and those whose pages were all there, in a cache of `most` pages. A read brings
/// all of its pages, a write those that it covers whole.
fn count_hits(requests: &[Touched], most: usize) -> (u64, u64) {
    let mut cache = Clock::default();
    let (mut reads, mut hits) = (0, 0);
    for (is_read, start, end) in requests {
        if *is_read {
            let pages = start / PAGE..end.div_ceil(PAGE);
            reads += 1;
            if cache.serves(pages.clone()) {
                hits += 1;
            } else {
                cache.bring(pages, most);
            }
        } else {
            cache.bring(start.div_ceil(PAGE)..end / PAGE, most);
        }
    }
    (reads, hits)
}

/// Compares the host cache with an independent count of the same trace, one request after the other.
#[track_caller]
fn check_miss_ratio(path: &str, requests: &[Touched], all_reads: u64, sizes: [u64; 3]) {
    let place = Place::new();
    let simulated = |mib: u64| {
        place.file(
            "layout.toml",
            &format!(
                "[host]\ncache = {{ size = \"{mib} MiB\", latency = \"10us\" }}\n\
                 limits = {{ cached = {{ iops = 1000000 }} }}\n[[volume]]\nname = \"disk\"\n\
                 size = \"64 GiB\"\ncache = \"read-only\"\nunlimited = true\nlatency = \"100us\"\n"
            ),
        );
        let args = ["sim", "layout.toml", path, "--pace", "closed", "--depth", "1"];
        let report = json(&place, &args);
        report["jobs"][0]["hit_share"].as_f64().expect("a share")
    };
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let share = |hits: u64| hits as f64 / all_reads as f64;
    // Larger than everything that is touched: only the first use of a page misses.
    let mut seen = BTreeSet::new();
    let mut first_uses = 0;
    for (is_read, start, end) in requests {
        let (pages, whole) = (start / PAGE..end.div_ceil(PAGE), start.div_ceil(PAGE)..end / PAGE);
        first_uses += u64::from(*is_read && !pages.clone().all(|page| seen.contains(&page)));
        seen.extend(if *is_read { pages } else { whole });
    }
    let (own, expect) = (simulated(32_768), share(all_reads - first_uses));
    assert!((own - expect).abs() < 1e-9, "{own} and {expect}");
    for mib in sizes {
        let (reads, hits) = count_hits(requests, usize::try_from(mib * 256).expect("small"));
        let (own, expect) = (simulated(mib), share(hits));
        assert!(reads == all_reads && (own - expect).abs() < 1e-9, "{mib} MiB: {own} and {expect}");
    }
}

#[test]
fn the_miss_ratio_of_the_sample_of_cloud_physics() {
    let Some(sample) = cloud_physics() else { return };
    let requests = touched(&fs::read_to_string(&sample).expect("a sample"));
    check_miss_ratio(&sample.display().to_string(), &requests, 46_974, [64, 256, 1024]);
}

/// Counts the misses of a cache of whole requests, of which the least recently used are evicted, and their bytes. A
/// request has the size of the first one at its address.
fn least_recently_used(requests: &[Request], capacity: u64) -> (u64, u64) {
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    // When each was used, and which was used when.
    let (mut used, mut order) = (BTreeMap::new(), BTreeMap::new());
    let (mut held, mut misses, mut bytes) = (0, 0, 0);
    for (now, request) in requests.iter().enumerate() {
        let size = *sizes.entry(request.offset).or_insert(request.len);
        match used.insert(request.offset, now) {
            Some(before) => drop(order.remove(&before)),
            None => {
                (misses, bytes, held) = (misses + 1, bytes + size, held + size);
                while held > capacity {
                    let (_, oldest) = order.pop_first().expect("it holds others");
                    used.remove(&oldest);
                    held -= sizes[&oldest];
                }
            }
        }
        order.insert(now, request.offset);
    }
    (misses, bytes)
}

/// libCacheSim's own test (`test/test_evictionAlgo.c`, `test_LRU`) has these misses and bytes for the same trace, in
/// caches of 128 MiB to 1 GiB: the requests are read as it reads them.
#[test]
fn the_sample_of_cloud_physics_has_the_misses_that_libcachesim_publishes() {
    const PUBLISHED: [(u64, u64); 8] = [
        (93_374, 4_214_303_232),
        (89_783, 4_061_242_368),
        (83_572, 3_778_040_320),
        (81_722, 3_660_569_600),
        (72_494, 3_100_927_488),
        (72_104, 3_078_128_640),
        (71_972, 3_075_403_776),
        (71_704, 3_061_662_720),
    ];
    let Some(sample) = cloud_physics() else { return };
    let place = Place::new();
    let path = sample.display().to_string();
    let (stdout, stderr, code) = run(place.weir(&["record", &path, "--out", "t.weirtrace"]));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let file = fs::read(place.path("t.weirtrace")).expect("a trace");
    let mut reader = Reader::open(file.as_slice()).expect("a trace");
    let mut requests = Vec::new();
    while let Some(request) = reader.next_request().expect("sound") {
        requests.push(request);
    }
    for (size, published) in (1..).zip(PUBLISHED) {
        let own = least_recently_used(&requests, size << 27);
        assert_eq!(own, published, "{} MiB", size * 128);
    }
}

/// A trace that is always there: three working sets, one of which fits into the smallest cache, and requests
/// that do not begin at pages.
#[test]
fn the_miss_ratio_of_a_trace_with_several_working_sets() {
    let mut random = Rng::new(&[5]);
    let mut text = "version,time,op,size,lbn\n".to_owned();
    for n in 0..8_000 {
        let mib = [2, 12, 60][usize::try_from(random.below(3)).expect("small")];
        let sector = random.below(mib * 2048);
        let (op, size) = (["2a", "28", "28"][n % 3], (1 + random.below(40)) * 512);
        text += &format!("1,{},{op},{size},{sector}\n", n * 100);
    }
    let place = Place::new();
    place.file("sets.csv", &text);
    let requests = touched(&text);
    let reads = requests.iter().filter(|(is_read, ..)| *is_read).count() as u64;
    let path = place.path("sets.csv").display().to_string();
    check_miss_ratio(&path, &requests, reads, [4, 16, 48]);
}
