//! Disks of other clouds: bought by rules of their own, and such as share their limits.

use super::{layout, parse};
use weir_core::{GateLimits, Reserve};
use weir_units::{Bytes, Span};

fn gcp(host: &str, volumes: &[&str]) -> String {
    let volumes: Vec<String> = volumes
        .iter()
        .enumerate()
        .map(|(at, keys)| format!("[[volume]]\nname = \"v{at}\"\n{keys}\n"))
        .collect();
    format!("edition = \"gcp\"\nhost = {host}\n{}", volumes.concat())
}

/// Operations and bytes of a host's gate to remote storage.
fn uncached(text: &str) -> (Option<u64>, Option<u64>) {
    let gate = layout(text).hosts[0].spec.uncached;
    let rate = |limit: Option<weir_core::Limit>| limit.map(|limit| limit.rate.get());
    (rate(gate.iops), rate(gate.bytes))
}

#[test]
fn disks_of_one_type_share_what_their_sizes_bring() {
    let ssd = |gib: u64| format!("family = \"pd-ssd\"\nsize = \"{gib} GiB\"");
    let check = |host: &str, sizes: &[u64], iops: u64, bytes: u64| {
        let volumes: Vec<String> = sizes.iter().map(|gib| ssd(*gib)).collect();
        let volumes: Vec<&str> = volumes.iter().map(String::as_str).collect();
        assert_eq!(uncached(&gcp(host, &volumes)), (Some(iops), Some(bytes)), "{host} {sizes:?}");
    };
    let n2 = "{ size = \"n2-standard-8\" }";
    // 6,000 + 30 x 100 and a tenth more, and 240 + 0.48 x 100 MiB/s.
    check(n2, &[100], 9_900, 288 << 20);
    // The base is had once, however many disks there are.
    check(n2, &[50, 50], 9_900, 288 << 20);
    // 15,000 and 800 MiB/s are what the machine lets through.
    check(n2, &[100, 900], 15_000, 720 << 20);
    check(n2, &[1_000, 1_000], 15_000, 800 << 20);
    check("{ unlimited = true }", &[1_000, 1_000], 72_600, 1_200 << 20);
    let limited = "{ limits = { uncached = { iops = 500 } } }";
    check(limited, &[100], 500, 288 << 20);
    let text = gcp(n2, &[&ssd(100)]);
    let host = &layout(&text).hosts[0];
    assert!(host.volumes[0].is_pooled && host.volumes[0].spec.limits.gate.iops.is_none());
    let note = "pd-ssd disks share their limits on a machine: 100 GiB in total have 9900 IOPS and 288 \
         MiB/s";
    assert!(host.notes.iter().any(|own| own == note), "{:?}", host.notes);
}

#[test]
fn reads_and_writes_of_a_pool_have_limits_of_their_own() {
    let disk = "family = \"pd-standard\"\nsize = \"100 GiB\"";
    let of = |host: &str| {
        let host = layout(&gcp(host, &[disk])).hosts.remove(0);
        let rates = |gate: GateLimits| [gate.iops, gate.bytes].map(|own| own.map(|l| l.rate.get()));
        let note = host.notes.iter().find(|own| own.starts_with("pd-standard")).cloned();
        (rates(host.spec.uncached), host.spec.uncached_writes.map(rates), note.unwrap_or_default())
    };
    let (reads, writes, note) = of("{ size = \"n2-standard-8\" }");
    assert_eq!(reads, [Some(75), Some(12 << 20)]);
    assert_eq!(writes, Some([Some(150), Some(12 << 20)]));
    assert_eq!(
        note,
        "pd-standard disks share their limits on a machine: 100 GiB in total have 75 IOPS and 12 \
         MiB/s for reads, and 150 IOPS and 12 MiB/s for writes"
    );
    // A limit that the layout gives is one of reads and writes together.
    let (both, writes, note) = of("{ limits = { uncached = { iops = 500 } } }");
    assert_eq!((both, writes), ([Some(75), Some(12 << 20)], None));
    assert!(note.ends_with(
        "have 75 IOPS and 12 MiB/s for reads and writes together, because the host has limits of \
         its own"
    ));
}

#[test]
fn disks_that_share_limits_allow_no_others_beside_them() {
    let check = |host: &str, volumes: &[&str], expect: &str| {
        let error = parse(&gcp(host, volumes)).expect_err("no layout");
        assert!(error.contains(expect), "{error}");
    };
    let (ssd, balanced) =
        ("family = \"pd-ssd\"\nsize = \"10 GiB\"", "family = \"pd-balanced\"\nsize = \"10 GiB\"");
    let hyperdisk = "family = \"hyperdisk-balanced\"\nsize = \"10 GiB\"";
    let n2 = "{ size = \"n2-standard-8\" }";
    let expect = "pd-ssd disks share limits that apply to all remote disks of a machine, but \
                  \"v1\" has the limits of OTHER: put it on another host";
    check(n2, &[ssd, balanced], &expect.replace("OTHER", "pd-balanced"));
    let other = expect.replace("OTHER", "hyperdisk-balanced");
    check("{ size = \"c3-8vcpu\" }", &[ssd, hyperdisk], &other);
    check(n2, &[hyperdisk], "n2-standard-8 does not take hyperdisk-balanced; it takes pd-standard");
    check(n2, &["family = \"pd-ssd\"\nsize = \"10 GiB\"\niops = 5"], "follow from the size");
    check(n2, &["size = \"10 GiB\""], "add family = \"..\" (one of hyperdisk-balanced");
    check(
        "{ size = \"c3-8vcpu\" }",
        &["family = \"pd-standard\"\nsize = \"10 GiB\""],
        "c3-8vcpu does not take pd-standard",
    );
}

#[test]
fn one_disk_of_a_pool_does_not_change_alone() {
    let text = gcp("{ size = \"n2-standard-8\" }", &["family = \"pd-ssd\"\nsize = \"10 GiB\""]);
    let catalog = weir_catalog::Catalog::builtin();
    let edition = catalog.edition("gcp").ok();
    let layout = layout(&text);
    let resized = layout.hosts[0].resized(weir_core::VolumeId(0), Bytes::gib(20), edition);
    let error = resized.expect_err("no other size").to_string();
    assert!(error.ends_with("change the layout and restart"), "{error}");
}

#[test]
fn bought_disks_count_as_their_family_does() {
    let of = |edition: &str, host: &str, keys: &str| {
        let text = format!(
            "edition = \"{edition}\"\nhost = {{ size = \"{host}\" }}\n[[volume]]\nname = \"v\"\n{keys}\n"
        );
        let layout = layout(&text);
        let limits = layout.hosts[0].volumes[0].spec.limits;
        let rate = |limit: Option<weir_core::Limit>| limit.map_or(0, |limit| limit.rate.get());
        let unit = limits.io_unit.map_or(0, std::num::NonZeroU64::get);
        (rate(limits.gate.iops), rate(limits.gate.bytes), unit)
    };
    let size = "size = \"100 GiB\"";
    assert_eq!(
        of("aws", "m5.large", &format!("family = \"gp3\"\n{size}")),
        (3_000, 125 << 20, 256 << 10)
    );
    assert_eq!(
        of("aws", "m5.large", &format!("family = \"io1\"\n{size}\niops = 1000")),
        (1_000, 250 << 20, 256 << 10)
    );
    assert_eq!(
        of("gcp", "c3-8vcpu", &format!("family = \"hyperdisk-balanced\"\n{size}\niops = 9000")),
        (9_000, 140 << 20, 0)
    );
    assert_eq!(
        of("azure-postgres", "D8ds_v5", "tier = \"P50\"\nsize = \"4095 GiB\""),
        (7_500, 250_000_000, 256 << 10)
    );
    // C3 lets so much of Hyperdisk through.
    let text =
        gcp("{ size = \"c3-8vcpu\" }", &["family = \"hyperdisk-balanced\"\nsize = \"10 GiB\""]);
    assert_eq!(uncached(&text), (Some(50_000), Some(800 << 20)));
}

#[test]
fn limits_of_ebs_have_a_reserve_of_a_second() {
    let text = "edition = \"aws\"\nhost = { size = \"r5b.large\" }\n\
                [[volume]]\nname = \"v\"\nfamily = \"gp3\"\nsize = \"100 GiB\"\n\
                [[volume]]\nname = \"own\"\nlimits = { iops = 5 }\n";
    let host = &layout(text).hosts[0];
    let second = Reserve { holds: Span::from_secs(1), refill: Span::from_secs(80) };
    for limit in [host.spec.uncached.iops, host.spec.uncached.bytes] {
        let limit = limit.expect("a limit");
        assert_eq!(limit.reserve, Some(second));
        assert!(limit.burst.is_some(), "{limit:?}");
    }
    let gate = |at: usize| host.volumes[at].spec.limits.gate;
    assert_eq!(gate(0).iops.expect("a limit").reserve, Some(second));
    assert_eq!(gate(0).bytes.expect("a limit").reserve, Some(second));
    // Limits that a layout states are as it states them.
    assert_eq!(gate(1).iops.expect("a limit").reserve, None);
    let azure = "edition = \"azure-now\"\nhost = { size = \"D8s_v3\" }\n\
                 [[volume]]\nname = \"v\"\ntier = \"P30\"\n";
    let gate = layout(azure).hosts[0].volumes[0].spec.limits.gate;
    assert_eq!(gate.iops.expect("a limit").reserve, None);
}

#[test]
fn credits_of_gp2_are_exact() {
    let check = |gib: u64, rate: u64, burst: Option<u64>| {
        let text = format!(
            "edition = \"aws\"\nhost = {{ unlimited = true }}\n\
             [[volume]]\nname = \"v\"\nfamily = \"gp2\"\nsize = \"{gib} GiB\"\n"
        );
        let host = &layout(&text).hosts[0];
        let limit = host.volumes[0].spec.limits.gate.iops.expect("a limit");
        assert_eq!(limit.rate.get(), rate);
        assert_eq!(limit.burst.map(|(peak, _)| peak.get()), burst);
        let engine = weir_core::Engine::new(host.spec.clone()).expect("a sound host");
        let credits = engine.credits(weir_core::VolumeId(0), weir_core::Cap::DiskIops);
        assert_eq!(credits, burst.map(|_| 5_400_000), "{gib}");
    };
    for gib in [1, 20, 33, 100, 101, 334, 750, 999] {
        check(gib, (3 * gib).max(100), Some(3_000));
    }
    check(1_000, 3_000, None);
    check(16_384, 16_000, None);
}

#[test]
fn forced_writes_and_writes_through_a_cache_take_longer_on_azure() {
    let of = |edition: &str, machine: &str| {
        let text = format!(
            "edition = \"{edition}\"\nhost = {{ size = \"{machine}\" }}\n\
             [[volume]]\nname = \"v\"\ntier = \"P30\"\ncache = \"read-only\"\n"
        );
        let spec = &layout(&text).hosts[0].spec;
        let mean = |latency: Option<&weir_core::Latency>| {
            latency.map(|latency| latency.mean().nanos() / 100_000)
        };
        let cache = spec.cache.as_ref().expect("a cache");
        (mean(spec.volumes[0].medium.sync.as_ref()), mean(cache.write_through.as_ref()))
    };
    assert_eq!(of("azure-now", "D8s_v3"), (Some(9), Some(14)));
    assert_eq!(of("azure-premium-2015", "DS14"), (None, None));
}
