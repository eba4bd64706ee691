//! Premium SSD v2 and Ultra at the boundaries of their rules.

use super::builtin;
use crate::Catalog;
use weir_units::{Bytes, BytesPerSec, Iops};

/// Asks for `iops` and `throughput` ("" asks for nothing).
#[track_caller]
fn check(
    family: &str,
    size: &str,
    iops: &str,
    throughput: &str,
    expect: Result<(u64, &str), &str>,
) {
    let edition = builtin("azure-now");
    let family = edition.provisioned(family).unwrap();
    let iops = (!iops.is_empty()).then(|| iops.parse().unwrap());
    let throughput = (!throughput.is_empty()).then(|| throughput.parse().unwrap());
    let got = family.limits(size.parse().unwrap(), iops, throughput);
    let expect = expect.map(|(iops, rate)| (iops, rate.parse::<BytesPerSec>().unwrap()));
    assert_eq!(
        got.map(|l| (l.iops.get(), l.throughput)).map_err(|e| e.to_string()),
        expect.map_err(ToString::to_string)
    );
}

#[test]
fn v2_includes_a_minimum_and_grows_with_its_size() {
    let v2 = "premium-ssd-v2";
    check(v2, "1 GiB", "", "", Ok((3_000, "125 MB/s")));
    check(v2, "65536 GiB", "", "", Ok((3_000, "125 MB/s")));
    check(v2, "6 GiB", "3000", "", Ok((3_000, "125 MB/s")));
    check(
        v2,
        "6 GiB",
        "3001",
        "",
        Err(
            "premium-ssd-v2: 3001 IOPS cannot be provisioned at 6 GiB; from 3000 IOPS to 3000 IOPS can",
        ),
    );
    check(v2, "7 GiB", "3500", "", Ok((3_500, "125 MB/s")));
    check(
        v2,
        "7 GiB",
        "3501",
        "",
        Err(
            "premium-ssd-v2: 3501 IOPS cannot be provisioned at 7 GiB; from 3000 IOPS to 3500 IOPS can",
        ),
    );
    check(
        v2,
        "100 GiB",
        "2999",
        "",
        Err(
            "premium-ssd-v2: 2999 IOPS cannot be provisioned at 100 GiB; from 3000 IOPS to 50000 IOPS can",
        ),
    );
    check(v2, "159 GiB", "79500", "", Ok((79_500, "125 MB/s")));
    check(
        v2,
        "159 GiB",
        "79501",
        "",
        Err(
            "premium-ssd-v2: 79501 IOPS cannot be provisioned at 159 GiB; from 3000 IOPS to 79500 IOPS can",
        ),
    );
    check(v2, "160 GiB", "80000", "", Ok((80_000, "125 MB/s")));
    check(
        v2,
        "1024 GiB",
        "80001",
        "",
        Err(
            "premium-ssd-v2: 80001 IOPS cannot be provisioned at 1 TiB; from 3000 IOPS to 80000 IOPS can",
        ),
    );
}

#[test]
fn v2_throughput_is_a_quarter_of_its_iops_at_most() {
    let v2 = "premium-ssd-v2";
    check(v2, "1 GiB", "", "750 MB/s", Ok((3_000, "750 MB/s")));
    check(
        v2,
        "1 GiB",
        "",
        "750001 KB/s",
        Err(
            "premium-ssd-v2: 750001 KB/s cannot be provisioned with 3000 IOPS; from 125 MB/s to 750 MB/s can",
        ),
    );
    check(v2, "16 GiB", "7999", "1999750 KB/s", Ok((7_999, "1999750 KB/s")));
    check(v2, "16 GiB", "8000", "2000 MB/s", Ok((8_000, "2000 MB/s")));
    check(
        v2,
        "160 GiB",
        "80000",
        "2001 MB/s",
        Err(
            "premium-ssd-v2: 2001 MB/s cannot be provisioned with 80000 IOPS; from 125 MB/s to 2000 MB/s can",
        ),
    );
    check(
        v2,
        "16 GiB",
        "",
        "124 MB/s",
        Err(
            "premium-ssd-v2: 124 MB/s cannot be provisioned with 3000 IOPS; from 125 MB/s to 750 MB/s can",
        ),
    );
}

#[test]
fn sizes_outside_of_the_offer_are_refused() {
    check(
        "premium-ssd-v2",
        "512 MiB",
        "",
        "",
        Err("premium-ssd-v2: 512 MiB is not offered; sizes go from 1 GiB to 64 TiB"),
    );
    check(
        "premium-ssd-v2",
        "65537 GiB",
        "",
        "",
        Err("premium-ssd-v2: 65537 GiB is not offered; sizes go from 1 GiB to 64 TiB"),
    );
    check(
        "premium-ssd-v2",
        "1536 MiB",
        "",
        "",
        Err(
            "premium-ssd-v2: 1536 MiB is not offered; sizes go in steps of 1 GiB, the next is 2 GiB",
        ),
    );
    check(
        "ultra",
        "3 GiB",
        "1000",
        "1 MB/s",
        Err("ultra: 3 GiB is not offered; sizes go from 4 GiB to 64 TiB"),
    );
}

#[test]
fn ultra_includes_nothing_and_goes_by_size() {
    let ultra = "ultra";
    check(ultra, "4 GiB", "4000", "1000 MB/s", Ok((4_000, "1000 MB/s")));
    check(ultra, "4 GiB", "100", "1 MB/s", Ok((100, "1 MB/s")));
    check(
        ultra,
        "4 GiB",
        "",
        "",
        Err(
            "ultra: state the iops; nothing is included, from 100 IOPS to 4000 IOPS can be provisioned",
        ),
    );
    check(
        ultra,
        "4 GiB",
        "400",
        "",
        Err(
            "ultra: state the throughput; nothing is included, from 1 MB/s to 100 MB/s can be provisioned",
        ),
    );
    check(
        ultra,
        "4 GiB",
        "99",
        "1 MB/s",
        Err("ultra: 99 IOPS cannot be provisioned at 4 GiB; from 100 IOPS to 4000 IOPS can"),
    );
    check(
        ultra,
        "4 GiB",
        "4001",
        "1 MB/s",
        Err("ultra: 4001 IOPS cannot be provisioned at 4 GiB; from 100 IOPS to 4000 IOPS can"),
    );
    check(ultra, "400 GiB", "400000", "10000 MB/s", Ok((400_000, "10000 MB/s")));
    check(
        ultra,
        "65536 GiB",
        "400001",
        "1 MB/s",
        Err("ultra: 400001 IOPS cannot be provisioned at 64 TiB; from 100 IOPS to 400000 IOPS can"),
    );
    check(
        ultra,
        "64 GiB",
        "39999",
        "10000 MB/s",
        Err(
            "ultra: 10000 MB/s cannot be provisioned with 39999 IOPS; from 1 MB/s to 9999750 KB/s can",
        ),
    );
}

proptest::proptest! {
    /// The rule of the page in its own words: at most `min(80000, max(3000, 500 x GiB))`
    /// IOPS and `min(2000, max(125, IOPS / 4))` MB/s, at least 3,000 and 125.
    #[test]
    fn v2_accepts_exactly_what_the_rule_allows(
        gib in 1_u64..200,
        iops in 2_900_u64..81_000,
        kilobytes in 124_000_u64..2_002_000,
    ) {
        let catalog = Catalog::builtin();
        let v2 = catalog.edition("azure-now").unwrap().provisioned("premium-ssd-v2").unwrap();
        let rate = BytesPerSec::new(kilobytes * 1_000);
        let got = v2.limits(Bytes::gib(gib), Iops::new(iops), rate);
        let iops_fit = (3_000..=80_000.min(3_000.max(500 * gib))).contains(&iops);
        // A quarter MB/s for each IOPS, in kilobytes.
        let rate_fits = (125_000..=2_000_000.min(125_000.max(iops * 250))).contains(&kilobytes);
        proptest::prop_assert_eq!(got.is_ok(), iops_fit && rate_fits, "{:?}", got);
    }

    #[test]
    fn no_size_and_rate_overflow(size: u64, iops in 1_u64..) {
        let catalog = Catalog::builtin();
        let ultra = catalog.edition("azure-now").unwrap().provisioned("ultra").unwrap();
        let gib = u128::from(size) * 1_000 / (1 << 30);
        let expect = u64::try_from(gib.clamp(100, 400_000)).unwrap();
        proptest::prop_assert_eq!(ultra.max_iops(Bytes::new(size)).get(), expect);
        let expect = (u128::from(iops) * 250_000).clamp(1_000_000, 10_000_000_000);
        let got = ultra.max_throughput(Iops::new(iops).unwrap());
        proptest::prop_assert_eq!(u128::from(got.get()), expect);
    }
}
