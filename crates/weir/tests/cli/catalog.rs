//! Prices by region, and editions from downloaded files.

use crate::common::{Place, run};
use serde_json::{Value, json};

fn said(place: &Place, args: &[&str]) -> String {
    let (stdout, stderr, code) = run(place.weir(args));
    assert_eq!(code, Some(0), "{args:?}: {stderr}");
    stdout
}

fn prices(place: &Place, args: &[&str]) -> Vec<Value> {
    let text = said(place, &[&["prices"], args, &["-o", "json"]].concat());
    let value: Value = serde_json::from_str(&text).expect("JSON");
    value.as_array().expect("rows").clone()
}

#[test]
fn a_machine_and_a_disk_have_prices_by_region() {
    let place = Place::new();
    let rows = prices(&place, &["D16s_v5", "--region", "westeurope"]);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(
        (&row["item"], &row["per"], &row["os"]),
        (&json!("Standard_D16s_v5"), &json!("machine"), &json!("linux"))
    );
    assert_eq!(
        (&row["hour"], &row["month"], &row["currency"]),
        (&json!(0.92), &json!(671.6), &json!("USD"))
    );
    assert_eq!((&row["as_of"], &row["in_use"]), (&json!("2026-06-18"), &json!("yes")));
    assert!(prices(&place, &["P30", "--region", "all", "--edition", "azure-now"]).len() > 40);
    // The newer price is in use, the older one stays beside it.
    let p15: Vec<Value> = prices(&place, &["P15", "--edition", "azure-now"]);
    let got = p15.iter().map(|row| (&row["month"], &row["in_use"]));
    assert_eq!(
        got.collect::<Vec<_>>(),
        [(&json!(38.012142), &json!("yes")), (&json!(38.02), &json!("no"))]
    );
    let old = "more than a year ago: check it before you decide";
    let text = said(&place, &["prices", "P15"]);
    assert!(!text.contains(old), "the old price is not in use: {text}");
    let text = said(&place, &["prices", "io2"]);
    let words = format!("the price of io2 per GiB in us-east-1 is of 2024-07-01, {old}");
    assert!(text.contains(&words), "{text}");
    let text = said(&place, &["prices", "P10", "--edition", "azure-premium-2015"]);
    assert!(text.contains("the price of P10 is of 2015-2016, more than a year ago"), "{text}");
    let csv = said(&place, &["prices", "--regions", "azure-now", "-o", "csv"]);
    assert!(
        csv.starts_with("region,edition\nEast US,azure-now\n") && csv.lines().count() > 55,
        "{csv}"
    );
    let (_, said_why, code) = run(place.weir(&["prices", "--regions", "gcp-2022"]));
    assert!(code == Some(2) && said_why.contains("gcp-2022 has no prices"), "{said_why}");
    let shown = said(&place, &["catalog", "show", "D16s_v5"]);
    assert!(shown.contains("560.64"), "{shown}");
}

#[test]
fn reservations_are_listed_and_not_used() {
    let place = Place::new();
    let rows = prices(&place, &["gp", "--region", "eastus", "--edition", "azure-mi-now"]);
    let of = |term: &str| {
        let mut rows = rows.iter().filter(|row| row["per"] == "vCore");
        rows.find(|row| row["term"] == term).map(|row| (row["hour"].clone(), row["in_use"].clone()))
    };
    assert_eq!(of("on demand"), Some((json!(0.152_218), json!("yes"))));
    assert_eq!(of("1 year"), Some((json!(0.098_973), Value::Null)));
    assert_eq!(of("3 years"), Some((json!(0.068_493), Value::Null)));
}

#[test]
fn a_price_that_is_not_known_says_where_it_is() {
    let place = Place::new();
    let refused = |args: &[&str], expect: &str| {
        let (stdout, stderr, code) = run(place.weir(&[&["prices"], args].concat()));
        assert!(code == Some(2) && stdout.is_empty() && stderr.contains(expect), "{stderr}");
    };
    refused(&["D16s_v5", "--region", "westeurop"], "did you mean \"westeurope\"?");
    refused(&["D16s_v55"], "did you mean \"Standard_D16s_v5\"?");
    refused(
        &["m5.large", "--region", "eu-west-1"],
        "no price of m5.large is known in eu-west-1; there are in us-east-1",
    );
    refused(&["EC128ies_v5"], "weir catalog update");
}

#[test]
fn a_plan_has_the_prices_of_its_region() {
    let place = Place::new();
    let plan = |more: &[&str]| {
        let args = [
            "plan",
            "--iops",
            "5000",
            "--size",
            "1TiB",
            "--host",
            "D16s_v5",
            "--disks",
            "premium-ssd",
        ];
        said(&place, &[&args, more].concat())
    };
    // 560.64 and 135.17; 671.60 and 148.68.
    assert!(plan(&[]).contains("695.81 USD"), "{}", plan(&[]));
    let europe = plan(&["--region", "westeurope"]);
    assert!(europe.contains("USD a month") && !europe.contains("695.81"), "{europe}");
    place.file(
        "there.toml",
        "edition = \"azure-now\"\nregion = \"westeurope\"\nhost = { size = \"D16s_v5\" }\n[[volume]]\n\
         name = \"data\"\ntier = \"P30\"\n[[file]]\nname = \"f\"\nrole = \"data\"\nsize = \"400 GiB\"\non = \"data\"\n",
    );
    let kept = said(&place, &["plan", "--keep", "there.toml", "--iops", "5000", "--size", "1TiB"]);
    assert!(kept.contains("cost: 820.28 USD a month at present"), "{kept}");
    place.file(
        "nowhere.toml",
        "edition = \"azure-now\"\nregion = \"mars\"\nhost = { size = \"D16s_v5\" }\n",
    );
    let (_, stderr, code) = run(place.weir(&["layout", "check", "nowhere.toml"]));
    assert!(
        code == Some(2) && stderr.contains("there are no prices of region \"mars\""),
        "{stderr}"
    );
    let (_, stderr, _) = run(place.weir(&["prices", "P30", "--region", "mars"]));
    assert!(stderr.contains("East US"), "names regions of the cloud that sells P30: {stderr}");
    assert!(!stderr.contains("--prices") && !stderr.contains("(linux)"), "{stderr}");
    let (_, stderr, code) = run(place.weir(&["prices", "azure-now", "--region", "mars"]));
    assert!(code == Some(2) && stderr.contains("unknown name \"azure-now\""), "{stderr}");
}

/// With prices of one machine in ten, this plan cost 4,288 USD a month.
#[test]
fn the_present_edition_prices_its_machines() {
    let place = Place::new();
    let args = ["plan", "--iops", "40000", "--size", "4TiB", "--throughput", "600 MB/s"];
    let text = said(&place, &args);
    let first = text.lines().next().unwrap_or_default();
    let headline = first.split(';').next().unwrap_or_default();
    let (_, price) = headline.rsplit_once(": ").expect("a price");
    let month: f64 = price.replace(" USD a month", "").replace(',', "").parse().expect("a price");
    assert!(month < 2_000.0, "{first}");
}

const SKUS: &str = r#"[{"name": "Standard_D8s_v9", "resourceType": "virtualMachines", "capabilities": [
  {"name": "vCPUs", "value": "8"}, {"name": "MemoryGB", "value": "32"}, {"name": "MaxDataDiskCount", "value": "16"},
  {"name": "PremiumIO", "value": "True"}, {"name": "UncachedDiskIOPS", "value": "40000"},
  {"name": "UncachedDiskBytesPerSecond", "value": "800000000"}]}]"#;

const PRICES: &str = r#"{"Items": [{"currencyCode": "USD", "retailPrice": 0.05, "armRegionName": "eastus",
  "effectiveStartDate": "2026-11-01T00:00:00Z", "productName": "Virtual Machines Dsv9 Series", "skuName": "D8s v9",
  "meterName": "D8s v9", "serviceName": "Virtual Machines", "armSkuName": "Standard_D8s_v9", "unitOfMeasure": "1 Hour",
  "type": "Consumption"}]}"#;

#[test]
fn downloaded_files_make_an_edition_to_plan_with() {
    let place = Place::new();
    place.file("skus.json", SKUS);
    place.file("prices.json", PRICES);
    let update =
        ["catalog", "update", "azure-now", "skus.json", "prices.json", "--as-of", "2026-11-25"];
    let (_, stderr, code) = run(place.weir(&[&update[..], &["--out", "mine.toml"]].concat()));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("skus.json: Azure SKUs, 1 machines, 0 prices"), "{stderr}");
    let (stdout, _, _) = run(place.weir(&update));
    assert_eq!(stdout, std::fs::read_to_string(place.path("mine.toml")).expect("a file"));
    let plan = [
        "--catalog",
        "mine.toml",
        "plan",
        "--edition",
        "azure-now-updated",
        "--iops",
        "5000",
        "--size",
        "1TiB",
        "--vcpus",
        "8",
    ];
    let text = said(&place, &plan);
    assert!(text.starts_with("plan: Standard_D8s_v9: data on "), "{text}");
    place.file("broken.json", &SKUS.replace("40000", "many"));
    let (_, stderr, code) = run(place.weir(&["catalog", "update", "azure-now", "broken.json"]));
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("broken.json: Standard_D8s_v9: UncachedDiskIOPS is no number: \"many\""),
        "{stderr}"
    );
}
