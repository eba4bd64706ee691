//! Export of plans.

use crate::common::{layout, options_for};
use weir_catalog::{Catalog, PriceBook};
use weir_export::{ExportError, Kind, Source, export};
use weir_plan::need::NeedFile;
use weir_plan::{Outcome, Question, plan};

/// Returns the layout of a plan.
fn planned(need: &str) -> String {
    let catalog = Catalog::builtin();
    let file = NeedFile::read("need.toml", need).expect("a need file");
    let (need, _) = file.need().expect("a need");
    let wishes = file.wishes();
    let edition =
        catalog.edition(file.edition.as_deref().expect("an edition")).expect("an edition");
    let book = PriceBook::of(edition.prices(), None, None, None).expect("prices");
    let question = Question {
        catalog: &catalog,
        edition,
        prices: book.as_ref(),
        need: &need,
        wishes: &wishes,
    };
    match plan(&question).expect("an answer") {
        Outcome::Met(answer) => answer.plan.layout,
        Outcome::NotMet(_) => panic!("no plan"),
    }
}

/// Checks that these kinds export a plan, and that the others reject it with a reason.
fn check(need: &str, has: &str, kinds: &[Kind]) {
    let text = planned(need);
    assert!(text.contains(has), "{text}");
    let own = layout(&text);
    for kind in Kind::ALL.into_iter().filter(|kind| !kind.is_backup()) {
        let options = options_for(kind, &own);
        let script = export(kind, Source { name: "plan.toml", layout: &own }, None, &options);
        match script {
            Ok(script) => {
                assert!(kinds.contains(&kind), "{kind} of\n{text}\n{}", script.text);
                assert!(script.text.contains("from plan.toml"), "{}", script.text);
            }
            Err(error) => {
                assert!(!kinds.contains(&kind), "{kind}: {error}\n{text}");
                assert!(matches!(error, ExportError::Nothing { .. }), "{kind}: {error}");
            }
        }
    }
}

/// Checks that performance plus is set where disks are created, because it cannot be set later.
#[test]
fn performance_plus_of_a_plan_is_set_where_disks_are_created() {
    let text = planned(
        "edition = \"azure-now\"\ndisks = [\"premium-ssd\"]\n[data]\nsize = \"1000 GiB\"\niops = 8000\n",
    );
    assert!(text.contains("tier = \"P30\"\nperformance_plus = true\n"), "{text}");
    let own = layout(&text);
    for (kind, words) in [
        (Kind::Az, "--performance-plus true"),
        (Kind::Bicep, "performancePlus: true"),
        (Kind::Terraform, "performance_plus_enabled"),
        (Kind::Powershell, "PerformancePlus = $true"),
    ] {
        let options = options_for(kind, &own);
        let script = export(kind, Source { name: "plan.toml", layout: &own }, None, &options)
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(script.text.contains(words), "{kind}:\n{}", script.text);
    }
}

const CLOUD: [Kind; 4] = [Kind::Az, Kind::Bicep, Kind::Terraform, Kind::Powershell];

#[test]
fn every_form_of_a_plan_is_exported() {
    let linux = [Kind::Lvm, Kind::Fstab];
    let stripes = [Kind::Mdadm, Kind::StorageSpaces];
    let machine = [&CLOUD[..], &[Kind::Tsql], &linux].concat();
    let striped = [&machine[..], &stripes].concat();
    let instance = [&CLOUD[..], &[Kind::Tsql]].concat();
    check(
        "edition = \"azure-premium-2015\"\n[data]\nsize = \"400 GiB\"\niops = 1000\n",
        "[[volume]]",
        &machine,
    );
    check(
        "edition = \"azure-premium-2015\"\n[data]\nsize = \"4 TiB\"\niops = 16000\n",
        "[[stripe]]",
        &striped,
    );
    check(
        "edition = \"azure-now\"\ndisks = [\"premium-ssd-v2\"]\n[data]\nsize = \"500 GiB\"\niops = 9000\n",
        "premium-ssd-v2",
        &striped,
    );
    check(
        "edition = \"azure-premium-2015\"\n[data]\nsize = \"400 GiB\"\niops = 2000\n[log]\nsize = \"100 \
         GiB\"\niops = 400\n[tempdb]\nsize = \"50 GiB\"\niops = 500\n",
        "place = \"local\"",
        &machine,
    );
    let own = [Kind::Terraform, Kind::Tsql, Kind::Lvm, Kind::Fstab];
    let own_striped = [&own[..], &stripes].concat();
    for (edition, family, iops, has, kinds) in [
        ("aws", "gp3", 1000, "[[volume]]", &own[..]),
        ("aws", "gp3", 30000, "[[stripe]]", &own_striped),
        ("aws", "io1", 9000, "io1", &own),
        ("aws", "io2", 9000, "io2", &own),
        ("gcp", "pd-ssd", 5000, "pd-ssd", &own),
        ("gcp", "pd-balanced", 1000, "pd-balanced", &own),
        ("gcp", "hyperdisk-balanced", 9000, "hyperdisk-balanced", &own),
        ("gcp", "hyperdisk-extreme", 9000, "hyperdisk-extreme", &own),
    ] {
        let need = format!(
            "edition = {edition:?}\ndisks = [{family:?}]\n[data]\nsize = \"400 GiB\"\niops = {iops}\n"
        );
        check(&need, has, kinds);
    }
    for family in ["gp", "next-gen-gp", "bc"] {
        check(
            &format!(
                "edition = \"azure-mi-now\"\nfamilies = [\"{family}\"]\n[data]\nsize = \"300 GiB\"\niops = \
                 2000\n[log]\nsize = \"50 GiB\"\niops = 200\n"
            ),
            family,
            &instance,
        );
    }
}
