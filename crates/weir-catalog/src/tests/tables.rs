//! The machines and prices of the tables, beside the facts that they are generated from.

use super::{builtin, of_file};
use crate::price::{Item, Price, Term};
use crate::{BurstKind, Catalog, Edition, HostSize, Per, PriceBook};
use std::collections::{BTreeMap, BTreeSet};

/// Number of prices of each cloud that are compared with the facts.
const SAMPLE: usize = 200;

type Row = BTreeMap<String, String>;

/// Returns the rows of a file of facts, if the facts are there.
fn facts(name: &str) -> Option<Vec<Row>> {
    let text = std::fs::read_to_string(weir_needs::shared("facts")?.join(name)).expect(name);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    Some(reader.deserialize().map(|row| row.unwrap()).collect())
}

/// Picks rows evenly over all of them.
fn sample<'a>(rows: &'a [&'a Row]) -> impl Iterator<Item = &'a Row> {
    assert!(rows.len() >= SAMPLE, "{} rows", rows.len());
    (0..SAMPLE).map(|at| rows[at * rows.len() / SAMPLE])
}

fn book<'a>(edition: &'a Edition, region: &str) -> PriceBook<'a> {
    edition.price_book(Some(region), None, None).unwrap().unwrap()
}

/// Returns a price of the facts per month in cents.
fn cents(usd: &str, times: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "cents of a price")]
    let cents = (usd.parse::<f64>().unwrap() * times * 100.0 + 1e-7).round() as i64;
    cents
}

#[track_caller]
fn equal(price: Option<&Price>, expect: i64, row: &Row) {
    let price = price.unwrap_or_else(|| panic!("no price of {row:?}"));
    let micros = i64::try_from(price.month.micros()).unwrap();
    assert_eq!((micros + 5_000) / 10_000, expect, "{row:?}");
    assert!(!price.provenance.source().is_empty() && !price.provenance.as_of().is_empty());
}

#[test]
fn prices_of_azure_machines_equal_the_facts() {
    let (Some(rows), Some(sizes)) = (facts("azure-vm-prices.csv"), facts("azure-vm-sizes.csv"))
    else {
        return;
    };
    let edition = builtin("azure-now");
    let sizes: BTreeSet<&str> = sizes.iter().map(|row| row["size"].as_str()).collect();
    let rows: Vec<&Row> = rows.iter().filter(|row| sizes.contains(row["size"].as_str())).collect();
    for row in sample(&rows) {
        let price = book(&edition, &row["region"]).host(&row["size"]);
        equal(price, cents(&row["usd_hour"], 730.0), row);
        let is_derived = price.unwrap().provenance.source().contains("Windows price");
        assert_eq!(is_derived, row["basis"] == "derived", "{row:?}");
    }
}

#[test]
fn prices_of_azure_disks_equal_the_facts() {
    let Some(rows) = facts("azure-disk-prices.csv") else { return };
    let edition = builtin("azure-now");
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row["unit"] == "disk-month" && row["source"] == "zombiescan")
        .collect();
    for row in sample(&rows) {
        let family = row["product"].to_lowercase().replace(' ', "-");
        let name = match row["redundancy"].as_str() {
            "ZRS" if family == "premium-ssd" => format!("{}-ZRS", row["item"]),
            "ZRS" => format!("{family}-zrs/{}", row["item"]),
            _ => row["item"].clone(),
        };
        equal(book(&edition, &row["region"]).tier(&name), cents(&row["usd"], 1.0), row);
    }
}

#[test]
fn prices_of_aws_equal_the_facts() {
    let (Some(rows), Some(storage)) = (facts("aws-ec2.csv"), facts("aws-storage-prices.csv"))
    else {
        return;
    };
    let edition = builtin("aws");
    let rows: Vec<&Row> = rows.iter().filter(|row| !row["usd_hour_us_east_1"].is_empty()).collect();
    for row in sample(&rows) {
        let price = book(&edition, "us-east-1").host(&row["instance_type"]);
        equal(price, cents(&row["usd_hour_us_east_1"], 730.0), row);
    }
    let is_of_volumes = |row: &&Row| row["service"] == "EBS" && row["unit"] == "GB-month";
    for row in storage.iter().filter(is_of_volumes) {
        let price = book(&edition, &row["region"]).unit(&row["item"], Per::Gib);
        equal(price, cents(&row["usd"], 1.0), row);
    }
}

#[test]
fn prices_of_google_equal_the_facts() {
    let Some(rows) = facts("gcp-prices.csv") else { return };
    let edition = builtin("gcp");
    let rows: Vec<&Row> = rows.iter().collect();
    let mut discounts = 0;
    for row in sample(&rows) {
        let own = book(&edition, &row["region"]);
        if row["kind"] == "disk" {
            let price = own.unit(&row["item"].replace(' ', "-"), Per::Gib);
            equal(price, cents(&row["usd"], 1.0), row);
            continue;
        }
        // The list price of an hour is that of the facts; a month has the discount for its whole use.
        let price = own.host(&row["item"]);
        let hour = price.and_then(|price| price.hour).unwrap().micros();
        assert_eq!(i64::try_from(hour).unwrap(), cents(&row["usd"], 10_000.0), "{row:?}");
        let off = match row["item"].split('-').next().unwrap() {
            "n1" | "m1" => 0.7,
            "n2" => 0.8,
            _ => 1.0,
        };
        discounts += usize::from(off < 1.0);
        equal(price, cents(&row["usd"], 730.0 * off), row);
    }
    assert!(discounts > 10, "{discounts}");
    // The monthly prices that were found apart from the hourly ones.
    for (of, month) in
        [("n2-standard-8", 22_687), ("n1-standard-16", 38_836), ("m1-ultramem-80", 643_155)]
    {
        equal(book(&edition, "us-central1").host(of), month, &Row::new());
    }
}

#[test]
fn azure_machines_have_the_figures_of_the_facts() {
    let Some(rows) = facts("azure-vm-sizes.csv") else { return };
    let (edition, file) = (builtin("azure-now"), of_file("azure-now"));
    let mut of_table = 0;
    for row in rows {
        let own = edition.hosts().filter(|host| host.name == row["size"]);
        let own: Vec<&HostSize> = own.collect();
        assert!(!own.is_empty(), "{row:?}");
        if file.hosts().any(|host| host.name == row["size"]) {
            continue;
        }
        of_table += 1;
        let host = own[0];
        let number = |text: &str| text.parse::<f64>().ok();
        let same =
            |own: Option<f64>, head: &str| assert_eq!(own, number(&row[head]), "{head} {row:?}");
        let gib = |size: weir_units::Bytes| size.get() as f64 / f64::from(1 << 30);
        same(host.vcpus.map(f64::from), "vcpus_available");
        same(host.memory.map(gib), "memory_gib");
        same(host.max_data_disks.map(f64::from), "max_data_disks");
        same(host.cache.map(gib), "cache_gib");
        same(host.temp.and_then(|temp| temp.size).map(gib), "temp_gib");
        for (limits, of) in [(host.uncached, "uncached"), (host.cached, "cached")] {
            same(limits.map(|own| own.iops.get() as f64), &format!("{of}_iops"));
            same(limits.map(|own| own.throughput.get() as f64 / 1e6), &format!("{of}_mbps"));
        }
        let burst = host.uncached.and_then(|own| own.burst);
        if let Some(burst) = burst {
            same(Some(burst.iops.get() as f64), "burst_uncached_iops");
            same(Some(burst.throughput.get() as f64 / 1e6), "burst_uncached_mbps");
            assert!(matches!(burst.kind, BurstKind::Credit { .. }));
        }
    }
    assert_eq!(of_table, 1_234 - 126);
}

/// Every figure of every edition has a source and a date.
#[test]
fn every_figure_has_source_and_date() {
    let mut prices = 0;
    for edition in Catalog::builtin().editions() {
        for host in edition.hosts() {
            for figure in host.figures() {
                let citation = figure.citation;
                let is_cited = !citation.source.is_empty() && !citation.as_of.is_empty();
                assert!(is_cited, "{} {}", host.name, figure.name);
            }
        }
        for region in edition.regions() {
            for list in book(edition, region).lists() {
                for price in &list.rows {
                    let is_cited = !price.provenance.source().is_empty()
                        && !price.provenance.as_of().is_empty();
                    assert!(is_cited, "{region} {}", price.item);
                    prices += 1;
                }
            }
        }
    }
    assert!(prices > 65_000, "{prices}");
}

#[test]
fn nearly_all_machines_and_all_disks_are_priced_in_many_regions() {
    let edition = builtin("azure-now");
    let regions = edition.regions();
    assert_eq!(regions.len(), 59);
    let books: Vec<PriceBook<'_>> = regions.iter().map(|region| book(&edition, region)).collect();
    let known: Vec<&HostSize> = edition.hosts().filter(|host| host.uncached.is_some()).collect();
    let is_priced = |host: &&&HostSize| books.iter().any(|own| own.host(&host.name).is_some());
    let priced = known.iter().filter(is_priced).count();
    assert!(priced * 100 >= known.len() * 95, "{priced} of {}", known.len());
    // Not all regions have zones.
    let zones = books.iter().filter(|own| own.tier("P30-ZRS").is_some()).count();
    assert!(zones >= 15, "{zones}");
    let has_disks = |own: &&PriceBook<'_>| {
        edition
            .tiers()
            .filter(|tier| tier.family != "premium-ssd-zrs")
            .filter(|tier| edition.tier(&tier.name).is_ok_and(|t| t == *tier))
            .all(|tier| own.tier(&tier.name).is_some())
            && own.unit("premium-ssd-v2", Per::Gib).is_some()
    };
    assert!(books.iter().filter(has_disks).count() >= 40);
    for (name, region, least) in [("aws", "us-east-1", 1_300), ("gcp", "us-central1", 450)] {
        let edition = builtin(name);
        let book = book(&edition, region);
        let own = edition.hosts().filter(|host| {
            let is_service = edition.series_of(host).is_some_and(|own| own.service.is_some());
            !is_service && !host.stands_for_others
        });
        let hosts: Vec<&HostSize> = own.collect();
        let priced = hosts.iter().filter(|host| book.host(&host.name).is_some()).count();
        assert!(
            priced >= least && priced * 100 >= hosts.len() * 95,
            "{name}: {priced} of {}",
            hosts.len()
        );
    }
}

#[test]
fn a_machine_of_a_table_is_found_with_its_series_and_conflicts() {
    let edition = builtin("azure-now");
    let host = edition.host("D16s_v5").unwrap();
    assert_eq!((host.series.as_str(), host.vcpus), ("dsv5", Some(16)));
    assert_eq!(edition.series_of(host).unwrap().hosts.len(), 8);
    assert_eq!(&*host.provenance.of("uncached").as_of, "2021-10-20");
    // A constrained size is of its parent's series, with its interface.
    let half = edition.host("E8-4ds_v5").unwrap();
    assert_eq!(
        (half.series.as_str(), half.vcpus, half.interface.is_some()),
        ("edsv5", Some(4), true)
    );
    assert_eq!(half.provenance.notes().last().unwrap(), "4 of the size's 8 vCPUs");
    // Figures that the file of the edition leaves out.
    let filled = edition.host("D2ds_v5").unwrap();
    assert_eq!(filled.cached.unwrap().iops.get(), 9_000);
    assert!(filled.provenance.of("cached.iops").source.contains("temporary disk"));
    assert_eq!(of_file("azure-now").host("D2ds_v5").unwrap().cached, None);
    let conflict = &edition.host("L16s_v2").unwrap().provenance.conflicts()[0];
    assert!(
        conflict.starts_with("uncached mbps: 336 in kubernetes-sigs/azuredisk-csi-driver")
            && conflict.ends_with("(used)"),
        "{conflict}"
    );
    // Names of machines without limits are known.
    let unknown = edition.host("D8as_v7").unwrap();
    assert_eq!((unknown.uncached, unknown.vcpus), (None, Some(8)));
}

#[test]
fn an_instance_takes_as_many_volumes_as_the_facts_say() {
    let (edition, file) = (builtin("aws"), of_file("aws"));
    let volumes = |name: &str| edition.host(name).unwrap().max_data_disks;
    let check = |name, most| assert_eq!(volumes(name), most, "{name}");
    check("d3.8xlarge", Some(3));
    check("g5.48xlarge", Some(9));
    check("r7i.48xlarge", Some(128));
    // One is the root volume, which Azure does not count among the data disks.
    let beside_root = |edition: &Edition, name: &str| {
        edition.host(name).ok().and_then(|host| edition.most_data_disks(host))
    };
    assert_eq!(beside_root(&edition, "d3.8xlarge"), Some(2));
    assert_eq!(beside_root(&builtin("azure-now"), "D8s_v3"), Some(16));
    // The sources have no figures of a retired type but its price, and none of RDS.
    check("f1.2xlarge", None);
    check("db.m5.large", None);
    // The edition's file describes this one without its volumes.
    check("m5.large", Some(27));
    assert_eq!(file.host("m5.large").unwrap().max_data_disks, None);
    let counted = edition.host("m5.large").unwrap().provenance.of("max_data_disks");
    assert!(counted.source.starts_with("getmoto/moto"), "{counted:?}");
    let Some(rows) = facts("aws-ec2.csv") else { return };
    let mut counted = 0;
    for row in rows {
        let most = row["max_ebs_attachments"].parse().ok();
        assert_eq!(volumes(&row["instance_type"]), most, "{row:?}");
        counted += usize::from(most.is_some());
    }
    assert_eq!(counted, 1_373);
}

#[test]
fn reservations_of_ec2_are_a_twelfth_of_the_facts_a_month() {
    let edition = builtin("aws");
    let book = book(&edition, "us-east-1");
    let reserved = |name: &str| {
        let own = book.all(name).map(|(_, price)| price);
        let mut own = own.filter(|price| price.term == Term::ThreeYears);
        own.next().unwrap_or_else(|| panic!("no reservation of {name}"))
    };
    let large = reserved("m5.large");
    assert_eq!((large.month.micros(), large.provenance.as_of()), (26_360_833, "2026-06-09"));
    assert!(large.provenance.notes().iter().any(|note| note.contains("payment option")));
    // A plan pays the price on demand.
    assert_eq!(book.host("m5.large").unwrap().term, Term::OnDemand);
    let Some(folder) = weir_needs::shared("facts") else { return };
    let text = std::fs::read_to_string(folder.join("prices.toml")).unwrap();
    let facts: toml::Table = text.parse().unwrap();
    let rows = facts["aws_ec2_reserved"]["rows"].as_array().unwrap();
    for row in rows {
        let year = row["usd_year"].as_float().unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a price")]
        let micros = (year / 12.0 * 1e6).round() as u64;
        assert_eq!(reserved(row["name"].as_str().unwrap()).month.micros(), micros, "{row}");
    }
    assert_eq!(rows.len(), 64);
}

/// The source has these sizes with the price of Windows, which is 0.0046 per vCPU higher.
#[test]
fn burstable_sizes_without_a_list_price_have_a_derived_one() {
    let edition = builtin("azure-now");
    let derived = |region: &str| {
        let mut all = BTreeMap::new();
        for price in book(&edition, region).lists().iter().flat_map(|list| &list.rows) {
            if price.provenance.source().contains("derived:")
                && let Item::Host(name) = &price.item
            {
                all.insert(name.clone(), price.hour.unwrap().micros());
            }
        }
        all
    };
    let check = |name: &str, vcpus: u64, hour: u64, windows: u64| {
        assert_eq!(derived("eastus").get(name), Some(&hour), "{name}");
        // Prices per hour are rounded, from 4 vCPUs on to a thousandth.
        let own = windows - 4_600 * vcpus;
        assert!(own.abs_diff(hour) <= 600, "{name}: {own}");
    };
    // With the price of the same version of the source for Windows.
    check("Standard_B2ats_v2", 2, 9_400, 18_600);
    check("Standard_B2ps_v2", 2, 67_200, 76_400);
    check("Standard_B4als_v2", 4, 133_000, 152_000);
    check("Standard_B4as_v2", 4, 150_000, 169_000);
    check("Standard_B8pls_v2", 8, 238_000, 275_000);
    check("Standard_B8s_v2", 8, 333_000, 370_000);
    check("Standard_B8ls_v2", 8, 295_000, 332_000);
    check("Standard_B16ps_v2", 16, 538_000, 611_000);
    check("Standard_B16als_v2", 16, 533_000, 606_000);
    check("Standard_B16as_v2", 16, 602_000, 675_000);
    check("Standard_B16s_v2", 16, 666_000, 739_000);
    let counts = ["eastus", "eastus2", "westus2"].map(|region| derived(region).len());
    assert_eq!(counts, [11, 13, 0]);
}

/// The figures of docs/PLAN.md.
#[test]
fn the_share_of_priced_machines_is_as_documented() {
    let edition = builtin("azure-now");
    let all: BTreeSet<&str> = edition.hosts().map(|host| host.name.as_str()).collect();
    let known = edition.hosts().filter(|host| host.uncached.is_some());
    let known: BTreeSet<&str> = known.map(|host| host.name.as_str()).collect();
    assert_eq!((all.len(), known.len()), (1_234, 909));
    let priced = |names: &BTreeSet<&str>, region: &str| {
        let book = book(&edition, region);
        names.iter().filter(|name| book.host(name).is_some()).count()
    };
    assert_eq!((priced(&all, "eastus"), priced(&known, "eastus")), (1_174, 853));
    assert_eq!(priced(&all, "westeurope"), 1_200);
    let shares: Vec<usize> =
        edition.regions().iter().map(|region| priced(&known, region) * 100 / known.len()).collect();
    let at_least = |share: usize| shares.iter().filter(|own| **own >= share).count();
    assert_eq!((at_least(95), at_least(90), at_least(1)), (2, 7, 57));
}

#[test]
fn figures_of_two_pages_and_of_two_price_lists_are_conflicts() {
    let edition = builtin("azure-now");
    let conflicts = edition.host("D96ads_v5").unwrap().provenance.conflicts();
    let has = |begin: &str, end: &str| {
        conflicts.iter().any(|own| own.starts_with(begin) && own.contains(end))
    };
    assert!(has("cached mbps: 3872 in ", " of 2021-10-08 (used), 4000 in "), "{conflicts:?}");
    assert!(has("temp gib: 2400 in ", " of 2026-03-10 (used)"), "{conflicts:?}");
    let edition = builtin("azure-mi-now");
    let price = book(&edition, "eastus").unit("sql-database-hyperscale", Per::Gib).unwrap();
    assert_eq!((price.month.micros(), price.provenance.as_of()), (80_000, "2026-09-11"));
    assert!(edition.conflicts().iter().any(|own| own.contains("0.08 USD") && own.contains("0.25")));
}

#[test]
fn machine_types_of_google_have_the_limits_of_their_vcpus() {
    let edition = builtin("gcp");
    let host = edition.host("n2-highmem-48").unwrap();
    let like = edition.host("n2-32vcpu").unwrap();
    assert_eq!(host.pools, like.pools);
    assert!(like.stands_for_others && !host.stands_for_others);
    assert_eq!((host.vcpus, host.memory), (Some(48), Some(weir_units::Bytes::gib(384))));
    assert!(host.provenance.notes().iter().any(|note| note.contains("those of n2-32vcpu")));
    assert_eq!(&*host.provenance.of("memory").as_of, "2026-07-30");
    assert_eq!(edition.host("c3-standard-22").unwrap().v2, edition.host("c3-22vcpu").unwrap().v2);
    assert!(edition.host("n4-standard-8").unwrap().pools.is_empty());
}

#[test]
fn reservations_and_licences_are_beside_the_price_on_demand() {
    let edition = builtin("azure-mi-now");
    let book = book(&edition, "eastus");
    let vcore = |term| {
        let own = book.all("gp").map(|(_, price)| price);
        let mut own = own.filter(|price| matches!(&price.item, Item::Unit { per: Per::Vcore, .. }));
        own.find(|price| price.term == term).map(|price| price.hour.unwrap().exact().to_string())
    };
    assert_eq!(vcore(Term::OnDemand).as_deref(), Some("0.152218"));
    assert_eq!(vcore(Term::OneYear).as_deref(), Some("0.098973"));
    assert_eq!(vcore(Term::ThreeYears).as_deref(), Some("0.068493"));
    assert_eq!(book.unit("gp", Per::Vcore).unwrap().term, Term::OnDemand);
    assert!(book.unit("gp", Per::Licence).is_some());
    // A licence of all regions.
    assert_eq!(book.unit("sql-server-standard", Per::Licence).unwrap().month.to_string(), "73.00");
}

#[test]
fn an_unknown_region_is_refused_with_the_nearest() {
    let error = builtin("azure-now").price_book(Some("westeurop"), None, None).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("did you mean \"westeurope\"?"), "{error}");
    assert!(error.contains("59 regions in USD: weir prices --regions azure-now"), "{error}");
}

#[test]
fn cells_are_found_in_any_order() {
    let record = |cells: [&str; 3]| csv::StringRecord::from(cells.to_vec());
    let (heads, row) =
        (crate::tables::Heads::index(&record(["a", "b", "c"])), record(["1", "2", "3"]));
    for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "b", "a"], ["c", "c", "none"]] {
        let got = order.map(|head| heads.cell(&row, head));
        let expect = order.map(|head| match head {
            "a" => "1",
            "b" => "2",
            "c" => "3",
            _ => "",
        });
        assert_eq!(got, expect);
    }
}
