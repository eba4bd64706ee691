//! Layouts in use: their price, storage that the layout does not state, stripes that are rebuilt
//! with another unit, and roles and file systems that need room of their own.

use crate::world::{need_text, planned};
use weir_catalog::{Catalog, PriceBook};
use weir_layout::Layout;
use weir_plan::keep::Kept;
use weir_plan::need::NeedFile;
use weir_plan::{Answer, Outcome, Plan, PlanError, Question, plan};
use weir_random::Rng;

/// Returns the reasons, one a line.
fn reasons_of(plan: &Plan) -> String {
    plan.reasons.iter().map(|own| own.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// Plans a need with a layout to keep.
fn kept(layout: &str, need: &str) -> (Kept, Box<Answer>) {
    match asked(layout, need).expect("a plan") {
        (kept, Outcome::Met(answer)) => (kept, answer),
        (_, outcome @ Outcome::NotMet(_)) => panic!("{outcome:#?}"),
    }
}

/// Plans for a need with a layout to keep.
fn asked(layout: &str, need: &str) -> Result<(Kept, Outcome), PlanError> {
    let catalog = Catalog::builtin();
    let there = Layout::parse("now.toml", layout, &catalog).expect("a layout");
    let file = NeedFile::read("need.toml", need).expect("a need");
    let (need, _) = file.need().expect("a need");
    let edition = catalog.edition(there.edition.as_deref().expect("an edition")).expect("known");
    let book = PriceBook::of(edition.prices(), None, None, file.os.as_deref()).expect("prices");
    let mut wishes = file.wishes();
    let kept = Kept::from_layout(&there, file.no_downtime).expect("to be kept");
    wishes.keep = Some(kept.clone());
    let prices = book.as_ref();
    let question = Question { catalog: &catalog, edition, prices, need: &need, wishes: &wishes };
    Ok((kept, plan(&question)?))
}

fn answer(edition: &str, need: &str) -> Box<Answer> {
    match planned(need, &Catalog::builtin(), edition).expect("a need").1 {
        Outcome::Met(answer) => answer,
        outcome @ Outcome::NotMet(_) => panic!("{need}\n{outcome:#?}"),
    }
}

const STRIPE: &str = "edition = \"azure-now\"\nhost = { size = \"Standard_D8s_v3\" }\n[[stripe]]\nname = \
    \"pool\"\nunit = \"64 KiB\"\nvolumes = { count = 4, tier = \"P10\" }\n[[file]]\nname = \"f\"\nrole = \
    \"data\"\nsize = \"400 GiB\"\non = \"pool\"\n";

fn large_requests(mib: u64, more: &str) -> String {
    format!(
        "{more}\n[data]\nsize = \"400 GiB\"\nrequest = \"1 MiB\"\nthroughput = \"{mib} MiB/s\"\n"
    )
}

#[test]
fn a_stripe_is_rebuilt_with_another_unit_where_that_is_cheaper() {
    // In units of 64 KiB 150 requests of 1 MiB count 2,400 operations, and four P10 do 2,000: in units
    // of 256 KiB they count 600. A D8s_v3 costs 280.32, a P10 19.71, a P15 38.01.
    let (_, own) = kept(STRIPE, &large_requests(150, "host = \"D8s_v3\""));
    assert_eq!(own.plan.title, "Standard_D8s_v3: data on 4 x P10");
    assert_eq!(own.plan.cost.month.to_string(), "359.16");
    assert!(own.plan.layout.contains("unit = \"256 KiB\""), "{}", own.plan.layout);
    let reasons = reasons_of(&own.plan);
    assert!(reasons.contains("with a unit of 256 KiB instead of 64 KiB"), "{reasons}");
    assert!(reasons.contains("the data must be copied"), "{reasons}");
    let without = "without rebuilding a stripe: Standard_D8s_v3: data on 4 x P15, 432.37 a month";
    assert!(reasons.contains(without), "{reasons}");
}

#[test]
fn a_stripe_stays_as_it_is_where_another_unit_saves_nothing_or_needs_downtime() {
    let (_, same) = kept(STRIPE, &large_requests(120, "host = \"D8s_v3\""));
    assert_eq!(same.plan.title, "Standard_D8s_v3: data on 4 x P10");
    let (_, up) = kept(STRIPE, &large_requests(150, "no_downtime = true"));
    assert_eq!(up.plan.title, "Standard_D8s_v3: data on 4 x P15");
    assert_eq!(up.plan.cost.month.to_string(), "432.37");
    for own in [same, up] {
        assert!(own.plan.layout.contains("unit = \"64 KiB\""), "{}", own.plan.layout);
        let words = reasons_of(&own.plan) + &own.notes.join("\n");
        assert!(!words.contains("rebuil"), "{words}");
    }
}

#[test]
fn unstated_storage_is_the_size_of_the_files() {
    let instance = |storage: &str| {
        format!(
            "edition = \"azure-mi-now\"\nhost = {{ managed_instance = \"gp\", vcores = 8{storage} }}\n\
             [[file]]\nname = \"a\"\nrole = \"data\"\nsize = \"500 GiB\"\n[[file]]\nname = \"b\"\nrole = \
             \"log\"\nsize = \"100 GiB\"\n"
        )
    };
    let need = "[data]\nsize = \"500 GiB\"\niops = 1000\n[log]\nsize = \"100 GiB\"\niops = 100\n";
    let units = |own: &Answer| {
        own.plan.lines.iter().find(|line| line.what == "GiB of storage").map(|line| line.units)
    };
    // 600 GiB in steps of 32.
    let (assumed, own) = kept(&instance(""), need);
    assert_eq!(units(&own), Some(608));
    let note = assumed.note().expect("a note");
    assert!(note.contains("does not state the storage") && note.contains("608 GiB"), "{note}");
    let (stated, own) = kept(&instance(", storage = \"1 TiB\""), need);
    assert_eq!((units(&own), stated.note()), (Some(1_024), None));
}

/// The bill of a layout is worked out from its volumes, the planner's from what it chose.
#[test]
fn the_bill_of_a_layout_equals_that_of_its_plan() {
    let catalog = Catalog::builtin();
    let mut rng = Rng::from_state(11);
    let mut compared = 0;
    for edition in ["azure-now", "azure-premium-2015", "azure-mi-now", "aws", "gcp"] {
        for _ in 0..12 {
            let text = need_text(&mut rng, &["data", "log"], 9_000);
            let Ok((_, Outcome::Met(answer))) = planned(&text, &catalog, edition) else { continue };
            for plan in std::iter::once(&answer.plan).chain(&answer.others) {
                // The storage of a service is sold by its engine, which no layout states.
                if plan.family == "rds" {
                    continue;
                }
                let layout = Layout::parse("plan.toml", &plan.layout, &catalog).expect("a layout");
                let own = catalog.edition(edition).expect("known");
                let book = PriceBook::of(own.prices(), None, None, None).expect("prices");
                let bill = layout.bill(Some(own), book.as_ref());
                let of = |units: u64, month| (units > 0).then_some((units, month));
                let mut billed: Vec<_> =
                    bill.lines.iter().filter_map(|line| of(line.units, line.month())).collect();
                let mut planned: Vec<_> =
                    plan.lines.iter().filter_map(|line| of(line.units, line.month())).collect();
                if plan.layout.contains("pd-") {
                    // One line for all disks of a type there, one for each here.
                    billed = vec![(0, Some(bill.month()))];
                    planned = vec![(0, Some(plan.cost.month))];
                }
                billed.sort();
                planned.sort();
                assert_eq!(billed, planned, "{edition}: {}", plan.layout);
                compared += 1;
            }
        }
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn a_backup_is_apart_from_data_and_log_unless_it_may_share() {
    let need = |apart: &str| {
        format!(
            "{apart}\n[data]\nsize = \"300 GiB\"\niops = 500\n[log]\nsize = \"50 GiB\"\niops = 100\n\
             [backup]\nsize = \"300 GiB\"\nthroughput = \"20 MiB/s\"\n"
        )
    };
    let own = answer("azure-now", &need(""));
    assert!(own.plan.title.contains("backup on"), "{}", own.plan.title);
    assert!(!own.plan.title.contains("and backup"), "{}", own.plan.title);
    let reasons = reasons_of(&own.plan);
    assert!(reasons.contains("backup: on disks of its own"), "{reasons}");
    let shared = answer("azure-now", &need("apart = false"));
    assert!(shared.plan.cost < own.plan.cost, "{}", shared.plan.title);
    let reasons = reasons_of(&shared.plan);
    assert!(reasons.contains("backup: shares disks with data"), "{reasons}");
    // Disks that share their limits are apart, too.
    let pooled = answer("gcp", &need("disks = [\"pd-balanced\"]"));
    assert!(pooled.plan.layout.contains("name = \"backup\""), "{}", pooled.plan.layout);
}

#[test]
fn disks_have_room_for_the_stated_file_system() {
    let need = |own: &str, gib: u64| {
        format!("{own}\ndisks = [\"premium-ssd\"]\n[data]\nsize = \"{gib} GiB\"\niops = 400\n")
    };
    let title = |own: &str, gib: u64| answer("azure-now", &need(own, gib)).plan.title.clone();
    let ext4 = "filesystem = \"ext4\"";
    // 93.3 % of 128 GiB are 119.4 GiB, 98 % are 125.4 and 99 % 126.7.
    assert!(title("", 128).ends_with("1 x P10"));
    assert!(title("filesystem = \"none\"", 128).ends_with("1 x P10"));
    for (own, fits) in [(ext4, 119), ("filesystem = \"xfs\"", 125), ("filesystem = \"ntfs\"", 126)]
    {
        assert!(title(own, fits).ends_with("1 x P10"), "{own}");
        assert!(!title(own, fits + 1).ends_with("1 x P10"), "{own}");
    }
    let reasons = reasons_of(&answer("azure-now", &need(ext4, 119)).plan);
    assert!(reasons.contains("overhead 6.7 %: 1.7 % metadata and 5 % reserved"), "{reasons}");
    assert!(!reasons.contains("makes room for it"), "{reasons}");
}

#[test]
fn requests_of_a_throughput_are_rounded_once_at_the_stripe_that_is_kept() {
    // 93.75 requests of 1 MiB are 1,500 pieces of 64 KiB a second, which three E30 do.
    let layout = STRIPE.replace("count = 4, tier = \"P10\"", "count = 3, tier = \"E30\"");
    let need = "no_downtime = true\n[data]\nsize = \"400 GiB\"\nrequest = \"1 MiB\"\nthroughput = \
                \"98304000 B/s\"\n";
    let (_, own) = kept(&layout, need);
    assert_eq!(own.plan.title, "Standard_D8s_v3: data on 3 x E30");
    let cap = own.plan.caps.first().map(|cap| (cap.used, cap.most));
    assert_eq!(cap, Some((1_500, 1_500)));
}

#[test]
fn disks_of_a_cheaper_layout_have_at_least_the_minimum_size() {
    let need = "disks = [\"pd-balanced\"]\napart = true\n[data]\nsize = \"12 GiB\"\niops = 100\n[log]\nsize = \
                \"10 GiB\"\niops = 10\n";
    let own = answer("gcp", need);
    let cheaper = own.cheaper.expect("a cheaper layout");
    assert!(
        cheaper.what.ends_with("data on pd-balanced of 10 GiB, log on pd-balanced of 10 GiB"),
        "{}",
        cheaper.what
    );
}

#[test]
fn the_size_of_shared_disks_has_the_room_of_the_file_system() {
    let need = |filesystem: &str| {
        format!(
            "disks = [\"pd-balanced\"]\nfilesystem = \"{filesystem}\"\n[data]\nsize = \"933 GiB\"\niops = 100\n"
        )
    };
    let size = |filesystem: &str| {
        let own = answer("gcp", &need(filesystem));
        let size = own.plan.caps.iter().find(|cap| cap.cap == "size").expect("a size");
        (size.used >> 30, size.most >> 30)
    };
    assert_eq!(size("none"), (933, 933));
    // 93.3 % of 1,000 GiB.
    assert_eq!(size("ext4"), (1_000, 1_000));
}

/// A machine with a disk of data, and its need.
const SINGLE: &str = "edition = \"azure-now\"\n[host]\nsize = \"Standard_D8s_v3\"\n[[volume]]\nname = \"d\"\n\
    tier = \"P20\"\n[[file]]\nname = \"f\"\nrole = \"data\"\nsize = \"400 GiB\"\non = \"d\"\n";

#[test]
fn an_owned_licence_of_the_machine_in_use_stays_and_costs_nothing() {
    let need = "os = \"windows\"\nno_downtime = true\n[data]\nsize = \"400 GiB\"\niops = 1000\n";
    // With Windows Server a D8s_v3 costs 548.96, without a licence 280.32; a P20 costs 73.22.
    let (_, rented) = kept(SINGLE, need);
    assert_eq!(rented.plan.cost.month.to_string(), "622.18");
    assert!(!rented.plan.layout.contains("licence_owned"), "{}", rented.plan.layout);
    let owned = SINGLE.replace("[[volume]]", "licence_owned = true\n[[volume]]");
    let (_, own) = kept(&owned, need);
    assert_eq!(own.plan.cost.month.to_string(), "353.54");
    assert!(own.plan.layout.contains("licence_owned = true"), "{}", own.plan.layout);
    // The bill of the layout that is written says the same.
    let catalog = Catalog::builtin();
    let edition = catalog.edition("azure-now").expect("known");
    let book = PriceBook::of(edition.prices(), None, None, Some("windows")).expect("prices");
    let layout = Layout::parse("plan.toml", &own.plan.layout, &catalog).expect("a layout");
    assert_eq!(layout.bill(Some(edition), book.as_ref()).month(), own.plan.cost.month);
}

#[test]
fn an_owned_licence_applies_to_windows_machines() {
    let need = |own: &str| {
        format!("{own}\nlicence_owned = true\n[data]\nsize = \"400 GiB\"\niops = 1000\n")
    };
    let own = answer("azure-now", &need("host = \"D8s_v3\""));
    assert!(own.plan.layout.contains("licence_owned = true"), "{}", own.plan.layout);
    let refused = |edition: &str, own: &str, words: &str| {
        let error = planned(&need(own), &Catalog::builtin(), edition).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused("azure-now", "families = [\"vm\"]\nos = \"linux\"", "use os = \"windows\"");
    refused("gcp", "", "Azure Hybrid Benefit, which gcp does not have");
}

#[test]
fn a_machine_of_two_series_keeps_its_series() {
    let size = "\"ebdsv5-nvme/Standard_E96bds_v5\"";
    let there = SINGLE.replace("\"Standard_D8s_v3\"", "\"ebdsv5-nvme/E96bds_v5\"");
    let need = |own: &str| format!("{own}\n[data]\nsize = \"400 GiB\"\niops = 1000\n");
    let (_, stays) = kept(&there, &need("no_downtime = true"));
    let (_, named) = kept(&there, &need("host = \"ebdsv5-nvme/E96bds_v5\""));
    let anew = answer("azure-now", &need("host = \"ebdsv5-nvme/E96bds_v5\""));
    for own in [stays, named, anew] {
        assert!(own.plan.layout.contains(size), "{}", own.plan.layout);
    }
}

/// Disks and an instance with more than their need asks for, each with what its layout says of that.
const BOUGHT: [(&str, &str, &str, &[&str]); 6] = [
    (
        "azure-now",
        "Standard_D8s_v3",
        "tier = \"P20\"\nperformance_tier = \"P40\"",
        &["tier = \"P20\"", "performance_tier = \"P40\""],
    ),
    (
        "azure-now",
        "Standard_D8s_v3",
        "tier = \"P30\"\non_demand_burst = true",
        &["tier = \"P30\"", "on_demand_burst = true"],
    ),
    (
        "azure-now",
        "Standard_D8s_v3",
        "family = \"premium-ssd-v2\"\nsize = \"600 GiB\"\niops = 5000\nthroughput = \"300 MB/s\"",
        &["size = \"600 GiB\"", "iops = 5000", "throughput = \"300 MB/s\""],
    ),
    ("azure-now", "Standard_D8s_v3", "tier = \"P30\"\nsize = \"450 GiB\"", &["tier = \"P30\""]),
    (
        "aws",
        "m5.xlarge",
        "family = \"gp3\"\nsize = \"600 GiB\"\niops = 6000\nthroughput = \"250 MiB/s\"",
        &["size = \"600 GiB\"", "iops = 6000", "throughput = \"250 MiB/s\""],
    ),
    (
        "aws",
        "m5.xlarge",
        "family = \"io2\"\nsize = \"600 GiB\"\niops = 6000",
        &["size = \"600 GiB\"", "iops = 6000"],
    ),
];

#[test]
fn bought_limits_of_disks_in_use_stay_and_are_billed() {
    let catalog = Catalog::builtin();
    for (edition, host, disk, stays) in BOUGHT {
        let there = format!(
            "edition = {edition:?}\n[host]\nsize = {host:?}\n[[volume]]\nname = \"d\"\n{disk}\n[[file]]\nname = \
             \"f\"\nrole = \"data\"\nsize = \"400 GiB\"\non = \"d\"\n"
        );
        let need = "no_downtime = true\n[data]\nsize = \"400 GiB\"\niops = 1000\n";
        let (_, own) = kept(&there, need);
        for words in stays {
            assert!(own.plan.layout.contains(words), "{disk}: {}", own.plan.layout);
        }
        // The plan costs what the layout in use costs.
        let edition = catalog.edition(edition).expect("known");
        let book = PriceBook::of(edition.prices(), None, None, None).expect("prices");
        let there = Layout::parse("now.toml", &there, &catalog).expect("a layout");
        let bill = there.bill(Some(edition), book.as_ref());
        let unknown = u32::try_from(bill.unknown().count()).expect("few");
        assert_eq!(own.plan.cost.month, bill.month(), "{disk}");
        assert_eq!(own.plan.cost.unpriced, unknown, "{disk}");
    }
}

#[test]
fn a_change_of_bought_limits_is_a_reason() {
    let check = |disk: &str, iops: u64, title: &str, words: &str| {
        let there = SINGLE.replace("tier = \"P20\"", disk);
        let need = format!("no_downtime = true\n[data]\nsize = \"400 GiB\"\niops = {iops}\n");
        let (_, own) = kept(&there, &need);
        assert_eq!(own.plan.title, format!("Standard_D8s_v3: data on 1 x {title}"));
        let reasons = reasons_of(&own.plan);
        assert!(reasons.contains(words), "{reasons}");
    };
    let raised = "tier = \"P20\"\nperformance_tier = \"P30\"";
    check(raised, 5_000, "P20 with performance tier P30", "data: performance tier P30 stays");
    check(
        raised,
        6_000,
        "P40",
        "data: performance tier P30 is dropped, because the disks grow to it",
    );
    let bought =
        "family = \"premium-ssd-v2\"\nsize = \"600 GiB\"\niops = 5000\nthroughput = \"300 MB/s\"";
    let title = "premium-ssd-v2 of 600 GiB, 6000 IOPS and 300 MB/s";
    check(
        bought,
        6_000,
        title,
        "data: each disk changes from 5000 IOPS to 6000 IOPS, keeps 300 MB/s",
    );
    let bursts = "tier = \"P30\"\non_demand_burst = true";
    check(bursts, 6_000, "P40 with on-demand bursting", "on-demand bursting stays on");
}

#[test]
fn bought_iops_of_an_instance_in_use_stay() {
    let there = "edition = \"azure-mi-now\"\nhost = { managed_instance = \"next-gen-gp\", vcores = 8, storage = \
                 \"1 TiB\", iops = 9000 }\n[[file]]\nname = \"a\"\nrole = \"data\"\nsize = \"500 GiB\"\n";
    let need = |iops: u64| format!("[data]\nsize = \"500 GiB\"\niops = {iops}\n");
    for (asked, iops, words) in [
        (1_000, 9_000, "the instance in use keeps its 9000 IOPS"),
        (10_000, 10_000, "the instance in use goes from 9000 to 10000 IOPS"),
    ] {
        let (_, own) = kept(there, &need(asked));
        assert!(own.plan.layout.contains(&format!("iops = {iops}\n")), "{}", own.plan.layout);
        let reasons = reasons_of(&own.plan);
        assert!(reasons.contains(words), "{reasons}");
        let bought = own.plan.lines.iter().find(|line| line.what == "IOPS bought");
        assert_eq!(bought.map(|line| line.units), Some(iops - 3 * 1_024));
    }
}

#[test]
fn the_file_system_goes_into_the_layout_and_is_one_of_the_machines_system() {
    let need = |own: &str| format!("{own}\n[data]\nsize = \"400 GiB\"\niops = 1000\n");
    let refused = |own: &str, words: &str| {
        let error = planned(&need(own), &Catalog::builtin(), "azure-now").unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused("filesystem = \"ntfs\"\nos = \"linux\"", "ntfs needs Windows, but os is linux");
    refused("filesystem = \"ext4\"\nos = \"windows\"", "ext4 needs Linux");
    refused("filesystem = \"xfs\"\nlicence_owned = true", "xfs needs Linux");
    let own = answer("azure-now", &need("filesystem = \"ext4\"\nos = \"linux\""));
    assert!(own.plan.layout.contains("\nfilesystem = \"ext4\"\n"), "{}", own.plan.layout);
    let own = answer("azure-now", &need("filesystem = \"ntfs\""));
    assert!(own.notes.iter().any(|note| note.contains("--os windows")), "{:?}", own.notes);
    // Disks whose file system is not stated may have another.
    let wished = need("filesystem = \"ext4\"");
    let error = asked(SINGLE, &wished).map(|_| ()).expect_err("it is refused").to_string();
    assert!(error.contains("does not state the file system of its disks"), "{error}");
    // The file system of disks in use stays, and they have room for it: 93.3 % of 512 GiB are 477.7.
    let there = SINGLE.replace("[[volume]]", "filesystem = \"ext4\"\n[[volume]]");
    let (_, own) = kept(&there, "[data]\nsize = \"477 GiB\"\niops = 1000\n");
    assert!(own.plan.layout.contains("\nfilesystem = \"ext4\"\n"), "{}", own.plan.layout);
    assert!(own.plan.title.ends_with("1 x P20"), "{}", own.plan.title);
    let (_, own) = kept(&there, "[data]\nsize = \"478 GiB\"\niops = 1000\n");
    assert!(own.plan.title.ends_with("1 x P30"), "{}", own.plan.title);
}
