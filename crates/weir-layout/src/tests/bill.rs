//! The price of a layout, by hand.

use super::*;
use crate::bill::Bill;

fn bill(text: &str) -> Bill {
    bill_in(None, text)
}

/// Prices a layout in a region.
fn bill_in(region: Option<&str>, text: &str) -> Bill {
    let catalog = Catalog::builtin();
    let layout = layout(text);
    let edition = layout.edition.as_deref().and_then(|name| catalog.edition(name).ok());
    let book = edition.and_then(|own| own.price_book(region, None, None).ok().flatten());
    layout.bill(edition, book.as_ref())
}

/// A machine of 280.32 a month with these disks.
fn machine(disks: &str) -> Bill {
    bill(&format!("edition = \"azure-now\"\nhost = {{ size = \"Standard_D8s_v3\" }}\n{disks}"))
}

#[test]
fn disks_cost_what_their_tier_or_their_limits_cost() {
    let check = |disks: &str, month: &str| {
        let bill = machine(disks);
        assert_eq!(bill.unknown().count(), 0, "{bill:?}");
        assert_eq!(bill.month().to_string(), month, "{bill:?}");
    };
    check("[[volume]]\nname = \"d\"\ntier = \"P10\"\n", "300.03");
    let stripe =
        "[[stripe]]\nname = \"p\"\nunit = \"64 KiB\"\nvolumes = { count = 4, tier = \"P10\" }\n";
    check(stripe, "359.16");
    // Billed as the tier whose limits it has, 73.22.
    check("[[volume]]\nname = \"d\"\ntier = \"P10\"\nperformance_tier = \"P20\"\n", "353.54");
    // The machine's own disk is in its price.
    check("[[volume]]\nname = \"d\"\nplace = \"local\"\n", "280.32");
    // 8.10 for the size, 1,000 IOPS at 0.00511 and 75 MB/s at 0.04015 beyond what is free.
    let bought = "[[volume]]\nname = \"d\"\nfamily = \"premium-ssd-v2\"\nsize = \"100 GiB\"\niops = 4000\n\
                  throughput = \"200 MB/s\"\n";
    check(bought, "296.54");
    let stripe = "[[stripe]]\nname = \"p\"\nunit = \"64 KiB\"\nvolumes = { count = 2, family = \
                  \"premium-ssd-v2\", size = \"100 GiB\", iops = 4000, throughput = \"200 MB/s\" }\n";
    check(stripe, "312.77");
}

#[test]
fn a_disk_whose_limits_follow_from_its_size_is_paid_by_it() {
    let disk = |family: &str, size: &str, count: u32| {
        bill(&format!(
            "edition = \"aws\"\nhost = {{ size = \"m5.4xlarge\" }}\n[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\n\
             volumes = {{ count = {count}, family = \"{family}\", size = \"{size}\" }}\n"
        ))
    };
    // 560.64 for the machine, and 0.10 for a GiB.
    let gp2 = disk("gp2", "500 GiB", 2);
    assert_eq!((gp2.month().to_string().as_str(), gp2.unknown().count()), ("660.64", 0), "{gp2:?}");
    let larger = disk("gp2", "501 GiB", 2);
    assert_eq!(larger.month().to_string(), "660.84");
}

#[test]
fn items_without_a_price_are_named() {
    let check = |disks: &str, expect: &str| {
        let bill = machine(disks);
        let unknown: Vec<&str> = bill.unknown().map(|line| line.what.as_str()).collect();
        assert_eq!(unknown, [expect]);
    };
    let own = "[[volume]]\nname = \"d\"\nsize = \"1 TiB\"\nlimits = { iops = 500 }\n";
    check(own, "d: disk with limits of its own");
    let burst = "[[volume]]\nname = \"d\"\ntier = \"P30\"\non_demand_burst = true\n";
    check(burst, "d: on-demand bursting of P30");
    let disk = "[[volume]]\nname = \"d\"\nsize = \"1 GiB\"\nunlimited = true\n";
    let free = bill(&format!("host = {{ unlimited = true }}\n{disk}"));
    assert_eq!((free.month().micros(), free.unknown().count()), (0, 2));
    // Two layouts compare only if they miss the same prices.
    let (one, other) = (machine(burst), machine(&burst.replace("P30", "P40")));
    assert!(one.is_comparable(&one) && !one.is_comparable(&other));
}

#[test]
fn an_instance_costs_its_vcores_storage_and_operations() {
    let of = |region: Option<&str>, host: &str| {
        let text = format!(
            "edition = \"azure-mi-now\"\n[host]\nvcores = 8\n{host}\n[[file]]\nname = \"f\"\nrole = \
             \"data\"\nsize = \"100 GiB\"\n"
        );
        bill_in(region, &text)
    };
    // 8 x 122.230625, 8 x 72.975 and 96 of 128 GiB at 0.137: storage is what the file takes.
    let gp = "managed_instance = \"gp\"";
    assert_eq!(of(None, gp).month().to_string(), "1,574.80");
    assert_eq!(of(None, &format!("{gp}\nlicence_owned = true")).month().to_string(), "991.00");
    assert_eq!(of(None, &format!("{gp}\nstorage = \"1 TiB\"")).month().to_string(), "1,697.55");
    // 1 TiB at 0.115 brings 3,072 IOPS; 1,000 more at 0.038.
    let next = "managed_instance = \"next-gen-gp\"\nstorage = \"1 TiB\"\niops = 4072";
    let next = of(Some("example of the page"), next);
    let month = |what: &str| {
        let line = next.lines.iter().find(|line| line.what == what).expect("a line");
        line.month().map(|month| month.to_string())
    };
    assert_eq!(month("GiB of storage").as_deref(), Some("117.76"));
    assert_eq!(month("IOPS bought").as_deref(), Some("38.00"));
}
