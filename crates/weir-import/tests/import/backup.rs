//! Logs and histories of backups and restores.

use crate::bed::{Read, input, read, refused, survives, try_read};
use weir_import::Options;
use weir_observe::{Attribute, EntityKind};

fn number(read: &Read, name: &str, what: &str) -> Option<u64> {
    match read.attribute(name, what) {
        Some(Attribute::Number(number)) => Some(number),
        _ => None,
    }
}

fn text(read: &Read, name: &str, what: &str) -> Option<String> {
    match read.attribute(name, what) {
        Some(Attribute::Text(text)) => Some(text),
        _ => None,
    }
}

/// Returns the duration of a backup in seconds.
fn seconds(read: &Read, name: &str) -> Vec<f64> {
    read.all(name, "interval_ns").iter().map(|ns| ns / 1e9).collect()
}

const CLIENT: &str = "\
BACKUP DATABASE [Sales] TO DISK = N'F:\\b\\1.bak', DISK = N'F:\\b\\2.bak'\r\n\
WITH MAXTRANSFERSIZE = 4194304, BUFFERCOUNT = 50, COMPRESSION, STATS = 10\r\n\
10 percent processed.\r\n\
Processed 584 pages for database 'Sales', file 'Sales' on file 1.\r\n\
100 percent processed.\r\n\
Processed 1 pages for database 'Sales', file 'Sales_log' on file 1.\r\n\
BACKUP DATABASE successfully processed 585 pages in 0.037 seconds (123.350 MB/sec).\r\n\
\r\n\
Completion time: 2023-05-04T10:11:12.0000000+02:00\r\n";

#[test]
fn messages_of_a_client() {
    let own = read(CLIENT);
    assert_eq!(own.kind(), "sqlserver-backup");
    // 584 pages and 3 blocks of the log, within three decimals of the rate.
    let [bytes] = own.all("Sales full", "backup_bytes")[..] else { panic!("one") };
    assert!((bytes - f64::from(584 * 8192 + 3 * 512)).abs() <= 512.0, "{bytes}");
    assert_eq!(seconds(&own, "Sales full"), [0.037]);
    assert_eq!(own.start().as_deref(), Some("2023-05-04T08:11:12Z"));
    assert!((own.first_interval() - 0.037).abs() < 1e-9);
    assert_eq!(number(&own, "Sales full", "stripes"), Some(2));
    assert_eq!(number(&own, "Sales full", "max_transfer_bytes"), Some(4 << 20));
    assert_eq!(number(&own, "Sales full", "buffer_count_set"), Some(50));
    assert_eq!(text(&own, "Sales full", "compression").as_deref(), Some("on"));
    assert_eq!(text(&own, "Sales full", "targets").as_deref(), Some("F:\\b"));
    assert_eq!(text(&own, "Sales full", "tool").as_deref(), Some("SQL Server"));
    let kinds: Vec<_> =
        own.observation.contents().entities.iter().map(|own| own.kind.clone()).collect();
    assert_eq!(kinds, [EntityKind::BackupTarget, EntityKind::Backup]);
}

#[test]
fn unknown_written_bytes_are_not_zero() {
    let own = read(CLIENT);
    let id = own.entity("Sales full");
    assert_eq!(own.observation.contents().find(id, "backup_written_bytes"), None);
}

#[test]
fn all_results_of_a_client_without_times() {
    let results = "\
BACKUP DATABASE successfully processed 5122010 pages in 243.504 seconds (164.332 MB/sec).\n\
BACKUP DATABASE WITH DIFFERENTIAL successfully processed 298 pages in 0.049 seconds (47.433 MB/sec).\n\
BACKUP LOG successfully processed 3 pages in 0.054 seconds (0.406 MB/sec).\n\
RESTORE DATABASE ... FILE=<name> successfully processed 23288 pages in 7.104 seconds (25.610 MB/sec).\n";
    let own = read(results);
    assert_eq!(own.summary.samples, 4);
    assert_eq!(own.values("SQL Server full", "backup_bytes")[0], Some(5_122_010.0 * 8192.0));
    let restore = own.values("SQL Server file restore", "backup_bytes")[3];
    assert_eq!(restore, Some(23_288.0 * 8192.0));
    assert!(!own.notes("MB/sec"), "{:?}", own.summary.notes);
    assert_eq!(
        super::backup::text(&own, "SQL Server file restore", "operation").as_deref(),
        Some("restore")
    );
}

#[test]
fn a_rate_that_contradicts_its_pages_is_reported() {
    let own = read("BACKUP LOG successfully processed 5 pages in 0.031 seconds (1.900 MB/sec).\n");
    assert!(own.notes("line 1 prints 1.900 MB/sec"), "{:?}", own.summary.notes);
    assert_eq!(own.all("SQL Server log", "backup_bytes"), [5.0 * 8192.0]);
}

#[test]
fn broken_results_are_rejected() {
    let why =
        refused("BACKUP LOG successfully processed five pages in 0.031 seconds (1 MB/sec).\nx\n");
    assert!(why.contains("line 1") && why.contains("successfully processed N pages"), "{why}");
    let why = refused(
        "Processed 5 pages for database 'a', file 'b' on file 1.\nMsg 3013: BACKUP \
                       DATABASE is terminating abnormally.\n",
    );
    assert!(why.contains("it contains no completed BACKUP or RESTORE"), "{why}");
}

const ERRORLOG: &str = "\
2021-03-04 18:00:00.00 Server      Microsoft SQL Server 2019 (RTM)\n\
\tCopyright\n\
2021-03-04 18:00:01.00 Server      Server name is 'DB1'. This is an informational message only.\n\
2021-03-04 18:10:49.00 spid51      Backup(Sales): BACKUP DATABASE started\n\
2021-03-04 18:10:49.04 spid51      Backup/Restore buffer configuration parameters\n\
2021-03-04 18:10:49.04 spid51      Memory limit:               2300 MB\n\
2021-03-04 18:10:49.04 spid51      BufferCount:                13\n\
2021-03-04 18:10:49.04 spid51      Sets Of Buffers:            3\n\
2021-03-04 18:10:49.04 spid51      MaxTransferSize:            1024 KB\n\
2021-03-04 18:10:49.05 spid51      Backup(Sales): Number of data file readers = 4\n\
2021-03-04 18:10:59.47 Backup      Database backed up. Database: Sales, creation date(time): \
2021/03/01(12:48:14), pages dumped: 12900, first LSN: 39:1000:1, last LSN: 39:1024:1, number of dump \
devices: 2, device information: (FILE=1, TYPE=DISK: {'D:\\b\\1.bak', 'E:\\b\\2.bak'}). This is an \
informational message only.\n\
2021-03-04 18:10:59.49 Backup      BACKUP DATABASE successfully processed 12800 pages in 10.000 \
seconds (10.000 MB/sec).\n\
2021-03-04 18:20:00.00 Backup      Log was backed up. Database: Sales, creation date(time): \
2021/03/01(12:48:14), first LSN: 1:1:1, last LSN: 1:2:1, number of dump devices: 1, device information: \
(FILE=1, TYPE=DISK: {'D:\\b\\1.trn'}). This is an informational message only.\n";

#[test]
fn the_error_log_with_trace_flags() {
    let wide = |text: &str| -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    for bytes in [ERRORLOG.as_bytes().to_vec(), wide(ERRORLOG)] {
        let own =
            try_read(vec![input("ERRORLOG", bytes, None)], &Options::default()).expect("read");
        assert_eq!(own.kind(), "sqlserver-errorlog");
        assert_eq!(own.values("Sales full", "backup_bytes"), [Some(104_857_600.0), None]);
        assert_eq!(seconds_of_first(&own), 10.0);
        assert_eq!(number(&own, "Sales full", "readers"), Some(4));
        assert_eq!(number(&own, "Sales full", "buffer_count"), Some(13));
        assert_eq!(number(&own, "Sales full", "stripes"), Some(2));
        assert_eq!(text(&own, "Sales full", "targets").as_deref(), Some("D:\\b; E:\\b"));
        // The pages and the time of the log backup are unknown.
        let log = own.entity("Sales log");
        assert_eq!(own.observation.contents().find(log, "backup_bytes"), None);
        assert_eq!(own.observation.contents().find(log, "interval_ns"), None);
        assert_eq!(number(&own, "Sales log", "stripes"), Some(1));
    }
}

fn seconds_of_first(read: &Read) -> f64 {
    read.values("Sales full", "interval_ns")[0].expect("a time") / 1e9
}

#[test]
fn an_error_log_without_backups_is_rejected() {
    let why = refused("2021-03-04 18:00:00.00 Server      Microsoft SQL Server 2019 (RTM)\n");
    assert!(why.contains("it contains no backup and no restore"), "{why}");
}

const SETS: &str = "\
backup_set_id,media_set_id,server_name,database_name,type,backup_start_date,backup_finish_date,backup_size,compressed_backup_size,time_zone\n\
2,8,DB1,Sales,L,2024-01-02 22:10:00.000,2024-01-02 22:10:04.000,4194304,1048576,4\n\
1,7,DB1,Sales,D,2024-01-02 22:00:00.000,2024-01-02 22:01:40.000,10485760000,2621440000,4\n";

const FAMILIES: &str = "\
media_set_id,family_sequence_number,physical_device_name,device_type,physical_block_size,mirror\n\
7,1,F:\\b\\1.bak,2,65536,0\n\
7,2,G:\\b\\2.bak,2,65536,0\n\
7,1,X:\\copy\\1.bak,2,65536,1\n\
8,1,F:\\b\\1.trn,2,65536,0\n";

fn check_history(own: &Read) {
    assert_eq!(own.values("Sales full", "backup_bytes"), [Some(10_485_760_000.0), None]);
    assert_eq!(own.values("Sales full", "backup_written_bytes")[0], Some(2_621_440_000.0));
    assert_eq!(seconds_of_first(own), 100.0);
    // The newest is first in the table, and its zone is an hour ahead.
    assert_eq!(own.start().as_deref(), Some("2024-01-02T21:01:40Z"));
    assert_eq!(number(own, "Sales full", "stripes"), Some(2));
    assert_eq!(number(own, "Sales full", "block_bytes"), Some(65536));
    assert_eq!(text(own, "Sales full", "targets").as_deref(), Some("F:\\b; G:\\b"));
    assert_eq!(text(own, "Sales full", "compression").as_deref(), Some("on"));
    assert_eq!(number(own, "Sales log", "stripes"), Some(1));
}

#[test]
fn history_as_two_tables_or_two_files() {
    let both = read(&format!("{SETS}\n{FAMILIES}"));
    assert_eq!(both.kind(), "backup-history");
    let inputs = vec![input("families", FAMILIES, None), input("sets", SETS, None)];
    let beside = try_read(inputs, &Options::default()).expect("read");
    assert_eq!(beside.summary.inputs[1].1, "backup-media");
    for own in [&both, &beside] {
        check_history(own);
        assert!(!own.notes("zone"), "{:?}", own.summary.notes);
    }
}

#[test]
fn history_joined_and_as_json() {
    let row = |family: u32, device: &str| {
        format!(
            "{{\"backup_set_id\":1,\"database_name\":\"Sales\",\"server_name\":\"DB1\",\"type\":\"D\",\
             \"backup_start_date\":\"2024-01-02T22:00:00\",\"backup_finish_date\":\"2024-01-02T22:01:40\",\
             \"backup_size\":10485760000,\"compressed_backup_size\":2621440000,\"time_zone\":4,\
             \"media_set_id\":7,\"family_sequence_number\":{family},\"physical_device_name\":\"{device}\",\
             \"physical_block_size\":65536,\"mirror\":0}}"
        )
    };
    let text = format!("[{},{}]", row(1, "F:\\\\b\\\\1.bak"), row(2, "G:\\\\b\\\\2.bak"));
    let log = "{\"backup_set_id\":2,\"database_name\":\"Sales\",\"server_name\":\"DB1\",\"type\":\"L\",\
               \"backup_start_date\":\"2024-01-02T22:10:00\",\"backup_finish_date\":\"2024-01-02T22:10:04\",\
               \"backup_size\":4194304,\"family_sequence_number\":1,\
               \"physical_device_name\":\"F:\\\\b\\\\1.trn\",\"time_zone\":4}";
    let text = text.replace("}]", &format!("}},{log}]"));
    let own = read(&text);
    assert_eq!(own.kind(), "backup-history");
    assert_eq!(own.values("Sales full", "backup_bytes"), [Some(10_485_760_000.0), None]);
    assert_eq!(own.values("Sales full", "interval_ns")[0], Some(1e11));
    assert_eq!(number(&own, "Sales full", "stripes"), Some(2));
}

#[test]
fn history_without_a_zone_or_a_time() {
    let text = "database_name,backup_start_date,backup_finish_date,backup_size_mb\n\
                a,2024-01-02 22:00:00,2024-01-02 22:00:10,100\nb,2024-01-02 22:00:00,NULL,100\n";
    let own = read(text);
    assert_eq!(own.all("a full", "backup_bytes"), [104_857_600.0]);
    assert!(own.notes("no column time_zone"), "{:?}", own.summary.notes);
    assert!(own.notes("1 rows without an end"), "{:?}", own.summary.notes);
    let why = refused(&text.replace("2024-01-02 22:00:10", "soon"));
    assert!(why.contains("line 2") && why.contains("is \"soon\", which is not a time"), "{why}");
    let why = refused(FAMILIES);
    assert!(why.contains("give msdb.dbo.backupset"), "{why}");
}

const PGBACKREST: &str = "\
2024-03-27 16:06:02.001 P00   INFO: backup command begin 2.50: --compress-level=3 --compress-type=zst \
--process-max=8 --repo1-path=/mnt/repo --stanza=main --type=full\n\
2024-03-27 16:06:02.900 P00   INFO: execute non-exclusive backup start: backup begins after the next \
regular checkpoint completes\n\
2024-03-27 16:06:03.000 P00   INFO: backup start archive = 00000001000000000000003A, lsn = 0/3A000028\n\
2024-03-27 16:06:10.000 P01 DETAIL: backup file /d/base/1 (784KB, 10.00%) checksum aa\n\
2024-03-27 16:06:20.000 P00   INFO: execute non-exclusive backup stop and wait for all WAL segments\n\
2024-03-27 16:06:20.773 P00   INFO: new backup label = 20240327-160602F\n\
2024-03-27 16:06:20.815 P00   INFO: full backup size = 340MB, file total = 1292\n\
2024-03-27 16:06:20.816 P00   INFO: backup command end: completed successfully (18816ms)\n\
2024-03-27 16:06:20.817 P00   INFO: expire command begin 2.50: --stanza=main\n\
2024-03-27 16:06:20.900 P00   INFO: expire command end: completed successfully (83ms)\n";

#[test]
fn pgbackrest_takes_its_time_between_start_and_stop() {
    let own = read(PGBACKREST);
    assert_eq!(own.kind(), "pgbackrest");
    assert_eq!(own.all("main full", "backup_bytes"), [340.0 * 1_048_576.0]);
    assert_eq!(seconds(&own, "main full"), [17.0]);
    assert_eq!(number(&own, "main full", "readers"), Some(8));
    assert_eq!(text(&own, "main full", "compression").as_deref(), Some("zst"));
    assert_eq!(number(&own, "main full", "compression_level"), Some(3));
    assert_eq!(text(&own, "main full", "targets").as_deref(), Some("/mnt/repo"));
}

#[test]
fn pgbackrest_without_times() {
    let mut bare = String::new();
    for line in PGBACKREST.lines() {
        bare += &line[24..];
        bare.push('\n');
    }
    let own = read(&bare);
    assert_eq!(seconds(&own, "main full"), [18.816]);
    let why = refused("P00   INFO: backup command begin 2.5: --stanza=a\nP00  ERROR: [072]: no\n");
    assert!(why.contains("backup command end"), "{why}");
}

const BASEBACKUP: &str = "\
pg_basebackup: initiating base backup, waiting for checkpoint to complete\n\
pg_basebackup: write-ahead log start point: 45E/B4000028 on timeline 1\n\
      0/1048576 kB (0%), 0/1 tablespace\r 524288/1048576 kB (50%), 0/1 tablespace (/d/x)\r\
1048576/1048576 kB (100%), 1/1 tablespace\n\
pg_basebackup: write-ahead log end point: 45E/B4000138\n\
pg_basebackup: base backup completed\n\
\nreal\t0m4.500s\nuser\t0m1.0s\n";

#[test]
fn pg_basebackup_with_the_time_of_the_shell() {
    let own = read(BASEBACKUP);
    assert_eq!(own.kind(), "pg-basebackup");
    assert_eq!(own.all("pg_basebackup full", "backup_bytes"), [1_073_741_824.0]);
    assert_eq!(seconds(&own, "pg_basebackup full"), [4.5]);
    assert_eq!(number(&own, "pg_basebackup full", "readers"), Some(1));
}

#[test]
fn pg_basebackup_without_a_time() {
    let text = BASEBACKUP.split("\nreal").next().expect("text");
    let own = read(text);
    let id = own.entity("pg_basebackup full");
    assert_eq!(own.observation.contents().find(id, "interval_ns"), None);
    assert!(own.notes("its duration is not stated"), "{:?}", own.summary.notes);
    let why = refused("pg_basebackup: initiating base backup\npg_basebackup: error: no\n");
    assert!(why.contains("it contains no completed base backup"), "{why}");
}

const WAL_G: &str = "\
INFO: 2023/08/17 12:14:54.000000 Calling pg_start_backup()\n\
INFO: 2023/08/17 12:14:55.000000 Starting a new tar bundle\n\
INFO: 2023/08/17 12:14:55.100000 Walking ...\n\
INFO: 2023/08/17 12:14:55.200000 Starting part 1 ...\n\
INFO: 2023/08/17 12:15:04.000000 Finished writing part 1.\n\
DEBUG: 2023/08/17 12:15:04.900000 Uncompressed size: 1073741824\n\
DEBUG: 2023/08/17 12:15:04.900000 Compressed size: 268435456\n\
INFO: 2023/08/17 12:15:05.000000 Wrote backup with name base_00000002000000000000000C to storage default\n";

#[test]
fn wal_g_with_and_without_sizes() {
    let own = read(WAL_G);
    assert_eq!(own.kind(), "wal-g");
    assert_eq!(own.all("WAL-G full", "backup_bytes"), [1_073_741_824.0]);
    assert_eq!(own.all("WAL-G full", "backup_written_bytes"), [268_435_456.0]);
    assert_eq!(seconds(&own, "WAL-G full"), [10.0]);
    assert_eq!(text(&own, "WAL-G full", "targets").as_deref(), Some("default"));
    let bare: Vec<&str> = WAL_G.lines().filter(|line| !line.starts_with("DEBUG")).collect();
    let own = read(&format!("{}\n", bare.join("\n")));
    let id = own.entity("WAL-G full");
    assert_eq!(own.observation.contents().find(id, "backup_bytes"), None);
    assert!(own.notes("it contains no sizes"), "{:?}", own.summary.notes);
    let why = refused("INFO: 2023/08/17 12:14:55.000000 Starting part 1 ...\n");
    assert!(why.contains("Wrote backup with name"), "{why}");
}

#[test]
fn truncated_text_never_panics() {
    survives(CLIENT, "sqlserver-backup");
    survives(ERRORLOG, "sqlserver-errorlog");
    survives(&format!("{SETS}\n{FAMILIES}"), "backup-history");
    survives(PGBACKREST, "pgbackrest");
    survives(BASEBACKUP, "pg-basebackup");
    survives(WAL_G, "wal-g");
}

#[test]
fn different_backups_are_separate_entities() {
    let more = CLIENT.replace(", DISK = N'F:\\b\\2.bak'", "").replace("10:11:12", "11:11:12");
    let own = read(&format!("{CLIENT}{more}{CLIENT}"));
    assert_eq!(number(&own, "Sales full", "stripes"), Some(2));
    assert_eq!(number(&own, "Sales full #2", "stripes"), Some(1));
}
