//! `weir plan`: the layout, the price, what fails, and what is no need.

use crate::common::{Place, run};
use serde_json::Value;

const PREMIUM: [&str; 3] = ["plan", "--edition", "azure-premium-2015"];

fn plan(place: &Place, args: &[&str]) -> (String, String, Option<i32>) {
    run(place.weir(&[&PREMIUM[..], args].concat()))
}

#[test]
fn the_answer_has_price_caps_and_neighbours_and_its_layout_is_one() {
    let place = Place::new();
    let args =
        ["--iops", "16000", "--size", "4TiB", "--verify", "--out", "plan.toml", "-o", "json"];
    let (stdout, stderr, code) = plan(&place, &args);
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["plan"]["title"], "DS13: data on 4 x P30");
    assert_eq!(report["plan"]["month"], 1548.00);
    assert_eq!(report["plan"]["lines"][1]["unit_price"], 136.085);
    assert_eq!(report["cheaper"]["title"], "DS13: data on 7 x P20");
    assert_eq!(report["cheaper"]["exceeded"][0]["cap"], "size");
    assert_eq!(report["verified"][0]["is_met"], true);
    let (checked, stderr, code) = run(place.weir(&["layout", "check", "plan.toml"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{checked}");
    assert!(checked.contains("DS13"), "{checked}");
}

#[test]
fn an_unwritable_output_is_refused_before_planning() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).expect("a folder");
    place.file("file", "");
    let args = ["plan", "--size", "1TiB", "--out"];
    for (out, words) in [
        ("folder", "is a folder; give the name of a file"),
        ("none/x.toml", "the folder none does not"),
    ] {
        let (stdout, stderr, code) = run(place.weir(&[&args[..], &[out]].concat()));
        assert!(stdout.is_empty() && stderr.contains(words), "{out}: {stdout} {stderr}");
        assert_eq!(code, Some(if out == "folder" { 2 } else { 3 }));
    }
    let (stdout, stderr, code) = run(place.weir(&["plan", "--fleet", "none", "--out", "file"]));
    assert!(stderr.contains("--out file: is a file; give a folder"), "{stdout} {stderr}");
    assert_eq!(code, Some(2));
}

#[test]
fn an_infeasible_need_reports_the_largest_feasible_sizes() {
    let place = Place::new();
    let (stdout, _, code) = plan(&place, &["--iops", "4000", "--size", "1TiB", "--host", "DS1"]);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.starts_with("no layout meets the need"), "{stdout}");
    assert!(stdout.contains("80 % of the rates: data at 3200 IOPS"), "{stdout}");
    assert!(stdout.contains("feasible with another machine: DS"), "{stdout}");
    let check = |args: &[&str], words: &str| {
        let (stdout, _, code) = run(place.weir(&[&["plan"], args].concat()));
        assert_eq!(code, Some(1), "{stdout}");
        assert!(stdout.contains(&format!("feasible with {words}")), "{stdout}");
    };
    for (format, words) in [("csv", "layout,feasible with,"), ("markdown", "\n| feasible with ")] {
        let args = ["--iops", "4000", "--size", "1TiB", "--host", "DS1", "-o", format];
        let (stdout, _, code) = plan(&place, &args);
        assert_eq!(code, Some(1), "{stdout}");
        assert!(stdout.contains(words), "{stdout}");
    }
    // Sizes give, too; two together where none alone is enough; and everything.
    let instances = ["--edition", "azure-mi-now", "--size", "400TiB", "--iops"];
    check(
        &[&instances[..], &["900"]].concat(),
        "8 % of the sizes: data of 32 TiB: next-gen-gp with",
    );
    check(
        &[&instances[..], &["9000000"]].concat(),
        "1 % of the sizes and the rates: data of 4 TiB; ",
    );
    let machines = ["--edition", "azure-premium-2015", "--iops", "16000", "--size", "4TiB"];
    let both = ["--host", "DS2", "--max-disks", "2"];
    check(
        &[&machines[..], &both].concat(),
        "another machine, and more disks: DS13: data on 4 x P30",
    );
}

#[test]
fn data_that_fills_its_disks_is_told_of_the_file_system() {
    let place = Place::new();
    let answer = |size: &str| {
        let (stdout, _, code) =
            plan(&place, &["--iops", "16000", "--size", size, "--host", "DS13"]);
        assert_eq!(code, Some(0), "{stdout}");
        stdout
    };
    let full = answer("4TiB");
    assert!(
        full.contains("data: 4 TiB of the disks' 4 TiB are needed, which may leave too little"),
        "{full}"
    );
    let args = ["--iops", "16000", "--size", "4TiB", "-o", "markdown"];
    let (markdown, _, _) = plan(&place, &args);
    assert!(markdown.contains("\ndata: 4 TiB of the disks' 4 TiB are needed"), "{markdown}");
    // 6.7 % of 4 TiB is 274 GiB.
    assert!(answer("3823GiB").contains("too little for a file system"));
    assert!(!answer("3821GiB").contains("too little for a file system"));
}

#[test]
fn a_present_layout_is_simulated_beside_the_plan() {
    let place = Place::new();
    place.file(
        "now.toml",
        "edition = \"azure-premium-2015\"\nhost = { size = \"DS13\" }\n[[volume]]\nname = \"d\"\n\
         tier = \"P20\"\n[[file]]\nname = \"f\"\nrole = \"data\"\nsize = \"400 GiB\"\non = \"d\"\n",
    );
    let args =
        ["--iops", "4000", "--size", "400GiB", "--verify", "--present", "now.toml", "-o", "json"];
    let (stdout, stderr, code) = plan(&place, &args);
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    let verified = report["verified"].as_array().expect("a list");
    let met: Vec<&Value> = verified.iter().map(|own| &own["is_met"]).collect();
    assert_eq!(met, [false, true], "{stdout}");
    // A P20 does 2,300 of the 4,000.
    let got = verified[0]["achieved_per_s"].as_f64().expect("a rate");
    assert!((2_250.0..2_350.0).contains(&got), "{got}");
}

#[test]
fn a_budget_buys_as_much_as_it_does() {
    let place = Place::new();
    let args = ["--iops", "1000", "--size", "100GiB", "--host", "DS13", "--budget", "1300"];
    let (stdout, _, code) = plan(&place, &args);
    assert_eq!(code, Some(0), "{stdout}");
    // 296.34 are left for disks: two P30 are 272.17, four P20 292.88 and do less.
    assert!(stdout.starts_with("plan: DS13: data on 2 x P30: 1,275.83"), "{stdout}");
    assert!(stdout.contains("carries 1000 % of the need"), "{stdout}");
}

#[test]
fn prices_of_ones_own_come_first_also_as_the_vendor_has_them() {
    let place = Place::new();
    let meter = |product: &str,
                 meter: &str,
                 sku: &str,
                 arm: &str,
                 service: &str,
                 unit: &str,
                 price: f64| {
        format!(
            "{{\"currencyCode\":\"EUR\",\"tierMinimumUnits\":0.0,\"retailPrice\":{price},\
             \"armRegionName\":\"westeurope\",\"effectiveStartDate\":\"2026-10-01T00:00:00Z\",\
             \"meterName\":\"{meter}\",\"productName\":\"{product}\",\"skuName\":\"{sku}\",\
             \"serviceName\":\"{service}\",\"armSkuName\":\"{arm}\",\"unitOfMeasure\":\"{unit}\",\
             \"type\":\"Consumption\"}}"
        )
    };
    let (vm, disks) = ("Virtual Machines DSv3 Series", "Premium SSD Managed Disks");
    let items = [
        meter(vm, "D4s v3", "D4s v3", "Standard_D4s_v3", "Virtual Machines", "1 Hour", 0.2),
        meter(
            vm,
            "D4s v3 Spot",
            "D4s v3 Spot",
            "Standard_D4s_v3",
            "Virtual Machines",
            "1 Hour",
            0.02,
        ),
        meter(
            disks,
            "P30 LRS Disk",
            "P30 LRS",
            "Premium_SSD_Managed_Disk_P30",
            "Storage",
            "1/Month",
            140.5,
        ),
        meter(disks, "P30 LRS Disk Mount", "P30 LRS", "", "Storage", "1/Month", 7.0),
    ];
    place.file("prices.json", &format!("{{\"Items\":[{}]}}", items.join(",")));
    let args = [
        "plan",
        "--size",
        "1TiB",
        "--iops",
        "5000",
        "--disks",
        "premium-ssd",
        "--prices",
        "prices.json",
    ];
    let (stdout, stderr, code) = run(place.weir(&args));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    // 730 hours of 0.20 and a disk.
    assert!(
        stdout.starts_with("plan: Standard_D4s_v3: data on 1 x P30: 286.50 EUR a month"),
        "{stdout}"
    );
    place.file("none.json", "{\"Items\":[]}");
    let (_, stderr, code) = run(place.weir(&[&args[..7], &["--prices", "none.json"]].concat()));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("none.json: 0 items: none is the price"), "{stderr}");
}

#[test]
fn an_invalid_need_is_refused_with_a_hint() {
    let place = Place::new();
    let refused = |args: &[&str], words: &str| {
        let (stdout, stderr, code) = plan(&place, args);
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{args:?}: {stderr}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    };
    let size = ["--size", "1TiB"];
    let with = |more: &[&'static str]| [&size[..], more].concat();
    refused(&["--size", "4"], "has no unit");
    refused(
        &with(&["--region", "Mars"]),
        "there are no prices of region \"Mars\"; there are: not given in USD",
    );
    refused(&with(&["--currency", "EUR"]), "there are no prices of currency \"EUR\"");
    refused(
        &with(&["--disks", "floppy"]),
        "no disks \"floppy\" to plan with; it has premium-ssd, standard-hdd",
    );
    refused(&with(&["--family", "gp"]), "no family \"gp\"; it has vm");
    refused(&with(&["--host", "DS99"]), "unknown");
    refused(&with(&["--reads", "170%"]), "reads are 170 %, above 100 %");
    refused(&with(&["--working-set", "2TiB"]), "above the size of");
    refused(
        &with(&["--iops", "1000", "--request", "8KiB", "--throughput", "1MiB/s"]),
        "leave out one of the three",
    );
    refused(&with(&["--max-files", "3"]), "max_files: does not apply to vm");
    let instance = ["plan", "--edition", "azure-mi-now", "--size", "1TiB"];
    for (more, words) in [
        (["--memory", "64GiB"], "the catalog does not have the memory of instances"),
        (["--max-disks", "3"], "max_disks: does not apply to gp, next-gen-gp, bc"),
    ] {
        let (_, stderr, code) = run(place.weir(&[&instance[..], &more].concat()));
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
    place.file("bad.toml", "[data]\nsize = \"1 TiB\"\niopps = 3\n");
    refused(&["--need", "bad.toml"], "bad.toml:3:1: unknown field");
    place.file("empty.toml", "vcpus = 4\n");
    refused(&["--need", "empty.toml"], "empty.toml: has no role; add [data]");
    place.file("data.toml", "[data]\nsize = \"1 TiB\"\n");
    refused(&["--need", "data.toml", "--iops", "3"], "leave out one");
    let backup = "edition = \"azure-mi-now\"\n[backup]\nsize = \"1 TiB\"\n";
    place.file("backup.toml", backup);
    let (_, stderr, code) = run(place.weir(&["plan", "--need", "backup.toml"]));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("makes its own backups"), "{stderr}");
}

/// The first line of a plan, which is simulated, and its layout checked.
fn first_line(place: &Place, args: &[&str]) -> String {
    let rates = ["--iops", "16000", "--size", "4TiB", "--verify", "--out", "plan.toml"];
    let (stdout, stderr, code) = run(place.weir(&[&["plan"], args, &rates].concat()));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{args:?}: {stdout}");
    let (checked, stderr, code) = run(place.weir(&["layout", "check", "plan.toml"]));
    // That disks share their limits is said.
    let is_fine = stderr.lines().all(|line| line.contains("disks share their limits"));
    assert!(is_fine && code == Some(0), "{args:?}: {stderr}{checked}");
    // Machines without a price are in the headline too, and vary with the catalog.
    let headline = stdout.lines().next().unwrap_or_default();
    headline.split("; ").next().unwrap_or_default().to_owned()
}

#[test]
fn other_clouds_and_services_have_plans_that_hold() {
    let place = Place::new();
    let check = |args: &[&str], expect: &str| assert_eq!(first_line(&place, args), expect);
    // 173.01 and 4,098 GiB at 0.08; six disks have enough operations for nothing.
    check(
        &["--edition", "aws"],
        "plan: c8gb.xlarge: data on 6 x gp3 of 683 GiB, 3000 IOPS and 125 MiB/s: 500.85 USD a month",
    );
    // 218.89 and 4,096 GiB at 0.10.
    check(
        &["--edition", "gcp"],
        "plan: c3d-highcpu-8: data on pd-balanced of 4 TiB: 628.49 USD a month",
    );
    // 1,138.80 and 8,192 GiB at 0.138.
    check(
        &["--edition", "azure-postgres"],
        "plan: D16s_v3: postgresql on P60 of 8 TiB: 2,269.30 USD a month",
    );
    // 4,096 GiB at 0.125 and 16,000 IOPS at 0.10.
    check(
        &["--edition", "aws", "--family", "rds", "--engine", "mysql"],
        "plan: db.m5.4xlarge: mysql on 4 x io1 of 1 TiB, 4000 IOPS and 500 MiB/s: 2,112.00 USD a \
         month and an unknown price",
    );
}

#[test]
fn one_gib_less_keeps_the_cache_of_a_server_of_postgres() {
    let place = Place::new();
    let args =
        ["plan", "--verbose", "--edition", "azure-postgres", "--iops", "7000", "--size", "3TiB"];
    let (stdout, _, code) = run(place.weir(&args));
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains("postgresql on P50 of 4095 GiB"), "{stdout}");
    assert!(
        stdout.contains("4095 GiB instead of 4 TiB: storage below 4 TiB has a host cache"),
        "{stdout}"
    );
    assert!(stdout.contains("tier = \"P50\"\nsize = \"4095 GiB\""), "{stdout}");
}

#[test]
fn keys_that_a_service_lacks_are_refused() {
    let place = Place::new();
    let refused = |args: &[&str], need: &str, words: &str| {
        place.file("need.toml", need);
        let all = [&["plan", "--need", "need.toml"], args].concat();
        let (stdout, stderr, code) = run(place.weir(&all));
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{args:?}: {stderr}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    };
    let rds = ["--edition", "aws", "--family", "rds"];
    let postgres = ["--edition", "azure-postgres"];
    let with = |role: &str| format!("[data]\nsize = \"1 TiB\"\n[{role}]\nsize = \"9 GiB\"\n");
    refused(
        &rds,
        &with("backup"),
        "rds makes its own backups, on storage of its own; leave it out",
    );
    refused(&postgres, &with("backup"), "postgres makes its own backups");
    refused(&postgres, &with("tempdb"), "postgresql has no tempdb");
    refused(&rds, &with("tempdb"), "postgresql has no tempdb");
    let data = "[data]\nsize = \"1 TiB\"\n";
    let engine = [&rds[..], &["--engine", "db2"]].concat();
    refused(
        &engine,
        data,
        "engine: rds has no \"db2\"; it has mariadb, mysql, postgresql, oracle, sqlserver",
    );
    let memory = [&postgres[..], &["--memory", "64GiB"]].concat();
    refused(&memory, data, "the catalog does not have the memory of postgres servers");
    let stray = ["--edition", "gcp", "--engine", "mysql"];
    refused(&stray, data, "engine: does not apply to vm");
    // Machines have what the service has not; it stands back.
    place.file("need.toml", &with("tempdb"));
    let (stdout, stderr, code) =
        run(place.weir(&["plan", "--edition", "aws", "--need", "need.toml"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
}

const PRESENT: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS13\" }\n[[stripe]]\n\
                       name = \"d\"\nunit = \"64 KiB\"\nvolumes = { count = 4, tier = \"P20\" }\n\
                       [[file]]\nname = \"f\"\nrole = \"data\"\nsize = \"400 GiB\"\non = \"d\"\n";

#[test]
fn disks_in_use_are_kept_and_extended() {
    let place = Place::new();
    place.file("now.toml", PRESENT);
    let need = ["--iops", "12000", "--size", "400GiB", "--keep", "now.toml", "--no-downtime"];
    let (stdout, stderr, code) = plan(&place, &[&need[..], &["--verify", "-o", "json"]].concat());
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    // Four columns stay four columns, whatever five of P20 would cost.
    assert_eq!(report["plan"]["title"], "DS13: data on 4 x P30");
    assert_eq!(
        report["plan"]["reasons"][1],
        "data: the 4 x P20 in use grow to 1 TiB each; their limits rise without copying, but \
         only an LVM stripe can use the new room in place: data on mdadm or Storage Spaces must be \
         copied"
    );
    assert_eq!(report["verified"][0]["is_met"], true);
    // A disk alone is taken up by every tool.
    let single = PRESENT
        .replace("[[stripe]]\nname = \"d\"\nunit = \"64 KiB\"\n", "[[volume]]\nname = \"d\"\n")
        .replace("volumes = { count = 4, tier = \"P20\" }", "tier = \"P20\"");
    place.file("single.toml", &single);
    let (stdout, _, code) =
        plan(&place, &["--iops", "4000", "--size", "400GiB", "--keep", "single.toml"]);
    assert_eq!(code, Some(0), "{stdout}");
    let words = "data: the 1 x P20 in use grow to 1 TiB each, without copying";
    assert!(stdout.contains(words), "{stdout}");
    // More than the machine lets through, which may not restart.
    let more = ["--iops", "30000", "--size", "400GiB", "--keep", "now.toml", "--no-downtime"];
    let (stdout, _, code) = plan(&place, &more);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stdout.contains("feasible with a new layout, to which all data is copied: "),
        "{stdout}"
    );
}

#[test]
fn the_files_of_an_instance_that_bring_most_grow_first() {
    let place = Place::new();
    place.file(
        "now.toml",
        "edition = \"azure-mi-2018\"\n[host]\nmanaged_instance = \"gp\"\nvcores = 8\n\
         storage = \"2 TiB\"\n[[file]]\nname = \"data1\"\nrole = \"data\"\nsize = \"100 GiB\"\n\
         [[file]]\nname = \"data2\"\nrole = \"data\"\nsize = \"120 GiB\"\n\
         [[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"100 GiB\"\n",
    );
    place.file(
        "need.toml",
        "edition = \"azure-mi-2018\"\nkeep = \"now.toml\"\nno_downtime = true\n\
         [data]\nsize = \"200 GiB\"\niops = 4000\n[log]\nsize = \"100 GiB\"\niops = 600\nrequest = \"16 KiB\"\n",
    );
    let (stdout, stderr, code) = run(place.weir(&["plan", "--need", "need.toml", "--verify"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    assert!(stdout.starts_with(
        "plan: gp with 8 vCores, 2 TiB: data 2 x 257 GiB (P20), log 1 x 129 GiB (P15)"
    ));
    // 600 IOPS more for 29 GiB, before 3,600 for 294.
    let log =
        "grow 1. log: 1 file (100 GiB in total) to 129 GiB each, from 500 to 1100 IOPS for 29 GiB";
    let data = "grow 2. data: 2 files (220 GiB in total) to 257 GiB each, from 1000 to 4600 IOPS for 294 GiB";
    assert!(stdout.contains(log) && stdout.contains(data), "{stdout}");
}

#[test]
fn bursts_are_counted_on_only_if_asked() {
    let place = Place::new();
    let disks = |more: &[&str]| {
        let args = ["plan", "--iops", "3000", "--size", "400GiB", "--host", "Standard_D8s_v3"];
        let args = [&args[..], &["--disks", "premium-ssd"], more].concat();
        run(place.weir(&args))
    };
    let (stdout, _, code) = disks(&["--verify"]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(!stdout.contains("burst"), "{stdout}");
    let (stdout, _, code) = disks(&["--bursting", "20min", "--verify"]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains(" bursting: "), "{stdout}");
    assert!(stdout.contains("data: uses burst credits, as requested: each P"), "{stdout}");
    // Credits last half an hour.
    let (stdout, stderr, code) = disks(&["--bursting", "31min"]);
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    assert!(stderr.contains("no burst credits last 31 min; the longest last 30 min"), "{stderr}");
}

/// Observes two files of a database every second. `reads` are the pages that `data` reads.
fn observed(place: &Place, name: &str, reads: u64) {
    let mut text = String::from(
        "sample_time,database_name,name,type_desc,size_on_disk_bytes,num_of_reads,num_of_bytes_read,\
         io_stall_read_ms,num_of_writes,num_of_bytes_written,io_stall_write_ms\n",
    );
    for second in 0..=90_u64 {
        for (file, kind, read, write) in
            [("sales", "ROWS", reads, 100), ("sales_log", "LOG", 0, 50)]
        {
            let (read, write) = (read * second, write * second);
            text += &format!(
                "2026-11-22 10:{:02}:{:02},sales,{file},{kind},107374182400,{read},{},{read},{write},{},{write}\n",
                second / 60,
                second % 60,
                read * 8_192,
                write * 8_192,
            );
        }
    }
    place.file(&format!("{name}.csv"), &text);
    let out = format!("{name}.weirobs");
    let (_, stderr, code) =
        run(place.weir(&["observe", "import", &format!("{name}.csv"), "--out", &out]));
    assert_eq!(code, Some(0), "{stderr}");
}

/// The observed load of a stripe is the sum of its disks, and the plan is sized by that.
#[test]
fn an_observed_stripe_is_what_its_disks_do() {
    let place = Place::new();
    let layout = "edition = \"azure-premium-2015\"\nhost = { size = \"DS13\" }\n[[stripe]]\nname = \"data\"\n\
                  unit = \"64 KiB\"\nvolumes = { count = 3, tier = \"P20\" }\n";
    place.file("now.toml", layout);
    let job = "[data]\nioengine=libaio\ndirect=1\nfilename=/dev/data\nrw=randread\nbs=8k\niodepth=8\n\
               rate_iops=1000\nsize=100g\ntime_based\nruntime=90\n";
    place.file("job.fio", job);
    let sim = ["sim", "now.toml", "job.fio", "--observe", "now.weirobs", "--quiet"];
    let (_, stderr, code) = run(place.weir(&sim));
    assert_eq!(code, Some(0), "{stderr}");
    let from = ["--verbose", "--from", "now.weirobs", "--size", "800GiB"];
    let (stdout, stderr, code) = plan(&place, &from);
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    let asked = |stdout: &str| -> u64 {
        let line = stdout.lines().find(|line| line.contains(": needs "));
        let mut words = line.unwrap_or_default().split_whitespace();
        words.find_map(|word| word.parse().ok()).unwrap_or_else(|| panic!("{stdout}"))
    };
    assert!((990..2_000).contains(&asked(&stdout)), "{stdout}");
    // Roles by name give the same result.
    let roles = ["--role", "data-0=data", "--role", "data-1=data", "--role", "data-2=data"];
    let (named, ..) = plan(&place, &[&from[..], &roles].concat());
    assert_eq!(asked(&named), asked(&stdout));
}

#[test]
fn a_throttled_system_is_planned_for_its_estimated_demand() {
    let place = Place::new();
    let layout = |tier: &str| {
        format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS14\" }}\n[[volume]]\nname = \
             \"data\"\ntier = \"{tier}\"\n"
        )
    };
    place.file("now.toml", &layout("P10"));
    place.file("larger.toml", &layout("P30"));
    place.file(
        "job.fio",
        "[a]\nfilename=/mnt/data\nrw=randread\nbs=8k\nioengine=libaio\ndirect=1\ntime_based\nruntime=60\n\
         iodepth=8\n",
    );
    let sim = ["sim", "now.toml", "job.fio", "--observe", "now.weirobs", "--quiet"];
    assert_eq!(run(place.weir(&sim)).2, Some(0));
    let from = ["plan", "--from", "now.weirobs", "--size", "100GiB", "--edition"];
    let from = [&from[..], &["azure-premium-2015", "-o", "json"]].concat();
    let planned = |more: &[&str]| -> Value {
        let (stdout, stderr, code) = run(place.weir(&[&from[..], more].concat()));
        assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
        serde_json::from_str(&stdout).expect("JSON")
    };
    let estimated = planned(&[]);
    let note = |report: &Value| {
        let notes = report["notes"].as_array().expect("notes").clone();
        let all = notes.iter().filter_map(Value::as_str);
        all.filter(|note| note.starts_with("data: data was throttled")).collect::<String>()
    };
    let said = note(&estimated);
    let words: Vec<&str> = said.split(' ').collect();
    let place_of = words.iter().position(|word| *word == "for").expect("planned for ..");
    let estimate: f64 = words[place_of + 1].replace(',', "").parse().expect("a rate");
    // Eight requests in flight do what they do on a disk that does not throttle them.
    let sim = ["sim", "larger.toml", "job.fio", "--quiet", "-o", "json"];
    let (stdout, ..) = run(place.weir(&sim));
    let truth: Value = serde_json::from_str(&stdout).expect("JSON");
    let truth = truth["jobs"][0]["read"]["iops"].as_f64().expect("a rate");
    assert!((estimate / truth - 1.0).abs() < 0.1, "{estimate} for {truth}: {said}");
    let as_observed = planned(&["--as-observed"]);
    assert!(note(&as_observed).contains("left out (--as-observed)"), "{}", note(&as_observed));
    // 500 operations are all that a P10 has, and what was observed there.
    assert!(as_observed["plan"]["layout"].to_string().contains("P10"), "{as_observed}");
    assert!(!as_observed["plan"]["layout"].to_string().contains("count = 2"), "{as_observed}");
}

#[test]
fn an_observation_becomes_a_need() {
    let place = Place::new();
    observed(&place, "files", 900);
    let from = ["plan", "--from", "files.weirobs", "--percentile", "99.9", "--growth", "50%"];
    let (stdout, stderr, code) =
        run(place.weir(&[&from[..], &["-o", "json", "--verify"]].concat()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    let notes = report["notes"].to_string();
    assert!(notes.contains("90.0 s observed; rates are the 99.9th percentile"), "{notes}");
    assert!(notes.contains("miss the peaks of a day"), "{notes}");
    // 1,000 operations a second and half of them more, and 75 of the log.
    let asked = |at: usize| report["verified"][at]["target_per_s"].as_u64().expect("a rate");
    assert!((1_490..=1_520).contains(&asked(0)), "{}", asked(0));
    assert!((74..=77).contains(&asked(1)), "{}", asked(1));
    assert!(report["plan"]["layout"].to_string().contains("150 GiB"), "{stdout}");
    // An observation excludes options for the same values, and needs a role with load.
    let check = |args: &[&str], expect: &str| {
        let (stdout, stderr, code) = run(place.weir(&[&["plan"], args].concat()));
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
        assert!(stderr.contains(expect), "{stderr}");
    };
    place.file("need.toml", "[data]\nsize = \"1 TiB\"\niops = 5\n");
    check(
        &["--from", "files.weirobs", "--need", "need.toml"],
        "data: both files.weirobs and the need give its iops; leave out one",
    );
    check(
        &["--from", "files.weirobs", "--role", "sale=data"],
        "files.weirobs: has no sale; it has sales, sales_log",
    );
    check(&["--size", "1TiB", "--growth", "5%"], "--growth needs --from OBSERVATION");
    check(
        &["--size", "1TiB", "--iops", "9", "--role", "a=data"],
        "--role needs --from OBSERVATION",
    );
    check(&["--size", "1TiB", "--iops", "9", "--fewest"], "--fewest needs --fleet DIR");
    let server =
        ["--edition", "azure-postgres", "--size", "1TiB", "--iops", "900", "--out", "pg.toml"];
    let (stdout, stderr, code) = run(place.weir(&[&["plan"], &server[..]].concat()));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    let (_, stderr, code) = run(place.weir(&["export", "pg.toml", "--as", "az"]));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("which creates it"), "{stderr}");
    check(
        &["--from", "files.weirobs", "--role", "sales=page"],
        "roles are data, log, tempdb and backup",
    );
}

#[test]
fn a_fleet_has_an_instance_for_each_database_and_a_bound() {
    let place = Place::new();
    std::fs::create_dir(place.path("fleet")).expect("a folder");
    for n in 0..8 {
        let text = format!(
            "vcpus = 0.{}\n[data]\nsize = \"{} GiB\"\niops = {}\n[log]\nsize = \"10 GiB\"\niops = 20\n",
            n + 1,
            20 + 30 * n,
            50 + 100 * n
        );
        place.file(&format!("fleet/db{n}.toml"), &text);
    }
    observed(&place, "fleet/seen", 40);
    std::fs::remove_file(place.path("fleet/seen.csv")).expect("a file");
    let args = ["plan", "--fleet", "fleet", "--family", "gp", "--verify", "--out", "made"];
    let (stdout, stderr, code) = run(place.weir(&[&args[..], &["-o", "json"]].concat()));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    let instances = report["instances"].as_array().expect("a list");
    let mut names: Vec<String> = instances
        .iter()
        .flat_map(|own| own["databases"].as_array().expect("a list"))
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["db0", "db1", "db2", "db3", "db4", "db5", "db6", "db7", "seen"]);
    assert!(report["optimality_gap"].as_f64().expect("a share") <= 0.01, "{stdout}");
    for (at, own) in instances.iter().enumerate() {
        assert!(own["verified"].as_f64().expect("a share") >= 0.98, "{stdout}");
        let layout = format!("made/instance{}.toml", at + 1);
        let (_, stderr, code) = run(place.weir(&["layout", "check", &layout]));
        assert_eq!((stderr.as_str(), code), ("", Some(0)));
    }
    place.file("fleet/huge.toml", "vcpus = 99\n[data]\nsize = \"1 GiB\"\niops = 1\n");
    let (stdout, _, code) = run(place.weir(&["plan", "--fleet", "fleet", "--family", "gp"]));
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.starts_with("plan: 1 of 10 databases fit no instance"), "{stdout}");
    assert!(stdout.contains("huge"), "{stdout}");
    let check = |args: &[&str], expect: &str| {
        let (stdout, stderr, code) = run(place.weir(&[&["plan"], args].concat()));
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
        assert!(stderr.contains(expect), "{stderr}");
    };
    check(&["--fleet", "nowhere"], "cannot read nowhere");
    check(&["--fleet", "fleet", "--edition", "azure-now"], "no managed instances");
    check(&["--fleet", "fleet", "--out", "fleet"], "is the folder of the needs");
    place.file("fleet/huge.toml", "edition = \"azure-now\"\n[data]\nsize = \"1 GiB\"\n");
    check(&["--fleet", "fleet"], "huge: edition: applies to the whole fleet");
    check(&["--fleet", "fleet", "--iops", "5"], "cannot be used with");
    std::fs::create_dir(place.path("empty")).expect("a folder");
    check(&["--fleet", "empty"], "empty has no need files");
}

#[test]
fn kept_disks_keep_their_names_so_that_only_changes_are_exported() {
    let place = Place::new();
    place.file(
        "vm.toml",
        "edition = \"azure-premium-2015\"\nhost = { size = \"DS13\" }\n[[volume]]\nname = \"disk-a\"\n\
         tier = \"P20\"\n[[volume]]\nname = \"disk-b\"\ntier = \"P20\"\n[[stripe]]\nname = \"fast\"\n\
         unit = \"64 KiB\"\nvolumes = [\"disk-a\", \"disk-b\"]\n[[volume]]\nname = \"logs\"\ntier = \"P30\"\n\
         [[file]]\nname = \"sales\"\nrole = \"data\"\nsize = \"400 GiB\"\non = \"fast\"\n\
         [[file]]\nname = \"sales_log\"\nrole = \"log\"\nsize = \"100 GiB\"\non = \"logs\"\n",
    );
    let need = |log: &str| {
        format!(
            "edition = \"azure-premium-2015\"\nkeep = \"vm.toml\"\nno_downtime = true\n\
             [data]\nsize = \"400 GiB\"\niops = 8000\n{log}"
        )
    };
    place.file("need.toml", &need("[log]\nsize = \"100 GiB\"\niops = 500\nrequest = \"16 KiB\"\n"));
    let args = ["plan", "--need", "need.toml", "--out", "new.toml", "--verify"];
    let (stdout, stderr, code) = run(place.weir(&args));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    assert!(stdout.starts_with("plan: DS13: data on 2 x P30, log on 1 x P30"), "{stdout}");
    let export = ["export", "new.toml", "--from", "vm.toml", "--as", "az"];
    let (script, _, code) = run(place.weir(&export));
    assert_eq!(code, Some(0), "{script}");
    assert!(
        !script.contains("az disk create") && !script.contains("not in the layout any more"),
        "{script}"
    );
    assert!(script.contains("disk-a") && !script.contains("logs --"), "{script}");
    // A role that the need omits would be deleted.
    place.file("less.toml", &need(""));
    let (_, stderr, code) = run(place.weir(&["plan", "--need", "less.toml"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("log of the layout to keep: is not in the need"), "{stderr}");
    // And an output never takes the place of an input.
    let (_, stderr, code) = run(place.weir(&["plan", "--need", "need.toml", "--out", "need.toml"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--out need.toml: is an input file"), "{stderr}");
    let (_, stderr, code) =
        run(place.weir(&["plan", "--size", "1TiB", "--iops", "18446744073709551615"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("above the maximum of 1000000000"), "{stderr}");
}
