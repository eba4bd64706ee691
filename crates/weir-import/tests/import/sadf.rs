//! sadf: for a database, for scripts, as JSON, as XML.

use crate::bed::{Read, read, refused};
use crate::samples::{sample, try_sample};
use crate::sar::rounded;

const TABLES: &str = "\
# hostname;interval;timestamp;CPU;%usr;%nice;%sys;%iowait;%steal;%irq;%soft;%guest;%gnice;%idle
db1;31;2019-04-18 13:20:19 UTC;-1;10.00;5.00;1.50;20.00;0.00;0.50;0.00;0.00;0.00;60.00
db1;31;2019-04-18 13:20:19 UTC;0;2.71;0.03;2.16;0.00;0.00;0.32;0.64;0.00;0.00;94.14
db1;31;2019-04-18 13:20:29 UTC;-1;0.00;0.00;0.00;0.00;0.00;0.00;0.00;0.00;0.00;100.00
# hostname;interval;timestamp;tps;rtps;wtps;dtps;bread/s;bwrtn/s;bdscd/s
db1;31;2019-04-18 13:20:19 UTC;20.85;12.83;4.81;3.21;57.43;38.50;32.08
# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util
db1;31;2019-04-18 13:20:19 UTC;sda;9.62;7.50;0.00;16.04;2.48;0.01;13.00;0.96
db1;31;2019-04-18 13:20:29 UTC;sda;6.40;1.60;1.60;0.00;0.50;0.00;;0.32
db1;-1;2019-04-18 13:37:29 UTC;LINUX-RESTART\t(9 CPU)
db1;-1;2019-04-18 13:39:09 UTC;COM a comment
# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util
db1;31;2019-04-18 13:54:35 UTC;sda;1.60;0.00;0.00;0.80;0.50;0.00;1.00;0.00
";

#[test]
fn tables_for_a_database() {
    let read = read(TABLES);
    assert_eq!(read.kind(), "sadf-d");
    assert_eq!(read.start().as_deref(), Some("2019-04-18T13:20:19Z"));
    assert_eq!(read.seconds(), [0.0, 10.0, 2056.0]);
    assert_eq!(read.all("sda", "operations_per_s"), [9.62, 6.4, 1.6]);
    assert_eq!(read.all("sda", "read_bytes_per_s"), [7680.0, 1638.0, 0.0]);
    assert_eq!(read.values("sda", "latency_ns"), [Some(13e6), None, Some(1e6)]);
    assert_eq!(rounded(&read, "db1", "cpu"), [Some(0.2), Some(0.0), None]);
    assert_eq!(rounded(&read, "db1", "cpu_user"), [Some(0.15), Some(0.0), None]);
    assert_eq!(rounded(&read, "db1", "discards_per_s"), [Some(3.21), None, None]);
    assert!(read.notes("restarted"), "{:?}", read.summary.notes);
}

#[test]
fn malformed_tables_are_reported() {
    let short = TABLES.replace("sda;9.62;", "sda;");
    assert_eq!(refused(&short), "line 8: a row has 8 columns, but its header has 9");
    let wrong = TABLES.replace("9.62", "9.6x");
    assert_eq!(refused(&wrong), "line 8: \"9.6x\" is not a number");
    let wrong = TABLES.replace("13:20:29", "13:20:99");
    assert_eq!(refused(&wrong), "line 4: \"2019-04-18 13:20:99 UTC\" is not a time");
    let cut = read(&TABLES[..TABLES.len() - 20]);
    assert!(cut.notes("its last line was truncated"), "{:?}", cut.summary.notes);
    assert_eq!(cut.all("sda", "busy"), [0.01, 0.003]);
}

const LINES: &str = "\
db1\t31\t2019-04-18 13:20:19 UTC\tall\t%usr\t10.00
db1\t31\t2019-04-18 13:20:19 UTC\tall\t%nice\t5.00
db1\t31\t2019-04-18 13:20:19 UTC\tall\t%idle\t60.00
db1\t31\t2019-04-18 13:20:19 UTC\tall\t%iowait\t20.00
db1\t31\t2019-04-18 13:20:19 UTC\tcpu0\t%usr\t2.71
db1\t31\t2019-04-18 13:20:29 UTC\tall\t%usr\t1.00
db1\t31\t2019-04-18 13:20:19 UTC\t-\ttps\t20.85
db1\t31\t2019-04-18 13:20:19 UTC\t-\tproc/s\t3.56
db1\t31\t2019-04-18 13:20:19 UTC\tsda\ttps\t9.62
db1\t31\t2019-04-18 13:20:19 UTC\tsda\trkB/s\t7.50
db1\t31\t2019-04-18 13:20:29 UTC\tsda\ttps\t6.40
db1\t-1\t2019-04-18 13:37:29 UTC\tLINUX-RESTART\t(9 CPU)
db1\t31\t2019-04-18 13:54:35 UTC\tsda\ttps\t1.60
";

#[test]
fn lines_for_scripts() {
    let read = read(LINES);
    assert_eq!(read.kind(), "sadf-p");
    assert_eq!(read.seconds(), [0.0, 10.0, 2056.0]);
    assert_eq!(read.all("sda", "operations_per_s"), [9.62, 6.4, 1.6]);
    assert_eq!(read.values("sda", "read_bytes_per_s"), [Some(7680.0), None, None]);
    assert_eq!(rounded(&read, "db1", "operations_per_s"), [Some(20.85), None, None]);
    assert_eq!(rounded(&read, "db1", "cpu"), [Some(0.2), None, None]);
    assert_eq!(rounded(&read, "db1", "cpu_user"), [Some(0.15), Some(0.01), None]);
    assert!(read.notes("proc/s"), "{:?}", read.summary.notes);
}

#[test]
fn malformed_lines_are_reported() {
    let wrong = LINES.replace("9.62", "9.6x");
    assert_eq!(refused(&wrong), "line 9: \"9.6x\" is not a number");
    let wrong = LINES.replace("\t-\ttps\t20.85", "\t-\ttps");
    assert_eq!(refused(&wrong), "line 7: a line has 5 fields instead of 6");
    let cut = read(LINES.split("\ttps\t1.60").next().expect("a part"));
    assert!(cut.notes("its last line was truncated"), "{:?}", cut.summary.notes);
}

const JSON: &str = r#"{"sysstat": {
    "hosts": [{
        "nodename": "db1", "file-date": "2019-04-18", "timezone": "GMT",
        "statistics": [
            {"timestamp": {"date": "2019-04-18", "time": "13:20:19", "tz": "UTC", "interval": 31},
             "cpu-load": [
                {"cpu": "all", "usr": 10.0, "nice": 5.0, "sys": 1.5, "iowait": 20.0, "irq": 0.5, "idle": 60.0},
                {"cpu": "0", "usr": 99.0, "idle": 1.0}],
             "swap-pages": {"pswpin": 2.0, "pswpout": 0.0},
             "io": {"tps": 20.85, "io-reads": {"rtps": 12.83, "bread": 8.0}},
             "memory": {"memfree": 1000, "avail": 2000, "memused-percent": 46.11, "cached": 3000},
             "queue": {"runq-sz": 3, "blocked": 1},
             "disk": [{"disk-device": "sda", "tps": 9.62, "rd_sec": 15.0, "rkB": 7.5, "areq-sz": 2.5, "avgqu-sz": 0.5, "util-percent": 0.96}],
             "network": {"net-dev": [{"iface": "lo", "rxpck": 0.0}]}},
            {"timestamp": {"date": "2019-04-18", "time": "13:20:24", "tz": "UTC", "interval": 31},
             "power-management": {"fan-speed": []}},
            {"timestamp": {"date": "2019-04-18", "time": "13:20:29", "utc": 1, "interval": 31},
             "disk": [{"disk-device": "sda", "tps": 6.4, "util": 0.32}]}
        ],
        "restarts": [{"boot": {"date": "2019-04-18", "time": "13:37:29"}}]
    }]
}}
"#;

/// Checks the figures that JSON and XML have in common.
#[track_caller]
fn check_common(read: &Read) {
    assert_eq!(read.all("sda", "operations_per_s"), [9.62, 6.4]);
    assert_eq!(read.all("sda", "busy"), [0.01, 0.003]);
    for (name, metric, expect) in [
        ("sda", "read_bytes_per_s", 7680.0),
        ("sda", "request_bytes", 2560.0),
        ("sda", "queue_depth", 0.5),
        ("db1", "operations_per_s", 20.85),
        ("db1", "read_bytes_per_s", 4096.0),
        ("db1", "memory_free_bytes", 1_024_000.0),
        ("db1", "memory_available_bytes", 2_048_000.0),
        ("db1", "swap_in_bytes_per_s", 8192.0),
        ("db1", "runnable", 3.0),
        ("db1", "cpu", 0.2),
        ("db1", "cpu_system", 0.02),
    ] {
        assert_eq!(rounded(read, name, metric), [Some(expect), None], "{name} {metric}");
    }
}

#[test]
fn as_json() {
    let read = read(JSON);
    assert_eq!(read.kind(), "sadf-j");
    assert_eq!(read.start().as_deref(), Some("2019-04-18T13:20:19Z"));
    assert_eq!(read.seconds(), [0.0, 10.0]);
    check_common(&read);
    assert_eq!(rounded(&read, "db1", "memory_cache_bytes"), [Some(3_072_000.0), None]);
    for unused in ["network", "power-management", "memused-percent"] {
        assert!(read.notes(unused), "{:?}", read.summary.notes);
    }
}

#[test]
fn malformed_json_is_reported() {
    let wrong = JSON.replace("\"time\": \"13:20:29\"", "\"time\": \"later\"");
    assert_eq!(
        refused(&wrong),
        "line 17: the time of a sample is \
         {\"date\":\"2019-04-18\",\"interval\":31,\"time\":\"later\",\"utc\":1}"
    );
    let wrong = JSON.replace("\"statistics\"", "\"stats\"");
    assert_eq!(refused(&wrong), "it has no \"statistics\"");
}

#[test]
fn samples_have_the_published_figures() {
    let (Some(d), Some(p)) =
        (sample("sar/sysstat_expected.sadf-d"), sample("sar/sysstat_expected.sadf-p"))
    else {
        return;
    };
    for read in [&d, &p] {
        assert_eq!(read.start().as_deref(), Some("2019-04-18T13:20:19Z"));
        assert_eq!(read.seconds()[..4], [0.0, 10.0, 20.0, 30.0]);
        assert_eq!(read.all("sda", "operations_per_s")[..3], [0.0, 6.4, 1604.7]);
        assert_eq!(read.all("SYSSTAT.TEST", "cpu_user")[0], 0.147);
        assert_eq!(read.all("SYSSTAT.TEST", "read_bytes_per_s")[0], 29_404.0);
    }
    // Both say the same of all that is used.
    assert_eq!(d.observation.times, p.observation.times);
    for series in &d.observation.contents().series {
        let entity = &d.observation.contents().entities[series.entity.0 as usize];
        let (a, b) =
            (d.values(&entity.name, &series.metric), p.values(&entity.name, &series.metric));
        assert_eq!(a, b, "{} {}", entity.name, series.metric);
    }
    let Some(result) = try_sample("sar/sysstat_expected.data-11.6.5-sadf-j") else { return };
    let error = result.expect_err("it is refused").to_string();
    assert!(error.contains("has no samples"), "{error}");
}

/// Output of `sadf -x` for two samples; the second follows a restart.
const XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<sysstat
xmlns="https://sysstat.github.io">
	<sysdata-version>3.18</sysdata-version>
	<host nodename="db1">
		<sysname>Linux</sysname>
		<file-date>2019-04-18</file-date>
		<statistics>
			<timestamp date="2019-04-18" time="13:20:19" tz="UTC" interval="31">
				<cpu-load>
					<cpu number="all" usr="10.00" nice="5.00" sys="1.50" iowait="20.00" irq="0.50" idle="60.00"/>
					<cpu number="0" usr="99.00" idle="1.00"/>
				</cpu-load>
				<swap-pages per="second" pswpin="2.00" pswpout="0.00"/>
				<io per="second">
					<tps>20.85</tps>
					<io-reads rtps="12.83" bread="8.00"/>
				</io>
				<memory unit="kB">
					<memfree>1000</memfree>
					<avail>2000</avail>
					<memused-percent>46.11</memused-percent>
				</memory>
				<queue runq-sz="3" blocked="1"/>
				<disk per="second">
					<disk-device dev="sda" tps="9.62" rd_sec="15.00" areq-sz="2.50" avgqu-sz="0.50" util-percent="0.96"/>
					<disk-device dev="a&amp;b" tps="1.00"/>
				</disk>
				<network><net-dev iface="lo" rxpck="0.00"/></network>
			</timestamp>
			<timestamp date="2019-04-18" time="13:20:24" tz="UTC" interval="31">
				<psi per="second"><psi-io some_avg10="0.00"/></psi>
			</timestamp>
			<timestamp date="2019-04-18" time="14:20:29" utc="1" interval="10">
				<disk per="second">
					<disk-device dev="sda" tps="6.40" util="0.32"/>
					<disk-device dev="a&amp;b" tps="0.00"/>
				</disk>
			</timestamp>
		</statistics>
		<restarts>
			<boot date="2019-04-18" time="14:20:19" tz="UTC" cpu_count="9"/>
		</restarts>
		<comments>
			<comment date="2019-04-18" time="13:39:09" tz="UTC" com="Testing!"/>
		</comments>
	</host>
</sysstat>
"#;

#[test]
fn as_xml() {
    let read = read(XML);
    assert_eq!(read.kind(), "sadf-x");
    assert_eq!(read.start().as_deref(), Some("2019-04-18T13:20:19Z"));
    assert_eq!(read.seconds(), [0.0, 3610.0]);
    assert_eq!(read.all("a&b", "operations_per_s"), [1.0, 0.0]);
    check_common(&read);
    assert_eq!(rounded(&read, "db1", "reads_per_s"), [Some(12.83), None]);
    for note in ["network", "psi", "memused-percent", "comments", "restarted"] {
        assert!(read.notes(note), "{note}: {:?}", read.summary.notes);
    }
}

#[test]
fn samples_of_xml_cover_their_stated_interval() {
    let read = read(XML);
    // The machine was off for an hour: the second sample is of its last ten seconds.
    assert_eq!(read.values("sda", "interval_ns"), [None, Some(10e9)]);
}

#[test]
fn malformed_xml_is_reported() {
    let check = |from: &str, to: &str, expect: &str| {
        let line = XML[..XML.find(from).expect(from)].matches('\n').count() + 1;
        assert_eq!(refused(&XML.replacen(from, to, 1)), format!("line {line}: {expect}"));
    };
    check("14:20:29", "later", "\"2019-04-18 later\" is not a time of a sample");
    check("9.62", "9.6x", "\"9.6x\" is not a number");
    check(">20.85<", ">many<", "\"many\" is not a number");
    let wrong = XML.replace("statistics>", "stats>");
    assert_eq!(refused(&wrong), "it has no <statistics>");
    let wrong = XML.replace("</memory>", "</memo>");
    let error = refused(&wrong);
    assert!(error.contains("invalid XML"), "{error}");
    let empty = XML.split("<timestamp").next().expect("a part").to_owned() + "</statistics>";
    assert!(refused(&empty).contains("has no samples"), "{}", refused(&empty));
}

#[test]
fn truncated_xml_has_its_complete_samples() {
    for end in ["<timestamp date=\"2019-04-18\" time=\"14", "tps=\"6.40", "a&amp;b\" tps=\"0.0"] {
        let cut = read(&XML[..XML.rfind(end).expect("a part") + end.len()]);
        assert_eq!(cut.all("sda", "operations_per_s"), [9.62], "{end}");
        assert!(cut.notes("it was truncated"), "{:?}", cut.summary.notes);
    }
}

#[test]
fn hostile_xml_is_rejected() {
    let head = XML.split("<timestamp").next().expect("a part");
    let deep = head.to_owned() + &"<a>".repeat(1_000);
    assert_eq!(refused(&deep), "line 9: more than 64 elements deep");
    let long = head.to_owned() + "<timestamp date=\"" + &"2".repeat(2 << 20) + "\"/>";
    let error = refused(&long);
    assert!(error.contains("an element has more than 1024 KiB"), "{error}");
    crate::bed::survives(XML, "sadf-x");
}
