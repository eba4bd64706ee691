//! Parsed descriptions, and the exact messages of faults.

use super::*;

const RIGHT: &str = "mix = \"tpcc\"\nusers = 100\nvcores = 8\nsize = \"100 GiB\"\n\
    buffer_pool = \"40 GiB\"\ndata = [\"d1\", \"d2\"]\nlog = \"log\"\n";

fn files() -> Vec<FileAbout<'static>> {
    let file = |(name, gib)| FileAbout::new(name, Bytes::gib(gib));
    [("other", 1), ("d1", 64), ("d2", 64), ("log", 32)].into_iter().map(file).collect()
}

fn model(text: &str) -> Result<Model, String> {
    let model = Description::parse("oltp.toml", text).and_then(|d| d.model(&files(), 1));
    model.map_err(|error| error.to_string())
}

/// Expects the message for `RIGHT` with `from` replaced.
#[track_caller]
fn check(from: &str, to: &str, expect: &str) {
    assert!(RIGHT.contains(from), "{from:?} is not in the text");
    let error = model(&RIGHT.replacen(from, to, 1)).expect_err("it was accepted");
    assert_eq!(error, expect);
}

/// Expects the message for `RIGHT` with these lines before it.
#[track_caller]
fn check_with(lines: &str, expect: &str) {
    check("mix = ", &format!("{lines}\nmix = "), expect);
}

/// Expects the message for `RIGHT` with these tables after it.
#[track_caller]
fn check_after(tables: &str, expect: &str) {
    let log = "log = \"log\"\n";
    check(log, &format!("{log}{tables}\n"), expect);
}

#[test]
fn missing_keys_have_their_defaults() {
    let model = model(RIGHT).expect("it is right");
    assert_eq!((model.users, model.vcores, model.seed), (100, 8, 1));
    assert_eq!(model.think_time, Span::ZERO);
    assert_eq!(model.quantum, Span::from_millis(4));
    assert_eq!(model.working_set, 100 << 17);
    assert_eq!(model.buffer_pool, 40 << 17);
    assert!(model.skew >= 0.5 && !model.warm && model.read_extents);
    assert_eq!(model.data.iter().map(|data| data.file).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((model.log.file, model.log.size), (3, Bytes::gib(32)));
    assert_eq!((model.log.block, model.log.writes), (Bytes::kib(60), 112));
    let indirect = Checkpoints::Indirect { target_recovery: Span::from_secs(60) };
    assert_eq!((model.checkpoint.kind, model.checkpoint.latency), (indirect, None));
    assert_eq!((model.checkpoint.writes, model.checkpoint.coalesce), (32, Bytes::kib(256)));
    let description = Description::parse("oltp.toml", RIGHT).expect("it is right");
    assert_eq!((description.duration, description.ramp_time), (Span::from_secs(600), Span::ZERO));
}

#[test]
fn the_ready_made_mixes_are_right() {
    for (name, _) in MIXES {
        let model = model(&RIGHT.replace("tpcc", name)).expect(name);
        assert!(!model.mix.is_empty());
    }
    let tpcc = model(RIGHT).expect("it is right").mix;
    let shares: Vec<_> = tpcc.iter().map(|kind| (kind.name.as_str(), kind.share)).collect();
    assert_eq!(
        shares,
        [
            ("new-order", 45),
            ("payment", 43),
            ("order-status", 4),
            ("delivery", 4),
            ("stock-level", 4)
        ]
    );
}

#[test]
fn custom_transactions() {
    let own = "[[transaction]]\nname = \"t\"\nshare = 3\nbatches = 2\nreads = 1.5\nwrites = 2\n\
               hot_pages = 9\nhot_writes = 1\nlog = \"2 KiB\"\ncpu = \"520us\"\n";
    let model = model(&format!("{}{own}", RIGHT.replace("mix = \"tpcc\"\n", ""))).expect("right");
    let kind = &model.mix[0];
    assert_eq!((kind.share, kind.batches, kind.hot_pages, kind.hot_writes), (3, 2, 9, 1));
    assert!(kind.reads.to_bits() == 1.5_f64.to_bits() && kind.writes.to_bits() == 2_f64.to_bits());
    assert_eq!((kind.log, kind.cpu), (Bytes::kib(2), Span::from_micros(520)));
}

#[test]
fn the_load() {
    check(
        "users = 100",
        "users = 0",
        "oltp.toml:2:9: users = 0: give 1 to 1000000; a database needs users",
    );
    check("vcores = 8", "vcores = 0", "oltp.toml:3:10: vcores = 0: give 1 to 4096");
    check_with(
        "duration = \"0s\"",
        "oltp.toml:1:12: duration = 0 ns: give more than zero, like \"10min\"",
    );
    check_with(
        "skew = 0.8",
        "oltp.toml:1:8: skew = 0.8: give 0.001 to 0.5; 0.2 is 80 % of the accesses on 20 % of the \
         pages, 0.5 is even",
    );
    check_with(
        "skew = -0.1",
        "oltp.toml:1:8: skew = -0.1: give 0.001 to 0.5; 0.2 is 80 % of the accesses on 20 % of the \
         pages, 0.5 is even",
    );
    check_with(
        "thinktime = \"1s\"",
        "oltp.toml:1:1: unknown field `thinktime`, expected one of `mix`, `transaction`, `users`, \
         `think_time`, `duration`, `ramp_time`, `size`, `working_set`, `skew`, `buffer_pool`, \
         `warm`, `read_extents`, `vcores`, `data`, `log`, `log_writer`, `checkpoint`, `tempdb`; did you mean \
         `think_time`?",
    );
    check("users = 100\n", "", "oltp.toml:1:1: missing field `users`");
}

#[test]
fn the_mix() {
    check(
        "\"tpcc\"",
        "\"tpc\"",
        "oltp.toml:1:7: there is no mix \"tpc\"; did you mean \"tpcc\"?; there are: \
         bulk-load, generic-oltp, scan, tpcc; or write your own [[transaction]]",
    );
    check(
        "mix = \"tpcc\"\n",
        "",
        "oltp.toml: users have nothing to do; give mix = \"..\" (one of: bulk-load, generic-oltp, scan, tpcc), or \
         [[transaction]]",
    );
    let own = |share: u32, more: &str| {
        format!(
            "[[transaction]]\nname = \"t\"\nshare = {share}\nwrites = 1\nlog = \"1 KiB\"\n{more}"
        )
    };
    let right = "reads = 1\ncpu = \"1ms\"";
    check_after(
        &own(1, right),
        "oltp.toml:1:7: mix = \"tpcc\" and [[transaction]] exclude each other; keep one of them",
    );
    let check = |text: String, expect: &str| {
        let own = format!("{}{text}", RIGHT.replace("mix = \"tpcc\"", ""));
        assert_eq!(model(&own).expect_err("it was accepted"), expect);
    };
    check(
        own(0, right),
        "oltp.toml:9:8: the shares of all transactions are 0; give one of them a share of 1 or more",
    );
    check(
        own(1, "reads = -1\ncpu = \"1ms\""),
        "oltp.toml:13:9: reads = -1: give a mean from 0 to 1000000",
    );
    check(
        own(1, "reads = 1\ncpu = \"0s\""),
        "oltp.toml:14:7: cpu = 0 ns: give 1 us or more; with transactions that take no time, the \
         run would never end",
    );
    check(
        own(1, &format!("{right}\nhot_writes = 2")),
        "oltp.toml:15:14: transaction \"t\": hot_writes = 2 with hot_pages = 0; state the number \
         of hot pages",
    );
    check(
        own(1, &format!("{right}\nhot_pages = 20000000")),
        "oltp.toml:9:8: transaction \"t\": hot_pages = 20000000 are more than the 13107200 pages of \
         the working set",
    );
}

#[test]
fn the_files() {
    check(
        "\"d2\"",
        "\"data2\"",
        "oltp.toml:6:15: data = \"data2\" is not in the layout; there are: other, d1, d2, log",
    );
    check(
        "\"log\"",
        "\"lgo\"",
        "oltp.toml:7:7: log = \"lgo\" is not in the layout; did you mean \"log\"?; there are: other, \
         d1, d2, log",
    );
    check(
        "[\"d1\", \"d2\"]",
        "[]",
        "oltp.toml:6:8: data = []: a database needs at least one data file; name volumes or \
         stripes of the layout",
    );
    check(
        "\"log\"",
        "\"d1\"",
        "oltp.toml:7:7: \"d1\" is used twice; each file of the database needs its own volume or \
         stripe",
    );
    check(
        "100 GiB",
        "200 GiB",
        "oltp.toml:4:8: size = 200 GiB is more than the total size of the data files, 128 GiB; \
         enlarge them, or make the database smaller",
    );
    check_with(
        "working_set = \"101 GiB\"",
        "oltp.toml:1:15: working_set = 101 GiB is more than the size of the database, 100 GiB; \
         change one of them",
    );
    check_after(
        "[log_writer]\nblock = \"64 GiB\"",
        "oltp.toml:9:9: log_writer.block = 64 GiB: give a multiple of 512 B up to 1 GiB",
    );
}

#[test]
fn a_log_block_must_fit_into_the_log() {
    let mut files = files();
    files[3].size = Bytes::kib(32);
    let description = Description::parse("oltp.toml", RIGHT).expect("it is right");
    assert_eq!(
        description.model(&files, 1).expect_err("it was accepted").to_string(),
        "oltp.toml:7:7: log_writer.block = 60 KiB does not fit into the log file \"log\" of 32 \
         KiB, of which checkpoints use 8 KiB; enlarge the file or reduce the block",
    );
    // The block fits, but the largest transaction does not.
    files[3].size = Bytes::kib(68);
    let large = RIGHT.replace("mix = \"tpcc\"\n", "")
        + "[[transaction]]\nname = \"t\"\nshare = 1\nreads = 1\nwrites = 3999.5\n\
           log = \"0 B\"\ncpu = \"1ms\"\n";
    let description = Description::parse("oltp.toml", &large).expect("it is right");
    assert_eq!(
        description.model(&files, 1).expect_err("it was accepted").to_string(),
        "oltp.toml:6:7: transaction \"t\" may need 74396 B of log, but the log file \"log\" has 68 \
         KiB; enlarge the file, or make the transaction smaller",
    );
    files[3].size = Bytes::new(74_396);
    description.model(&files, 1).expect("it fits");
}

#[test]
fn a_data_file_must_hold_its_share() {
    let mut files = files();
    (files[1].size, files[2].size) = (Bytes::kib(1000), Bytes::gib(1));
    let text = RIGHT.replace("size = \"100 GiB\"", "size = \"1 GiB\"");
    let description = Description::parse("oltp.toml", &text).expect("it is right");
    assert_eq!(
        description.model(&files, 1).expect_err("it was accepted").to_string(),
        "oltp.toml:6:9: data file \"d1\" of 1000 KiB is too small for its share of the working set, \
         1 MiB; make it larger"
    );
}

#[test]
fn the_writers() {
    check_after(
        "[checkpoint]\nevery = \"0s\"",
        "oltp.toml:9:9: checkpoint.every = 0 ns: give more than zero",
    );
    check_after(
        "[checkpoint]\nevery = \"1s\"\ntarget_recovery = \"1s\"",
        "oltp.toml:10:19: checkpoint.target_recovery is for indirect checkpoints and checkpoint.every \
         for automatic ones; keep one of them",
    );
    check_after(
        "[checkpoint]\nwrites = 0",
        "oltp.toml:9:10: checkpoint.writes = 0: give 1 to 4096",
    );
    check_after(
        "[checkpoint]\ncoalesce = \"4 KiB\"",
        "oltp.toml:9:12: checkpoint.coalesce = 4 KiB: give 8 KiB to 1 MiB",
    );
    check_after(
        "[log_writer]\nwrites = 5000",
        "oltp.toml:9:10: log_writer.writes = 5000: give 1 to 4096",
    );
}

#[test]
fn tempdb() {
    let uses = "[[transaction]]\nname = \"t\"\nshare = 1\nreads = 1\nwrites = 1\ntempdb = \"64 KiB\"\n\
                log = \"1 KiB\"\ncpu = \"1ms\"\n";
    let without = RIGHT.replace("mix = \"tpcc\"\n", "") + uses;
    let error = |text: &str| model(text).expect_err("it was accepted");
    assert_eq!(
        error(&without),
        "oltp.toml:12:10: transaction \"t\": tempdb = 64 KiB needs a [tempdb] with data = [..] and size"
    );
    let with =
        |data: &str, size: &str| format!("{without}[tempdb]\ndata = [{data}]\nsize = \"{size}\"\n");
    assert_eq!(
        error(&with("\"other\"", "32 KiB")),
        "oltp.toml:12:10: transaction \"t\": tempdb = 64 KiB is more than tempdb.size = 32 KiB; \
         change one of them"
    );
    assert_eq!(
        error(&with("", "1 GiB")),
        "oltp.toml:16:8: tempdb.data = []: tempdb needs at least one data file; name files of the \
         layout"
    );
    assert_eq!(
        error(&with("\"d1\"", "1 GiB")),
        "oltp.toml:16:9: \"d1\" is used twice; each file of the database needs its own volume or \
         stripe"
    );
    assert_eq!(
        error(&with("\"other\"", "2 GiB")),
        "oltp.toml:17:8: tempdb.size = 2 GiB is more than the total size of the data files, 1 GiB; \
         enlarge them, or make the database smaller"
    );
    let model = model(&with("\"other\"", "1 GiB")).expect("it is right");
    let tempdb = model.tempdb.as_ref().expect("there is one");
    assert_eq!((tempdb.size, tempdb.latch), (Bytes::gib(1), LATCH));
    assert_eq!(model.mix[0].tempdb_pages, 8);
    let roles: Vec<_> = model.files().into_iter().map(|(_, role)| role).collect();
    assert_eq!(roles, ["data", "data", "tempdb", "log"]);
}

#[test]
fn the_documentation_is_read() {
    let text = include_str!("../../../../docs/OLTP.md");
    let blocks = text.split("```toml oltp\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let read: Vec<Description> = blocks
        .map(|block| Description::parse("docs/OLTP.md", block).unwrap_or_else(|e| panic!("{e}")))
        .collect();
    assert_eq!(read.len(), 2);
    for (name, _) in MIXES {
        assert!(text.contains(&format!("`{name}`")), "{name}");
    }
    // The second one states the defaults.
    let file = |name: &'static str| FileAbout::new(name, Bytes::gib(32));
    let model = read[1].model(&["d1", "d2", "d3", "log"].map(file), 1).expect("it fits");
    assert_eq!((model.log.block, model.log.writes), (LOG_BLOCK, LOG_WRITES));
    let Checkpoint { kind, writes, coalesce, latency } = model.checkpoint;
    assert_eq!(kind, Checkpoints::Indirect { target_recovery: TARGET_RECOVERY });
    assert_eq!((writes, coalesce, latency), (CHECKPOINT_WRITES, COALESCE, None));
}
