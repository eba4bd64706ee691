//! Every sizing that the articles work out, as a need and its plan.

use crate::world::planned;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_plan::{Answer, Outcome};

fn met(edition: &str, text: &str) -> Box<Answer> {
    match planned(text, &Catalog::builtin(), edition).expect("a need").1 {
        Outcome::Met(answer) => {
            // Every verb reads it.
            Layout::parse("plan.toml", &answer.plan.layout, &Catalog::builtin()).expect("a layout");
            answer
        }
        outcome @ Outcome::NotMet(_) => panic!("{text}\n{outcome:#?}"),
    }
}

fn title(edition: &str, text: &str) -> String {
    met(edition, text).plan.title
}

/// The largest part of the rates that can be met, in the words of the first relaxation.
fn unmet(edition: &str, text: &str) -> String {
    match planned(text, &Catalog::builtin(), edition).expect("a need").1 {
        Outcome::NotMet(relaxations) => relaxations[0].what.clone(),
        Outcome::Met(answer) => panic!("{}", answer.plan.title),
    }
}

const PREMIUM: &str = "azure-premium-2015";
const INSTANCE: &str = "azure-mi-2018";

#[test]
fn article_003_16_000_iops_cost_half_on_premium_disks() {
    let premium = met(PREMIUM, "[data]\nsize = \"4 TiB\"\niops = 16000\n");
    assert_eq!(premium.plan.title, "DS13: data on 4 x P30");
    // The article adds 1,003.66 and 544.34 up to 1,544.34.
    assert_eq!(premium.plan.cost.month.to_string(), "1,548.00");
    assert!(
        premium.notes.iter().any(|note| note.contains("1,544.34; it is 1,548.00")),
        "{:?}",
        premium.notes
    );
    // No limit of a D14 is published: it is planned with where it is named, as the article does.
    let standard = "disks = [\"standard-hdd\"]\n[data]\nsize = \"32 TiB\"\niops = 16000\n";
    let named = met(PREMIUM, &format!("host = \"D14\"\n{standard}"));
    assert_eq!(named.plan.title, "D14: data on 32 x S30");
    assert_eq!(named.plan.cost.month.to_string(), "3,208.98");
    // No other machine that carries this has a price.
    let other = met(PREMIUM, standard);
    assert_eq!(
        (other.plan.title.as_str(), other.plan.cost.unpriced),
        ("DS4_v2: data on 32 x S30", 1)
    );
    let words = "left out because limits are not published: A0, ";
    assert!(other.notes.iter().any(|note| note.starts_with(words)), "{:?}", other.notes);
}

#[test]
fn article_003_a_p30_by_the_size_of_requests() {
    let of = |request: &str, iops: u64| {
        format!(
            "host = \"DS14\"\n[data]\nsize = \"1 TiB\"\niops = {iops}\nrequest = \"{request}\"\n"
        )
    };
    for (request, most) in
        [("8 KiB", 5_000), ("32 KiB", 5_000), ("64 KiB", 3_200), ("1024 KiB", 200)]
    {
        assert_eq!(title(PREMIUM, &of(request, most)), "DS14: data on 1 x P30", "{request}");
        let more = title(PREMIUM, &of(request, most + 1));
        assert_ne!(more, "DS14: data on 1 x P30", "{request}");
    }
}

#[test]
fn article_003_two_p30_have_twice_the_limits() {
    let two = "DS14: data on 2 x P30";
    let head = "host = \"DS14\"\n[data]\nsize = \"2 TiB\"\n";
    assert_eq!(title(PREMIUM, &format!("{head}iops = 10000\n")), two);
    assert_eq!(
        title(PREMIUM, &format!("{head}throughput = \"400 MiB/s\"\nrequest = \"256 KiB\"\n")),
        two
    );
    assert_ne!(title(PREMIUM, &format!("{head}iops = 10001\n")), two);
}

#[test]
fn article_003_the_machine_is_the_limit() {
    // A P30 does 5,000; a DS1 lets 3,200 through.
    let unmet = unmet(PREMIUM, "host = \"DS1\"\n[data]\nsize = \"1 TiB\"\niops = 4000\n");
    assert!(unmet.starts_with("80 % of the rates: data at 3200 IOPS"), "{unmet}");
    // A DS4 lets 256 MiB/s through; a P30 does 200.
    let text = "host = \"DS4\"\n[data]\nsize = \"2 TiB\"\nrequest = \"256 KiB\"\nthroughput = \"250 MiB/s\"\n";
    assert_eq!(title(PREMIUM, text), "DS4: data on 2 x P30");
}

#[test]
fn article_004_two_p30_take_the_backups_of_a_ds14() {
    let text = "host = \"DS14\"\n[backup]\nsize = \"2 TiB\"\nthroughput = \"256 MiB/s\"\n";
    assert_eq!(title(PREMIUM, text), "DS14: backup on 2 x P30");
}

#[test]
fn article_000_files_grow_just_past_an_edge() {
    let file = |size: &str, iops: u64| {
        format!("families = [\"gp\"]\nmax_files = 1\n[data]\nsize = \"{size}\"\niops = {iops}\n")
    };
    let title = |size: &str, iops: u64| {
        let title = title(INSTANCE, &file(size, iops));
        title.split_once("data ").unwrap().1.to_owned()
    };
    // Small files are on blobs of 128 GB.
    assert_eq!(title("32 GiB", 500), "1 x 32 GiB (P10)");
    // 150 GB are as fast as 256, and the next step is 257.
    assert_eq!(title("150 GiB", 1_100), "1 x 150 GiB (P15)");
    assert_eq!(title("150 GiB", 1_101), "1 x 257 GiB (P20)");
    // 900 GB are on a blob of 1 TB.
    assert_eq!(title("900 GiB", 5_000), "1 x 900 GiB (P30)");
    assert_eq!(title("900 GiB", 5_001), "1 x 1025 GiB (P40)");
    // One file gets 7,500 at most, whatever its size.
    assert_eq!(title("900 GiB", 7_500), "1 x 1025 GiB (P40)");
    let most = unmet(INSTANCE, &file("900 GiB", 7_501));
    assert!(most.starts_with("99.9 % of the rates: data at 7500 IOPS"), "{most}");
}

#[test]
fn article_000_six_files_and_a_log_of_just_over_a_tebibyte() {
    let text = "families = [\"gp\"]\nmax_files = 6\n[data]\nsize = \"4 TiB\"\niops = 45000\n[log]\n\
                size = \"500 GiB\"\niops = 7500\nrequest = \"2 KiB\"\n";
    let answer = met(INSTANCE, text);
    assert!(
        answer.plan.title.ends_with("data 6 x 1025 GiB (P40), log 1 x 1025 GiB (P40)"),
        "{}",
        answer.plan.title
    );
    let cap = |name: &str| answer.plan.caps.iter().find(|cap| cap.cap == name).unwrap();
    assert_eq!(cap("storage").most, 8 << 40);
    assert_eq!(cap("size of all blobs").used, 14 << 40);
}
