//! Results of diskspd, as text and as XML.

use crate::bed::{read, refused, survives};
use crate::samples::sample;
use weir_observe::Attribute;

const TEXT: &str = "\
Some words of the author | with a bar.

Command Line: diskspd.exe -b8K -d10 -t2 -w30 a.dat b.dat

Input parameters:

\ttimespan:   1
\t-------------
\tduration: 10s
\twarm up time: 5s
\tpath: 'a.dat'
\t\tperforming mix test (read/write ratio: 70/30)
\t\tblock size: 8KiB
\t\tusing random I/O (alignment: 8KiB)
\t\tnumber of outstanding I/O operations per thread: 4
\tpath: 'b.dat'
\t\tperforming read test
\t\tblock size: 65536
\t\tusing sequential I/O (stride: 65536)

System information:

\tcomputer name: box1
\tstart time: 2024/01/02 03:04:05 UTC

Results for timespan 1:
*******************************************************************************

actual test time:\t10.00s
thread count:\t\t2

Core | CPU |  Usage |  User  | Kernel |  Idle
-----------------------------------------------
    0|    0|  10.00%|   4.00%|   6.00%|  90.00%
-----------------------------------------------
       avg.|  10.00%|   4.00%|   6.00%|  90.00%

Total IO
thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file
-----------------------------------------------------------------------------------------------
     0 |           81920 |           10 |       0.01 |       1.00 |    2.000 |     0.100 | a.dat (1GiB)
     1 |          245760 |           30 |       0.02 |       3.00 |    4.000 |     0.100 | a.dat (1GiB)
     0 |          655360 |           10 |       0.06 |       1.00 |    9.000 |     0.100 | b.dat (10MiB)
-----------------------------------------------------------------------------------------------
total:            983040 |           50 |       0.09 |       5.00 |    4.600 |     0.100

Read IO
thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file
-----------------------------------------------------------------------------------------------
     0 |           81920 |           10 |       0.01 |       1.00 |    2.000 |     0.100 | a.dat (1GiB)
     1 |          245760 |           30 |       0.02 |       3.00 |    4.000 |     0.100 | a.dat (1GiB)
     0 |          655360 |           10 |       0.06 |       1.00 |    9.000 |     0.100 | b.dat (10MiB)
-----------------------------------------------------------------------------------------------
total:            983040 |           50 |       0.09 |       5.00 |    4.600 |     0.100

Write IO
thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file
-----------------------------------------------------------------------------------------------
     0 |               0 |            0 |       0.00 |       0.00 |    0.000 |       N/A | a.dat (1GiB)
     1 |               0 |            0 |       0.00 |       0.00 |    0.000 |       N/A | a.dat (1GiB)
     0 |               0 |            0 |       0.00 |       0.00 |    0.000 |       N/A | b.dat (10MiB)
-----------------------------------------------------------------------------------------------
total:                 0 |            0 |       0.00 |       0.00 |    0.000 |       N/A

total:
  %-ile |  Read (ms) | Write (ms) | Total (ms)
----------------------------------------------
    min |      0.036 |        N/A |      0.036
   50th |      0.232 |        N/A |      0.297
3-nines |      1.608 |        N/A |      7.432
    max |      7.990 |        N/A |     35.257
";

#[test]
fn several_targets_in_text() {
    let read = read(TEXT);
    assert_eq!((read.kind(), read.summary.samples), ("diskspd", 1));
    assert_eq!(read.start().as_deref(), Some("2024-01-02T03:04:20Z"));
    assert_eq!(read.all("a.dat", "reads_per_s"), [4.0]);
    assert_eq!(read.all("a.dat", "read_bytes_per_s"), [32_768.0]);
    assert_eq!(read.all("a.dat", "read_latency_ns"), [3.5e6]);
    assert_eq!(read.all("b.dat", "latency_ns"), [9e6]);
    assert_eq!(read.all("a.dat", "writes_per_s"), [0.0]);
    assert_eq!(read.observation.contents().find(read.entity("a.dat"), "write_latency_ns"), None);
    assert_eq!(read.all("all targets", "read_latency_p99_9_ns"), [1.608e6]);
    assert_eq!(read.all("all targets", "latency_max_ns"), [35.257e6]);
    assert_eq!(read.all("box1", "cpu_system"), [0.06]);
    for (job, name, value) in [
        ("a.dat", "block_bytes", 8192),
        ("a.dat", "read_percent", 70),
        ("a.dat", "random_percent", 100),
        ("a.dat", "outstanding_per_thread", 4),
        ("a.dat", "size_bytes", 1 << 30),
        ("b.dat", "read_percent", 100),
        ("b.dat", "random_percent", 0),
    ] {
        assert_eq!(read.attribute(job, name), Some(Attribute::Number(value)), "{job} {name}");
    }
}

#[test]
fn several_runs_in_a_file() {
    let other = TEXT.replace("block size: 8KiB", "block size: 64KiB");
    let dated = read(&format!("{TEXT}\nNotes.\n{}", TEXT.replace("03:04:05", "03:05:05")));
    assert_eq!(dated.seconds(), [0.0, 60.0]);
    assert_eq!(dated.all("b.dat", "reads_per_s"), [1.0, 1.0]);
    let undated = |text: &str| text.replace("\tstart time: 2024/01/02 03:04:05 UTC\n", "");
    let read = read(&undated(&format!("{TEXT}{other}")));
    assert_eq!((read.start(), read.seconds()), (None, vec![15.0, 30.0]));
    assert_eq!(read.attribute("a.dat #2", "block_bytes"), Some(Attribute::Number(65536)));
    assert_eq!(read.values("a.dat", "reads_per_s"), [Some(4.0), None]);
}

#[test]
fn malformed_and_truncated_text() {
    assert_eq!(
        refused(&TEXT.replace("           50 |       0.09 |       5.00", "x50 | 0.09 | 5.00")),
        "line 45: \"x50\" is not a number"
    );
    assert_eq!(
        refused(&TEXT.replace("    min |      0.036", "    min |      0.0.36")),
        "line 68: \"0.0.36\" is not a number"
    );
    assert_eq!(
        refused(&TEXT.replace("     1 |          245760 |", "     1 |")),
        "line 42: a row has 7 columns, but its header has 8"
    );
    let cut = TEXT.find("Write IO").expect("there is one");
    let read = read(&TEXT[..cut - 60]);
    assert!(read.notes("its last line was truncated"), "{:?}", read.summary.notes);
    assert_eq!(read.all("b.dat", "reads_per_s"), [1.0]);
    let head = TEXT.find("Core |").expect("there is one");
    assert_eq!(
        refused(&TEXT[..head]),
        "it has no samples: it was read as results of diskspd, as text, but has no samples"
    );
}

const XML: &str = r#"<Results>
 <System><ComputerName>box2</ComputerName><Tool><Version>2.1</Version></Tool>
  <RunTime>2024/01/02 03:04:05 UTC</RunTime></System>
 <Profile><TimeSpans><TimeSpan><Duration>10</Duration><Warmup>5</Warmup><Targets><Target>
  <Path>a&amp;b.dat</Path><BlockSize>8192</BlockSize><Random>8192</Random><WriteRatio>30</WriteRatio>
  <RequestCount>4</RequestCount><ThreadsPerFile>2</ThreadsPerFile></Target></Targets></TimeSpan></TimeSpans></Profile>
 <TimeSpan><TestTimeSeconds>10.00</TestTimeSeconds><ThreadCount>2</ThreadCount>
  <CpuUtilization><CPU><UsagePercent>1.00</UsagePercent></CPU>
   <Average><UsagePercent>2.50</UsagePercent><KernelPercent>1.50</KernelPercent></Average></CpuUtilization>
  <Latency><Bucket><Percentile>0</Percentile><ReadMilliseconds>0.100</ReadMilliseconds></Bucket>
   <Bucket><Percentile>99.9</Percentile><ReadMilliseconds>4.000</ReadMilliseconds><TotalMilliseconds>5.000</TotalMilliseconds></Bucket>
   <Bucket><Percentile>100</Percentile><TotalMilliseconds>6.000</TotalMilliseconds></Bucket></Latency>
  <Thread><Id>0</Id><Target><Path>a&amp;b.dat</Path><BytesCount>819200</BytesCount><FileSize>1048576</FileSize>
   <IOCount>100</IOCount><ReadBytes>819200</ReadBytes><ReadCount>100</ReadCount><WriteBytes>0</WriteBytes>
   <WriteCount>0</WriteCount><AverageReadLatencyMilliseconds>2.000</AverageReadLatencyMilliseconds></Target></Thread>
  <Thread><Id>1</Id><Target><Path>a&amp;b.dat</Path><BytesCount>2457600</BytesCount><FileSize>1048576</FileSize>
   <IOCount>300</IOCount><ReadBytes>2457600</ReadBytes><ReadCount>300</ReadCount><WriteBytes>0</WriteBytes>
   <WriteCount>0</WriteCount><AverageReadLatencyMilliseconds>4.000</AverageReadLatencyMilliseconds></Target></Thread>
 </TimeSpan>
</Results>
"#;

#[test]
fn xml() {
    let read = read(&format!("# notes\n{XML}"));
    assert_eq!(read.kind(), "diskspd-xml");
    assert_eq!(read.start().as_deref(), Some("2024-01-02T03:04:20Z"));
    for (metric, value) in [
        ("reads_per_s", 40.0),
        ("read_bytes_per_s", 327_680.0),
        ("read_latency_ns", 3.5e6),
        ("reads", 400.0),
        ("read_latency_min_ns", 1e5),
        ("read_latency_p99_9_ns", 4e6),
        ("latency_max_ns", 6e6),
    ] {
        assert_eq!(read.all("a&b.dat", metric), [value], "{metric}");
    }
    assert_eq!(read.all("box2", "cpu"), [0.025]);
    for (name, value) in [("block_bytes", 8192), ("read_percent", 70), ("random_percent", 100)] {
        assert_eq!(read.attribute("a&b.dat", name), Some(Attribute::Number(value)), "{name}");
    }
    assert_eq!(read.attribute("a&b.dat", "target_queue_depth"), Some(Attribute::Number(8)));
    assert_eq!(read.all("a&b.dat", "interval_ns"), [10e9]);
}

#[test]
fn wrong_xml() {
    assert_eq!(
        refused(&XML[..XML.len() - 12]),
        "line 19: the results that begin in line 1 are truncated here"
    );
    let message = refused(&XML.replace("</CPU>", "</GPU>"));
    assert!(message.starts_with("line 8: invalid XML: "), "{message}");
}

#[test]
fn genuine_text() {
    let Some(read) = sample("diskspd/kisel_Irbis_TW57.txt") else { return };
    let name = "C:\\testfile.foo";
    assert_eq!(read.all(name, "reads_per_s"), [530.88]);
    assert_eq!(read.all(name, "writes_per_s"), [529.92]);
    assert_eq!(read.all(name, "latency_ns"), [60.403e6]);
    assert_eq!(read.attribute(name, "size_bytes"), Some(Attribute::Number(8 << 30)));

    let path = "diskspd/kisel_goodwinserverdc.westeurope.cloudapp.azure.com.txt";
    let Some(read) = sample(path) else { return };
    assert_eq!(read.seconds(), [605.0, 1210.0]);
    assert_eq!(read.values(name, "latency_ns"), [Some(162.684e6), None]);
    assert_eq!(read.values("D:\\testfile.foo", "latency_ns"), [None, Some(1.268e6)]);
    // Two threads with 32 each, over 600 s after 5 s of warm-up.
    assert_eq!(read.attribute(name, "target_queue_depth"), Some(Attribute::Number(64)));
    assert_eq!(read.values(name, "interval_ns"), [Some(600e9), None]);
    assert_eq!(read.values("D:\\testfile.foo", "reads_per_s"), [None, Some(25_197.22)]);
    assert_eq!(read.values(name, "write_latency_p95_ns"), [Some(372.446e6), None]);

    let path = "diskspd/vc_DiskSpdExample-WriteOnly-v2.2.0-SingleGroup.txt";
    let Some(read) = sample(path) else { return };
    assert_eq!(read.start().as_deref(), Some("2026-06-22T22:17:00Z"));
    assert_eq!(read.all("C:\\diskspd-test.dat", "writes_per_s"), [508.09]);
    assert_eq!(read.all("alexwill-dskspd", "cpu"), [0.011]);
    let Some(read) = sample("diskspd/vc_Results_DiskSpd.txt") else { return };
    assert_eq!(read.all("diskspd.dat", "read_latency_p99_ns"), [0.877e6]);
    assert_eq!(read.all("diskspd.dat", "read_bytes_per_s"), [3_420_078.0]);
}

#[test]
fn malformed_and_truncated_input() {
    survives(TEXT, "diskspd");
    survives(XML, "diskspd-xml");
}
