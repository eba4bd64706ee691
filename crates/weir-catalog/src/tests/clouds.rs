//! AWS, Google Cloud and the PostgreSQL service: every row of their documents, and their rules.

use super::{builtin, of_file};
use crate::price::Item;
use crate::{BurstKind, Edition, Limits, Per, PoolLimits, PriceBook};
use weir_units::{Bytes, BytesPerSec, Iops, Span};

fn limits(iops: u64, throughput: &str) -> Limits {
    Limits { iops: Iops::new(iops).unwrap(), throughput: throughput.parse().unwrap() }
}

/// A series with its sums: machines, vCPUs, GiB of memory, base operations and bytes per second,
/// and those of bursts.
type Sum = (&'static str, u64, u64, u64, u64, u64, u64, u64);

fn sums(edition: &Edition, series: &str) -> [u64; 7] {
    let series = edition.series().iter().find(|own| own.name == series).unwrap();
    let of = |each: &dyn Fn(&crate::HostSize) -> u64| series.hosts.iter().map(each).sum();
    let peak = |host: &crate::HostSize, bytes: bool| {
        let own = host.uncached.unwrap();
        let (iops, throughput) =
            own.burst.map_or((own.iops, own.throughput), |burst| (burst.iops, burst.throughput));
        if bytes { throughput.get() } else { iops.get() }
    };
    [
        of(&|_| 1),
        of(&|host| u64::from(host.vcpus.unwrap())),
        of(&|host| host.memory.map_or(0, |memory| memory.get() >> 30)),
        of(&|host| host.uncached.unwrap().iops.get()),
        of(&|host| host.uncached.unwrap().throughput.get()),
        of(&|host| peak(host, false)),
        of(&|host| peak(host, true)),
    ]
}

/// Sums over the rows of the instance table of 2026-08-02: none is missing, none has a slip.
#[test]
fn every_instance_has_its_row() {
    let all: [Sum; 15] = [
        ("m5", 8, 270, 1080, 250_350, 7_218_750_000, 285_000, 8_487_500_000),
        ("m6i", 9, 398, 1592, 501_600, 15_550_000_000, 620_000, 19_375_000_000),
        ("m7i", 9, 462, 1848, 581_600, 15_550_000_000, 700_000, 19_375_000_000),
        ("r5", 8, 270, 2160, 250_350, 7_218_750_000, 285_000, 8_487_500_000),
        ("r5b", 8, 270, 2160, 731_250, 21_093_750_000, 823_332, 23_750_000_000),
        ("r6i", 9, 398, 3184, 501_600, 15_550_000_000, 620_000, 19_375_000_000),
        ("r6in", 9, 398, 3184, 1_243_750, 38_867_187_500, 1_550_000, 48_437_500_000),
        ("r7g", 7, 174, 1392, 221_600, 6_797_500_000, 340_000, 10_625_000_000),
        ("r7i", 9, 462, 3696, 581_600, 15_550_000_000, 700_000, 19_375_000_000),
        ("r8i", 11, 974, 7792, 1_221_600, 33_050_000_000, 1_340_000, 36_875_000_000),
        ("r8g", 9, 462, 3696, 581_600, 15_547_500_000, 700_000, 19_375_000_000),
        ("r8gb", 9, 462, 3696, 3_465_000, 90_234_375_000, 3_720_000, 96_875_000_000),
        ("x2idn", 3, 288, 4608, 693_333, 22_500_000_000, 693_333, 22_500_000_000),
        ("x2iedn", 7, 348, 11136, 706_875, 27_187_500_000, 845_000, 32_500_000_000),
        ("i4i", 9, 398, 3184, 497_500, 15_546_875_000, 620_000, 19_375_000_000),
    ];
    let edition = of_file("aws");
    for (name, hosts, vcpus, memory, iops, bytes, most_iops, most_bytes) in all {
        let expect = [hosts, vcpus, memory, iops, bytes, most_iops, most_bytes];
        assert_eq!(sums(&edition, name), expect, "{name}");
    }
    let of_services = |service: Option<&str>| {
        let own = edition.series().iter().filter(|series| series.service.as_deref() == service);
        own.map(|series| series.hosts.len()).sum::<usize>()
    };
    assert_eq!((of_services(None), of_services(Some("rds"))), (124, 34));
    // An instance of RDS has the limits of that of EC2.
    for host in edition.hosts().filter(|host| host.series.starts_with("rds-")) {
        let own = edition.host(host.name.trim_start_matches("db.")).unwrap();
        assert_eq!((host.uncached, host.memory, host.vcpus), (own.uncached, own.memory, own.vcpus));
    }
    let large = edition.host("m5.large").unwrap().uncached.unwrap();
    assert_eq!(large.limits(), limits(3_600, "81.25 MB/s"));
    let burst = large.burst.unwrap();
    assert_eq!(burst.kind, BurstKind::Credit { duration: Span::from_secs(1_800) });
    assert_eq!((burst.iops.get(), burst.throughput.get()), (18_750, 593_750_000));
    assert_eq!(edition.host("m5.4xlarge").unwrap().uncached.unwrap().burst, None);
}

/// Sums over the rows of the table of compute sizes, which several names share.
#[test]
fn every_compute_size_of_postgres_has_its_row() {
    let all = [
        ("b", 5, 17, 11_040, 138_936_320),
        ("dsv3", 7, 174, 256_000, 4_026_531_840),
        ("ddsv4", 7, 174, 256_000, 4_026_531_840),
        ("ddsv5", 7, 174, 256_550, 4_598_005_760),
        ("dadsv5", 7, 174, 256_550, 4_598_005_760),
        ("dadsv6", 7, 174, 274_800, 5_190_451_200),
        ("ddsv6", 5, 62, 129_167, 3_208_642_560),
        ("esv3", 7, 174, 256_000, 4_026_531_840),
        ("edsv4", 8, 194, 288_000, 4_529_848_320),
        ("edsv5", 8, 194, 288_000, 5_384_437_760),
        ("eadsv5", 8, 194, 288_000, 5_384_437_760),
        ("eadsv6", 8, 194, 312_800, 6_134_169_600),
        ("edsv6", 6, 82, 170_834, 4_466_933_760),
    ];
    let edition = of_file("azure-postgres");
    for (name, hosts, vcpus, iops, bytes) in all {
        assert_eq!(sums(&edition, name), [hosts, vcpus, 0, iops, bytes, iops, bytes], "{name}");
    }
    assert_eq!(edition.series().len(), all.len());
    let uncached = |name: &str| edition.host(name).unwrap().uncached.unwrap().limits();
    assert_eq!(uncached("D8ds_v5"), limits(12_800, "290 MiB/s"));
    // Memory-optimized sizes that have rows of their own.
    assert_eq!(uncached("E2ds_v5"), limits(3_200, "85 MiB/s"));
    assert_eq!(uncached("D2ds_v5"), limits(3_750, "85 MiB/s"));
    assert_eq!(uncached("E20ds_v6"), limits(41_667, "1200 MiB/s"));
}

#[test]
fn storage_of_postgres_has_the_limits_of_its_disk() {
    let edition = builtin("azure-postgres");
    let disks = builtin("azure-now");
    let sizes = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_767];
    let iops = [120, 240, 500, 1100, 2300, 5000, 7500, 7500, 16_000, 18_000, 20_000];
    let set = edition.default_set().unwrap();
    let got = set.tiers.iter().map(|tier| (tier.size.get() >> 30, tier.iops.get()));
    assert_eq!(got.collect::<Vec<_>>(), sizes.into_iter().zip(iops).collect::<Vec<_>>());
    for tier in &set.tiers {
        assert_eq!(tier.limits(), disks.tier(&tier.name).unwrap().limits(), "{}", tier.name);
        assert_eq!(
            tier.burst.map(|own| own.iops.get()),
            (tier.size < Bytes::gib(1024)).then_some(3_500)
        );
    }
    let store = &edition.stores()[0];
    let steps: Vec<_> = store.steps_of("postgresql").collect();
    assert_eq!(
        steps.iter().map(|step| (step.min_size, step.minimum.iops.get())).collect::<Vec<_>>(),
        [(Bytes::gib(32), 3_000), (Bytes::gib(400), 12_000)]
    );
    assert_eq!(steps[1].minimum.throughput, "500 MB/s".parse().ok());
}

#[test]
fn volumes_of_aws_have_their_rules() {
    let edition = builtin("aws");
    let check = |family: &str, gib: u64, iops: u64, rate: &str, expect: Result<&str, &str>| {
        let family = edition.provisioned(family).unwrap();
        let rate = (!rate.is_empty()).then(|| rate.parse::<BytesPerSec>().unwrap());
        let got = family.limits(Bytes::gib(gib), Iops::new(iops), rate);
        assert_eq!(
            got.map(|l| l.throughput).map_err(|error| error.to_string()),
            expect.map(|rate| rate.parse().unwrap()).map_err(ToString::to_string)
        );
    };
    check("gp3", 1, 0, "", Ok("125 MiB/s"));
    check("gp3", 160, 80_000, "2000 MiB/s", Ok("2000 MiB/s"));
    check("gp3", 100, 3_000, "750 MiB/s", Ok("750 MiB/s"));
    check(
        "gp3",
        100,
        3_000,
        "751 MiB/s",
        Err("gp3: 751 MiB/s cannot be provisioned with 3000 IOPS; from 125 MiB/s to 750 MiB/s can"),
    );
    check(
        "gp3",
        100,
        3_000,
        "150 MB/s",
        Err("gp3: 150 MB/s cannot be provisioned; throughput is sold in steps of 1 MiB/s"),
    );
    check(
        "gp3",
        6,
        3_001,
        "125 MiB/s",
        Err("gp3: 3001 IOPS cannot be provisioned at 6 GiB; from 3000 IOPS to 3000 IOPS can"),
    );
    // The guide's own figures: 256 KiB up to 500 MiB/s, above 32,000 IOPS 16 KiB each.
    check("io1", 1_000, 2_000, "", Ok("500 MiB/s"));
    check("io1", 1_000, 32_000, "", Ok("500 MiB/s"));
    check("io1", 1_000, 48_000, "", Ok("750 MiB/s"));
    check("io1", 1_280, 64_000, "", Ok("1000 MiB/s"));
    check(
        "io1",
        100,
        5_000,
        "100 MiB/s",
        Err("io1: throughput cannot be chosen: 5000 IOPS include 500 MiB/s; leave it out"),
    );
    check("io2", 16, 16_000, "", Ok("4000 MiB/s"));
    check("io2", 256, 256_000, "", Ok("4000 MiB/s"));
    check(
        "io2",
        255,
        256_000,
        "",
        Err("io2: 256000 IOPS cannot be provisioned at 255 GiB; from 100 IOPS to 255000 IOPS can"),
    );
    assert_eq!(edition.io_unit_of("gp3"), Some(Bytes::kib(256)));
}

/// The tables of the guide: baseline, burst and duration of a full bucket.
#[test]
fn limits_of_volumes_by_size_are_those_of_the_guide() {
    let edition = builtin("aws");
    let of = |family: &str, size: Bytes| edition.sized(family).unwrap().limits(size);
    let gp2 = |gib: u64, iops: u64, rate: &str, lasts: Option<u64>| {
        let got = of("gp2", Bytes::gib(gib)).unwrap();
        assert_eq!(got.base, limits(iops, rate), "{gib}");
        assert_eq!(got.iops.map(|(peak, credits)| credits / (peak.get() - iops)), lasts, "{gib}");
        assert_eq!(got.throughput, None);
    };
    gp2(33, 100, "128 MiB/s", Some(1_862));
    gp2(100, 300, "128 MiB/s", Some(2_000));
    gp2(170, 510, "128 MiB/s", Some(2_168));
    gp2(171, 513, "250 MiB/s", Some(2_171));
    gp2(334, 1_002, "250 MiB/s", Some(2_702));
    gp2(750, 2_250, "250 MiB/s", Some(7_200));
    gp2(1_000, 3_000, "250 MiB/s", None);
    gp2(5_334, 16_000, "250 MiB/s", None);
    assert_eq!(of("gp2", Bytes::gib(20)).unwrap().iops.unwrap().1, 5_400_000);
    let hdd = |family: &str, gib: u64, base: &str, burst: Option<&str>| {
        let got = of(family, Bytes::gib(gib)).unwrap();
        let rate = |text: &str| text.parse::<BytesPerSec>().unwrap();
        assert_eq!(got.base.throughput, rate(base), "{family} {gib}");
        assert_eq!(got.throughput.map(|own| own.0), burst.map(rate), "{family} {gib}");
        // A TiB of credits for each TiB, and an operation is charged a whole MiB.
        assert_eq!(got.throughput.map(|own| own.1), burst.map(|_| gib << 30));
        assert_eq!(got.iops.map(|own| own.1), burst.map(|_| gib << 10));
        assert_eq!(got.base.iops.get(), got.base.throughput.get() >> 20);
    };
    hdd("st1", 125 * 1024 / 1000, "5 MiB/s", Some("32000 KiB/s"));
    hdd("st1", 512, "20 MiB/s", Some("125 MiB/s"));
    hdd("st1", 1_024, "40 MiB/s", Some("250 MiB/s"));
    hdd("st1", 2_048, "80 MiB/s", Some("500 MiB/s"));
    hdd("st1", 4_096, "160 MiB/s", Some("500 MiB/s"));
    hdd("st1", 12_800, "500 MiB/s", None);
    hdd("st1", 16_384, "500 MiB/s", None);
    hdd("sc1", 1_024, "12 MiB/s", Some("80 MiB/s"));
    hdd("sc1", 16_384, "192 MiB/s", Some("250 MiB/s"));
    let error = of("st1", Bytes::gib(100)).unwrap_err().to_string();
    assert_eq!(error, "st1: 100 GiB is not offered; sizes go from 125 GiB to 16 TiB");
    assert_eq!(of("magnetic", Bytes::gib(1_024)).unwrap().base, limits(100, "40 MiB/s"));
    let units = ["gp2", "st1", "magnetic"].map(|family| edition.io_unit_of(family));
    assert_eq!(units, [Some(Bytes::kib(256)), Some(Bytes::mib(1)), None]);
    let merges =
        ["gp2", "st1", "sc1", "magnetic"].map(|family| edition.sized(family).unwrap().merges);
    assert_eq!(merges, [false, true, true, false]);
    for family in ["gp3", "io1", "io2"] {
        assert!(edition.provisioned(family).unwrap().merges, "{family}");
    }
}

#[test]
fn stores_of_rds_are_striped_from_the_sizes_of_the_guide() {
    let edition = builtin("aws");
    let volumes = |store: &str, engine: &str, gib: u64| {
        let store = edition.stores().iter().find(|own| own.name == store).unwrap();
        let size = Bytes::gib(gib);
        let step = store.steps_of(engine).find(|own| own.min_size <= size && size <= own.max_size);
        step.map(|step| (step.volumes, step.minimum.iops.get(), step.is_licensed))
    };
    assert_eq!(volumes("rds-gp3", "postgresql", 399), Some((1, 3_000, false)));
    assert_eq!(volumes("rds-gp3", "postgresql", 400), Some((4, 12_000, false)));
    assert_eq!(volumes("rds-gp3", "mysql", 65_536), Some((4, 12_000, false)));
    assert_eq!(volumes("rds-gp3", "mysql", 65_537), None);
    assert_eq!(volumes("rds-gp3", "oracle", 199), Some((1, 3_000, true)));
    assert_eq!(volumes("rds-gp3", "oracle", 200), Some((4, 12_000, true)));
    assert_eq!(volumes("rds-gp3", "sqlserver", 16_384), Some((1, 3_000, true)));
    assert_eq!(volumes("rds-io1", "mariadb", 400), Some((4, 1_000, false)));
    assert_eq!(volumes("rds-io1", "sqlserver", 400), Some((1, 1_000, true)));
}

/// Sums over the rows of machines: what all types together let through, the lower of reads and
/// writes.
#[test]
fn every_machine_of_google_has_its_rows() {
    let all = [
        ("n1", 7, 511_000, 14_532),
        ("n2", 18, 2_556_000, 44_640),
        ("n2d", 6, 458_500, 11_840),
        ("c2", 5, 85_000, 5_680),
        ("c2d", 7, 118_320, 5_471),
        ("c3", 6, 535_000, 9_760),
        ("c3d", 8, 870_000, 20_480),
        ("m1", 4, 600_000, 11_200),
        ("m2", 4, 350_000, 11_200),
        ("m3", 5, 560_000, 12_000),
        ("e2", 5, 259_000, 8_120),
    ];
    let edition = of_file("gcp");
    for (name, hosts, iops, mib) in all {
        let series = edition.series().iter().find(|own| own.name == name).unwrap();
        // Of reads and writes apart, the lower are summed.
        let pools = || {
            series.hosts.iter().flat_map(|host| host.pools.values()).map(|pool| {
                let writes = pool.writes.unwrap_or(pool.limits);
                let lower = pool.limits;
                Limits {
                    iops: lower.iops.min(writes.iops),
                    throughput: lower.throughput.min(writes.throughput),
                }
            })
        };
        let got = (
            series.hosts.len(),
            pools().map(|own| own.iops.get()).sum::<u64>(),
            pools().map(|own| own.throughput.get() >> 20).sum::<u64>(),
        );
        assert_eq!(got, (hosts, iops, mib), "{name}");
    }
    assert_eq!(edition.series().len(), all.len());
    let host = edition.host("n2-standard-8").unwrap();
    assert_eq!(host.pools["pd-ssd"].limits, limits(15_000, "800 MiB/s"));
    assert_eq!(host.pools["pd-ssd"].writes, None);
    assert_eq!(host.pools["pd-standard"].limits, limits(5_000, "800 MiB/s"));
    assert_eq!(host.pools["pd-standard"].writes, Some(limits(15_000, "400 MiB/s")));
    let c3 = edition.host("c3-22vcpu").unwrap();
    assert_eq!(c3.v2.unwrap().limits(), limits(120_000, "1800 MiB/s"));
    assert_eq!(&*c3.provenance.of("v2").as_of, "2025-09-04");
    let extreme: Vec<&str> = edition
        .hosts()
        .filter(|host| host.takes.iter().any(|family| family == "hyperdisk-extreme"))
        .map(|host| host.name.as_str())
        .collect();
    assert_eq!(
        extreme,
        [
            "c3-88vcpu",
            "c3-176vcpu",
            "c3d-60vcpu",
            "c3d-90vcpu",
            "c3d-180vcpu",
            "c3d-360vcpu",
            "m1-megamem-96",
            "m1-ultramem-80",
            "m1-ultramem-160",
            "m3-megamem-64",
            "m3-megamem-128",
            "m3-ultramem-64",
            "m3-ultramem-128",
        ]
    );
}

#[test]
fn disks_of_google_share_limits_by_size() {
    let edition = builtin("gcp");
    let check = |family: &str, gib: u64, most: Option<(u64, &str)>, iops: u64, bytes: u64| {
        let most = most.map(|(iops, rate)| PoolLimits { limits: limits(iops, rate), writes: None });
        let got = edition.pooled(family).unwrap().limits(Bytes::gib(gib), most).limits;
        assert_eq!((got.iops.get(), got.throughput.get()), (iops, bytes), "{family} {gib}");
    };
    // 6,000 + 30 x 500, and 240 + 0.48 x 500 MiB/s; a tenth more in operations as measured.
    check("pd-ssd", 500, None, 23_100, 480 << 20);
    check("pd-ssd", 100, None, 9_900, 288 << 20);
    check("pd-ssd", 500, Some((15_000, "800 MiB/s")), 15_000, 480 << 20);
    check("pd-balanced", 1_000, None, 9_900, 420 << 20);
    check("pd-balanced", 400, None, 5_940, 252 << 20);
    check("pd-standard", 1_000, None, 750, 120 << 20);
    check("pd-standard", 1, None, 1, 125_829);
    // 0.75 reads and 1.5 writes a second per GiB, up to those of the machine.
    let writes = |gib: u64, most| {
        let got = edition.pooled("pd-standard").unwrap().limits(Bytes::gib(gib), most);
        got.writes.map(|own| (own.iops.get(), own.throughput.get()))
    };
    assert_eq!(writes(1_000, None), Some((1_500, 120 << 20)));
    let machine = edition.host("n2-standard-8").unwrap().pools["pd-standard"];
    assert_eq!(writes(60_000, Some(machine)), Some((15_000, 400 << 20)));
    assert_eq!(edition.pooled("pd-ssd").unwrap().limits(Bytes::gib(1), None).writes, None);
    assert_eq!(edition.io_unit(), None);
    let balanced = edition.provisioned("hyperdisk-balanced").unwrap();
    let of = |iops, rate: &str| {
        let got = balanced.limits(Bytes::gib(100), Iops::new(iops), rate.parse().ok());
        got.map(|_| ()).map_err(|error| error.to_string())
    };
    // 256 IOPS for each MiB/s at most.
    assert_eq!(of(35_840, "140 MiB/s"), Ok(()));
    assert_eq!(
        of(35_841, "140 MiB/s").unwrap_err(),
        "hyperdisk-balanced: 140 MiB/s cannot be provisioned with 35841 IOPS; from 143364 KiB/s to \
         2400 MiB/s can"
    );
    let extreme = edition.provisioned("hyperdisk-extreme").unwrap();
    let of = |gib, iops| extreme.limits(Bytes::gib(gib), Iops::new(iops), None);
    assert_eq!(of(1_024, 10_000).unwrap(), limits(10_000, "2500 MiB/s"));
    assert!(of(1_024, 2_047).is_err() && of(64, 128).is_ok() && of(64, 76_801).is_err());
}

#[test]
fn prices_have_steps_and_regions() {
    let aws = builtin("aws");
    let book = PriceBook::of(aws.prices(), None, None, None).unwrap().unwrap();
    assert_eq!((book.region(), book.currency()), ("us-east-1", "USD"));
    let io2 = book.unit("io2", Per::Iops).unwrap();
    let of = |iops: u64| io2.of(iops).to_string();
    assert_eq!(of(32_000), "2,080.00");
    // 2,080 + 32,000 x 0.046 + 26,000 x 0.032.
    assert_eq!(of(64_000), "3,552.00");
    assert_eq!(of(90_000), "4,384.00");
    assert_eq!(
        io2.parts(90_000).map(|part| part.units).collect::<Vec<_>>(),
        [32_000, 32_000, 26_000]
    );
    assert_eq!(io2.parts(32_000).count(), 1);
    let gp3 = book.unit("gp3", Per::Mibps).unwrap();
    assert_eq!((gp3.of(125).to_string(), gp3.of(225).to_string()), ("0.00".into(), "4.00".into()));
    assert_eq!(
        gp3.parts(100).map(|part| (part.units, part.free)).collect::<Vec<_>>(),
        [(100, 100)]
    );
    let host = |name: &str| book.host(name).map(|price| price.month.to_string());
    assert_eq!(host("r7i.xlarge").as_deref(), Some("193.16"));
    assert_eq!((host("db.m5.large").as_deref(), host("db.m5.xlarge")), (Some("124.83"), None));

    let postgres = builtin("azure-postgres");
    let of = |region: &str, item: &str| {
        let book = PriceBook::of(postgres.prices(), Some(region), None, None).unwrap().unwrap();
        book.host(item).map(|price| price.month.to_string())
    };
    assert_eq!(of("West US", "B1ms").as_deref(), Some("16.06"));
    assert_eq!(of("East US", "B1ms").as_deref(), Some("12.41"));

    let gcp = of_file("gcp");
    let hosts = gcp.prices().flat_map(|list| &list.rows);
    let hosts = hosts.filter(|row| matches!(row.item, Item::Host(_))).count();
    assert_eq!(hosts, 3);
    let regions: Vec<&str> = gcp.prices().map(|list| list.region.as_str()).collect();
    assert_eq!(regions, ["us-central1", "us-central1", "us-east1"]);
}

#[test]
fn disks_of_google_had_no_base_before_november_2022() {
    let edition = builtin("gcp-2022");
    let check = |family: &str, gib: u64, iops: u64, bytes: u64| {
        let got = edition.pooled(family).unwrap().limits(Bytes::gib(gib), None).limits;
        assert_eq!((got.iops.get(), got.throughput.get()), (iops, bytes), "{family} {gib}");
    };
    check("pd-ssd", 200, 6_000, 96 << 20);
    check("pd-ssd", 500, 15_000, 240 << 20);
    check("pd-balanced", 500, 3_000, 140 << 20);
    check("pd-standard", 1_000, 750, 120 << 20);
    let standard = edition.pooled("pd-standard").unwrap().limits(Bytes::gib(1_000), None);
    assert_eq!(standard.writes, Some(limits(1_500, "120 MiB/s")));
    assert_eq!((edition.series().len(), edition.prices().count()), (0, 0));
}

#[test]
fn machines_are_recognised_by_default_names() {
    let catalog = crate::Catalog::builtin();
    let clouds = |host: &str| {
        let length = |edition: &crate::Edition| {
            edition.host_names().map_or(0, |names| names.match_length(host))
        };
        let best = catalog.editions().map(length).max().filter(|length| *length > 0);
        let own = catalog.editions().filter(|edition| Some(length(edition)) == best);
        own.map(crate::Edition::name).collect::<Vec<_>>()
    };
    assert_eq!(clouds("ec2amaz-2k3pvvl"), ["aws"]);
    assert_eq!(clouds("ip-10-0-3-7.eu-west-1.compute.internal"), ["aws"]);
    assert_eq!(clouds("db1.europe-west4-a.c.sales-1234.internal"), ["gcp"]);
    assert_eq!(clouds("db1.c.example.com.sales-1234.internal"), ["gcp"]);
    // A private zone of anybody.
    assert!(clouds("sql01.corp.internal").is_empty());
    assert_eq!(clouds("db1.westeurope.cloudapp.azure.com"), ["azure-premium-2015", "azure-now"]);
    assert_eq!(clouds("db1"), [""; 0]);
}
