//! Unknown names and invalid editions, and their messages.

use super::{EXAMPLE, builtin};
use crate::{Catalog, CatalogError, Edition};
use weir_units::{Bytes, Span};

#[track_caller]
fn fails<T: std::fmt::Debug>(result: Result<T, CatalogError>, expect: &str) {
    assert_eq!(result.unwrap_err().to_string(), expect);
}

#[test]
fn an_unknown_name_gets_the_nearest_one() {
    fails(
        Catalog::builtin().edition("azure-premium-2051"),
        "unknown edition \"azure-premium-2051\"; did you mean \"azure-premium-2015\"?; there are: azure-premium-2015, azure-mi-2018, azure-2018, azure-now, azure-mi-now, azure-postgres, aws, gcp-2022, gcp",
    );
    fails(
        Catalog::builtin().edition("ibm"),
        "unknown edition \"ibm\"; there are: azure-premium-2015, azure-mi-2018, azure-2018, azure-now, azure-mi-now, azure-postgres, aws, gcp-2022, gcp",
    );
    let edition = builtin("azure-premium-2015");
    fails(
        edition.tier("P31"),
        "unknown tier \"P31\" in azure-premium-2015; did you mean \"P30\"?; there are: P10, P20, P30, S4, S6, S10, S20, S30",
    );
    fails(
        edition.host("DS41"),
        "unknown host size \"DS41\" in azure-premium-2015; did you mean \"DS14\"?; DS14 has 16 vCPUs, 112 GiB, 50000 IOPS and 512 MiB/s (ds14 instead of ds41); there are: DS1, DS2, DS3, DS4, DS11, DS12, DS13, DS14 and 49 more, which weir catalog hosts azure-premium-2015 lists",
    );
    fails(
        edition.host("Standard_DS14_v3"),
        "unknown host size \"Standard_DS14_v3\" in azure-premium-2015; did you mean \"DS14_v2\"?; DS14_v2 has 16 vCPUs, 112 GiB, 51200 IOPS and 768 MB/s (v2 instead of v3); there are: DS1, DS2, DS3, DS4, DS11, DS12, DS13, DS14 and 49 more, which weir catalog hosts azure-premium-2015 lists",
    );
    fails(
        edition.snap("premium-sdd", Bytes::gib(1)),
        "unknown tier set or family \"premium-sdd\" in azure-premium-2015; did you mean \"premium-ssd\"?; there are: premium-ssd, standard-hdd",
    );
    let edition = builtin("azure-now");
    fails(
        edition.tier("P31"),
        "unknown tier \"P31\" in azure-now; did you mean \"P30\"?; there are: P1, P2, P3, P4, P6, P10, P15, P20 and 45 more, which weir catalog tiers azure-now lists",
    );
    fails(
        edition.host("giant"),
        "unknown host size \"giant\" in azure-now; there are: Standard_D2s_v3, Standard_D4s_v3, Standard_D8s_v3, Standard_D16s_v3, Standard_D32s_v3, Standard_D48s_v3, Standard_D64s_v3, Standard_E2s_v3 and 1226 more, which weir catalog hosts azure-now lists",
    );
    fails(
        edition.provisioned("ultra-"),
        "unknown provisioned family \"ultra-\" in azure-now; did you mean \"ultra\"?; there are: premium-ssd-v2, ultra",
    );
    fails(
        edition.host("ebdsv5-scsi/E9bds_v5"),
        "unknown host size \"ebdsv5-scsi/E9bds_v5\" in azure-now; did you mean \"Standard_E8bds_v5\"?; Standard_E8bds_v5 has 8 vCPUs, 64 GiB, 32400 IOPS and 680 MB/s (e8 instead of e9); there are: Standard_E2bds_v5, Standard_E4bds_v5, Standard_E8bds_v5, Standard_E16bds_v5, Standard_E32bds_v5, Standard_E48bds_v5, Standard_E64bds_v5, Standard_E96bds_v5",
    );
    // P60 came with the list of 2020.
    let edition = builtin("azure-mi-2018");
    fails(
        edition.tier("P60"),
        "unknown tier \"P60\" in azure-mi-2018; did you mean \"mi-2020/P60\"?; there are: P10, P15, P20, P30, P40, P50",
    );
    fails(
        edition.tier("mi-2020/P15"),
        "unknown tier \"mi-2020/P15\" in azure-mi-2018; did you mean \"mi-2020/P10\"?; there are: mi-2018/P10, mi-2018/P15, mi-2018/P20, mi-2018/P30, mi-2018/P40, mi-2018/P50, mi-2020/P10, mi-2020/P20 and 10 more, which weir catalog tiers azure-mi-2018 lists",
    );
}

#[test]
fn a_size_above_the_largest_tier_names_it() {
    fails(
        builtin("azure-premium-2015").snap("premium-ssd", Bytes::gib(1025)),
        "1025 GiB is more than the largest tier of premium-ssd holds (P30: 1 TiB); use several: disks in a stripe, files of one database",
    );
    fails(
        builtin("azure-mi-2018").snap("mi-2018", Bytes::gib(4097)),
        "4097 GiB is more than the largest tier of mi-2018 holds (P50: 4 TiB); use several: disks in a stripe, files of one database",
    );
}

#[test]
fn the_documented_example_is_valid() {
    let edition = Edition::from_toml("example.toml", EXAMPLE).unwrap();
    assert_eq!(
        (edition.name(), edition.tiers().count(), edition.hosts().count()),
        ("my-cloud", 2, 1)
    );
    assert_eq!(edition.default_set().unwrap().name, "fast-disk");
    assert_eq!(edition.snap("fast-disk", Bytes::gib(101)).unwrap().name, "F2");
    let host = edition.host("m8").unwrap();
    assert_eq!(&*host.provenance.of("cached").source, "answer to a support request");
    assert_eq!(&*host.provenance.of("uncached").source, "contract, annex 3");
    let f2 = edition.tier("F2").unwrap();
    assert_eq!(
        f2.provenance.conflicts(),
        ["throughput: 250 MB/s in the contract (used), 300 MB/s on the sales page of 2026-04-02"]
    );
}

/// The example with `from` (which must occur once) replaced by `to`.
#[track_caller]
fn edited(from: &str, to: &str, expect: &str) {
    assert_eq!(EXAMPLE.matches(from).count(), 1, "{from:?} is not unique in the example");
    fails(Edition::from_toml("own.toml", &EXAMPLE.replace(from, to)), expect);
}

#[test]
fn unknown_keys_and_values_are_refused_with_their_line() {
    edited(
        "scope =",
        "scop =",
        "own.toml:5:1: unknown field `scop`, expected one of `name`, `title`, `as_of`, `scope`, \
         `extends`, `provider`, `numbered_disks`, `root_disk_counts`, `licence_programme`, `notes`, `conflicts`, `default_set`, \
         `io_unit`, `tier_set`, `provisioned`, `sized`, `store`, `pooled`, `series`, `host_cache`, `latency`, \
         `bursting`, `striping`, `rule`, `price`, `host_names`; did you mean `scope`?",
    );
    edited(
        "iops = 1000,",
        "ipos = 1000,",
        "own.toml:18:36: unknown field `ipos`, expected one of `name`, `size`, `holds`, `iops`, \
         `throughput`, `burst`, `plus`, `source`, `as_of`, `figures`, `notes`, `conflicts`, `history`; \
         did you mean `iops`?",
    );
    edited(
        "\"250 MB/s\"",
        "\"250 Mb/sec\"",
        "own.toml:19:60: \"250 Mb/sec\" has the unknown unit \"Mb/sec\"; write for example 200 MiB/s or 200 MB/s",
    );
    edited(
        "\"250 MB/s\"",
        "\"250\"",
        "own.toml:19:60: \"250\" has no unit; write for example 200 MiB/s or 200 MB/s",
    );
    edited(
        "size = \"1 TiB\"",
        "size = 1024",
        "own.toml:19:25: \"1024\" has no unit; write for example 64 KiB, 540 GiB or 200 MB",
    );
    edited(
        "iops = 6000",
        "iops = 0",
        "own.toml:19:41: \"0\" must be more than zero; leave a limit out to have none",
    );
    edited(
        "basis = \"calibrated\"",
        "basis = \"guessed\"",
        "own.toml:34:9: unknown variant `guessed`, expected one of `measured`, `calibrated`, \
         `assumed`",
    );
    edited("name = \"my-cloud\"\n", "", "own.toml:1:1: missing field `name`");
    edited("p50 = \"700 us\", ", "", "own.toml:38:8: missing field `p50`");
}

/// Three quantiles suffice, as in a layout.
#[test]
fn a_latency_needs_minimum_median_and_maximum() {
    let own = EXAMPLE.replace(", p90 = \"1 ms\", p99 = \"2 ms\", p999 = \"5 ms\"", "");
    let edition = Edition::from_toml("own.toml", &own).unwrap();
    let latency = edition.latency("fast-disk").unwrap();
    let points: Vec<u32> = latency.read.points().map(|(share, _)| share).collect();
    assert_eq!(points, [0, 500_000, 1_000_000]);
    // (400 + 700) / 2 us in the lower half, (700 + 20,000) / 2 us in the upper.
    assert_eq!(latency.read.mean(), Span::from_nanos(5_450_000));
    let names: Vec<String> = latency.figures().into_iter().map(|figure| figure.name).collect();
    assert_eq!(names[..4], ["read.p0", "read.p50", "read.p100", "write.p0"]);
}

#[test]
fn contradictory_editions_are_refused() {
    edited(
        "my-cloud",
        "my cloud",
        "own.toml: `name`: \"my cloud\" is no name; use letters, digits and hyphens",
    );
    edited(
        "[io_unit]\nsize = \"256 KiB\"",
        "[io_unit]\nsize = \"0 B\"",
        "own.toml: [io_unit]: `size` must be more than zero",
    );
    edited(
        "size = \"1 TiB\"",
        "size = \"1 GiB\"",
        "own.toml: tier set \"fast-disk\": F2 must hold more than F1; rows ascend by size",
    );
    edited("\"F2\"", "\"f1\"", "own.toml: tier set \"fast-disk\", tier \"f1\": is there twice");
    edited(
        "iops = 3000,",
        "iops = 300,",
        "own.toml: tier fast-disk/F1: `burst` is 300 IOPS, below the base of 1000 IOPS",
    );
    edited(
        "throughput = \"100 MB/s\"",
        "throughput = \"10 MB/s\"",
        "own.toml: tier fast-disk/F1: `burst` is 10 MB/s, below the base of 50 MB/s",
    );
    edited(
        "duration = \"30 min\", ",
        "",
        "own.toml: tier fast-disk/F1: a `credit` burst needs the `duration` of a full bucket",
    );
    edited(
        "kind = \"credit\"",
        "kind = \"on-demand\"",
        "own.toml: tier fast-disk/F1: an `on-demand` burst has no `duration`",
    );
}

#[test]
fn incomplete_editions_are_refused() {
    edited(
        "families = [\"fast-disk\"]",
        "families = []",
        "own.toml: family \"fast-disk\": has no latency; add it to the `families` of a [[latency]]",
    );
    edited(
        "\"host-cache\", \"local-ssd\"",
        "\"host-cache\"",
        "own.toml: family \"local-ssd\": has no latency; add it to the `families` of a [[latency]]",
    );
    edited(
        "\"host-cache\", \"local-ssd\"",
        "\"local-ssd\", \"fast-disk\"",
        "own.toml: latency of family \"fast-disk\": is there twice",
    );
    edited(
        "p50 = \"700 us\"",
        "p50 = \"300 us\"",
        "own.toml: latency \"remote\": the quantiles of `read` do not ascend from p0 to p100",
    );
    edited(
        "transfer = \"1000 MB/s\"",
        "write_through = { p0 = \"1 ms\", p50 = \"1 ms\", p100 = \"1 ms\" }",
        "own.toml: latency \"remote\": `write_through` is for the family \"host-cache\" only",
    );
    edited(
        "transfer = \"1000 MB/s\"",
        "sync = { p0 = \"2 ms\", p50 = \"1 ms\", p100 = \"3 ms\" }",
        "own.toml: latency \"remote\": the quantiles of `sync` do not ascend from p0 to p100",
    );
    edited(
        "source = \"none\"\n",
        "",
        "own.toml: latency \"local\": state both `source` and `as_of`",
    );
    edited(
        "source = \"none\"\n",
        "source = \" \"\n",
        "own.toml: latency \"local\": `source` and `as_of` must not be empty",
    );
    edited(
        "of = [\"cached\"]",
        "of = [\"cacheed\"]",
        "own.toml: series \"m\": `figures` names an unknown figure \"cacheed\"; did you mean \"cached\"?",
    );
    edited(
        "temp = { size = \"100 GiB\" }",
        "temp = { disks = 0 }",
        "own.toml: host m/m8: `disks` must be more than zero",
    );
    edited(
        "temp = { size = \"100 GiB\" }",
        "temp = { throughput = \"1 MB/s\", read = \"1 MB/s\" }",
        "own.toml: host m/m8: a local disk has either `throughput` or `read` and `write`",
    );
    edited(
        "scope = ",
        "default_set = \"fast-dsk\"\nscope = ",
        "own.toml: `default_set`: there is no tier set \"fast-dsk\"; did you mean \"fast-disk\"?",
    );
}

/// The example with `more` after it.
#[track_caller]
fn extended(more: &str, expect: &str) {
    fails(Edition::from_toml("own.toml", &format!("{EXAMPLE}\n{more}")), expect);
}

#[test]
fn an_added_table_is_checked_against_the_others() {
    let cited = "source = \"s\"\nas_of = \"2026\"\n";
    let set = format!("[[tier_set]]\nname = \"slow-disk\"\nfamily = \"slow\"\n{cited}");
    extended(&format!("{set}rows = []"), "own.toml: `default_set`: name one of the 2 tier sets");
    let rule = format!("[[rule]]\nname = \"r\"\ntext = \"t\"\n{cited}");
    extended(
        &format!("{rule}count = 1\nsize = \"1 B\""),
        "own.toml: rule \"r\": has more than one of `count`, `size`, `iops`, `throughput`, `time`",
    );
    let cache =
        format!("[host_cache]\nos_disk_default = \"none\"\ndata_disk_default = \"none\"\n{cited}");
    extended(
        &format!("{cache}rows = []"),
        "own.toml: [host_cache]: has 0 rows for mode none, op read-miss; it needs one",
    );
    let bought = |family: &str, maximum: &str, ladder: &str| {
        format!(
            "[[provisioned]]\nfamily = \"{family}\"\nmin_size = \"1 GiB\"\nmax_size = \"9 GiB\"\n\
             minimum = {{ iops = 100, throughput = \"1 MB/s\" }}\nminimum_included = true\n\
             maximum = {{ iops = {maximum}, throughput = \"9 MB/s\" }}\niops_per_gib = 100\n\
             throughput_per_iops = \"10 KB/s\"\nladder = [{ladder}]\n{cited}"
        )
    };
    extended(
        &bought("bought", "50", ""),
        "own.toml: provisioned family \"bought\": `maximum` is 50 IOPS, below the base of 100 IOPS",
    );
    extended(
        &bought("bought", "500", "{ size = \"2 GiB\", iops = 200, throughput = \"3 MB/s\" }"),
        "own.toml: provisioned family \"bought\": the ladder gives 2 GiB 200 IOPS and 3 MB/s, \
         the rules give 200 IOPS and 2 MB/s",
    );
    extended(&bought("fast-disk", "500", ""), "own.toml: family \"fast-disk\": is there twice");
}

#[test]
fn a_reserve_holds_less_than_its_refill_takes() {
    let check = |keys: &str, expect: &str| {
        let rule = "\n[[bursting]]\nname = \"reserve\"\napplies_to = [\"all\"]\ntext = \"t\"\n\
                    source = \"s\"\nas_of = \"2026\"\n";
        fails(Edition::from_toml("own.toml", &format!("{EXAMPLE}{rule}{keys}")), expect);
    };
    check(
        "refill = \"80 s\"",
        "own.toml: bursting \"reserve\": a `refill` needs the `duration` of the limit that the \
         reserve holds",
    );
    check(
        "duration = \"2 s\"\nrefill = \"1 s\"",
        "own.toml: bursting \"reserve\": `refill` 1 s must be at least the `duration`, 2 s",
    );
    check(
        "duration = \"0 s\"\nrefill = \"0 s\"",
        "own.toml: bursting \"reserve\": `refill` 0 ns must be at least the `duration`, 0 ns",
    );
}
