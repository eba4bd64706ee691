//! A throughput is held as it is stated: exactly at a cap of bytes a need is met, and a byte above it
//! is not, whatever its requests come to.

use crate::world::planned;
use weir_catalog::{Catalog, PriceBook};
use weir_plan::need::NeedFile;
use weir_plan::verify::{How, verify};
use weir_plan::{FleetOutcome, FleetQuestion, Outcome, Wishes, fleet::Effort, plan_fleet};

/// A need with this throughput, in requests of a size that divides no cap.
fn need(head: &str, bytes: u64, more: &str) -> String {
    format!(
        "{head}[data]\nsize = \"600 GiB\"\nthroughput = \"{bytes} B/s\"\nrequest = \"72 KiB\"\n{more}"
    )
}

fn is_met(catalog: &Catalog, edition: &str, text: &str) -> bool {
    let (_, outcome) =
        planned(text, catalog, edition).unwrap_or_else(|error| panic!("{error}\n{text}"));
    matches!(outcome, Outcome::Met(_))
}

/// Checks a cap, in bytes a second, of what `head` names.
fn check(edition: &str, head: &str, cap: u64, more: &str) {
    let catalog = Catalog::builtin();
    assert_ne!(cap % (72 << 10), 0, "requests would come out even");
    assert!(is_met(&catalog, edition, &need(head, cap, more)), "{head}: {cap}");
    assert!(!is_met(&catalog, edition, &need(head, cap + 1, more)), "{head}: {cap} and one");
}

const MIB: u64 = 1 << 20;

#[test]
fn a_throughput_at_a_limit_is_feasible_and_one_byte_more_is_not() {
    let premium = |host: &str| format!("host = {host:?}\ndisks = [\"premium-ssd\"]\n");
    // The machine, with one disk and with a stripe.
    check("azure-now", &premium("Standard_D8s_v3"), 192_000_000, "");
    check("azure-now", &premium("Standard_D16s_v3"), 384_000_000, "");
    // The disk.
    let one = format!("{}max_disks = 1\n", premium("Standard_D64s_v3"));
    check("azure-now", &one, 900_000_000, "");
    // The cache, where every read is a hit.
    let cached = "reads = \"100 %\"\nworking_set = \"100 GiB\"\n";
    let narrow = "host = \"DS13\"\nmax_disks = 1\n";
    check("azure-premium-2015", narrow, 256 * MIB, cached);
    // Files, the quota of an instance, a server's storage, disks that share their limits.
    check("azure-mi-2018", "families = [\"gp\"]\nmax_files = 1\nhost = \"gp-4\"\n", 250 * MIB, "");
    check("azure-mi-now", "host = \"next-gen-gp-4\"\n", 145_000_000, "");
    check("azure-postgres", "host = \"D8s_v3\"\n", 192 * MIB, "");
    check("aws", "host = \"db.m5.2xlarge\"\nfamilies = [\"rds\"]\n", 287_500_000, "");
    check("gcp", "host = \"n2-standard-8\"\n", 800 * MIB, "");
}

#[test]
fn derived_requests_keep_the_stated_throughput() {
    let catalog = Catalog::builtin();
    // 192 MB/s of 5,000 operations are requests of 38,400 bytes; of 5,001 some are a sector longer.
    for iops in [5_000, 5_001] {
        let text = |bytes: u64| {
            format!(
                "host = \"Standard_D8s_v3\"\ndisks = [\"premium-ssd\"]\n[data]\nsize = \"1 TiB\"\n\
                 iops = {iops}\nthroughput = \"{bytes} B/s\"\n"
            )
        };
        assert!(is_met(&catalog, "azure-now", &text(192_000_000)), "{iops}");
        assert!(!is_met(&catalog, "azure-now", &text(192_000_001)), "{iops}");
    }
}

#[test]
fn a_throughput_at_a_limit_is_met_in_simulation() {
    let catalog = Catalog::builtin();
    let head = "host = \"Standard_D8s_v3\"\ndisks = [\"premium-ssd\"]\n";
    let beside = "[log]\nsize = \"9 GiB\"\n";
    for (size, more) in [("900 GiB", ""), ("900 GiB", beside), ("1500 GiB", "")] {
        let text = format!(
            "{head}[data]\nsize = \"{size}\"\nthroughput = \"192 MB/s\"\nrequest = \"64 KiB\"\n\
             latency = \"10ms\"\nreads = \"70 %\"\n{more}"
        );
        let (need, outcome) = planned(&text, &catalog, "azure-now").expect("a need");
        let Outcome::Met(answer) = outcome else { panic!("{text}: no plan") };
        let how = How { seed: 1, bursts: false, ..How::default() };
        let got = verify("plan.toml", &answer.plan.layout, &need, &catalog, how).expect("a run");
        // A latency that grows would tell of more bytes than the machine lets through.
        assert!(got.iter().all(|got| got.is_met() && !got.grows), "{got:#?}\n{text}");
        let bytes = got[0].got * 65_536.0;
        assert!((191.8e6..192.2e6).contains(&bytes), "{bytes}");
    }
}

#[test]
fn a_database_at_the_quota_of_an_instance_fits_into_a_fleet() {
    let catalog = Catalog::builtin();
    let edition = catalog.edition("azure-mi-now").expect("an edition");
    let book = PriceBook::of(edition.prices(), None, None, None).expect("prices");
    let is_met = |bytes: u64| {
        let file = NeedFile::read("db.toml", &need("", bytes, "")).expect("a need");
        let members = [file.member("db").expect("a database").0];
        let wishes = Wishes {
            families: vec!["next-gen-gp".to_owned()],
            host: Some("next-gen-gp-4".to_owned()),
            ..Wishes::default()
        };
        let question = FleetQuestion {
            catalog: &catalog,
            edition,
            prices: book.as_ref(),
            members: &members,
            wishes: &wishes,
            is_fewest: false,
            effort: Effort::default(),
        };
        matches!(plan_fleet(&question), Ok(FleetOutcome::Met(_)))
    };
    assert!(is_met(145_000_000));
    assert!(!is_met(145_000_001));
}
