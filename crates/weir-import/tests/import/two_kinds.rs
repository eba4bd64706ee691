//! Files with inputs of two kinds, neither of which is lost silently.

use crate::bed::{input, refused, try_read};
use weir_import::Options;

const IOSTAT: &str = "\
Linux 5.15.0 (db1) \t11/22/2026 \t_x86_64_\t(4 CPU)

11/22/2026 02:00:00 PM
Device r/s w/s
sda 100.00 20.00

11/22/2026 02:00:01 PM
Device r/s w/s
sda 50.00 10.00
";

const DISKSTATS: &str = "\
1790000000
   8       0 sda 0 0 8 1 0 0 0 0 0 1 1
1790000001
   8       0 sda 9 0 8 1 0 0 0 0 0 1 1
";

const VMSTAT: &str = "\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 1  0      0 100000  10000 500000    0    0    10    20  100  200  1  1 98  0  0
 1  0      0 100000  10000 500000    0    0    10    20  100  200  1  1 98  0  0
";

const FILES: &str = "\
sample_time,database_name,file_name,num_of_reads,io_stall_read_ms,num_of_writes,io_stall_write_ms
2026-11-22T14:00:00,db,data,1,1,1,1
2026-11-22T14:00:01,db,data,2,2,2,2
";

const WAITS: &str = "\
wait_type,waiting_tasks_count,wait_time_ms,max_wait_time_ms,signal_wait_time_ms
WRITELOG,77,302134,30004,3
";

const PERFMON: &str = "\
\"(PDH-CSV 4.0)\",\"\\\\DB\\PhysicalDisk(0 C:)\\Disk Reads/sec\"
\"12/29/2020 18:34:28.308\",\"1.0\"
\"12/29/2020 18:34:29.308\",\"2.0\"
";

#[track_caller]
fn check(parts: &[&str], expect: &str) {
    let reason = refused(&parts.concat());
    let (said, _) = reason.split_once(" (").unwrap_or((&reason, ""));
    assert_eq!(said, expect);
}

#[test]
fn input_that_would_be_skipped_is_rejected() {
    check(
        &[DISKSTATS, IOSTAT],
        "line 5: from here on this looks like iostat; the part before was read as diskstats: \
         split the file",
    );
    check(
        &[VMSTAT, IOSTAT],
        "line 5: from here on this looks like iostat; the part before was read as vmstat: split \
         the file",
    );
}

#[test]
fn the_first_line_of_another_kind_is_reported() {
    check(
        &[IOSTAT, DISKSTATS],
        "line 11: from here on this looks like diskstats; the part before was read as iostat: \
         split the file",
    );
    check(
        &[FILES, PERFMON],
        "line 4: from here on this looks like perfmon; the part before was read as sqlserver: \
         split the file",
    );
    check(
        &[FILES, WAITS],
        "line 4: from here on this looks like another table of sqlserver; the part before was \
         read as sqlserver: split the file",
    );
    check(
        &[FILES, "\n", PERFMON],
        "line 5: from here on this looks like perfmon; the part before was read as sqlserver: \
         split the file",
    );
}

#[test]
fn malformed_input_is_not_taken_for_another_kind() {
    check(&[IOSTAT, "sda 1.00\n", IOSTAT], "line 10: a device has 2 columns, but its header has 3");
    check(&[FILES, "a,b\n", FILES], "line 4: a row has 2 fields, but its header has 7");
}

#[test]
fn a_stated_kind_excludes_others() {
    let text = [DISKSTATS, IOSTAT].concat();
    let read = try_read(vec![input("input", text, Some("iostat"))], &Options::default());
    let notes = read.expect("iostat").summary.notes;
    assert!(notes.iter().any(|note| note.contains("lines before the first report (2 times)")));
}

/// Builds an input whose line at fault is far beyond the part that is kept.
#[test]
fn another_kind_is_found_far_into_the_input() {
    let mut text = FILES.to_owned();
    let mut row = 0;
    while text.len() < 3 << 20 {
        row += 1;
        let (minute, second) = (row / 60 % 60, row % 60);
        let (day, hour) = (1 + row / 86_400, row / 3600 % 24);
        text.push_str(&format!(
            "2026-12-{day:02}T{hour:02}:{minute:02}:{second:02},db,data,{row},2,2,2\n"
        ));
    }
    check(
        &[&text, WAITS],
        &format!(
            "line {}: from here on this looks like another table of sqlserver; the part before \
             was read as sqlserver: split the file",
            row + 4
        ),
    );
}
