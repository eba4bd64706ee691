//! Layouts that are read right, and the message of every one that is not.

use super::*;
use weir_catalog::{CacheOp, Catalog, HostCache, Interface};
use weir_core::{
    CacheMode, Cap, Completion, DeviceId, Engine, Event, Latency, Op, Request, VolumeId,
};
use weir_units::{Bytes, Instant, Share, Span};

mod backends;
mod bill;
mod clients;
mod clouds;
mod files;

fn parse(text: &str) -> Result<Layout, String> {
    Layout::parse("layout.toml", text, &Catalog::builtin()).map_err(|error| error.to_string())
}

fn layout(text: &str) -> Layout {
    parse(text).expect("a sound layout")
}

const DS14: &str = r#"
edition = "azure-premium-2015"
[host]
size = "DS14"
[[volume]]
name = "reads"
tier = "P30"
cache = "read-only"
[[stripe]]
name = "nocache"
unit = "64 KiB"
volumes = { count = 10, tier = "P30", cache = "none" }
"#;

#[test]
fn the_benchmark_machine_of_the_article() {
    let layout = layout(DS14);
    let host = &layout.hosts[0];
    assert_eq!(host.size.as_deref(), Some("DS14"));
    let rate = |limit: Option<weir_core::Limit>| limit.map(|l| l.rate.get());
    assert_eq!(rate(host.spec.uncached.iops), Some(50_000));
    assert_eq!(rate(host.spec.uncached.bytes), Some(512 << 20));
    assert_eq!(rate(host.spec.cached.iops), Some(64_000));
    assert_eq!(rate(host.spec.volumes[0].limits.gate.iops), Some(5_000));
    assert_eq!(rate(host.spec.volumes[0].limits.gate.bytes), Some(200 << 20));
    let names: Vec<&str> = host.exports.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["reads", "nocache"]);
    assert_eq!(host.exports[1].size, Bytes::gib(10_240));
    assert_eq!(layout.volume("nocache-9"), Some((0, VolumeId(10))));
}

#[test]
fn a_size_snaps_up_and_moves_when_it_is_changed() {
    let text = "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"data\"\nsize = \"100 GiB\"";
    let layout = layout(text);
    let host = &layout.hosts[0];
    assert_eq!(host.volumes[0].tier.as_deref(), Some("P10"));
    let catalog = Catalog::builtin();
    let edition = catalog.edition("azure-premium-2015").expect("the edition");
    let bigger = host.resized(VolumeId(0), Bytes::gib(540), Some(edition)).expect("a P30");
    assert_eq!(bigger.tier.as_deref(), Some("P30"));
    assert_eq!(bigger.spec.size, Bytes::gib(540));
    let cached = host.recached(VolumeId(0), CacheMode::ReadOnly, Some(edition));
    assert!(cached.is_err_and(|e| e.to_string().contains("host \"host\" has no cache")));
}

#[test]
fn a_named_tier_moves_to_the_tier_that_holds_the_new_size() {
    let layout = layout(DS14);
    let catalog = Catalog::builtin();
    let edition = catalog.edition("azure-premium-2015").ok();
    let smaller = layout.hosts[0].resized(VolumeId(0), Bytes::gib(300), edition).expect("a P20");
    assert_eq!(smaller.tier.as_deref(), Some("P20"));
}

/// The words are right for who writes a layout and for who resizes a volume.
#[test]
fn a_cached_volume_that_grows_too_large_is_told_to_have_no_cache() {
    let layout = layout(
        "edition = \"azure-now\"\n[host]\nsize = \"D8s_v3\"\n[[volume]]\nname = \"data\"\n\
         size = \"540 GiB\"\ncache = \"read-only\"",
    );
    let catalog = Catalog::builtin();
    let edition = catalog.edition("azure-now").ok();
    let larger = layout.hosts[0].resized(VolumeId(0), Bytes::gib(8 << 10), edition);
    assert_eq!(
        larger.map(|_| ()).map_err(|kind| kind.to_string()),
        Err("volume \"data\": no host cache is possible: disks of 4 TiB or more are not cached, \
             and this one has 8 TiB; set its cache to none"
            .to_owned())
    );
}

/// The catalog has the cached limits of this machine, but not the size of its cache.
#[test]
fn a_disk_is_cached_where_the_layout_states_the_size_of_the_cache() {
    let text = "edition = \"azure-now\"\n\
                host = { size = \"E8ds_v5\", cache = { size = \"100 GiB\" } }\n\
                [[volume]]\nname = \"data\"\ntier = \"P30\"\ncache = \"read-only\"\n";
    let spec = &layout(text).hosts[0].spec;
    assert_eq!(spec.volumes[0].cache, CacheMode::ReadOnly);
    assert_eq!(spec.cache.as_ref().map(|own| own.capacity), Some(Bytes::gib(100)));
    assert_eq!(spec.cached.iops.map(|limit| limit.rate.get()), Some(38_000));
}

#[test]
fn bursting_comes_from_the_tier() {
    let text = "edition = \"azure-now\"\n[[volume]]\nname = \"a\"\ntier = \"P10\"\n\
                [[volume]]\nname = \"b\"\ntier = \"P30\"\non_demand_burst = true\n\
                [[volume]]\nname = \"c\"\nsize = \"100 GiB\"\nfamily = \"premium-ssd-v2\"\niops = 10000\n";
    let layout = layout(text);
    let limit = |n: usize| layout.hosts[0].spec.volumes[n].limits.gate.iops.expect("a limit");
    assert_eq!(limit(0).rate.get(), 500);
    assert_eq!(limit(0).burst.map(|b| (b.0.get(), b.1)), Some((3_500, Span::from_secs(1_800))));
    assert_eq!(limit(1).rate.get(), 5_000);
    assert_eq!(
        limit(1).burst.map(|b| (b.0.get(), b.1)),
        Some((30_000, weir_core::Limit::ON_DEMAND))
    );
    assert_eq!(limit(2).rate.get(), 10_000);
}

#[test]
fn credits_start_where_the_layout_says() {
    let text = "edition = \"azure-now\"\n[host]\nlimits = { uncached = { iops = 3200, burst = { \
                iops = 4000, duration = \"30min\" } } }\ncredits = \"25 %\"\n[[volume]]\nname = \
                \"a\"\ntier = \"P10\"\ncredits = \"0 %\"\n[[volume]]\nname = \"b\"\ntier = \
                \"P10\"\n[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = { count = 2, \
                tier = \"P20\", credits = \"50 %\" }\n";
    let layout = layout(text);
    let spec = layout.hosts[0].spec.clone();
    let engine = weir_core::Engine::new(spec).expect("a sound host");
    let credits = |volume, cap| engine.credits(VolumeId(volume), cap);
    // A P10 bursts from 500 to 3,500 for 30 min, a P20 from 2,300.
    let disks = [0, 1, 2, 3].map(|volume| credits(volume, weir_core::Cap::DiskIops));
    assert_eq!(disks, [Some(0), Some(5_400_000), Some(1_080_000), Some(1_080_000)]);
    assert_eq!(credits(0, weir_core::Cap::DiskBytes), Some(0));
    assert_eq!(credits(0, weir_core::Cap::HostUncachedIops), Some(360_000));
    let host = &layout.hosts[0];
    let catalog = Catalog::builtin();
    let edition = catalog.edition("azure-now").ok();
    // A tier without a burst has no credits, and the change is no error.
    let changed = host.retiered(VolumeId(0), "P30", edition).expect("a P30");
    assert_eq!(changed.spec.credits, Share::WHOLE);
    let changed = host.retiered(VolumeId(0), "P20", edition).expect("a P20");
    assert_eq!(changed.spec.credits, Share::NONE);
}

#[test]
fn a_raised_disk_gets_another_performance_tier_or_its_own_limits() {
    let keys = "tier = \"P20\"\nperformance_tier = \"P30\"";
    let layout = layout(&format!("edition = \"azure-now\"\n[[volume]]\nname = \"v\"\n{keys}\n"));
    let catalog = Catalog::builtin();
    let edition = catalog.edition("azure-now").ok();
    let host = &layout.hosts[0];
    assert_eq!(host.volumes[0].limits_tier(), Some("P30"));
    for (tier, iops) in [("P40", 7_500), ("P20", 2_300), ("P30", 5_000)] {
        let changed = host.retiered(VolumeId(0), tier, edition).expect("a tier");
        // A disk with its own limits bursts, and one with those of another tier does not.
        assert_eq!(changed.spec.limits.gate.has_credits(), tier == "P20");
        assert_eq!(changed.limits_tier(), Some(tier));
        assert_eq!((changed.tier.as_deref(), changed.spec.size), (Some("P20"), Bytes::gib(512)));
        let limit = changed.spec.limits.gate.iops.map(|limit| limit.rate.get());
        assert_eq!(limit, Some(iops), "{tier}");
    }
    let error = host.retiered(VolumeId(0), "E30", edition).expect_err("another family");
    assert!(
        error.to_string().contains("E30 is a tier of standard-ssd, and its disks are premium-ssd")
    );
    let error = host.retiered(VolumeId(0), "P10", edition).expect_err("a lower tier");
    assert!(error.to_string().contains("performance_tier P10 is not above P20"), "{error}");
}

#[test]
fn a_disk_without_a_tier_gets_none() {
    let text = "edition = \"aws\"\n[host]\nsize = \"m6i.xlarge\"\n[[volume]]\nname = \"bought\"\n\
                family = \"gp3\"\nsize = \"8 GiB\"\niops = 3000\nthroughput = \"125 MiB/s\"\n[[volume]]\n\
                name = \"sized\"\nfamily = \"gp2\"\nsize = \"8 GiB\"\n[[volume]]\nname = \"own\"\n\
                size = \"8 GiB\"\nlimits = { iops = 500 }\n";
    let layout = layout(text);
    let catalog = Catalog::builtin();
    let edition = catalog.edition("aws").ok();
    for (volume, words) in [
        (0, "volume \"bought\": it has no tier, so it cannot change to P30; change its rates"),
        (
            1,
            "volume \"sized\": it has no tier, so it cannot change to P30; resize it, since its limits follow from its size",
        ),
        (2, "volume \"own\": it has no tier, so it cannot change to P30; change its rates"),
    ] {
        let error = layout.hosts[0].retiered(VolumeId(volume), "P30", edition).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
}

#[test]
fn credits_are_for_disks_and_machines_that_burst() {
    let volume = |keys: &str| format!("edition = \"azure-now\"\n[[volume]]\nname = \"a\"\n{keys}");
    check(
        &volume("tier = \"P30\"\ncredits = \"0 %\""),
        "layout.toml:5:1: volume \"a\": credits = 0 % has no effect, because it does not burst; leave it out",
    );
    check(
        &volume("tier = \"P30\"\non_demand_burst = true\ncredits = \"10 %\""),
        "layout.toml:6:1: volume \"a\": credits = 10 % has no effect, because it bursts on demand, which needs no credits; leave it out",
    );
    check(
        &volume("tier = \"P10\"\ncredits = \"101 %\""),
        "layout.toml:5:11: \"101 %\" is above the maximum of 100 %",
    );
    check(
        "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS14\"\ncredits = \"0 %\"\n",
        "layout.toml:4:1: host \"host\": credits = 0 % is for a machine that bursts; leave it out",
    );
}

#[track_caller]
fn check(text: &str, expect: &str) {
    assert_eq!(parse(text).map(|_| ()), Err(expect.to_owned()));
}

#[test]
fn errors_name_their_place() {
    check(
        "edition = \"azure-premium-2051\"\n",
        "layout.toml:1:1: unknown edition \"azure-premium-2051\"; did you mean \"azure-premium-2015\"?; there are: azure-premium-2015, azure-mi-2018, azure-2018, azure-now, azure-mi-now, azure-postgres, aws, gcp-2022, gcp",
    );
    check(
        "[[volume]]\nname = \"a\"\nteir = \"P30\"",
        "layout.toml:3:1: unknown field `teir`, expected one of `name`, `host`, `tier`, `size`, `family`, `iops`, `throughput`, `limits`, `unlimited`, `cache`, `place`, `on_demand_burst`, `performance_plus`, `performance_tier`, `latency`, `credits`, `lun`, `backend`, `checksums`, `clients`; did you mean `tier`?",
    );
    check(
        "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS41\"",
        "layout.toml:3:1: unknown host size \"DS41\" in azure-premium-2015; did you mean \"DS14\"?; DS14 has 16 vCPUs, 112 GiB, 50000 IOPS and 512 MiB/s (ds14 instead of ds41); there are: DS1, DS2, DS3, DS4, DS11, DS12, DS13, DS14 and 49 more, which weir catalog hosts azure-premium-2015 lists; or leave size out and give limits = { .. }",
    );
    check(
        "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"a\"\ntier = \"P31\"",
        "layout.toml:4:1: unknown tier \"P31\" in azure-premium-2015; did you mean \"P30\"?; there are: P10, P20, P30, S4, S6, S10, S20, S30",
    );
    check(
        "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"a\"\nsize = \"2 TiB\"",
        "layout.toml:4:1: 2 TiB is more than the largest tier of premium-ssd holds (P30: 1 TiB); use several: disks in a stripe, files of one database",
    );
    check(
        "[[volume]]\nname = \"a\"\nsize = \"540\"",
        "layout.toml:3:8: \"540\" has no unit; write for example 64 KiB, 540 GiB or 200 MB",
    );
    check(
        "[[volume]]\nname = \"a\"\nsize = 540",
        "layout.toml:3:8: \"540\" has no unit; write for example 64 KiB, 540 GiB or 200 MB",
    );
    check(
        "[[volume]]\nname = \"a\"\nlimits = { iops = 0 }",
        "layout.toml:3:19: \"0\" must be more than zero; leave a limit out to have none",
    );
    check(
        "[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = { count = 1, unlimited = true }",
        "layout.toml:4:13: stripe \"s\": it has 1 volume; a stripe needs two or more",
    );
    check(
        "[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = [\"a\", \"b\"]",
        "layout.toml:4:12: stripe \"s\" refers to \"a\", which is not in this layout",
    );
    check(
        "[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = { count = 2, teir = \"P30\" }",
        "layout.toml:4:11: unknown field `teir`, expected one of `name`, `host`, `tier`, `size`, `family`, `iops`, `throughput`, `limits`, `unlimited`, `cache`, `place`, `on_demand_burst`, `performance_plus`, `performance_tier`, `latency`, `credits`, `lun`, `backend`, `checksums`, `clients`; did you mean `tier`?",
    );
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    check(
        "[[volume]]\nname = \"a\"\nunlimited = true\nlimits = { iops = 5 }",
        "layout.toml:3:1: volume \"a\": unlimited excludes tier and limits; keep one of them",
    );
    check(
        "[[volume]]\nname = \"a\"\nlimits = { iops = 500, burst = { iops = 400, duration = \"30min\" } }",
        "layout.toml:3:34: volume \"a\": burst.iops must be above iops",
    );
    check(
        "[[volume]]\nname = \"a\"\nunlimited = true\n[[volume]]\nname = \"a\"\nunlimited = true",
        "layout.toml:5:1: the name \"a\" is used twice; each export needs its own name",
    );
    check(
        "[[volume]]\nname = \"../a\"\nunlimited = true",
        "layout.toml:2:1: the name \"../a\" is not valid; use at most 100 letters, digits, '.', \
         '_' and '-', and no '.' at the start",
    );
    check(
        "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS1\"\n[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = { count = 3, tier = \"P10\" }",
        "layout.toml:3:1: host \"host\": 3 disks are more than the 2 that DS1 can attach; use \
         fewer or larger disks, or a larger size",
    );
    check(
        "edition = \"azure-now\"\n[host]\nsize = \"D8s_v3\"\n[[volume]]\nname = \"a\"\ntier = \"P50\"\ncache = \"read-only\"",
        "layout.toml:7:1: volume \"a\": no host cache is possible: disks of 4 TiB or more are not \
         cached, and this one has 4 TiB; set its cache to none",
    );
    check(
        "edition = \"azure-now\"\n[host]\nsize = \"D8s_v3\"\n[[volume]]\nname = \"a\"\nfamily = \"premium-ssd-v2\"\nsize = \"64 GiB\"\ncache = \"read-only\"",
        "layout.toml:8:1: volume \"a\": no host cache is possible: premium-ssd-v2 disks are not cached; set its cache to none",
    );
    check(
        "edition = \"azure-now\"\n[host]\nsize = \"E8ds_v5\"\n[[volume]]\nname = \"a\"\ntier = \"P30\"\ncache = \"read-only\"",
        "layout.toml:7:1: volume \"a\": no host cache is possible: no cache size is published for Standard_E8ds_v5 (give the host cache = { size = \"..\" } to assume one); set its cache to none",
    );
    check(
        "[host]\nname = \"x\"",
        "layout.toml:1:2: host \"x\": give one of size, limits or unlimited",
    );
    check(
        "edition = \"azure-premium-2015\"\n",
        "layout.toml: the layout: there is no [[volume]], no [[stripe]], no [[file]] and no [blob]",
    );
    check("[[volume]\nname = 1", "layout.toml:1:10: unclosed array table, expected `]`");
}

#[test]
fn a_rate_that_nothing_has_is_refused() {
    check(
        "[[volume]]\nname = \"v\"\nlimits = { iops = 1, burst = { iops = 18446744073709551615, duration = \"1h\" } }",
        "layout.toml:3:32: volume \"v\": 18446744073709551615 IOPS is above the maximum of a \
         limit, 1000000000 IOPS; leave out a limit that you do not need",
    );
    check(
        "[host]\nlimits = { cached = { throughput = \"1025 GiB/s\" } }",
        "layout.toml:2:23: host \"host\": 1025 GiB/s is above the maximum of a limit, 1024 GiB/s; \
         leave out a limit that you do not need",
    );
    layout("[[volume]]\nname = \"v\"\nlimits = { iops = 1000000000, throughput = \"1024 GiB/s\" }");
}

#[test]
fn a_missing_edition_is_reported_with_the_available_ones() {
    let known = "add edition = \"..\" at the top (one of azure-premium-2015, azure-mi-2018, azure-2018, \
                 azure-now, azure-mi-now, azure-postgres, aws, gcp-2022, gcp), or give limits = { .. }";
    let volume = |keys: &str, needs: &str| {
        check(
            &format!("[[volume]]\nname = \"v\"\n{keys}"),
            &format!("layout.toml:3:1: volume \"v\": {needs} is looked up in an edition; {known}"),
        );
    };
    volume("tier = \"P30\"", "a tier");
    volume("size = \"1 TiB\"", "a size without limits");
    check(
        "[host]\nsize = \"DS14\"",
        &format!("layout.toml:2:1: host \"host\": a size is looked up in an edition; {known}"),
    );
}

#[test]
fn a_machine_of_two_series_is_chosen_by_its_series() {
    let text = |size: &str| {
        format!(
            "edition = \"azure-now\"\n[host]\nsize = \"{size}\"\n[[volume]]\nname = \"v\"\ntier = \"P30\""
        )
    };
    check(
        &text("E16bds_v5"),
        "layout.toml:3:1: host size \"E16bds_v5\" is in azure-now several times, with different \
         limits; write one of ebdsv5-nvme/Standard_E16bds_v5, ebdsv5-scsi/Standard_E16bds_v5, \
         ebdsv5-2021/Standard_E16bds_v5; or leave size out and give limits = { .. }",
    );
    let chosen = layout(&text("ebdsv5-scsi/E16bds_v5"));
    assert_eq!(chosen.hosts[0].spec.uncached.iops.map(|l| l.rate.get()), Some(48_400));
    assert_eq!(chosen.hosts[0].interface(), Some(Interface::Scsi));
    assert_eq!(layout(&text("ebdsv5-nvme/E16bds_v5")).hosts[0].interface(), Some(Interface::Nvme));
}

#[test]
fn a_licence_is_owned_only_where_the_layout_says_so() {
    let machine = |key: &str| {
        format!(
            "edition = \"azure-now\"\n[host]\nsize = \"D8s_v3\"\n{key}\n[[volume]]\nname = \"v\"\ntier = \"P30\""
        )
    };
    let is_owned = |text: &str| layout(text).hosts[0].licence_owned;
    assert!(!is_owned(&machine("")));
    assert!(!is_owned(&machine("licence_owned = false")));
    assert!(is_owned(&machine("licence_owned = true")));
    let instance = "edition = \"azure-mi-now\"\nfile = [{ name = \"d\", role = \"data\", size = \"9 GiB\" }]\nhost = { \
                    managed_instance = \"gp\", vcores = 8";
    assert!(!is_owned(&format!("{instance} }}")));
    assert!(is_owned(&format!("{instance}, licence_owned = true }}")));
    check(
        "[host]\nunlimited = true\nlicence_owned = true\n[[volume]]\nname = \"v\"\nunlimited = true",
        "layout.toml:3:1: host \"host\": licence_owned is for a managed instance or a size of the edition; leave it out",
    );
    check(
        &machine("licence_owned = \"yes\""),
        "layout.toml:4:17: invalid type: string \"yes\", expected a boolean",
    );
}

#[test]
fn a_local_volume_is_the_disk_of_its_machine() {
    let text = "edition = \"azure-now\"\nhost = { size = \"D8ds_v4\" }\n\
                [[volume]]\nname = \"temp\"\nplace = \"local\"";
    let layout = layout(text);
    let spec = &layout.hosts[0].spec.volumes[0];
    assert_eq!((spec.size, spec.place), (Bytes::gib(300), weir_core::Place::Local));
    assert_eq!(spec.limits.gate.iops.map(|l| l.rate.get()), Some(38_000));
    check(
        "[[volume]]\nname = \"temp\"\nplace = \"local\"",
        "layout.toml:3:1: volume \"temp\": its host has no local disk in the catalog; give it a size and limits",
    );
}

/// The engine's own accounting is the table of the catalog: for every mode and
/// operation, exactly the gates that the table names are passed.
#[test]
fn the_engine_accounts_as_the_catalog_says() {
    let catalog = Catalog::builtin();
    for edition in ["azure-now", "azure-premium-2015"] {
        let rules = catalog.edition(edition).expect("the edition").host_cache().expect("its rules");
        // A flush is a write-back: `write_backs_are_counted_and_say_what_held_them`.
        let cases = HostCache::CASES.iter().filter(|(_, kind)| *kind != CacheOp::Flush);
        let mut checked = 0;
        for (mode, kind) in cases.copied() {
            let op = if kind == CacheOp::Write { Op::Write } else { Op::Read };
            let counts = rules.counts(mode, kind).expect("a complete table");
            let caps = passes(mode.name(), op, kind == CacheOp::ReadHit);
            let expect = (counts.disk, counts.uncached, counts.cached);
            assert_eq!(caps, expect, "{edition} {mode:?} {kind:?}");
            checked += 1;
        }
        assert_eq!(checked, 8);
    }
}

/// Which of disk, uncached and cached gates hold back the second of two requests.
fn passes(mode: &str, op: Op, warm: bool) -> (bool, bool, bool) {
    let slow = |gate: &str| {
        let one =
            |name: &str| if name == gate { "limits = { iops = 1 }" } else { "unlimited = true" };
        let side = |name: &str| if name == gate { "{ iops = 1 }" } else { "{}" };
        format!(
            "[host]\nlimits = {{ uncached = {}, cached = {} }}\ncache = {{ size = \"1 GiB\" }}\n\
             [[volume]]\nname = \"v\"\n{}\ncache = \"{mode}\"\nsize = \"1 GiB\"\n",
            side("uncached"),
            side("cached"),
            one("disk")
        )
    };
    let held = |gate: &str, cap: Cap| {
        let spec = layout(&slow(gate)).hosts.remove(0).spec;
        let mut engine = Engine::new(spec).expect("a sound specification");
        if warm {
            engine.warm(DeviceId(0), 0, 1 << 20);
        }
        for tag in 0..2 {
            let offset = tag * 4096;
            let request = Request { device: DeviceId(0), op, offset, len: 4096, tag };
            engine.handle_request(Instant::ZERO, &request).expect("in range");
        }
        engine.handle_timeout(Instant::from_nanos(2_000_000_000));
        let done: Vec<Completion> = std::iter::from_fn(|| engine.poll_event())
            .filter_map(|event| match event {
                Event::Completed(completion) => Some(completion),
                Event::WrittenBack { .. } => None,
            })
            .collect();
        assert_eq!(done.len(), 2);
        done.iter().any(|c| c.waits[cap] > 0)
    };
    (
        held("disk", Cap::DiskIops),
        held("uncached", Cap::HostUncachedIops),
        held("cached", Cap::HostCachedIops),
    )
}

#[test]
fn eight_to_sixteen_outstanding_fill_a_disk() {
    // The latency of the 2015 edition is calibrated to this.
    let medium = &layout(DS14).hosts[0].spec.volumes[0].medium;
    let depth = medium.read.mean().nanos() * 5_000 / 1_000_000_000;
    assert!((8..=16).contains(&depth), "mean {} needs a depth of {depth}", medium.read.mean());
    assert!(!medium.read.is_zero() && medium.read != Latency::zero());
    assert_eq!(layout(DS14).hosts[0].spec.volumes[0].cache, CacheMode::ReadOnly);
}

#[test]
fn a_latency_has_a_time_for_each_byte_beside_its_quantiles() {
    let text = "[[volume]]\nname = \"v\"\nunlimited = true\n\
                latency = { p0 = \"4ms\", p50 = \"4ms\", p100 = \"4ms\", transfer = \"125 MiB/s\" }";
    let medium = &layout(text).hosts[0].spec.volumes[0].medium;
    for (mib, millis) in [(1, 12), (4, 36)] {
        assert_eq!(medium.write.draw(1, 1, mib << 20), Span::from_millis(millis));
    }
}

#[test]
fn the_schema_names_every_key() {
    let schema = file::schema().to_string();
    for key in ["edition", "tier", "on_demand_burst", "writeback_after", "count"] {
        assert!(schema.contains(&format!("\"{key}\"")), "{key} is not in {schema}");
    }
}

/// Line and column are those of the key, however deep it stands.
#[test]
fn the_place_is_that_of_the_key() {
    let now = "edition = \"azure-now\"\n[[volume]]\nname = \"a\"\n";
    let check_now = |keys: &str, expect: &str| check(&format!("{now}{keys}"), expect);
    check_now(
        "family = \"premium-ssd-v2\"\nsize = \"8 GiB\"\n  iops = 9000",
        "layout.toml:6:3: premium-ssd-v2: 9000 IOPS cannot be provisioned at 8 GiB; from 3000 IOPS \
         to 4000 IOPS can",
    );
    check_now(
        "family = \"premium-sdd\"\nsize = \"8 GiB\"",
        "layout.toml:4:1: unknown tier set or family \"premium-sdd\" in azure-now; did you mean \
         \"premium-ssd\"?; there are: premium-ssd, standard-ssd, standard-hdd, premium-ssd-zrs, \
         premium-ssd-v2, ultra",
    );
    check_now(
        "family = \"premium-v2\"\nsize = \"8 GiB\"\niops = 9000",
        "layout.toml:4:1: unknown tier set or family \"premium-v2\" in azure-now; did you mean \
         \"premium-ssd\"?; there are: premium-ssd, standard-ssd, standard-hdd, premium-ssd-zrs, \
         premium-ssd-v2, ultra",
    );
    check_now(
        "tier = \"P10\"\non_demand_burst = true",
        "layout.toml:5:1: volume \"a\": P10 has no on-demand bursting",
    );
    check_now(
        "tier = \"P10\"\nsize = \"1 TiB\"",
        "layout.toml:5:1: volume \"a\": size 1 TiB is more than P10 holds (128 GiB); use a larger \
         tier, or a smaller size",
    );
    check(
        "volume = [{ family = \"ü\", name = \"a b\" }]",
        "layout.toml:1:27: the name \"a b\" is not valid; use at most 100 letters, digits, '.', \
         '_' and '-', and no '.' at the start",
    );
    check(
        "host = [{ name = \"x\", unlimited = true }, { name = \"x\", unlimited = true }]",
        "layout.toml:1:45: the name \"x\" is used twice; each export needs its own name",
    );
    check(
        "[host]\nlimits = { cached = { iops = 5, burst = { iops = 5, duration = \"1s\" } } }",
        "layout.toml:2:43: host \"host\": burst.iops must be above iops",
    );
    check(
        "edition = \"azure-now\"\n[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\n\
         volumes = { count = 2, tier = \"P31\" }",
        "layout.toml:5:24: unknown tier \"P31\" in azure-now; did you mean \"P30\"?; there are: P1, \
         P2, P3, P4, P6, P10, P15, P20 and 45 more, which weir catalog tiers azure-now lists",
    );
    check(
        "[[volume]]\nname = \"a\"\nunlimited = true\n[[stripe]]\nname = \"s\"\n\
         unit = \"64 KiB\"\nvolumes = [\"a\", \"c\"]",
        "layout.toml:7:17: stripe \"s\" refers to \"c\", which is not in this layout",
    );
}

#[test]
fn negative_numbers_are_said_to_be_negative() {
    check(
        "[[volume]]\nname = \"a\"\nlimits = { iops = -3 }",
        "layout.toml:3:19: \"-3\" is negative; write it without the minus sign",
    );
    check(
        "[[volume]]\nname = \"a\"\nsize = \"-1 GiB\"",
        "layout.toml:3:8: \"-1 GiB\" is negative; write it without the minus sign",
    );
    check("seed = -1", "layout.toml:1:8: -1 is negative; a seed is a whole number");
    check(
        "[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = { count = -4, tier = \"P30\" }",
        "layout.toml:4:11: the volumes of a stripe need a count, like count = 4, not count = -4",
    );
}

/// Numbers of disks: stated ones, and those of other disks.
#[test]
fn disks_have_the_numbers_that_a_layout_says() {
    let text = "edition = \"azure-now\"\nhost = { size = \"D16s_v3\" }\n[[volume]]\nname = \"log\"\ntier = \
                \"P20\"\n[[volume]]\nname = \"own\"\nplace = \"local\"\n[[volume]]\nname = \"more\"\ntier = \
                \"P20\"\nlun = 0\n[[stripe]]\nname = \"pool\"\nunit = \"64 KiB\"\nvolumes = { count = 3, tier \
                = \"P30\", luns = [63, 1, 4] }\n";
    let numbered = layout(text);
    let numbers = |layout: &Layout| layout.hosts[0].luns();
    let expect = [Some(2), None, Some(0), Some(63), Some(1), Some(4)];
    assert_eq!(numbers(&numbered), expect);
    let said: Vec<Option<u32>> = numbered.hosts[0].volumes.iter().map(|own| own.lun).collect();
    assert_eq!(said, [None, None, Some(0), Some(63), Some(1), Some(4)]);
    let plain = layout(&text.replace("lun = 0\n", "").replace(", luns = [63, 1, 4]", ""));
    assert_eq!(numbers(&plain), [Some(0), None, Some(1), Some(2), Some(3), Some(4)]);
    // They are no limit.
    let spec = |layout: &Layout| format!("{:?}", layout.hosts[0].spec);
    assert_eq!(spec(&plain), spec(&numbered));
}

#[test]
fn a_number_that_no_disk_can_have_is_refused() {
    let volume = |keys: &str| {
        format!(
            "[host]\nunlimited = true\n[[volume]]\nname = \"a\"\nunlimited = true\nlun = 3\n[[volume]]\nname = \
             \"b\"\n{keys}\n"
        )
    };
    let stripe = |keys: &str| {
        format!(
            "[host]\nunlimited = true\n[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = {{ count = 2, \
             unlimited = true, {keys} }}\n"
        )
    };
    let check = |text: &str, expect: &str| {
        assert_eq!(parse(text).expect_err("no layout"), format!("layout.toml:{expect}"));
    };
    check(
        &volume("unlimited = true\nlun = 3"),
        "10:1: volume \"b\": lun = 3 is already the LUN of \"a\"; choose another",
    );
    for lun in ["64", "-1", "9000000000"] {
        check(
            &volume(&format!("unlimited = true\nlun = {lun}")),
            &format!("10:1: volume \"b\": lun = {lun} is not a valid LUN; use 0 to 63"),
        );
    }
    check(
        &volume("place = \"local\"\nsize = \"1 GiB\"\nunlimited = true\nlun = 1"),
        "12:1: volume \"b\": lun = 1 is for an attached disk, but the machine's local disk has no \
         LUN; leave lun out",
    );
    check(
        &stripe("luns = [0]"),
        "6:42: stripe \"s\": luns = [0] does not have one LUN for each of 2 columns; give as many, \
         or leave it out",
    );
    check(
        &stripe("lun = 7"),
        "6:42: stripe \"s\": lun = 7 would be the LUN of all 2 columns; write luns = [..] with one \
         for each",
    );
    let twice = parse(&stripe("luns = [5, 5]")).expect_err("no layout");
    assert!(
        twice.ends_with("volume \"s-1\": lun = 5 is already the LUN of \"s-0\"; choose another")
    );
    let words = parse(&stripe("luns = \"0\"")).expect_err("no layout");
    assert!(
        words.contains("luns is a list of whole numbers, like luns = [0, 1], not \"0\""),
        "{words}"
    );
}

#[test]
fn a_disk_that_is_not_offered_is_refused() {
    let gcp = |family: &str, gib: u64| {
        let host = if family.starts_with("pd-") { "n2-standard-8" } else { "c3-8vcpu" };
        format!(
            "edition = \"gcp\"\nhost = {{ size = \"{host}\" }}\n[[volume]]\nname = \"v\"\n\
             family = \"{family}\"\nsize = \"{gib} GiB\"\n"
        )
    };
    for (family, min) in
        [("pd-standard", 10), ("pd-balanced", 10), ("pd-ssd", 10), ("hyperdisk-balanced", 4)]
    {
        for gib in [min, 65_536] {
            parse(&gcp(family, gib)).unwrap_or_else(|error| panic!("{family}: {error}"));
        }
        for gib in [min - 1, 65_537] {
            let error = parse(&gcp(family, gib)).expect_err("no layout");
            let words =
                format!("{family}: {gib} GiB is not offered; sizes go from {min} GiB to 64 TiB");
            assert!(error.starts_with("layout.toml:6:") && error.contains(&words), "{error}");
        }
    }
}

#[test]
fn performance_plus_is_for_disks_above_the_largest_tier_without_it() {
    let disk = |keys: &str| {
        format!(
            "edition = \"azure-now\"\n[[volume]]\nname = \"v\"\n{keys}\nperformance_plus = true\n"
        )
    };
    let limits = |keys: &str| {
        let gate = layout(&disk(keys)).hosts[0].spec.volumes[0].limits.gate;
        [gate.iops, gate.bytes].map(|limit| limit.map(|limit| limit.rate.get()))
    };
    assert_eq!(limits("tier = \"P30\""), [Some(8_000), Some(300_000_000)]);
    assert_eq!(limits("tier = \"P30\"\nsize = \"513 GiB\""), [Some(8_000), Some(300_000_000)]);
    assert_eq!(limits("size = \"2000 GiB\""), [Some(16_000), Some(600_000_000)]);
    for (keys, words) in [
        ("tier = \"P20\"", "P20 has no performance plus"),
        (
            "tier = \"P30\"\nsize = \"512 GiB\"",
            "a disk of 512 GiB has no performance plus, which is for disks of more than 512 GiB; make \
             it larger",
        ),
    ] {
        let error = parse(&disk(keys)).expect_err("no layout");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_largest_performance_tiers_are_only_for_disks_of_more_than_4_tib() {
    let disk = |keys: &str| format!("edition = \"azure-now\"\n[[volume]]\nname = \"v\"\n{keys}\n");
    let iops = |keys: &str| {
        layout(&disk(keys)).hosts[0].spec.volumes[0].limits.gate.iops.map(|limit| limit.rate.get())
    };
    assert_eq!(iops("tier = \"P30\"\nperformance_tier = \"P50\""), Some(7_500));
    assert_eq!(iops("tier = \"P60\"\nperformance_tier = \"P80\""), Some(20_000));
    let larger = "tier = \"P60\"\nsize = \"4097 GiB\"\nperformance_tier = \"P70\"";
    assert_eq!(iops(larger), Some(18_000));
    for (keys, size) in [
        ("tier = \"P30\"\nperformance_tier = \"P60\"", "1 TiB"),
        ("tier = \"P50\"\nperformance_tier = \"P60\"", "4 TiB"),
        ("tier = \"P50-ZRS\"\nperformance_tier = \"P60-ZRS\"", "4 TiB"),
    ] {
        let error = parse(&disk(keys)).expect_err("no layout");
        let words = format!("is only for disks of more than 4 TiB, and this one has {size}");
        assert!(error.contains(&words), "{error}");
    }
    // Other families have none, and performance plus would replace their limits.
    for (keys, words) in [
        ("tier = \"E10\"\nperformance_tier = \"E20\"", "E10 of azure-now has no performance tiers"),
        (
            "tier = \"P30\"\nperformance_tier = \"P40\"\nperformance_plus = true",
            "performance_plus replaces the limits of performance_tier",
        ),
    ] {
        let error = parse(&disk(keys)).expect_err("no layout");
        assert!(error.contains(words), "{error}");
    }
    // Disks without tiers have none to raise.
    for (edition, key) in [
        (
            "azure-now\"\n[[volume]]\nname = \"v\"\nfamily = \"premium-ssd-v2",
            "performance_tier = \"P30\"",
        ),
        ("aws\"\n[[volume]]\nname = \"v\"\nfamily = \"gp3", "on_demand_burst = true"),
        ("aws\"\n[[volume]]\nname = \"v\"\nfamily = \"gp2", "performance_plus = true"),
    ] {
        let error = parse(&format!("edition = \"{edition}\"\nsize = \"100 GiB\"\n{key}\n"));
        let error = error.expect_err("no layout");
        assert!(error.contains("is for disks with tiers, and "), "{error}");
    }
}

#[test]
fn layouts_beyond_all_bounds_are_refused_in_one_sentence() {
    let volumes = |count: usize| -> String {
        (0..count)
            .map(|n| format!("[[volume]]\nname=\"v{n}\"\nunlimited=true\nsize=\"1GiB\"\n"))
            .collect()
    };
    let largest = volumes(Layout::MAX_VOLUMES);
    assert_eq!(layout(&largest).hosts[0].exports.len(), 10_000);
    let more = volumes(Layout::MAX_VOLUMES + 1);
    let error = parse(&more).expect_err("too many volumes");
    let expect =
        "the layout has 10001 volumes, and at most 10000 are possible; divide it into several";
    assert_eq!(error, format!("layout.toml:40001:1: {expect}"));
    let stripes = |name: usize| {
        format!(
            "[[stripe]]\nname=\"s{name}\"\nunit=\"64KiB\"\n\
             volumes={{count=1000, unlimited=true, size=\"1GiB\"}}\n"
        )
    };
    let columns: String = (0..11).map(stripes).collect();
    let error = parse(&columns).expect_err("too many columns");
    assert!(error.ends_with(expect), "{error}");
    let hosts: String = (0..1_001).map(|n| format!("[[host]]\nname=\"h{n}\"\n")).collect();
    let error = parse(&hosts).expect_err("too many hosts");
    assert!(error.contains("the layout has 1001 hosts, and at most 1000 are possible"), "{error}");
    let files: String = (0..10_001)
        .map(|n| format!("[[file]]\nname=\"f{n}\"\nrole=\"data\"\nsize=\"1 MiB\"\n"))
        .collect();
    let error = parse(&files).expect_err("too many files");
    assert!(
        error.contains("the layout has 10001 files, and at most 10000 are possible"),
        "{error}"
    );
    // Not even the keys are read.
    let keys: String = (0..400_000).map(|n| format!("key{n}=1\n")).collect();
    let error = parse(&keys).expect_err("an unknown key");
    assert_eq!(
        error,
        "layout.toml: a layout has at most 4 MiB; this file has more, so it may be something else"
    );
}
