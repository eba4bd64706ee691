//! Editions from downloaded files: each format, the round trip through TOML, and malformed input.

use crate::price::Term;
use crate::{Catalog, CatalogError, Contents, Edition, Per, Update};
use weir_units::Bytes;

const AS_OF: &str = "2026-11-25";

const RETAIL: &str = r#"{"BillingCurrency": "USD", "Items": [
  {"currencyCode": "USD", "retailPrice": 0.8, "armRegionName": "westeurope", "effectiveStartDate": "2026-10-01T00:00:00Z",
   "productName": "Virtual Machines Dsv5 Series", "skuName": "D16s v5", "meterName": "D16s v5", "serviceName": "Virtual Machines",
   "armSkuName": "Standard_D16s_v5", "unitOfMeasure": "1 Hour", "type": "Consumption"},
  {"currencyCode": "USD", "retailPrice": 4380.0, "armRegionName": "westeurope", "effectiveStartDate": "2026-10-01T00:00:00Z",
   "productName": "Virtual Machines Dsv5 Series", "skuName": "D16s v5", "meterName": "D16s v5", "serviceName": "Virtual Machines",
   "armSkuName": "Standard_D16s_v5", "unitOfMeasure": "1 Hour", "type": "Reservation", "reservationTerm": "1 Year"},
  {"currencyCode": "USD", "retailPrice": 0.1, "armRegionName": "westeurope", "productName": "Virtual Machines Dsv5 Series",
   "skuName": "D16s v5 Spot", "meterName": "D16s v5 Spot", "serviceName": "Virtual Machines", "armSkuName": "Standard_D16s_v5",
   "unitOfMeasure": "1 Hour", "type": "Consumption"}], "NextPageLink": null, "Count": 3}"#;

const RETAIL_DISK: &str = r#"{"Items": [
  {"currencyCode": "USD", "retailPrice": 140.0, "armRegionName": "westeurope", "effectiveStartDate": "2026-10-01T00:00:00Z",
   "productName": "Premium SSD Managed Disks", "skuName": "P30 LRS", "meterName": "P30 LRS Disk", "serviceName": "Storage",
   "unitOfMeasure": "1/Month", "type": "Consumption"}], "Count": 1}"#;

const SKUS: &str = r#"[
  {"name": "Standard_D16s_v5", "resourceType": "virtualMachines", "family": "standardDSv5Family", "capabilities": [
    {"name": "vCPUs", "value": "16"}, {"name": "MemoryGB", "value": "64"}, {"name": "MaxDataDiskCount", "value": "32"},
    {"name": "PremiumIO", "value": "True"}, {"name": "UncachedDiskIOPS", "value": "26000"},
    {"name": "UncachedDiskBytesPerSecond", "value": "610000000"}, {"name": "CombinedTempDiskAndCachedIOPS", "value": "77000"},
    {"name": "CombinedTempDiskAndCachedReadBytesPerSecond", "value": "485000000"}]},
  {"name": "Standard_D8s_v9", "resourceType": "virtualMachines", "capabilities": [
    {"name": "vCPUs", "value": "8"}, {"name": "MemoryGB", "value": "32.5"}, {"name": "PremiumIO", "value": "True"},
    {"name": "CachedDiskBytes", "value": "214748364800"}]},
  {"name": "Standard_D2s_v3", "resourceType": "virtualMachines", "capabilities": [
    {"name": "PremiumIO", "value": "True"}, {"name": "CombinedTempDiskAndCachedIOPS", "value": "3900"},
    {"name": "CombinedTempDiskAndCachedReadBytesPerSecond", "value": "31000000"}]},
  {"name": "Standard_D8_v9", "resourceType": "virtualMachines", "capabilities": [{"name": "PremiumIO", "value": "False"}]},
  {"name": "Premium_LRS", "resourceType": "disks", "capabilities": []}]"#;

fn read<'a>(
    base: &'a Edition,
    texts: &[&str],
) -> Result<(Update<'a>, Vec<Contents>), CatalogError> {
    let mut update = Update::new(base);
    let contents: Result<Vec<Contents>, CatalogError> =
        texts.iter().map(|text| update.read("file.json", text, AS_OF)).collect();
    contents.map(|contents| (update, contents))
}

/// Writes an update and reads it into a catalog.
fn round_trip(base: &str, texts: &[&str]) -> Edition {
    let mut catalog = Catalog::builtin();
    let (update, _) = read(catalog.edition(base).unwrap(), texts).unwrap();
    let text = update.toml("mine").unwrap();
    let edition =
        Edition::from_toml("mine.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    catalog.add(edition).unwrap_or_else(|error| panic!("{error}\n{text}"));
    catalog.edition("mine").unwrap().clone()
}

#[track_caller]
fn month(edition: &Edition, region: &str, name: &str) -> (String, String) {
    let book = edition.price_book(Some(region), None, None).unwrap().unwrap();
    let price = book.host(name).or_else(|| book.tier(name)).unwrap();
    (price.month.to_string(), price.provenance.as_of().to_owned())
}

#[test]
fn azure_prices_and_machines_come_before_those_of_the_edition() {
    let edition = round_trip("azure-now", &[RETAIL, RETAIL_DISK, SKUS]);
    assert_eq!(month(&edition, "westeurope", "D16s_v5"), ("584.00".into(), "2026-10-01".into()));
    assert_eq!(month(&edition, "westeurope", "P30"), ("140.00".into(), "2026-10-01".into()));
    // Other prices stay, and so does the region that applies by default.
    assert_eq!(month(&edition, "eastus", "D16s_v5").0, "560.64");
    let book = edition.price_book(None, None, None).unwrap().unwrap();
    assert_eq!(book.region(), "East US");
    let book = edition.price_book(Some("westeurope"), None, None).unwrap().unwrap();
    let reserved = book.all("Standard_D16s_v5").find(|(_, price)| price.term == Term::OneYear);
    assert_eq!(reserved.unwrap().1.month.to_string(), "365.00");

    let host = edition.host("D16s_v5").unwrap();
    let uncached = host.uncached.unwrap();
    assert_eq!((uncached.iops.get(), uncached.throughput.get()), (26_000, 610_000_000));
    // A list of sizes has no bursts; the edition's is kept.
    assert_eq!(uncached.burst.unwrap().iops.get(), 40_000);
    assert_eq!(host.cached.unwrap().iops.get(), 77_000);
    assert_eq!(&*host.provenance.of("uncached.iops").as_of, AS_OF);
    assert_eq!(&*host.provenance.of("memory").as_of, "2026-03-17");
    // The bursts that stay have their own sources.
    let base = super::builtin("azure-now");
    let before = base.host("D16s_v5").unwrap();
    for figure in ["uncached.burst", "uncached.burst.iops"] {
        assert_eq!(host.provenance.of(figure), before.provenance.of(figure));
    }
    let own = edition.host("D2s_v3").unwrap();
    let before = base.host("D2s_v3").unwrap();
    assert_eq!(own.cached.unwrap().iops.get(), 3_900);
    assert_eq!(own.cached.unwrap().burst.unwrap().iops.get(), 4_000);
    assert_eq!(&*own.provenance.of("cached").as_of, AS_OF);
    assert_eq!(own.provenance.of("cached.burst"), before.provenance.of("cached.burst"));
    assert!(host.provenance.history()[0].starts_with("uncached: 25600 IOPS and 600 MB/s in "));
    let new = edition.host("D8s_v9").unwrap();
    assert_eq!((new.series.as_str(), new.vcpus), ("dsv9", Some(8)));
    assert_eq!((new.memory, new.cache), (Some(Bytes::mib(33_280)), Some(Bytes::gib(200))));
    assert!(edition.host("D8_v9").is_err());
    assert!(edition.tier("P30").is_ok() && edition.latency("premium-ssd").is_some());
}

#[test]
fn pages_come_one_behind_the_other_in_an_array_or_as_csv() {
    let base = super::builtin("azure-now");
    let of = |text: &str| read(&base, &[text]).unwrap().1[0];
    assert_eq!((of(RETAIL).prices, of(RETAIL).machines), (2, 0));
    assert_eq!(of(&format!("{RETAIL}\n{RETAIL_DISK}\n")).prices, 3);
    assert_eq!(of(&format!("\u{feff}[{RETAIL}, {RETAIL_DISK}]")).prices, 3);
    let csv = "CurrencyCode,retailPrice,armRegionName,effectiveStartDate,productName,skuName,meterName,\
               serviceName,armSkuName,unitOfMeasure,type,tierMinimumUnits\n\
               USD,0.8,westeurope,2026-10-01T00:00:00Z,\"Virtual Machines, Dsv5\",D16s v5,D16s v5,\
               Virtual Machines,Standard_D16s_v5,1 Hour,Consumption,0\n";
    assert_eq!(of(csv).prices, 1);
    let edition = round_trip("azure-now", &[csv]);
    assert_eq!(month(&edition, "westeurope", "D16s_v5").0, "584.00");
}

const TYPES: &str = r#"{"InstanceTypes": [
  {"InstanceType": "m5.large", "VCpuInfo": {"DefaultVCpus": 2}, "MemoryInfo": {"SizeInMiB": 8192},
   "EbsInfo": {"MaximumEbsAttachments": 28, "EbsOptimizedInfo": {"BaselineBandwidthInMbps": 650, "BaselineIops": 3600,
     "MaximumBandwidthInMbps": 4750, "MaximumIops": 20000}}},
  {"InstanceType": "m9i.large", "VCpuInfo": {"DefaultVCpus": 2}, "MemoryInfo": {"SizeInMiB": 8192},
   "EbsInfo": {"MaximumEbsAttachments": 32, "EbsOptimizedInfo": {"BaselineBandwidthInMbps": 1000, "BaselineIops": 5000,
     "MaximumBandwidthInMbps": 10000, "MaximumIops": 40000}}},
  {"InstanceType": "t1.micro", "VCpuInfo": {"DefaultVCpus": 1}, "MemoryInfo": {"SizeInMiB": 627}}]}"#;

const OFFER: &str = r#"{"offerCode": "AmazonEC2", "publicationDate": "2026-11-01T10:00:00Z",
  "products": {
    "A": {"sku": "A", "attributes": {"instanceType": "m9i.large", "regionCode": "eu-west-1", "operatingSystem": "Linux",
      "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used", "licenseModel": "No License required"}},
    "B": {"sku": "B", "attributes": {"instanceType": "m9i.large", "regionCode": "eu-west-1", "operatingSystem": "Linux",
      "tenancy": "Dedicated", "preInstalledSw": "NA", "capacitystatus": "Used"}},
    "C": {"sku": "C", "attributes": {"volumeApiName": "io2", "regionCode": "eu-west-1", "group": "EBS IOPS"}},
    "D": {"sku": "D", "attributes": {"volumeApiName": "gp3", "regionCode": "eu-west-1"}}},
  "terms": {
    "OnDemand": {
      "A": {"A.1": {"priceDimensions": {"A.1.1": {"unit": "Hrs", "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": "0.1000000000"}}}}},
      "B": {"B.1": {"priceDimensions": {"B.1.1": {"unit": "Hrs", "beginRange": "0", "pricePerUnit": {"USD": "9"}}}}},
      "C": {"C.1": {"priceDimensions": {
        "C.1.1": {"unit": "IOPS-Mo", "beginRange": "32000", "pricePerUnit": {"USD": "0.05"}},
        "C.1.2": {"unit": "IOPS-Mo", "beginRange": "0", "pricePerUnit": {"USD": "0.072"}}}}},
      "D": {"D.1": {"priceDimensions": {"D.1.1": {"unit": "GB-Mo", "beginRange": "0", "pricePerUnit": {"USD": "0.088"}}}}}},
    "Reserved": {
      "A": {"A.2": {"termAttributes": {"LeaseContractLength": "3yr", "PurchaseOption": "No Upfront", "OfferingClass": "standard"},
          "priceDimensions": {"A.2.1": {"unit": "Hrs", "beginRange": "0", "pricePerUnit": {"USD": "0.05"}}}},
        "A.3": {"termAttributes": {"LeaseContractLength": "1yr", "PurchaseOption": "All Upfront", "OfferingClass": "standard"},
          "priceDimensions": {"A.3.1": {"unit": "Hrs", "beginRange": "0", "pricePerUnit": {"USD": "0"}}}}}}}}"#;

#[test]
fn types_and_offers_of_aws_are_read() {
    let edition = round_trip("aws", &[TYPES, OFFER]);
    let large = edition.host("m5.large").unwrap().uncached.unwrap();
    assert_eq!((large.iops.get(), large.throughput.get()), (3_600, 81_250_000));
    assert_eq!(large.burst.unwrap().iops.get(), 20_000);
    let new = edition.host("m9i.large").unwrap();
    let uncached = new.uncached.unwrap();
    assert_eq!((new.series.as_str(), uncached.throughput.get()), ("m9i", 125_000_000));
    assert_eq!(uncached.burst.unwrap().throughput.get(), 1_250_000_000);
    assert_eq!(edition.host("t1.micro").unwrap().uncached, None);
    let volumes = |name| edition.host(name).unwrap().max_data_disks;
    assert_eq!((volumes("m5.large"), volumes("m9i.large")), (Some(28), Some(32)));
    let counted = &edition.host("m5.large").unwrap().provenance;
    assert_eq!(&*counted.of("max_data_disks").as_of, AS_OF);
    // A type that the file does not count keeps the edition's number.
    assert_eq!(volumes("t1.micro"), super::builtin("aws").host("t1.micro").unwrap().max_data_disks);
    assert_eq!(month(&edition, "eu-west-1", "m9i.large"), ("73.00".into(), "2026-11-01".into()));
    let book = edition.price_book(Some("eu-west-1"), None, None).unwrap().unwrap();
    assert_eq!(book.unit("io2", Per::Iops).unwrap().of(33_000).to_string(), "2,354.00");
    assert_eq!(book.unit("gp3", Per::Gib).unwrap().month.to_string(), "0.09");
    let terms = book.all("m9i.large").map(|(_, price)| price.term);
    assert_eq!(terms.collect::<Vec<_>>(), [Term::OnDemand, Term::ThreeYears]);
}

const MACHINE_TYPES: &str = r#"[
  {"kind": "compute#machineType", "name": "n2-standard-8", "guestCpus": 8, "memoryMb": 32768, "zone": "us-central1-a"},
  {"kind": "compute#machineType", "name": "n2-standard-8", "guestCpus": 8, "memoryMb": 32768, "zone": "us-central1-b"},
  {"kind": "compute#machineType", "name": "n2-shared-lssd", "guestCpus": 2, "memoryMb": 4096, "zone": "us-central1-a"},
  {"kind": "compute#machineType", "name": "e2-medium", "guestCpus": 2, "memoryMb": 4096, "zone": "us-central1-a"},
  {"kind": "compute#machineType", "name": "n9-standard-4", "guestCpus": 4, "memoryMb": 16384, "zone": "us-central1-a"}]"#;

fn google_skus() -> String {
    let sku = |id: &str, description: &str, usage: &str, nanos: u64| {
        format!(
            r#"{{"skuId": "{id}", "description": "{description}", "category": {{"usageType": "{usage}"}},
               "serviceRegions": ["us-central1", "us-east1"], "pricingInfo": [{{"effectiveTime": "2026-11-20T00:00:00Z",
               "pricingExpression": {{"usageUnit": "h", "tieredRates": [{{"startUsageAmount": 0,
               "unitPrice": {{"currencyCode": "USD", "units": "0", "nanos": {nanos}}}}}]}}}}]}}"#
        )
    };
    let all = [
        sku("AAAA", "N2 Instance Core running in Americas", "OnDemand", 31_611_000),
        sku("BBBB", "N2 Instance Ram running in Americas", "OnDemand", 4_237_000),
        sku("CCCC", "Spot Preemptible N2 Instance Core running in Americas", "Preemptible", 1),
        sku("DDDD", "N9 Instance Core running in Americas", "OnDemand", 40_000_000),
        sku("EEEE", "N9 Instance Ram running in Americas", "OnDemand", 5_000_000),
        sku("FFFF", "SSD backed PD Capacity", "OnDemand", 180_000_000),
        sku("HHHH", "E2 Instance Core running in Americas", "OnDemand", 21_811_590),
        sku("IIII", "E2 Instance Ram running in Americas", "OnDemand", 2_923_530),
        sku("JJJJ", "Hyperdisk Balanced IOPS", "OnDemand", 7_000_000),
        sku("GGGG", "N2 Custom Extended Instance Ram running in Americas", "OnDemand", 9),
    ];
    format!(r#"{{"skus": [{}], "nextPageToken": ""}}"#, all.join(","))
}

#[test]
fn machines_of_google_are_priced_by_their_processors_and_memory() {
    let edition = round_trip("gcp", &[&google_skus(), MACHINE_TYPES]);
    // (8 x 0.031611 + 32 x 0.004237) x 730 h, less the 20 % that the edition has for a whole month.
    assert_eq!(
        month(&edition, "us-central1", "n2-standard-8"),
        ("226.87".into(), "2026-11-20".into())
    );
    assert_eq!(month(&edition, "us-east1", "n9-standard-4").0, "175.20");
    let book = edition.price_book(Some("us-central1"), None, None).unwrap().unwrap();
    assert_eq!(book.unit("pd-ssd", Per::Gib).unwrap().month.to_string(), "0.18");
    // What the price of a disk includes is the edition's.
    let iops = book.unit("hyperdisk-balanced", Per::Iops).unwrap();
    assert_eq!((iops.free, iops.month.micros()), (3_000, 7_000));
    // Shared cores and local disks are not sold by processors and memory.
    let base = super::builtin("gcp");
    assert_eq!(
        month(&edition, "us-central1", "e2-medium"),
        month(&base, "us-central1", "e2-medium")
    );
    assert!(book.host("n2-shared-lssd").is_none());
    assert!(edition.notes().iter().any(|own| own.contains("machine types have no price here")));
    let source = book.host("n2-standard-8").unwrap().provenance.source();
    assert_eq!(source, "file.json: Google SKU AAAA and BBBB");
    assert!(!edition.host("n2-standard-8").unwrap().pools.is_empty());
}

#[test]
fn malformed_files_are_refused_with_their_place() {
    let base = super::builtin("azure-now");
    let fails = |text: &str, expect: &str| {
        let error = read(&base, &[text]).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with("file.json") && error.contains(expect), "{error}");
    };
    fails("", "is neither JSON nor a retail price list in CSV");
    fails("a,b\n1,2\n", "a column retailPrice");
    fails("{\"Items\": [", "file.json:1:");
    fails("{\"Items\": 7}", "Items");
    fails("{\"Items\": [{\"retailPrice\": 1}]}", "missing field `currencyCode`");
    fails("{\"Items\": []}", "none is the price");
    fails("[]", "is none of");
    fails("{\"x\": 1}", "gcloud compute machine-types list");
    fails(&RETAIL.replace("1 Hour", "1 Day"), "neither an hour nor a month");
    fails(&RETAIL.replace("0.8,", "-0.8,"), "is no price");
    fails(
        &SKUS.replace("\"26000\"", "\"many\""),
        "Standard_D16s_v5: UncachedDiskIOPS is no number: \"many\"",
    );
    fails(&SKUS.replace("\"32.5\"", "\"-1\""), "MemoryGB is no number");
    fails(&SKUS.replacen("\"name\": \"Standard_D16s_v5\", ", "", 1), "has no \"name\"");
    fails("{\"InstanceTypes\": 1}", "is no list");
    fails(&TYPES.replace("3600", "\"some\""), "\"BaselineIops\" is no whole number");
    fails(&TYPES.replace(": 28,", ": -1,"), "\"MaximumEbsAttachments\" is no whole number");
    fails(&TYPES.replace(": 28,", ": 4294967296,"), "\"MaximumEbsAttachments\" is too large");
    fails(&OFFER.replace("\"0.088\"", "\"free\""), "D: \"free\" is no price");
    fails(&OFFER.replace("\"publicationDate\"", "\"date\""), "has no \"publicationDate\"");
    fails(&MACHINE_TYPES.replacen("8,", "-8,", 1), "\"guestCpus\" is no whole number");
    fails(
        &google_skus().replacen("\"nanos\"", "\"nanos\": -1, \"x\"", 1),
        "\"nanos\" is no whole number",
    );
    fails(&google_skus().replacen("pricingInfo", "prices", 1), "AAAA: has no price");
}

#[test]
fn files_of_another_cloud_make_no_edition() {
    let base = super::builtin("gcp");
    let (update, _) = read(&base, &[RETAIL]).unwrap();
    let error = update.toml("mine").unwrap_err().to_string();
    assert_eq!(error, "mine: update: no machine and no price is of gcp; is it of the right cloud?");
}

#[test]
fn an_edition_extends_one_of_the_catalog() {
    let head = "name = \"mine\"\nextends = \"azure-now\"\ntitle = \"t\"\nas_of = \"2026\"\nscope = \"s\"\n";
    let add = |text: &str| {
        let mut catalog = Catalog::builtin();
        let edition = Edition::from_toml("mine.toml", &format!("{head}{text}"))?;
        catalog.add(edition).map(|()| catalog.edition("mine").unwrap().hosts().count())
    };
    assert_eq!(add("").unwrap(), super::builtin("azure-now").hosts().count());
    let price = "[[price]]\nregion = \"eastus\"\ncurrency = \"USD\"\nsource = \"s\"\nas_of = \"2026\"\nrows = [{ host = \"X9\", month = \"1\" }]\n";
    assert_eq!(
        add(price).unwrap_err().to_string(),
        "mine: prices of \"eastus\": X9 is neither in the edition nor in azure-now"
    );
    let other = Edition::from_toml("mine.toml", &head.replace("azure-now", "azure-old")).unwrap();
    let error = Catalog::builtin().add(other).unwrap_err().to_string();
    assert!(error.starts_with("unknown edition \"azure-old\""), "{error}");
}
